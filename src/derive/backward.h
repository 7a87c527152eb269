/* SPDX-License-Identifier: Apache-2.0
 *
 * Which forward operator, and which call of a module, a backward node belongs to.
 */
#ifndef OPS_DERIVE_BACKWARD_H
#define OPS_DERIVE_BACKWARD_H

#include <opstrobe/trace.h>

#define OPS_ROW_PLAIN (OPS_NONE - 1)

/* By row: OPS_ROW_PLAIN for a row that is not a backward node, OPS_NONE for a node without a known forward operator,
 * else the row of the forward operator, which is smaller. The result is kept with the trace. Returns NULL if out of
 * memory. */
const uint32_t *ops_forward_rows(const struct ops_trace *trace);

/* By row: OPS_ROW_PLAIN for a row outside of backward nodes, OPS_NONE for a node of an unknown module, else the row of
 * the module call in which its forward operator ran. A node here is the engine's range around a backward node, or the
 * node itself in files without such ranges, together with all rows inside it that no inner node contains. The result is
 * kept with the trace. Returns NULL if out of memory. */
const uint32_t *ops_backward_modules(const struct ops_trace *trace);

#endif
