#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make soak`: the long tests. KILLS processes (10,000 by default) are killed while they record, and the recordings they leave are
# compared with their own counts. ARCHIVE_KILLS (1,000) are killed while they add traces to an archive, two at a time. In programs of
# each kind, INCIDENT_ROUNDS (11) times, something goes wrong, which must be reported at its line: 209 incidents. HEALTHY_STEPS (10^6)
# steps that other processes disturb, with each way to mark them, must not be an incident. A ring gets RING_EVENTS events
# (10^8), and its memory must not grow. The interface is called in CALL_SEQUENCES (10,000) random sequences.
. "$(dirname "$0")/common.sh"

[ -e build/soak/build.ninja ] ||
	.venv/bin/meson setup build/soak -Dbuildtype=release -Dextension=disabled -Dtests=enabled >/dev/null
.venv/bin/ninja -C build/soak tests/read/test_read_recovery tests/read/test_read_ring >/dev/null
RECOVERY_KILLS=${KILLS:-10000} build/soak/tests/read/test_read_recovery
RING_EVENTS=${RING_EVENTS:-100000000} build/soak/tests/read/test_read_ring
ARCHIVE_KILLS=${ARCHIVE_KILLS:-1000} .venv/bin/python -m pytest -q -s tests/python/test_archive.py -k killed_writers
CALL_SEQUENCES=${CALL_SEQUENCES:-10000} .venv/bin/python -m pytest -q tests/python/test_{profile,surface}_in_any_order.py
HEALTHY_STEPS=${HEALTHY_STEPS:-1000000} .venv/bin/python -m pytest -q -s tests/python/test_incidents.py -k noise
INCIDENT_ROUNDS=${INCIDENT_ROUNDS:-11} exec .venv/bin/python -m pytest -q tests/python/test_incidents.py -k planted
