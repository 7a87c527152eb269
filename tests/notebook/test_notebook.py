# SPDX-License-Identifier: Apache-2.0
"""A notebook in a separate kernel, and what its cells show in a browser. `jupyterlab.py` does the same in JupyterLab, by
hand: to install it takes longer than all of this."""

import contextlib
import http.server
import json
import pathlib
import subprocess
import threading

import nbformat
import pytest
from nbclient import NotebookClient

import opstrobe

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT_S = 300  # of what must not hang
TRAIN = HERE.parents[1] / "web" / "tests" / "traces" / "train.pt.trace.json.gz"

CELLS = [
    """import opstrobe, torch
model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
def steps():
    for number in range(4):
        with opstrobe.record_function(f"ProfilerStep#{number}"), opstrobe.record_function(NAME):
            model(torch.rand(8, 16)).sum().item()
NAME = "</iframe></script><script>alert(1)</script><img src=x onerror=alert(2)>"
""",
    f"TRAIN = {str(TRAIN)!r}\n%load_ext opstrobe",
    "%%opstrobe -s --record-shapes --advise\nsteps()",
    "_opstrobe.show(height=500)",
    "_opstrobe.show(height=500, inline=True)",
    "_opstrobe.key_averages()",
    "_opstrobe",
    "opstrobe.read(TRAIN).advise()",
]


@contextlib.contextmanager
def page_of(outputs):
    """The address of a page with outputs, in another origin than the viewer, as notebooks are."""
    page = "".join(output["data"]["text/html"] for output in outputs)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(f"<!doctype html><meta charset=utf-8><link rel=icon href=data:><body>{page}".encode())

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def looked(tmp_path_factory):
    """The notebook's outputs, and what a browser made of them while the kernel was there."""
    folder = tmp_path_factory.mktemp("notebook")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = NotebookClient(
        notebook, timeout=TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    with client.setup_kernel():
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
        outputs = [output for cell in notebook.cells for output in cell.outputs]
        with page_of(output for output in outputs if "data" in output) as url:
            done = subprocess.run(["node", HERE / "look.mjs", url], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0, done.stderr
    return outputs, json.loads(done.stdout)


def test_cells_show_tables_and_advice(looked):
    outputs, seen = looked
    assert [output["output_type"] for output in outputs] == ["display_data"] * 3 + ["execute_result"] * 3
    assert seen["text"].count("Self CPU time total") == 3
    for finding in opstrobe.read(TRAIN).advise()["findings"]:
        assert finding["title"] in seen["text"] and finding["evidence"] in seen["text"]
    assert seen["bars"] >= 30
    assert "# of Calls" in outputs[0]["data"]["text/plain"], "for who has no browser"


def test_the_viewer_is_in_the_cell(looked):
    """Filled by the kernel's server, and as a separate page: both can be used, and show the same."""
    _, seen = looked
    served, inline = seen["frames"]
    assert served["hash"].startswith("#/operators/") and served == inline
    assert "aten::addmm" in served["operators"]


def test_nothing_goes_wrong_in_any_theme(looked):
    """`look.mjs` gives the page the marks of notebooks' themes, which both viewers follow."""
    assert looked[1]["wrong"] == []


def test_no_name_runs_and_nothing_is_fetched(looked):
    _, seen = looked
    assert "<script>alert(1)</script>" in seen["text"], "it is there, as text"
    assert seen["wrong"] == [] and seen["abroad"] == []
