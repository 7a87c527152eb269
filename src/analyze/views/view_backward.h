/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward of each module call as a separate node.
 */
#ifndef OPS_ANALYZE_VIEW_BACKWARD_H
#define OPS_ANALYZE_VIEW_BACKWARD_H

#include "analyze/views/views.h"

/* The range from the first node of the autograd engine for a module call, and for the calls in it, to the end of the
 * last. */
struct view_backward {
	uint32_t module; /* node of the call */
	uint32_t parent; /* index of the backward around it; OPS_NONE: none */
	uint32_t first;  /* the first engine node in it */
	int64_t start_ns;
	int64_t end_ns;
	int64_t host_total_ns; /* sum over the engine nodes, without the time between them */
	int64_t device_total_ns;
};

struct view_backwards {
	OPS_ARRAY(struct view_backward) items;
	uint32_t *of_node; /* by node: index of the backward that contains an engine node; OPS_NONE: none */
};

/* Returns false if out of memory. The caller must release it in any case. */
bool view_backwards_find(const struct ops_views *views, struct view_backwards *backwards);
void view_backwards_release(struct view_backwards *backwards);

#endif
