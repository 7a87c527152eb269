/* SPDX-License-Identifier: Apache-2.0
 *
 * The lanes of a track while rows are laid into them in order of their start: which is the first lane, from some depth on,
 * in which nothing runs any more. A tree of minima over the ends of the lanes, so that a trace in which thousands of rows
 * overlap each other costs a logarithm, and one that nests costs one look.
 */
#ifndef OPS_ANALYZE_LANE_TREE_H
#define OPS_ANALYZE_LANE_TREE_H

#include <stdint.h>

struct lane_tree {
	int64_t *least; /* a heap: the leaf of lane d is `leaves + d` */
	uint32_t leaves; /* a power of two */
	uint32_t used;   /* lanes that ever had a row */
};

/* Lays a row into the first lane from `from` on that is free at `start_ns`; OPS_NONE when memory is out. */
uint32_t lane_tree_lay(struct lane_tree *tree, uint32_t from, int64_t start_ns, int64_t end_ns);
void lane_tree_release(struct lane_tree *tree);

#endif
