/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of each side of a diff: rows by name, parts of the steps, modules and memory. All steps are added up before the
 * comparison, so that sides with different numbers of steps can be compared.
 */
#ifndef OPS_ANALYZE_VIEW_DIFF_SUMS_H
#define OPS_ANALYZE_VIEW_DIFF_SUMS_H

#include "analyze/views/view_diff.h"
#include "analyze/views/view_diff_tree.h"

/* Returns false if out of memory. */
bool view_diff_add_parts(struct view_diff *diff, int which, const struct view_diff_tree *tree, const uint32_t *places, size_t count);
/* Removes all parts if none of them has a name. */
void view_diff_finish_parts(struct view_diff *diff);
bool view_diff_add_modules(struct view_diff *diff, int which, const struct view_diff_tree *tree);
bool view_diff_add_memory(struct view_diff *diff, int which, const struct view_diff_tree *tree);
/* Adds a call of that name. */
bool view_diff_rows_add(struct view_diff_rows *rows, int which, struct ops_string name, const int64_t ns[VIEW_DIFF_TIMES]);
void view_diff_rows_sort(struct view_diff_rows *rows);
void view_diff_rows_release(struct view_diff_rows *rows);

#endif
