# SPDX-License-Identifier: Apache-2.0
"""The page of memory, the counter of the timeline, the views and the command have one peak."""

import json
import subprocess

from conftest import OPSTROBE, ROOT, TIMEOUT_S, serving

RECORDED = ROOT / "web" / "tests" / "traces" / "train.pt.trace.json.gz"


def test_one_peak():
    command = [OPSTROBE, "memory", "--format", "json", RECORDED]
    answer = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=TIMEOUT_S).stdout)
    table = answer.get("table", answer)
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    (peak,) = [row["bytes"] for row in rows if row["held_by"] == "all"]
    with serving(RECORDED) as server:
        (trace,) = server.traces()
        address = f"traces/{trace['id']}"
        (device,) = server.json(f"{address}/memory")["devices"]
        views = server.json(f"{address}/views", parts="memory")["memory"]
        timeline = server.json(f"{address}/timeline")
        (counter,) = [each for each in timeline["counters"] if each["unit"] == "bytes"]
        tile = f"{counter['id']}.{timeline['level_max']}.0"
        (piece,) = server.json(f"{address}/timeline/counters", counters=tile)["counters"]
    assert (counter["label"], device["device"]) == ("CPU memory", "cpu")
    assert device["peak"]["before_bytes"] > 0
    assert peak == device["peak"]["bytes"] == views["peaks"]["CPU"] == counter["max"] == max(piece["max"])
    # It counts from the beginning, with memory from before the recording.
    before = [at for at, time in enumerate(piece["time_ns"]) if time == 0]
    assert before and piece["min"][before[0]] > 0
