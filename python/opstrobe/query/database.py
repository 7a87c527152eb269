# SPDX-License-Identifier: Apache-2.0
"""Traces as tables of DuckDB, which reads them through Arrow when a query uses them."""

from __future__ import annotations

import collections
import json
import os
import re
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

from opstrobe import _core

try:
    import duckdb as duckdb
    import pyarrow
except ImportError as error:
    raise ImportError(f"SQL needs {error.name}: pip install 'opstrobe[sql]'", name=error.name) from error

from opstrobe.query.schema import TRACE_COLUMNS, tables
from opstrobe.query.tables import read_rows, schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Source = str | os.PathLike[str] | _core.Trace

_Result = TypeVar("_Result")

# Traces stay in memory between queries if their files are smaller than this in total.
_KEPT_BYTES = 256 << 20


class _Input:
    """A trace, or the file to read it from."""

    def __init__(self, source: Source) -> None:
        self.trace = source if isinstance(source, _core.Trace) else None
        self.path = None if isinstance(source, _core.Trace) else os.fspath(source)

    def read(self) -> _core.Trace:
        if self.trace is not None:
            return self.trace
        assert self.path is not None
        return _core.read_trace(self.path)


class Answers(Protocol):
    """A source of answers: traces, or an archive."""

    def title(self) -> str: ...
    def tables(self) -> list[dict[str, Any]]: ...
    def shared_columns(self) -> list[dict[str, str]]: ...
    def relation(self, rows: pyarrow.Table) -> duckdb.DuckDBPyRelation: ...
    def run(self, text: str) -> Iterator[pyarrow.Table]: ...
    def close(self) -> None: ...


class Database:
    """Several traces as one set of tables: those of `tables()`, each with the additional columns `path` and `rank`."""

    def __init__(
        self, sources: Iterable[Source], *, on_read: Callable[[str, _core.Trace], object] | None = None
    ) -> None:
        """`on_read` is called with the path and the trace of each file that is read."""
        inputs = [_Input(source) for source in sources]
        files = [source.path for source in inputs if source.path is not None]
        self._keeps = sum(os.path.getsize(path) for path in files) < _KEPT_BYTES
        self._inputs = inputs
        self._on_read = on_read
        self._wanted: set[str] | None = None
        self._failure: Exception | None = None
        self._connection = connect()
        for table in tables():
            self._connection.register(str(table["id"]), _Table(self, str(table["id"])))

    def title(self) -> str:
        """What is queried, in words."""
        count = len(self._inputs)
        return f"{count} trace{'s' * (count != 1)}"

    def tables(self) -> list[dict[str, Any]]:
        return tables()

    def shared_columns(self) -> list[dict[str, str]]:
        """The columns that every table has in addition to its own."""
        return TRACE_COLUMNS

    def relation(self, rows: pyarrow.Table) -> duckdb.DuckDBPyRelation:
        """Rows in memory, for printing or writing."""
        return self._connection.from_arrow(rows)

    def close(self) -> None:
        self._connection.close()

    def run(self, text: str) -> Iterator[pyarrow.Table]:
        """Runs the statements of a text one by one, and yields the rows of each that has rows.

        Raises duckdb.Error for an invalid statement, and the errors of reading a trace."""
        for statement in self._connection.extract_statements(text):
            self._wanted = self._columns_of(statement.query)
            self._failure = None
            try:
                rows = fetch(self._connection, statement.query, self)
            except duckdb.Error:
                if self._failure is not None:
                    raise self._failure from None
                raise
            if rows is not None:
                yield rows

    def _columns_of(self, statement: str) -> set[str] | None:
        """The columns that a statement reads from any table, according to DuckDB's plan for it; None: all."""
        try:
            (plan,) = _interruptible(
                self._connection, lambda: self._connection.execute(f"explain (format json) {statement}").fetchall()
            )
        except (duckdb.Error, ValueError):
            return None
        columns: set[str] = set()
        nodes = json.loads(plan[1])
        while nodes:
            node = nodes.pop()
            nodes += node["children"]
            if "ARROW_SCAN" not in node["name"]:
                continue
            about = node["extra_info"]
            if "Projections" not in about:
                return None
            # Lists, or texts if there is one item. Filters are expressions, in which every word may be a column.
            columns.update(re.findall(r"\w+", f"{about['Projections']} {about.get('Filters', '')}"))
        return columns

    def _read(self, source: _Input, table: str, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        trace = source.read()
        if source.trace is None and self._on_read is not None:
            self._on_read(str(source.path), trace)
        if self._keeps:
            source.trace = trace
        return read_rows(trace, table, source.path or "", schema, self._wanted)

    def batches(self, table: str, schema: pyarrow.Schema) -> Iterator[pyarrow.RecordBatch]:
        """Yields the rows of a table from all traces, with the columns filled that the statement reads. Traces are read
        ahead, one per processor."""
        ahead = os.cpu_count() or 1
        pending: collections.deque[Future[Iterator[pyarrow.RecordBatch]]] = collections.deque()
        with ThreadPoolExecutor(ahead) as readers:
            for source in [*self._inputs, *[None] * ahead]:
                if source is not None:
                    pending.append(readers.submit(self._read, source, table, schema))
                if pending and (source is None or len(pending) > ahead):
                    try:
                        found = pending.popleft().result()
                    except Exception as error:
                        self._failure = error
                        raise
                    yield from found


class _Table:
    """A table for DuckDB, which reads its rows whenever a query scans it."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = name
        self._schema = schema_of(name)

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        batches = self._database.batches(self._name, self._schema)
        return pyarrow.RecordBatchReader.from_batches(self._schema, batches).__arrow_c_stream__()


def connect() -> duckdb.DuckDBPyConnection:
    """A connection that prints no progress."""
    connection = duckdb.connect(":memory:")
    connection.execute("set enable_progress_bar = false")
    return connection


def last_rows(answers: Iterable[pyarrow.Table]) -> pyarrow.Table:
    """The rows of the last statement."""
    found = collections.deque(answers, maxlen=1)
    if not found:
        raise ValueError("the query is empty")
    return found.pop()


def _with_own_tables(message: str) -> str:
    """Names the tables where DuckDB suggests one of its internal tables."""
    names = ", ".join(str(table["id"]) for table in tables())
    return re.sub(
        r'Did you mean "(pg_|sqlite_|duckdb_|pragma_|information_schema)[^"]*"\?', f"The tables are {names}.", message
    )


def _unknown_column(message: str, statement: str, answers: Answers) -> str:
    """What to write instead of a column that does not exist, and where the columns are listed. Other messages are returned as they are."""
    found = re.search(r'column (?:named )?"([^"]+)"', message)
    words = set(re.findall(r"\w+", statement.lower()))
    named = [table for table in answers.tables() if table["id"] in words]
    if not found or not named or not re.search("not found in FROM|not have a column", message):
        return message
    column = found[1].rpartition(".")[2]
    columns = [str(each["name"]) for table in named for each in [*table["columns"], *answers.shared_columns()]]
    near = _nearest(column, list(dict.fromkeys(columns)))
    tables_text = ", ".join(str(table["id"]) for table in named)
    meant = f"; did you mean {' or '.join(near)}?" if near else ";"
    listed = " and ".join(f"'.schema {table['id']}'" for table in named)
    return f"unknown column '{column}' in {tables_text}{meant} {listed} list{'s' * (len(named) == 1)} the columns"


def _nearest(name: str, known: list[str]) -> list[str]:
    """At most three of the known names: those that begin with the name, contain it or are spelled alike."""
    import difflib

    name = name.lower()
    alike = [each for each in known if each.startswith(name)] + [each for each in known if name in each]
    return list(dict.fromkeys([*alike, *difflib.get_close_matches(name, known, 3, 0.6)]))[:3]


def fetch(connection: duckdb.DuckDBPyConnection, statement: str, answers: Answers) -> pyarrow.Table | None:
    """Runs a statement. Returns its rows; None if it has none. Ctrl-C ends it."""

    def rows() -> pyarrow.Table | None:
        try:
            relation = connection.sql(statement)
        except duckdb.CatalogException as error:
            raise duckdb.CatalogException(_with_own_tables(str(error))) from None
        except duckdb.BinderException as error:
            raise duckdb.BinderException(_unknown_column(str(error), statement, answers)) from None
        return None if relation is None else with_plain_sums(relation).to_arrow_table()

    return _interruptible(connection, rows)


def _interruptible(connection: duckdb.DuckDBPyConnection, work: Callable[[], _Result]) -> _Result:
    """Runs statements of a connection on another thread. DuckDB itself checks for Ctrl-C only between tasks, and one task may
    be most of a query."""
    with ThreadPoolExecutor(1) as worker:
        running = worker.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            while not running.done():  # an interrupt before the statement has begun is lost
                connection.interrupt()
                wait([running], timeout=0.1)
            raise


def with_plain_sums(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """Casts sums of integers to 64 bits; as 128-bit integers they would become decimals."""
    kinds = [str(kind) for kind in relation.types]
    names = ['"' + name.replace('"', '""') + '"' for name in relation.columns]
    if "HUGEINT" not in kinds or len(set(names)) < len(names):
        return relation
    return relation.project(
        ", ".join(f"{name}::bigint as {name}" if kind == "HUGEINT" else name for name, kind in zip(names, kinds))
    )
