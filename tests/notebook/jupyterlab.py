# SPDX-License-Identifier: Apache-2.0
"""A notebook in JupyterLab, in a real browser: `python jupyterlab.py PICTURE.png [THEME]`, where JupyterLab is installed
next to this package. Runs all cells, and fails unless tables, advice and the viewer are there, which follows the theme. By
hand, for JupyterLab takes long to install; test_notebook.py is the part of it that `make test` runs."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import nbformat

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CELLS = [
    """import torch, opstrobe
%load_ext opstrobe

model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train(steps):
    total = 0.0
    for number in range(steps):
        with opstrobe.record_function(f"ProfilerStep#{number}"):
            loss = sum(model(row).square().mean() for row in torch.rand(64, 256))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()""",
    "%%opstrobe --with-stack --record-shapes --rows 6 --advise\ntrain(8)",
    "_opstrobe.show(height=460)",
]


def main(picture, theme="JupyterLab Light"):
    with tempfile.TemporaryDirectory() as folder:
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, pathlib.Path(folder, "profile.ipynb"))
        settings = pathlib.Path(folder, "settings", "@jupyterlab", "apputils-extension")
        settings.mkdir(parents=True)
        settings.joinpath("themes.jupyterlab-settings").write_text(json.dumps({"theme": theme}))
        quiet = settings.joinpath("notification.jupyterlab-settings")
        quiet.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}))
        words = ["--no-browser", "--allow-root", "--ip=127.0.0.1", "--ServerApp.port=0", "--IdentityProvider.token=t"]
        words += ["--expose-app-in-browser"]  # through which the test changes the theme
        environment = {
            **os.environ,
            "JUPYTERLAB_SETTINGS_DIR": f"{folder}/settings",
            "JUPYTER_RUNTIME_DIR": f"{folder}/run",
        }
        lab = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not (found := list(pathlib.Path(folder, "run").glob("jpserver-*.json"))):
                assert lab.poll() is None, "JupyterLab does not start"
                time.sleep(0.2)
            url = json.loads(found[0].read_text())["url"].replace("127.0.0.1", "localhost")
            subprocess.run(
                ["node", HERE / "jupyterlab.mjs", f"{url}lab/tree/profile.ipynb?token=t", picture], check=True
            )
        finally:
            lab.send_signal(signal.SIGTERM)
            lab.wait()


main(*sys.argv[1:])
