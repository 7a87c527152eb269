# SPDX-License-Identifier: Apache-2.0
"""`opstrobe analyze collective_bandwidth` on a made-up run, compared with the figures it was made from."""

import json
import random

RANKS = 4


def test_bandwidth_and_skew(opstrobe, tmp_path):
    """Ranks come to each operation at their own times and leave together; their clocks are seconds apart."""
    draw = random.Random(1)
    kinds = {
        "allreduce": ("Float", 4, 1 << 20, 1 << 20, 2 * (RANKS - 1) / RANKS),
        "_allgather_base": ("BFloat16", 2, 1 << 18, 1 << 20, (RANKS - 1) / RANKS),
        "broadcast": ("Byte", 1, 5000, 5000, 1),
    }
    operations = [
        (name, [draw.randrange(1, 400) for _ in range(RANKS)], draw.randrange(50, 900)) for name in list(kinds) * 5
    ]  # name, when each rank comes, how long the transfer takes from the last of them on
    for rank in range(RANKS):
        rows = []
        for i, (name, arrivals, transfer) in enumerate(operations):
            dtype, _, elements_in, elements_out, _ = kinds[name]
            args = {"stream": 7, "device": 0, "Collective name": name, "dtype": dtype, "Group size": RANKS,
                    "In msg nelems": elements_in, "Out msg nelems": elements_out, "Process Group Name": "0"}  # fmt: skip
            rows.append(
                {"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 7, "args": args,
                 "ts": 5_000_000 * rank + 10_000 * i + arrivals[rank], "dur": max(arrivals) - arrivals[rank] + transfer}
            )  # fmt: skip
        text = json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": rows})
        (tmp_path / f"rank{rank}.json").write_text(text)
    process = opstrobe("analyze", "collective_bandwidth", "--format", "json", ".")
    assert process.returncode == 0, process.stderr
    table = json.loads(process.stdout)["table"]
    rows = {row[0]: dict(zip(table["columns"], row)) for row in table["rows"]}
    assert sorted(rows) == sorted(kinds)
    for name, (dtype, size, elements_in, elements_out, factor) in kinds.items():
        mine = [(arrivals, transfer) for other, arrivals, transfer in operations if other == name]
        row, count = rows[name], len(mine)
        assert (row["msg_dtype"], row["ranks"], row["count"], row["group_size"]) == (dtype, RANKS, count, RANKS)
        assert row["bytes_mean"] == size * max(elements_in, elements_out)
        assert abs(row["transfer_mean"] - sum(transfer for _, transfer in mine) / count) < 0.001
        skews = [max(arrivals) - min(arrivals) for arrivals, _ in mine]
        assert abs(row["skew_mean"] - sum(skews) / count) < 0.001 and row["skew_max"] == max(skews)
        speed = row["bytes_mean"] * count / (1000 * sum(transfer for _, transfer in mine))
        assert abs(row["algorithm_gb_per_s"] - speed) < 0.001
        assert abs(row["bus_gb_per_s"] - speed * factor) < 0.001
        late = [arrivals.index(max(arrivals)) for arrivals, _ in mine]
        assert late.count(row["last_rank"]) == max(late.count(rank) for rank in range(RANKS))


def test_one_rank_has_no_known_waits(opstrobe, tmp_path):
    row = {
        "ph": "X",
        "cat": "kernel",
        "name": "ncclDevKernel_AllReduce",
        "pid": 0,
        "tid": 7,
        "ts": 1,
        "dur": 5,
        "args": {"stream": 7},
    }
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [row]}))
    process = opstrobe("analyze", "collective_bandwidth", "--format", "json", "trace.json")
    table = json.loads(process.stdout)["table"]
    answer = dict(zip(table["columns"], table["rows"][0]))
    assert answer["collective_name"] == "ncclDevKernel_AllReduce" and answer["skew_max"] == 0
    assert answer["bytes_mean"] is None and answer["bus_gb_per_s"] is None and answer["last_rank"] is None
