# SPDX-License-Identifier: Apache-2.0
"""views() of profiles and files: plain dicts, the same from both."""

import pytest

import opstrobe

torch = pytest.importorskip("torch")


def test_profile_and_file_have_equal_views(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with opstrobe.profile(
        record_shapes=True,
        profile_memory=True,
        with_stack=True,
        with_modules=True,
        schedule=opstrobe.schedule(wait=0, warmup=0, active=4, repeat=1),
    ) as profile:
        for _ in range(4):
            model(torch.randn(8, 16)).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
            profile.step()
    views = profile.views()
    assert len(views["steps"]["rows"]) == 4
    apart = {"name", "total", "cpu_exec_labels", "communication_calls"}  # the last two are parts of other figures
    for step in views["steps"]["rows"]:
        assert sum(step[key] for key in step.keys() - apart) == pytest.approx(step["total"], abs=1e-6)
        assert 0 <= step["cpu_exec_labels"] <= step["cpu_exec"]
    rows = {row["name"]: row for row in views["operators"]["rows"]}
    assert rows["aten::addmm"]["calls"] == 8
    # Of those with the most self time, for the list has but thirty.
    shapes = {row["input_shape"] for row in views["operators_by_input_shape"]["top"] if row["name"] == "aten::addmm"}
    assert "[[32], [8, 16], [16, 32], [], []]" in shapes
    assert views["memory"]["records"] > 0 and views["memory"]["peaks"]["CPU"] > 0
    (root,) = [module for module in views["modules"] if module["name"].startswith("Sequential")]
    assert [child["name"].split("_")[0] for child in root["children"]] == ["Linear", "ReLU", "Linear"]
    assert root["occurrences"] == 4
    assert profile.views(rules="opstrobe") == views != profile.views(rules="tensorboard")
    assert profile.diff(profile)["steps"]["change_ratio"] == 0
    assert profile.diff(profile, rules="hta")["steps"]["left"]["steps"] == 4
    times = profile.analyze("temporal_breakdown", rules="tensorboard")["table"]
    assert times["columns"] == profile.analyze("temporal_breakdown")["table"]["columns"]
    with pytest.raises(ValueError, match="choose from opstrobe, tensorboard, hta"):
        profile.views(rules="plugin")
    profile.export_chrome_trace(str(tmp_path / "a.json"))
    again = opstrobe.read(tmp_path / "a.json").views()
    # Of the file alone: its entries, and what its times count from.
    for key in views.keys() - {"trace_events", "profiler_start_ts"}:
        assert again[key] == views[key], key


def test_views_of_a_running_profile_are_refused():
    with opstrobe.profile() as profile:
        with pytest.raises(RuntimeError):
            profile.views()
