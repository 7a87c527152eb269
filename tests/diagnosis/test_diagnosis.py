# SPDX-License-Identifier: Apache-2.0
"""The diagnosis suite: each planted cause is found at its line, and healthy programs are left alone.

What is predicted is compared with what the fix gains in the table of docs/diagnosis.md, not here: that depends on the
machine's other work.
"""

import pytest
import suite

PROGRAMS = {program.name: program for program in suite.programs()}
PLANTED = [name for name, program in PROGRAMS.items() if not program.healthy]
HEALTHY = [name for name, program in PROGRAMS.items() if program.healthy]


@pytest.mark.parametrize("name", PLANTED)
def test_planted_cause_is_named_at_its_line(name):
    verdict = suite.judge(PROGRAMS[name])
    found = [finding["id"] for finding in verdict.findings]
    assert verdict.named is not None, found
    assert verdict.at_line, (verdict.named["where"], PROGRAMS[name].lines)
    assert verdict.is_first, found
    assert verdict.named["severity"] != "info"  # how severe is a share of time, which other programs change
    assert verdict.named["predicted_gain_percent"] <= 100


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_program_has_no_finding_of_severity_high(name):
    findings = suite.judge(PROGRAMS[name]).findings
    assert [f["id"] for f in findings if f["severity"] == "high"] == []


def test_fix_takes_the_finding_away():
    program = PROGRAMS["concatenation"]
    found = [finding["id"] for finding in suite.record(program, fixed=True).advise()["findings"]]
    assert not set(found) & set(program.rules)


def test_a_file_read_back_is_advised_the_same(tmp_path):
    import opstrobe

    profile = suite.record(PROGRAMS["concatenation"])
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    assert opstrobe.read(tmp_path / "trace.json").advise() == profile.advise()
