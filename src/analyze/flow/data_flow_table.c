/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators by name and line: the bytes that they read and create, and the part of these that is read.
 */
#include "analyze/flow/data_flow_table.h"

#include <stdlib.h>

#include "analyze/flow/data_flow.h"
#include "analyze/lines/line_costs.h"
#include "analyze/tables.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/order.h"
#include "base/sum.h"

struct flow_row {
	struct ops_string name, file;
	int64_t line; /* RESULT_NULL: unknown */
	int64_t calls, time_ns;
	int64_t input_bytes, result_bytes, complete_bytes, read_bytes;
	int64_t results, unread, kept;
};

#define FIELD(member) RESULT_FIELD(struct flow_row, member)

RESULT_GETTER(unread_bytes, struct flow_row, integer, row->complete_bytes - row->read_bytes)

static const struct result_column data_flow_columns[] = {
	{.name = "operator", .type = RESULT_TEXT, .priority = RESULT_MAJOR, .title = "Operator",
	 .about = "Name of the outermost operator, or of the function of the backward pass", FIELD(name)},
	{.name = "calls", .type = RESULT_COUNT, .title = "Calls", .about = "Number of calls", FIELD(calls)},
	{.name = "time", .type = RESULT_TIME, .title = "Time", .about = "Time of the calls on the host", FIELD(time_ns)},
	{.name = "input_bytes", .type = RESULT_BYTES, .title = "Reads", .about = "Bytes of tensors that the calls read", FIELD(input_bytes)},
	{.name = "result_bytes", .type = RESULT_BYTES, .title = "Makes",
	 .about = "Bytes of memory that the calls leave or change", FIELD(result_bytes)},
	{.name = "unread_bytes", .type = RESULT_BYTES, .priority = RESULT_MAJOR, .title = "Never read",
	 .about = "Bytes of results that were released before an operator read them", .get = unread_bytes},
	{.name = "results", .type = RESULT_COUNT, .priority = RESULT_MINOR, .title = "Results",
	 .about = "Number of blocks of memory that the calls leave or change", FIELD(results)},
	{.name = "unread_results", .type = RESULT_COUNT, .title = "Unread",
	 .about = "Number of results that were released before an operator read any of them", FIELD(unread)},
	{.name = "kept_results", .type = RESULT_COUNT, .priority = RESULT_MINOR, .title = "Kept",
	 .about = "Number of results that were not released within the recording; they do not count as unread", FIELD(kept)},
	{.name = "line", .type = RESULT_INTEGER, .title = "Line", .about = "Line of the program", FIELD(line)},
	{.name = "file", .type = RESULT_TEXT, .title = "File", .about = "Path of the file", FIELD(file)},
};
const struct result_declaration table_data_flow =
	RESULT_DECLARATION("data_flow", "Calls of an operator at a line, and what becomes of their results", data_flow_columns);

struct flow_rows {
	struct data_flow flow;
	struct line_costs lines;
	struct ops_map row_of; /* by name and line */
	OPS_ARRAY(struct flow_row) rows;
};

static struct flow_row *data_flow_table_find_row(struct flow_rows *rows, uint32_t node)
{
	const struct ops_events *events = rows->flow.memory.events;
	uint32_t place = rows->lines.place[node];
	const struct line_cost *line = place == OPS_NONE ? NULL : &rows->lines.lines.items[place];
	uint32_t *slot = ops_map_slot(&rows->row_of, (uint64_t)events->name[node] << 32 | place, (uint32_t)rows->rows.count);

	if (slot && *slot == rows->rows.count &&
	    !OPS_ARRAY_APPEND(&rows->rows, (struct flow_row){
						   .name = ops_trace_string(rows->flow.memory.trace, events->name[node]),
						   .line = line ? (int64_t)line->line : RESULT_NULL,
						   .file = line ? rows->lines.files.items[line->file].name : (struct ops_string){0},
					   }))
		return NULL;
	return slot ? &rows->rows.items[*slot] : NULL;
}

static void add_result(struct flow_rows *rows, struct flow_row *row, uint32_t value)
{
	struct data_uses uses = data_flow_uses_of(&rows->flow, value);
	const struct data_value *result = &rows->flow.values[value];

	row->results++;
	row->result_bytes = ops_sum(row->result_bytes, result->bytes);
	if (!result->complete) {
		row->kept++;
		return;
	}
	row->complete_bytes = ops_sum(row->complete_bytes, result->bytes);
	row->read_bytes = ops_sum(row->read_bytes, uses.updates ? result->bytes : uses.read_bytes);
	row->unread += !uses.readers && !uses.updates;
}

static bool add_node(struct flow_rows *rows, uint32_t node)
{
	const struct data_node *uses = &rows->flow.nodes[node];
	const struct ops_events *events = rows->flow.memory.events;
	struct flow_row *row;

	if ((!uses->count && !uses->made_count) || data_flow_kind(&rows->flow, node) == OPERATOR_ALLOCATES)
		return true;
	row = data_flow_table_find_row(rows, node);
	if (!row)
		return false;
	row->calls++;
	row->time_ns = ops_sum(row->time_ns, ops_difference(events->end_ns[node], events->start_ns[node]));
	row->input_bytes = ops_sum(row->input_bytes, data_flow_read_bytes(&rows->flow, node));
	for (uint32_t i = 0; i < uses->made_count; i++)
		if (!data_flow_is_scratch(&rows->flow, node, rows->flow.made.items[uses->first_made + i]))
			add_result(rows, row, rows->flow.made.items[uses->first_made + i]);
	return true;
}

OPS_ORDER(data_flow_table_compare, struct flow_row,
          OPS_ORDER_BY(right->complete_bytes - right->read_bytes, left->complete_bytes - left->read_bytes)
          OPS_DOWN(time_ns) OPS_BY_TEXT(name) OPS_UP(line))

enum ops_code data_flow_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                             struct ops_error *error)
{
	struct flow_rows flows = {.row_of = {0}};
	bool followed = data_flow_init(&flows.flow, trace), done = line_costs_init(&flows.lines, trace) && followed;

	(void)context;
	for (size_t node = 0; done && node < flows.flow.memory.events->count; node++)
		done = add_node(&flows, (uint32_t)node);
	if (done)
		OPS_ARRAY_SORT(&flows.rows, data_flow_table_compare);
	for (size_t i = 0; done && i < flows.rows.count && i < rows->limit; i++)
		run_rows_add(rows, &flows.rows.items[i]);
	OPS_ARRAY_RELEASE(&flows.rows);
	ops_map_release(&flows.row_of);
	line_costs_release(&flows.lines);
	data_flow_release(&flows.flow);
	return done ? OPS_OK : ops_fault_memory(error);
}
