# SPDX-License-Identifier: Apache-2.0
"""A program of test_archive.py: adds traces to an archive in processes that are killed at random times, and checks after each kill
that all that is listed is complete.

    archive_writer.py ARCHIVE REFERENCE KILLS TRACE...
"""

import os
import random
import signal
import sys
import time

import pyarrow.parquet

from opstrobe.archiving import add
from opstrobe.archiving.location import Location


def rows_by_part(place):
    """The rows of each table, by part."""
    location = Location(place)
    return {
        part.name: {
            table: pyarrow.parquet.read_metadata(location.path(part.path, f"{table}.parquet")).num_rows
            for table in part.sizes
        }
        for part in location.parts()
    }


def add_all(place, paths):
    location = Location(place, create=True)
    known = location.names("test")
    for path in paths:
        add.add(location, path, known, job="test")


def main(place, reference, kills, *paths):
    expected = rows_by_part(reference)
    draw = random.Random(7)
    seconds, complete = 0.2, 0
    for i in range(int(kills)):
        writer = os.fork()
        if not writer:
            add_all(place, paths)
            os._exit(0)
        start = time.monotonic()
        time.sleep(draw.uniform(0, seconds))
        os.kill(writer, signal.SIGKILL)
        if os.waitpid(writer, 0)[1] == 0:  # it was done: kill the next one earlier, in a separate archive
            complete += 1
            seconds = max(0.01, time.monotonic() - start)
        if not os.path.exists(os.path.join(place, "_opstrobe.json")):
            continue
        found = rows_by_part(place)
        assert found.items() <= expected.items(), (i, found)
        if len(found) == len(expected):
            place = f"{place.rstrip('0123456789')}{i}"
    add_all(place, paths)
    assert rows_by_part(place) == expected
    print(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
