# SPDX-License-Identifier: Apache-2.0
"""The licences of the viewer's packages require notices, which are in the viewer and in reports."""

import json
import subprocess

import pytest
from conftest import OPSTROBE, ROOT, serving

PACKAGES = json.loads((ROOT / "web" / "package.json").read_text())["dependencies"]


LICENCES = {
    "The MIT License": "The above copyright notice and this permission notice shall be",
    "BSD 3-Clause License": "Redistributions in binary form must reproduce the above copyright notice",
}


def check(text):
    for package in PACKAGES:
        _, found, notice = text.partition(f"\n{package}\n\n")
        assert found, package
        (condition,) = (words for title, words in LICENCES.items() if notice.startswith(title))
        assert condition in notice[:1500], package


def test_notices_are_in_the_viewer_and_in_reports(tmp_path):
    (tmp_path / "a.json").write_text('{"traceEvents": []}')
    with serving(tmp_path / "a.json") as server:
        script = server.get("/app.js")
    if not script.body:
        pytest.skip("this build has no viewer")
    check(script.body.decode())
    subprocess.run([OPSTROBE, "report", "-o", "out.html", "a.json"], cwd=tmp_path, check=True)
    check((tmp_path / "out.html").read_text())
