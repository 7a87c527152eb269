# SPDX-License-Identifier: Apache-2.0
"""The plugin in the real TensorBoard: the routes of its tab, and those of the plugin that was there before."""

import contextlib
import gzip
import http.client
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time
import types
import urllib.parse

import pytest
from conftest import OPSTROBE, ROOT, SHARED, TIMEOUT_S, Reply

from opstrobe.tensorboard import legacy_runs

TENSORBOARD = pathlib.Path(sys.executable).parent / "tensorboard"
TRACE = ROOT / "web" / "tests" / "traces" / "train.pt.trace.json.gz"
PREFIX = "/some/where"


class Board:
    def __init__(self, port):
        self.port = port

    def get(self, target, **headers):
        connection = http.client.HTTPConnection("localhost", self.port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", f"{PREFIX}/data/{target}", headers=headers)
            return Reply(connection.getresponse())
        finally:
            connection.close()

    def viewer(self, path, **headers):
        return self.get(f"plugin/opstrobe/viewer/{path}", **headers)

    def traces(self):
        return self.viewer("api/v1/traces").json()["traces"]

    def former(self, route, **parameters):
        reply = self.get(f"plugin/pytorch_profiler/{route}?{urllib.parse.urlencode(parameters)}")
        assert reply.status == 200, reply.body
        return reply.json()

    def wait_for(self, count):
        end = time.monotonic() + TIMEOUT_S
        while len(self.traces()) != count:
            assert time.monotonic() < end, self.traces()
            time.sleep(0.1)


@contextlib.contextmanager
def tensorboard(*words, host=("--host", "127.0.0.1")):
    """Behind a path, as it is behind a proxy."""
    command = [TENSORBOARD, *host, "--port", "0", "--path_prefix", PREFIX, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        said = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"TensorBoard \S+ at http://\S+?:(\d+)/", line):
                yield Board(int(found[1]))
                return
        raise AssertionError("".join(said))
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    for run in ("first", "second"):
        (folder / run).mkdir()
        shutil.copy(TRACE, folder / run / "host.1.pt.trace.json.gz")
    return folder


@pytest.fixture(scope="module")
def board(logs):
    with tensorboard("--logdir", logs) as running:
        yield running


def test_the_tab_is_there(board):
    listing = board.get("plugins_listing").json()
    assert listing["opstrobe"]["enabled"] and listing["opstrobe"]["tab_name"] == "Opstrobe"
    assert not listing["pytorch_profiler"]["enabled"]
    for name in ("opstrobe", "pytorch_profiler"):
        entry = board.get(f"plugin_entry.html?name={name}")
        assert entry.status == 200 and b"index.js" in entry.body
        module = board.get(f"plugin/{name}/index.js")
        assert module.headers["Content-Type"].startswith("text/javascript")
        assert b'"../opstrobe/viewer/index.html"' in module.body


def test_the_viewer_and_its_files(board):
    page = board.viewer("index.html")
    assert page.status == 200 and page.headers["Content-Type"].startswith("text/html")
    assert "frame-ancestors 'self'" in page.headers["Content-Security-Policy"]
    for name in re.findall(rb'(?:src|href)="(app\.[^"]+)"', page.body):
        reply = board.viewer(name.decode(), **{"Accept-Encoding": "gzip"})
        assert reply.status == 200 and reply.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(reply.body) == board.viewer(name.decode()).body
    assert board.viewer("nothing.js").status == 404


def test_replies_are_those_of_the_command(board):
    trace = board.traces()[0]
    views = board.viewer(f"api/v1/traces/{trace['id']}/views").body
    printed = subprocess.run([OPSTROBE, "views", "--format", "json", TRACE], capture_output=True, check=True).stdout
    assert json.loads(views) == json.loads(printed)
    timeline = board.viewer(f"api/v1/traces/{trace['id']}/timeline").json()
    tile = f"{timeline['tracks'][0]['id']}.{timeline['level_max']}.0"
    tiles = board.viewer(f"api/v1/traces/{trace['id']}/timeline/tiles?tiles={tile}")
    assert tiles.headers["Content-Type"] == "application/octet-stream" and tiles.body[:4] == b"\x01TIL"
    search = board.viewer(f"api/v1/traces/{trace['id']}/timeline/search?q=aten%3A%3Aconv%20%26")
    assert search.status == 200  # the query arrives as it was sent
    assert board.viewer("api/v1/traces/0123456789ab/views").status == 404
    assert board.viewer("api/v1/traces/..%2f..%2fetc%2fpasswd/views").status in (400, 404)


def test_source_files_are_for_this_machine(logs):
    with tensorboard("--logdir", logs, host=()) as running:
        trace = running.traces()[0]["id"]
        path = f"api/v1/traces/{trace}/source?file=train.py"
        assert running.viewer(path, Host="evil.example").status == 403
        for host in ("localhost:1", "127.0.0.1", "[::1]:2"):
            assert running.viewer(path, Host=host).status != 403


def test_a_directory_that_comes_and_grows(tmp_path):
    logs = tmp_path / "later"
    with tensorboard("--logdir", logs) as running:
        assert not running.get("plugins_listing").json()["opstrobe"]["enabled"]
        assert running.traces() == []
        assert running.viewer("api/v1/traces/0123456789ab/views").status == 404
        logs.mkdir()
        shutil.copy(TRACE, logs / "a.pt.trace.json.gz")
        running.wait_for(1)
        assert running.get("plugins_listing").json()["opstrobe"]["enabled"]
        (logs / "run").mkdir()
        shutil.copy(TRACE, logs / "run" / "b.pt.trace.json.gz")
        running.wait_for(2)


def test_many_ranks_take_no_processes(tmp_path):
    for rank in range(64):
        shutil.copy(TRACE, tmp_path / f"rank{rank}.pt.trace.json.gz")
    with tensorboard("--logdir_spec", f"job:{tmp_path}", "--load_fast", "false") as running:
        traces = running.traces()
        assert len(traces) == 64
        assert {trace["state"] for trace in traces} <= {"listed", "reading", "ready"}
        ids = ",".join(trace["id"] for trace in traces[:3])
        assert running.viewer(f"api/v1/traces/{ids}/advice").status == 200
        assert sum(trace["state"] == "listed" for trace in running.traces()) >= 60  # read on request
        assert children_of(running_pid(running)) == []


def running_pid(board):
    """Of the process that listens at the board's port."""
    port = f":{board.port:04X} 00000000:0000 0A"
    inode = next(line.split()[9] for line in open("/proc/net/tcp") if port in line)
    for folder in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if folder.readlink().name == f"socket:[{inode}]":
                return int(folder.parts[2])
    raise AssertionError("nobody listens")


def children_of(pid):
    children = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                children.append(stat.parent.name)
    return children


# --- the former plugin's routes -----------------------------------------------------------------------------------------


def test_former_lists(board, logs):
    runs = board.former("runs")
    assert [run.rsplit("/", 1)[1] for run in runs["runs"]] == ["first", "second"] and runs["loading"] is False
    run = runs["runs"][0]
    assert board.former("workers", run=run, view="Overview") == ["host"]
    assert board.former("spans", run=run, worker="host") == ["1"]
    assert board.former("views", run=run) == ["Overview", "Operator", "Trace", "Memory", "Module"]


def test_former_figures(board):
    run = board.former("runs")["runs"][0]
    printed = subprocess.run([OPSTROBE, "views", "--format", "json", TRACE], capture_output=True, check=True).stdout
    views = json.loads(printed)
    asked = {"run": run, "worker": "host"}
    overview = board.former("overview", **asked)
    assert [row[0] for row in overview["steps"]["rows"]] == views["steps"]["names"]
    assert overview["performance"][0]["value"] == round(views["steps"]["average"]["total"])
    assert [each["name"] for each in overview["performance"][0]["children"]] == ["DataLoader", "CPU Exec", "Other"]
    assert "num_workers" in overview["recommendations"]
    assert {"title": "Device Type", "value": "CPU"} in overview["environments"]
    table = board.former("operation/table", **asked, group_by="Operation")
    assert table["metadata"]["sort"] == "host_self_duration"
    expected = {row["name"]: (row["calls"], round(row["host_self"])) for row in views["operators"]["rows"]}
    assert {row["name"]: (row["calls"], row["host_self_duration"]) for row in table["data"]} == expected
    assert all(
        "input_shape" in row
        for row in board.former("operation/table", **asked, group_by="OperationAndInputShape")["data"]
    )
    pies = board.former("operation", **asked)
    most = max(views["operators"]["rows"], key=lambda row: row["host_self"])
    assert pies["device_self_time"] is None
    assert pies["host_self_time"]["rows"][0] == [most["name"], round(most["host_self"])]
    memory = board.former("memory", **asked, memory_metric="B")
    (device, rows) = next(iter(views["memory"]["stats"]["rows"].items()))
    assert [row[3] for row in memory["rows"][device]] == [row["self_increase"] for row in rows]


def test_former_figures_of_devices():
    trace = next((SHARED / "kineto-tb" / "samples-2021-06" / "resnet50_num_workers_4").glob("*.pt.trace.json.gz"))
    with tensorboard("--logdir", trace.parent) as running:
        (run,) = running.former("runs")["runs"]
        asked = {"run": run, "worker": running.former("workers", run=run, view="Kernel")[0]}
        gpu = running.former("overview", **asked)["gpu_metrics"]
        assert [each["title"] for each in gpu["data"]][0] == "GPU 0: GPU Utilization"
        kernels = running.former("kernel/table", **asked)["data"]
        total = [column["name"] for column in kernels["columns"]].index("Total Duration (us)")
        pie = running.former("kernel", **asked)["total"]["rows"]
        assert [round(row[total]) for row in kernels["rows"]] == [value for _, value in pie]
        assert sum(value for _, value in running.former("kernel/tc_pie", **asked)["total"]["rows"]) > 0
        by_operator = running.former("kernel/table", **asked, group_by="KernelNameAndOpName")["data"]
        assert "Operator" in [column["name"] for column in by_operator["columns"]]


@contextlib.contextmanager
def former_board(folder):
    """The board of a folder, and the one run in it."""
    with tensorboard("--logdir", folder) as running:
        (run,) = running.former("runs")["runs"]
        yield running, run


def expected(path):
    return json.loads((SHARED / "kineto-tb" / path).read_text())


def test_former_name_of_kernels_without_an_operator():
    def get(target):
        reply = {"traces": [{"id": "id0", "run": "r", "worker": "w", "span": None, "state": "listed"}]}
        if "/views" in target:
            rows = [{"name": "gemm", "op_name": "(no operator)"}, {"name": "relu", "op_name": "aten::relu"}]
            reply = {"kernels_by_op": {"rows": rows}}
        return types.SimpleNamespace(status=200, body=json.dumps(reply).encode())

    asked = {"run": "r", "worker": "w", "group_by": "KernelNameAndOpName"}
    found = legacy_runs.ALL_ROUTES["/kernel/table"](get, asked)["data"]
    assert found["rows"] == [["gemm", "CallTreeRoot"], ["relu", "aten::relu"]]


def test_former_spans_are_numbers():
    """Of ten cycles and more the second comes before the tenth."""
    spans = range(2, 12)
    listed = [{"id": f"id{span}", "run": "r", "worker": "w", "span": span, "state": "listed"} for span in spans]
    asked = []

    def get(target):
        asked.append(target)
        reply = {"traces": listed} if target.endswith("/traces") else {"shown": True, "overlap": {}}
        return types.SimpleNamespace(status=200, body=json.dumps(reply).encode())

    assert legacy_runs.ALL_ROUTES["/spans"](get, {"run": "r", "worker": "w"}) == [str(span) for span in spans]
    assert legacy_runs.ALL_ROUTES["/distributed/overlap"](get, {"run": "r"})["data"] == {}
    assert asked[-1] == "/api/v1/traces/id2/distributed"


def test_former_figures_of_ranks():
    with former_board(SHARED / "kineto-tb" / "synthetic" / "distributed-nccl-2x2") as (running, run):
        wanted = expected("synthetic/distributed-nccl-2x2/distributed.expected.json")
        assert running.former("workers", run=run, view="Distributed") == ["All"]
        asked = {"run": run, "worker": "All", "span": ""}
        assert running.former("distributed/gpuinfo", **asked)["data"] == wanted["gpu_info"]
        for route, name in (("overlap", "overlap"), ("waittime", "wait")):
            reply = running.former(f"distributed/{route}", **asked)
            assert len(reply["metadata"]["legends"]) == len(next(iter(wanted[name]["all"].values())))
            assert reply["data"] == {
                step: {worker: list(figures.values()) for worker, figures in workers.items()}
                for step, workers in wanted[name].items()
            }
        operations = running.former("distributed/commops", **asked)["data"]
        for worker, rows in wanted["ops"].items():
            names = [row["name"] for row in rows]
            ours = {row[0]: row for row in operations[worker]["rows"]}
            assert sorted(ours) == names
            for row in rows:  # the latency is that of kernels, for a reason
                for at, figure in ((1, "calls"), (2, "total_bytes"), (3, "avg_bytes"), (6, "data_transfer")):
                    assert ours[row["name"]][at] == row[figure]


def test_former_figures_of_two_traces():
    wanted = expected("diff/synthetic-diff-pair.expected.json")
    with former_board(SHARED / "kineto-tb" / "synthetic" / "diff-pair") as (running, run):
        found = running.former("diff", run=run, worker="base", span="", exp_run=run, exp_worker="exp", exp_span="")
    nodes = [(found, wanted["root"]), *zip(found["children"], wanted["children"], strict=True)]
    for ours, theirs in nodes:
        for side in ("left", "right"):
            assert ours[side]["name"] == theirs[side]["name"]
            assert ours[side]["duration"] == theirs[side]["host_duration"]
            for figure in ("device_duration", "total_duration"):
                assert ours[side][figure] == theirs[side][figure]
    assert [child["path"] for child in found["children"]] == [child["path"] for child in wanted["children"]]
    assert len(found["left"]["aggs"]) == wanted["root"]["left"]["distinct_ops"]


def test_former_modules():
    wanted = expected("synthetic/modules-fwd-bwd/worker0.expected.json")["modules"]
    with former_board(SHARED / "kineto-tb" / "synthetic" / "modules-fwd-bwd") as (running, run):
        asked = {"run": run, "worker": "worker0"}
        assert running.get(f"plugin/pytorch_profiler/memory_curve?{urllib.parse.urlencode(asked)}").status == 404
        found = running.former("module", **asked)
        (trace,) = running.traces()
        assert running.former("trace", **asked) == json.loads(gzip.decompress(pathlib.Path(trace["path"]).read_bytes()))

    def same(ours, theirs):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs):
            for key, name in (("name", "name"), ("occurences", "occurrences"), ("operators", "operators")):
                assert mine[key] == other[name]
            assert mine["host_duration"] == round(other["host_total"])
            assert mine["self_device_duration"] == round(other["device_self"])
            same(mine["children"], other["children"])

    same(found["data"], wanted)
    assert {column["key"] for column in found["columns"]} <= found["data"][0].keys()


def test_former_memory_curve():
    wanted = expected("recorded/cnn-full/worker0.1795219672896905048.expected.json")["memory"]["curve"]
    with former_board(SHARED / "kineto-tb" / "recorded" / "cnn-full") as (running, run):
        worker = running.former("workers", run=run, view="Memory")[0]
        found = running.former("memory_curve", run=run, worker=worker, time_metric="us", memory_metric="B")
    assert found["metadata"]["default_device"] == wanted["default_device"]
    for device, curve in wanted["devices"].items():
        rows = found["rows"][device]
        assert curve["points"] * 0.9 < len(rows) <= curve["points"]  # those that fall together are one
        assert max(row[1] for row in rows) == curve["max_allocated"]
        assert rows[0] == [0, 0, 0]  # ours begins with the recording
        for row, point in ((rows[1], curve["first"]), (rows[-1], curve["last"])):
            assert row == [pytest.approx(point[0], abs=0.1), *point[1:]]


@pytest.mark.parametrize(
    "target, status",
    [
        ("views", 400),
        ("workers?run=nowhere", 404),
        ("overview?run=nowhere", 400),
        ("overview?run=nowhere&worker=host", 404),
        ("memory?run={run}&worker=host&memory_metric=feet", 400),
        ("kernel?run={run}&worker=nobody", 404),
        ("unknown", 404),
        ("memory_curve?run={run}&worker=host&time_metric=years", 400),
        ("distributed/overlap?run={run}&worker=All", 404),
        ("diff?run={run}&worker=host", 400),
        ("diff?run={run}&worker=host&exp_run={run}&exp_worker=nobody", 404),
    ],
)
def test_former_errors(board, target, status):
    run = urllib.parse.quote(board.former("runs")["runs"][0])
    assert board.get(f"plugin/pytorch_profiler/{target.format(run=run)}").status == status
