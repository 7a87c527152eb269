/* SPDX-License-Identifier: Apache-2.0
 *
 * The captured calls that work of CUDA graphs comes from (docs/reference/definitions.md).
 *
 *     host     [BeginCapture] aten::mm[launch] aten::add[launch] [EndCapture]   …   [graph launch]
 *     stream                        │                │                                  mm ── add
 *                                   └── origin of ───┼──────────────────────────────────┘      │
 *                                                    └── origin of ────────────────────────────┘
 */
#ifndef OPS_DERIVE_CAPTURES_H
#define OPS_DERIVE_CAPTURES_H

#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/intervals.h"

struct ops_captures {
	struct ops_intervals times; /* of captures that end in the trace; merged */
	struct ops_intervals loops; /* of functions of which most calls capture a graph, and warm up before; merged */
	const uint32_t *origins; /* for ops_origins(); NULL: identical to ops_launchers() */
	size_t replayed;         /* number of pieces of work that graphs launched */
	size_t known;            /* of these, work whose capture is known */
};

/* The result is kept with the trace. Returns NULL if out of memory. */
const struct ops_captures *ops_captures_of(const struct ops_trace *trace);

/* By row of device work: the call that it originates from. That is the captured call for work of a graph whose capture
 * is known, else its launch. Other rows are as in ops_launchers(). For times of launches use ops_launchers(). The
 * result is kept with the trace. Returns NULL if out of memory. */
const uint32_t *ops_origins(const struct ops_trace *trace);

/* Returns the operator that work originates from; OPS_NONE if its call or the operator of the call is unknown. */
static inline uint32_t ops_origin_operator(const uint32_t *origins, size_t work)
{
	return origins[work] == OPS_NONE ? OPS_NONE : origins[origins[work]];
}

#endif
