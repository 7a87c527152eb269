#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no two C files define a static function of the same name, so that a backtrace and a search find one place."""

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEFINITION = re.compile(r"^static (?!inline)[\w *]*?[ *](\w+)\([^;]*?\)\n\{", re.MULTILINE)


def main() -> int:
    files = defaultdict(set)
    for folder in ("src", "python/ext"):
        for path in (ROOT / folder).rglob("*.c"):
            for name in DEFINITION.findall(path.read_text()):
                files[name].add(str(path.relative_to(ROOT)))
    repeated = {name: paths for name, paths in files.items() if len(paths) > 1}
    for name, paths in sorted(repeated.items()):
        print(f"static function '{name}' is defined in {', '.join(sorted(paths))}", file=sys.stderr)
    return 1 if repeated else 0


if __name__ == "__main__":
    sys.exit(main())
