/* SPDX-License-Identifier: Apache-2.0
 *
 * Python calls in which a thread only waits.
 */
#ifndef OPS_DERIVE_BLOCKING_H
#define OPS_DERIVE_BLOCKING_H

#include <opstrobe/trace.h>

/* What a call waits for. */
enum ops_blocking {
	OPS_BLOCKING_NONE,
	OPS_BLOCKING_LOCK,
	OPS_BLOCKING_QUEUE,
	OPS_BLOCKING_THREAD,
	OPS_BLOCKING_PROCESS, /* a child process, or a file */
	OPS_BLOCKING_TIME,
};

/* Classifies a call by its name. */
enum ops_blocking ops_blocking_of(struct ops_string name);
/* For each string of the trace: enum ops_blocking of a call with that name. Freed with ops_free. Returns NULL if out of
 * memory. */
uint8_t *ops_blocking_names(const struct ops_trace *trace);

#endif
