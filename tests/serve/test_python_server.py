# SPDX-License-Identifier: Apache-2.0
"""The server from Python: `opstrobe.serve`, and the same answers without one."""

import concurrent.futures
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
from conftest import OPSTROBE, ROOT, TIMEOUT_S

import opstrobe

SAMPLE = ROOT / "tests" / "fuzz" / "read" / "kineto" / "kineto.json"


def tasks():
    return set(os.listdir("/proc/self/task"))


def check_no_thread_is_left(before):
    """A thread is joined a moment before the system forgets it."""
    deadline = time.monotonic() + TIMEOUT_S
    while tasks() - before:
        assert time.monotonic() < deadline, "a thread is left behind"
        time.sleep(0.01)


def get(server, target, token=True):
    headers = {"Authorization": f"Bearer {server.token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{target}", headers=headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
        return reply.read()


# --- over HTTP --------------------------------------------------------------------------------------------------------


def test_it_serves_until_it_is_stopped():
    before = tasks()
    with opstrobe.serve(SAMPLE) as server:
        assert server.url == f"http://127.0.0.1:{server.port}/?token={server.token}"
        assert [trace["name"] for trace in json.loads(get(server, "/api/v1/traces"))["traces"]] == [SAMPLE.name]
        assert get(server, f"/t/{server.token}/", token=False) == get(server, "/")
        assert server.frame_url.endswith(f":{server.port}/t/{server.token}/")
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(server, "/api/v1/traces", token=False)
        assert server.url in repr(server)
    check_no_thread_is_left(before)
    assert "stopped" in repr(server)
    server.stop()
    with pytest.raises(urllib.error.URLError):
        get(server, "/")


def test_a_server_that_is_dropped_ends():
    before = tasks()
    opstrobe.serve([SAMPLE])
    check_no_thread_is_left(before)


def test_what_cannot_be_served(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent.json"):
        opstrobe.serve(tmp_path / "absent.json")
    with pytest.raises(ValueError, match="'somewhere' is not a numeric address"):
        opstrobe.serve(SAMPLE, host="somewhere")
    with pytest.raises(ValueError, match="other machines can reach 0.0.0.0"):
        opstrobe.serve(SAMPLE, host="0.0.0.0")
    with pytest.raises(ValueError, match="port 65537 does not exist"):
        opstrobe.serve(SAMPLE, port=65537)
    with pytest.raises(ValueError, match="is not an origin"):
        opstrobe.serve(SAMPLE, frame_origin="x; script-src *")
    with pytest.raises(ValueError, match="null"):
        opstrobe.serve("a\0b")
    with pytest.raises(TypeError):
        opstrobe.serve(5)
    with opstrobe.serve(SAMPLE) as server, pytest.raises(OSError, match=f"port {server.port}"):
        opstrobe.serve(SAMPLE, port=server.port)


def test_traces_that_come_later_are_listed(tmp_path):
    with opstrobe.serve(tmp_path) as server:
        assert json.loads(get(server, "/api/v1/traces"))["traces"] == []
        (tmp_path / "late.pt.trace.json").write_bytes(SAMPLE.read_bytes())
        while not json.loads(get(server, "/api/v1/traces"))["traces"]:
            time.sleep(0.05)


def test_the_browser_is_opened(tmp_path):
    """By the program that BROWSER names, as the standard library does, with a page that leads there."""
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\ncat "${{1#file://}}" >{opened}\n')
    browser.chmod(0o755)
    code = "import opstrobe, sys\nprint(opstrobe.serve(sys.argv[1], open_browser=True).url)"
    done = subprocess.run(
        [sys.executable, "-c", code, SAMPLE],
        env={**os.environ, "BROWSER": str(browser)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    assert f'url={done.stdout.strip()}"' in opened.read_text()


def test_a_forked_process_leaves_the_server_alone():
    with opstrobe.serve(SAMPLE) as server, opstrobe.TraceApi(SAMPLE) as api:
        child = os.fork()
        if not child:
            code = 1
            try:
                server.stop()
                try:
                    api.get("/api/v1/traces")
                except RuntimeError as error:
                    code = 0 if "forked" in str(error) else 2
                api.close()
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert json.loads(get(server, "/api/v1/traces"))["traces"]
        assert api.get("/api/v1/traces").status == 200


def test_a_program_may_end_while_it_serves():
    code = """if True:
        import opstrobe, sys, threading, urllib.request
        server = opstrobe.serve(sys.argv[1])
        api = opstrobe.TraceApi(sys.argv[1])
        threading.Thread(target=api.get, args=("/api/v1/traces",), daemon=True).start()
        urllib.request.urlopen(server.frame_url).read()
        print("served")
    """
    done = subprocess.run([sys.executable, "-c", code, SAMPLE], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (done.returncode, done.stdout, done.stderr) == (0, "served\n", "")


def test_recording_does_not_load_the_server():
    code = "import sys, opstrobe; assert 'opstrobe._serve' not in sys.modules; assert 'microhttpd' not in open('/proc/self/maps').read()"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=TIMEOUT_S)


# --- within the process -----------------------------------------------------------------------------------------------


def test_the_same_answers_without_a_server():
    before = tasks()
    with opstrobe.serve(SAMPLE) as server, opstrobe.TraceApi([str(SAMPLE)]) as api:
        trace = json.loads(api.get("/api/v1/traces").body)["traces"][0]["id"]
        for target in (f"/api/v1/traces/{trace}/info", f"/api/v1/traces/{trace}/views?parts=operators", "/", "/app.js"):
            reply = api.get(target)
            assert reply.status == 200 and reply.body == get(server, target)
        assert api.get("/").type == "text/html; charset=utf-8"
        assert api.get("/app.js").type == "text/javascript; charset=utf-8"
        assert api.get("/app.js?v=1").status == 200
        for target, status in {"/api/v1/absent": 404, "/absent.js": 404, "/a/b": 404, "/%zz": 400}.items():
            reply = api.get(target)
            assert (reply.status, reply.type) == (status, "application/json")
            assert json.loads(reply.body)["error"]["message"]
    check_no_thread_is_left(before)
    with pytest.raises(RuntimeError, match="closed"):
        api.get("/")
    api.close()


def test_many_ask_while_it_is_closed():
    """Calls that are under way are answered; later ones are refused."""
    before = tasks()
    api = opstrobe.TraceApi(SAMPLE)
    trace = json.loads(api.get("/api/v1/traces").body)["traces"][0]["id"]
    closing = threading.Event()

    def ask(number):
        try:
            status = api.get(f"/api/v1/traces/{trace}/views?parts=operators").status
        except RuntimeError as error:
            assert "closed" in str(error)
            status = 0
        if number == 40:
            closing.set()
        return status

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        asked = pool.map(ask, range(200))
        closing.wait(TIMEOUT_S)
        api.close()
        assert set(asked) <= {0, 200}
    check_no_thread_is_left(before)


def test_the_command_says_the_same(tmp_path):
    """One producer of the figures: the reply is what the command prints."""
    with opstrobe.TraceApi(SAMPLE) as api:
        trace = json.loads(api.get("/api/v1/traces").body)["traces"][0]["id"]
        advice = json.loads(api.get(f"/api/v1/traces/{trace}/advice").body)
    said = subprocess.run(
        [OPSTROBE, "advise", "--format", "json", SAMPLE], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert json.loads(said.stdout) == advice
