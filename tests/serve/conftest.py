# SPDX-License-Identifier: Apache-2.0
"""Servers of real traces: the `opstrobe serve` next to this Python, queried by the standard library's HTTP client."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import urllib.parse

import pytest

OPSTROBE = pathlib.Path(sys.executable).parent / "opstrobe"
ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("OPSTROBE_TRACES", ROOT.parent / "shared" / "traces"))
TIMEOUT_S = 120  # of what must not hang; nothing depends on how long it takes

# Background jobs of a shell ignore Ctrl-C, and so would all that is started here.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class Server:
    """A running server; `token` goes with every request unless `headers` say otherwise."""

    def __init__(self, process, url):
        self.process = process
        self.url = url
        self.port, self.token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\?token=([0-9a-f]{32})", url).groups()
        self.port = int(self.port)

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)

    def get(self, target, headers=None, method="GET", connection=None):
        headers = {"Authorization": f"Bearer {self.token}"} if headers is None else headers
        own = connection or self.connect()
        try:
            own.request(method, target, headers=headers)
            return Reply(own.getresponse())
        finally:
            if not connection:
                own.close()

    def api(self, path, **parameters):
        query = "?" + urllib.parse.urlencode(parameters) if parameters else ""
        return self.get(f"/api/v1/{path}{query}")

    def json(self, path, **parameters):
        reply = self.api(path, **parameters)
        assert reply.status == 200, reply.body
        return reply.json()

    def traces(self):
        return self.json("traces")["traces"]

    def stop(self, number=signal.SIGINT):
        self.process.send_signal(number)
        output, errors = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, errors


@contextlib.contextmanager
def serving(*words, command=OPSTROBE, **options):
    process = subprocess.Popen(
        [command, "serve", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    try:
        url = process.stdout.readline().strip()
        assert url, process.communicate()[1]
        yield Server(process, url)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    """A folder with a program and its trace, recorded with all there is to record."""
    folder = tmp_path_factory.mktemp("recorded")
    source = folder / "train.py"
    source.write_text(PROGRAM)
    subprocess.run([sys.executable, source.name], cwd=folder, check=True, timeout=TIMEOUT_S)
    return folder


PROGRAM = """
import opstrobe
import torch

model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def step(data):
    loss = model(data).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return [loss.detach(), torch.ones(100)]


with opstrobe.profile(record_shapes=True, profile_memory=True, with_stack=True, with_modules=True) as prof:
    for number in range(3):
        with opstrobe.record_function(f"ProfilerStep#{number}"):
            step(torch.rand(8, 16))
prof.export_chrome_trace("worker0.1700000000000.pt.trace.json")
"""


@pytest.fixture(scope="session")
def server(program):
    """A server of what was recorded, and of the shared traces where there are any."""
    paths = [program, ROOT / "tests" / "fuzz" / "read" / "kineto" / "kineto.json"]
    paths += [
        path for path in (SHARED / "hta" / "h100_bert_small" / "trace.json.gz", SHARED / "kineto-tb") if path.exists()
    ]
    with serving(*paths) as running:
        yield running
        code, errors = running.stop()
        assert code == 0, errors
