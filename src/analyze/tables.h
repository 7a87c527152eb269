/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of tables. Each is declared where it is filled.
 */
#ifndef OPS_ANALYZE_TABLES_H
#define OPS_ANALYZE_TABLES_H

#include "analyze/result.h"

/* In the order of the reference documentation. */
#define RESULT_TABLES(X) \
	X(overview) X(kernels) X(kernel_categories) X(modules) X(memory) X(diff) X(lines) X(data_flow) X(threads) X(events) X(temporal_breakdown) X(kernels_by_type) X(kernels_by_name) X(comm_comp_overlap) X(idle_time) \
	X(idle_intervals) X(launches) X(first_launches) X(queue_summary) X(queue_points) X(full_queue) X(memory_summary) \
	X(memory_points) X(counter_trace) X(user_annotations) X(info) X(recording) X(event_kinds) X(validate) X(key_averages) X(trace_diff) X(cupti_counters) \
	X(roofline) X(operator_roofline) X(whatif) X(nccl_collectives) X(collective_bandwidth) X(operator_launches) X(call_graph) X(kernel_sequences) \
	X(module_kernels) X(critical_edges) X(memory_timeline) X(findings) X(incidents) X(archive_traces) X(archive_trend) X(archive_causes) \
	X(archive_steps)

/* Objects of the HTTP interface. */
#define RESULT_OBJECTS(X) X(module) X(module_costs) X(source_line) X(source_file) X(block) X(roofline_row) X(not_explained)

#define DECLARE(name) extern const struct result_declaration table_##name;
RESULT_TABLES(DECLARE) RESULT_OBJECTS(DECLARE)
#undef DECLARE

/* Writes {"tables": […], "objects": […], "relations_version": 1, "relations": […]}, each with its columns. */
void result_tables_json(struct ops_json_writer *json);

#endif
