# SPDX-License-Identifier: Apache-2.0
"""Reads the pages of `opstrobe TRACE` and `opstrobe report --format markdown` as a reader does: titles, tables, figures."""

import dataclasses
import decimal
import re

DURATION = r"(?:0|[\d.e+]+ (?:ns|µs|ms|s))"
UNITS = {"": 1, "%": 1, "ns": 1e-3, "µs": 1, "ms": 1e3, "s": 1e6, "B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
SHARE = r"(<?[\d.]+) %"
SPEED = r"(?:-|[\d,.]+(?: [KMGTP])?)"
LIST_ROW = re.compile(rf"^(\S.*?)? +([\d,]+) +({DURATION})((?: +{DURATION})*)(?: +{SPEED})? +{SHARE}")
PART_ROW = re.compile(rf"^(\S.*?) +({DURATION}) +{SHARE}((?: +{DURATION})?)")
FIGURE = re.compile(rf"^(?:{DURATION}|<?[\d,.]+(?: %)?|)$")


@dataclasses.dataclass
class Row:
    name: str
    figures: list[str]  # without the bar


@dataclasses.dataclass
class Section:
    title: str
    text: str
    rows: list[Row]


def shows(text, figure):
    """Whether a text is this figure (microseconds, bytes, percent, a count), as exactly as its digits allow."""
    number, _, unit = text.replace(",", "").partition(" ")
    if number.startswith("<"):
        return 0 < figure < float(number[1:])
    exponent = decimal.Decimal(number).as_tuple().exponent
    return (
        abs(float(number) * UNITS[unit] - figure) <= (0.5 * 10.0**exponent + 1e-9) * UNITS[unit] + abs(figure) * 1e-12
    )


def names(shown, name):
    """Whether a name is shown, of which the middle may be left out."""
    if "\\x" in name:
        return True  # not UTF-8: JSON writes its bytes
    first, *rest = shown.split("…")
    return name.startswith(first) and name.endswith(rest[-1]) if rest else shown == name


def text_row(line):
    if found := LIST_ROW.match(line):
        name, calls, time, more, share = found.groups()
        return Row(name or "", [calls, time, *re.findall(DURATION, more), f"{share} %"])
    if found := PART_ROW.match(line):
        name, time, share, more = found.groups()
        return Row(name, [time, f"{share} %", *re.findall(DURATION, more)])
    return None


def text_sections(text):
    for block in re.split(r"\n\n", text):
        lines = block.split("\n")
        title = re.split(r"  +", lines[0])[0]
        yield Section(title, block, [row for line in lines[1:] if (row := text_row(line))])


def markdown_row(line):
    name, *cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    figures = [cell.replace("\\", "") for cell in cells if cell and FIGURE.match(cell)]
    code = re.match(r"^(`+)(.*)\1$", name)
    name = code[2].strip() if code and code[2].strip() else name
    return Row(name, figures)


def markdown_sections(text):
    for block in re.split(r"^### ", text.split("\n## Advice")[0], flags=re.MULTILINE):
        title, _, rest = block.partition("\n")
        rows = [
            line
            for line in rest.split("\n")
            if line.startswith("| ") and "---" not in line and not line.startswith("|  |")
        ]
        yield Section(title, block, [markdown_row(line) for line in rows])


def section(sections, *titles):
    return next((each for each in sections if each.title.startswith(titles)), Section("", "", []))
