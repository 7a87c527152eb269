/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of one side of a diff; see view_diff_tree.h.
 */
#include "analyze/views/view_diff_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/search.h"
#include "derive/modules.h"

static const struct view_backward *backward_at(const struct view_diff_tree *tree, uint32_t at)
{
	return &tree->backwards.items.items[at - tree->views->nodes.count];
}

int64_t view_diff_start(const struct view_diff_tree *tree, uint32_t at)
{
	const struct view_node *node = view_diff_node(tree, at);

	return node ? view_start(tree->views, node->row) : backward_at(tree, at)->start_ns;
}

uint32_t view_diff_track(const struct view_diff_tree *tree, uint32_t at)
{
	const struct view_node *node = view_diff_node(tree, at);

	if (!node)
		node = &tree->views->nodes.items[backward_at(tree, at)->module];
	return tree->views->events->track[node->row];
}

int64_t view_diff_host_ns(const struct view_diff_tree *tree, uint32_t at)
{
	const struct view_node *node = view_diff_node(tree, at);

	return node ? view_duration(tree->views, node->row)
	            : ops_difference(backward_at(tree, at)->end_ns, backward_at(tree, at)->start_ns);
}

int64_t view_diff_device_ns(const struct view_diff_tree *tree, uint32_t at)
{
	const struct view_node *node = view_diff_node(tree, at);

	return node ? node->device_total_ns : backward_at(tree, at)->device_total_ns;
}

struct ops_string view_diff_module_name(const struct view_diff_tree *tree, uint32_t at)
{
	uint32_t row = tree->views->nodes.items[at].row;

	return tree->by_path ? ops_module_of_call(tree->views->trace, row) : view_row_name(tree->views, row);
}

struct ops_string view_diff_name(const struct view_diff_tree *tree, uint32_t at)
{
	const struct view_node *node = view_diff_node(tree, at);
	struct ops_intern *texts = tree->texts;
	struct ops_buffer name = {0};
	struct ops_string module;
	uint32_t text;

	if (node)
		return node->part == VIEW_MODULE ? view_diff_module_name(tree, at) : view_row_name(tree->views, node->row);
	module = view_diff_module_name(tree, backward_at(tree, at)->module);
	ops_buffer_append(&name, module.bytes, module.size);
	ops_buffer_append_text(&name, ".backward");
	text = name.failed ? OPS_INTERN_NONE : ops_intern_add(texts, name.bytes, name.size);
	ops_buffer_release(&name);
	return text == OPS_INTERN_NONE ? (struct ops_string){0}
	                               : ops_intern_text(texts, text);
}

/* --- construction --------------------------------------------------------------------------------------------------- */

static bool is_anchor(const struct view_node *node)
{
	return node->part == VIEW_LOADER || node->part == VIEW_MODULE || node->part == VIEW_OPTIMIZER || node->part == VIEW_STEP;
}

static bool find_key(struct view_diff_tree *tree, struct ops_intern *keys, uint32_t at)
{
	const struct view_node *node = view_diff_node(tree, at);
	uint8_t part = node ? node->part : VIEW_NOTHING; /* no node has the part of backwards */
	struct ops_string name;
	struct ops_buffer key = {0};

	tree->keys[at] = OPS_NONE;
	if (node && !is_anchor(node))
		return true;
	name = view_diff_name(tree, at);
	ops_buffer_append(&key, &part, 1);
	ops_buffer_append(&key, name.bytes, name.size);
	if (!key.failed && name.bytes)
		tree->keys[at] = ops_intern_add(keys, key.bytes, key.size);
	ops_buffer_release(&key);
	return tree->keys[at] != OPS_NONE;
}

static bool view_diff_tree_find_steps(struct view_diff_tree *tree)
{
	for (uint32_t i = 0; i < tree->views->nodes.count; i++) {
		uint32_t *step = tree->views->nodes.items[i].part == VIEW_STEP ? OPS_ARRAY_PUSH(&tree->steps) : NULL;

		if (step)
			*step = i;
		else if (tree->views->nodes.items[i].part == VIEW_STEP)
			return false;
	}
	return true;
}

uint32_t view_diff_step_at(const struct view_diff_tree *tree, int64_t start_ns)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, tree->steps.count, mid, view_diff_start(tree, tree->steps.items[mid]) <= start_ns);
	if (!low || view_end(tree->views, tree->views->nodes.items[tree->steps.items[low - 1]].row) <= start_ns)
		return OPS_NONE;
	return tree->steps.items[low - 1];
}

uint32_t view_diff_host_step(const struct view_diff_tree *tree, int64_t start_ns)
{
	return ops_steps_at(tree->views->host_steps, start_ns);
}

uint32_t view_diff_parent(const struct view_diff_tree *tree, uint32_t at)
{
	const struct view_node *node = view_diff_node(tree, at);
	const struct view_backward *backward;
	uint32_t first;

	if (node)
		return tree->backwards.of_node[at] == OPS_NONE
		               ? node->parent
		               : (uint32_t)tree->views->nodes.count + tree->backwards.of_node[at];
	backward = backward_at(tree, at);
	if (backward->parent != OPS_NONE)
		return (uint32_t)tree->views->nodes.count + backward->parent;
	/* Below the parent of its first node; if that is on another thread, in the step. */
	first = backward->first;
	return view_diff_track(tree, first) == view_diff_track(tree, at) ? tree->views->nodes.items[first].parent
	                                                                 : view_diff_step_at(tree, backward->start_ns);
}

static int view_diff_tree_compare_starts(const void *a, const void *b, void *context)
{
	const struct view_diff_tree *tree = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int64_t left_ns = view_diff_start(tree, left), right_ns = view_diff_start(tree, right);

	if (left_ns != right_ns)
		return left_ns < right_ns ? -1 : 1;
	return (left > right) - (left < right);
}

static void view_diff_tree_put_first(struct view_diff_tree *tree, uint32_t at)
{
	uint32_t parent = view_diff_parent(tree, at);
	uint32_t *list = parent == OPS_NONE ? &tree->roots : &tree->first[parent];

	tree->next[at] = *list;
	*list = at;
}

/* Inserts from the last start to the first. Nodes are in order already; backwards are merged into them. */
static bool hang_up(struct view_diff_tree *tree)
{
	size_t nodes = tree->views->nodes.count, backwards = tree->backwards.items.count;
	uint32_t *order = ops_realloc_array(NULL, backwards + 1, sizeof(*order));

	if (!order)
		return false;
	for (size_t i = 0; i < backwards; i++)
		order[i] = (uint32_t)(nodes + i);
	if (backwards)
		qsort_r(order, backwards, sizeof(*order), view_diff_tree_compare_starts, tree);
	while (nodes || backwards) {
		uint32_t node = (uint32_t)nodes - 1;

		if (backwards && (!nodes || view_diff_start(tree, order[backwards - 1]) > view_diff_start(tree, node))) {
			view_diff_tree_put_first(tree, order[--backwards]);
			continue;
		}
		nodes--;
		if (tree->views->nodes.items[node].kept == node)
			view_diff_tree_put_first(tree, node);
	}
	ops_free(order);
	return true;
}

bool view_diff_tree_init(struct view_diff_tree *tree, const struct ops_views *views, struct ops_intern *keys,
                         struct ops_intern *texts, bool by_path)
{
	size_t count, strings = ops_trace_string_count(views->trace) + 1;

	*tree = (struct view_diff_tree){.views = views, .texts = texts, .by_path = by_path, .roots = OPS_NONE};
	if (!view_backwards_find(views, &tree->backwards))
		return false;
	count = views->nodes.count + tree->backwards.items.count + 1;
	tree->first = ops_alloc_none(count);
	tree->next = ops_realloc_array(NULL, count, sizeof(*tree->next));
	tree->keys = ops_realloc_array(NULL, count, sizeof(*tree->keys));
	tree->marks = ops_alloc_zeroed(strings, sizeof(*tree->marks));
	if (!tree->first || !tree->next || !tree->keys || !tree->marks)
		return false;
	for (uint32_t i = 0; i + 1 < count; i++)
		if (!find_key(tree, keys, i))
			return false;
	return view_diff_tree_find_steps(tree) && hang_up(tree);
}

void view_diff_tree_release(struct view_diff_tree *tree)
{
	view_backwards_release(&tree->backwards);
	OPS_ARRAY_RELEASE(&tree->steps);
	ops_free(tree->first);
	ops_free(tree->next);
	ops_free(tree->keys);
	ops_free(tree->marks);
}
