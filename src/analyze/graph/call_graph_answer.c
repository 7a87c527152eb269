/* SPDX-License-Identifier: Apache-2.0
 *
 * `call_graph`: figures of each rank's call graph, all of its nodes, or the details of one event.
 */
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/graph/call_graph.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/sum.h"
#include "base/text.h"

/* --- figures --------------------------------------------------------------------------------------------------------- */

static void write_labels(struct ops_json_writer *json, const struct call_graph *graph)
{
	ops_json_member_open(json, "labels", '{');
	if (graph->autograd != OPS_NONE)
		ops_json_member(json, "bwd", 1);
	if (graph->main != OPS_NONE)
		ops_json_member(json, "main", 1);
	ops_json_close(json, '}');
}

struct figures {
	uint64_t *depths; /* host rows by depth + 1 */
	int32_t max_depth, max_height;
	uint32_t with_kernels, top_kernels, stacks;
	int64_t top_kernels_ns;
};

static bool call_graph_answer_count(const struct call_graph *graph, struct figures *figures)
{
	const struct event_table *table = graph->table;

	*figures = (struct figures){.max_depth = -1, .max_height = -1};
	for (size_t i = 0; i < table->kept_count; i++)
		if (graph->nodes[table->kept[i]].depth > figures->max_depth)
			figures->max_depth = graph->nodes[table->kept[i]].depth;
	figures->depths = ops_alloc_zeroed((size_t)figures->max_depth + 2, sizeof(*figures->depths));
	if (!figures->depths)
		return false;
	for (size_t i = 0; i < table->kept_count; i++) {
		const struct call_node *node = &graph->nodes[table->kept[i]];

		if (node->height > figures->max_height)
			figures->max_height = node->height;
		if (table->rows[table->kept[i]].stream != -1)
			continue;
		figures->depths[node->depth + 1]++;
		figures->with_kernels += node->kernels > 0;
		if (node->depth != 0)
			continue;
		figures->top_kernels += node->kernels;
		figures->top_kernels_ns = ops_sum(figures->top_kernels_ns, node->kernels_ns);
	}
	for (size_t t = 0; t < graph->thread_count; t++)
		figures->stacks += graph->threads[t].rows && !graph->threads[t].is_stream;
	return true;
}

static bool call_graph_answer_write_figures(struct ops_json_writer *json, const struct call_graph *graph)
{
	struct figures figures;

	if (!call_graph_answer_count(graph, &figures))
		return false;
	ops_json_open(json, '{');
	ops_json_member(json, "stacks", figures.stacks);
	write_labels(json, graph);
	ops_json_member_open(json, "depth_hist_cpu", '{');
	for (int32_t depth = -1; depth <= figures.max_depth; depth++) {
		if (!figures.depths[depth + 1])
			continue;
		analysis_rank_key(json, depth);
		ops_json_integer(json, (int64_t)figures.depths[depth + 1]);
	}
	ops_json_close(json, '}');
	ops_json_member(json, "cpu_rows_with_kernels", figures.with_kernels);
	ops_json_member(json, "max_depth", figures.max_depth);
	ops_json_member(json, "max_height", figures.max_height);
	ops_json_member(json, "kernels_linked", graph->linked);
	ops_json_member_us(json, "top_level_kernel_dur_sum", figures.top_kernels_ns);
	ops_json_member(json, "top_level_num_kernels", figures.top_kernels);
	ops_json_close(json, '}');
	ops_free(figures.depths);
	return true;
}

/* --- nodes ----------------------------------------------------------------------------------------------------------- */

#define NO_KERNEL_NS (-1000)

struct node_row {
	int64_t rank, parent, kernels_ns, first_ns, last_ns, span_ns;
	uint32_t index, kernels;
	int32_t depth, height;
	struct ops_string name;
};

static const struct result_column node_columns[] = {
	RANK_COLUMN(struct node_row),
	INDEX_COLUMN(struct node_row),
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the event", RESULT_FIELD(struct node_row, name)},
	{.name = "parent", .type = RESULT_INTEGER, .title = "Parent", .about = "Index of the event around it; null: none",
	 RESULT_FIELD(struct node_row, parent)},
	{.name = "depth", .type = RESULT_INTEGER, .title = "Depth", .about = "Number of events around it",
	 RESULT_FIELD(struct node_row, depth)},
	{.name = "height", .type = RESULT_INTEGER, .title = "Height", .about = "Levels of events below it",
	 RESULT_FIELD(struct node_row, height)},
	{.name = "num_kernels", .type = RESULT_COUNT, .title = "Kernels", .about = "Device work that it and the events below launch",
	 RESULT_FIELD(struct node_row, kernels)},
	{.name = "kernel_dur_sum", .type = RESULT_TIME, .title = "Kernel time", .about = "Sum of the durations of that work",
	 RESULT_FIELD(struct node_row, kernels_ns)},
	{.name = "first_kernel_start", .type = RESULT_MOMENT, .title = "First kernel",
	 .about = "Start of the first of that work, since the first event of the ranks; -1: none", RESULT_FIELD(struct node_row, first_ns)},
	{.name = "last_kernel_end", .type = RESULT_MOMENT, .title = "Last kernel",
	 .about = "End of the last of that work; -1: none", RESULT_FIELD(struct node_row, last_ns)},
	{.name = "kernel_span", .type = RESULT_TIME, .title = "Kernel span", .about = "From that start to that end",
	 RESULT_FIELD(struct node_row, span_ns)},
};
const struct result_declaration table_call_graph =
	RESULT_DECLARATION("call_graph", "An event, with the option nodes", node_columns);

static void call_graph_answer_add_node(struct result_table *out, const struct call_graph *graph, uint32_t at, int64_t first_ns)
{
	const struct event_table *table = graph->table;
	const struct event_row *row = &table->rows[at];
	const struct call_node *node = &graph->nodes[at];

	result_add(out, &(struct node_row){
		.rank = table->rank,
		.index = row->index,
		.name = event_name(table, row),
		.parent = node->parent == OPS_NONE ? RESULT_NULL : (int64_t)table->rows[node->parent].index,
		.depth = node->depth,
		.height = node->height,
		.kernels = node->kernels,
		.kernels_ns = node->kernels_ns,
		.first_ns = node->kernels ? node->first_kernel_ns - first_ns : NO_KERNEL_NS,
		.last_ns = node->kernels ? node->last_kernel_ns - first_ns : NO_KERNEL_NS,
		.span_ns = node->kernels ? node->last_kernel_ns - node->first_kernel_ns : 0,
	});
}

static void call_graph_answer_add_nodes(struct result_table *out, const struct call_graph *graph, int64_t first_ns)
{
	for (size_t i = 0; i < graph->table->kept_count; i++)
		if (graph->nodes[graph->table->kept[i]].depth >= 0)
			call_graph_answer_add_node(out, graph, graph->table->kept[i], first_ns);
}

/* --- one event ------------------------------------------------------------------------------------------------------- */

static uint32_t call_graph_answer_find_event(const struct event_table *table, int64_t index)
{
	for (size_t i = 0; i < table->kept_count; i++)
		if (table->rows[table->kept[i]].index == index)
			return table->kept[i];
	return OPS_NONE;
}

static bool call_graph_answer_is_leaf(const struct call_graph *graph, uint32_t at)
{
	return graph->nodes[at].height <= 0 || (graph->nodes[at].height == 1 && graph->nodes[at].kernels == 0);
}

/* Marks the event and its descendants. */
static uint8_t *mark_below(const struct call_graph *graph, uint32_t event)
{
	const struct event_table *table = graph->table;
	uint8_t *below = ops_alloc_zeroed(table->count + 1, 1);

	if (!below)
		return NULL;
	for (size_t i = 0; i < graph->order_count; i++) {
		uint32_t at = graph->order[i], parent = graph->nodes[at].parent;

		below[at] = at == event || (parent != OPS_NONE && below[parent]);
	}
	for (size_t i = 0; i < table->kept_count; i++) {
		uint32_t at = table->kept[i], parent = graph->nodes[at].parent;

		if (table->rows[at].stream != -1)
			below[at] = at == event || (parent != OPS_NONE && below[parent]);
	}
	return below;
}

static void write_indexes(struct ops_json_writer *json, const char *key, const struct call_graph *graph,
                          const uint8_t *below, uint32_t event, bool (*has)(const struct call_graph *, uint32_t, uint32_t))
{
	ops_json_member_open(json, key, '[');
	for (uint32_t at = 0; at < graph->table->count; at++)
		if (at != event && below[at] && has(graph, at, event))
			ops_json_integer(json, graph->table->rows[at].index);
	ops_json_close(json, ']');
}

static bool call_graph_answer_is_any(const struct call_graph *graph, uint32_t at, uint32_t event)
{
	(void)graph, (void)at, (void)event;
	return true;
}

static bool is_child(const struct call_graph *graph, uint32_t at, uint32_t event)
{
	return graph->nodes[at].parent == event;
}

static bool is_leaf_below(const struct call_graph *graph, uint32_t at, uint32_t event)
{
	(void)event;
	return call_graph_answer_is_leaf(graph, at);
}

static bool call_graph_answer_write_event(struct ops_json_writer *json, const struct call_graph *graph, uint32_t event)
{
	const struct event_table *table = graph->table;
	uint8_t *below = mark_below(graph, event);

	if (!below)
		return false;
	ops_json_open(json, '{');
	ops_json_member(json, "index", table->rows[event].index);
	ops_json_member_open(json, "path_to_root", '[');
	for (uint32_t at = graph->nodes[event].parent; at != OPS_NONE; at = graph->nodes[at].parent)
		ops_json_integer(json, table->rows[at].index);
	ops_json_close(json, ']');
	write_indexes(json, "children", graph, below, event, is_child);
	write_indexes(json, "leaves", graph, below, event, is_leaf_below);
	write_indexes(json, "descendants", graph, below, event, call_graph_answer_is_any);
	ops_json_close(json, '}');
	ops_free(below);
	return true;
}

/* --- analysis -------------------------------------------------------------------------------------------------------- */

static bool call_graph_answer_answer(struct analysis_run *run, const struct call_graph *graph, bool nodes, int64_t event)
{
	struct ops_json_writer *json = &run->result.json;
	uint32_t at;

	if (nodes) {
		call_graph_answer_add_nodes(&run->result.table, graph, run->events.first_ns);
		return true;
	}
	at = event < 0 ? OPS_NONE : call_graph_answer_find_event(graph->table, event);
	if (event >= 0 && at == OPS_NONE)
		return true;
	analysis_rank_key(json, graph->table->rank);
	return at == OPS_NONE ? call_graph_answer_write_figures(json, graph) : call_graph_answer_write_event(json, graph, at);
}

enum ops_code analysis_call_graph(struct analysis_run *run)
{
	bool nodes = analysis_bool(run, "nodes"), done = true;
	int64_t event = ops_string_is(analysis_arg(run, "event"), "null") ? -1 : analysis_integer(run, "event");

	if (run->code)
		return run->code;
	if (nodes)
		result_declare(&run->result.table, &table_call_graph, 0);
	else
		ops_json_open(&run->result.json, '{');
	for (size_t i = 0; done && i < run->count; i++) {
		const struct event_table *table = analysis_table(run, i);
		struct call_graph graph;

		done = table && call_graph_init(&graph, table) && call_graph_answer_answer(run, &graph, nodes, event);
		if (table)
			call_graph_release(&graph);
	}
	if (!nodes)
		ops_json_close(&run->result.json, '}');
	return done ? OPS_OK : analysis_failed(run);
}
