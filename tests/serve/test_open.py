# SPDX-License-Identifier: Apache-2.0
"""Opening the browser: the token is in no command line, but in a page that only the user can read. And what is not opened."""

import os
import pathlib
import re
import stat
import subprocess
import time
import urllib.parse

import pytest
from conftest import OPSTROBE, TIMEOUT_S, serving

import opstrobe

TRACE = '{"traceEvents": []}'


def left_pages(folder):
    """Pages of a server that was killed long ago, and of one whose browser is starting."""
    old, new = folder / "opstrobe-open-aB3456.html", folder / "opstrobe-open-cD3456.html"
    for page in (old, new):
        page.write_text("")
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    return old, new


def test_the_token_is_in_no_command_line(tmp_path):
    (tmp_path / "a.json").write_text(TRACE)
    opened = tmp_path / "opened"
    browser = tmp_path / "xdg-open"
    browser.write_text(f'#!/bin/sh\necho "$@" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(tmp_path)}
    old, new = left_pages(tmp_path)
    with serving("--open", tmp_path / "a.json", env=environment) as server:
        end = time.monotonic() + TIMEOUT_S
        while not opened.exists() and time.monotonic() < end:
            time.sleep(0.01)
        page = pathlib.Path(opened.read_text().strip())
        assert not old.exists() and new.exists()
        assert server.token not in str(page)
        assert stat.S_IMODE(page.stat().st_mode) == 0o600
        assert f"url={server.url}" in page.read_text()
        server.stop()
    assert not page.exists()


def test_python_opens_a_page_too(tmp_path, monkeypatch):
    import webbrowser

    from opstrobe._server import open_privately

    opened = []
    old, new = left_pages(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(webbrowser, "open", opened.append)
    open_privately("http://127.0.0.1:1/?token=secret&a=1")
    page = pathlib.Path(urllib.parse.unquote(re.sub("^file://", "", opened[0])))
    assert "secret" not in opened[0] and stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "url=http://127.0.0.1:1/?token=secret&amp;a=1" in page.read_text()
    assert not old.exists() and new.exists()


def test_a_pipe_is_refused(tmp_path):
    """Who opens one waits for its writer, and Ctrl-C would wait, too."""
    os.mkfifo(tmp_path / "pipe.json")
    message = f"cannot serve '{tmp_path}/pipe.json': not a regular file or directory; write the trace to a file"
    done = subprocess.run(
        [OPSTROBE, "serve", tmp_path / "pipe.json"], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"opstrobe: {message}\n")
    with pytest.raises(ValueError, match="not a regular file"):
        opstrobe.serve(tmp_path / "pipe.json")
