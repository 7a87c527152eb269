# SPDX-License-Identifier: Apache-2.0
"""schedule(): the sequences torch documents, and equality with torch's own on arguments drawn at random."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opstrobe

LETTERS = {"NONE": "N", "WARMUP": "W", "RECORD": "R", "RECORD_AND_SAVE": "S"}


def sequence(schedule, steps=range(14)):
    return "".join(LETTERS[schedule(step).name] for step in steps)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (dict(wait=1, warmup=1, active=2), "NWRSNWRSNWRSNW"),
        (dict(wait=1, warmup=1, active=2, repeat=1), "NWRSNNNNNNNNNN"),
        (dict(wait=1, warmup=1, active=2, repeat=2, skip_first=3), "NNNNWRSNWRSNNN"),
        (dict(wait=2, warmup=1, active=1, skip_first=2, skip_first_wait=1), "NNWSNNWSNNWSNN"),
        (dict(wait=2, warmup=1, active=1, skip_first=2, skip_first_wait=1, repeat=2), "NNWSNNWSNNNNNN"),
        (dict(wait=0, warmup=1, active=3, repeat=2), "WRRSWRRSNNNNNN"),
    ],
)
def test_sequences(arguments, expected):
    assert sequence(opstrobe.schedule(**arguments)) == expected


def test_no_warmup_warns_at_the_users_line():
    with pytest.warns(UserWarning, match="warmup") as caught:
        schedule = opstrobe.schedule(wait=0, warmup=0, active=1)
    assert caught[0].filename == __file__
    assert sequence(schedule) == "S" * 14


@pytest.mark.parametrize(
    "wrong", [dict(wait=-1), dict(warmup=-1), dict(active=0), dict(repeat=-1), dict(skip_first=-1)]
)
def test_wrong_arguments(wrong):
    with pytest.raises(AssertionError, match="wait=.*warmup=.*active=.*repeat=.*skip_first="):
        opstrobe.schedule(**{"wait": 1, "warmup": 1, "active": 1, **wrong})


def test_missing_and_positional_arguments():
    with pytest.raises(TypeError):
        opstrobe.schedule(wait=1, warmup=1)
    with pytest.raises(TypeError):
        opstrobe.schedule(1, 1, 1)


def test_negative_step():
    with pytest.raises(AssertionError, match="non-negative"):
        opstrobe.schedule(wait=1, warmup=1, active=1)(-1)


number = st.integers(-1, 6) | st.floats(-1, 6)


@pytest.mark.torch_like("2.13", "2.15")
@given(wait=number, warmup=number, active=number, repeat=number, skip_first=number, skip_first_wait=st.integers(-1, 2))
def test_equal_to_torch(**arguments):
    torch_schedule = pytest.importorskip("torch.profiler").schedule

    def outcome(make):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                steps = sequence(make(**arguments), range(60))
            except AssertionError as error:
                return str(error)
        return steps, [warning.category for warning in caught]

    assert outcome(opstrobe.schedule) == outcome(torch_schedule)
