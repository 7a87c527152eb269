# SPDX-License-Identifier: Apache-2.0
"""Tables byte for byte as torch makes them: random rows and options, torch's own EventList next to ours.

Takes the path of table_filter. Times are multiples of 125 ns, which binary fractions of µs hold exactly, so that sums in
any order agree to the last digit.
"""

import sys

from inputs import Filter, input_list, scalar, skip, tensor

try:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
    from torch.autograd.profiler_util import DeviceType, EventList, FunctionEventAvg
except ImportError as missing:
    skip(missing)

FILTER = Filter(sys.argv[1])
DEVICE_TYPES = list(DeviceType.__members__.values())

times = st.one_of(
    st.just(0),
    st.integers(0, 80),
    st.integers(7990, 8010),
    st.integers(0, 10**5),
    st.integers(0, 10**11),
    st.integers(-(10**4), 10**8),
    st.integers(7_999_980, 8_000_020),
).map(lambda n: n * 125)
edges = [sign * (1024**power + more) for sign in (1, -1) for power in range(5) for more in (-1, 0, 1)]
bytes_ = st.one_of(
    st.just(0),
    st.sampled_from(edges),
    st.integers(-2000, 2000),
    st.integers(-(2**21), 2**21),
    st.integers(-(2**62), 2**62),
)
flops = st.one_of(
    st.just(0),
    st.integers(1, 10),
    st.integers(900, 1100),
    st.integers(999_990, 1_000_010),
    st.integers(0, 2**62),
    st.integers(0, 18).map(lambda n: 10**n),
    st.integers(1, 18).map(lambda n: 10**n - 1),
)
# Without what a terminal would act on, such as escape sequences: our table shows a dot for it, torch's the character.
active = "".join(map(chr, [0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]))
letters = st.characters(exclude_categories=("Cc", "Cs"), exclude_characters=active) | st.sampled_from(
    'aé"\\ \U0001f600'
)
names = st.one_of(st.text(letters, min_size=0, max_size=12), st.text("ab:", min_size=0, max_size=70))
frames = st.text(letters, min_size=1, max_size=12) | st.text("ab:", min_size=1, max_size=30)
stacks = st.lists(frames.map(lambda frame: frame.replace(";", "_")), max_size=4)
shapes = st.lists(st.one_of(st.none(), st.lists(st.integers(0, 2**40) | st.integers(0, 9), max_size=5)), max_size=6)
limits = st.one_of(st.integers(0, 12), st.integers(0, 100), st.just(2**40))
ATTRIBUTES = [
    "cpu_time",
    "cuda_time",
    "xpu_time",
    "cpu_time_total",
    "cuda_time_total",
    "xpu_time_total",
    "cpu_memory_usage",
    "cuda_memory_usage",
    "xpu_memory_usage",
    "self_cpu_memory_usage",
    "self_cuda_memory_usage",
    "self_xpu_memory_usage",
    "count",
    "self_cpu_time_total",
    "self_cuda_time_total",
    "device_time",
    "self_privateuse1_time_total",
    "flops",
    "key",
    "is_async",
    "is_legacy",
    "is_remote",
    "is_user_annotation",
    "scope",
    "node_id",
    "overload_name",
    "input_shapes",
    "stack",
    "device_type",
    "cpu_time_str",
    "cpu_time_total_str",
    "self_cpu_time_total_str",
    "device_time_str",
    "device_time_total_str",
    "self_cuda_time_total_str",
    "",
    "name",
    "cpu",
    "cuda",
    "self_cpu_time_totals",
    "a" * 200,
    "cuda" * 30,
]

rows = st.fixed_dictionaries(
    {
        "name": names,
        "overload": st.none() | st.just("") | names,
        "shapes": st.none() | shapes,
        "times": st.tuples(times, times, times, times),
        "memory": st.tuples(bytes_, bytes_, bytes_, bytes_),
        "flops": flops,
        "count": st.integers(1, 9) | st.integers(1, 10**12),
        "device_type": st.just(DeviceType.CPU) | st.sampled_from(DEVICE_TYPES),
        "scope": st.integers(0, 9),
        "is_async": st.booleans(),
        "is_user_annotation": st.booleans(),
        "is_legacy": st.just(False) | st.booleans(),
        "has_parent": st.booleans(),
        "stack": stacks,
        "hidden_frames": st.lists(st.just("outer"), max_size=2),
    }
)
tables = st.fixed_dictionaries(
    {
        "sort_by": st.none() | st.sampled_from(ATTRIBUTES),
        "row_limit": st.sampled_from([-1, 0, 1, 2, 100, -7]),
        "max_src_column_width": limits,
        "max_name_column_width": limits,
        "max_shapes_column_width": limits,
        "header": st.none() | st.text(letters, max_size=20),
        "top_level_events_only": st.booleans(),
        "time_unit": st.sampled_from([None, "s", "ms", "us", "h", ""]),
        "profile_memory": st.booleans(),
        "with_flops": st.booleans(),
        "use_device": st.sampled_from([None, "cuda", "xpu", "privateuseone", "mtia", "Hpu"]),
    }
)
# Whether the table as a whole has these; a random row seldom lacks them.
parts = st.fixed_dictionaries(
    {
        name: st.booleans()
        for name in ["device_times", "device_memory", "overloads", "shapes", "flops", "stacks", "only_cpu", "zero"]
    }
)


def shown(row, part, use_device):
    """The row with what the table is to lack taken out."""
    row = dict(row)
    cpu, self_cpu, device, self_device = row["times"]
    if part["zero"]:
        cpu = self_cpu = 0
    if not part["device_times"] or use_device is None:
        device = self_device = 0
    row["times"] = cpu, self_cpu, device, self_device
    if not part["device_memory"]:
        row["memory"] = row["memory"][:2] + (0, 0)
    if not part["overloads"]:
        row["overload"] = None
    if not part["shapes"]:
        row["shapes"] = None
    if part["stacks"] or not part["flops"]:  # where torch shows both, each is in the other's column
        row["flops"] = 0
    if not part["stacks"]:
        row["stack"] = []
    if part["only_cpu"]:
        row["device_type"] = DeviceType.CPU
    return row


def torch_row(row, use_device):
    average = FunctionEventAvg()
    average.key = row["name"]
    average.count = row["count"]
    average.node_id = -1
    average.use_device = use_device
    average.overload_name = row["overload"] or ""
    average.input_shapes = [sizes or [] for sizes in row["shapes"] or []]
    average.stack = row["stack"]
    average.cpu_time_total, average.self_cpu_time_total, average.device_time_total, average.self_device_time_total = (
        time / 1000 for time in row["times"]
    )
    (
        average.cpu_memory_usage,
        average.self_cpu_memory_usage,
        average.device_memory_usage,
        average.self_device_memory_usage,
    ) = row["memory"]
    for name in ["flops", "device_type", "scope", "is_async", "is_user_annotation", "is_legacy"]:
        setattr(average, name, row[name])
    average.cpu_parent = FunctionEventAvg() if row["has_parent"] else None
    return average


def from_torch(rows, options):
    """The text, or the kind of error as ours names it; None where torch cannot and ours can."""
    rows = [torch_row(row, options["use_device"]) for row in rows]
    table = EventList(rows, **{name: options[name] for name in ["use_device", "profile_memory", "with_flops"]})
    arguments = {
        name: value for name, value in options.items() if name not in ["use_device", "profile_memory", "with_flops"]
    }
    try:
        return "OK", table.table(**arguments)
    except AssertionError:
        return None
    except AttributeError:
        return "UNSUPPORTED", None
    except TypeError:
        return "INVALID", None
    except RuntimeError:
        return "STATE", None


def from_ours(rows, options):
    words = [
        "T",
        *(
            options[name]
            for name in [
                "sort_by",
                "row_limit",
                "max_src_column_width",
                "max_name_column_width",
                "max_shapes_column_width",
                "header",
                "top_level_events_only",
                "time_unit",
                "profile_memory",
                "with_flops",
                "use_device",
            ]
        ),
        len(rows),
    ]
    for row in rows:
        inputs = None
        if row["shapes"] is not None:
            inputs = input_list([scalar(None) if sizes is None else tensor(sizes) for sizes in row["shapes"]])
        words += [
            0,
            row["name"],
            row["overload"],
            inputs,
            *row["times"],
            *row["memory"],
            row["flops"],
            row["count"],
            row["device_type"].value,
            row["scope"],
            row["is_async"],
            row["is_user_annotation"],
            row["is_legacy"],
            row["has_parent"],
            len(row["stack"]),
            "".join(frame + ";" for frame in row["stack"] + row["hidden_frames"]) or None,
        ]
    status, text = FILTER.ask(words)
    return status, text.decode("utf-8", "surrogatepass") if status == "OK" else None


seen = {"OK": 0, "UNSUPPORTED": 0, "INVALID": 0, None: 0}


@settings(max_examples=1500, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(rows, max_size=7), tables, parts)
def test_same_as_torch(rows, options, part):
    rows = [shown(row, part, options["use_device"]) for row in rows]
    expected = from_torch(rows, options)
    found = from_ours(rows, options)
    seen[expected and expected[0]] += 1
    if expected is None:
        assert found[0] == "OK" and "NaN" in found[1]
    else:
        assert found == expected, (found[1], expected[1])


def test_shares():
    """Shares whose third decimal is a five: the order of the arithmetic shows in the last digit."""
    row = {
        "name": "a",
        "overload": None,
        "shapes": None,
        "memory": (0, 0, 0, 0),
        "flops": 0,
        "count": 1,
        "scope": 0,
        "device_type": DeviceType.CPU,
        "is_async": False,
        "is_user_annotation": False,
        "is_legacy": True,
        "has_parent": False,
        "stack": [],
        "hidden_frames": [],
    }
    for total in [20000, 160000, 60000, 700000]:
        sizes = [total // 20000 * part for part in range(1, 190, 2)]
        sizes.append(total - sum(sizes))
        table = [dict(row, times=(size * 125, size * 125, size * 1000, size * 1000)) for size in sizes]
        options = {
            "sort_by": None,
            "row_limit": -1,
            "max_src_column_width": 75,
            "max_name_column_width": 55,
            "max_shapes_column_width": 80,
            "header": None,
            "top_level_events_only": False,
            "time_unit": None,
            "profile_memory": False,
            "with_flops": False,
            "use_device": "cuda",
        }
        assert from_ours(table, options) == from_torch(table, options)
        options["use_device"] = None
        assert from_ours(table, options)[0] == from_torch(table, options)[0] == "STATE"


if __name__ == "__main__":
    test_shares()
    test_same_as_torch()
    FILTER.close()
    print(seen)
    assert seen["OK"] > 800 and min(seen.values()) > 3
