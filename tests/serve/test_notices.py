# SPDX-License-Identifier: Apache-2.0
"""What the licences of the viewer's packages ask for: their notices are in the viewer and in reports."""

import json
import subprocess

import pytest
from conftest import OPSTROBE, ROOT, serving

PACKAGES = json.loads((ROOT / "web" / "package.json").read_text())["dependencies"]


def check(text):
    for package in PACKAGES:
        assert f"\n{package}\n\nThe MIT License" in text
    assert text.count("The above copyright notice and this permission notice shall be") >= len(PACKAGES)


def test_notices_are_in_the_viewer_and_in_reports(tmp_path):
    (tmp_path / "a.json").write_text('{"traceEvents": []}')
    with serving(tmp_path / "a.json") as server:
        script = server.get("/app.js")
    if not script.body:
        pytest.skip("this build has no viewer")
    check(script.body.decode())
    subprocess.run([OPSTROBE, "report", "-o", "out.html", "a.json"], cwd=tmp_path, check=True)
    check((tmp_path / "out.html").read_text())
