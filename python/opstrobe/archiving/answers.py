# SPDX-License-Identifier: Apache-2.0
"""Answers questions of `opstrobe serve` about an archive: one line of JSON on standard input each, and a line for the
reply on standard output (src/serve/archive.h). The tables are declared in src/analyze/archive/archive_tables.c."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile

from opstrobe._command_parser import reason_of
from opstrobe.archiving import rebuild, trend
from opstrobe.archiving.database import DATED, ArchiveDatabase, quoted
from opstrobe.archiving.location import Location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Question = Mapping[str, str]
    Rows = list[dict[str, object]]


def trace_rows(database: ArchiveDatabase, job: str | None = None) -> Rows:
    """The rows of the table archive_traces, the newest first."""
    return database.rows(
        "select job, run, commit, rank, "
        f"case when {DATED} then strftime(make_timestamp(start_ns // 1000), '%Y-%m-%d %H:%M:%S') else traces.date::varchar end as start, "
        "traces.dur_ns / 1e3 as duration_us, steps, step_us, trace, path from traces left join "
        "(select trace, count(*) as steps, median(dur_ns) / 1e3 as step_us from steps group by trace) using (trace) "
        f"where {'true' if job is None else f'job = {quoted(job)}'} order by traces.date desc, start_ns desc, rank, trace"
    )


class Answers:
    def __init__(self, database: ArchiveDatabase, folder: str) -> None:
        self._database = database
        self._folder = folder

    def answer(self, question: Question) -> dict[str, object]:
        name = question["question"]
        if name == "trace":
            return {"path": rebuild.trace_file(self._database, question["trace"], self._folder)}
        rows = {
            "archive_traces": self._traces,
            "archive_trend": self._trend,
            "archive_causes": self._causes,
            "archive_steps": self._steps,
        }[name]
        return {"rows": rows(question)}

    def _traces(self, question: Question) -> Rows:
        return trace_rows(self._database)

    def _series(self, question: Question) -> tuple[list[trend.Point], list[trend.Jump]]:
        metric = question.get("metric", "step_ms")
        points = trend.series(self._database, metric, question.get("by", "commit"), question.get("job") or None)
        return points, trend.jumps([point.value for point in points])

    def _trend(self, question: Question) -> Rows:
        return trend.trend_rows(*self._series(question))

    def _causes(self, question: Question) -> Rows:
        points, jumps = self._series(question)
        return [
            row
            for jump in jumps
            if question.get("key") in (None, points[jump.at].key)
            for row in trend.cause_rows(self._database, points, jump)
        ]

    def _steps(self, question: Question) -> Rows:
        which = " and ".join(f"steps.{name} = {quoted(question[name])}" for name in ("job", "run") if name in question)
        return self._database.rows(
            "select steps.rank, step, steps.dur_ns / 1e3 as dur_us, (steps.start_ns - traces.start_ns) / 1e3 as start_us, "
            f"trace from steps join traces using (trace) where {which or 'true'} order by 1, 2, 4"
        )


def run(location: str) -> None:
    """Answers until the input ends."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever else is printed is not a reply

    def reply(value: object) -> None:
        replies.write(json.dumps(value, ensure_ascii=True) + "\n")
        replies.flush()

    with contextlib.ExitStack() as stack:
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="opstrobe-archive-"))
            database = stack.enter_context(contextlib.closing(ArchiveDatabase(Location(location))))
        except Exception as error:
            reply({"error": reason_of(error)})
            return
        answers = Answers(database, folder)
        reply({"folder": folder})
        for line in sys.stdin:
            try:
                answer = answers.answer(json.loads(line))
            except Exception as error:  # the archive may change or be unreachable at any time
                answer = {"error": reason_of(error)}
            reply(answer)
