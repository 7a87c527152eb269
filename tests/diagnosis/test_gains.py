# SPDX-License-Identifier: Apache-2.0
"""The measured gains that the manual has are those of `first_sight/truth.toml`."""

import pathlib
import re

import first_sight
import tomllib

MANUAL = pathlib.Path(__file__).parents[2] / "docs" / "diagnosis.md"


def measured_of_manual():
    """Yields programs with the measured gains of all tables."""
    columns = None
    for line in MANUAL.read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]] if line.startswith("|") else None
        if columns and cells:
            yield from (
                (cells[0], int(figure[0]))
                for column, cell in zip(columns, cells, strict=False)
                if column.startswith("measured") and (figure := re.match(r"\d+", cell))
            )
        else:
            columns = cells


def test_manual_has_the_measured_gains_of_the_programs():
    truth = tomllib.loads((first_sight.FOLDER / "truth.toml").read_text())
    measured = [(program, percent) for program, percent in measured_of_manual() if program in truth]
    assert {program for program, _ in measured} == {p for p, entry in truth.items() if "measured_percent" in entry}
    for program, percent in measured:
        assert truth[program]["measured_percent"] == percent, program


def test_all_fixes_are_measured():
    truth = tomllib.loads((first_sight.FOLDER / "truth.toml").read_text())
    assert [p for p, entry in truth.items() if "fix" in entry and "measured_percent" not in entry] == []
