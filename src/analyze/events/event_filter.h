/* SPDX-License-Identifier: Apache-2.0
 *
 * Filters: what of a table an analysis looks at. They come as JSON: a text is an expression (event_query.h), an
 * object has conditions that must all hold, and of a list each takes from what the one before it has left:
 *
 *     iterations: [5, 6]       rows of these steps          iteration_positions: [0]  by their place among all steps
 *     first_iteration: true                                 time_range: [0, 2500]     microseconds, whole rows in it
 *     name: "aten::(mm|bmm)"   regular expression that the name begins with
 *     categories: ["kernel"]   streams: [7]                 non_zero_duration: true
 *     gpu_kernels: true        cpu_operators: true          memcpy: "HtoD"
 *     under | after | before: "aten::linear"                where on the same thread or stream, …
 *     occurrence: 0            … of which one of that name: -1 is the last
 *     with_kernels: true       … and what those rows have started
 *     depth: [0, 3]            how many rows of its thread a row is in
 *     query: "dur > 100"       an expression
 */
#ifndef OPS_ANALYZE_EVENT_FILTER_H
#define OPS_ANALYZE_EVENT_FILTER_H

#include "analyze/events/event_table.h"
#include "base/json_walk.h"

/* Whether that is a filter: OPS_INVALID says what is wrong with it. `json` is well-formed. */
enum ops_code event_filter_check(struct ops_string json, struct ops_error *error);
/* Takes from the rows that the table keeps. The filter has been checked. Fails with OPS_INVALID, in
 * set->error, when that takes too much work. */
enum ops_code event_filter_apply(struct ops_string json, const struct event_set *set, struct event_table *table);

#endif
