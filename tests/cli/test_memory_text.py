# SPDX-License-Identifier: Apache-2.0
"""What holds memory at the peak, as text: the largest shares first, and a name for what is in no module, operator or line."""

import json
import pathlib
import re

TRACE = pathlib.Path(__file__).resolve().parents[2] / "web/tests/traces/train.pt.trace.json.gz"


def test_the_largest_shares_come_first(opstrobe):
    text = opstrobe("memory", str(TRACE)).stdout
    for title in ("Category", "Module", "Source line", "Operator"):
        table = next(each for each in text.split("\n\n") if each.splitlines()[0].endswith(f" {title}"))
        shares = [float(share) for share in re.findall(r"([\d.]+) %", table)]
        assert len(shares) > 2 and shares == sorted(shares, reverse=True), table
    assert "(outside modules)" in text and "(unknown)" in text and "(none)" not in text


def test_shares_are_rounded_once(opstrobe):
    """19.847 % is 19.8 %, not the 19.9 % of 19.85 %; less than 0.01 % is not 0 %."""
    rows = json.loads(opstrobe("memory", "--format", "json", str(TRACE)).stdout)["table"]["rows"]
    text = opstrobe("memory", str(TRACE)).stdout
    (all_bytes,) = [row[4] for row in rows if row[1] == "all"]
    for _, held_by, name, _, size, *_ in rows:
        if held_by == "category" and size:
            percent = 100 * size / all_bytes
            shown = (
                "<0.01" if percent < 0.005 else f"{percent:.{2 if percent < 9.995 else 1 if percent < 99.95 else 0}f}"
            )
            title = name.replace("_", " ").capitalize()
            assert re.search(rf" {shown} %  {title}\n", text), (name, shown, text)


def test_a_moment_beyond_the_trace_is_refused(opstrobe):
    for form in ("text", "json"):
        process = opstrobe("memory", "--at", "99s", "--format", form, str(TRACE))
        assert process.returncode == 2 and not process.stdout
        assert re.search(r"opstrobe.*: 99\.0 s is not within the trace, which takes [\d.]+ m?s\n", process.stderr)
    assert opstrobe("memory", "--at", "1us", str(TRACE)).returncode == 0
