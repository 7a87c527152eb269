/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of a diff as a tree: the host nodes of a trace, with nodes of the autograd engine moved below the backward
 * of their module. A place in the tree is the index of a node or, from the number of nodes on, of a backward.
 */
#ifndef OPS_ANALYZE_VIEW_DIFF_TREE_H
#define OPS_ANALYZE_VIEW_DIFF_TREE_H

#include "analyze/views/view_backward.h"
#include "base/intern.h"

struct view_diff_tree {
	const struct ops_views *views;
	struct ops_intern *texts; /* owned by the diff */
	bool by_path;             /* modules are identified by their paths in the model, if both sides are recordings */
	struct view_backwards backwards;
	OPS_ARRAY(uint32_t) steps; /* places, in order of start */
	uint32_t roots;  /* the first place without a parent */
	uint32_t *first; /* first child by place, in order of start */
	uint32_t *next;  /* next sibling */
	uint32_t *keys;  /* by place: the key by which anchors are matched; OPS_NONE for other places */
	uint32_t *marks; /* by string: the last list that contained an operator of this name */
	uint32_t mark;
};

/* `keys` and `texts` are shared by both sides. Returns false if out of memory. The caller must release the tree in any
 * case. */
bool view_diff_tree_init(struct view_diff_tree *tree, const struct ops_views *views, struct ops_intern *keys,
                         struct ops_intern *texts, bool by_path);
void view_diff_tree_release(struct view_diff_tree *tree);

/* Returns the node at a place; NULL for a backward. */
static inline const struct view_node *view_diff_node(const struct view_diff_tree *tree, uint32_t at)
{
	return at < tree->views->nodes.count ? &tree->views->nodes.items[at] : NULL;
}

/* Returns the step event in which a time lies, or OPS_NONE. */
uint32_t view_diff_step_at(const struct view_diff_tree *tree, int64_t start_ns);
/* Returns the step, marked or derived, in which a time lies: an index into ops_views.host_steps, or OPS_NONE. */
uint32_t view_diff_host_step(const struct view_diff_tree *tree, int64_t start_ns);
int64_t view_diff_start(const struct view_diff_tree *tree, uint32_t at);
/* Returns the parent of a place, or OPS_NONE. */
uint32_t view_diff_parent(const struct view_diff_tree *tree, uint32_t at);
uint32_t view_diff_track(const struct view_diff_tree *tree, uint32_t at);
int64_t view_diff_host_ns(const struct view_diff_tree *tree, uint32_t at);
int64_t view_diff_device_ns(const struct view_diff_tree *tree, uint32_t at);
/* Returns the name of a module's node: "blocks.0.attn", or "nn.Module: Linear_0" if a side has no paths. */
struct ops_string view_diff_module_name(const struct view_diff_tree *tree, uint32_t at);
/* Returns "aten::mm" or "blocks.0.attn.backward"; size 0 if out of memory. */
struct ops_string view_diff_name(const struct view_diff_tree *tree, uint32_t at);

#endif
