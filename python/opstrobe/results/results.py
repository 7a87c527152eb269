# SPDX-License-Identifier: Apache-2.0
"""The results of a recording or a trace file: the same methods for both."""

from __future__ import annotations

import json
import os

from opstrobe import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    import duckdb
    import pandas
    import polars
    import pyarrow

    from opstrobe.notebook.markup import Advice
    from opstrobe.results.memory import MemoryPeak
    from opstrobe.results.roofline import Roofline


def export_trace(
    trace: _core.Trace, path: str | os.PathLike[str], call_stacks: bool = False, forward_backward: bool = True
) -> None:
    """Writes Perfetto's format if the path ends in `.pftrace` or `.pftrace.gz`, else Chrome JSON. The latter has the
    stack of each event as text if `call_stacks`, and flows from forward operators to backward nodes if
    `forward_backward`."""
    text = os.fspath(path)
    if isinstance(text, str) and text.endswith((".pftrace", ".pftrace.gz")):
        trace.export_pftrace(text)
    else:
        trace.export_chrome_trace(text, call_stacks=call_stacks, forward_backward=forward_backward)


class Results:
    """Common base of profiles, their windows and trace files. Each of them defines the first three methods."""

    def _trace_for(self, doing: str) -> _core.Trace:
        """The complete trace. Raises an error with "cannot `doing`" if there is none."""
        raise NotImplementedError

    def _events_for(self, doing: str) -> _core.EventList:
        """All events, created at the first call."""
        raise NotImplementedError

    def _list_events(self, trace: _core.Trace) -> _core.EventList:
        """The events of a trace derived from this one."""
        raise NotImplementedError

    def _memory_timeline(self, doing: str) -> _core.MemoryTimeline:
        return _core.MemoryTimeline(self._trace_for(doing))

    def _memory_device(self) -> str:
        """The device whose memory is shown by default."""
        return "cpu"

    def events(self) -> _core.EventList:
        """All events. For a profile, those of the last recording; empty while it is running."""
        return self._events_for("accessing events")

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
        include_python_functions: bool = True,
    ) -> _core.EventList:
        """The events summed by name, and by the other criteria given.

        `include_python_functions=False`, the rule of torch 2.15, omits the calls of Python functions from the rows;
        their self time then counts for the operator or range in which they ran.
        """
        events = self._events_for("getting key averages")
        if not include_python_functions and len(events) > 0 and not events.timed_out:
            if group_by_stack_n > 0:  # the functions form the stacks, so they have to stay in the tree
                events = events._without_python_functions()
            else:
                events = self._list_events(self._trace_for("get key averages").without(("python_function",)))
        return events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_stacks(
        self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total", *, fold_wrappers: bool = False
    ) -> None:
        """Writes every stack and its self time, in nanoseconds, for a flame graph.

        The suffix of the path selects the format: `.speedscope.json`, `.svg` for a picture, `.pb.gz` for pprof, else
        collapsed stacks for flamegraph.pl and similar tools. With `fold_wrappers`, library calls that only forward to
        one other call have no frame, as in the viewer; by default stacks are complete, as with torch.
        """
        self._events_for("exporting stacks").export_stacks(path, metric, fold_wrappers=fold_wrappers)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        """Writes the memory held over time by category, for one device such as "cpu" or "cuda:0". Writes a page for
        `.html`, every single change for `raw.json`, else JSON; compressed if `path` ends in `.gz`."""
        from opstrobe.results.memory import export, parse_device

        where = parse_device(self._memory_device() if device is None else device)
        export(self._memory_timeline("exporting memory timeline"), path, where)

    def memory_peak(self, device: str | None = None, top: int = 10) -> MemoryPeak:
        """What holds the memory of a device at its peak. `print` it, or get its data with `as_dict()`."""
        from opstrobe.results.memory import MemoryPeak, parse_device

        where = parse_device(self._memory_device() if device is None else device)
        return MemoryPeak(self._memory_timeline("explaining the peak of memory"), where, top)

    def module_summary(self) -> _core.ModuleSummary:
        """Time, FLOPs and memory by module. Prints as a table, and has its data."""
        return _core.ModuleSummary(self._trace_for("summarize modules"))

    def roofline(
        self, by: str = "operator", roof: str | tuple[float, float] | Mapping[str, Any] | None = None
    ) -> Roofline:
        """Compares operators with the limits of the machine, by their shapes. Prints as a table, and has its data.

        `by` is "operator", "shape" or "kernel". `roof` replaces the roof that the trace has: FLOP/s and bytes/s as a
        pair or as "67T,3.35T", or the output of `opstrobe roof --format json`, as a dict. Requires record_shapes.
        """
        from opstrobe.results.roofline import Roofline

        return Roofline(self._trace_for("make a roofline"), by, roof)

    def whatif(
        self,
        *,
        scale: Mapping[str, float] | None = None,
        drop: str | Sequence[str] = (),
        overlap: str | Sequence[str] = (),
        remove_syncs: bool = False,
        no_launch_overhead: bool = False,
        workers: int | None = None,
    ) -> list[dict[str, Any]]:
        """Predicts how long steps would take if parts took another time or did not run, like `opstrobe whatif`.

        `scale` maps patterns to factors: {"gemm": 0.5}. Rows are the steps as measured, as replayed, with each change,
        and with all of them, in microseconds: `step_us`, `saved_us` with `saved_low_us` and `saved_high_us`,
        `saved_percent`, `note`.
        """
        changes = {
            "scale": [f"{pattern}={factor!r}" for pattern, factor in (scale or {}).items()],
            "drop": drop if isinstance(drop, str) else list(drop),
            "overlap": overlap if isinstance(overlap, str) else list(overlap),
            "remove_syncs": bool(remove_syncs),
            "no_launch_overhead": bool(no_launch_overhead),
            "workers": workers,
        }
        given = {name: value for name, value in changes.items() if value}
        table = json.loads(self._trace_for("replay it").query("whatif", json.dumps(given)))["table"]
        return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]

    def views(self, *, rules: str | None = None) -> dict[str, Any]:
        """Steps and how their time is spent, devices, operators, kernels, memory, modules, communication and advice.

        The same as the JSON of `opstrobe views`: times in microseconds, memory in bytes. `rules="tensorboard"` reproduces
        the figures of PyTorch's legacy TensorBoard plugin, `"hta"` the classes of Holistic Trace Analysis.
        """
        views: dict[str, Any] = json.loads(self._trace_for("make views").views_json(rules))
        return views

    def diff(self, base: Results, *, rules: str | None = None) -> dict[str, Any]:
        """What changed from `base` to this: the steps, their parts, modules, operators, kernels and memory.

        The same as the JSON of `opstrobe diff BASE NEW`. `rules` as for `views()`.
        """
        trace = self._trace_for("compare it")
        changes: dict[str, Any] = json.loads(base._trace_for("compare it").diff_json(trace, rules))
        return changes

    def analyze(self, analysis: str, **options: Any) -> dict[str, Any]:
        """One analysis of `opstrobe analyze --list`, with its options by name; `rules` is an option of most.

        The same as the JSON of `opstrobe analyze`. Raises ValueError for an unknown analysis or option.
        """
        answer: dict[str, Any] = json.loads(self._trace_for("analyze it").query(analysis, json.dumps(options)))
        return answer

    def advise(self) -> Advice:
        """What to change in the program, at which line, and the predicted gain, like the JSON of `opstrobe advise`.

        More recorded data gives more findings: with_stack, record_shapes and profile_memory, and a schedule with steps.
        """
        from opstrobe.notebook.markup import Advice

        return Advice(json.loads(self._trace_for("give advice").advice_json()))

    def show(self, *, inline: bool | None = None, height: int = 640, block: bool | None = None) -> None:
        """Opens the viewer: in a notebook in the cell, elsewhere in the browser. See `opstrobe.show`."""
        from opstrobe.notebook.show import show

        show(self, inline=inline, height=height, block=block)

    def to_arrow(self, table: str | None = None, columns: Sequence[str] | None = None) -> pyarrow.Table:
        """All events as a `pyarrow.Table`, with the columns of the trace; or one of the SQL tables, "events",
        "kernels", "steps", … (docs/reference/schema.md), with all its columns or those in `columns`. Requires pyarrow.
        Other libraries that support Arrow's interface (polars, duckdb, …) accept this object itself."""
        import pyarrow

        if table is None:
            return pyarrow.table(self)
        found = self._trace_for("make an Arrow table").table(table, columns)
        return pyarrow.Table.from_batches([pyarrow.RecordBatch._import_from_c_capsule(*found)])

    def to_polars(self, table: str = "events", columns: Sequence[str] | None = None) -> polars.DataFrame:
        """An SQL table of the trace as a `polars.DataFrame`, with all its columns or those in `columns`. Requires polars
        and pyarrow."""
        import polars

        return polars.from_arrow(self.to_arrow(table, columns))

    def sql(self, query: str) -> duckdb.DuckDBPyRelation:
        """Runs an SQL query on the tables of the trace (docs/reference/schema.md). The result prints as a table, and
        has `df()`, `pl()`, `to_arrow_table()`, `fetchall()`. Requires `pip install 'opstrobe[sql]'`."""
        from opstrobe.query.api import sql

        return sql(query, [self._trace_for("run a query")])

    def to_pandas(self, table: str | None = None, columns: Sequence[str] | None = None) -> pandas.DataFrame:
        """All events as a `pandas.DataFrame`, with the columns of the trace; or one of the SQL tables, as for `to_arrow()`.
        Requires pandas, and pyarrow for a table."""
        if table is not None:
            return self.to_arrow(table, columns).to_pandas()
        from opstrobe.results.dataframe import make_dataframe

        return make_dataframe(self._trace_for("make a data frame"))

    def __arrow_c_schema__(self) -> object:
        return self._trace_for("make an Arrow table").__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._trace_for("make an Arrow table").__arrow_c_stream__(requested_schema)
