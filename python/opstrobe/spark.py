# SPDX-License-Identifier: Apache-2.0
"""Traces and archives as tables of Apache Spark 4, read by its executors (which find this by `pyspark_opstrobe`):

spark.read.format("opstrobe").option("table", "kernels").load("traces/").groupBy("rank").sum("dur_ns")

A path is a trace file, a directory of traces, an archive, or a URL of one of these that fsspec knows. Several are separated by line
breaks. Each file is one partition. A schema that is given selects columns: only those are read.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import tempfile

import pyarrow

from opstrobe import _core
from opstrobe.query.tables import is_trace_name, plain_type, read_rows, schema_of, trace_files

try:
    from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
    from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
except ImportError as error:
    raise ImportError(f"opstrobe.spark needs {error.name}: pip install 'opstrobe[spark]'", name=error.name) from error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import StructType


class _Trace(InputPartition):
    """A trace file, which is fetched if it is elsewhere."""

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


class _Part(InputPartition):
    """A table of a part of an archive."""

    def __init__(self, url: str, job: str, date: str) -> None:
        self.url = url
        self.job = job
        self.date = date

    def batches(self, table: str, columns: list[str]) -> Iterator[pyarrow.RecordBatch]:
        import fsspec
        import pyarrow.parquet

        with fsspec.open(self.url, "rb") as file:
            rows = pyarrow.parquet.ParquetFile(file)
            kept = [name for name in rows.schema_arrow.names if name in columns]
            for batch in rows.iter_batches(columns=kept):
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
        if any(_is_archive(path) for path in self._paths):
            from opstrobe.archiving.database import columns_of

            return from_arrow_schema(columns_of(self._table))
        return from_arrow_schema(
            pyarrow.schema([(field.name, plain_type(field.type)) for field in schema_of(self._table)])
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self._table, self._paths, schema)


class _Reader(DataSourceReader):
    def __init__(self, table: str, paths: list[str], schema: StructType) -> None:
        self._table = table
        self._paths = paths
        self._schema = schema

    def partitions(self) -> list[InputPartition]:
        found: list[InputPartition] = []
        for path in self._paths:
            found += _parts_of(path, self._table) if _is_archive(path) else map(_Trace, _files_of(path))
        return found

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        if not isinstance(partition, (_Trace, _Part)):  # Spark makes one of its own if there is none
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


def _is_archive(path: str) -> bool:
    with contextlib.suppress(ImportError, FileNotFoundError):
        from opstrobe.archiving.location import Location

        Location(path)
        return True
    return False


def _parts_of(path: str, table: str) -> list[InputPartition]:
    from opstrobe.archiving.location import Location

    place = Location(path)
    return [
        _Part(place.url(f"{part.path}/{table}.parquet"), part.job, part.date)
        for part in place.parts()
        if table in part.sizes
    ]


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
