# SPDX-License-Identifier: Apache-2.0
"""The gains of all findings about a trace, and the time that none explains, take no longer than the step: by the shared traces next to
the repository."""

import json
import os
import pathlib
import subprocess

import pytest
from installed import OPSTROBE

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(os.environ.get("OPSTROBE_TRACES", ROOT.parent / "shared" / "traces"))
SHARED = sorted([*FOLDER.glob("**/*.json.gz"), *FOLDER.parent.glob("repro/*.json")])

ROUNDING = 0.5


@pytest.mark.parametrize("path", SHARED, ids=lambda path: str(path.relative_to(FOLDER.parent)))
def test_no_time_counts_twice(path):
    printed = subprocess.run([OPSTROBE, "advise", "--format", "json", path], capture_output=True, text=True)
    if printed.returncode:
        pytest.skip(printed.stderr.strip())
    reply = json.loads(printed.stdout)
    gains = [(finding["id"], finding["predicted_gain_percent"]) for finding in reply["findings"]]
    rest = reply["not_explained"]["percent"] if reply["not_explained"] else 0
    assert sum(gain for _, gain in gains) + rest <= 100 + ROUNDING, gains
