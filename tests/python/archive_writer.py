# SPDX-License-Identifier: Apache-2.0
"""A program of test_archive.py: two processes at once add the same traces to an archive, in opposite orders, and are killed at random
times. After each kill, also while the other one writes, all that is listed must be complete.

    archive_writer.py ARCHIVE REFERENCE KILLS TRACE...
"""

import os
import random
import signal
import sys
import time

import pyarrow.parquet

from opstrobe.archiving.add import Adder
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
    for result in Adder(Location(place, create=True), "test").add(paths):
        assert isinstance(result, tuple), result


def start_writer(place, paths):
    writer = os.fork()
    if not writer:
        add_all(place, paths)
        os._exit(0)
    return writer


def kill(writer):
    """Returns whether the writer was done before."""
    os.kill(writer, signal.SIGKILL)
    return os.waitpid(writer, 0)[1] == 0


def measure(place, paths):
    """Returns how long a writer takes."""
    start = time.monotonic()
    os.waitpid(start_writer(place, paths), 0)
    return time.monotonic() - start


def main(place, reference, kills, *paths):
    expected = rows_by_part(reference)
    draw = random.Random(7)
    seconds = measure(f"{place}-measured", paths)
    killed, archives, in_between, found = 0, 1, 0, {}
    while killed < int(kills):
        start, done = time.monotonic(), 0
        writers = [start_writer(place, paths), start_writer(place, paths[::-1])]
        for writer, at in zip(writers, sorted(draw.uniform(0, seconds) for _ in writers)):
            time.sleep(max(0, start + at - time.monotonic()))
            ended = kill(writer)
            killed, done = killed + (not ended), done + ended
            if not os.path.exists(os.path.join(place, "_opstrobe.json")):
                continue
            before, found = found, rows_by_part(place)  # the first time, while the other one writes
            assert before.items() <= found.items() <= expected.items(), (killed, found)
            in_between += len(before) < len(found) < len(expected)
            done += len(found) > len(before)
        # How long a writer takes depends on what else runs, so the times follow: later while nothing is added, else earlier.
        seconds *= 0.97 if done else 1.03
        if found == expected:  # the next ones add to a separate archive
            archives, found = archives + 1, {}
            place = f"{place.rstrip('0123456789')}{archives}"
    add_all(place, paths)
    assert rows_by_part(place) == expected
    print(
        f"{killed} writers of {archives} archives killed, {in_between} after they had added some traces",
        file=sys.stderr,
    )
    print(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
