# SPDX-License-Identifier: Apache-2.0
"""The roof of this machine, and operators of real recordings against it."""

import json
import subprocess
import sys

import pytest
import torch

import opstrobe
from opstrobe import roof
from opstrobe.recording import roof as kept


@pytest.fixture(scope="module")
def measured():
    """The roof of this machine, from shorter runs."""
    patch = pytest.MonkeyPatch()
    patch.setattr(roof, "_PRODUCT_SECONDS", 0.2)
    patch.setattr(roof, "_SIDES", (256, 512))
    patch.setattr(roof, "_LEVEL_SECONDS", 0.02)
    patch.setattr(roof, "_LEVELS", (2**15, 2**19, 2**23, 2**26))
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # threads that wait for one another stand still on a busy machine
    yield roof.measure()
    assert torch.get_num_threads() == 1
    torch.set_num_threads(before)
    patch.undo()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "opstrobe" / "roof"


def record(program):
    with opstrobe.profile(record_shapes=True) as prof:
        program()
    return prof


def rows_of(prof, **options):
    return {row["name"]: row for row in prof.roofline(**options).as_dict()["rows"]}


def test_what_is_measured(measured):
    assert set(measured["flops"]) == {"float32", "float64", "bfloat16", "float16"}
    assert all(value > 1e6 for value in measured["flops"].values())
    sizes, speeds = zip(*measured["bandwidth"], strict=True)
    assert list(sizes) == sorted(sizes) and all(speed > 1e6 for speed in speeds)
    assert measured["threads"] == torch.get_num_threads() and measured["call_us"] > 0
    json.dumps(measured)


def test_threads_are_those_asked_for(monkeypatch):
    seen = []
    monkeypatch.setattr(
        roof, "_product_flops", lambda torch, dtype, share, end: float(seen.append(torch.get_num_threads()) or 1)
    )
    monkeypatch.setattr(roof, "_bandwidth", lambda torch, size, share, end: 1.0)
    before = torch.get_num_threads()
    assert roof.measure(1)["threads"] == 1
    assert set(seen) == {1} and torch.get_num_threads() == before


def test_a_model_against_the_roof(measured):
    left, right = torch.randn(512, 512), torch.randn(512, 512)
    big = torch.randn(4 << 20)

    def program():
        for _ in range(10):
            left @ right
            torch.relu(big)

    prof = record(program)
    rows = rows_of(prof, roof=measured)
    product, relu = rows["aten::mm"], rows["aten::relu"]
    assert product["count"] == 10
    assert product["flops"] == 10 * 2 * 512**3 and product["bytes"] == 10 * 3 * 2**20
    assert 0 < product["percent_of_roof"] <= 110, measured
    assert product["bound"] == "compute"
    assert relu["bytes"] == 10 * 2 * 4 * (4 << 20) and relu["bound"] == "memory" and relu["percent_of_roof"] > 0
    for row in rows.values():
        assert row["avoidable_us"] == pytest.approx(max(0, row["time_us"] - row["roof_us"]), abs=0.002)
    # The same from a file.
    assert rows_of(prof) != rows


def test_a_training_step_is_known():
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10)
    )
    images, labels = torch.randn(4, 3, 16, 16), torch.arange(4)
    model(images)
    optimizer = torch.optim.AdamW(model.parameters())

    def program():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()

    found = record(program).roofline(roof=(1e12, 1e11)).as_dict()
    names = {row["name"] for row in found["rows"]}
    assert names >= {"aten::conv2d", "aten::addmm", "aten::native_batch_norm", "aten::convolution_backward", "aten::mm",
                     "aten::_log_softmax", "aten::native_batch_norm_backward"}  # fmt: skip
    assert found["cpu"]["source"] == "given" and found["gpu"] is None
    assert 0 < found["known_us"] <= found["total_us"]
    assert found["distinct"] == len(found["rows"])


@pytest.mark.usefixtures("cache")  # without a roof
def test_text_forms_and_misuse():
    prof = record(lambda: torch.ones(8, 8) @ torch.ones(8, 8))
    text = str(prof.roofline())
    assert "aten::mm" in text and "not known" in text
    shapes = prof.roofline("shape").as_dict(top=1)
    assert len(shapes["rows"]) == 1 and shapes["distinct"] >= 2
    assert any(row["input_shapes"] == "[[8, 8], [8, 8]]" for row in prof.roofline("shape").as_dict()["rows"])
    assert prof.roofline("kernel").as_dict()["rows"] == []
    with pytest.raises(ValueError, match="choose from operator, shape, kernel, line, module"):
        prof.roofline("file")
    lines = prof.roofline("line").as_dict()["rows"]
    assert len(lines) < shapes["distinct"] and sum(row["count"] for row in lines) >= 2
    with pytest.raises(ValueError, match="invalid roof 'fast'"):
        prof.roofline(roof="fast")


def test_recordings_keep_the_roof_that_was_measured(cache, measured, tmp_path):
    def recorded():
        record(lambda: torch.ones(64, 64) @ torch.ones(64, 64)).export_chrome_trace(tmp_path / "t.json")
        return json.loads((tmp_path / "t.json").read_text())

    assert "roof" not in recorded()
    path = kept.store(measured)
    assert path.parent == cache
    assert recorded()["roof"] == measured
    found = opstrobe.read(tmp_path / "t.json").roofline().as_dict()
    assert found["cpu"]["source"] == "measured" and found["cpu"]["name"] == measured["name"]
    assert found["cpu"]["flops"]["float32"] == measured["flops"]["float32"]
    # Another number of threads is another roof, and a file that is none is none.
    assert kept.cache_path(measured["threads"] + 1, measured["torch"]) != path
    path.write_text("[1")
    assert "roof" not in recorded()
    path.write_text("[1]")
    assert "roof" not in recorded()


def test_a_busy_machine_keeps_the_best_figures(cache, measured):
    assert kept.best_of(measured) == measured
    kept.store({**measured, "waited_for_cpu": 0.7})
    assert kept.best_of({**measured, "waited_for_cpu": 0.0, "call_us": 1e9})["call_us"] == 1e9  # it was quiet
    low = {
        **measured,
        "waited_for_cpu": 0.8,
        "flops": dict.fromkeys(measured["flops"], 1.0),
        "bandwidth": [[size, 2.0 * speed] for size, speed in measured["bandwidth"]],
        "call_us": 1e9,
    }
    best = kept.best_of(low)
    assert best["flops"] == measured["flops"] and best["call_us"] == measured["call_us"]
    assert best["bandwidth"] == low["bandwidth"]
    assert best["waited_for_cpu"] == 0.7 and best["tries"] == measured["tries"] + 1


def test_a_late_measurement_runs_each_operator_once(monkeypatch):
    monkeypatch.setattr(roof, "_SIDES", (64,))
    monkeypatch.setattr(roof, "_LEVELS", (2**15,))
    runs = []
    monkeypatch.setattr(torch, "mm", lambda left, right, out: runs.append(out))
    assert roof.measure(1, roof._BRIEF._replace(seconds_max=0.0))["bandwidth"][0][1] > 0
    assert len(runs) == 2 * 4  # with one to warm up, for each type


def test_a_roof_of_a_busy_machine_is_measured_again_a_few_times(cache, measured):
    assert kept.is_wanted()
    for waited, tries, wanted in ((0.05, 1, False), (0.7, 1, True), (0.7, 2, True), (0.7, 3, False)):
        kept.store({**measured, "waited_for_cpu": waited, "tries": tries})
        assert kept.is_wanted() == wanted


def test_the_command(cache, tmp_path):
    program = (
        "import sys; from opstrobe import roof; roof._SIDES = (64,); roof._LEVELS = (2**15,); "
        "roof._PRODUCT_SECONDS = roof._LEVEL_SECONDS = 0.01; sys.argv[1:] = {}; roof.main()"
    )

    def call(*words):
        done = subprocess.run(
            [sys.executable, "-c", program.format(list(words))], capture_output=True, text=True, timeout=120
        )
        return done.returncode, done.stdout, done.stderr

    code, text, error = call("--threads", "1", "--output", str(tmp_path / "roof.json"))
    assert code == 0, error
    assert "1 thread, torch" in text and "float32" in text and "kept for recordings in" in text
    assert json.loads((tmp_path / "roof.json").read_text())["threads"] == 1
    assert len(list(cache.iterdir())) == 1
    code, text, error = call("--format", "json", "--threads", "1")
    assert code == 0 and json.loads(text)["threads"] == 1
    code, _, error = call("--threads", "none")
    assert code == 2 and "'none' is not a number of threads" in error
    code, _, error = call("--output", str(tmp_path / "no" / "roof.json"))
    assert code == 1 and "cannot write" in error
