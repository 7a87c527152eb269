# SPDX-License-Identifier: Apache-2.0
"""Requests that nobody thought of, made from docs/openapi.yaml: each route with parameters that fit, that almost fit, and
that are meant ill. Every reply is one that the document names, and the server outlives them all.

OPSTROBE_FUZZ_REQUESTS is the number of requests for each route, different ones each time. OPSTROBE_SERVER is another command to start, such as
one that was built with sanitizers.
"""

import functools
import json
import os
import random
import re
import shutil
import urllib.parse

import pytest
from conftest import OPSTROBE, ROOT, SHARED, serving
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_http_api import DOCUMENT, check

COMMAND = os.path.abspath(os.environ.get("OPSTROBE_SERVER", OPSTROBE))
REQUESTS = int(os.environ.get("OPSTROBE_FUZZ_REQUESTS", "0"))
requests = settings(
    max_examples=REQUESTS or 60,
    derandomize=not REQUESTS,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

SYNTHETIC = ["diff-pair", "distributed-nccl-2x2", "modules-fwd-bwd", "ops-nested-shapes-stacks", "steps-all-categories"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Small traces with data for every route."""
    folder = tmp_path_factory.mktemp("traces")
    shutil.copy(ROOT / "web" / "tests" / "traces" / "train.pt.trace.json.gz", folder / "host_1.1.pt.trace.json.gz")
    shutil.copy(ROOT / "web" / "tests" / "traces" / "train.py", folder)
    for path in [*(ROOT / "tests" / "fuzz").glob("read/*/*.json"), *(ROOT / "tests" / "fuzz").glob("analyze/*.json")]:
        shutil.copy(path, folder / f"{path.stem}.pt.trace.json")
    samples = [SHARED / "kineto-tb" / "synthetic" / name for name in SYNTHETIC]
    with serving(folder, *(path for path in samples if path.exists()), cwd=folder, command=COMMAND) as running:
        yield running
        code, errors = running.stop()
        assert code == 0 and "Sanitizer" not in errors and "runtime error" not in errors, errors


# --- what to ask ------------------------------------------------------------------------------------------------------

NUMBERS = [-1, 0, 1, 2, 9, 63, 64, 511, 10**30]
NUMBERS += [sign * 2**bits + one for bits in (31, 32, 53, 63, 64) for sign in (1, -1) for one in (-1, 0)]
ILL = [
    "", " ", "%", "%00", "\0", "..", "../../etc/passwd", "/etc/passwd", "null", "NaN", "1e9", "-0", "+1", "0x10", "1.5", ",", ",,",
    "1,", "1:", ":1", "2:1", "<script>", "'; --", "\u2028", "\U0001f600", "\ud800".encode("utf-16", "surrogatepass").decode("latin-1"),
    "%s%n", "a" * 3000, "[" * 500, "{" * 500, '{"a":' * 100, "1," * 5000, "\x7f", "\r\nX: y", "é", "\xff",
]  # fmt: skip
NAMES = "aten:: cpu cpu:0 cuda:0 ProfilerStep train.py launch forward_backward other steps operators".split()

numbers = st.one_of(st.sampled_from(NUMBERS), st.integers(0, 40), st.integers(0, 10**10), st.integers(-(2**70), 2**70))
texts = st.one_of(st.sampled_from(NAMES), st.sampled_from(ILL), st.text(max_size=20))
some = st.integers(0, 12).map(str)
lists = st.one_of(st.lists(some, min_size=1, max_size=8), st.lists(numbers.map(str), max_size=8)).map(",".join)
tile = st.one_of(
    st.tuples(st.integers(0, 1), st.integers(9, 45), st.integers(0, 3)),
    st.lists(st.one_of(st.integers(0, 3), st.integers(9, 45), numbers), max_size=5),
).map(lambda parts: ".".join(map(str, parts)))
tiles = st.one_of(tile, st.lists(tile, max_size=70).map(",".join))
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.floats(), texts),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)


def value_of(parameter, server):
    """What fits a parameter, as its schema says it."""
    schema = resolve(parameter["schema"])
    name = parameter["name"]
    if name in ("tiles", "counters"):
        return tiles
    if name in ("id", "base") or (name == "ids" and parameter["in"] == "path"):
        ids = st.sampled_from(ids_of(server))
        return st.lists(ids, min_size=1, max_size=4).map(",".join) if name == "ids" else ids
    if name == "analysis":
        return st.sampled_from([each["id"] for each in server.json("analyses")["analyses"]])
    if name == "args":
        return st.dictionaries(st.sampled_from(option_names(server)), json_values, max_size=3).map(json.dumps)
    if name == "parts":
        parts = list(server.json(f"traces/{ids_of(server)[0]}/views"))
        return st.lists(st.sampled_from(parts), min_size=1, max_size=9).map(",".join)
    if name == "file":
        return st.sampled_from(["train.py", "host_1.1.pt.trace.json.gz", "../../../../../etc/passwd"])
    if name == "device":
        return st.sampled_from(["cpu", "cpu", "cuda:0"])
    if name == "kinds":
        return st.sampled_from(["launch", "forward_backward,other", "launch,launch"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if name == "steps":
        return st.one_of(some, st.tuples(some, some).map(":".join), st.from_regex(schema["pattern"], fullmatch=True))
    if "pattern" in schema:
        return lists
    return numbers if schema.get("type") == "integer" else texts


def resolve(node):
    while "$ref" in node:
        node = functools.reduce(lambda at, name: at[name], node["$ref"].split("/")[1:], DOCUMENT)
    return node


@functools.cache
def ids_of(server):
    """The one that has most counts for many."""
    ids = [trace["id"] for trace in sorted(server.traces(), key=lambda trace: trace["worker"] != "host_1")]
    return ids[:1] * len(ids) + ids


@functools.cache
def option_names(server):
    return sorted({option["name"] for each in server.json("analyses")["analyses"] for option in each["options"]})


@st.composite
def targets(draw, server, path):
    """Mostly values that fit, or nothing gets further than the first check."""
    query = []
    for parameter in map(resolve, DOCUMENT["paths"][path]["get"].get("parameters", ())):
        odd = draw(st.integers(0, 15)) == 0
        value = draw(st.one_of(texts, numbers, lists) if odd else value_of(parameter, server))
        if parameter["in"] == "path":
            path = path.replace("{" + parameter["name"] + "}", quoted(value, ","))
        elif parameter.get("required") and not odd or draw(st.integers(0, 2)) == 0:
            query.append((parameter["name"], value))
    if draw(st.integers(0, 15)) == 0:
        query.append((draw(texts), draw(texts)))
    if draw(st.integers(0, 15)) == 0 and query:
        query.append(query[0])
    text = "&".join(f"{quoted(name)}={quoted(value, ',:.')}" for name, value in query)
    return path + ("?" + text if text else "")


def quoted(value, safe=""):
    return urllib.parse.quote(str(value).encode("utf-8", "surrogatepass"), safe=safe)


# --- and what to hear -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", DOCUMENT["paths"])
def test_every_reply_is_one_of_the_document(server, path):
    connection = server.connect()
    statuses = set()

    @requests
    @given(targets(server, path))
    def ask(target):
        reply = server.get("/api/v1" + target, connection=connection)
        if len(target) > 16 << 10:  # where the library that speaks HTTP may answer by itself
            assert reply.status in (400, 414, 431)
            return
        statuses.add(reply.status)
        assert reply.status in (200, 400, 404, 422), reply.body[:300]
        if reply.status != 200:
            assert check(reply.json(), path, "default")["error"]["status"] == reply.status
        elif "json" in reply.headers["Content-Type"]:
            check(reply.json(), path)
        else:
            assert reply.headers["Content-Type"] == "application/octet-stream" and reply.body[:4] == b"\x01TIL"

    ask()
    connection.close()
    # No archive is served here; test_archive.py requests traces of one.
    assert (404 if "{in_archive}" in path else 200) in statuses


def test_targets_that_are_damaged(server):
    """Bytes of good addresses changed, left out, doubled. What is heard is HTTP, or nothing."""
    dice = random.Random(None if REQUESTS else 1)
    good = [line for line in (ROOT / "tests" / "fuzz" / "query" / "targets.txt").read_text().split() if line[:1] == "/"]
    good += [
        f"/api/v1/traces/{ids_of(server)[0]}/{route}" for route in ("views?parts=steps", "timeline/tiles?tiles=0.20.0")
    ]
    connection = server.connect()
    for _ in range(REQUESTS or 500):
        target = list(dice.choice(good))
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(target))
            target[at : at + dice.randint(0, 2)] = dice.choices(
                "%/?&=.,:;+#0123456789abcdef\\~-_", k=dice.randint(0, 3)
            )
            target = target or ["/"]
        reply = server.get(re.sub(r"\s", "+", "".join(target)), connection=connection)
        assert reply.status < 500, target
    connection.close()
    assert server.api("traces").status == 200
