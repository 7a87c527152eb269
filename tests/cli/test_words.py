# SPDX-License-Identifier: Apache-2.0
"""One thing has one name: what the glossary lists under "not" is not in help texts, declared columns and the terminal interface. The test of the
page is web/tests/unit/words.test.ts."""

import ast
import pathlib
import re
import subprocess

import pytest
from installed import OPSTROBE

ROOT = pathlib.Path(__file__).parents[2]
# Names that are not those of a thing here: of CUDA's structures.
ALLOWED = re.compile(r"multiprocessors?|trace processors?", re.IGNORECASE)


def retired():
    """The second column of the glossary's table of words."""
    table = (ROOT / "docs/reference/glossary.md").read_text().partition("| use | not |\n|---|---|\n")[2]
    rows = [row.strip("|").split(" | ") for row in table.splitlines() if row.startswith("|")]
    return [phrase.strip() for _, phrases in rows for phrase in phrases.split(",")]


def found(text):
    """The retired names in a text; one in lower case is also found at the beginning of a sentence."""
    flat = ALLOWED.sub("", re.sub(r"\s+", " ", text))
    patterns = {name: f"[{name[0]}{name[0].upper()}]{re.escape(name[1:])}s?" for name in retired()}
    return [name for name, pattern in patterns.items() if re.search(rf"(?<!\w){pattern}(?!\w)", flat)]


def help_of(*words):
    return subprocess.run([OPSTROBE, *words, "--help"], capture_output=True, text=True, timeout=120).stdout


def commands_in(text):
    return re.findall(r"^ {2,4}(\w+) +\S", text, re.MULTILINE)


def test_the_glossary_lists_names():
    assert (
        len(retired()) > 20 and "CPU self" in retired() and found("CPU self, 3 processors") == ["CPU self", "processor"]
    )


@pytest.mark.parametrize("command", ["", *commands_in(help_of().partition("commands:")[2].partition("options")[0])])
def test_help_uses_the_words(command):
    text = help_of(*command.split())
    for inner in commands_in(text.partition("  COMMAND\n")[2].partition("options:")[0]):
        text += help_of(command, inner)
    assert text and found(text) == []


def test_columns_use_the_words():
    for line in (ROOT / "docs/reference/tables.md").read_text().splitlines():
        titles = "|".join(line.split("|")[2:]) if line.startswith("|") else line
        assert found(titles) == [], line


@pytest.mark.parametrize("file", sorted((ROOT / "python/opstrobe/tui").glob("*.py")), ids=lambda file: file.name)
def test_the_terminal_interface_uses_the_words(file):
    texts = [
        node.value
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [(text, found(text)) for text in texts if found(text)] == []
