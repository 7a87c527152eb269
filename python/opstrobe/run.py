# SPDX-License-Identifier: Apache-2.0
"""`opstrobe run`: runs a Python program and records a trace of it."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from opstrobe._command_parser import command_parser, split_program
from opstrobe._plain import print_message
from opstrobe.compat.patch import patch_at_import
from opstrobe.launcher.output import Output
from opstrobe.launcher.program import Program, UsageError
from opstrobe.launcher.recorder import CannotRecord, RunRecorder
from opstrobe.recording import provenance
from opstrobe.recording.stack import StackOptions, parse_sample_ms

_VALUE_OPTIONS = {
    "-o",
    "--output",
    "--steps",
    "--max-bytes",
    "--spill",
    "--budget",
    "--sample-ms",
    "--live-socket",
    "--archive",
    "--job",
}
_LIBRARY_MIN_DURATION_US = 2  # nine in ten calls within libraries take less, and their time counts for their callers
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}

_DESCRIPTION = """\
Runs a Python program and records a trace of it. Everything after the program's name belongs to the program, which may be an
installed command in Python, such as torchrun.

Recording begins when the program imports torch and covers all its threads. Processes that it starts with multiprocessing, such as
workers of a data loader, are part of the trace; ranks of a job, and processes with steps, get separate traces. The trace is
written when the program ends: by itself, by an exception, by sys.exit, by SIGINT, SIGTERM or SIGHUP; not when
it ends by os._exit or by a signal that cannot be caught. With --spill, 'opstrobe recover' makes a trace of what such a
program had recorded. The program's exit status is kept."""
_EXAMPLES = (
    "run --open train.py --epochs 1",
    "run --advise -o traces/ -m package.train",
    "run --steps 10:15 --record-shapes --memory --with-stack train.py",
    "run --black-box serve.py",
    "run -o traces/ torchrun --nproc-per-node 2 train.py",
)


def _parser() -> argparse.ArgumentParser:
    parser = command_parser(
        "run",
        _DESCRIPTION,
        _EXAMPLES,
        "opstrobe run [options] <script.py | -m module | -c code> [arguments of the program]",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the trace to FILE, compressed if it ends in .gz; in a directory it is named after the program, "
        "train.pt.trace.json.gz, or train.2.pt.trace.json.gz if that exists (default: OPSTROBE_OUTPUT, or the current directory). A directory "
        "that does not exist is made; a name that ends in / is one",
    )
    parser.add_argument("-f", "--force", action="store_true", help="overwrite the file if it exists")
    parser.add_argument("--open", action="store_true", help="show the trace in the browser when the program has ended")
    parser.add_argument(
        "--advise",
        action="store_true",
        help="record all that 'opstrobe advise' uses (--record-shapes, --memory, --with-stack, calls of modules, garbage collections) "
        "and print its findings. Without --steps, recording ends after 20 steps and a minute, while the program goes on",
    )
    parser.add_argument(
        "--steps",
        metavar="N|FIRST:END",
        type=_parse_steps,
        help="record only the first N steps, or the steps FIRST to END - 1, counted from 0, and write the trace right "
        "after them; a step ends with each step() of the optimizer that steps first, or is a batch",
    )
    parser.add_argument(
        "--record-shapes",
        action="store_true",
        help="record the inputs of operators: shapes, types. The first time on a machine, a few seconds after the recording measure "
        "what it can compute and move, as 'opstrobe roof' does (OPSTROBE_ROOF=0: never)",
    )
    parser.add_argument("--memory", action="store_true", help="record allocations")
    parser.add_argument(
        "--with-stack",
        metavar="all|none",
        nargs="?",
        choices=("most", "all", "none"),
        const="most",
        help="record the calls of Python functions, instead of the lines that call operators and samples of the stacks. An import is one "
        f"event, and calls between functions of libraries that take less than {_LIBRARY_MIN_DURATION_US} µs and record nothing else are left "
        "out; --with-stack=all records these, too, and --with-stack=none neither calls nor lines nor samples nor modules",
    )
    parser.add_argument(
        "--with-imports",
        action="store_true",
        help="with --with-stack, record the calls inside the import of a module, too",
    )
    parser.add_argument("--flops", action="store_true", help="estimate floating-point operations; records shapes too")
    parser.add_argument(
        "--max-bytes",
        metavar="SIZE",
        type=_parse_size,
        help="limit the memory that the recording takes while the program runs; events beyond it are counted as lost "
        "(default: a quarter of the memory of the machine or control group). SIZE may end in K, M or G",
    )
    parser.add_argument(
        "--one-process",
        action="store_true",
        help="do not record the processes that the program starts",
    )
    parser.add_argument(
        "--spill",
        metavar="DIR",
        help="keep the recording in a file in DIR while the program runs, so that 'opstrobe recover DIR' makes a trace of it if "
        "the program is killed; a DIR in /dev/shm costs least. The file is removed when the trace is written",
    )
    parser.add_argument(
        "--black-box",
        metavar="SECONDS",
        nargs="?",
        type=_parse_black_box,
        const=60.0,
        help="record all the time, keep the last SECONDS (default 60; --black-box=SECONDS) in --max-bytes (default 256M), and write no "
        "trace at the end: 'opstrobe dump' writes one while the program runs, 'opstrobe recover' if it is killed. Programs that "
        "this one starts are recorded, too (as OPSTROBE_BLACK_BOX=1 does); of the other options only --max-bytes, --spill, --budget and "
        "--sample-ms go with it",
    )
    parser.add_argument(
        "--budget",
        metavar="SHARE",
        type=_parse_budget,
        help="with --black-box, what recording may add to a step (default 1%%); beyond it, operators are left out. 0: no limit",
    )
    parser.add_argument(
        "--sample-ms",
        metavar="MS",
        type=_parse_sample_ms,
        help="with --black-box, sample the Python stacks of all threads every MS milliseconds (default 20; 0: never)",
    )
    parser.add_argument(
        "--table",
        metavar="N",
        nargs="?",
        type=_parse_rows,
        const=20,
        help="print the N operators with the largest self time (default 20; --table=N) to standard error",
    )
    parser.add_argument(
        "--with-modules",
        metavar="DEPTH",
        nargs="?",
        type=_parse_depth,
        const=0,
        help="record the calls of nn.Module and print the time of each module, down to DEPTH levels (default: all; "
        "--with-modules=DEPTH), to standard error",
    )
    parser.add_argument(
        "--live",
        metavar="SECONDS",
        nargs="?",
        type=_parse_seconds,
        const=0.0,
        help="show the operators with most time, the duration of steps and the live memory on standard error while the program "
        "runs: every second in the last lines of a terminal, or one line every 5 s elsewhere (--live=SECONDS)",
    )
    parser.add_argument(
        "--archive",
        metavar="LOCATION",
        help="add the trace to the archive LOCATION, a directory or a URL; see 'opstrobe archive'",
    )
    parser.add_argument(
        "--job", metavar="NAME", default="default", help="job of the trace in the archive (default: default)"
    )
    # For `opstrobe tui --live`: a socket that receives the figures of --live as JSON.
    parser.add_argument("--live-socket", type=int, help=argparse.SUPPRESS)
    parser.add_argument(
        "--patch",
        action="store_true",
        help="record nothing by itself: let what the program does with torch.profiler be done by opstrobe, in this "
        "process and in those that it starts (as OPSTROBE_PATCH=1 does); no other option goes with it",
    )
    return parser


def _stack_options(options: argparse.Namespace) -> StackOptions | bool:
    if options.with_stack == "none":
        if options.with_imports or options.advise:
            raise UsageError(f"--with-stack=none does not go with --{'advise' if options.advise else 'with-imports'}")
        return False
    if options.with_stack == "all":
        return True
    if not (options.with_stack or options.with_imports or options.advise):
        return StackOptions(calls=False)
    return StackOptions(imports=options.with_imports, library_min_duration_us=_LIBRARY_MIN_DURATION_US)


def _parse_steps(text: str) -> range:
    first, colon, end = text.partition(":")
    try:
        steps = range(int(first or 0), int(end)) if colon else range(int(first))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is neither a number nor FIRST:END") from None
    if steps.start < 0 or not steps:
        raise argparse.ArgumentTypeError(f"'{text}' contains no step")
    return steps


def _parse_size(text: str) -> int:
    unit = _UNITS.get(text[-1:].upper(), 1)
    try:
        size = int(float(text[: len(text) - (unit > 1)]) * unit)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{text}' is not a size, such as 512M or 2G") from None
    if not 65536 <= size < 2**63:
        raise argparse.ArgumentTypeError(f"'{text}' is not a size of at least 64K")
    return size


def _parse_rows(text: str) -> int:
    try:
        rows = int(text)
    except ValueError:
        rows = 0
    if rows < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of rows")
    return rows


def _parse_depth(text: str) -> int:
    try:
        depth = int(text)
    except ValueError:
        depth = 0
    if depth < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of levels")
    return depth


def _parse_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time from 0.01 to 3600 seconds")
    return seconds


def _parse_black_box(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError(f"'{text}' is not a time of up to 86400 seconds")
    return seconds


def _parse_budget(text: str) -> float:
    from opstrobe.recording import black_box

    try:
        return black_box.parse_budget(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a share of a step from 0 to 100%") from None


def _parse_sample_ms(text: str) -> float:
    try:
        return parse_sample_ms(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is neither 0 nor a time from 1 to 60000 milliseconds") from None


def _fail(message: str, status: int) -> NoReturn:
    print_message("opstrobe run", message)
    raise SystemExit(status)


def _run_patched(ours: Sequence[str], theirs: Sequence[str]) -> None:
    if len(ours) > 1:
        _fail("--patch goes with no other option; see 'opstrobe run --help'", 2)
    try:
        program = Program(theirs)
    except (UsageError, OSError) as error:
        _fail(f"{error}; see 'opstrobe run --help'", 2)
    os.environ["OPSTROBE_PATCH"] = "1"
    patch_at_import()
    program.run()


def _check_archive(options: argparse.Namespace) -> None:
    """Checks the archive before the program runs, without importing modules that write archives, since the program may
    require other versions of them."""
    if not options.archive:
        if options.job != "default":
            raise UsageError("--job needs --archive")
        return
    for package in ("duckdb", "fsspec", "pyarrow"):
        if importlib.util.find_spec(package) is None:
            raise UsageError(f"archives need {package}: pip install 'opstrobe[archive]'")


def _run_with_black_box(options: argparse.Namespace, theirs: Sequence[str]) -> None:
    from opstrobe.recording import black_box

    allowed = {"black_box", "max_bytes", "spill", "budget", "sample_ms"}
    parser = _parser()
    others = [
        name for name, value in vars(options).items() if name not in allowed and value != parser.get_default(name)
    ]
    if others:
        _fail(f"--{others[0].replace('_', '-')} does not go with --black-box; see 'opstrobe run --help'", 2)
    try:
        program = Program(theirs)
    except (UsageError, OSError) as error:
        _fail(f"{error}; see 'opstrobe run --help'", 2)
    os.environ["OPSTROBE_BLACK_BOX"] = str(options.black_box)
    if options.max_bytes is not None:
        os.environ["OPSTROBE_BLACK_BOX_BYTES"] = str(options.max_bytes)
    if options.budget is not None:
        os.environ["OPSTROBE_BLACK_BOX_BUDGET"] = str(options.budget)
    if options.sample_ms is not None:
        os.environ["OPSTROBE_BLACK_BOX_SAMPLE_MS"] = str(options.sample_ms)
    if options.spill is not None:
        os.environ["OPSTROBE_BLACK_BOX_DIR"] = os.path.abspath(options.spill)
    black_box.start_at_import()
    program.run()


def main() -> None:
    ours, theirs = split_program(sys.argv[1:], _VALUE_OPTIONS)
    options = _parser().parse_args(ours)
    if options.black_box is not None:
        _run_with_black_box(options, theirs)
        return
    if options.patch:
        _run_patched(ours, theirs)
        return
    try:
        program = Program(theirs)
        output = Output(options.output or os.environ.get("OPSTROBE_OUTPUT"), program.name, force=options.force)
        _check_archive(options)
        with_stack = _stack_options(options)
    except (UsageError, OSError) as error:
        _fail(f"{error}; see 'opstrobe run --help'", 2)
    provenance.set_command(["opstrobe", "run", *sys.argv[1:]])
    if options.budget is not None:
        _fail("--budget needs --black-box", 2)
    if options.sample_ms is not None:
        _fail("--sample-ms needs --black-box", 2)
    recorder = RunRecorder(
        output,
        open_viewer=options.open,
        steps=options.steps,
        table_rows=options.table,
        module_depth=options.with_modules,
        live_s=options.live,
        live_socket=options.live_socket,
        advises=options.advise,
        with_processes=not options.one_process,
        record_shapes=options.record_shapes or options.advise,
        profile_memory=options.memory or options.advise,
        with_stack=with_stack,
        with_flops=options.flops,
        max_bytes=options.max_bytes,
        spill=options.spill,
        archive=(options.archive, options.job) if options.archive else None,
    )
    try:
        recorder.arm()
    except CannotRecord as error:
        _fail(f"{error}; run 'opstrobe doctor' for details", 1)
    recorder.run(program)


if __name__ == "__main__":
    # `python -m` inserted the current directory, where the program's own directory belongs.
    if not getattr(sys.flags, "safe_path", False):
        del sys.path[0]
    main()
