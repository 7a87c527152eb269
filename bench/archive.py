# SPDX-License-Identifier: Apache-2.0
"""One query about the traces of a job, from its JSON and from an archive: time, memory, and the size of the archive.

python bench/archive.py [--ranks 64] [--events 270000]      # 64 ranks of 100 MB: 6.4 GB on disk
"""

from __future__ import annotations

import argparse
import gzip
import os
import pathlib
import shutil
import subprocess
import tempfile

from traces import build_make_trace, run_command

_QUERY = "select rank, step, sum(dur_ns) from events group by rank, step order by rank, step"


def make_ranks(folder: pathlib.Path, ranks: int, events: int) -> list[pathlib.Path]:
    """Traces of the ranks of a job, whose times and sizes differ."""
    program = build_make_trace(folder)
    paths = [folder / "traces" / f"rank{rank}.json" for rank in range(ranks)]
    paths[0].parent.mkdir()
    for rank, path in enumerate(paths):
        subprocess.run([program, str(events), path, str(rank), str(ranks)], check=True)
    return paths


def _compressed_bytes(path: pathlib.Path, folder: pathlib.Path) -> int:
    target = folder / "compressed.gz"
    with open(path, "rb") as source, gzip.open(target, "wb", compresslevel=6) as file:
        shutil.copyfileobj(source, file, 1 << 20)
    size = target.stat().st_size
    target.unlink()
    return size


def _print_run(what: str, goal: str, *words: str | pathlib.Path) -> None:
    figures = run_command(*words)
    times = f"{figures['wall']:.2f} s, CPU {figures['cpu']:.2f} s, {figures['bytes'] / 1e6:.0f} MB"
    print(f"  {what:<32} {times}{goal}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=64)
    parser.add_argument("--events", type=int, default=270_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        folder = pathlib.Path(name)
        paths = make_ranks(folder, options.ranks, options.events)
        size = sum(path.stat().st_size for path in paths)
        compressed = options.ranks * _compressed_bytes(paths[0], folder)
        place = folder / "archive"
        print(f"{options.ranks} ranks, {size / 1e6:.0f} MB of JSON, {compressed / 1e6:.0f} MB as .json.gz: {_QUERY}")
        _print_run("from JSON", " (goal: 15 s, 300 MB for 64 ranks of 100 MB)", "sql", "--limit", "0", _QUERY, *paths)
        _print_run("archive add", "", "archive", "add", place, *paths)
        _print_run("from the archive, and the start", "", "sql", "--limit", "0", _QUERY, place)
        _print_run(
            "the start of the command", " (goal: 0.5 s for the difference)", "sql", "--limit", "0", "select 1", place
        )
        archived = sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        print(f"  archive: {archived / 1e6:.1f} MB, 1/{size / archived:.0f} of the JSON (goal: 1/20), "
              f"1/{compressed / archived:.1f} of .json.gz (goal: 1/2)")  # fmt: skip


if __name__ == "__main__":
    main()
