# SPDX-License-Identifier: Apache-2.0
"""Does the same program get the same first finding, also on a busy machine?

    python bench/same_finding.py --times 20 --busy 4 train.py [arguments]
    python bench/same_finding.py --times 20 --busy 4

Records the program repeatedly next to processes that keep the processors busy, and prints how often each first finding came, with
the smallest and the largest gain. Without a program, records those of tests/diagnosis/programs, and prints how often the planted
cause came first, and which healthy programs had a finding of severity high. Advice is right only if it does not depend on what else
the machine does.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

COMMAND = str(pathlib.Path(sys.executable).parent / "opstrobe")
OPTIONS = ["--record-shapes", "--memory", "--with-stack", "--with-modules"]
SPIN = "while True: sum(range(1000))"


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    spinning = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()


def first_finding(program: list[str]) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory() as folder:
        trace = f"{folder}/trace.json.gz"
        subprocess.run([COMMAND, "run", *OPTIONS, "-o", trace, *program], check=True, capture_output=True)
        printed = subprocess.run([COMMAND, "advise", "--format", "json", trace], check=True, capture_output=True)
    findings: list[dict[str, Any]] = json.loads(printed.stdout)["findings"]
    return findings[0] if findings else None


def name(finding: dict[str, Any] | None) -> str:
    if finding is None:
        return "nothing"
    place = finding["where"][0] if finding["where"] else {"file": None, "line": None}
    return f"{finding['id']} {pathlib.Path(place['file'] or '').name}:{place['line']}"


def known_programs(times: int) -> None:
    """Records each known program `times` times, and prints those that did not always get the same right finding."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests" / "diagnosis"))
    import suite

    planted = first = at_line = same = healthy = high = 0
    for program in suite.programs():
        verdicts = [suite.judge(program) for _ in range(times)]
        names = collections.Counter(verdict.first["id"] if verdict.first else "nothing" for verdict in verdicts)
        loud = sum(any(f["severity"] == "high" for f in verdict.findings) for verdict in verdicts)
        if program.healthy:
            healthy += times
            high += loud
            wrong = loud
        else:
            planted += times
            first += sum(verdict.is_first for verdict in verdicts)
            at_line += sum(verdict.is_first and verdict.at_line for verdict in verdicts)
            same += max(names.values())
            wrong = sum(not (verdict.is_first and verdict.at_line) for verdict in verdicts)
        if wrong:
            print(f"{program.name}: wrong in {wrong} of {times}: {dict(names)}", flush=True)
    print(
        f"planted cause first in {first} of {planted} recordings, at its line in {at_line}; the same rule first in {same}"
    )
    print(f"healthy programs with a finding of severity high: {high} of {healthy} recordings")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=20, help="number of recordings")
    parser.add_argument("--busy", type=int, default=4, help="number of other busy processes")
    parser.add_argument(
        "program", nargs=argparse.REMAINDER, help="the script and its arguments; default: the known programs"
    )
    options = parser.parse_args()
    if not options.program:
        with busy(options.busy):
            known_programs(options.times)
        return
    gains: dict[str, list[float]] = collections.defaultdict(list)
    with busy(options.busy):
        for _ in range(options.times):
            finding = first_finding(options.program)
            gains[name(finding)].append(finding["predicted_gain_percent"] if finding else 0.0)
    for key, found in sorted(gains.items(), key=lambda item: -len(item[1])):
        print(f"{len(found):4} of {options.times}  {key}  {min(found):.1f} to {max(found):.1f} %")


if __name__ == "__main__":
    main()
