#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that no layer of src/ uses one above it: see the table in docs/architecture.md.

    check_layers.py              what files include, and how deep the includes of src/analyze are
    check_layers.py ARCHIVE      also which functions the objects of the library call

The compiler cannot check includes, because all layers share the include folder src/; and a public header may declare
functions of several layers, so the symbols are looked at as well.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# The layers that each layer may use in addition to itself.
LAYERS = {
    "base": (),
    "record": ("base",),
    "gpu": ("base", "record"),
    "trace": ("base",),
    "read": ("base", "record", "trace"),
    "derive": ("base", "trace"),
    "analyze": ("base", "trace", "derive"),
    "write": ("base", "trace", "derive", "analyze"),
    "watch": ("base", "record", "trace", "read", "derive", "analyze", "write"),
    "serve": ("base", "trace", "derive", "analyze"),
    "cli": (),  # and the extension: headers of include/opstrobe only
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([a-z]+)/', re.MULTILINE)
ANALYZE_INCLUDE = re.compile(r'^\s*#\s*include\s+"(analyze/[^"]+)"', re.MULTILINE)
# Maximum length of a chain of includes in src/analyze: a longer one hides dependencies.
DEPTH_MAX = 8


def allowed(layer: str, used: str) -> bool:
    return used == layer or used in LAYERS[layer]


def check_includes() -> list[str]:
    folders = [(ROOT / "src" / layer, layer) for layer in LAYERS]
    folders.append((ROOT / "python" / "ext", "cli"))
    wrong = []
    for folder, layer in folders:
        for path in sorted(folder.rglob("*.[ch]*")):
            for used in INCLUDE.findall(path.read_text()):
                if used in LAYERS and not allowed(layer, used):
                    wrong.append(f"{path.relative_to(ROOT)}: layer '{layer}' includes a header of '{used}'")
    return wrong


def check_depth(texts: dict[str, str]) -> list[str]:
    """`texts` are the files of src/analyze by their names in includes."""
    depths: dict[str, int] = {}

    def depth(name: str, within: tuple[str, ...] = ()) -> int:
        if name not in texts or name in within:
            return 0
        if name not in depths:
            below = (depth(used, (*within, name)) for used in ANALYZE_INCLUDE.findall(texts[name]))
            depths[name] = 1 + max(below, default=0)
        return depths[name]

    return [
        f"src/{name}: includes are {depth(name)} levels deep, more than {DEPTH_MAX}"
        for name in sorted(texts)
        if depth(name) > DEPTH_MAX
    ]


def check_symbols(archive: str) -> list[str]:
    """Objects are named after their sources: src_base_alloc.c.o."""
    text = subprocess.run(["nm", "-A", archive], check=True, capture_output=True, text=True).stdout
    defined: dict[str, str] = {}
    needed: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        found = re.search(r"[:/]src_([a-z]+)_([^:]*)\.o:\s*[0-9a-f]*\s+([A-Za-z]) (\S+)$", line)
        if not found:
            continue
        layer, file, kind, symbol = found.groups()
        if kind == "U":
            needed.append((layer, file, symbol))
        elif kind.isupper():
            defined[symbol] = layer
    if not defined:
        return [f"{archive}: no objects of src/"]
    return [
        f"src/{layer}/{file}: layer '{layer}' calls {symbol} of '{defined[symbol]}'"
        for layer, file, symbol in sorted(set(needed))
        if symbol in defined and not allowed(layer, defined[symbol])
    ]


def main() -> int:
    analyze = (ROOT / "src" / "analyze").rglob("*.[ch]")
    wrong = check_includes() + check_depth({str(path.relative_to(ROOT / "src")): path.read_text() for path in analyze})
    for archive in sys.argv[1:]:
        wrong += check_symbols(archive)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
