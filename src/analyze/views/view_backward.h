/* SPDX-License-Identifier: Apache-2.0
 *
 * The backward of each module call as a separate node.
 */
#ifndef OPS_ANALYZE_VIEW_BACKWARD_H
#define OPS_ANALYZE_VIEW_BACKWARD_H

#include "analyze/views/views.h"

/* From the first of the autograd engine's nodes of a module call, and of the calls in it, to the end of the last. */
struct view_backward {
	uint32_t module; /* node of the call */
	uint32_t parent; /* index of the backward it is in; OPS_NONE */
	uint32_t first;  /* the first engine node in it */
	int64_t start_ns;
	int64_t end_ns;
	int64_t host_total_ns; /* of the engine nodes, without what is between them */
	int64_t device_total_ns;
};

struct view_backwards {
	OPS_ARRAY(struct view_backward) items;
	uint32_t *of_node; /* by node: index of the backward that an engine node is in; OPS_NONE */
};

/* False when memory is out. Released in any case. */
bool view_backwards_find(const struct ops_views *views, struct view_backwards *backwards);
void view_backwards_release(struct view_backwards *backwards);

#endif
