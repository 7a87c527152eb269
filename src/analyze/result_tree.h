/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of values as tables, for the forms that know nothing else.
 */
#ifndef OPS_ANALYZE_RESULT_TREE_H
#define OPS_ANALYZE_RESULT_TREE_H

#include "analyze/result.h"

/* A table in the tree. */
struct result_branch {
	struct ops_string path; /* "0.series" */
	const struct result_table *table; /* of the result */
};

struct result_tree {
	struct result_table leaves; /* where each value stands, and what it is */
	OPS_ARRAY(struct result_branch) branches;
	struct ops_arena arena; /* paths */
};

/* A tree of nothing but tables with the same columns, one a rank, becomes one table of all of them in `leaves`. Other tables
 * are branches, and a list of leaves is one leaf; with `flat`, for programs, each of their values is a leaf. To be released in any
 * case; false when memory is out. */
bool result_tree_make(struct result_tree *tree, const struct result *result, bool flat);
void result_tree_release(struct result_tree *tree);

#endif
