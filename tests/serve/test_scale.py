# SPDX-License-Identifier: Apache-2.0
"""A trace four times as long: what it costs to read, and how much is sent of it (docs/views.md, S01, S03, S05)."""

import json
import os
import subprocess

import pytest
from conftest import OPSTROBE, ROOT, serving
from test_http_api import check_boxes, get_tiles

ENTRIES = (100_000, 400_000)
PLUGIN_BYTES_AN_EVENT = 2000

# The first reply that each view requests, except for `timeline`, which lists the steps.
ASKED = [
    "info",
    "advice",
    "modules",
    "lines",
    "stacks?metric=self_cpu",
    "stacks?metric=self_device",
    "views?parts=flags,operators,operators_by_input_shape,call_stacks",
    "views?parts=flags,tensor_cores,kernels,kernels_by_op",
    "views?parts=memory",
    "memory",
    "memory/curve?device=cuda%3A0",
    "memory/blocks?device=cuda%3A0",
    "timeline/critical-path",
    "timeline/range?from=0&to=1000000000",
    "diff?base={base}",
]


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scale")
    program = folder / "make_trace"
    subprocess.run(["cc", "-O2", ROOT / "bench" / "make_trace.c", "-o", program], check=True)
    paths = [folder / f"worker{entries}.pt.trace.json" for entries in ENTRIES]
    for entries, path in zip(ENTRIES, paths, strict=True):
        subprocess.run([program, str(entries), path], check=True)
    return paths


def cost_of(*command):
    process = subprocess.Popen(list(command), stdout=subprocess.PIPE, text=True)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    assert process.returncode == 0
    return json.loads(said)["trace_events"], 1024 * usage.ru_maxrss


def test_an_event_costs_a_tenth_of_the_plugins(traces):
    """In memory, with all views made; and the text of the file is not held. `make bench` measures the time."""
    (few, few_bytes), (many, many_bytes) = (cost_of(OPSTROBE, "views", "--format", "json", path) for path in traces)
    assert many > 3 * few
    more_bytes = many_bytes - few_bytes
    assert more_bytes < PLUGIN_BYTES_AN_EVENT / 10 * (many - few)
    assert more_bytes < (traces[1].stat().st_size - traces[0].stat().st_size) / 2


def test_what_is_sent_does_not_grow_with_the_trace(traces):
    with serving(*traces) as server:
        few, many = server.traces()
        assert [few["path"], many["path"]] == [str(path) for path in traces]
        for target in ASKED:
            sizes = []
            for trace, base in (few, many), (many, few):
                reply = server.get(f"/api/v1/traces/{trace['id']}/{target.format(base=base['id'])}")
                assert reply.status == 200, (target, reply.body)
                sizes.append(len(reply.body))
            assert sizes[1] < 1.1 * sizes[0], target


def test_a_tile_of_everything_is_small(traces):
    with serving(traces[1]) as server:
        (trace,) = server.traces()
        timeline = server.json(f"traces/{trace['id']}/timeline")
        tracks = timeline["tracks"]
        tiles = get_tiles(server, trace, [f"{track['id']}.{timeline['level_max']}.0" for track in tracks])
        for track, tile in zip(tracks, tiles, strict=True):
            check_boxes(tile["boxes"])
            assert track["events"] > 50 * len(tile["boxes"])
