/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters: which rows of a table an analysis uses. A filter is JSON. A text is an expression (event_query.h). An object
 * has conditions that must all hold. The filters of a list apply one after another:
 *
 *     iterations: [5, 6]       rows of these steps          iteration_positions: [0]  by their position among all steps
 *     first_iteration: true                                 time_range: [0, 2500]     microseconds; rows completely inside
 *     name: "aten::(mm|bmm)"   regular expression, matched at the start of the name
 *     categories: ["kernel"]   streams: [7]                 non_zero_duration: true
 *     gpu_kernels: true        cpu_operators: true          memcpy: "HtoD"
 *     under | after | before: "aten::linear"                position on the same thread or stream, …
 *     occurrence: 0            … relative to this row of that name: -1 is the last
 *     with_kernels: true       … also the work that those rows launched
 *     depth: [0, 3]            number of rows of its thread around a row
 *     query: "dur > 100"       an expression
 */
#ifndef OPS_ANALYZE_EVENT_FILTER_H
#define OPS_ANALYZE_EVENT_FILTER_H

#include "analyze/events/event_table.h"
#include "base/json_walk.h"

/* Returns OPS_INVALID with a message if the JSON is not a valid filter. `json` is well-formed. */
enum ops_code event_filter_check(struct ops_string json, struct ops_error *error);
/* Removes rows from those that the table keeps. The filter has been checked. Fails with OPS_INVALID, in set->error, if
 * that takes too much work. */
enum ops_code event_filter_apply(struct ops_string json, const struct event_set *set, struct event_table *table);

#endif
