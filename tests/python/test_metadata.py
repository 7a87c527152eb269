# SPDX-License-Identifier: Apache-2.0
"""Metadata at any time, validated, and whole in the file whatever its text."""

import json
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import opstrobe
from opstrobe import record_function
from opstrobe.recording import metadata


def shown(text):
    """What a file shows of a text: lone surrogates, which no strict JSON reader takes, are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def written(prof, path):
    prof.export_chrome_trace(path)
    return json.loads(path.read_text(encoding="utf-8"))


def test_at_any_time(tmp_path):
    def handler(prof):
        prof.add_metadata("in the handler", "d")

    prof = opstrobe.profile(on_trace_ready=handler)
    prof.preset_metadata_json("preset", "[1]")
    prof.add_metadata("before start", "a")
    with prof:
        prof.add_metadata("between", "b")
        prof.add_metadata_json("json between", '{"x": [1, null, "ü"]}')
    prof.add_metadata("after stop", "c")
    prof.add_metadata("between", "again")
    found = written(prof, tmp_path / "t.json")
    expected = {
        "preset": [1],
        "before start": "a",
        "between": "again",
        "json between": {"x": [1, None, "ü"]},
        "in the handler": "d",
        "after stop": "c",
    }
    assert {key: found[key] for key in expected} == expected


@pytest.mark.filterwarnings("ignore:Profiler clears")
def test_every_cycle_has_it(tmp_path):
    found = []

    def handler(prof):
        found.append(written(prof, tmp_path / "t.json"))

    schedule = opstrobe.schedule(wait=0, warmup=1, active=1)
    with opstrobe.profile(schedule=schedule, on_trace_ready=handler) as prof:
        prof.add_metadata("early", "x")
        for _ in range(4):
            prof.step()
    assert [trace["early"] for trace in found] == ["x", "x"]
    with opstrobe.profile() as prof:
        pass
    assert "early" not in written(prof, tmp_path / "t.json")


@pytest.mark.parametrize("method", ["add_metadata", "add_metadata_json", "preset_metadata_json"])
@pytest.mark.parametrize("arguments", [("k", 3), (3, "1"), (b"k", "1"), (None, None), ("k", None)])
def test_wrong_types(method, arguments):
    with pytest.raises(TypeError, match="str"):
        getattr(opstrobe.profile(), method)(*arguments)


INVALID = [
    "",
    " ",
    "{",
    '{"a": 1,}',
    "[1 2]",
    "nul",
    "NaN",
    "Infinity",
    "'a'",
    '"a',
    '"\x01"',
    "1 2",
    "01",
    "[" * 100_000,
]


@pytest.mark.parametrize("text", INVALID, ids=lambda text: ascii(text[:12]))
@pytest.mark.parametrize("method", ["add_metadata_json", "preset_metadata_json"])
def test_invalid_json(method, text, tmp_path):
    prof = opstrobe.profile()
    with pytest.raises(ValueError, match="'k'.*byte"):
        getattr(prof, method)("k", text)
    with prof:
        with pytest.raises(ValueError):
            getattr(prof, method)("k", text)
    assert "k" not in written(prof, tmp_path / "t.json")


@pytest.mark.parametrize("key", ["traceEvents", "schemaVersion", "traceName"])
def test_keys_of_the_files_own(key):
    for method in ("add_metadata", "add_metadata_json", "preset_metadata_json"):
        with pytest.raises(ValueError, match=key):
            getattr(opstrobe.profile(), method)(key, "1")


def test_flags_and_ids(tmp_path):
    with opstrobe.profile(record_shapes=True, profile_memory=True, with_flops=True) as prof:
        assert prof.get_trace_id() is not None
    found = written(prof, tmp_path / "t.json")
    assert (found["record_shapes"], found["profile_memory"], found["with_flops"]) == (1, 1, 1)
    assert "with_stack" not in found
    assert found["trace_id"] == prof.get_trace_id()
    assert len(found["trace_id"]) == 32 and int(found["trace_id"], 16) and found["trace_id"].isupper()


def test_custom_trace_id(tmp_path):
    ids = iter(["one", 'two "2"', "three"])
    prof = opstrobe.profile(custom_trace_id_callback=lambda: next(ids))
    assert prof.get_trace_id() is None
    with prof:
        assert prof.get_trace_id() == "one"
    with prof:
        pass
    assert written(prof, tmp_path / "t.json")["trace_id"] == prof.get_trace_id() == 'two "2"'
    prof.set_custom_trace_id_callback(lambda: "new")
    with prof:
        pass
    assert prof.get_trace_id() == "new"


def test_job(tmp_path, monkeypatch):
    monkeypatch.setenv("PT_PROFILER_JOB_NAME", 'a "job"')
    monkeypatch.setenv("PT_PROFILER_JOB_VERSION", "3")
    monkeypatch.delenv("PT_PROFILER_JOB_ATTEMPT_INDEX", raising=False)
    with opstrobe.profile() as prof:
        pass
    found = written(prof, tmp_path / "t.json")
    assert (found["PT_PROFILER_JOB_NAME"], found["PT_PROFILER_JOB_VERSION"]) == ('a "job"', "3")
    assert "PT_PROFILER_JOB_ATTEMPT_INDEX" not in found


@pytest.mark.parametrize(
    ("variables", "job"),
    [
        ({"TORCHELASTIC_RUN_ID": "run-7", "SLURM_JOB_ID": "3"}, "run-7"),
        ({"TORCHELASTIC_RUN_ID": "none", "SLURM_JOB_ID": "3", "SLURM_STEP_ID": "0"}, "3.0"),
        ({"TORCHELASTIC_RUN_ID": "none"}, None),
    ],
)
def test_job_of_several_processes(variables, job, monkeypatch):
    for name in ("TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "SLURM_STEP_ID", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert "job" not in metadata.of_environment()  # a single process
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert metadata.of_environment().get("job") == (None if job is None else json.dumps(job))


def test_distributed():
    pytest.importorskip("torch")
    code = (
        "import json, torch.distributed as dist, opstrobe, torch.profiler\n"
        "store = dist.HashStore()\n"
        "dist.init_process_group('gloo', store=store, rank=0, world_size=1)\n"
        "dist.new_group([0])\n"
        "with opstrobe.profile() as p: pass\n"
        "found = json.loads(p.profiler.trace.metadata()['distributedInfo'])\n"
        "assert found == torch.profiler.profile()._get_distributed_info(), found\n"
        "assert found['backend'] == 'gloo' and found['pg_count'] == 2\n"
        "dist.destroy_process_group()\n"
        "with opstrobe.profile() as p: pass\n"
        "assert 'distributedInfo' not in p.profiler.trace.metadata()\n"
    )
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr


# --- hostile text -------------------------------------------------------------------------------------------------------

text = st.text(st.characters(), max_size=60)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=10,
)
reused_directory = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def own_keys(entries):
    reserved = {
        "schemaVersion",
        "deviceProperties",
        "displayTimeUnit",
        "baseTimeNanoseconds",
        "traceEvents",
        "traceName",
        "trace_id",
        "host_name",
        "distributedInfo",
    }
    return {key: value for key, value in entries.items() if key not in reserved}


@reused_directory
@given(texts=st.dictionaries(text, text, max_size=8), values=st.dictionaries(text, json_values, max_size=4))
def test_any_text(texts, values, tmp_path):
    values = {key: value for key, value in own_keys(values).items() if key not in texts}
    with opstrobe.profile() as prof:
        for key, value in own_keys(texts).items():
            prof.add_metadata(key, value)
        for i, (key, value) in enumerate(values.items()):
            prof.add_metadata_json(key, json.dumps(value, ensure_ascii=i % 2 == 0).encode("utf-8", "replace").decode())
    found = written(prof, tmp_path / "t.json")
    for key, value in own_keys(texts).items():
        assert found[shown(key)] == shown(value)
    assert {shown(key) for key in values} <= set(found)
    for i, (key, value) in enumerate(values.items()):
        if i % 2 == 0:
            assert found[shown(key)] == value


@reused_directory
@given(names=st.lists(text, max_size=12))
def test_any_name_in_the_file(names, tmp_path):
    with opstrobe.profile() as prof:
        for name in names:
            with record_function(name):
                pass
    rows = written(prof, tmp_path / "t.json")["traceEvents"]
    assert [row["name"] for row in rows if row.get("cat") == "user_annotation"] == [*map(shown, names)]


@pytest.mark.parametrize(
    "name", ["n" * 10_000_000, "\ud800", 'a"b\\c\0\x7f\n', "\udcff\udc80"], ids=lambda n: ascii(n[:9])
)
@pytest.mark.parametrize("end", ["json", "json.gz"])
def test_hostile_name_in_the_file(name, end, tmp_path):
    import gzip

    with opstrobe.profile() as prof, record_function(name, "args of it"):
        pass
    path = tmp_path / f"t.{end}"
    prof.export_chrome_trace(path)
    data = path.read_bytes()
    trace = json.loads(gzip.decompress(data) if end == "json.gz" else data)
    assert [row["name"] for row in trace["traceEvents"] if row.get("cat") == "user_annotation"] == [shown(name)]
