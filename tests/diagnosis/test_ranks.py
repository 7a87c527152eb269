# SPDX-License-Identifier: Apache-2.0
"""The diagnosis suite on two ranks: what they do to each other is found, at its line.

On a machine with other work ranks are late by chance, for some ten milliseconds: what is planted is far above that, and a
healthy run may be told that its ranks waited.
"""

import functools

import pytest
import ranks
import suite

PROGRAMS = {program.name: program for program in ranks.programs()}
PLANTED = [name for name, program in PROGRAMS.items() if not program.healthy]
HEALTHY = [name for name, program in PROGRAMS.items() if program.healthy]
judge = functools.partial(ranks.judge, rounds=3)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_cause_is_named_at_its_line(name):
    verdict = judge(PROGRAMS[name])
    assert verdict.named is not None, [finding["id"] for finding in verdict.findings]
    assert verdict.at_line, (verdict.named["where"], PROGRAMS[name].lines)
    assert 0 < verdict.named["predicted_gain_percent"] <= 100


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_program_has_no_finding_of_severity_high(name):
    findings = judge(PROGRAMS[name]).findings
    assert [f["id"] for f in findings if f["severity"] == "high" and f["id"] != "uneven-ranks"] == []


def test_table_meets_its_goal(capsys):
    score = suite.score(list(PROGRAMS.values()), judge, functools.partial(ranks.measure, rounds=3))
    with capsys.disabled():
        print(f"\n{score.text}")
    assert score.at_line >= 0.9 * score.planted
