# SPDX-License-Identifier: Apache-2.0
"""Traces and archives as tables of Apache Spark 4, read by its executors (which find this by `pyspark_opstrobe`):

spark.read.format("opstrobe").option("table", "kernels").load("traces/").groupBy("rank").sum("dur_ns")

A path is a trace file, a directory of traces, an archive, or a URL of one of these that fsspec supports. Several are
separated by line breaks. Each file is one partition. A given schema selects the columns to read. With the option `pushdown`,
filters select the parts and row groups of an archive to read; Spark refuses it unless spark.sql.python.filterPushdown.enabled is set.
"""

from __future__ import annotations

import datetime
import operator
import os
import tempfile
from typing import Any, NamedTuple

import pyarrow

from opstrobe import _core
from opstrobe.query.tables import archive_at, is_trace_name, plain_type, read_rows, schema_of, trace_files

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
except ImportError as error:
    raise ImportError(f"opstrobe.spark needs {error.name}: pip install 'opstrobe[spark]'", name=error.name) from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType

    from opstrobe.archiving.location import Location


class _Trace(InputPartition):
    """A trace file, which is downloaded if it is remote."""

    def __init__(self, path: str) -> None:
        self.path = path

    def batches(self, table: str, columns: list[str]) -> Iterator[pyarrow.RecordBatch]:
        if "://" not in self.path:
            yield from read_rows(_core.read_trace(self.path), table, self.path, schema_of(table), columns)
            return
        import fsspec

        with tempfile.TemporaryDirectory() as folder:
            fetched = os.path.join(folder, os.path.basename(self.path))
            files, path = fsspec.core.url_to_fs(self.path)
            files.get_file(path, fetched)
            yield from read_rows(_core.read_trace(fetched), table, self.path, schema_of(table), columns)


class _Filter(NamedTuple):
    """A comparison of a column with a value, or with several of which one must be equal."""

    column: str
    compare: Callable[[Any, Any], Any]
    value: Any


class _Part(InputPartition):
    """A table of a part of an archive. Row groups to which a filter cannot apply are not read."""

    def __init__(self, url: str, job: str, date: str, filters: list[_Filter] | None = None) -> None:
        self.url = url
        self.job = job
        self.date = date
        self.filters = filters or []

    def batches(self, table: str, columns: list[str]) -> Iterator[pyarrow.RecordBatch]:
        import fsspec
        import pyarrow.dataset

        files, path = fsspec.core.url_to_fs(self.url)
        rows = pyarrow.dataset.dataset(path, filesystem=files, format="parquet")
        kept = [name for name in rows.schema.names if name in columns]
        for batch in rows.to_batches(columns=kept, filter=_expression(self.filters, rows.schema)):
            date = datetime.date.fromisoformat(self.date)
            for name, value in (("job", pyarrow.scalar(self.job)), ("date", pyarrow.scalar(date))):
                batch = batch.append_column(name, pyarrow.repeat(value, batch.num_rows))
            yield batch


class OpstrobeDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "opstrobe"

    @property
    def _table(self) -> str:
        return str(self.options.get("table", "events"))

    @property
    def _paths(self) -> list[str]:
        if "path" not in self.options:
            raise ValueError("no traces: name them in load()")
        return [path for path in str(self.options["path"]).splitlines() if path]

    def schema(self) -> StructType:
        if any(archive_at(path) is not None for path in self._paths):
            from opstrobe.archiving.database import columns_of

            return from_arrow_schema(columns_of(self._table))
        return from_arrow_schema(
            pyarrow.schema([(field.name, plain_type(field.type)) for field in schema_of(self._table)])
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        pushes = str(self.options.get("pushdown", "false")).lower() == "true"
        return (_PruningReader if pushes else _Reader)(self._table, self._paths, schema)


class _Reader(DataSourceReader):
    def __init__(self, table: str, paths: list[str], schema: StructType) -> None:
        self._table = table
        self._paths = paths
        self._schema = schema
        self._filters: list[_Filter] = []

    def partitions(self) -> list[InputPartition]:
        found: list[InputPartition] = []
        for path in self._paths:
            place = archive_at(path)
            found += map(_Trace, _files_of(path)) if place is None else _parts_of(place, self._table, self._filters)
        return found

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        if not isinstance(partition, (_Trace, _Part)):  # Spark creates an empty partition if the list is empty
            return
        schema = to_arrow_schema(self._schema)
        for batch in partition.batches(self._table, schema.names):
            columns = {
                name: column.dictionary_decode() if pyarrow.types.is_dictionary(column.type) else column
                for name, column in zip(batch.schema.names, batch.columns)
            }
            yield pyarrow.RecordBatch.from_arrays(
                [
                    columns[field.name].cast(field.type)
                    if field.name in columns
                    else pyarrow.nulls(batch.num_rows, field.type)
                    for field in schema
                ],
                schema=schema,
            )


class _PruningReader(_Reader):
    """A separate class, since Spark refuses a reader with pushFilters() unless its setting allows it."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, In, LessThan, LessThanOrEqual

        compares: dict[type, Callable[[Any, Any], Any]] = {
            EqualTo: operator.eq,
            GreaterThan: operator.gt,
            GreaterThanOrEqual: operator.ge,
            LessThan: operator.lt,
            LessThanOrEqual: operator.le,
            In: _is_in,
        }
        self._filters = [
            _Filter(each.attribute[0], compares[type(each)], each.value)  # type: ignore[attr-defined]
            for each in filters
            if type(each) in compares and len(each.attribute) == 1  # type: ignore[attr-defined]
        ]
        return filters  # a row group that is read has other rows, too


def _is_in(left: Any, values: Iterable[Any]) -> Any:
    return left.isin(list(values)) if hasattr(left, "isin") else left in values


def _expression(filters: list[_Filter], schema: pyarrow.Schema) -> pyarrow.compute.Expression | None:
    """The filters of columns of numbers; texts have an encoding in which Arrow does not compare them."""
    import pyarrow.compute

    kept = None
    for each in filters:
        if each.column not in schema.names or not pyarrow.types.is_primitive(schema.field(each.column).type):
            continue
        found = each.compare(pyarrow.compute.field(each.column), each.value)
        kept = found if kept is None else kept & found
    return kept


def _parts_of(place: Location, table: str, filters: list[_Filter]) -> list[InputPartition]:
    """Without those whose job or date a filter rules out."""
    found: list[InputPartition] = []
    for part in place.parts():
        values = {"job": part.job, "date": datetime.date.fromisoformat(part.date)}
        if table in part.sizes and all(
            each.compare(values[each.column], each.value) for each in filters if each.column in values
        ):
            found.append(_Part(place.url(f"{part.path}/{table}.parquet"), part.job, part.date, filters))
    return found


def _files_of(path: str) -> list[str]:
    if "://" not in path:
        files = list(trace_files([os.path.abspath(path)]))
        missing = [file for file in files if not os.path.exists(file)]
    else:
        import fsspec

        system, root = fsspec.core.url_to_fs(path)
        files = [system.unstrip_protocol(name) for name in sorted(system.find(root)) if is_trace_name(name)]
        missing = [] if files else [path]
    if missing:
        raise FileNotFoundError(f"no trace '{missing[0]}'")
    return files
