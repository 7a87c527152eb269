# SPDX-License-Identifier: Apache-2.0
"""The diagnosis suite on two ranks: what they do to each other is found, at its line.

On a machine with other work ranks are late by chance, for some ten milliseconds: what is planted is far above that, and the
findings of a healthy run may say that its ranks waited.
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


def high(name, attempt):
    findings = judge(PROGRAMS[name], attempt=attempt).findings
    return [f["id"] for f in findings if f["severity"] == "high" and f["id"] != "uneven-ranks"]


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_program_has_no_finding_of_severity_high(name):
    """The ranks and Gloo's threads share the processors with whatever else runs, and a transfer whose thread does not run takes
    long: one of three recordings is undisturbed. What is wrong with a program is in each of them."""
    found = [high(name, attempt=0)]
    while found[-1] and len(found) < 3:
        found.append(high(name, attempt=len(found)))
    assert [] in found, found


def test_table_meets_its_goal(capsys):
    score = suite.score(list(PROGRAMS.values()), judge, functools.partial(ranks.measure, rounds=3))
    with capsys.disabled():
        print(f"\n{score.text}")
    assert score.at_line >= 0.9 * score.planted
