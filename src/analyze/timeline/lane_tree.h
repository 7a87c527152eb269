/* SPDX-License-Identifier: Apache-2.0
 *
 * The lanes of a track while rows are assigned to them in order of their start. Finds the first lane, from a given
 * depth on, in which nothing runs any more. A tree of minima over the ends of the lanes makes this logarithmic if
 * thousands of rows overlap each other, and constant if rows nest.
 */
#ifndef OPS_ANALYZE_LANE_TREE_H
#define OPS_ANALYZE_LANE_TREE_H

#include <stdint.h>

struct lane_tree {
	int64_t *least; /* a heap: the leaf of lane d is `leaves + d` */
	uint32_t leaves; /* a power of two */
	uint32_t used;   /* number of lanes that have had a row */
};

/* Assigns a row to the first lane from `from` on that is free at `start_ns`, and returns that lane. Returns OPS_NONE if
 * out of memory. */
uint32_t lane_tree_lay(struct lane_tree *tree, uint32_t from, int64_t start_ns, int64_t end_ns);
void lane_tree_release(struct lane_tree *tree);

#endif
