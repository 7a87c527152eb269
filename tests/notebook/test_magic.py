# SPDX-License-Identifier: Apache-2.0
"""`%opstrobe` and `%%opstrobe` in a shell of IPython as it is at a terminal."""

import gzip
import json

import pytest
import torch  # noqa: F401  (imported before anything is recorded, as its warning says)
from IPython.core.interactiveshell import InteractiveShell

import opstrobe


@pytest.fixture
def shell(tmp_path):
    shell = InteractiveShell(user_ns={"torch": torch, "opstrobe": opstrobe})
    shell.extension_manager.load_extension("opstrobe")
    return shell


def run(shell, code):
    result = shell.run_cell(code, store_history=True)
    assert result.error_before_exec is None
    return result


def names(shell):
    return {event.name for event in shell.user_ns["_opstrobe"].events()}


def test_a_cell_is_recorded_and_shown(shell, capsys):
    result = run(shell, "%%opstrobe --rows 3\nx = torch.ones(3)\ny = x + x\ny.sum().item()")
    assert result.result == 6.0 and shell.user_ns["y"].tolist() == [2.0] * 3
    assert {"aten::ones", "aten::add", "aten::sum"} <= names(shell)
    assert "# of Calls" in capsys.readouterr().out


def test_a_line_is_recorded_as_it_stands(shell, capsys):
    run(shell, "%opstrobe -q text = 'a  -s \"b'; z = torch.ones(2)")
    assert shell.user_ns["text"] == 'a  -s "b'
    assert "aten::ones" in names(shell) and capsys.readouterr().out == ""
    assert run(shell, "%opstrobe -q 6 * 7").result == 42
    assert run(shell, "%opstrobe -q 6 * 7;").result is None


def test_options_are_those_of_the_profile(shell):
    run(
        shell,
        "%%opstrobe -q -s --record-shapes --profile-memory --with-modules --with-flops\ntorch.nn.Linear(2, 2)(torch.ones(1, 2))",
    )
    prof = shell.user_ns["_opstrobe"]
    flags = ("with_stack", "record_shapes", "profile_memory", "with_modules", "with_flops")
    assert all(getattr(prof, flag) for flag in flags)
    assert prof.module_summary().rows()
    run(shell, "%opstrobe -q torch.ones(1)")
    assert not any(getattr(shell.user_ns["_opstrobe"], flag) for flag in flags)


def test_the_trace_is_written(shell, tmp_path):
    run(shell, f"%%opstrobe -q -o '{tmp_path}/trace.json.gz'\ntorch.ones(2)")
    events = json.loads(gzip.decompress((tmp_path / "trace.json.gz").read_bytes()))["traceEvents"]
    assert any(event["name"] == "aten::ones" for event in events)


def test_advice_is_shown(shell, capsys):
    steps = "for n in range(4):\n  with opstrobe.record_function(f'ProfilerStep#{n}'):\n    torch.ones(3).sum().item()"
    run(shell, f"%%opstrobe --advise\n{steps}")
    said = capsys.readouterr().out
    assert "# of Calls" in said
    for finding in shell.user_ns["_opstrobe"].advise()["findings"]:  # what there is depends on how fast it ran
        assert finding["title"] in said and finding["evidence"] in said


def test_an_exception_is_the_cells_and_the_profile_is_kept(shell):
    result = run(shell, "%%opstrobe\ntorch.ones(2)\nraise KeyError('mine')")
    assert isinstance(result.error_in_exec, KeyError)
    assert "aten::ones" in names(shell)
    run(shell, "%opstrobe -q torch.zeros(1)")
    assert "aten::zeros" in names(shell) and "aten::ones" not in names(shell)


def test_code_that_is_none_records_nothing(shell):
    before = shell.user_ns.get("_opstrobe")
    assert isinstance(run(shell, "%%opstrobe\nx = = 1").error_in_exec, SyntaxError)
    assert shell.user_ns.get("_opstrobe") is before


def test_what_is_no_option_is_refused(shell, capsys):
    for line in ("%opstrobe --nope x", "%%opstrobe -s x\n1", "%opstrobe --rows many x"):
        result = shell.run_cell(line)
        assert type(result.error_in_exec or result.error_before_exec).__name__ == "UsageError", line
    capsys.readouterr()
    run(shell, "%opstrobe -h")
    assert "--profile-memory" in capsys.readouterr().out


def test_magics_of_the_shell_work_inside(shell):
    run(shell, "%%opstrobe -q\n%env OPSTROBE_MAGIC_TEST=7\nimport os\nvalue = os.environ.pop('OPSTROBE_MAGIC_TEST')")
    assert shell.user_ns["value"] == "7"
