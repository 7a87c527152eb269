/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of a table's rows.
 */
#ifndef OPS_ANALYZE_TABLE_SORT_H
#define OPS_ANALYZE_TABLE_SORT_H

#include <opstrobe/internal/analyze.h>

/* Sorts rows by the attribute `sort_by`, the largest first; the sort is stable. Errors are those of ops_table_text().
 * The caller frees `*ret_order` with ops_free. */
enum ops_code ops_table_sort(const struct ops_trace *trace, const struct ops_stacks *stacks,
                             const struct ops_rows *rows, const char *sort_by,
			     uint32_t **ret_order, struct ops_error *error);

#endif
