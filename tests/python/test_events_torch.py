# SPDX-License-Identifier: Apache-2.0
"""events(), key_averages() and the tables against torch's, on the same programs, attribute by attribute."""

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from programs import Programs  # noqa: E402

import opstrobe  # noqa: E402

pytestmark = pytest.mark.torch_like("2.13", "2.15")

# Memory records that no event encloses; torch leaves most of their attributes None.
SYNTHETIC = {"[memory]", "[OutOfMemory]"}


def record(module, program, **options):
    # The second run of two: what torch does once in a process is over, and sequence numbers differ by a constant.
    programs = Programs()
    run = getattr(programs, program)
    run(module.record_function)
    with module.profile(activities=[module.ProfilerActivity.CPU], **options) as profile:
        run(module.record_function)
    return profile


@pytest.fixture(scope="module", params=Programs.NAMES)
def both(request):
    options = {"record_shapes": True, "profile_memory": True, "with_flops": True}
    return record(torch.profiler, request.param, **options), record(opstrobe, request.param, **options)


@pytest.fixture(scope="module")
def pairs(both):
    theirs, ours = both[0].events(), both[1].events()
    assert [e.name for e in ours] == [e.name for e in theirs]
    return list(zip(ours, theirs))


def equal(a, b):
    """Equal, where NaN is NaN."""
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    return a == b


PLAIN = """name key overload_name thread scope use_device is_async is_remote is_legacy is_user_annotation
    is_python_function node_id count stack kernels linked_correlation_id event_metadata python_id python_parent_id
    python_module_id self_cpu_percent total_cpu_percent total_device_percent cpu_memory_usage device_memory_usage
    self_cpu_memory_usage self_device_memory_usage device_time device_time_total self_device_time_total
    device_time_str""".split()
OF_EVENTS = """trace_name fwd_thread activity_type input_shapes structured_input_shapes structured_input_strides
    input_dtypes concrete_inputs kwinputs device_resource_id flow_type flow_start""".split()


@pytest.mark.parametrize("name", PLAIN)
def test_attribute(pairs, name):
    for ours, theirs in pairs:
        assert equal(getattr(ours, name), getattr(theirs, name)), ours


@pytest.mark.parametrize("name", OF_EVENTS)
def test_attribute_of_events(pairs, name):
    for ours, theirs in pairs:
        if ours.name not in SYNTHETIC:
            assert equal(getattr(ours, name), getattr(theirs, name)), ours


@pytest.mark.torch_like("2.13")
def test_every_attribute_is_compared_or_known_to_differ(pairs):
    elsewhere = {
        "id",
        "external_id",
        "time_range",
        "sequence_nr",
        "flow_id",
        "cpu_parent",
        "cpu_children",
        "device_type",
        "device_index",
        "flops",
        "metadata_json",
        "cpu_time",
        "cpu_time_total",
        "self_cpu_time_total",
        "cpu_time_str",
        "cpu_time_total_str",
        "self_cpu_time_total_str",
        "device_time_total_str",
        "self_device_time_total_str",
        "cuda_time",
        "cuda_time_total",
        "self_cuda_time_total",
        "self_cuda_memory_usage",
        "append_cpu_child",
        "append_kernel",
        "set_cpu_parent",
    }
    ours, theirs = pairs[0]
    names = {name for name in dir(theirs) if not name.startswith("_")}
    assert names == set(PLAIN) | set(OF_EVENTS) | elsewhere
    assert names - set(dir(ours)) == {"append_cpu_child", "append_kernel", "set_cpu_parent"}
    assert set(vars(ours)) == {name for name in vars(theirs) if not name.startswith("_")}


def test_tree(pairs):
    places = {id(theirs): i for i, (_, theirs) in enumerate(pairs)}
    own_places = {ours: i for i, (ours, _) in enumerate(pairs)}
    for ours, theirs in pairs:
        parent = None if theirs.cpu_parent is None else places[id(theirs.cpu_parent)]
        assert (None if ours.cpu_parent is None else own_places[ours.cpu_parent]) == parent, ours
        assert [own_places[child] for child in ours.cpu_children] == [places[id(c)] for c in theirs.cpu_children], ours


def test_sequence_numbers(pairs):
    offsets = {theirs.sequence_nr - ours.sequence_nr for ours, theirs in pairs if theirs.sequence_nr >= 0}
    assert len(offsets) <= 1
    for ours, theirs in pairs:
        assert (ours.sequence_nr < 0) == (theirs.sequence_nr < 0)


def test_flows(pairs):
    numbers = {}
    for ours, theirs in pairs:
        if ours.name not in SYNTHETIC:
            assert (ours.flow_id == 0) == (theirs.flow_id == 0), ours
            assert numbers.setdefault(theirs.flow_id, ours.flow_id) == ours.flow_id
    assert len(set(numbers.values())) == len(numbers)


def test_flops(both, pairs):
    for ours, theirs in pairs:
        if theirs.flops:  # we know formulas that torch does not
            assert ours.flops == theirs.flops or ours.name in {"aten::add", "aten::mul"}, ours
        assert isinstance(ours.flops, int)


def test_device_types(pairs):
    for ours, theirs in pairs:
        assert ours.device_type == theirs.device_type
        assert ours.device_index == -1


def test_ids(pairs):
    ids = [ours.id for ours, _ in pairs]
    assert len(set(ids)) == len(ids)
    assert all(ours.external_id == (0 if ours.name in SYNTHETIC else ours.id) for ours, _ in pairs)


def test_times(pairs):
    for ours, theirs in pairs:
        span = ours.time_range
        assert span.start >= 0 and span.elapsed_us() == span.end - span.start >= 0
        assert ours.cpu_time_total == pytest.approx(span.elapsed_us(), abs=1e-3)
        assert ours.cpu_time == ours.cpu_time_total
        inside = sum(child.cpu_time_total for child in ours.cpu_children)
        assert ours.self_cpu_time_total == pytest.approx(ours.cpu_time_total - inside, abs=1e-3)
        for kind in ("cpu_time", "cpu_time_total", "self_cpu_time_total"):
            assert getattr(ours, kind + "_str") == torch.autograd.profiler_util._format_time(getattr(ours, kind))
        assert type(ours.cpu_time_total) is type(theirs.cpu_time_total)
    # Torch's events and ours took about as long.
    total, their_total = (sum(e.self_cpu_time_total for e in column) for column in zip(*pairs))
    assert 0.001 < total / their_total < 1000


def test_repr(pairs):
    def words(event):
        return [word.split("=")[0] for word in repr(event).replace("[", " ").split() if "=" in word]

    for ours, theirs in pairs:
        if "=" not in ours.name and " " not in ours.name:
            assert words(ours) == words(theirs)


# --- averages -----------------------------------------------------------------------------------------------------------

GROUPINGS = [
    {},
    {"group_by_input_shape": True},
    {"group_by_stack_n": 5},
    {"group_by_overload_name": True},
    {"group_by_input_shape": True, "group_by_overload_name": True},
]
SUMS = """count cpu_memory_usage device_memory_usage self_cpu_memory_usage self_device_memory_usage device_time_total
    self_device_time_total device_time""".split()
DESCRIPTION = """key node_id is_async is_remote use_device stack scope device_type is_legacy is_user_annotation
    overload_name""".split()


@pytest.mark.parametrize("grouping", GROUPINGS, ids=lambda grouping: "+".join(grouping) or "name")
def test_averages(both, grouping):
    theirs, ours = (profile.key_averages(**grouping) for profile in both)
    if grouping.get("group_by_input_shape"):
        # Torch shows a list of tensors as [] and so merges what we distinguish: fold ours again.
        def shapes(average):
            return [shape if not shape or isinstance(shape[0], int) else [] for shape in average.input_shapes]

        folded = {}
        for average in ours:
            folded.setdefault((average.key, average.is_user_annotation, str(shapes(average))), []).append(average)
        assert [key for key, _, _ in folded] == [average.key for average in theirs]
        assert [shape for _, _, shape in folded] == [str(average.input_shapes) for average in theirs]
        groups = list(folded.values())
    else:
        assert [average.key for average in ours] == [average.key for average in theirs]
        assert {str(average.input_shapes) for average in ours} <= {""}
        groups = [[average] for average in ours]
    for group, their_average in zip(groups, theirs):
        for name in SUMS:
            assert sum(getattr(average, name) for average in group) == getattr(their_average, name), (group, name)
        for name, average in itertools.product(DESCRIPTION, group):
            assert getattr(average, name) == getattr(their_average, name), (average, name)
        assert set(vars(group[0])) == set(vars(their_average))


def test_averages_are_sums_of_events(both):
    events = both[1].events()
    for average in both[1].key_averages():
        group = [event for event in events if event.key == average.key]
        group = [event for event in group if event.is_user_annotation == average.is_user_annotation]
        assert average.count == len(group)
        for name in ("cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "flops"):
            assert getattr(average, name) == pytest.approx(sum(getattr(e, name) for e in group), abs=1e-6), average
        assert average.cpu_time == pytest.approx(average.cpu_time_total / average.count)
        assert average.cpu_parent == group[0].cpu_parent and average.cpu_children == group[0].cpu_children


def test_total_average(both):
    theirs, ours = (profile.events().total_average() for profile in both)
    for name in ("key", *SUMS):
        assert getattr(ours, name) == getattr(theirs, name), name
    events = both[1].events()
    assert ours.self_cpu_time_total == pytest.approx(sum(e.self_cpu_time_total for e in events))
    assert ours.self_cpu_time_total == pytest.approx(events.self_cpu_time_total)
    assert both[1].key_averages().self_cpu_time_total == pytest.approx(events.self_cpu_time_total)
    again = both[1].key_averages().total_average()
    assert (again.count, again.flops) == (ours.count, ours.flops)


# --- tables -------------------------------------------------------------------------------------------------------------

TABLES = [
    {},
    {"sort_by": "cpu_time_total", "row_limit": 5},
    {"sort_by": "self_cpu_memory_usage", "row_limit": -1},
    {"sort_by": "count", "max_name_column_width": 20},
    {"sort_by": "key", "row_limit": -1, "time_unit": "ms"},
    {"sort_by": "cuda_time_total", "header": "a header", "time_unit": "s"},
    {"sort_by": "flops", "max_shapes_column_width": 12, "row_limit": 0},
    {"top_level_events_only": True, "row_limit": -1},
    {"sort_by": "cpu_time", "time_unit": "nonsense"},
]


def their_table(events, profile_memory, with_flops, **arguments):
    """What torch's own code makes of our events; a tab in a name is a dot, as in all our text output."""
    theirs = torch.autograd.profiler_util.EventList(
        list(events), use_device=None, profile_memory=profile_memory, with_flops=with_flops
    )
    return theirs.table(**arguments).replace("\t", ".")


@pytest.mark.parametrize("arguments", TABLES, ids=lambda arguments: "-".join(map(str, arguments.values())) or "plain")
@pytest.mark.parametrize("shown", ["events", "averages", "shapes", "overloads"])
def test_table(both, shown, arguments):
    profile = both[1]
    ours = {
        "events": profile.events,
        "averages": profile.key_averages,
        "shapes": lambda: profile.key_averages(group_by_input_shape=True),
        "overloads": lambda: profile.key_averages(group_by_overload_name=True),
    }[shown]()
    if shown == "events":
        # Shapes in the table are those with lists of tensors: not torch's events() attribute of that name.
        ours = ours.key_averages() if any(e.input_shapes != e.structured_input_shapes for e in ours) else ours
    assert ours.table(**arguments) == their_table(ours, True, True, **arguments)


def test_table_without_extras(both):
    ours = opstrobe.EventList(both[1].events())
    averages = ours.key_averages()
    assert "Mem" not in averages.table() and "FLOPs" not in averages.table()
    assert averages.table() == their_table(averages, False, False)


def test_overloads_and_shapes_off():
    theirs, ours = (record(module, "training") for module in (torch.profiler, opstrobe))
    assert [e.input_shapes for e in ours.events()] == [e.input_shapes for e in theirs.events()]
    assert not any(e.input_dtypes or e.concrete_inputs or e.flops or e.cpu_memory_usage for e in ours.events())
    theirs, ours = (
        [(e.name, e.overload_name) for e in record(module, "training", experimental_config=config).events()]
        for module in (torch.profiler, opstrobe)
        for config in [module._ExperimentalConfig(capture_overload_names=True)]
    )
    assert ours == theirs and len({overload for _, overload in ours}) > 3
