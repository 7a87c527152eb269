# SPDX-License-Identifier: Apache-2.0
"""How the command is called in these tests: the one next to this Python, in a separate process."""

import os
import signal
import subprocess

import pytest
from installed import OPSTROBE

# Background jobs of a shell ignore Ctrl-C, and so would all that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--rewrite", action="store_true", help="write what the commands print into the golden files")


@pytest.fixture
def rewrite(request):
    return request.config.getoption("--rewrite")


@pytest.fixture
def environment(monkeypatch):
    """That of a user: nothing set that would change what is printed, and the command found by its name."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("OPSTROBE_", "PYTHON"))}
    variables["PATH"] = f"{OPSTROBE.parent}{os.pathsep}{variables['PATH']}"
    variables["COLUMNS"] = "100"
    variables["PAGER"] = "cat"  # what a terminal shows is not held back
    variables["OPSTROBE_ROOF"] = "0"  # no recording measures this machine for seconds
    return variables


@pytest.fixture
def opstrobe(environment, tmp_path):
    """opstrobe("run", …) in a fresh directory; gives the finished process."""

    def call(*words, **options):
        options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "timeout": 300, **options}
        return subprocess.run([OPSTROBE, *words], **options)

    return call
