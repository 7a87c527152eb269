/* SPDX-License-Identifier: Apache-2.0
 *
 * The host tree of each thread: nesting of nodes, an only child of the same name folded into its parent, and the sums
 * of every node. Nodes that overlap only in part are siblings, and none is dropped.
 */
#include "analyze/views/views.h"
#include "base/alloc.h"

/* Labels are nodes only if they are collectives. */
static bool is_node(const struct ops_views *views, uint32_t row)
{
	uint8_t part = views->parts[row];

	if (part == VIEW_LABEL)
		return views->names[views->events->name[row]] & VIEW_NAME_COLLECTIVE;
	return part == VIEW_OPERATOR || part == VIEW_OLD_PYTHON || (part >= VIEW_MODULE && part <= VIEW_LIGHTNING_HOOK);
}

/* Adds the row below the innermost open node of its thread that contains it completely. */
static bool view_tree_add_node(struct ops_views *views, uint32_t row, uint32_t *top)
{
	uint32_t at = (uint32_t)views->nodes.count;
	struct view_node *node = OPS_ARRAY_PUSH(&views->nodes);
	uint32_t *open = &top[views->events->track[row]];
	uint32_t parent = *open;

	if (!node)
		return false;
	*node = (struct view_node){.row = row, .parent = OPS_NONE, .kept = at, .calls_of = at, .collective = OPS_NONE,
	                           .part = views->parts[row]};
	views->node_of[row] = at;
	if (views->events->flags[row] & OPS_EVENT_ASYNC)
		return true;
	while (parent != OPS_NONE) {
		int64_t end_ns = view_end(views, views->nodes.items[parent].row);

		if (view_start(views, row) < end_ns && view_end(views, row) <= end_ns)
			break;
		parent = views->nodes.items[parent].parent;
	}
	if (views->policy->drops_overlapping && parent != *open && view_start(views, row) < view_end(views, views->nodes.items[*open].row)) {
		views->nodes.count--;
		views->node_of[row] = OPS_NONE;
		return true;
	}
	node->parent = parent;
	if (parent != OPS_NONE)
		views->nodes.items[parent].children++;
	*open = at;
	return true;
}

/* An operator whose only child is an operator of the same name replaces that child in the tree: it has the child's
 * children and calls. Returns false if out of memory. */
static bool fold(struct ops_views *views)
{
	struct view_node *nodes = views->nodes.items;
	const uint32_t *names = views->events->name;
	uint32_t *last_child = ops_alloc_zeroed(views->nodes.count + 1, sizeof(*last_child)); /* by node with children */

	if (!last_child)
		return false;
	for (uint32_t i = 0; i < views->nodes.count; i++)
		if (nodes[i].parent != OPS_NONE)
			last_child[nodes[i].parent] = i;

	for (uint32_t i = 0; i < views->nodes.count; i++) {
		struct view_node *node = &nodes[i];
		struct view_node *child;

		if (node->kept != i)
			continue;
		while (node->children == 1) {
			child = &nodes[last_child[i]];
			if (node->part != VIEW_OPERATOR || child->part != VIEW_OPERATOR ||
			    names[node->row] != names[child->row])
				break;
			child->kept = i;
			node->calls_of = last_child[i];
			node->children = child->children;
			last_child[i] = last_child[last_child[i]];
		}
	}
	for (uint32_t i = 0; i < views->nodes.count; i++)
		if (nodes[i].parent != OPS_NONE)
			nodes[i].parent = nodes[nodes[i].parent].kept;
	ops_free(last_child);
	return true;
}

bool view_tree_build(struct ops_views *views)
{
	size_t tracks, count = 0;
	uint32_t *top;
	bool done = true;

	for (uint32_t row = 0; row < views->events->count; row++)
		count += is_node(views, row);
	ops_trace_tracks(views->trace, &tracks);
	top = ops_alloc_none(tracks + 1);
	if (!top || !OPS_ARRAY_RESERVE(&views->nodes, count)) {
		ops_free(top);
		return false;
	}
	for (uint32_t row = 0; done && row < views->events->count; row++) {
		views->node_of[row] = OPS_NONE;
		if (is_node(views, row))
			done = view_tree_add_node(views, row, top);
	}
	ops_free(top);
	return done && fold(views);
}

/* --- sums ----------------------------------------------------------------------------------------------------------- */

/* Adds the work that a node launched itself. Calls of a node whose only child was folded into it do not count; those of
 * the child do. */
static void view_tree_add_own(struct ops_views *views)
{
	struct view_node *nodes = views->nodes.items;

	for (size_t i = 0; i < views->launches.count; i++) {
		const struct view_launch *launch = &views->launches.items[i];

		if (launch->node != OPS_NONE)
			view_add(&nodes[launch->node].inner_ns, view_duration(views, launch->row));
	}
	for (size_t i = 0; i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];
		uint32_t at = event->origin == OPS_NONE ? OPS_NONE : views->launches.items[event->origin].node;
		int64_t duration_ns = view_duration(views, event->row);

		if (at == OPS_NONE)
			continue;
		view_add(&nodes[at].device_self_ns, duration_ns);
		if (event->part != VIEW_KERNEL)
			continue;
		view_add(&nodes[at].kernel_self_ns, duration_ns);
		if (views->names[views->events->name[event->row]] & VIEW_NAME_TENSOR_CORES)
			view_add(&nodes[at].tensor_self_ns, duration_ns);
	}
}

/* Adds the totals of a node to its parent. */
static void add_to_parent(struct ops_views *views, const struct view_node *node)
{
	struct view_node *parent = &views->nodes.items[node->parent];

	view_add(&parent->inner_ns, view_duration(views, node->row));
	view_add(&parent->device_total_ns, node->device_total_ns);
	view_add(&parent->tensor_total_ns, node->tensor_total_ns);
	parent->eligible_below |= node->eligible || node->eligible_below;
	if (parent->part == VIEW_OPERATOR)
		parent->eligible |= node->eligible;
	if (view_is_operator(views, node)) {
		parent->operators++;
		view_add(&parent->operators_device_ns, node->device_total_ns);
		view_add(&parent->operators_host_ns, view_duration(views, node->row));
	}
}

/* Returns true if an operator could use tensor cores. Names unknown to the TensorBoard plugin count only if kernels
 * ran, since they mean nothing in a trace of the CPU. */
static bool view_tree_is_eligible(const struct ops_views *views, const struct view_node *node)
{
	uint16_t name = views->names[views->events->name[node->row]];

	return node->part == VIEW_OPERATOR && (node->tensor_self_ns > 0 || (name & VIEW_NAME_ELIGIBLE) ||
	                                       (views->has_kernels && (name & VIEW_NAME_ELIGIBLE_SINCE)));
}

void view_tree_sum(struct ops_views *views)
{
	struct view_node *nodes = views->nodes.items;

	view_tree_add_own(views);
	for (uint32_t i = 0; i < views->nodes.count; i++) {
		struct view_node *node = &nodes[i];

		if (node->kept == i && node->calls_of != i) {
			const struct view_node *from = &nodes[node->calls_of];

			node->inner_ns = from->inner_ns;
			node->device_self_ns = from->device_self_ns;
			node->kernel_self_ns = from->kernel_self_ns;
			node->tensor_self_ns = from->tensor_self_ns;
		}
	}
	for (size_t i = views->nodes.count; i-- > 0;) {
		struct view_node *node = &nodes[i];

		if (node->kept != i)
			continue;
		node->eligible |= view_tree_is_eligible(views, node);
		view_add(&node->device_total_ns, node->device_self_ns);
		view_add(&node->tensor_total_ns, node->tensor_self_ns);
		if (node->parent != OPS_NONE)
			add_to_parent(views, node);
	}
}
