# SPDX-License-Identifier: Apache-2.0
"""Parsing of command-line arguments."""

from __future__ import annotations

import argparse
import re
import shutil
import sys

from opstrobe._plain import print_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any, NoReturn

_WIDTH = 88  # at most, as in the help of the commands in C
# What argparse says, and how the commands in C say it.
_MESSAGES = (
    (r"argument (?:\S+/)?--(\S+): invalid choice: '(.*?)' \(choose from (.*)\)", r"invalid \1 '\2' (choose from \3)"),
    (r"argument (?:\S+/)?(--\S+): expected .*", r"option '\1' requires a value"),
    (r"argument (?:\S+/)?(--\S+): invalid int value: ('.*')", r"option '\1': \2 is not a whole number"),
    (r"argument (?:\S+/)?(--\S+): (.*)", r"option '\1': \2"),
    (r"the following arguments are required: (.*)", r"no \1 given"),
)
_MISSING = re.compile("the following arguments are required:|one of the arguments .* is required")


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(_WIDTH, shutil.get_terminal_size().columns))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fills paragraphs. Those with indented lines, such as examples, are kept."""
        parts = text.split("\n\n")
        return "\n\n".join(
            part if "\n  " in part else super(_Formatter, self)._fill_text(part, width, indent) for part in parts
        )


class CommandParser(argparse.ArgumentParser):
    """Reports errors as the commands in C do. Options cannot be abbreviated, since a later option would make abbreviations
    ambiguous."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**(given | {"formatter_class": _Formatter, "allow_abbrev": False}))
        self._words: list[str] = []

    def error(self, message: str) -> NoReturn:
        unknown = self._unknown_option() if _MISSING.match(message) else None
        if unknown is not None:  # without it, more words might be there
            self._fail_unknown(unknown)
        command = re.match("argument COMMAND: invalid choice: '(.*?)'", message)
        if command is not None:
            self._fail_with_nearest(f"'{command[1]}' is not a command", command[1], self._commands())
        for pattern, replacement in _MESSAGES:
            message, count = re.subn(pattern, replacement, message)
            if count:
                break
        if "(choose from " in message:
            begin, choices = message.split("(choose from ", 1)
            message = f"{begin}(choose from {choices.replace(chr(39), '')}"
        else:
            message += f"; see '{self.prog} --help'"
        self._fail(message)

    def _fail(self, message: str) -> NoReturn:
        print_message(self.prog, message)
        self.exit(2)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def _unknown_option(self) -> str | None:
        """The first word that looks like an option and is none. argparse reports missing words before it looks at these."""
        known = self._options()
        for word in self._words:
            name = word.partition("=")[0]
            if word == "--":
                return None
            if re.match("-[^0-9.]", word) and name not in known and word[:2] not in known:
                return name
        return None

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, rest = self.parse_known_args(args, namespace)
        if rest:
            self._fail_unknown(rest[0].partition("=")[0])
        return options

    def _fail_unknown(self, word: str) -> NoReturn:
        if not word.startswith("-"):
            self.error(f"unexpected argument '{word}'")
        self._fail_with_nearest(f"unknown option '{word}'", word, self._options())

    def _fail_with_nearest(self, what: str, word: str, known: Collection[str]) -> NoReturn:
        from difflib import get_close_matches

        near = get_close_matches(word, known, 1)
        self._fail(f"{what}; " + (f"did you mean '{near[0]}'?" if near else f"'{self.prog} --help' lists them"))

    def _commands(self) -> dict[str, CommandParser]:
        """The parsers of the command's own commands, by name: `add` of `archive`."""
        found: dict[str, CommandParser] = {}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                found |= action.choices
        return found

    def _options(self) -> list[str]:
        """The options of the command and of its commands."""
        found = list(self._option_string_actions)
        for parser in self._commands().values():
            found += parser._options()
        return found


def command_parser(command: str, description: str, examples: Sequence[str], usage: str | None = None) -> CommandParser:
    """Creates a parser. `examples` are what follows "opstrobe"; `usage` replaces argparse's usage line."""
    return CommandParser(
        prog=f"opstrobe {command}", usage=usage, description=description, epilog=examples_text(examples)
    )


def examples_text(examples: Sequence[str]) -> str:
    """The end of a command's help."""
    return "".join(
        (f"example{'s' if len(examples) > 1 else ''}:", *(f"\n  opstrobe {example}" for example in examples))
    )


def split_program(words: Sequence[str], value_options: Collection[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Splits our options from the program with its arguments, which may look like our options. `value_options` take a
    value."""
    i = 0
    while i < len(words) and words[i].startswith("-") and words[i][:2] not in ("-m", "-c"):
        if words[i] == "--":
            return words[:i], words[i + 1 :]
        i += 2 if words[i] in value_options else 1
    return words[:i], words[i:]


def reason_of(error: BaseException) -> str:
    """What failed and why, for a message."""
    if isinstance(error, OSError) and error.filename:
        return f"cannot open '{error.filename}': {str(error.strerror).lower()}"
    return str(error)
