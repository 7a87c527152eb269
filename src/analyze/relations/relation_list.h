/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of relations. Each has a declaration and a function that opens its rows, in a separate file or together with
 * similar ones.
 */
#ifndef OPS_ANALYZE_RELATION_LIST_H
#define OPS_ANALYZE_RELATION_LIST_H

#include "analyze/relations/relations.h"

/* In the order of the reference. */
#define RELATIONS(X)                                                                                       \
	X(events) X(kernels) X(collectives) X(steps) X(memory) X(counters) X(flows) X(modules) X(lines)    \
	X(compile_events) X(findings) X(tracks) X(processes) X(ranks) X(metadata)

#define DECLARE(name)                                              \
	extern const struct result_declaration relation_##name##_declaration; \
	bool relation_##name##_open(struct relation_rows *rows);
RELATIONS(DECLARE)
#undef DECLARE

/* Getter of a column: `row` is a const struct relation_row, `rows` the rows that it belongs to. */
#define RELATION_GETTER(function, ...)                                                    \
	static void function(const void *any_row, struct result_cell *cell)               \
	{                                                                                 \
		const struct relation_row *row = any_row;                                 \
		struct relation_rows *rows = row->rows;                                   \
                                                                                          \
		__VA_ARGS__;                                                              \
	}

#endif
