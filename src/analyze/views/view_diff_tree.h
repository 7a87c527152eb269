/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of a diff as a tree, downwards: the host nodes of a trace, those of the autograd engine moved below the
 * backward of their module. A place in it is the index of a node or, from the nodes' count on, of a backward.
 */
#ifndef OPS_ANALYZE_VIEW_DIFF_TREE_H
#define OPS_ANALYZE_VIEW_DIFF_TREE_H

#include "analyze/views/view_backward.h"
#include "base/intern.h"

struct view_diff_tree {
	const struct ops_views *views;
	struct ops_intern *texts; /* the diff's */
	struct view_backwards backwards;
	OPS_ARRAY(uint32_t) steps; /* places, in order of start */
	uint32_t roots;  /* the first place without a parent */
	uint32_t *first; /* child by place, in order of start */
	uint32_t *next;  /* sibling */
	uint32_t *keys;  /* by place: what anchors are matched by, OPS_NONE of others */
	uint32_t *marks; /* by string: the last list that has an operator of this name */
	uint32_t mark;
};

/* `keys` and `texts` are of both sides. False when memory is out; released in any case. */
bool view_diff_tree_init(struct view_diff_tree *tree, const struct ops_views *views, struct ops_intern *keys,
                         struct ops_intern *texts);
void view_diff_tree_release(struct view_diff_tree *tree);

/* The node at a place; NULL of a backward. */
static inline const struct view_node *view_diff_node(const struct view_diff_tree *tree, uint32_t at)
{
	return at < tree->views->nodes.count ? &tree->views->nodes.items[at] : NULL;
}

/* The step event that something begins in, or OPS_NONE. */
uint32_t view_diff_step_at(const struct view_diff_tree *tree, int64_t start_ns);
/* The step, marked or derived, that something begins in: an index into ops_views.host_steps, or OPS_NONE. */
uint32_t view_diff_host_step(const struct view_diff_tree *tree, int64_t start_ns);
/* Whether something that begins then counts: in a step, or anywhere in a trace without steps. */
bool view_diff_counts(const struct view_diff_tree *tree, int64_t start_ns);
int64_t view_diff_start(const struct view_diff_tree *tree, uint32_t at);
/* The place that another one is in, or OPS_NONE. */
uint32_t view_diff_parent(const struct view_diff_tree *tree, uint32_t at);
uint32_t view_diff_track(const struct view_diff_tree *tree, uint32_t at);
int64_t view_diff_host_ns(const struct view_diff_tree *tree, uint32_t at);
int64_t view_diff_device_ns(const struct view_diff_tree *tree, uint32_t at);
/* "aten::mm", "nn.Module: Linear_0.backward"; size 0 when memory is out. */
struct ops_string view_diff_name(const struct view_diff_tree *tree, uint32_t at);

#endif
