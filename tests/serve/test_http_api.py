# SPDX-License-Identifier: Apache-2.0
"""Every route of the API: replies are as docs/openapi.yaml says, and the same as the commands print."""

import collections
import gzip
import json
import re
import struct
import subprocess

import jsonschema
import pytest
import yaml
from conftest import OPSTROBE, ROOT, TIMEOUT_S, serving

DOCUMENT = yaml.safe_load((ROOT / "docs" / "openapi.yaml").read_text())


def check(reply, path, status="200"):
    """That a reply is what the document says of `path`; gives it."""
    response = DOCUMENT["paths"][path]["get"]["responses"][status]
    reference = f"#/paths/{path.replace('~', '~0').replace('/', '~1')}/get/responses/{status}"
    if "$ref" in response:
        reference = response["$ref"]
    reference = reference.replace("{", "%7B").replace("}", "%7D") + "/content/application~1json/schema"
    jsonschema.Draft202012Validator({**DOCUMENT, "$ref": reference}).validate(reply)
    return reply


def command(*words):
    done = subprocess.run([OPSTROBE, *map(str, words)], capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def recorded(server):
    return next(trace for trace in server.traces() if trace["worker"] == "worker0" and "recorded" in trace["run"])


@pytest.fixture(scope="module")
def traces(server):
    """All that can be read; all are requested at once."""
    listed = check(server.json("traces"), "/traces")["traces"]
    good = [trace for trace in listed if server.api(f"traces/{trace['id']}/timeline").status == 200]
    assert len(good) >= 2
    return good


def test_the_document_names_all_routes(server):
    """A target that the server answers with 404, without naming its traces, is not a route."""
    for path in DOCUMENT["paths"]:
        reply = server.api(re.sub(r"{ids?}", "0" * 12, path).strip("/").replace("{", "x").replace("}", "x"))
        if "{i" in path:
            missing = "incident" if "{incident}" in path else "trace"
            message = reply.json()["error"]["message"]
            assert reply.status == 404 and re.fullmatch(f"{missing} '[^']*' does not exist", message), path
        else:
            assert reply.status == 200, path
        check(reply.json(), path, "default" if reply.status == 404 else "200")


def test_list_of_traces(server, traces):
    states = {trace["id"]: trace for trace in check(server.json("traces"), "/traces")["traces"]}
    for trace in traces:
        assert states[trace["id"]]["state"] == "ready"
        assert states[trace["id"]]["events"] == server.json(f"traces/{trace['id']}/info")["value"]["events"]


@pytest.mark.parametrize(
    "route", ["info", "views", "advice", "lines", "roofline", "stacks", "modules", "memory", "timeline"]
)
def test_replies_are_as_documented(server, traces, route):
    for trace in traces:
        path = next(path for path in DOCUMENT["paths"] if re.fullmatch(r"/traces/{ids?}/" + route, path))
        check(server.json(f"traces/{trace['id']}/{route}"), path)


def test_the_same_as_the_commands(server, traces):
    for trace in traces:
        base, path = f"traces/{trace['id']}", trace["path"]
        assert server.json(f"{base}/info") == command("info", "--format", "json", path)
        assert server.json(f"{base}/views") == command("views", "--format", "json", path)
        assert server.json(f"{base}/advice") == command("advise", "--format", "json", path)
        assert server.json(f"{base}/lines") == command("lines", "--format", "json", path)
        by_shape = ("--by", "shape", "--roof", "1T,100G", "--limit", "0")
        assert server.json(f"{base}/roofline", by="shape", roof="1T,100G") == command(
            "roofline", *by_shape, "--format", "json", path
        )
        assert server.json(f"{base}/tables/kernels_by_category") == command(
            "kernels", "--by-category", "--top", "0", "--format", "json", path
        )
        assert server.json(f"{base}/tables/kernels") == command("kernels", "--top", "0", "--format", "json", path)
        assert server.json(f"{base}/tables/modules") == command("modules", "--limit", "0", "--format", "json", path)
        assert server.json(f"{base}/tables/memory") == command("memory", "--limit", "0", "--format", "json", path)
        assert server.json(f"{base}/diff", base=trace["id"]) == command("diff", "--format", "json", path, path)


def test_parts_of_views(server, recorded):
    whole = server.json(f"traces/{recorded['id']}/views")
    for name in whole:
        assert server.json(f"traces/{recorded['id']}/views", parts=name) == {name: whole[name]}
    two = server.json(f"traces/{recorded['id']}/views", parts="steps,flags")
    assert list(two) == ["steps", "flags"]
    assert server.api(f"traces/{recorded['id']}/views", parts="steps,no").status == 400


def test_rules(server, recorded):
    base, path = f"traces/{recorded['id']}", recorded["path"]
    for rules in ("opstrobe", "tensorboard", "hta"):
        assert server.json(f"{base}/views", rules=rules) == command("views", "--rules", rules, "--format", "json", path)
        found = server.json(f"{base}/diff", base=recorded["id"], rules=rules)
        assert found == command("diff", "--rules", rules, "--format", "json", path, path)
    assert server.json(f"{base}/views", parts="steps", rules="tensorboard") != server.json(
        f"{base}/views", parts="steps"
    )
    assert server.api(f"{base}/views", rules="plugin").status == 400


def test_lines_of_a_step_link_to_events_of_the_complete_trace(server, recorded):
    base = f"traces/{recorded['id']}"
    step = next(each for each in server.json(f"{base}/timeline")["steps"] if each["number"] == 1)
    lines = [line for file in server.json(f"{base}/lines", steps="1")["files"] for line in file["lines"]]
    rows = [line["row"] for line in lines if line["row"] is not None and line["self_us"] > 0]
    assert rows
    for row in rows:
        event = server.json(f"{base}/timeline/events/{row}")
        assert event["start_ns"] < step["end_ns"]
        assert event["start_ns"] + event["duration_ns"] > step["start_ns"]


STEP_ROUTES = [
    ("views", {}),
    ("views", {"parts": "operators,kernels"}),
    ("lines", {}),
    ("roofline", {"by": "shape"}),
    ("stacks", {"metric": "self_cpu"}),
    ("modules", {}),
    ("tables/modules", {}),
    ("tables/memory", {}),
    ("analyses/key_averages", {"args": '{"limit": 0}'}),
]


def without_rows(answer):
    """Without links to events: a part's are the rows of the complete trace."""
    if isinstance(answer, dict):
        return {name: without_rows(value) for name, value in answer.items() if name != "row"}
    return [without_rows(each) for each in answer] if isinstance(answer, list) else answer


@pytest.mark.parametrize("steps", ["1", "1:2"])
def test_some_steps_are_the_cut_trace(server, recorded, tmp_path, steps):
    """Every table of some steps has the figures of the trace that `opstrobe cut --steps` leaves."""
    part = tmp_path / "part.json"
    subprocess.run([OPSTROBE, "cut", "--steps", steps, recorded["path"], part], check=True)
    base = f"traces/{recorded['id']}"
    events = {"trace_events": server.json(f"{base}/views")["trace_events"]}  # of the file
    assert server.json(f"{base}/views", steps=steps) == command("views", "--format", "json", part) | events
    assert without_rows(server.json(f"{base}/lines", steps=steps)) == without_rows(
        command("lines", "--format", "json", part)
    )
    with serving(part) as other:
        (cut,) = other.traces()
        for route, parameters in STEP_ROUTES:
            whole, some = (
                server.json(f"{base}/{route}", **parameters),
                server.json(f"{base}/{route}", steps=steps, **parameters),
            )
            wanted = other.json(f"traces/{cut['id']}/{route}", **parameters)
            assert without_rows(some) == without_rows(wanted | events if "trace_events" in wanted else wanted), route
            assert some != whole, route


def test_roofline_parameters(server, recorded):
    path = f"traces/{recorded['id']}/roofline"
    whole = server.json(path)
    assert len(whole["rows"]) == whole["distinct"] > 2
    assert server.json(path, rows=1)["rows"] == whole["rows"][:1]
    for wrong in ({"by": "file"}, {"roof": "fast"}, {"rows": "-1"}, {"no": "1"}):
        assert server.api(path, **wrong).status == 400, wrong


def test_memory_of_some_steps_is_that_of_their_range(server, recorded):
    base = f"traces/{recorded['id']}"
    step = server.json(f"{base}/timeline")["steps"][1]
    for route in ("curve", "blocks"):
        by_time = server.json(
            f"{base}/memory/{route}", device="cpu", **{"from": step["start_ns"], "to": step["end_ns"]}
        )
        assert server.json(f"{base}/memory/{route}", device="cpu", steps=1) == by_time
        assert by_time != server.json(f"{base}/memory/{route}", device="cpu")


@pytest.mark.parametrize("route", ["views", "lines", "stacks", "modules", "tables/kernels", "analyses/key_averages"])
def test_steps_that_do_not_exist(server, recorded, route):
    for steps, status in (("77", 404), ("x", 400), ("2:1", 400), ("", 400), ("1:", 400), ("99999999999999999999", 400)):
        assert server.api(f"traces/{recorded['id']}/{route}", steps=steps).status == status
    assert server.api(f"traces/{recorded['id']}/advice", steps="1").status == 400


def test_analyses(server, recorded):
    offered = check(server.json("analyses"), "/analyses")["analyses"]
    names = [analysis["id"] for analysis in offered]
    assert "trace_with_counters" not in names
    assert not any(option["name"] == "output_dir" for analysis in offered for option in analysis["options"])
    for analysis in offered:
        ids = recorded["id"] if analysis["traces"] == "ranks" else f"{recorded['id']},{recorded['id']}"
        reply = server.api(f"traces/{ids}/analyses/{analysis['id']}")
        assert reply.status in (200, 400), (analysis["id"], reply.body)
        if reply.status == 200:
            check(reply.json(), "/traces/{ids}/analyses/{analysis}")


def figures(value, name=""):
    """The numbers of an answer, without those that name a rank or a step."""
    if isinstance(value, dict):
        return [number for key, member in value.items() for number in figures(member, key)]
    if isinstance(value, list):
        return [number for member in value for number in figures(member, name)]
    return [value] if isinstance(value, (int, float)) and name != "left_out_step" else []


def test_analyses_of_device_work_have_no_results_without_it(server, traces):
    kinds = {"kernel", "gpu_memcpy", "gpu_memset"}
    facts = {trace["id"]: server.json(f"traces/{trace['id']}/info")["value"] for trace in traces}
    (host, *_) = [trace for trace in traces if kinds.isdisjoint(facts[trace["id"]]["events_by_kind"])]
    offered = server.json("analyses")["analyses"]
    assert {"idle_time_breakdown", "temporal_breakdown"} <= {
        each["id"] for each in offered if each["needs_device_work"]
    }
    for analysis in offered:
        reply = server.api(f"traces/{host['id']}/analyses/{analysis['id']}")
        if analysis["needs_device_work"] and reply.status == 200:
            assert not any(figures(reply.json())), analysis["id"]
        elif analysis["id"] in ("key_averages", "critical_path", "call_graph"):
            assert any(figures(reply.json())), analysis["id"]


def test_analyses_write_no_files(server, recorded, tmp_path):
    for arguments in ({"output_dir": str(tmp_path)}, {"output_dir": None}):
        reply = server.api(f"traces/{recorded['id']}/analyses/critical_path", args=json.dumps(arguments))
        assert reply.status == 400
    assert server.api(f"traces/{recorded['id']}/analyses/trace_with_counters").status == 404
    assert not list(tmp_path.iterdir())


def test_diff_of_two_traces(server, traces):
    one, two = traces[0], traces[1]
    reply = server.json(f"traces/{one['id']}/diff", base=two["id"])
    assert reply == command("diff", "--format", "json", two["path"], one["path"])
    assert server.api(f"traces/{one['id']}/diff").status == 400
    assert server.api(f"traces/{one['id']}/diff", base="f" * 12).status == 404


def test_distributed_of_several(server, traces):
    ids = ",".join(trace["id"] for trace in traces[:2])
    assert server.api(f"traces/{ids}/distributed").status == 200
    assert server.api(f"traces/{ids}/info").status == 404


# --- timeline ---------------------------------------------------------------------------------------------------------


def parse_tiles(body):
    tiles = []
    while body:
        magic, size, track, level, index, band, count = struct.unpack_from("<IIIIdII", body)
        assert magic == 0x4C495401 and size % 8 == 0 and size <= len(body)
        columns, at = [], 32
        for letter, width in zip("ddfIIIIB", (8, 8, 4, 4, 4, 4, 4, 1)):
            assert at % width == 0
            columns.append(struct.unpack_from(f"<{count}{letter}", body, at))
            at += count * width
        assert (at + 7) // 8 * 8 == size and not any(body[at:size])
        names = ("start", "end", "busy", "row", "name", "count", "depth", "kind")
        boxes = [dict(zip(names, values)) for values in zip(*columns)]
        tiles.append({"track": track, "level": level, "index": index, "band": band, "boxes": boxes})
        body = body[size:]
    return tiles


def get_tiles(server, trace, tiles):
    reply = server.api(f"traces/{trace['id']}/timeline/tiles", tiles=",".join(tiles))
    assert reply.status == 200, reply.body
    assert reply.headers["Content-Type"] == "application/octet-stream"
    return parse_tiles(reply.body)


def check_boxes(boxes):
    """In order, and next to each other; no more than docs/http-api.md says."""
    assert max(collections.Counter(box["depth"] for box in boxes).values(), default=0) <= 1025
    for before, box in zip(boxes, boxes[1:]):
        assert (before["depth"], before["start"]) <= (box["depth"], box["start"])
        assert before["depth"] < box["depth"] or before["end"] <= box["start"]
    for box in boxes:
        assert box["start"] <= box["end"] and 0 <= box["busy"] <= 1.0001


@pytest.mark.parametrize("level_below", [0, 2, 5])
def test_tiles_hold_every_event_once(server, traces, level_below):
    for trace in traces:
        timeline = server.json(f"traces/{trace['id']}/timeline")
        level = max(timeline["level_min"], timeline["level_max"] - level_below)
        width, bin_width = 2**level, 2 ** (level - 9)
        for track in timeline["tracks"][:8]:
            long_rows, short = set(), 0
            bands = range((track["depths"] + 63) // 64)
            wanted = [f"{track['id']}.{level}.{i}.{band}" for i in range(2**level_below) for band in bands]
            for tile in get_tiles(server, trace, wanted[:64]):
                check_boxes(tile["boxes"])
                for box in tile["boxes"]:
                    begin = tile["index"] * width
                    if box["count"] == 1 and box["end"] - box["start"] >= bin_width:
                        assert box["start"] < begin + width and box["end"] > begin
                        long_rows.add(box["row"])
                    else:
                        assert begin <= box["start"] < begin + width
                        short += box["count"]
            if len(wanted) <= 64:
                assert len(long_rows) + short == track["events"]


def test_a_box_is_its_event(server, recorded):
    timeline = server.json(f"traces/{recorded['id']}/timeline")
    (tile,) = get_tiles(server, recorded, [f"0.{timeline['level_max']}.0"])
    single = [box for box in tile["boxes"] if box["count"] == 1]
    names = server.json(f"traces/{recorded['id']}/strings", ids=",".join(str(box["name"]) for box in single[:20]))[
        "strings"
    ]
    for box, name in zip(single[:20], names):
        event = check(
            server.json(f"traces/{recorded['id']}/timeline/events/{box['row']}"), "/traces/{id}/timeline/events/{row}"
        )
        assert event["name"] == name
        assert (event["start_ns"], event["duration_ns"]) == (box["start"], box["end"] - box["start"])
        assert (event["track"], event["depth"]) == (tile["track"], box["depth"])
        assert event["kind"] == timeline["kinds"][box["kind"]]


def test_an_event_has_all_details(server, recorded):
    # in any case, as tables are filtered
    hits = server.json(f"traces/{recorded['id']}/timeline/search", q="ATEN::ADDMM")["hits"]
    event = server.json(f"traces/{recorded['id']}/timeline/events/{hits[0]['row']}")
    assert event["name"] == "aten::addmm" and event["kind"] == "cpu_op"
    assert event["args"]["Input Dims"][1] == [8, 16]
    assert event["file"].endswith("train.py") and event["line"] == PROGRAM_LINES["loss = model(data)"]
    assert any("train.py" in frame and "step" in frame for frame in event["stack"])
    backward = server.json(f"traces/{recorded['id']}/timeline/search", q="AddmmBackward0")["hits"]
    flows = server.json(f"traces/{recorded['id']}/timeline/flows", row=hits[0]["row"])["flows"]
    assert {flow["kind"] for flow in flows} == {"forward_backward"}
    assert flows[0]["to"]["row"] in {hit["row"] for hit in backward}


def program_lines():
    from conftest import PROGRAM

    lines = PROGRAM.split("\n")
    texts = ["loss = model(data)", "loss.backward()", "torch.ones(100)", "step(torch.rand"]
    return {text: next(i for i, line in enumerate(lines, 1) if text in line) for text in texts}


PROGRAM_LINES = program_lines()


def test_search(server, recorded):
    path = f"traces/{recorded['id']}/timeline/search"
    everything = check(server.json(path, q="aten::", limit=10000, bins=16), "/traces/{id}/timeline/search")
    rows = [hit["row"] for hit in everything["hits"]]
    assert rows == sorted(rows) and len(rows) == everything["total"] == sum(everything["bins"])
    middle = rows[len(rows) // 2]
    after = server.json(path, q="aten::", after=middle, limit=1)
    before = server.json(path, q="aten::", before=middle, limit=1)
    assert after["hits"][0]["row"] == rows[rows.index(middle) + 1] and after["total"] == len(rows)
    assert before["hits"][0]["row"] == rows[rows.index(middle) - 1]
    assert server.json(path, q="no such name")["total"] == 0
    assert server.api(path).status == 400 and server.api(path, q="").status == 400


def test_sums_of_a_range(server, traces):
    for trace in traces:
        whole = check(server.json(f"traces/{trace['id']}/timeline/range"), "/traces/{id}/timeline/range")
        averages = server.json(f"traces/{trace['id']}/timeline")
        assert whole["to_ns"] == averages["duration_ns"]
        middle = averages["duration_ns"] // 2
        halves = [
            server.json(f"traces/{trace['id']}/timeline/range", limit=10000, **window)
            for window in ({"to": middle}, {"from": middle})
        ]
        everything = server.json(f"traces/{trace['id']}/timeline/range", limit=10000)
        for column in ("total_ns", "self_ns"):
            sums = [sum(row[column] for row in part["rows"]) for part in (*halves, everything)]
            assert sums[0] + sums[1] == sums[2]
        busy = [sum(track["busy_ns"] for track in part["tracks"]) for part in (*halves, everything)]
        assert busy[0] + busy[1] == busy[2]


def test_flows_of_a_window(server, traces):
    for trace in traces:
        path = f"traces/{trace['id']}/timeline/flows"
        flows = check(server.json(path, limit=10000), "/traces/{id}/timeline/flows")
        assert len(flows["flows"]) == min(flows["total"], 10000)
        for flow in flows["flows"][:5]:
            assert flow in server.json(path, row=flow["from"]["row"])["flows"]
            assert flow in server.json(path, row=flow["to"]["row"])["flows"]
        assert (
            server.json(path, kinds="launch")["total"] + server.json(path, kinds="forward_backward,other")["total"]
            == (flows["total"])
        )


def rank_with_collectives(number, collectives):
    """A rank whose nth collective, of a host event and a kernel, begins (number + 1) * n ms after its first event."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 0, "dur": 5}]
    for i, name in enumerate(collectives, 1):
        host = {"ph": "X", "pid": 1, "tid": 1, "ts": (number + 1) * i * 1000}
        kernel = {"device": 0, "stream": 7, "External id": i, "correlation": i}
        args = {"External id": i, "Input Dims": [[100]], "Input type": ["float"]}
        events += [
            host | {"cat": "user_annotation", "name": name, "dur": 40, "args": args},
            host | {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 3, "args": kernel},
            host | {"cat": "kernel", "name": "ncclDevKernel()", "pid": 0, "tid": 7, "dur": 500, "args": kernel},
        ]
    return json.dumps({"traceEvents": events, "distributedInfo": {"rank": number, "world_size": 2}})


def test_a_collective_of_several_ranks(tmp_path):
    names = [["nccl:broadcast", "nccl:all_reduce", "nccl:all_reduce"], ["nccl:all_reduce", "nccl:all_reduce"]]
    for number in 0, 1:
        (tmp_path / f"worker{number}.pt.trace.json").write_text(rank_with_collectives(number, names[number]))
    with serving(tmp_path) as server:
        ids = [trace["id"] for trace in sorted(server.traces(), key=lambda trace: trace["worker"])]
        path = f"traces/{','.join(ids)}/timeline/collective"
        common = check(server.json(path), "/traces/{ids}/timeline/collective")
        assert common["name"] == "nccl:all_reduce"
        assert [[place["start_ns"] for place in places] for places in common["calls"]] == [
            [2_000_000] * 2,
            [2_000_000] * 2,
        ]
        assert [place["end_ns"] for place in common["calls"][1]] == [2_040_000, 2_500_000]
        host, kernel = common["calls"][0]
        assert server.json(path, row=host["row"]) == server.json(path, row=kernel["row"]) == common
        # The second of the name is the second of the other rank. What one rank alone has is in none of the others.
        second = server.json(path, row=kernel["row"] + 3)
        assert [places[0]["start_ns"] for places in second["calls"]] == [3_000_000, 4_000_000]
        alone = server.json(path, row=1)
        assert alone["name"] == "nccl:broadcast" and [len(places) for places in alone["calls"]] == [2, 0]
        assert server.json(path, row=0) == {"name": None, "calls": [[], []]}
        assert server.api(path, row=1000).status == 404


def test_counters(server, traces):
    seen = 0
    for trace in traces:
        timeline = server.json(f"traces/{trace['id']}/timeline")
        for counter in timeline["counters"]:
            reply = server.json(
                f"traces/{trace['id']}/timeline/counters", counters=f"{counter['id']}.{timeline['level_max']}.0"
            )
            (tile,) = check(reply, "/traces/{id}/timeline/counters")["counters"]
            assert min(tile["min"]) == counter["min"] and max(tile["max"]) == counter["max"]
            assert tile["time_ns"] == sorted(tile["time_ns"]) and tile["before"] is None
            assert all(low <= last <= high for low, last, high in zip(tile["min"], tile["last"], tile["max"]))
            seen += 1
    assert seen


def test_critical_path(server, recorded):
    path = f"traces/{recorded['id']}/timeline/critical-path"
    reply = check(server.json(path), "/traces/{id}/timeline/critical-path")
    assert reply["region"] == "ProfilerStep#0" and reply["segments"]
    for before, segment in zip(reply["segments"], reply["segments"][1:]):
        assert before["end_ns"] == segment["start_ns"] or before["kind"] == "critical_path_dependency"
    assert sum(reply["bounds"].values()) == pytest.approx(1)
    assert server.json(path, annotation="ProfilerStep#2")["start_ns"] > reply["start_ns"]
    assert server.api(path, annotation="no such").status == 400


# --- trees ------------------------------------------------------------------------------------------------------------


def test_stacks_are_a_tree(server, traces):
    for trace in traces:
        whole = check(server.json(f"traces/{trace['id']}/stacks"), "/traces/{id}/stacks")
        sums = list(whole["self_ns"])
        for i in reversed(range(len(sums))):
            assert whole["parent"][i] < i
            if whole["parent"][i] >= 0:
                sums[whole["parent"][i]] += sums[i]
        assert sums == whole["sum_ns"]
        assert sum(whole["self_ns"]) == whole["total_ns"]
        some = server.json(f"traces/{trace['id']}/stacks", frames=10)
        assert len(some["name"]) == min(10, len(sums))
        assert some["left_out"] == len(sums) - len(some["name"])
        assert sorted(some["sum_ns"], reverse=True) == sorted(whole["sum_ns"], reverse=True)[:10]


def test_stacks_with_wrappers(server, recorded):
    """Folding moves the self time of calls that only pass on to their callers, and loses none."""
    path = f"traces/{recorded['id']}/stacks"
    folded, kept = server.json(path), server.json(path, wrappers="keep")
    assert server.json(path, wrappers="fold") == folded
    assert folded["total_ns"] == kept["total_ns"] and sum(folded["self_ns"]) == sum(kept["self_ns"])
    names = [[each["names"][name]["name"] for name in each["name"]] for each in (folded, kept)]
    assert sum("_call_impl" in name for name in names[0]) < sum("_call_impl" in name for name in names[1])
    assert sum(name.startswith("aten::") for name in names[0]) > 0
    fold, keep = (server.json(f"{path}/diff", base=recorded["id"], wrappers=each) for each in ("fold", "keep"))
    assert len(fold["name"]) < len(keep["name"]) <= len(kept["name"])  # a diff leaves out a slow first step


def test_stacks_of_two_traces(server, recorded, traces):
    other = next(trace for trace in traces if trace["id"] != recorded["id"])
    path = f"traces/{recorded['id']}/stacks/diff"
    for metric in "self_cpu", "self_device":
        diff = check(server.json(path, base=other["id"], metric=metric), "/traces/{id}/stacks/diff")
        swapped = server.json(f"traces/{other['id']}/stacks/diff", base=recorded["id"], metric=metric)
        assert (diff["total_ns"], diff["base_total_ns"]) == (swapped["base_total_ns"], swapped["total_ns"])
        assert sum(diff["self_ns"]) == diff["total_ns"] and sum(diff["base_self_ns"]) == diff["base_total_ns"]
        assert sorted(zip(diff["sum_ns"], diff["base_sum_ns"])) == sorted(
            zip(swapped["base_sum_ns"], swapped["sum_ns"])
        )
    same = server.json(path, base=recorded["id"])
    assert same["self_ns"] == same["base_self_ns"] and same["total_ns"] > 0
    assert server.api(path).status == 400


def test_a_total_that_leaves_out_shared_memory(tmp_path):
    """torch reports a total of 0 for tensors in shared memory, such as those of loader workers."""
    blocks = [(1, 1000, 1000), (2, 64, 0), (2, -64, 0), (3, 500, 1500), (1, -1000, 500), (3, -500, 0)]
    common = {"ph": "i", "s": "t", "name": "[memory]", "cat": "cpu_instant_event", "pid": 1, "tid": 1}
    figures = ("Addr", "Bytes", "Total Allocated")
    rows = [
        common | {"ts": 10 * i, "args": dict(zip(figures, block)) | {"Device Type": 0, "Device Id": -1}}
        for i, block in enumerate(blocks, 1)
    ]
    (tmp_path / "t.json").write_text(json.dumps({"traceEvents": rows}))
    with serving(tmp_path / "t.json") as server:
        (trace,) = server.traces()
        curve = server.json(f"traces/{trace['id']}/memory/curve", device="cpu", points=100)
        assert [max(values) for values in zip(*curve["held_bytes"])] == [0, 1000, 1064, 1000, 1500, 500, 0, 0]
        assert curve["allocated"] == [1000, 1000, 1000, 1000, 1500, 500, 0, 0]


def test_modules_have_their_paths_in_text_and_search(tmp_path):
    """The name of a call, "nn.Module: Slow_0", is not that of its box in the timeline."""
    (tmp_path / "program.py").write_text(
        """
import time, torch

class Slow(torch.nn.Module):
    def forward(self, x):
        time.sleep(0.05)
        return x.relu()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.Sequential(torch.nn.Linear(4, 4), Slow())

    def forward(self, x):
        return self.blocks(x)

Net()(torch.ones(1, 4))
"""
    )
    words = ["run", "-o", tmp_path / "t.json", tmp_path / "program.py"]
    subprocess.run([OPSTROBE, *words], check=True, capture_output=True, timeout=TIMEOUT_S)
    text = subprocess.run(
        [OPSTROBE, tmp_path / "t.json"], check=True, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert re.search(r"^longest gaps .*\nblocks\.1 +5\d\.", text.stdout, re.MULTILINE)
    with serving(tmp_path / "t.json") as server:
        (trace,) = server.traces()
        (hit,) = server.json(f"traces/{trace['id']}/timeline/search", q="blocks.1")["hits"]
        assert server.json(f"traces/{trace['id']}/timeline/events/{hit['row']}")["name"] == "nn.Module: Slow_0"


def test_memory_over_time(server, recorded):
    base = f"traces/{recorded['id']}/memory"
    memory = check(server.json(base), "/traces/{id}/memory")
    (device,) = memory["devices"]
    assert device["device"] == "cpu"
    curve = check(server.json(base + "/curve", device="cpu", points=10000), "/traces/{id}/memory/curve")
    held = [sum(values) for values in zip(*curve["held_bytes"])]
    assert curve["time_ns"] == sorted(curve["time_ns"]) and len(curve["allocated"]) == len(held)
    assert max(held) == device["peak"]["bytes"]
    coarse = server.json(base + "/curve", device="cpu", points=2)
    assert max(sum(values) for values in zip(*coarse["held_bytes"])) == max(held)
    blocks = check(server.json(base + "/blocks", device="cpu"), "/traces/{id}/memory/blocks")
    assert blocks["total"] == device["blocks"]
    sizes = [block["bytes"] for block in blocks["blocks"]]
    assert sizes == sorted(sizes, reverse=True)
    alive = server.json(
        base + "/blocks", device="cpu", **{"from": device["peak_time_ns"], "to": device["peak_time_ns"]}
    )
    assert 0 < alive["total"] <= blocks["total"]
    (moment,) = check(server.json(base, at=device["peak_time_ns"]), "/traces/{id}/memory")["devices"]
    assert moment["peak"]["bytes"] == device["peak"]["bytes"] and moment["peak_time_ns"] == device["peak_time_ns"]
    (early,) = server.json(base, to=device["peak_time_ns"] - 1)["devices"]
    assert early["peak"]["bytes"] < device["peak"]["bytes"] and early["peak_time_ns"] < device["peak_time_ns"]
    assert server.api(base + "/curve", device="cuda:7").status == 404
    assert server.api(base + "/curve").status == 400


def test_modules(server, recorded):
    modules = server.json(f"traces/{recorded['id']}/modules")["modules"]
    root = modules[0]
    assert (root["class"].endswith("Sequential"), root["parent"], root["calls"]) == (True, None, 3)
    assert sum(row["class"].endswith("Linear") for row in modules) == 2
    for row in modules[1:]:
        assert modules[row["parent"]]["depth"] == row["depth"] - 1


# --- source -----------------------------------------------------------------------------------------------------------


def test_lines_of_the_program(server, program, recorded):
    files = server.json(f"traces/{recorded['id']}/lines")["files"]
    (train,) = (file for file in files if file["file"].endswith("train.py"))
    lines = {line["line"]: line for line in train["lines"]}
    forward, backward = lines[PROGRAM_LINES["loss = model(data)"]], lines[PROGRAM_LINES["loss.backward()"]]
    assert forward["function"] == backward["function"] == "step"
    assert forward["host_us"] == forward["self_us"] > 0  # what it calls is torch's
    assert backward["host_us"] > 0
    assert lines[PROGRAM_LINES["torch.ones(100)"]]["allocated_bytes"] == 3 * 400
    call = lines[PROGRAM_LINES["step(torch.rand"]]
    assert call["host_us"] >= forward["host_us"] + call["self_us"]


def test_source_of_the_program(server, program, recorded):
    files = server.json(f"traces/{recorded['id']}/lines")["files"]
    name = next(file["file"] for file in files if file["file"].endswith("train.py"))
    reply = check(server.json(f"traces/{recorded['id']}/source", file=name), "/traces/{id}/source")
    assert reply["text"] == (program / "train.py").read_text() and reply["changed"] is False


@pytest.mark.parametrize(
    "file",
    ["/etc/passwd", "../../../../etc/passwd", "train.pyc", "", ".", "/proc/self/environ", "setup.py", "conftest.py"],
)
def test_no_other_file(server, recorded, file):
    reply = server.api(f"traces/{recorded['id']}/source", file=file)
    assert reply.status == 404 and b"root:" not in reply.body


# --- form of replies --------------------------------------------------------------------------------------------------


def test_incidents(tmp_path):
    """Those of a directory, as the command prints them; no other file."""
    report = {
        "title": "killed by SIGSEGV",
        "cause": "SIGSEGV at train.py:4.",
        "cause_kind": "signal",
        "time_ns": 1795442838309162605,
    }
    for number in range(2):
        (tmp_path / f"20261123-14071{number}-6645").mkdir()
        (tmp_path / f"20261123-14071{number}-6645" / "report.json").write_text(json.dumps(report | {"pid": number}))
    (tmp_path / "20261123-140719-6645").mkdir()  # without a report
    options = ("incidents", "--directory", tmp_path, "--box", tmp_path / "none")
    with serving(tmp_path) as server:
        listed = check(server.json("incidents"), "/incidents")
        assert [row[0] for row in listed["table"]["rows"]] == ["20261123-140711-6645", "20261123-140710-6645"]
        assert listed == command(*options, "--format", "json")
        first = listed["table"]["rows"][0][0]
        shown = check(server.json(f"incidents/{first}"), "/incidents/{incident}")
        assert shown == command(*options, "show", "--json", first)
        for name in ("20261123-140719-6645", "%2e%2e%2fpasswd", ".new"):
            assert server.api(f"incidents/{name}").status == 404, name


def test_compressed_when_accepted(server, recorded):
    target = f"/api/v1/traces/{recorded['id']}/views"
    token = {"Authorization": f"Bearer {server.token}"}
    plain, packed = server.get(target, token), server.get(target, {**token, "Accept-Encoding": "gzip"})
    refused = server.get(target, {**token, "Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in plain.headers and "Content-Encoding" not in refused.headers
    assert packed.headers["Content-Encoding"] == "gzip" and len(packed.body) < len(plain.body)
    assert gzip.decompress(packed.body) == plain.body == refused.body


def test_unchanged_replies_are_not_sent_again(server, recorded):
    token = {"Authorization": f"Bearer {server.token}"}
    for route in ("views?parts=steps", "timeline", "timeline/tiles?tiles=0.20.0", "strings?ids=1"):
        target = f"/api/v1/traces/{recorded['id']}/{route}"
        first = server.get(target, token)
        again = server.get(target, {**token, "If-None-Match": first.headers["ETag"]})
        other = server.get(target, {**token, "If-None-Match": '"other"'})
        assert (again.status, again.body) == (304, b"")
        assert (other.status, other.body) == (200, first.body)
    assert "ETag" not in server.api("traces").headers
    assert "ETag" not in server.api(f"traces/{recorded['id']}/views", parts="no").headers


def test_head_has_no_body(server, recorded):
    head = server.get(f"/api/v1/traces/{recorded['id']}/timeline", method="HEAD")
    assert (head.status, head.body) == (200, b"") and int(head.headers["Content-Length"]) > 100


def test_a_line_that_several_call_stacks_reach_is_listed_once(tmp_path):
    row = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "dur": 8}
    callers = ["main.py(9): run", "main.py(8): run"]
    rows = [{**row, "ts": 20 * i, "args": {"Call stack": f"a.py(2): f;{each}"}} for i, each in enumerate(callers)]
    path = tmp_path / "stacks.json"
    path.write_text(json.dumps({"traceEvents": rows}))
    with serving(path) as server:
        (trace,) = server.json("traces")["traces"]
        (line,) = server.json(f"traces/{trace['id']}/timeline/calls?name=aten::mm")["lines"]
    assert (line["file"], line["line"], line["count"]) == ("a.py", 2, 2)
