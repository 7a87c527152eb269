/* SPDX-License-Identifier: Apache-2.0
 *
 * `module_kernels`: when devices work for each call of a module, or of other functions selected by name: from the start
 * of the first kernel that runs for the call to the end of the last. With an output_dir, a copy of the trace shows
 * these ranges as annotations on stream 0 of the device, above the kernels.
 */
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/graph/call_graph.h"
#include "analyze/overlay.h"
#include "base/alloc.h"
#include "base/json_value.h"
#include "base/limit.h"
#include "base/text.h"

struct spans {
	struct analysis_run *run;
	const struct ops_string *names; /* prefixes */
	size_t name_count;
	struct ops_string directory;
	struct call_graph graph; /* call graph of the current rank */
	OPS_ARRAY(uint32_t) rows; /* its selected calls that kernels run for */
	int64_t device;
};

/* --- calls ----------------------------------------------------------------------------------------------------------- */

static bool module_kernels_is_named(const struct spans *spans, struct ops_string name)
{
	for (size_t i = 0; i < spans->name_count && !ops_limit_reached(); i++)
		if (ops_string_starts(name, spans->names[i].bytes))
			return true;
	return false;
}

static bool module_kernels_find_calls(struct spans *spans)
{
	const struct event_table *table = spans->graph.table;
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(table->trace, &count);
	bool on_device = false;

	spans->rows.count = 0;
	spans->device = 0;
	if (!OPS_ARRAY_RESERVE(&spans->rows, table->kept_count + 1))
		return false;
	for (size_t i = 0; i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];

		if (row->on_device && !on_device)
			spans->device = tracks[row->track].pid;
		on_device |= row->on_device;
		if (!row->on_device && spans->graph.nodes[table->kept[i]].kernels &&
		    module_kernels_is_named(spans, event_name(table, row)))
			spans->rows.items[spans->rows.count++] = table->kept[i];
	}
	return true;
}

struct call_row {
	int64_t rank, ts_ns, dur_ns, first_ns, span_ns, kernels_ns;
	uint32_t index, kernels;
	struct ops_string name;
};

static const struct result_column call_columns[] = {
	RANK_COLUMN(struct call_row),
	INDEX_COLUMN(struct call_row),
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the call", RESULT_FIELD(struct call_row, name)},
	TIME_COLUMN(struct call_row),
	{.name = "dur", .type = RESULT_TIME, .title = "Duration", .about = "Duration of the call", RESULT_FIELD(struct call_row, dur_ns)},
	{.name = "first_kernel_start", .type = RESULT_MOMENT, .title = "First kernel",
	 .about = "Start of the first device work of the call, since the first event of the ranks",
	 RESULT_FIELD(struct call_row, first_ns)},
	{.name = "kernel_span", .type = RESULT_TIME, .title = "Kernel span", .about = "From that start to the end of the last work",
	 RESULT_FIELD(struct call_row, span_ns)},
	{.name = "num_kernels", .type = RESULT_COUNT, .title = "Kernels", .about = "Number of pieces of that work",
	 RESULT_FIELD(struct call_row, kernels)},
	{.name = "kernel_dur_sum", .type = RESULT_TIME, .title = "Kernel time", .about = "Sum of the durations of that work",
	 RESULT_FIELD(struct call_row, kernels_ns)},
};
const struct result_declaration table_module_kernels =
	RESULT_DECLARATION("module_kernels", "A call of a module that launches device work", call_columns);

static void put_calls(struct spans *spans)
{
	struct result_table *out = &spans->run->result.table;
	const struct event_table *table = spans->graph.table;
	int64_t first_ns = spans->run->events.first_ns;

	for (size_t i = 0; i < spans->rows.count; i++) {
		const struct event_row *row = &table->rows[spans->rows.items[i]];
		const struct call_node *node = &spans->graph.nodes[spans->rows.items[i]];

		result_add(out, &(struct call_row){table->rank, row->ts_ns - first_ns, row->dur_ns, node->first_kernel_ns - first_ns,
		                                   node->last_kernel_ns - node->first_kernel_ns, node->kernels_ns, row->index,
		                                   node->kernels, event_name(table, row)});
	}
}

/* --- overlay --------------------------------------------------------------------------------------------------------- */

static bool add_span(void *context, size_t i, struct ops_buffer *event)
{
	static const char begin[] = "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":";
	const struct spans *spans = context;
	struct ops_json_writer json = {.out = event};
	const struct call_node *node;
	struct ops_string name;

	if (i >= spans->rows.count)
		return false;
	node = &spans->graph.nodes[spans->rows.items[i]];
	name = event_name(spans->graph.table, &spans->graph.table->rows[spans->rows.items[i]]);
	ops_buffer_append_text(event, begin);
	ops_json_text(&json, name.bytes, name.size);
	ops_json_member(&json, "pid", spans->device);
	ops_json_member(&json, "tid", 0);
	ops_json_member_us(&json, "ts", node->first_kernel_ns);
	ops_json_member_us(&json, "dur", node->last_kernel_ns - node->first_kernel_ns);
	ops_json_member_open(&json, "args", '{');
	ops_json_member(&json, "stream", 0);
	ops_json_member(&json, "kernels", node->kernels);
	ops_json_member_us(&json, "kernel_dur_sum", node->kernels_ns);
	ops_json_close(&json, '}');
	ops_json_close(&json, '}');
	return true;
}

static enum ops_code module_kernels_write_overlay(struct spans *spans, size_t rank)
{
	const struct overlay overlay = {.add = add_span, .context = spans, .prefix = "aligned_"};
	struct ops_buffer written = {0};
	enum ops_code code = overlay_write(&spans->run->ranks[rank], spans->directory.bytes, &overlay, &written, spans->run->error);

	ops_buffer_release(&written);
	return code;
}

/* --- analysis -------------------------------------------------------------------------------------------------------- */

static enum ops_code answer_rank(struct spans *spans, size_t rank)
{
	const struct event_table *table = analysis_table(spans->run, rank);
	enum ops_code code = OPS_OK;

	if (!table)
		return analysis_failed(spans->run);
	if (!call_graph_init(&spans->graph, table) || !module_kernels_find_calls(spans))
		code = ops_fault_memory(spans->run->error);
	if (!code)
		put_calls(spans);
	if (!code && spans->directory.size)
		code = module_kernels_write_overlay(spans, rank);
	call_graph_release(&spans->graph);
	return code;
}

enum ops_code analysis_module_kernels(struct analysis_run *run)
{
	struct spans spans = {.run = run, .directory = analysis_text(run, "output_dir")};
	size_t *ranks = NULL, count = 0;
	enum ops_code code;

	spans.names = analysis_texts(run, "names", &spans.name_count);
	code = run->code ? run->code : analysis_ranks(run, &ranks, &count);
	if (!code)
		result_declare(&run->result.table, &table_module_kernels, 0);
	for (size_t i = 0; !code && i < count; i++)
		code = answer_rank(&spans, ranks[i]);
	ops_free(ranks);
	OPS_ARRAY_RELEASE(&spans.rows);
	return code;
}
