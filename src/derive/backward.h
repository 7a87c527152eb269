/* SPDX-License-Identifier: Apache-2.0
 *
 * Which forward operator, and which call of a module, a backward node belongs to.
 */
#ifndef OPS_DERIVE_BACKWARD_H
#define OPS_DERIVE_BACKWARD_H

#include <opstrobe/trace.h>

#define OPS_ROW_PLAIN (OPS_NONE - 1)

/* By row: OPS_ROW_PLAIN for a row that is not a backward node, OPS_NONE for a node without a known forward operator, else that
 * operator's row, which is smaller. Kept with the trace; NULL when memory is out. */
const uint32_t *ops_forward_rows(const struct ops_trace *trace);

/* By row: OPS_ROW_PLAIN for a row that is not a backward node, OPS_NONE for a node of no known module, else the row of the call of
 * a module in which its forward operator ran. A node here is what the autograd engine runs around one, or in files without that,
 * the node by itself; with all in it that has no node inside. Kept with the trace; NULL when memory is out. */
const uint32_t *ops_backward_modules(const struct ops_trace *trace);

#endif
