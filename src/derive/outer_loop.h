/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop in which a program without an optimizer, a data loader or a server does its work (docs/reference/definitions.md).
 *
 *     main      ├─────────────────────────────────────────────────────────┤
 *      next()   ├┤            ├┤            ├┤            ├┤
 *      Ranker     ├─────────┤   ├─────────┤   ├─────────┤
 *               ├─iteration──├─iteration──├─iteration──┤
 */
#ifndef OPS_DERIVE_OUTER_LOOP_H
#define OPS_DERIVE_OUTER_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/array.h"

/* Zero-initialised is empty. */
struct ops_outer_loop {
	uint32_t track;
	OPS_ARRAY(int64_t) starts_ns; /* of the iterations, ascending; empty: no loop found */
	int64_t end_ns;               /* of the last one */
	uint32_t row;                 /* the first of the calls that the iterations are counted by */
};

/* Requires Python calls in the trace. Returns false if out of memory. The caller must release the loop in any case. */
bool ops_outer_loop_find(struct ops_outer_loop *loop, const struct ops_trace *trace);
void ops_outer_loop_release(struct ops_outer_loop *loop);

#endif
