# SPDX-License-Identifier: Apache-2.0
"""`opstrobe report --format markdown`: whatever names a trace has, they stay text. Taken apart as GitHub does it: lines
first, then cells at bars without a backslash, then code spans."""

import json
import re
import subprocess

import pytest
from installed import OPSTROBE

HOSTILE = [
    "<script>alert(1)</script>",
    "a | b | c",
    "`` ` x",
    "`",
    "![x](http://example.com/x.png)",
    "@everyone #1 http://example.com",
    "two\nlines\r\n# heading\n\n- item",
    "\\| \\` \\",
    "</table><img src=x onerror=alert(1)>",
    "\u202eevil\u2028line",
    "$\\mathrm{x}$ :tada:",
    "| |\n|---|\n| x |",
    "",
    "x" * 100_000,
]


def event(name, start, length, **more):
    row = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length, "args": {}}
    return row | more


def hostile_trace(path):
    rows = []
    for i, name in enumerate(HOSTILE):
        start = 1000 * i
        rows.append(event(f"ProfilerStep#{i}", start, 900, cat="user_annotation"))
        python = {"Python id": 3 * i + 1, "Python parent id": None}
        rows.append(event(f"{name}.py(3): {name}", start, 850, cat="python_function", args=python))
        module = {"Python id": 3 * i + 2, "Python parent id": 3 * i + 1}
        rows.append(event(f"nn.Module: {name}_0", start + 1, 840, cat="python_function", args=module))
        rows.append(
            event(name, start + 10, 700 - i, args={"External id": i + 1, "Call stack": f"{name}.py(3): {name}"})
        )
        launch = {"correlation": i + 1, "External id": i + 1}
        rows.append(event("cudaLaunchKernel", start + 20, 5, cat="cuda_runtime", args=launch))
        rows.append(
            event(name, start + 30, 600 - i, cat="kernel", pid=0, tid=7, args=launch | {"device": 0, "stream": 7})
        )
    path.write_text(json.dumps({"schemaVersion": 1, "hostname": HOSTILE[0], "traceEvents": rows}))


SPAN = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")


def without_code(line):
    return SPAN.sub("CODE", line)


def test_names_stay_text(tmp_path):
    trace = tmp_path / "trace.json"
    hostile_trace(trace)
    done = subprocess.run([OPSTROBE, "report", "--format", "markdown", trace], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    text = done.stdout.decode()  # is UTF-8
    assert "\r" not in text and len(text) < 100_000
    columns = 0
    for line in text.split("\n"):
        outside = without_code(line)
        assert not re.search(r"alert\(|example\.com|everyone|evil|mathrm|onerror", outside), line
        cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
        assert not cells or not columns or cells == columns, line
        columns = cells
        if line.startswith("#"):
            assert re.match(
                r"#+ (Profile|Advice|Not explained by a finding|[0-9]+ steps|average step|slow step |longest gaps|[0-9]+\. |GPU 0|operators|kernels|modules|most memory held)",
                line,
            ), line
    kernels = text.split("### kernels\n")[1].split("\n\nand ")[0]
    # The short name of a kernel leaves out what looks like arguments of templates: a plain word remains of the first one.
    assert len(re.findall(r"^\| (?:`|alert \|)", kernels, re.M)) == 10


@pytest.mark.parametrize("format", ["html", "markdown"])
def test_a_file_that_cannot_be_written(tmp_path, format):
    trace = tmp_path / "trace.json"
    hostile_trace(trace)
    words = [OPSTROBE, "report", "--format", format, "-o", tmp_path / "no" / "report", trace]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "no such file or directory" in done.stderr.lower()


def test_the_file_behind_a_link_is_replaced(tmp_path):
    """And keeps its mode."""
    trace = tmp_path / "trace.json"
    hostile_trace(trace)
    (tmp_path / "old.md").write_text("old")
    (tmp_path / "old.md").chmod(0o640)
    (tmp_path / "report.md").symlink_to("old.md")
    words = [OPSTROBE, "report", "--format", "markdown", "-o", tmp_path / "report.md", trace]
    subprocess.run(words, check=True, timeout=120)
    assert (tmp_path / "report.md").is_symlink() and (tmp_path / "old.md").read_text().startswith("## Profile\n")
    assert (tmp_path / "old.md").stat().st_mode & 0o777 == 0o640
    assert {path.name for path in tmp_path.iterdir()} == {"trace.json", "old.md", "report.md"}


@pytest.mark.parametrize("late", [None, 1])
def test_ranks_of_a_job_have_a_table_and_one_page(tmp_path, late):
    """The table and the late rank are those of text. The page is that of the late rank, else of the first."""
    for rank in range(2):
        here = {"ph": "X", "pid": rank, "tid": 1, "cat": "user_annotation"}
        steps = [here | {"name": f"ProfilerStep#{i}", "ts": 1000 * i, "dur": 900 + 50 * rank} for i in range(4)]
        for i in range(4) if late is not None else ():
            at = 1000 * i + (300 if rank == late else 20)
            to = 1000 * i + 800
            ids = {"External id": 20 + i, "Input Dims": [[1000]], "Input type": ["float"]}
            launch = {"External id": 20 + i, "correlation": 5 + i}
            kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
            steps += [
                event("c10d::allreduce_", at, 60, pid=rank, args={"External id": 10 + i}),
                event("nccl:all_reduce", at + 10, 40, pid=rank, cat="user_annotation", args=ids),
                event("cudaLaunchKernel", at + 20, 10, pid=rank, cat="cuda_runtime", args=launch),
                event(
                    kernel, at + 40, to - at - 40, pid=0, tid=7, cat="kernel", args=launch | {"device": 0, "stream": 7}
                ),
            ]
        trace = {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 2}, "traceEvents": steps}
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(trace))

    def printed(*words):
        return subprocess.run([OPSTROBE, *words], check=True, capture_output=True, timeout=120).stdout.decode()

    ranks, page = printed("report", "--format", "markdown", tmp_path).split("## Profile of `")
    shown = late or 0
    assert ranks.startswith("## Profile of the ranks\n\n2 ranks: ") and page.startswith(f"rank{shown}`\n\n")
    alone = printed("report", "--format", "markdown", tmp_path / f"rank{shown}.json")
    assert page.partition("## Advice")[0].partition("\n")[2] == alone.partition("## Advice")[0].partition("\n")[2]
    assert ("late rank: `rank1`" in ranks) == (late is not None)
    assert printed("advise", "--format", "markdown", tmp_path) in page
    for rank, median in enumerate(["900 µs", "950 µs"]):
        assert f"| rank{rank} | {median} |" in ranks
        assert re.search(rf"^rank{rank} +{median}", printed(tmp_path), re.M)
    assert "to see another rank than the one below: `opstrobe report --format markdown TRACE`" in ranks
    assert "Profile of the ranks" not in printed("report", "--format", "markdown", tmp_path / "rank0.json")


def test_several_traces(tmp_path):
    """Each has the page that it has alone, under its name; the advice is that on all together."""
    runs = tmp_path / "runs"
    runs.mkdir()
    files = [runs / "a.pt.trace.json", runs / "b`|<i>.pt.trace.json"]
    for file in files:
        hostile_trace(file)

    def printed(*words):
        return subprocess.run([OPSTROBE, *words], check=True, capture_output=True, timeout=120).stdout.decode()

    report = printed("report", "--format", "markdown", runs)
    assert report == printed("report", "--format", "markdown", *files)
    start, first, second = re.split(r"^## Profile of (?=`)", report, flags=re.M)
    assert not start and first.startswith("`a`\n\n") and second.startswith("`b?|<i>`\n\n")
    advice = printed("advise", "--format", "markdown", *files)
    assert report.endswith(advice)
    alone = printed("report", "--format", "markdown", files[0])
    page = alone.removeprefix("## Profile\n\n").partition("## Advice")[0]
    assert first.removeprefix("`a`\n\n") == page == second.removeprefix("`b?|<i>`\n\n").removesuffix(advice)
    (runs / "c.pt.trace.json").write_text("hello")
    broken = subprocess.run(
        [OPSTROBE, "report", "--format", "markdown", "-o", tmp_path / "report.md", *files, runs / "c.pt.trace.json"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert broken.returncode == 1 and "c.pt.trace.json" in broken.stderr and not (tmp_path / "report.md").exists()
    html = subprocess.run([OPSTROBE, "report", *files], capture_output=True, text=True, timeout=120)
    assert html.returncode == 2 and "directory" in html.stderr
