# SPDX-License-Identifier: Apache-2.0
"""`opstrobe diff --gate counts`: checks whether a trace has higher counts than another."""

from __future__ import annotations

import argparse
import sys

from opstrobe._command_parser import command_parser, reason_of
from opstrobe._plain import print_message

REGRESSION = 3  # exit status, the same as for `opstrobe diff --exit-on-regression`

_DESCRIPTION = """\
Compares what two traces count for each step: calls of operators, launches, bytes copied and allocated,
synchronisations, runs of compiled regions (a graph break adds one), and recompiles. Counts do not depend on the load of
the machine. The exit status is 3 if a sum of HEAD is larger than in every step of BASE, else 0."""


def _parser() -> argparse.ArgumentParser:
    parser = command_parser("diff --gate counts", _DESCRIPTION, ("diff --gate counts main.json.gz branch.json.gz",))
    parser.add_argument("--gate", choices=("counts",), help=argparse.SUPPRESS)
    parser.add_argument("--exit-on-regression", action="store_true", help=argparse.SUPPRESS)  # always in effect
    parser.add_argument("--format", choices=("text", "json", "github", "gitlab"), default="text", metavar="FORMAT",
                        help="text (the default), json, github (workflow commands that annotate lines) or gitlab (a code quality report)")  # fmt: skip
    parser.add_argument("base", metavar="BASE")
    parser.add_argument("head", metavar="HEAD")
    return parser


def main() -> None:
    options = _parser().parse_args()
    try:
        from opstrobe.ci import annotate, counts

        changes = counts.compare(options.base, options.head)
    except (ImportError, OSError, ValueError) as error:
        print_message("opstrobe diff", reason_of(error))
        raise SystemExit(1) from None
    sys.stdout.write(annotate.text(changes, options.format))
    raise SystemExit(REGRESSION if any(change.is_regression for change in changes) else 0)


if __name__ == "__main__":
    main()
