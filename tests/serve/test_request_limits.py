# SPDX-License-Identifier: Apache-2.0
"""Limits of what one reply takes: of memory and of CPU time."""

import json
import os
import time
from urllib.parse import quote

import conftest
import pytest

import opstrobe

EVENTS = 20_000
ARGUMENTS = {"where": 'name.contains("(op1|op2)+5") or `x` == "none"'}


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace of some megabytes, in which each event has a different name and argument."""
    path = tmp_path_factory.mktemp("limits") / "large.json"
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": f"aten::op{i}",
            "pid": 1,
            "tid": 1,
            "ts": i * 10,
            "dur": 8,
            "args": {"x": f"text {i}"},
        }
        for i in range(EVENTS)
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def _ask(server, number):
    """The expensive query: the table of the events that a filter chooses."""
    return server.api(f"traces/{number}/analyses/events", args=json.dumps(ARGUMENTS))


@pytest.mark.parametrize(
    ("option", "variable"),
    [("--request-memory", "OPSTROBE_REQUEST_MB"), ("--request-time", "OPSTROBE_REQUEST_SECONDS")],
)
def test_a_reply_beyond_a_limit_is_an_error(trace, option, variable):
    with conftest.serving(trace) as server:
        number = server.traces()[0]["id"]
        expected = _ask(server, number)
        assert expected.status == 200 and len(expected.body) > 1000
    # No option is so small, for a whole number is the least that a server takes.
    small, shown = {"--request-memory": ("0.1", "97.7 KiB"), "--request-time": ("0.000001", "1.00 µs")}[option]
    with conftest.serving(trace, env=os.environ | {variable: small}) as server:
        for _ in range(2):
            reply = _ask(server, number)
            assert reply.status == 503 and "Retry-After" not in reply.headers
            message = reply.json()["error"]["message"]
            assert option in message and variable in message
            assert f"takes more than {shown} of " in message
    with conftest.serving(option, 1000, trace, env=os.environ | {variable: small}) as server:
        assert _ask(server, number).body == expected.body


@pytest.mark.parametrize("options", [{"request_memory_bytes": 100_000}, {"request_seconds": 1e-6}])
def test_within_the_process(trace, options):
    with opstrobe.TraceApi(trace) as api:
        number = json.loads(api.get("/api/v1/traces").body)["traces"][0]["id"]
        target = f"/api/v1/traces/{number}/views"
        assert api.get(target).status == 200
    with opstrobe.TraceApi(trace, **options) as api:
        reply = api.get(target)
        assert reply.status == 503 and b"OPSTROBE_REQUEST_" in reply.body


@pytest.mark.parametrize("words", [("--request-memory", "0"), ("--request-time", "x")])
def test_a_limit_is_a_positive_number(trace, words):
    with pytest.raises(AssertionError, match="request-"), conftest.serving(*words, trace):
        pass


# --- loops that allocate nothing

NUMBERS = [str(i) for i in range(1000, 3000)]


def _write(path, events):
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def _event(name, number, category="cpu_op", tid=1, dur=8, **arguments):
    event = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": number * 10, "dur": dur}
    return event | {"args": arguments}


def _long_names(path):
    return _write(path, [_event("a" * 2_000_000 + str(i), i) for i in range(4)])


def _many_names(path):
    return _write(path, [_event(f"aten::op{i}", i, "user_annotation" if i % 2 else "cpu_op") for i in range(100_000)])


def _many_streams(path):
    kernels = [_event("k", i, "kernel", i, device=0, stream=i) for i in range(100_000)]
    return _write(path, [event | {"pid": 0} for event in kernels])


def _deep_modules(path):
    count = 60_000
    events = []
    for i in range(count):
        call = {"Python id": i, "Python parent id": i - 1 if i else None, "Python module id": i}
        events.append(_event(f"nn.Module: M{i}_0", i, "python_function", dur=20 * (count - i), **call))
    return _write(path, events)


def _many_devices(path):
    records = []
    for i in range(60_000):
        sizes = {"Bytes": 64, "Addr": i * 64, "Total Allocated": 64, "Total Reserved": 0}
        place = {"Device Id": i % 30_000, "Device Type": 1 + i // 30_000}
        records.append(
            {"ph": "i", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": i, "args": sizes | place},
        )
    return _write(path, records)


@pytest.mark.parametrize(
    ("make", "target", "arguments"),
    [
        (_long_names, "timeline/search", {"q": "a" * 8000 + "b"}),
        (_long_names, "analyses/nccl_collectives", {"args": {"filter": 'name.match("((a{1,22}){1,21})*c")'}}),
        (_many_names, "analyses/critical_path", {"args": {"annotation": "", "data_load_events": NUMBERS}}),
        (
            _many_names,
            "analyses/user_annotation_breakdown",
            {"args": {"use_gpu_annotation": False, "allowlist_patterns": NUMBERS}},
        ),
        (_many_streams, "analyses/idle_time_breakdown", {"args": {"streams": list(range(200_000, 202_000))}}),
        (_deep_modules, "modules", {}),
        (_many_devices, "memory/curve", {"device": "no device"}),
    ],
)
def test_no_request_computes_long_beyond_its_limit(tmp_path, make, target, arguments):
    """Each took seconds to minutes beyond the limit."""
    path = make(tmp_path / "trace.json")
    seconds = 0.2
    words = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        words.append(f"{name}={quote(text, safe='[]{},:')}".replace("%22", '"'))
    with opstrobe.TraceApi(path, request_seconds=seconds) as api:
        number = json.loads(api.get("/api/v1/traces").body)["traces"][0]["id"]
        api.get(f"/api/v1/traces/{number}/info")
        before = time.process_time()
        reply = api.get(f"/api/v1/traces/{number}/{target}?{'&'.join(words)}")
        used = time.process_time() - before
    assert reply.status in (200, 404, 503), reply.body
    assert used < 5 * seconds
