/* SPDX-License-Identifier: Apache-2.0
 *
 * What a call of a device's runtime or driver does: the one table of launches, copies, fills and waits.
 */
#ifndef OPS_DERIVE_CALLS_H
#define OPS_DERIVE_CALLS_H

#include <opstrobe/trace.h>

enum ops_call {
	OPS_CALL_LAUNCH = 1, /* starts kernels: one, or with OPS_CALL_GRAPH those of a graph */
	OPS_CALL_GRAPH = 2,
	OPS_CALL_COPY = 4,
	OPS_CALL_SET = 8,
	OPS_CALL_BLOCKS = 16, /* returns when the device, a stream or an event is done: the host waits */
};
#define OPS_CALL_STARTS_WORK (OPS_CALL_LAUNCH | OPS_CALL_COPY | OPS_CALL_SET)

/* Bits of enum ops_call; 0 for every other name. Suffixes that only version a call ("_v2", "_ptsz") do not matter. */
unsigned ops_call_of(struct ops_string name);

#endif
