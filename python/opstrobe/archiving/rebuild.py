# SPDX-License-Identifier: Apache-2.0
"""A trace of an archive as a file: the one that was added, if it is unchanged, otherwise written from the tables."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile

from opstrobe.archiving.add import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opstrobe.archiving.database import ArchiveDatabase

# Chrome's events, with times since the start of the trace. Arguments of the trace file are in `args`; those with separate
# columns are added.
_EVENTS = """
    select 'X' as ph, name, category as cat, pid, tid, (start_ns - {start}) / 1e3 as ts, dur_ns / 1e3 as dur,
      json_merge_patch(coalesce(args, '{{}}')::json, json_object(
        'External id', nullif(external_id, 0), 'correlation', correlation, 'Sequence number', sequence_nr,
        'Input Dims', input_shapes::json, 'Input type', input_types::json,
        'device', case when on_device then pid end, 'stream', case when on_device then tid end)) as args,
      null::bigint as id
    from events where trace = '{trace}'"""
_MEMORY = """
    select 'i', '[memory]', 'cpu_instant_event', pid, tid, (time_ns - {start}) / 1e3, null,
      json_object('Addr', address, 'Bytes', bytes, 'Total Allocated', total_allocated, 'Total Reserved', total_reserved,
        'Device Type', case when on_cpu then 0 else 1 end, 'Device Id', coalesce(device, -1)), null
    from memory where trace = '{trace}'"""
_COUNTERS = """
    select 'C', name, null, pid, null, (time_ns - {start}) / 1e3, null, json_object(coalesce(series, 'value'), value), null
    from counters where trace = '{trace}'"""
# Launches follow from the correlation, and backward nodes from the sequence number, but other traces have only the flows.
_FLOWS = """
    select ph, flows.kind, case flows.kind when 'launch' then 'ac2g' when 'backward' then 'fwdbwd' else flows.kind end, pid, tid,
      (start_ns - {start}) / 1e3, null, null, number
    from (select *, row_number() over () as number from flows where trace = '{trace}') as flows
    cross join (values ('s'), ('f')) as ends(ph)
    join events on events.trace = '{trace}' and events.id = case ph when 's' then from_id else to_id end"""
_NAMES = """
    select 'M', 'thread_name', null, pid, tid, null, null, json_object('name', name), null
    from tracks where trace = '{trace}' and name is not null
    union all select 'M', 'process_name', null, pid, null, null, null, json_object('name', name), null
    from processes where trace = '{trace}' and name is not null
    union all select 'M', 'process_labels', null, pid, null, null, null, json_object('labels', labels), null
    from processes where trace = '{trace}' and labels is not null"""


def trace_file(database: ArchiveDatabase, trace: str, folder: str) -> str:
    """Returns the path of the file below the folder; makes it the first time. Raises ValueError if the archive does not
    have the trace."""
    rows = database.rows("select * from traces") if trace.isalnum() else []
    about = next((row for row in rows if row["trace"] == trace), None)
    if about is None:
        raise ValueError(f"trace '{trace}' does not exist")
    whose = os.path.join(folder, re.sub(r"[^\w.-]", "_", f"{about['job']}-{trace}"))
    path = os.path.join(whose, f"rank{about['rank'] or 0}.pt.trace.json")
    if os.path.lexists(path):
        return path
    original = str(about["path"])
    # The directory appears with its file, because the server lists directories at any time.
    made = tempfile.mkdtemp(prefix="opstrobe-rebuild-", dir=os.path.dirname(folder))
    try:
        if os.path.isfile(original) and digest(original) in (about["file"], trace):
            os.symlink(original, os.path.join(made, os.path.basename(path)))
        else:
            _write(database, about, os.path.join(made, os.path.basename(path)))
        os.rename(made, whose)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return path


def _write(database: ArchiveDatabase, about: dict[str, object], path: str) -> None:
    start = int(about["start_ns"])  # type: ignore[call-overload]
    parts = [_EVENTS, _MEMORY, _COUNTERS, _FLOWS, _NAMES]
    query = " union all ".join(f"({part})" for part in parts).format(start=start, trace=about["trace"])
    rows = path + ".rows"
    metadata = database.rows(f"select key, value from metadata where trace = '{about['trace']}'")
    database.copy(query, rows)
    with open(path, "wb") as file, open(rows, "rb") as events, gzip.GzipFile("", "wb", 1, file, 0) as out:
        out.write(b'{"baseTimeNanoseconds": %d' % start)
        for entry in metadata:
            if entry["key"] not in ("traceEvents", "baseTimeNanoseconds"):
                out.write(b", %s: %s" % (_json_text(str(entry["key"])), str(entry["value"]).encode()))
        out.write(b', "traceEvents": ')
        shutil.copyfileobj(events, out, 1 << 20)
        out.write(b"}\n")
    os.unlink(rows)


def _json_text(text: str) -> bytes:
    import json

    return json.dumps(text).encode()
