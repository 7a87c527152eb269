# SPDX-License-Identifier: Apache-2.0
"""opstrobe views on small traces for which the TensorBoard plugin stopped or gave wrong figures. Other such cases are in figures
of the shared traces, named in test_views.py, and in tests/analyze/views."""

import json
import random
import re

import pytest


@pytest.fixture
def views(opstrobe, tmp_path):
    def ask(rows, **document):
        text = json.dumps(rows if document.get("bare") else {**document, "traceEvents": rows})
        (tmp_path / "worker.pt.trace.json").write_text(text)
        ended = opstrobe("views", "--format", "json", "worker.pt.trace.json")
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)

    return ask


def op(name, ts, dur, tid=1, cat="cpu_op", **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": tid, "ts": ts, "dur": dur, "args": args}


def step(number, ts, dur):
    return op(f"ProfilerStep#{number}", ts, dur, cat="user_annotation")


def launch(ts, correlation, **args):
    return op("cudaLaunchKernel", ts, 2, cat="cuda_runtime", correlation=correlation, **args)


def kernel(name, ts, dur, correlation, device=0, **args):
    row = op(name, ts, dur, 7, "kernel", stream=7, device=device, correlation=correlation, **args)
    return {**row, "pid": device}


def memory(ts, size, address, total, device=0, kind=0, tid=1):
    args = {"Device Type": kind, "Device Id": device, "Addr": address, "Bytes": size, "Total Allocated": total}
    return {
        "ph": "i",
        "s": "t",
        "name": "[memory]",
        "pid": 1,
        "tid": tid,
        "ts": ts,
        "args": {**args, "Total Reserved": total},
    }


WORK = [step(1, 0, 100), op("aten::mm", 10, 50), launch(20, 1), kernel("gemm", 70, 20, 1)]


def calls_of(found, name):
    return {row["name"]: row["calls"] for row in found["operators"]["rows"]}[name]


def test_bare_array(views):
    assert calls_of(views(WORK, bare=True), "aten::mm") == 1


def test_no_category(views):
    assert calls_of(views([*WORK, {"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]), "aten::mm") == 1


def test_kernel_without_device(views):
    rows = [*WORK]
    del rows[-1]["args"]["device"]
    assert views(rows)["kernels"]["total"] == 20


def test_step_without_a_number(views):
    found = views([*WORK, step("last", 100, 50), step(2, 150, 10)])
    assert calls_of(found, "aten::mm") == 1 and found["steps"]["names"][0] == "1"


def test_deep_nesting(views):
    depth = 20_000
    found = views(
        [op("deep", i, 2 * depth - 2 * i + 1) if i % 2 else op("other", i, 2 * depth - 2 * i + 1) for i in range(depth)]
    )
    assert calls_of(found, "deep") == depth // 2


def links(pairs):
    for i, (begin, end) in enumerate(pairs):
        for ph, (ts, tid) in (("s", begin), ("f", end)):
            yield {"ph": ph, "cat": "fwdbwd", "name": "fwdbwd", "id": i + 1, "pid": 1, "tid": tid, "ts": ts, "bp": "e"}


MODULE = [
    step(1, 0, 1000),
    {**op("nn.Module: Net_0", 10, 300, cat="python_function"), "args": {"Python id": 1, "Python module id": 0}},
    op("aten::mm", 20, 50, **{"Sequence number": 1, "Fwd thread id": 0}),
    op("aten::add", 100, 50, **{"Sequence number": 2, "Fwd thread id": 0}),
]


def test_two_links_to_one_backward_node(views):
    backward = op("autograd::engine::evaluate_function: MmBackward0", 500, 80, 2)
    found = views([*MODULE, backward, *links([((20, 1), (500, 2)), ((100, 1), (500, 2))])])
    assert [module["name"] for module in found["modules"]] == ["Net_0"]


def test_accumulate_grad_first(views):
    rows = [
        *MODULE,
        op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 450, 20, 2),
        op("autograd::engine::evaluate_function: MmBackward0", 500, 80, 2),
        *links([((20, 1), (500, 2))]),
    ]
    assert [module["name"] for module in views(rows)["modules"]] == ["Net_0"]


def test_gpu_64_and_more(views):
    found = views(
        [
            *WORK,
            launch(30, 2),
            kernel("gemm", 60, 10, 2, device=64),
            launch(35, 3),
            kernel("gemm", 60, 10, 3, device=200),
        ]
    )
    assert [gpu["id"] for gpu in found["gpus"]] == [0, 64, 200]
    assert [gpu["utilization_ratio"] for gpu in found["gpus"]] == pytest.approx([0.2, 0.1, 0.1])


def test_shorter_than_a_microsecond(views):
    found = views([op("aten::mm", 10, 0.5), launch(10.1, 1), kernel("gemm", 10.2, 0.3, 1)])
    assert found["kernels"]["total"] == pytest.approx(0.3)


def test_missing_names_and_odd_inputs(views):
    nameless = op("", 40, 5)
    del nameless["name"]
    rows = [
        *WORK,
        nameless,
        op("nccl:all_reduce", 50, 10, **{"Input Dims": [[[2, 3], [4]], []], "External id": 5}),
        op("nccl:broadcast", 62, 10, **{"Input Dims": [[8]], "External id": 6}),
    ]
    found = views(rows)
    assert {row["name"] for row in found["communication"]["ops"]} == {"nccl:all_reduce", "nccl:broadcast"}


@pytest.mark.parametrize(
    "name", ["_all_gather_base", "_reduce_scatter_base", "all_to_all", "send", "recv", "coalesced"]
)
def test_collectives_of_all_names(views, name):
    rows = [step(1, 0, 100), op(f"nccl:{name}", 10, 50, **{"External id": 9}), launch(20, 1, **{"External id": 9}),
            kernel("ncclDevKernel_SendRecv(ncclDevComm*)", 40, 50, 1, **{"External id": 9})]  # fmt: skip
    found = views(rows)
    (row,) = found["steps"]["rows"]
    assert (row["communication"], row["kernel"]) == (80, 0)  # the host's call and its kernel
    (row,) = found["communication"]["ops"]
    assert (row["name"], row["calls"], row["total_latency"]) == (f"nccl:{name}", 1, 50)


def test_one_missing_collective(opstrobe, tmp_path):
    """The plugin showed nothing at all."""
    for rank, count in ((0, 2), (1, 1)):
        rows = [step(1, 0, 1000)]
        rows += [op("gloo:all_reduce", 100 + 300 * i, 50 + 100 * rank, **{"External id": 5 + i}) for i in range(count)]
        (tmp_path / f"node_{rank}.pt.trace.json").write_text(json.dumps({"traceEvents": rows}))
    ended = opstrobe("views", "--format", "json", str(tmp_path))
    found = json.loads(ended.stdout)["distributed"]
    assert not found["shown"]
    assert found["wait"]["1"]["node_1"] == {"data_transfer": 50, "synchronizing": 100}
    assert [row["calls"] for worker in ("node_0", "node_1") for row in found["ops"][worker]] == [2, 1]


def test_unknown_sizes_of_collectives(opstrobe, tmp_path):
    """A recording without shapes does not have them; the plugin showed 0."""
    shapes = {"Input Dims": [[8]], "Input type": ["float"]}
    for rank in range(2):
        rows = [step(1, 0, 1000), op("gloo:all_reduce", 100, 50, **{"External id": 5})]
        rows += [op("gloo:broadcast", 300, 50, **{"External id": 6, **shapes})]
        (tmp_path / f"node_{rank}.pt.trace.json").write_text(json.dumps({"traceEvents": rows}))
    found = json.loads(opstrobe("views", "--format", "json", str(tmp_path)).stdout)["distributed"]
    sizes = {row["name"]: (row["total_bytes"], row["avg_bytes"]) for row in found["ops"]["node_0"]}
    assert sizes == {"gloo:all_reduce": (None, None), "gloo:broadcast": (32, 32)}
    text = opstrobe("views", "node_0.pt.trace.json").stdout
    assert re.search(r"^gloo:all_reduce +1 .*-$", text, re.MULTILINE)
    words = ("views", "--rules", "tensorboard", "--format", "json", "node_0.pt.trace.json")
    assert [row["total_bytes"] for row in json.loads(opstrobe(*words).stdout)["communication"]["ops"]] == [0, 32]


def test_waits_of_helper_threads_are_no_part_of_a_slow_step(opstrobe, tmp_path):
    """Three threads that wait for work added up to 12 ms in a step of 5."""
    rows, at = [], 0
    for i in range(8):
        took = 5000 if i == 5 else 1000
        rows += [step(i, at, took), op("aten::mm", at + 10, took - 20)]
        waits = op("<built-in method acquire of _thread.lock object at 0x7f00>", at + 1, took - 50)
        rows += [waits | {"cat": "python_function", "tid": tid} for tid in (101, 102, 103)]
        at += took
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    (slow,) = json.loads(opstrobe("views", "--format", "json", "t.json").stdout)["steps"]["outliers"]
    assert [(name["name"], name["self"]) for name in slow["events"]] == [("aten::mm", 4980)]


GROUPS = ((0, 1, 2, 3), (0, 1), (2, 3))


def plan(draw, numbered):
    """For each rank its collectives: (name, group, number in the group, how long). Ranks mix their groups as they like, and
    of a rank of the first group operations are missing: the last ones, or some where torch numbers them."""
    ranks = [[] for _ in range(4)]
    for group in GROUPS:
        names = [draw.choice(["all_reduce", "broadcast"]) for _ in range(8)]
        for rank in group:
            for number, name in enumerate(names):
                missing = (number % 3 == 1) if numbered else number > 5
                if not (rank == 0 and group == GROUPS[0] and missing):
                    ranks[rank].append((name, group, number, draw.randrange(10, 90)))
    for rank in range(4):  # groups mixed, each in its order
        turns = [each[1] for each in ranks[rank]]
        draw.shuffle(turns)
        queues = {group: iter([each for each in ranks[rank] if each[1] == group]) for group in GROUPS}
        ranks[rank] = [next(queues[group]) for group in turns]
    return ranks


@pytest.mark.parametrize("where", ["around", "kernel"])
@pytest.mark.parametrize("numbered", [False, True])
def test_process_groups(opstrobe, tmp_path, where, numbered):
    """What ranks do together is found by group and name, whatever else they do in between."""
    draw = random.Random(f"{where}{numbered}")
    ranks = plan(draw, numbered)
    shortest, times = {}, [[] for _ in ranks]
    for rank, operations in enumerate(ranks):
        rows, seen = [step(1, 0, 10_000)], {}
        for i, (name, group, number, length) in enumerate(operations):
            nth = seen[name, group] = seen.get((name, group), -1) + 1
            operation = (name, group, number if numbered else nth)
            shortest[operation] = min(shortest.get(operation, length), length)
            times[rank].append((operation, length))
            args = {"Process Group Name": str(len(group)), "Process Group Ranks": str(list(group))}
            args |= {"Seq": number} if numbered else {}
            at, host = 10 + 100 * i, {"External id": 100 + i}
            if where == "around":
                rows += [op("record_param_comms", at - 1, 95, **args), op(f"gloo:{name}", at, length, **host)]
            else:
                rows += [op(f"nccl:{name}", at, 1, **host), launch(at, i + 1, **host),
                         kernel("ncclDevKernel", at + 2, length, i + 1, **host, **args)]  # fmt: skip
        (tmp_path / f"node_{rank}.pt.trace.json").write_text(json.dumps({"traceEvents": rows}))
    ended = opstrobe("views", "--format", "json", str(tmp_path))
    found = json.loads(ended.stdout)["distributed"]["wait"]["1"]
    for rank, mine in enumerate(times):
        transfer = sum(shortest[operation] for operation, _ in mine)
        waits = sum(length for _, length in mine) - transfer
        calls = len(mine) if where == "kernel" else 0  # the host's part counts as transfer
        assert found[f"node_{rank}"] == {"data_transfer": transfer + calls, "synchronizing": waits}
    assert any(found[f"node_{rank}"]["synchronizing"] for rank in range(4))


def test_calls_are_those_of_the_operators(views):
    """Also of operators in which, or in whose callers, nothing was allocated."""
    rows = [step(1, 0, 1000), op("aten::mm", 100, 50), op("aten::outer", 200, 200), op("aten::mm", 210, 50),
            memory(120, 64, 1, 64, -1)]  # fmt: skip
    found = views(rows)
    (row,) = found["memory"]["stats"]["rows"]["CPU"]
    assert (row["name"], row["calls"], row["alloc_count"]) == ("aten::mm", 2, 1)
    assert calls_of(found, "aten::mm") == 2


def test_records_outside_of_operators(views):
    """Memory has the name of the step, module or loader that allocates it, or none if unknown; no record is left out."""
    draw = random.Random(12)
    spans = [("ProfilerStep#1", 0, 1000), ("enumerate(DataLoader)#_Iter.__next__", 50, 150), ("nn.Module: Net_0", 300, 500),
             ("aten::mm", 350, 400), ("aten::outer", 600, 800), ("aten::add", 650, 700)]  # fmt: skip
    rows = [step(1, 0, 1000), op(spans[1][0], 50, 100, cat="user_annotation"),
            {**op(spans[2][0], 300, 200, cat="python_function"), "args": {"Python id": 1, "Python module id": 0}},
            op("aten::mm", 350, 50), op("aten::outer", 600, 200), op("aten::add", 650, 50)]  # fmt: skip
    expected, total = {}, 0
    for i in range(60):
        # The last ones at the ends of rows, which still contain them.
        ts, size = (
            draw.randrange(1200) if i < 54 else spans[i - 54][2],
            draw.choice([-1, 1, 1]) * draw.randrange(1, 100),
        )
        total += size
        rows.append(memory(ts, size, i + 1, total, -1))
        inside = [name for name, start, end in spans if start <= ts <= end]
        figures = expected.setdefault(inside[-1] if inside else None, [0, 0, 0])
        figures[0] += size
        figures[1] += size > 0
        figures[2] += max(size, 0)
    stats = views(rows)["memory"]["stats"]
    found = {
        row["name"]: [row["self_increase"], row["self_alloc_count"], row["self_alloc_size"]]
        for row in stats["rows"]["CPU"]
    }
    outside = stats["outside_operators"]["CPU"]
    assert [row["name"] for row in outside if row["name"] is None or "aten" not in row["name"]] == [
        row["name"] for row in outside
    ]
    found |= {row["name"]: [row["increase"], row["alloc_count"], row["alloc_size"]] for row in outside}
    assert found == expected
    assert [row["increase"] for row in outside] == sorted((row["increase"] for row in outside), reverse=True)


def test_reserved_memory_and_capacity(views):
    reserved = memory(16, 100, 2, 100, 0, 1)
    reserved["args"]["Total Reserved"] = 700
    found = views([*WORK, reserved], deviceProperties=[{"id": 0, "name": "A100", "totalGlobalMem": 1000}])
    assert found["memory"]["curve"]["devices"]["GPU0"]["max_reserved"] == 700
    assert found["devices"][0]["total_memory"] == 1000


A100 = {"id": 0, "name": "A100", "totalGlobalMem": 1 << 30, "computeMajor": 8, "computeMinor": 0, "numSms": 108, "warpSize": 32,
        "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "sharedMemPerMultiprocessor": 167936}  # fmt: skip
MI250 = {"id": 0, "name": "MI250", "computeMajor": 9, "computeMinor": 0, "numSms": 104, "warpSize": 64,
         "maxThreadsPerMultiprocessor": 2048}  # fmt: skip


def up(value, unit):
    return -(-value // unit) * unit


def occupancy(grid, block, registers, shared):
    """Of an A100, by the programming guide's table: what of 64 warps this launch has on a multiprocessor."""
    warps = up(block, 32) // 32
    held = min(64 // warps, 65536 // up(32 * registers, 256) // 4 * 4 // warps, 167936 // up(shared + 1024, 128), 32)
    return 100 * min(grid / 108, held) * warps / 64


@pytest.mark.parametrize("said", ["all", "zero", "nothing"])
def test_use_of_multiprocessors(views, said):
    """Out of sizes, registers and the device, where the file says 0 or nothing."""
    draw, rows, filled, occupied, busy = random.Random(19), [step(1, 0, 10_000)], 0, 0, 0
    rows.append(op("aten::mm", 10, 9000))
    for i in range(40):
        grid, block = draw.choice([1, 20, 108, 5000]), draw.choice([32, 100, 256, 1024])
        registers, shared, length = draw.choice([16, 40, 64]), draw.choice([0, 1024, 40_000]), draw.randrange(1, 90)
        args = {
            "grid": [grid, 1, 1],
            "block": [block, 1, 1],
            "registers per thread": registers,
            "shared memory": shared,
        }
        if said == "all":
            args |= {"blocks per SM": 0.25, "est. achieved occupancy %": 12}
        elif said == "zero":
            args |= {"blocks per SM": 0, "est. achieved occupancy %": 0}
        rows += [launch(20 + 200 * i, i + 1), kernel("k", 30 + 200 * i, length, i + 1, **args)]
        filled += length * (0.25 if said == "all" else min(grid / 108, 1))
        occupied += length * (12 if said == "all" else occupancy(grid, block, registers, shared))
        busy += length
    (gpu,) = views(rows, deviceProperties=[A100])["gpus"]
    assert gpu["sm_efficiency_ratio"] == pytest.approx(filled / 10_000)
    assert gpu["occupancy_pct"] == pytest.approx(occupied / busy)
    assert gpu["est_achieved_occupancy_pct"] == {"all": pytest.approx(12), "zero": 0, "nothing": None}[said]
    (gpu,) = views(rows, deviceProperties=[MI250])["gpus"]
    assert gpu["sm_efficiency_ratio"] is not None
    assert gpu["occupancy_pct"] == {"all": pytest.approx(12), "zero": 0, "nothing": None}[said]
    (gpu,) = views(rows)["gpus"]
    assert gpu["occupancy_pct"] == gpu["est_achieved_occupancy_pct"]
    assert gpu["sm_efficiency_ratio"] == gpu["est_sm_efficiency_ratio"]


def test_invalid_sizes(views):
    """No division by what a hostile file says."""
    huge = [2**31 - 1] * 3
    for args in ({"grid": huge, "block": huge}, {"grid": [], "block": [0]}, {"grid": "x", "block": [[1], None, -1]}):
        for device in ({**A100, "numSms": 1, "warpSize": 2**31}, {**A100, "maxThreadsPerMultiprocessor": 1}, {"id": 0}):
            rows = [
                *WORK[:-1],
                kernel("gemm", 70, 20, 1, **{"registers per thread": 10**18, "shared memory": -5, **args}),
            ]
            assert views(rows, deviceProperties=[device])["kernels"]["total"] == 20


def test_one_busy_gpu_of_two(views):
    rows = [*WORK, launch(22, 2), kernel("gemm", 30, 70, 2, device=1)]
    assert [gpu["utilization_ratio"] for gpu in views(rows)["gpus"]] == pytest.approx([0.2, 0.7])


def grow(draw, tree, start, end, depth):
    """Modules and operators in [start, end), side by side and in each other: [name, start, end, children]."""
    at = start
    while end - at > 40 and draw.random() < 0.9:
        begin = at + draw.randrange(1, 10)
        stop = draw.randrange(begin + 20, end - 5) if end - 5 > begin + 20 else end - 5
        name = (
            f"nn.Module: M{len(tree)}_0" if draw.random() < 0.5 else f"aten::op{depth}"
        )  # not of one name: those are folded
        node = [name, begin, stop, []]
        tree.append(node)
        if depth < 3:
            grow(draw, node[3], begin + 1, stop - 1, depth + 1)
        at = stop


@pytest.mark.parametrize("seed", range(6))
def test_self_and_backward_time_of_modules(views, seed):
    """Both selves with the operators that a module calls; the backward of operators wherever in it they are."""
    draw, forest, rows, expected = random.Random(seed), [], [step(1, 0, 100_000)], {}
    while len(forest) < 3:
        forest.clear()
        grow(draw, forest, 10, 10_000, 0)
    at, correlation = 20_000, 0

    def visit(node, around):
        nonlocal at, correlation
        name, start, end, children = node
        is_module = name.startswith("nn.Module")
        if is_module:
            name += str(len(expected))  # each call is a separate module
            args = {"Python id": len(expected) + 1, "Python module id": len(expected)}
            rows.append({**op(name, start, end - start, cat="python_function"), "args": args})
            around = [*around, expected.setdefault(name[11:], {"host": 0, "device": 0, "back": 0, "back_device": 0})]
        else:
            rows.append(op(name, start, end - start))
        device = 0
        if not is_module:  # it launches a kernel, and so does its backward
            for when, key in ((start, ""), (at, "back_device")):
                correlation += 1
                length = draw.randrange(1, 50)
                rows.append(launch(when + 1, correlation) | {"dur": 1, "tid": 2 if key else 1})
                rows.append(kernel("k", 50_000 + 100 * correlation, length, correlation))
                for module in around if key else []:
                    module[key] += length
                device += 0 if key else length
            spent = draw.randrange(5, 50)
            rows.append(op("autograd::engine::evaluate_function: OpBackward0", at, spent, 2))
            rows.extend(links([((start, 1), (at, 2))]))
            rows[-1]["id"] = rows[-2]["id"] = correlation
            for module in around:
                module["back"] += spent
            at += 100
        below = [visit(child, around) for child in children]
        if is_module:
            own = around[-1]
            own["host"] = (end - start) - sum(c[2] - c[1] for c in children if c[0].startswith("nn.Module"))
            own["device"] = sum(d for c, d in zip(children, below, strict=True) if not c[0].startswith("nn.Module"))
        return device + sum(below)

    for node in forest:
        visit(node, [])

    found, todo = {}, list(views(rows)["modules"] or [])
    while todo:
        module = todo.pop()
        todo += module["children"]
        found[module["name"]] = {
            "host": module["host_self_with_operators"], "device": module["device_self"],
            "back": module["backward_host_total"], "back_device": module["backward_device_total"],
        }  # fmt: skip
    assert found == expected and any(each["back"] for each in expected.values())


@pytest.mark.parametrize("on_gpu", [False, True])
def test_nccl_is_for_gpus(views, on_gpu):
    """Where DistributedDataParallel runs on the CPU alone, NCCL serves nobody."""
    rows = [step(1, 0, 100), op("DistributedDataParallel.forward", 5, 80), *(WORK[1:] if on_gpu else [])]
    found = views(rows, deviceProperties=[{"id": 0, "name": "A100", "computeMajor": 8, "computeMinor": 0}])
    assert ("PREFER_NCCL" in {each["id"] for each in found["recommendations"]}) == on_gpu


@pytest.mark.parametrize(("seconds", "events"), [(100, 6), (86_500, 5)])
def test_windows_may_last_minutes(views, seconds, events):
    """The plugin threw away marks that came more than 86.4 s after the last iteration had begun; it meant a day."""

    def mark(name, ts):
        return {"ph": "i", "s": "g", "name": name, "pid": "", "tid": "", "ts": ts}

    rows = [*WORK, mark("Iteration Start: PyTorch Profiler", 0), mark("Record Window End", seconds * 1e6)]
    assert views(rows)["trace_events"] == events


@pytest.mark.parametrize(
    "category",
    ["cuda_runtime", "xpu_runtime", "mtia_runtime", "privateuse1_runtime", "glow_runtime", "runtime", "cuda_driver"],
)
def test_launches_of_all_devices(views, category):
    rows = [step(1, 0, 100), op("aten::mm", 10, 50, **{"External id": 3}),
            {**launch(20, 1, **{"External id": 3}), "cat": category}, kernel("gemm", 70, 20, 1)]  # fmt: skip
    found = views(rows)
    assert found["steps"]["rows"][0]["runtime"] == 2
    (row,) = [row for row in found["operators"]["rows"] if row["name"] == "aten::mm"]
    assert row["device_total"] == 20


def test_peak_of_the_cpu_is_not_a_gpus(views):
    """The plugin took the capacity of the last GPU for that of device -1."""
    rows = [*WORK, memory(15, 999, 1, 999, -1), memory(16, 100, 2, 100, 0, 1)]
    found = views(rows, deviceProperties=[{"id": 0, "name": "A100", "totalGlobalMem": 1000, "computeMajor": 8}])
    assert "GPU_MEMORY_NEAR_LIMIT" not in {each["id"] for each in found["recommendations"]}
    found = views(
        [*rows, memory(17, 850, 3, 950, 0, 1)], deviceProperties=[{"id": 0, "name": "A100", "totalGlobalMem": 1000}]
    )
    assert "GPU_MEMORY_NEAR_LIMIT" in {each["id"] for each in found["recommendations"]}


@pytest.mark.parametrize("launches", [True, False])
def test_steps_of_several_processes_are_one(views, launches):
    """Ranks that were put into one trace: a step lasts from its first process's beginning to its last one's end."""
    rows = []
    for pid in (10, 20):
        for number in (1, 2):
            at = number * 1000 + pid
            mine = [step(number, at, 800), op("aten::mm", at + 100, 50)]
            mine += [launch(at + 110, at), kernel("gemm", at + 200, 30, at, pid)] if launches else []
            rows += [{**row, "pid": pid} if row["cat"] != "kernel" else row for row in mine]
    found = views(rows)["steps"]
    assert found["names"] == ["1", "2"]
    assert [row["total"] for row in found["rows"]] == [810, 810]
    assert [row["kernel"] for row in found["rows"]] == [40 * launches] * 2


def test_equal_names_of_steps_stay_steps(views):
    """Of one process, or of two that do not work at the same time."""
    later = [{**row, "pid": 2} for row in (step(1, 500, 100), op("aten::mm", 510, 50))]
    found = views([step(1, 0, 100), op("aten::mm", 10, 50), step(1, 100, 100), *later])["steps"]
    assert [row["total"] for row in found["rows"]] == [100, 100, 100]


def test_steps_left_out_are_counted(opstrobe, views):
    rows = [*WORK, step(2, 100, 50), step(3, 150, 50)]
    found = views(rows)["steps"]
    assert found["names"] == ["1"] and found["left_out"] == 2
    text = opstrobe("views", "worker.pt.trace.json").stdout
    assert "1 step: 100 µs\n2 more at the end left out: work of a device is missing\n" in text
    assert views(WORK)["steps"]["left_out"] == 0


def test_no_steps(opstrobe, views):
    assert views(WORK[1:])["steps"]["names"] == ["0"]
    assert "whole recording: 80.0 µs" in opstrobe("views", "worker.pt.trace.json").stdout


def test_a_recording_without_steps_includes_launches_outside_of_operators(opstrobe, views):
    """Such as replays of a CUDA graph in a server: their time was not part of it, and neither was their device work."""
    replay = op("cudaGraphLaunch", 300, 50, cat="cuda_runtime", correlation=2)
    rows = [*WORK[1:], replay, kernel("decode", 400, 1000, 2)]
    found = views(rows)
    assert found["steps"]["breakdown"]["average"]["total"] == 1390
    assert found["gpus"][0]["utilization_ratio"] == pytest.approx(1020 / 1390)
    assert "whole recording: 1.39 ms" in opstrobe("views", "worker.pt.trace.json").stdout


def test_calls_at_two_lines_are_two_loops(views):
    """Without recorded calls of functions, call stacks say where a module is called: twice to train, and for each of eight words."""
    places = ["train.py(9): main"] * 2 + ["train.py(20): generate;train.py(12): main"] * 8
    rows = []
    for i, place in enumerate(places):
        stack = {"Call stack": f"{place};train.py(30): <module>;"}
        module = {"Python id": i + 1, "Python module id": 0}
        call = op("nn.Module: Net_0", 100 * i, 80, cat="python_function", **stack, **module)
        rows += [call, op("aten::mm", 100 * i + 10, 60, **stack)]
    found = views(rows)["steps"]
    assert found["from"] == "loop" and len(found["rows"]) == 8


def test_names_of_ranges_are_short(opstrobe, tmp_path):
    names = ["enumerate(DataLoader)#_Iter.__next__", "Optimizer.step#SGD.step", "enumerate(DataPipe)#Pipe"]
    rows = [step(1, 0, 1000), *(op(name, 100 + 200 * i, 100) for i, name in enumerate(names)),
            {**op("nn.Module: Linear_0", 800, 100, cat="python_function"), "args": {"Python id": 1, "Python module id": 0}},
            ]  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": rows}))
    text = opstrobe("diff", "a.json", "a.json").stdout
    listed = [line.split()[0] for line in text.split("in the steps")[1].split("\n\n")[0].splitlines()[1:]]
    assert listed == ["_Iter.__next__", "Optimizer.step", "Pipe", "Linear_0"]
    found = json.loads(opstrobe("diff", "--format", "json", "a.json", "a.json").stdout)
    assert "nn.Module: Linear_0" in json.dumps(found["children"])


def test_an_empty_trace_is_not_praised(opstrobe, views):
    assert views([])["steps"]["rows"] == []
    text = opstrobe("views", "worker.pt.trace.json").stdout
    assert text == "0 events: nothing was recorded\n\nadvice\nNo rule applies to this trace\n"


def test_spans_are_numbers(opstrobe, tmp_path):
    for stamp in (9, 10, 100):
        rows = [step(stamp, 0, 100), op(f"op {stamp}", 10, 50)]
        (tmp_path / f"worker.{stamp}.pt.trace.json").write_text(json.dumps({"traceEvents": rows}))
    ended = opstrobe("views", "--format", "json", str(tmp_path))
    found = json.loads(ended.stdout)
    spans = [each["operators"]["rows"][0]["name"] for each in found["traces"]]
    assert spans == ["op 9", "op 10", "op 100"]


def test_backward_without_a_module(views):
    """The backward of a loss that no module computes stays in the table of operators."""
    rows = [
        *MODULE,
        op("aten::mse_loss", 350, 40, **{"Sequence number": 3, "Fwd thread id": 0}),
        op("autograd::engine::evaluate_function: MseLossBackward0", 450, 40, 2),
        op("autograd::engine::evaluate_function: MmBackward0", 500, 80, 2),
        *links([((350, 1), (450, 2)), ((20, 1), (500, 2))]),
    ]
    assert calls_of(views(rows), "autograd::engine::evaluate_function: MseLossBackward0") == 1


def collective(ts, correlation, number, label, **args):
    """An all-reduce as torch records it: the label inside the operator that the kernel names."""
    yield op("c10d::allreduce_", ts, 40, **{"External id": number})
    yield op("record_param_comms", ts + 1, 36, **{"External id": number + 1})
    yield op("nccl:all_reduce", ts + 2, 30, cat=label, **{"External id": number + 2})
    yield launch(ts + 7, correlation, **{"External id": number + 1})
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    yield kernel(name, 100 * ts, 8000, correlation, **{"External id": number + 1}, **args)


@pytest.mark.parametrize("label", ["user_annotation", "cpu_op"])
def test_collectives_have_the_time_and_bytes_of_their_kernels(views, label):
    size = {"In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "BFloat16"}
    found = views(
        [step(1, 0, 1000), *(row for i in (1, 2, 3) for row in collective(100 * i, i, 10 * i, label, **size))]
    )
    assert found["communication"]["ops"] == [
        {"name": "nccl:all_reduce", "calls": 3, "total_bytes": 6000, "total_latency": 24000}
    ]


def test_collectives_of_other_libraries(views):
    rows = [*WORK, launch(30, 2), kernel("void vllm::cross_device_reduce_1stage<float, 2>(int)", 90, 60, 2)]
    (first,) = views(rows)["steps"]["rows"]
    assert (first["kernel"], first["communication"]) == (20, 60)


def test_a_kernel_without_an_operator_is_the_function_s(views):
    function = op("train.py(42): replay", 10, 50, cat="python_function", **{"Python id": 1})
    found = views([function, op("cudaGraphLaunch", 20, 5, cat="cuda_runtime", correlation=7), kernel("k", 70, 20, 7)])
    assert [(row["name"], row["operator"]) for row in found["kernels_by_op"]["top"]] == [("k", "train.py(42): replay")]


def test_matrix_cores(views):
    uses = {
        "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI16x16x16x1_SN_K1": True,
        "Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1": False,
        "void ck::kernel_gemm_xdl_cshuffle_v1<ck::GridwiseGemm>(int)": True,
        "void ck_tile::kentry<256, 1, ck_tile::FmhaFwdKernel<int> >(int)": True,
        "void ck_tile::kentry<256, 1, ck_tile::Layernorm2dFwd<int> >(int)": False,
        "_attn_fwd": True,
        "attn_fwd.kd": True,
        "bwd_kernel_dk_dv.kd": True,
    }
    rows = [row for i, name in enumerate(uses) for row in (launch(10 + 5 * i, i), kernel(name, 100 + i, 1, i))]
    found = views([op("aten::mm", 0, 90), *rows])
    assert {row["name"]: row["tensor_cores"] for row in found["kernels"]["rows"]} == uses


def test_many_devices(opstrobe, tmp_path):
    """Each is looked at once: what took 22 s for 32,000 devices is a part of a second. The text shows the first."""
    rows = [{**kernel("k", i, 1, i, device=i), "pid": i} for i in range(5000)]
    (tmp_path / "many.json").write_text(json.dumps({"traceEvents": rows}))
    found = json.loads(opstrobe("views", "--format", "json", "many.json").stdout)
    assert [gpu["id"] for gpu in found["gpus"]] == list(range(5000))
    assert "4936 more GPUs" in opstrobe("views", "many.json").stdout


def test_rows_of_the_profiler_are_no_threads(opstrobe, tmp_path):
    """Torch's files have its span and its marks on tracks of processes "Spans", "Traces" and ""."""
    span = {"ph": "X", "cat": "Trace", "ts": 0, "dur": 90, "pid": "Spans", "tid": "PyTorch Profiler"}
    rows = [
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 5, "ts": 1, "dur": 8},
        span | {"name": "PyTorch Profiler (0)", "args": {"Op count": 0}},
        {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces", "tid": "T", "ts": 0},
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 90},
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    assert opstrobe("convert", "t.json", "t.pftrace").returncode == 0
    for name in ("t.json", "t.pftrace"):
        assert ", 1 thread, " in opstrobe("views", name).stdout.splitlines()[0]
        assert json.loads(opstrobe("info", "--format", "json", name).stdout)["value"]["threads"] == 1


@pytest.mark.parametrize(("first", "said"), [(2000, True), (1000, False)])
def test_advice_and_means_leave_out_the_same_first_step(opstrobe, tmp_path, first, said):
    events, at = [], 0
    for i in range(3):
        length = first if i == 0 else 1000
        for cat, name, start, duration in (
            ("user_annotation", f"ProfilerStep#{i}", at, length),
            ("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 10, 700),
            ("cpu_op", "aten::mm", at + 800, 150),
        ):
            events.append({"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration})
        at += length
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": events}))
    assert ("median, mean and p95 leave it out" in opstrobe("views", "t.json").stdout) == said
    base = json.loads(opstrobe("advise", "--format", "json", "t.json").stdout)["base"]
    assert ("(2 of 3 steps are steady; the mean step takes 1.00 ms)" in base["text"]) == said
    assert base["ms"] == pytest.approx(1, rel=0.01)


def test_lists_say_that_they_cover_more_than_the_steps(opstrobe, tmp_path):
    """The viewer shows the operators of the steps; text and Markdown those of the trace."""
    steps = [
        {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": 1000 + 100 * i, "dur": 100 - inner}
        for i in range(5)
        for cat, name, inner in (("user_annotation", f"ProfilerStep#{i}", 0), ("cpu_op", "aten::mm", 50))
    ]
    before = {"ph": "X", "cat": "cpu_op", "name": "aten::normal_", "pid": 1, "tid": 1, "ts": 0, "dur": 1000}
    said = "The lists below cover the whole trace, 1.50 ms, of which the steps are 500 µs with 20.0 % of the time of operators. "
    for rows, expected in (([before, *steps], True), (steps, False)):
        (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
        assert (said + "operators" in " ".join(opstrobe("views", "t.json").stdout.split())) == expected
        report = opstrobe("report", "--format", "markdown", "t.json").stdout
        assert (said + "### operators" in " ".join(report.split())) == expected


def test_shares_of_steps_leave_out_what_modules_do_in_no_step(opstrobe, tmp_path):
    """A model that trains in two steps and computes as long afterwards; its module begins within it."""

    def row(name, ts, dur, cat="python_function", **args):
        return {"ph": "X", "cat": cat, "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}

    rows = [row(f"ProfilerStep#{i}", 1000 * i, 1000, "user_annotation") for i in range(2)]
    for i, (start, dur) in enumerate([(100, 400), (1100, 400), (2100, 4000)]):
        outer, inner = 2 * i + 1, 2 * i + 2
        rows.append(row("nn.Module: Net_0", start, dur, **{"Python id": outer, "Python module id": 0}))
        module = {"Python id": inner, "Python parent id": outer, "Python module id": 0}
        rows.append(row("nn.Module: Linear_0", start + 10, dur / 2, **module))
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows}))
    table = json.loads(opstrobe("modules", "--format", "json", "trace.json").stdout)["table"]
    found = [dict(zip(table["columns"], each, strict=True)) for each in table["rows"]]
    assert [(each["percent"], each["step_us"], each["calls"]) for each in found] == [(40, 400, 3), (20, 200, 3)]
    assert [each["host_us"] for each in found] == [4800, 2400]


def test_the_line_of_an_operator_has_most_of_its_time(views, opstrobe):
    """Not that of its longest call, and how many lines there are is said."""
    calls = [
        (0, 10, "a.py(1): f;main.py(9): run"),
        (20, 8, "a.py(2): f;main.py(9): run"),
        (40, 8, "a.py(2): f;main.py(8): run"),
    ]
    found = views([op("aten::mm", at, long, **{"Call stack": stack}) for at, long, stack in calls])
    (row,) = found["operators"]["rows"]
    assert (row["line"], row["lines"]) == ("a.py:2", 2)
    assert "a.py:2, 1 more" in opstrobe("worker.pt.trace.json").stdout
