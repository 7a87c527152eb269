/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call of a device's runtime or driver does: the one table of launches, copies, fills and waits.
 */
#ifndef OPS_DERIVE_CALLS_H
#define OPS_DERIVE_CALLS_H

#include <opstrobe/trace.h>

enum ops_call {
	OPS_CALL_LAUNCH = 1, /* starts a kernel, or with OPS_CALL_GRAPH the kernels of a graph */
	OPS_CALL_GRAPH = 2,
	OPS_CALL_COPY = 4,
	OPS_CALL_SET = 8,
	OPS_CALL_BLOCKS = 16, /* returns when the device, a stream or an event has finished: the host waits */
	OPS_CALL_CAPTURE = 32, /* up to OPS_CALL_CAPTURED: calls that start nothing, but become nodes of a graph */
	OPS_CALL_CAPTURED = 64,
};
#define OPS_CALL_STARTS_WORK (OPS_CALL_LAUNCH | OPS_CALL_COPY | OPS_CALL_SET)

/* Returns bits of enum ops_call, 0 for any other name. Suffixes that only denote a version ("_v2", "_ptsz") are
 * ignored. */
unsigned ops_call_of(struct ops_string name);
/* Returns the bits by string id, for names of a trace's events. Returns NULL if out of memory. */
const uint8_t *ops_calls_by_name(const struct ops_trace *trace);

#endif
