/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of values converted to tables, for formats that have only tables.
 */
#ifndef OPS_ANALYZE_RESULT_TREE_H
#define OPS_ANALYZE_RESULT_TREE_H

#include "analyze/result.h"

/* A table in the tree. */
struct result_branch {
	struct ops_string path; /* "0.series" */
	const struct result_table *table; /* table of the result */
};

struct result_tree {
	struct result_table leaves; /* position and value of each leaf */
	OPS_ARRAY(struct result_branch) branches;
	struct ops_arena arena; /* storage of the paths */
};

/* Converts a tree. If it consists only of tables with the same columns, one per rank, they become one table in
 * `leaves`. Other tables are branches, and a list of leaves is one leaf. With `flat`, for programs, each value of these
 * is a leaf. The caller must release the tree in any case. Returns false if out of memory. */
bool result_tree_make(struct result_tree *tree, const struct result *result, bool flat);
void result_tree_release(struct result_tree *tree);

#endif
