# SPDX-License-Identifier: Apache-2.0
"""What holds memory at the peak, as text: the largest shares first, and a name for what is in no module, operator or line."""

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
