# SPDX-License-Identifier: Apache-2.0
"""What a profile is asked to record: groups, kinds of a group, extensions, and the experimental configuration."""

import gc
import json
import logging
import pickle
import warnings

import pytest

import opstrobe
from opstrobe import ProfilerActivity, record_function

torch = pytest.importorskip("torch")
CPU, CUDA, XPU = ProfilerActivity.CPU, ProfilerActivity.CUDA, ProfilerActivity.XPU


def recorded(tmp_path, activities, **options):
    """The names in events() and the categories in the file, of an operator in a range that allocates."""
    with opstrobe.profile(activities=activities, profile_memory=True, **options) as prof:
        with record_function("range"):
            torch.ones(100)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    prof.profiler.trace.check()
    rows = json.loads(path.read_text())["traceEvents"]
    return {e.name for e in prof.events()}, {row.get("cat") for row in rows} - {None, "Trace"}


OPS = {"aten::ones", "aten::empty", "aten::fill_"}


@pytest.mark.parametrize(
    ("kinds", "names", "categories"),
    [
        (["CPU_OP"], OPS, {"cpu_op"}),
        (["USER_ANNOTATION"], {"range"}, {"user_annotation"}),
        (["CPU_OP", "USER_ANNOTATION"], OPS | {"range"}, {"cpu_op", "user_annotation"}),
        (["CPU_INSTANT_EVENT"], {"[memory]"}, {"cpu_instant_event"}),
        (["CUDA_RUNTIME"], set(), set()),
        ([], set(), set()),
        (None, OPS | {"range"}, {"cpu_op", "user_annotation", "cpu_instant_event"}),
    ],
)
def test_kinds_are_filtered_in_events_and_in_the_file(kinds, names, categories, tmp_path):
    gc.collect()
    assert recorded(tmp_path, [{CPU: kinds}]) == (names, categories)
    assert recorded(tmp_path, [{CPU: opstrobe.ProfilerActivityConfig(kinds)}]) == (names, categories)


def test_remaining_events_form_a_tree():
    with opstrobe.profile(activities=[{CPU: ["CPU_OP"]}]) as prof:
        with record_function("range"):
            torch.ones(100)
    ones = prof.events()[0]
    assert (ones.name, ones.cpu_parent) == ("aten::ones", None)
    assert [child.name for child in ones.cpu_children] == ["aten::empty", "aten::fill_"]
    everything = opstrobe.profile(activities=[CPU])
    with everything, record_function("range"):
        torch.ones(100)
    assert everything.events()[1].cpu_parent.name == "range"


@pytest.mark.parametrize(
    ("group", "kind"), [(CPU, "KERNEL"), (CPU, "cpu_op"), (CPU, "GPU_MEMCPY"), (CUDA, "CPU_OP"), (CPU, "")]
)
@pytest.mark.torch_like("2.13", "2.15")
def test_unknown_kind_is_named_at_start(group, kind):
    activities = [{CPU: [kind]}] if group is CPU else [CPU, {group: [kind]}]
    prof = opstrobe.profile(activities=activities)
    with warnings.catch_warnings(), pytest.raises(RuntimeError, match=f"'{kind}'"):
        warnings.simplefilter("ignore")
        prof.start()
    theirs = torch.profiler.profile(
        activities=[
            {torch.profiler.ProfilerActivity.CPU: [kind]}
            if group is CPU
            else {torch.profiler.ProfilerActivity.CUDA: [kind]}
        ]
        + ([] if group is CPU else [torch.profiler.ProfilerActivity.CPU])
    )
    if group is CPU:  # without a device torch does not look at the kinds of one
        with pytest.raises(RuntimeError):
            theirs.start()


def test_names_of_other_groups():
    for kind in ("COLLECTIVE_COMM", "MTIA_RUNTIME"):
        prof = opstrobe.profile(activities=[CPU, {ProfilerActivity.MTIA: [kind]}, {XPU: ["any counter"]}])
        with pytest.warns(UserWarning, match="not available"), prof:
            pass


@pytest.mark.torch_like("2.13", "2.15")
def test_filters_as_attributes():
    filtered = opstrobe.profile(activities=[CPU, {CUDA: ["CONCURRENT_KERNEL"]}])
    theirs = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, {torch.profiler.ProfilerActivity.CUDA: ["CONCURRENT_KERNEL"]}]
    )
    assert filtered.activities == {CPU, CUDA}
    assert all(activity in filtered.activities for activity in theirs.activities)
    if hasattr(theirs, "activity_filters"):
        assert filtered.activity_filters == {CUDA: {"CONCURRENT_KERNEL"}}
        assert list(filtered.activity_filters.values()) == list(theirs.activity_filters.values())
    assert filtered.activity_configs == {CUDA: opstrobe.ProfilerActivityConfig(["CONCURRENT_KERNEL"])}
    assert opstrobe.profile(activities=[{CPU: None}]).activity_filters == {}


@pytest.mark.parametrize(
    ("activities", "error"),
    [
        ([{CPU: "CPU_OP"}], TypeError),
        ([{CPU: 3}], TypeError),
        ([{"cpu": []}], TypeError),
        ([CPU, {CPU: ["CPU_OP"]}], ValueError),
        ([{CPU: ["CPU_OP"]}, {CPU: ["CPU_OP"]}], ValueError),
    ],
)
def test_wrong_filters(activities, error):
    with pytest.raises(error):
        opstrobe.profile(activities=activities)


# --- extensions of torch 2.14 and 2.15 ----------------------------------------------------------------------------------


def test_configs_are_values():
    metrics = opstrobe.PerformanceMetricsConfig(["sm__cycles_active.avg"], sampling_interval_ms=2)
    config = opstrobe.ProfilerActivityConfig(profiler_configs=[metrics, opstrobe.CuspyConfig()])
    prof = opstrobe.profile(activities=[CPU, {CUDA: config}])
    assert prof.activity_configs[CUDA] == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert hash(opstrobe.CuspyConfig(True)) == hash(opstrobe.CuspyConfig(enable_cuda_sync_events=True))


@pytest.mark.parametrize("extension", ["PerformanceMetricsConfig", "CuspyConfig"])
def test_extensions_are_refused_by_name_without_a_device(extension):
    make = getattr(opstrobe, extension)
    config = make(["sm"]) if extension == "PerformanceMetricsConfig" else make()
    wanted = opstrobe.ProfilerActivityConfig(profiler_configs=[config])
    prof = opstrobe.profile(activities=[CPU, {CUDA: wanted}])
    with pytest.raises(RuntimeError, match=f"{extension} requires an NVIDIA device, but none was found"):
        prof.start()
    with opstrobe.profile() as after:
        pass
    assert list(after.events()) == []


def test_d35_extension_in_the_wrong_group():
    for config in (opstrobe.PerformanceMetricsConfig(["sm"]), opstrobe.CuspyConfig()):
        with pytest.raises(ValueError, match="belongs to ProfilerActivity.CUDA"):
            opstrobe.profile(activities=[{CPU: opstrobe.ProfilerActivityConfig(profiler_configs=[config])}])
    alone = opstrobe.ProfilerActivityConfig(profiler_configs=[opstrobe.CuspyConfig()])
    with pytest.raises(ValueError, match="requires ProfilerActivity.CPU"):
        opstrobe.profile(activities=[{CUDA: alone}])
    with pytest.raises(TypeError, match="str"):
        opstrobe.profile(activities=[{CUDA: opstrobe.ProfilerActivityConfig(profiler_configs=["x"])}])


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (("sm__cycles_active.avg",), TypeError, "metric_names must be a list of str"),
        (([3],), TypeError, "metric_names must be a list of str"),
        (([],), ValueError, "metric_names must name metrics"),
        (([""],), ValueError, "metric_names must name metrics"),
        ((["a__b.sum"], 0), ValueError, "sampling_interval_ms must be positive, not 0"),
        ((["a__b.sum"], float("nan")), ValueError, "sampling_interval_ms must be positive, not nan"),
        ((["a__b.sum"], None, -1), ValueError, "lookback_window_ms must be positive, not -1"),
    ],
)
def test_metrics_are_checked_at_once(arguments, error, text):
    config = opstrobe.ProfilerActivityConfig(profiler_configs=[opstrobe.PerformanceMetricsConfig(*arguments)])
    with pytest.raises(error, match=f"PerformanceMetricsConfig: {text}"):
        opstrobe.profile(activities=[CPU, {CUDA: config}])


@pytest.mark.parametrize(
    ("arguments", "text"), [(dict(graph_lanes="some"), "some"), (dict(graph_lanes="all"), "cuda_graph_annotations")]
)
def test_graph_options_are_checked(arguments, text, tmp_path):
    with opstrobe.profile() as prof:
        torch.ones(1)
    with pytest.raises(ValueError, match=text):
        prof.export_chrome_trace(tmp_path / "t.json", **arguments)
    prof.export_chrome_trace(tmp_path / "t.json", cuda_graph_annotations={1: [{}]}, graph_lanes="all", default_stream=9)
    plain = tmp_path / "plain.json"
    prof.export_chrome_trace(plain)
    both = [json.loads(path.read_text()) for path in (tmp_path / "t.json", plain)]
    assert both[0]["traceEvents"] == both[1]["traceEvents"]
    assert prof.wait_for_exports() is None
    assert prof.take_pending_cuspy_export() is None


# --- use_cuda ---------------------------------------------------------------------------------------------------------


def test_d20_use_cuda_decides():
    with pytest.warns(FutureWarning, match="use_cuda"):
        with_cuda = opstrobe.profile(activities=[CPU], use_cuda=True)
    assert (with_cuda.activities, with_cuda.use_device) == ({CPU, CUDA}, "cuda")
    with pytest.warns(FutureWarning):
        without = opstrobe.profile(activities=[CPU, CUDA], use_cuda=False)
    assert (without.activities, without.use_device) == ({CPU}, None)
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="No valid"):
        opstrobe.profile(activities=[CUDA], use_cuda=False)


# --- experimental configuration ---------------------------------------------------------------------------------------

FIELDS = dict(
    profiler_metrics=["m"],
    profiler_measure_per_kernel=True,
    verbose=True,
    enable_cuda_sync_events=True,
    adjust_profiler_step=True,
    disable_external_correlation=True,
    profile_all_threads=True,
    capture_overload_names=True,
    expose_kineto_event_metadata=True,
    custom_profiler_config="c",
    adjust_timestamps=True,
    trace_only=True,
)
WARNED = {
    "profiler_metrics": (UserWarning, "profiler_metrics has no effect"),
    "profiler_measure_per_kernel": (UserWarning, "profiler_measure_per_kernel has no effect"),
    "adjust_profiler_step": (FutureWarning, "adjust_profiler_step is deprecated"),
    "custom_profiler_config": (UserWarning, "custom_profiler_config has no effect"),
}


@pytest.mark.parametrize("module", [opstrobe, torch.profiler], ids=["ours", "theirs"])
@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_used_or_reported(module, field):
    try:
        config = module._ExperimentalConfig(**{field: FIELDS[field]})
    except TypeError:
        assert module is not opstrobe  # a torch that does not have the field
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with opstrobe.profile(experimental_config=config) as prof:
            torch.ones(1)
    expected = [WARNED[field]] if field in WARNED else []
    assert [w.category for w in caught] == [category for category, _ in expected]
    for warning, (_, text) in zip(caught, expected):
        assert text in str(warning.message)
        assert warning.filename == __file__
    assert prof.experimental_config is config
    assert prof.profiler.trace.event_count > 0


def test_trace_only_profiles(tmp_path):
    config = opstrobe._ExperimentalConfig(trace_only=True)
    with opstrobe.profile(experimental_config=config) as prof:
        torch.ones(1)
    for call in (prof.events, prof.key_averages, lambda: prof.profiler.table(), lambda: prof.profiler.total_average()):
        with pytest.raises(RuntimeError, match="trace_only"):
            call()
    prof.export_chrome_trace(tmp_path / "t.json")
    assert "aten::ones" in (tmp_path / "t.json").read_text()


@pytest.mark.parametrize(
    ("text", "activities", "error"),
    [
        ('{"backend": "cuspy"}', [CPU, CUDA], RuntimeError),
        ('{"backend": "cupti_monitor"}', [CPU], RuntimeError),
        ('{"backend": "cupti_monitor"}', [CUDA], ValueError),
        ('{"cuspy_async_export": true}', [CPU], ValueError),
    ],
)
def test_backends_are_refused_by_name(text, activities, error):
    with pytest.raises(error, match="cuspy|cupti_monitor"):
        opstrobe.profile(
            activities=activities, experimental_config=opstrobe._ExperimentalConfig(custom_profiler_config=text)
        )


def test_positional_arguments_of_either_age():
    assert opstrobe._ExperimentalConfig(["m"], True, True).verbose is True
    newer = opstrobe._ExperimentalConfig(True, ["event"], False, False, False, True)
    assert (newer.verbose, newer.performance_events, newer.profile_all_threads) == (True, ["event"], True)
    assert newer.profiler_metrics == []


# --- the time limit of events() ---------------------------------------------------------------------------------------


def test_d22_a_time_limit_leaves_a_mark(caplog, tmp_path):
    with opstrobe.profile(post_processing_timeout_s=0.0) as prof:
        torch.ones(1)
    with caplog.at_level(logging.WARNING, "torch.autograd.profiler"):
        events = prof.events()
    assert (list(events), events.timed_out) == ([], True)
    (record,) = caplog.records
    assert record.name == "torch.autograd.profiler" and "post_processing_timeout_s=0.0" in record.getMessage()
    assert prof.events() is events
    prof.export_chrome_trace(tmp_path / "t.json")
    assert "aten::ones" in (tmp_path / "t.json").read_text()


@pytest.mark.torch_like("2.13", "2.15")
def test_a_time_limit_is_logged_as_torch_logs_it():
    messages = []
    logger = logging.getLogger("torch.autograd.profiler")
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    logger.addHandler(handler)
    try:
        for module in (torch.profiler, opstrobe):
            with module.profile(post_processing_timeout_s=0.0) as prof:
                torch.ones(1)
            assert list(prof.events()) == []
    finally:
        logger.removeHandler(handler)
    assert len(messages) == 2
    for message in messages:
        assert "timed out" in message and "partial results" in message


def test_d22_a_time_limit_that_is_kept_leaves_none():
    for limit in (3600, float("inf"), None):
        with opstrobe.profile(post_processing_timeout_s=limit) as prof:
            torch.ones(1)
        assert prof.events().timed_out is False
        assert [e.name for e in prof.events()] == ["aten::ones", "aten::empty", "aten::fill_"]


# --- acc_events ---------------------------------------------------------------------------------------------------------


def test_d29_cycles_follow_each_other_in_time():
    seen = []
    with opstrobe.profile(
        activities=[CPU],
        acc_events=True,
        schedule=opstrobe.schedule(wait=1, warmup=1, active=2),
        on_trace_ready=lambda p: seen.append([e.trace_name for e in p.events() if e.is_user_annotation]),
    ) as prof:
        for step in range(8):
            with record_function(f"body {step}"):
                torch.ones(step + 1)
            prof.step()
    first, second = ([name for i in steps for name in (f"ProfilerStep#{i}", f"body {i}")] for steps in ((2, 3), (6, 7)))
    assert seen == [first, first + second]
    prof.profiler.whole_trace.check()
    steps = [e for e in prof.events() if e.name == "ProfilerStep*"]
    for before, after in zip(steps, steps[1:]):
        assert before.time_range.end <= after.time_range.start
    assert [(row.key, row.count) for row in prof.key_averages() if row.key in ("aten::ones", "ProfilerStep*")] == [
        ("ProfilerStep*", 4),
        ("aten::ones", 4),
    ]


def test_acc_events_while_the_next_cycle_records(tmp_path):
    prof = opstrobe.profile(acc_events=True)
    with prof, record_function("first"):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is cleared, so nothing is said of it
        prof.start()
    assert [e.name for e in prof.events()] == ["first"]
    with record_function("second"):
        pass
    prof.stop()
    assert [e.name for e in prof.events()] == ["first", "second"]
    prof.export_chrome_trace(tmp_path / "t.json")  # the last cycle, as torch
    text = (tmp_path / "t.json").read_text()
    assert "second" in text
    assert "first" not in text


def test_without_acc_events_the_last_cycle_stays():
    prof = opstrobe.profile()
    for name in ("first", "second"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with prof, record_function(name):
                pass
    assert [e.name for e in prof.events()] == ["second"]


# --- the trace's id -----------------------------------------------------------------------------------------------------


def test_trace_ids():
    ids = iter(["one", "two", "three"])
    prof = opstrobe.profile(
        custom_trace_id_callback=lambda: next(ids), schedule=lambda _: opstrobe.ProfilerAction.RECORD_AND_SAVE
    )
    assert prof.get_trace_id() is None
    got = []
    prof.on_trace_ready = lambda p: got.append(p.get_trace_id())
    with prof:
        prof.step()
        prof.set_custom_trace_id_callback(lambda: "mine")
    assert got == ["one", "two"]
    assert json.loads(prof.profiler.trace.metadata()["trace_id"]) == "two"
    with prof:
        assert prof.get_trace_id() == "mine"
    with pytest.raises(TypeError, match="str"):
        opstrobe.profile(custom_trace_id_callback=lambda: 3).start()
