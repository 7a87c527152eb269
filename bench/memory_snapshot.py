# SPDX-License-Identifier: Apache-2.0
"""Reading a large memory snapshot (torch.cuda.memory._dump_snapshot): CPU time and memory of `opstrobe info`.

The file is made as Python's pickle writes it: each action of the allocator is a dict with a list of frames, which are shared.

    python bench/memory_snapshot.py [--actions 3000000] [--frames 60] [--keep FILE]
"""

from __future__ import annotations

import argparse
import os
import pathlib
import pickle
import random
import struct
import tempfile
from typing import BinaryIO

from traces import run_command

_MARK, _LIST, _DICT, _MEMOIZE, _APPENDS, _SETITEMS = b"(", b"]", b"}", b"\x94", b"e", b"u"
_KEYS = ("action", "addr", "size", "stream", "time_us", "compile_context", "user_metadata", "frames")
_STACKS = 2000
_FILES = 200


class _Pickle:
    """Opcodes of protocol 4, with a memo of texts and frames."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.memo: dict[object, bytes] = {}
        self.count = 0

    def text(self, value: str) -> bytes:
        if value in self.memo:
            return self.memo[value]
        data = value.encode()
        self.remember(value)
        return b"\x8c" + bytes([len(data)]) + data + _MEMOIZE

    def remember(self, key: object) -> None:
        if key is not None:
            self.memo[key] = b"h" + bytes([self.count]) if self.count < 256 else b"j" + struct.pack("<I", self.count)
        self.count += 1


def _integer(value: int) -> bytes:
    return pickle.dumps(value, 2)[2:-1]


def write_snapshot(path: pathlib.Path, actions: int, frames: int) -> None:
    draw = random.Random(1)
    with open(path, "wb", buffering=1 << 20) as file:
        out = _Pickle(file)
        file.write(b"\x80\x04" + _DICT + _MEMOIZE + _MARK)
        out.remember(None)
        file.write(out.text("segments") + _LIST + _MEMOIZE)
        out.remember(None)
        file.write(out.text("device_traces") + _LIST + _MEMOIZE + _MARK + _LIST + _MEMOIZE + _MARK)
        out.remember(None)
        out.remember(None)
        stacks = [[(draw.randrange(_FILES), draw.randrange(3000)) for _ in range(frames)] for _ in range(_STACKS)]
        live: list[tuple[int, int]] = []
        for i in range(actions):
            is_free = len(live) > 1000 and bool(i & 1)
            address, size = (
                live.pop(draw.randrange(len(live))) if is_free else (0x7F0000000000 + 512 * i, 512 * (1 + i % 900))
            )
            if not is_free:
                live.append((address, size))
            _write_action(out, "free_completed" if is_free else "alloc", address, size, i, stacks[i * 7919 % _STACKS])
            if i % 1000 == 999:
                file.write(_APPENDS + _MARK)  # as Python does
        file.write(_APPENDS + _APPENDS + _SETITEMS + b".")


def _write_action(out: _Pickle, action: str, address: int, size: int, at: int, stack: list[tuple[int, int]]) -> None:
    parts = [_DICT, _MEMOIZE, _MARK]
    out.remember(None)
    values = {"addr": _integer(address), "size": _integer(size), "stream": b"K\x00", "time_us": _integer(1_790_000_000_000_000 + at),
              "compile_context": b"N", "user_metadata": b"N"}  # fmt: skip
    for key in _KEYS:
        parts.append(out.text(key))
        if key == "action":
            parts.append(out.text(action))
        elif key == "frames":
            parts += [_LIST, _MEMOIZE, _MARK]
            out.remember(None)
            parts += [_frame(out, frame) for frame in stack]
            parts.append(_APPENDS)
        else:
            parts.append(values[key])
    out.file.write(b"".join(parts) + _SETITEMS)


def _frame(out: _Pickle, frame: tuple[int, int]) -> bytes:
    if frame in out.memo:
        return out.memo[frame]
    out.remember(frame)
    file, line = frame
    return b"".join([_DICT, _MEMOIZE, _MARK, out.text("filename"), out.text(f"/opt/program/module_{file}.py"), out.text("line"),
                     _integer(line), out.text("name"), out.text(f"function_{line % 500}"), _SETITEMS])  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--actions", type=int, default=3_000_000)
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--keep", metavar="FILE", help="where to keep the snapshot; one that is there is used")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        path = pathlib.Path(options.keep or f"{folder}/snapshot.pickle")
        if not path.exists():
            write_snapshot(path, options.actions, options.frames)
        rounds = [run_command("info", path) for _ in range(3)]
        cpu, peak = (min(figures[name] for figures in rounds) for name in ("cpu", "bytes"))
        size = path.stat().st_size
        print(
            f"opstrobe info of a memory snapshot of {size / 1e9:.2f} GB, {options.actions:,} actions with {options.frames} frames:"
        )
        print(f"  {cpu:.2f} s CPU (goal: 5 s for 1 GB), {peak / 1e6:.0f} MB (goal: 200 MB)")


if __name__ == "__main__":
    main()
