# SPDX-License-Identifier: Apache-2.0
"""Who may ask, and what those can do who mean ill: tokens, hosts, origins, frames, odd requests, many and slow clients."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest
from conftest import OPSTROBE, ROOT, TIMEOUT_S, serving

SAMPLE = ROOT / "tests" / "fuzz" / "read" / "kineto" / "kineto.json"


@pytest.fixture(scope="module")
def server():
    with serving(SAMPLE) as running:
        yield running
        code, errors = running.stop()
        assert code == 0 and "Sanitizer" not in errors, errors


@pytest.fixture
def trace(server):
    return server.traces()[0]["id"]


# --- who may ask ------------------------------------------------------------------------------------------------------


def test_without_the_token_nothing_is_shown(server):
    other = "0" * 32
    for headers in (
        {},
        {"Authorization": f"Bearer {other}"},
        {"Authorization": server.token},
        {"Cookie": "opstrobe=1"},
    ):
        reply = server.get("/api/v1/traces", headers)
        assert reply.status == 401 and server.token not in reply.body.decode()
    assert server.get(f"/t/{other}/api/v1/traces", {}).status == 404
    assert server.get(f"/?token={other}", {}).status == 401


def test_token_by_header_cookie_and_path(server):
    cookie = {"Cookie": f"a=b; opstrobe_{server.port}={server.token}; c=d"}
    assert server.get("/api/v1/traces", cookie).status == 200
    assert server.get("/api/v1/traces", {"Authorization": f"bearer {server.token}"}).status == 200
    assert server.get(f"/t/{server.token}/api/v1/traces", {}).status == 200
    assert server.get(f"/t/{server.token}/", {}).status == 200


def test_the_printed_address_sets_a_cookie(server):
    reply = server.get(f"/?token={server.token}", {})
    assert (reply.status, reply.headers["Location"]) == (303, "./")
    cookie = reply.headers["Set-Cookie"]
    assert cookie.startswith(f"opstrobe_{server.port}={server.token};")
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert server.get("/api/v1/traces", {"Cookie": cookie.split(";")[0]}).status == 200


@pytest.mark.parametrize(
    "host, status",
    [
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("localhost:9999", 200),
        ("[::1]:{port}", 200),
        ("evil.example:{port}", 403),
        ("127.0.0.1.evil.example", 403),
        ("10.0.0.1:{port}", 403),
        ("localhost@evil.example", 403),
        ("localhost:{port}:1", 403),
        ("[::1", 403),
        ("", 403),
    ],
)
def test_host(server, host, status):
    headers = {"Authorization": f"Bearer {server.token}", "Host": host.format(port=server.port)}
    assert server.get("/api/v1/traces", headers).status == status


@pytest.mark.parametrize(
    "origin, status",
    [("http://127.0.0.1:{port}", 200), ("http://127.0.0.1:1", 403), ("http://evil.example", 403), ("null", 403)],
)
def test_origin(server, origin, status):
    headers = {"Authorization": f"Bearer {server.token}", "Origin": origin.format(port=server.port)}
    assert server.get("/api/v1/traces", headers).status == status


def test_headers_of_every_reply(server, trace):
    for target in ("/", "/api/v1/traces", f"/api/v1/traces/{trace}/timeline", "/api/v1/none", "/none"):
        headers = server.get(target).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "Access-Control-Allow-Origin" not in headers


def test_frames_of_one_origin():
    with serving("--embed", "http://localhost:8888", SAMPLE) as running:
        assert "frame-ancestors http://localhost:8888" in running.get("/").headers["Content-Security-Policy"]
    done = subprocess.run(
        [OPSTROBE, "serve", "--embed", "x; script-src *", SAMPLE], capture_output=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 2 and b"not an origin" in done.stderr


def test_ends_with_the_program_that_started_it():
    with serving("--with-input", SAMPLE, stdin=subprocess.PIPE) as running:
        running.process.stdin.write("the text does not matter\n")
        running.process.stdin.flush()
        assert running.get("/").status == 200
        running.process.communicate(timeout=TIMEOUT_S)  # closes it
        assert running.process.returncode == 0


def test_others_may_connect_only_when_allowed():
    done = subprocess.run([OPSTROBE, "serve", "--bind", "0.0.0.0", SAMPLE], capture_output=True, timeout=TIMEOUT_S)
    assert done.returncode == 2 and b"other machines can reach" in done.stderr
    process = subprocess.Popen(
        [OPSTROBE, "serve", "--bind", "0.0.0.0", "--remote", SAMPLE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        port, token = re.search(r":(\d+)/\?token=(\w+)", process.stdout.readline()).groups()
        for host, status in (("10.1.2.3", 200), (socket.gethostname(), 200), ("evil.example", 403)):
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=TIMEOUT_S)
            connection.request("GET", "/api/v1/traces", headers={"Host": host, "Authorization": f"Bearer {token}"})
            assert connection.getresponse().status == status
            connection.close()
    finally:
        process.kill()
        process.communicate()


# --- odd requests -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/app.js/../../etc/passwd",
        "/api/v1/traces/../../../etc/passwd",
        "/api/v1/traces/%00/info",
        "/api/v1/traces/%zz/info",
        "/api/v1/traces/%2",
        "/api/v1/traces/000000000000/info",
        "/api/v1/traces/" + "a" * 5000 + "/info",
        "/api/v1/" + "a/" * 50,
        "/api/v1/traces?" + "&".join(f"p{i}=1" for i in range(100)),
        "/api/v1/traces?x=1",
        "/api/v2/traces",
        "/t/",
        "/?token",
    ],
)
def test_odd_targets(server, target):
    reply = server.get(target)
    assert 400 <= reply.status < 500 and b"root:" not in reply.body
    assert reply.json()["error"]["status"] == reply.status


@pytest.mark.parametrize(
    "query",
    [
        "timeline/tiles",
        "timeline/tiles?tiles=",
        "timeline/tiles?tiles=0",
        "timeline/tiles?tiles=0.8.0",
        "timeline/tiles?tiles=0.64.0",
        "timeline/tiles?tiles=0.9.9223372036854775807",
        "timeline/tiles?tiles=0.9.18446744073709551616",
        "timeline/tiles?tiles=999.20.0",
        "timeline/tiles?tiles=0.20.0.4294967295",
        "timeline/tiles?tiles=" + ",".join(["0.20.0"] * 65),
        "timeline/tiles?tiles=0.20.0,",
        "timeline/tiles?tiles=0.20.0&tiles=0.20.0",
        "timeline/range?from=5&to=1",
        "timeline/range?from=1e9",
        "timeline/range?tracks=999",
        "timeline/range?limit=0",
        "timeline/search?q=a&bins=100000",
        "timeline/events/x",
        "timeline/flows?kinds=x",
        "timeline/flows?row=4294967294",
        "strings?ids=4294967294",
        "strings?ids=" + ",".join(["1"] * 4097),
        "stacks?frames=0",
        "stacks?metric=x",
        "stacks?wrappers=x",
        "analyses/idle_time_breakdown?args=[",
        "analyses/idle_time_breakdown?args=%7B%22no%22%3A1%7D",
        "analyses/idle_time_breakdown?rounding=s",
    ],
)
def test_odd_parameters(server, trace, query):
    reply = server.api(f"traces/{trace}/{query}")
    assert reply.status == 400, reply.body
    assert reply.json()["error"]["message"]


def test_a_trace_is_not_named_again_and_again(server, trace):
    """Each takes as much work as a trace, for a request of thirteen bytes."""
    for route in ("distributed", "advice", "analyses/temporal_breakdown"):
        reply = server.api(f"traces/{','.join([trace] * 1000)}/{route}")
        assert reply.status == 400 and "more than twice" in reply.json()["error"]["message"]


def test_only_get_and_head(server):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "FOO"):
        assert server.get("/api/v1/traces", method=method).status == 405


def raw(server, data, wait=True):
    """Sends bytes as they are; gives the head of what comes back, nothing if the server hangs up before."""
    received = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) as client:
        try:
            client.sendall(data)
            while wait and b"\r\n\r\n" not in received and (piece := client.recv(65536)):
                received += piece
        except ConnectionError:
            pass
    return received


def test_bodies_are_refused(server):
    head = f"GET /api/v1/traces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n".encode()
    for body in (b"Content-Length: 10\r\n\r\n0123456789", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"):
        reply = raw(server, head + body)
        assert reply.startswith(b"HTTP/1.1 413") or reply == b""  # a connection that is reset may lose it


def test_malformed_requests(server):
    for data in (b"\0" * 1000, b"GET\r\n\r\n", b"\r\n" * 1000, os.urandom(4000), b"GET / HTTP/9.9\r\n\r\n", b""):
        raw(server, data, wait=False)
    long = b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert b"200 OK" not in raw(server, long)
    headers = b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n"
    assert b"200 OK" not in raw(server, headers)
    assert server.api("traces").status == 200


def test_hostile_names_stay_text(tmp_path):
    """A trace whose names are scripts, and not even UTF-8, comes out as JSON that holds them as text."""
    names = ["</script><script>alert(1)</script>", "\u2028\u2029", '"};alert(1)//', "\\ud800"]
    events = [
        {"ph": "X", "cat": "cpu_op", "name": n, "pid": 1, "tid": 1, "ts": i * 10, "dur": 5} for i, n in enumerate(names)
    ]
    text = json.dumps({"traceEvents": events, "deviceProperties": []}).encode()
    (tmp_path / "evil<script>.json").write_bytes(text.replace(b"alert(1)//", b"alert(1)//\xff\xfe"))
    with serving(tmp_path / "evil<script>.json") as running:
        (trace,) = running.traces()
        assert trace["name"] == "evil<script>.json"
        reply = running.api(f"traces/{trace['id']}/timeline/search", q="alert")
        assert reply.headers["Content-Type"] == "application/json" and reply.json()["total"] == 2
        shown = [running.json(f"traces/{trace['id']}/timeline/events/{row}")["name"] for row in range(4)]
        assert shown[0] == names[0] and shown[1] == names[1]


# --- many, slow and silent clients ------------------------------------------------------------------------------------


def test_two_hundred_clients_at_once(server, trace):
    """All of them are connected before the first of them asks."""
    targets = ["timeline", "views?parts=steps", "timeline/tiles?tiles=0.20.0", "timeline/search?q=a", "info", "advice"]
    connections = [server.connect() for _ in range(200)]
    for connection in connections:
        connection.connect()

    def ask(number):
        replies = []
        for turn in range(5):
            target = f"/api/v1/traces/{trace}/{targets[(number + turn) % len(targets)]}"
            replies.append(server.get(target, connection=connections[number]).status)
        return replies

    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        assert all(replies == [200] * 5 for replies in pool.map(ask, range(200)))
    for connection in connections:
        connection.close()


def test_clients_that_say_nothing_hold_nobody_up(server, trace):
    silent = [socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT_S) for _ in range(100)]
    for i, client in enumerate(silent):
        client.sendall([b"", b"GET /api/v1/tr", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "][i % 3])
    assert server.api(f"traces/{trace}/timeline").status == 200
    for client in silent:
        client.close()


def test_clients_that_do_not_read_hold_nobody_up(server, trace):
    request = (
        f"GET /api/v1/traces/{trace}/views HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    ).encode()
    lazy = []
    for _ in range(50):
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", server.port))
        client.sendall(request * 20)
        lazy.append(client)
    assert server.api(f"traces/{trace}/timeline").status == 200
    for client in lazy:
        client.close()
    assert server.api(f"traces/{trace}/timeline").status == 200


def descriptors(server):
    return len(list(pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()))


def test_half_closed_connections():
    """Clients that hang up their half and listen on get their answer; those that vanish leave nothing behind."""
    with serving(SAMPLE) as running:
        path = f"/api/v1/traces/{running.traces()[0]['id']}/views"
        assert running.get(path).status == 200
        before = descriptors(running)
        request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {running.token}\r\n"
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", running.port), timeout=TIMEOUT_S) as client:
                client.sendall((request + "Connection: close\r\n\r\n").encode())
                client.shutdown(socket.SHUT_WR)
                reply = b"".join(iter(lambda: client.recv(65536), b""))
            assert reply.startswith(b"HTTP/1.1 200") and reply.endswith(b"}")
        for end in ("", "\r\n", "\r\n\r\n"):
            for _ in range(50):
                client = socket.create_connection(("127.0.0.1", running.port), timeout=TIMEOUT_S)
                reset = struct.pack("ii", 1, 0)  # close() says no farewell
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                client.sendall((request + end).encode())
                client.close()
        wait_for(lambda: descriptors(running) <= before)
        assert running.get(path).status == 200


def resident_kb(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def test_memory_stays_as_it_is(trace, server):
    """A hundred thousand requests on a quiet machine; here OPSTROBE_REQUESTS, or a number that takes seconds."""
    requests = int(os.environ.get("OPSTROBE_REQUESTS", "4000"))
    connection = server.connect()
    targets = [f"timeline/tiles?tiles=0.{level}.0" for level in range(9, 40)]
    targets += [
        "timeline",
        "views",
        "info",
        "timeline/search?q=aten",
        "timeline/events/0",
        "stacks",
        "modules",
        "strings?ids=1",
    ]
    targets += [f"stacks?frames={frames}" for frames in range(1, 300)]  # more than are kept
    wrong = [f"none/{number}" for number in range(40)] + [f"views?parts=no{number}" for number in range(40)]
    wrong += ["timeline/tiles?tiles=0.99.0", "timeline/search?q=", "info?x=1"]
    targets += wrong
    for i in range(requests):
        reply = server.get(f"/api/v1/traces/{trace}/{targets[i % len(targets)]}", connection=connection)
        assert (reply.status == 200) is (targets[i % len(targets)] not in wrong)
        if i % 10 == 0:
            assert server.api("traces").status == 200  # on a new connection
        if i == requests // 4:
            before = resident_kb(server)
    print(f"{before} kB after {requests // 4} requests, {resident_kb(server)} kB after {requests}")
    assert resident_kb(server) - before < 16 * 1024
    connection.close()


# --- beginning and end ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ends_with_requests_under_way(number):
    with serving(SAMPLE) as running:
        trace = running.traces()[0]["id"]
        stop = threading.Event()

        def ask():
            while not stop.is_set():
                try:
                    running.get(f"/api/v1/traces/{trace}/views")
                except (OSError, http.client.HTTPException):
                    return

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        running.api(f"traces/{trace}/timeline")
        code, errors = running.stop(number)
        stop.set()
        for thread in threads:
            thread.join()
        assert code == 0 and "Sanitizer" not in errors, errors


def test_what_cannot_be_served():
    for words, status, text in (
        (["serve", "/no/such/file"], 1, "No such file|no such file"),
        (["serve"], 2, "no trace given"),
        (["serve", "--port", "70000", SAMPLE], 2, "invalid port"),
        (["serve", "--port", "x", SAMPLE], 2, "number"),
        (["serve", "--bind", "localhost", SAMPLE], 2, "numeric"),
    ):
        done = subprocess.run([OPSTROBE, *words], capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == status and re.search(text, done.stderr), (words, done)
    with serving(SAMPLE) as running:
        done = subprocess.run(
            [OPSTROBE, "serve", "--port", str(running.port), SAMPLE], capture_output=True, text=True, timeout=TIMEOUT_S
        )
        assert done.returncode == 1 and "cannot listen" in done.stderr


def wait_for(condition):
    deadline = time.monotonic() + TIMEOUT_S
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def test_a_growing_directory(tmp_path):
    with serving(tmp_path) as running:
        assert running.json("traces")["traces"] == [] and running.json("traces")["watching"]
        first = tmp_path / "host_1.1700000000001.pt.trace.json"
        shutil.copy(SAMPLE, first)
        (trace,) = wait_for(running.traces)
        assert (trace["worker"], trace["span"], trace["run"]) == ("host_1", 1, tmp_path.name)
        assert running.api(f"traces/{trace['id']}/timeline").status == 200
        run = tmp_path / "runs" / "later"
        run.mkdir(parents=True)
        shutil.copy(SAMPLE, run / "host_2.pt.trace.json")
        both = wait_for(lambda: [] if len(running.traces()) < 2 else running.traces())
        assert {t["run"] for t in both} == {tmp_path.name, f"{tmp_path.name}/runs/later"}
        first.unlink()
        (left,) = wait_for(lambda: running.traces() if len(running.traces()) == 1 else [])
        assert left["worker"] == "host_2"
        assert running.api(f"traces/{trace['id']}/timeline").status in (200, 404)


def test_files_that_are_not_traces(tmp_path):
    (tmp_path / "a.pt.trace.json").write_text("no trace")
    (tmp_path / "b.pt.trace.json").write_text("")
    shutil.copy(SAMPLE, tmp_path / "c.pt.trace.json")
    with serving(tmp_path) as running:
        traces = {trace["worker"]: trace["id"] for trace in running.traces()}
        assert running.api(f"traces/{traces['a']}/timeline").status == 422
        assert running.api(f"traces/{traces['b']}/timeline").status == 422
        assert running.api(f"traces/{traces['c']}/timeline").status == 200
        states = {trace["worker"]: trace["state"] for trace in running.traces()}
        assert states == {"a": "failed", "b": "failed", "c": "ready"}
