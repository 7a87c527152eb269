# SPDX-License-Identifier: Apache-2.0
"""Each golden/NAME.sh is run; what it prints, and its exit status, must be what golden/NAME.expected says.

`{{…}}` in an expected line stands for a regular expression, and a line `...` for any lines. After a change that is
meant, `pytest tests/cli --rewrite` writes the files anew; lines whose pattern still matches stay as they are.
"""

import difflib
import pathlib
import re
import subprocess

import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden"
SCRIPTS = sorted(GOLDEN.glob("*.sh"))


def pattern(line):
    parts = re.split(r"\{\{(.*?)\}\}", line)
    return "".join(f"(?:{part})" if i % 2 else re.escape(part) for i, part in enumerate(parts))


def whole_pattern(expected):
    return "".join(r"(?:.*\n)*?" if line == "..." else pattern(line) + r"\n" for line in expected)


def run(script, directory, environment):
    process = subprocess.run(
        ["bash", script],
        cwd=directory,
        env={**environment, "GOLDEN": str(GOLDEN)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return [*process.stdout.splitlines(), f"[exit status {process.returncode}]"]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_golden(script, tmp_path, environment, rewrite):
    file = script.with_suffix(".expected")
    expected = file.read_text().splitlines() if file.exists() else []
    printed = run(script, tmp_path, environment)
    if rewrite:
        patterns = [line for line in expected if "{{" in line]
        kept = [next((line for line in patterns if re.fullmatch(pattern(line), seen)), seen) for seen in printed]
        if not re.fullmatch(whole_pattern(expected), "\n".join(printed) + "\n"):
            file.write_text("\n".join(kept) + "\n")
    elif not re.fullmatch(whole_pattern(expected), "\n".join(printed) + "\n"):
        pytest.fail("\n".join(difflib.unified_diff(expected, printed, "expected", "printed", lineterm="")))


def test_there_are_golden_tests():
    assert SCRIPTS
    assert {file.stem for file in GOLDEN.glob("*.expected")} == {script.stem for script in SCRIPTS}
