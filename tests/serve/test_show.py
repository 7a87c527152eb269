# SPDX-License-Identifier: Apache-2.0
"""`opstrobe.show` in programs at a terminal; notebooks have separate tests."""

import json
import os
import pty
import re
import subprocess
import sys
import textwrap
import urllib.request

import pytest
from conftest import ROOT, TIMEOUT_S

import opstrobe

SAMPLE = ROOT / "tests" / "fuzz" / "read" / "kineto" / "kineto.json"
URL = re.compile(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})#/overview/([0-9a-f]{12})")


def environment(**changes):
    hidden = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    return {**{name: value for name, value in os.environ.items() if name not in hidden}, **changes}


def run(code, **changes):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), SAMPLE],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_trace_of_a_profile_is_there_until_the_program_ends(tmp_path):
    said = run(
        """
        import json, os, re, sys, tempfile, urllib.request
        import opstrobe
        with opstrobe.profile() as prof, opstrobe.record_function("mine"):
            pass
        prof.show()
        prof.show()
        with opstrobe.profile() as later, opstrobe.record_function("later"):
            pass
        later.show()
        (folder,) = os.listdir(tempfile.gettempdir())
        print(sorted(os.listdir(os.path.join(tempfile.gettempdir(), folder))))
        """,
        TMPDIR=str(tmp_path),
    )
    first, again, later, files = said.splitlines()
    assert URL.fullmatch(first) and first == again
    assert URL.fullmatch(later)[3] != URL.fullmatch(first)[3]
    assert URL.fullmatch(later)[1] == URL.fullmatch(first)[1], "one server shows all profiles"
    assert files == "['profile1.pt.trace.json', 'profile2.pt.trace.json']"
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_shown(tmp_path, capsys, monkeypatch):
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    opstrobe.show(SAMPLE)
    opstrobe.read(SAMPLE).show()
    first, again = capsys.readouterr().out.splitlines()
    assert first == again
    port, token, trace = URL.fullmatch(first).groups()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/traces/{trace}/info", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
        assert json.load(reply)
    opstrobe.show(SAMPLE.parent)
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32}\n", capsys.readouterr().out)


def test_what_cannot_be_shown(tmp_path):
    with pytest.raises(FileNotFoundError):
        opstrobe.show(tmp_path / "absent.json")
    with pytest.raises(AssertionError, match="has recorded nothing"):
        opstrobe.profile().show()
    with opstrobe.profile() as prof, pytest.raises(RuntimeError, match="still recording"):
        prof.show()


def test_a_forked_process_shows_its_own_and_removes_nothing(tmp_path):
    said = run(
        """
        import os, sys
        import opstrobe
        with opstrobe.profile() as prof, opstrobe.record_function("mine"):
            pass
        prof.show()
        sys.stdout.flush()
        child = os.fork()
        if not child:
            prof.show()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        prof.show()
        """,
        TMPDIR=str(tmp_path),
    )
    first, child, again = said.splitlines()
    assert first == again
    assert URL.fullmatch(child)[2] != URL.fullmatch(first)[2]
    assert list(tmp_path.iterdir()) == []


def test_a_script_at_a_terminal_waits_for_ctrl_c():
    controller, terminal = pty.openpty()
    code = "import opstrobe, sys; opstrobe.show(sys.argv[1]); print('goes on')"
    process = subprocess.Popen(
        [sys.executable, "-c", code, SAMPLE],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.STDOUT,
        env=environment(),
        start_new_session=True,
        preexec_fn=lambda: __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0),
    )
    os.close(terminal)
    said = b""
    while b"Ctrl-C goes on" not in said:
        said += os.read(controller, 4096)
    assert URL.search(said.decode()) and b"goes on\r\n" not in said
    os.write(controller, b"\x03")
    while b"goes on\r\n" not in said:
        said += os.read(controller, 4096)
    assert process.wait(TIMEOUT_S) == 0
    os.close(controller)
