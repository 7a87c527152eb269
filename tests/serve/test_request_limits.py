# SPDX-License-Identifier: Apache-2.0
"""Limits of what one reply takes: of memory and of CPU time."""

import json
import os

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
    small = {"--request-memory": "0.1", "--request-time": "0.000001"}[option]
    with conftest.serving(trace, env=os.environ | {variable: small}) as server:
        for _ in range(2):
            reply = _ask(server, number)
            assert reply.status == 503 and "Retry-After" not in reply.headers
            message = reply.json()["error"]["message"]
            assert option in message and variable in message
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
