# SPDX-License-Identifier: Apache-2.0
"""The queries of docs/manual/queries.md, as DuckDB runs them and in the dialects of Spark and Polars."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "manual" / "queries.md"
QUERIES = {
    title.strip(" :\n"): query
    for title, query in re.findall(
        r"\n([^\n]+)\n\n```sql\n(.*?)```", PAGE.read_text() if PAGE.exists() else "", re.DOTALL
    )
}
TRACES = [ROOT / "web/tests/traces/train.pt.trace.json.gz", ROOT / "tests/fuzz/analyze/training.json"]


def for_spark(query):
    query = re.sub(r"quantile_cont\((\w+), \[([^]]*)\]\)", r"percentile(\1, array(\2))", query)
    query = query.replace("quantile_cont(", "percentile(")
    return query.replace("(args->>'bytes')::bigint", "cast(get_json_object(args, '$.bytes') as bigint)")


def for_polars(query):
    return re.sub(r"\b1e(\d)\b", lambda found: "1" + "0" * int(found[1]) + ".0", query)


def assert_equal(found, expected):
    """Integers and texts are equal, and floating-point numbers to 12 digits, since engines add them in different orders."""
    assert len(found) == len(expected)
    for left, right in zip(found, expected):
        assert len(left) == len(right)
        for a, b in zip(left, right):
            assert plain(a) == pytest.approx(plain(b), rel=1e-12) if is_number(b) else plain(a) == plain(b), (
                left,
                right,
            )


def plain(value):
    return list(value) if isinstance(value, (list, tuple)) else value


def is_number(value):
    return isinstance(value, float) or (isinstance(value, list) and any(isinstance(item, float) for item in value))
