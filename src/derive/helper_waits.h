/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls are waits of helper threads: threads of a data loader, a logger or a server wait most of the time, which says nothing
 * about where the program's time goes (docs/reference/definitions.md).
 *
 *     main thread     ├──────── step ────────┤├──────── step ────────┤   its waits count
 *     pin memory      ├── Queue.get ──┤ pin  ├── Queue.get ────┤ pin     its waits do not
 */
#ifndef OPS_DERIVE_HELPER_WAITS_H
#define OPS_DERIVE_HELPER_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

struct ops_helper_waits {
	uint8_t *helpers; /* by track: 1 for a thread that has no steps while another thread of its process has some. In a process
	                   * without steps: for a thread other than the main thread, if the trace has the main thread */
	uint8_t *rows;    /* bits by row: a call in which a helper waits (derive/blocking.h), or a row inside one */
	size_t count;     /* number of such rows */
};

/* The result is kept with the trace. Returns NULL if out of memory. */
const struct ops_helper_waits *ops_helper_waits_of(const struct ops_trace *trace);

/* Returns true if a thread is a helper, by its number on Linux. A thread without events is one unless it is the main thread. */
bool ops_is_helper(const struct ops_helper_waits *waits, const struct ops_trace *trace, int64_t tid);

#endif
