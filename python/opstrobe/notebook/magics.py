# SPDX-License-Identifier: Apache-2.0
"""`%load_ext opstrobe`: profiles of a line or a cell in IPython. The only file that requires IPython for its import."""

from __future__ import annotations

import argparse
import ast
import re
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.display import display

from opstrobe.notebook.markup import Advice, profile_html
from opstrobe.profiler import profile

_FLAGS = ("record_shapes", "profile_memory", "with_modules", "with_flops")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n{self.format_usage()}")


def _make_parser() -> _Parser:
    parser = _Parser(
        prog="%%opstrobe",
        add_help=False,
        description="Records the cell, or the rest of the line, and shows which operators took most. "
        "The profile is kept as _opstrobe, also when the code raises.",
    )
    add = parser.add_argument
    add("-s", "--with-stack", action="store_true", help="record Python calls")
    add("--record-shapes", action="store_true", help="record the inputs of operators")
    add("--profile-memory", action="store_true", help="record who allocates memory")
    add("--with-modules", action="store_true", help="record calls of modules")
    add("--with-flops", action="store_true", help="estimate floating-point operations")
    add("-o", "--output", metavar="FILE", help="write the trace (.json, .json.gz, .pftrace)")
    add("-r", "--rows", type=int, default=15, metavar="N", help="rows of the table")
    add("-a", "--advise", action="store_true", help="say what to change, too")
    add("-v", "--show", action="store_true", help="open the viewer, too")
    add("-q", "--quiet", action="store_true", help="show nothing of it")
    add("-h", "--help", action="store_true", help="print this")
    add("statement", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _parse(parser: _Parser, line: str) -> tuple[argparse.Namespace, str]:
    """Parses the options. Returns them and the unchanged rest of the line."""
    words = list(re.finditer(r"\S+", line))
    options = parser.parse_args([word.group() for word in words])
    rest = len(options.statement)
    return options, line[words[-rest].start() :] if rest else ""


class _Result:
    """The displayed result of a profile: a table, and optionally advice."""

    def __init__(self, recorded: profile, rows: int, advice: Advice | None) -> None:
        self._html = profile_html(recorded, rows) + ("" if advice is None else advice._repr_html_())
        sort_by = "self_cpu_time_total" if recorded.use_device is None else "self_device_time_total"
        self._text = recorded.key_averages(include_python_functions=False).table(sort_by=sort_by, row_limit=rows)
        for finding in [] if advice is None else advice["findings"]:
            self._text += f"\n{finding['title']}: {finding['evidence']}"

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return self._text


class OpstrobeMagic:
    """The magic of one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._parser = _make_parser()

    def __call__(self, line: str, cell: str | None = None) -> Any:
        options, statement = _parse(self._parser, line)
        if options.help:
            print(self._parser.format_help())
            return None
        if cell is not None and statement:
            raise UsageError(f"%%opstrobe: what is {statement!r} behind the options?")
        code = statement if cell is None else cell
        body, last = self._compile(code)
        recorded = profile(with_stack=options.with_stack, **{flag: getattr(options, flag) for flag in _FLAGS})
        self._shell.user_ns["_opstrobe"] = recorded
        with recorded:
            exec(body, self._shell.user_ns)
            value = None if last is None else eval(last, self._shell.user_ns)
        self._report(recorded, options)
        return value

    def _compile(self, code: str) -> tuple[Any, Any]:
        """Compiles the code without its last expression, and separately that expression, whose value is the result of
        the cell."""
        shell = self._shell
        source = shell.transform_cell(code)
        tree = shell.transform_ast(shell.compile.ast_parse(source))
        name = shell.compile.cache(source)
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
            last = compile(ast.Expression(tree.body.pop().value), name, "eval")
        return compile(tree, name, "exec"), last

    def _report(self, recorded: profile, options: argparse.Namespace) -> None:
        if options.output:
            recorded.export_chrome_trace(options.output.strip("'\""))
        if not options.quiet:
            display(_Result(recorded, options.rows, Advice(recorded.advise()) if options.advise else None))
        if options.show:
            recorded.show()


def load(shell: Any) -> None:
    magic = OpstrobeMagic(shell)

    def opstrobe(line: str, cell: str | None = None) -> Any:
        return magic(line, cell)

    opstrobe.__doc__ = magic._parser.format_help()
    shell.register_magic_function(opstrobe, "line_cell", "opstrobe")
