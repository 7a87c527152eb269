# SPDX-License-Identifier: Apache-2.0
"""`opstrobe run` records programs as users write them, and each question about them is answered by one command."""

import gzip
import json
import subprocess

import pytest
from installed import OPSTROBE

LIGHTNING = """
import lightning
import torch

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def training_step(self, batch, index):
        return self.model(batch[0]).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(24, 16)), batch_size=8)
trainer = lightning.Trainer(
    max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
)
trainer.fit(Model(), batches)
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """record(name, text, …): the trace of a program, recorded once with these options."""
    folder = tmp_path_factory.mktemp("programs")

    def run(name, text, *options):
        path = folder / f"{name}.json.gz"
        if not path.exists():
            (folder / f"{name}.py").write_text(text)
            words = [OPSTROBE, "run", *options, "-o", path, f"{name}.py"]
            process = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
            assert process.returncode == 0, process.stderr
        return path

    return run


@pytest.fixture(scope="module")
def lightning_trace(record):
    pytest.importorskip("lightning")
    return record("with_lightning", LIGHTNING, "--with-stack", "--with-modules=1", "--memory", "--record-shapes")


@pytest.fixture
def answer(opstrobe):
    """answer("views", path): what a command prints as JSON."""

    def ask(command, *words):
        process = opstrobe(command, "--format", "json", *words)
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)

    return ask


def test_modules_of_a_library_have_their_paths(answer, lightning_trace):
    """Lightning calls the method training_step, not the module."""
    table = answer("modules", lightning_trace)["table"]
    path, calls = (table["columns"].index(name) for name in ("path", "calls"))
    assert {row[path]: row[calls] for row in table["rows"]} == {
        "Model": 0,
        "model": 3,
        "model.0": 3,
        "model.1": 3,
        "model.2": 3,
    }


def test_a_library_with_many_imports_has_few_python_events(answer, lightning_trace):
    """Lightning looks at the metadata of all packages, and the optimizer imports torch._dynamo."""
    value = answer("info", lightning_trace)["value"]
    assert value["events_by_kind"]["python_function"] < 20_000
    places = [
        (line["self_us"], file["file"], line["line"])
        for file in answer("lines", lightning_trace)["files"]
        for line in file["lines"]
    ]
    assert any(file.endswith("with_lightning.py") and line == 11 for _, file, line in places)  # the model's forward


def test_steps_are_those_of_the_library_s_loop(answer, lightning_trace):
    """What the times of steps consist of: nothing of a call is in one step and something in the next."""
    steps = answer("views", lightning_trace)["steps"]
    assert (steps["from"], steps["names"]) == ("marks", ["0", "1", "2"])
    waited = steps["waited_for_cpu"]  # of so few short steps it may be unknown
    assert waited is None or 0 <= waited["ratio"] <= 1
    for row, phases in zip(steps["rows"], steps["phases"]["rows"], strict=True):
        parts = ("dataloader", "cpu_exec", "other")
        assert all(row[part] > 0 for part in parts) and sum(row[part] for part in parts) == pytest.approx(row["total"])
        passes = ("data_loading", "forward", "backward", "optimizer", "other")
        assert all(phases[each] > 0 for each in passes) and sum(phases[each] for each in passes) == pytest.approx(
            row["total"]
        )


def test_live_memory_by_owner(answer, lightning_trace):
    table = answer("memory", lightning_trace)["table"]
    held = {(row[1], row[2]): row[4] for row in table["rows"]}
    assert table["columns"][1:5] == ["held_by", "name", "line", "bytes"]
    assert sum(size for (by, _), size in held.items() if by == "category") == held["all", ""]
    assert held["category", "PARAMETER"] == 4 * (16 * 32 + 32 + 32 + 1)


def test_how_far_from_the_roof(answer, lightning_trace):
    rows = answer("roofline", "--roof", "100G,10G", lightning_trace)["rows"]
    (product,) = [row for row in rows if row["name"] == "aten::addmm"]
    assert product["count"] == 6 and product["flops"] == 3 * 2 * 8 * (16 * 32 + 32)
    assert product["roof_us"] > 0 and product["percent_of_roof"] <= 100


def test_a_program_does_not_differ_from_itself(answer, opstrobe, lightning_trace):
    found = answer("diff", lightning_trace, lightning_trace)
    assert found["steps"]["change_ratio"] == 0 and not found["steps"]["regression"]
    assert {module["name"] for module in found["modules"]} >= {"model.0", "model.0, backward"}


TWO_LAYERS = """
import torch
{before}
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    net(torch.rand(2, 4)).sum().backward()
    optimizer.step()
"""


def test_modules_of_two_programs_are_matched_by_path(answer, record):
    """The second program calls another layer first, so that the layers of the model have other numbers."""
    base = record("layers", TWO_LAYERS.format(before=""), "--with-modules")
    other = record("more_layers", TWO_LAYERS.format(before="torch.nn.Linear(4, 4)(torch.rand(1, 4))"), "--with-modules")
    names = [
        [event["name"] for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if "name" in event]
        for path in (base, other)
    ]
    assert ["nn.Module: Linear_2" in each for each in names] == [False, True]
    found = answer("diff", base, other)
    modules = {module["name"]: [module[side] is not None for side in ("left", "right")] for module in found["modules"]}
    assert {name: sides for name, sides in modules.items() if name[0] in "01"} == {
        name: [True, True] for name in ("0", "0, backward", "1", "1, backward")
    }
    paired = {
        (part["left"]["name"], part["right"]["name"])
        for part in found["children"]
        if part["left"] and part["right"] and part["left"].get("name")
    }
    assert {("Sequential", "Sequential"), ("Sequential.backward", "Sequential.backward")} <= paired


def test_what_made_this_trace(answer, lightning_trace):
    made = answer("info", lightning_trace)["value"]["recording"]
    assert made["command"].startswith("opstrobe run --with-stack --with-modules=1 ") and made["command"].endswith(
        " with_lightning.py"
    )
    assert {"torch", "python", "opstrobe", "cpu", "threads", "options"} <= set(made)
