/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds free lanes with a tree of minima; see lane_tree.h.
 */
#include "analyze/timeline/lane_tree.h"

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "base/alloc.h"

#define EMPTY INT64_MIN /* end of a lane without rows, which is free at any time */

static int64_t lesser(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Grows the tree to at least `wanted` leaves. */
static bool lane_tree_grow(struct lane_tree *tree, uint32_t wanted)
{
	uint32_t leaves = tree->leaves ? tree->leaves : 4;
	int64_t *least;

	while (leaves < wanted && leaves < UINT32_C(1) << 31)
		leaves *= 2;
	least = ops_realloc_array(NULL, (size_t)leaves * 2, sizeof(*least));
	if (!least || leaves < wanted) {
		ops_free(least);
		return false;
	}
	for (uint32_t d = 0; d < leaves; d++)
		least[leaves + d] = d < tree->leaves ? tree->least[tree->leaves + d] : EMPTY;
	for (uint32_t node = leaves - 1; node > 0; node--)
		least[node] = lesser(least[2 * node], least[2 * node + 1]);
	ops_free(tree->least);
	tree->least = least;
	tree->leaves = leaves;
	return true;
}

/* Returns the first lane from `from` on that ends at or before `start_ns`; `leaves` if there is none. */
static uint32_t find_free(const struct lane_tree *tree, uint32_t from, int64_t start_ns)
{
	uint32_t node = tree->leaves + from;

	/* Go up while all lanes below, from this node to the right, are busy … */
	while (tree->least[node] > start_ns) {
		while (node & 1)
			node /= 2;
		if (node == 0)
			return tree->leaves;
		node++;
	}
	/* … then down to the first free one. */
	while (node < tree->leaves)
		node = tree->least[2 * node] <= start_ns ? 2 * node : 2 * node + 1;
	return node - tree->leaves;
}

uint32_t lane_tree_lay(struct lane_tree *tree, uint32_t from, int64_t start_ns, int64_t end_ns)
{
	uint32_t lane;

	if (from >= tree->leaves && !lane_tree_grow(tree, from + 1))
		return OPS_NONE;
	lane = find_free(tree, from, start_ns);
	if (lane == tree->leaves && !lane_tree_grow(tree, lane + 1))
		return OPS_NONE;
	if (lane >= tree->used)
		tree->used = lane + 1;
	tree->least[tree->leaves + lane] = end_ns;
	for (uint32_t node = (tree->leaves + lane) / 2; node > 0; node /= 2) {
		int64_t least = lesser(tree->least[2 * node], tree->least[2 * node + 1]);

		if (tree->least[node] == least)
			break;
		tree->least[node] = least;
	}
	return lane;
}

void lane_tree_release(struct lane_tree *tree)
{
	ops_free(tree->least);
	*tree = (struct lane_tree){0};
}
