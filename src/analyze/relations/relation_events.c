/* SPDX-License-Identifier: Apache-2.0
 *
 * Relation `events`: one row per event, in the order of the trace, including hidden events.
 */
#include "analyze/relations/relation_list.h"
#include "trace/inputs.h"

#define EVENT ((uint32_t)row->at)

RELATION_GETTER(get_event_id, (void)rows; cell->integer = EVENT)
RELATION_GETTER(get_event_name, cell->text = ops_trace_string(rows->trace, rows->events->name[EVENT]))
RELATION_GETTER(get_event_category, cell->text = ops_event_category(rows->trace, EVENT))
RELATION_GETTER(get_event_start, cell->integer = rows->events->start_ns[EVENT])
RELATION_GETTER(get_event_duration, relation_get_duration(rows, EVENT, cell))
RELATION_GETTER(get_event_self, cell->integer = rows->events->self_ns[EVENT])
RELATION_GETTER(get_event_parent, relation_set_id(cell, rows->events->parent[EVENT]))
RELATION_GETTER(get_event_step, relation_get_step(rows, EVENT, cell))
RELATION_GETTER(get_event_module, relation_get_module(rows, EVENT, cell))
RELATION_GETTER(get_event_file, relation_get_file(rows, EVENT, cell))
RELATION_GETTER(get_event_line, relation_get_line(rows, EVENT, cell))
RELATION_GETTER(get_event_pid, relation_get_pid(rows, rows->events->track[EVENT], cell))
RELATION_GETTER(get_event_tid, relation_get_tid(rows, rows->events->track[EVENT], cell))
RELATION_GETTER(get_event_on_device, cell->integer = rows->tracks[rows->events->track[EVENT]].kind == OPS_TRACK_STREAM)
RELATION_GETTER(get_event_hidden, cell->integer = (rows->events->flags[EVENT] & OPS_EVENT_HIDDEN) != 0)
RELATION_GETTER(get_event_external_id, cell->integer = rows->events->id ? (int64_t)rows->events->id[EVENT] : (int64_t)EVENT + 1)

static void set_or_null(struct result_cell *cell, int64_t value)
{
	cell->integer = value;
	cell->is_null = value < 0;
}

RELATION_GETTER(get_event_sequence_nr, set_or_null(cell, rows->events->sequence_nr[EVENT]))
RELATION_GETTER(get_event_correlation, set_or_null(cell, rows->events->correlation ? rows->events->correlation[EVENT] : -1))

static void set_shapes(struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	rows->scratch.size = 0;
	if (rows->events->inputs[event] != OPS_NONE)
		ops_inputs_json_dims(&rows->scratch, ops_trace_inputs(rows->trace, rows->events->inputs[event]));
	relation_set_scratch(rows, cell);
}

static void set_types(struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	rows->scratch.size = 0;
	if (rows->events->inputs[event] != OPS_NONE)
		ops_inputs_json_types(&rows->scratch, ops_trace_inputs(rows->trace, rows->events->inputs[event]));
	relation_set_scratch(rows, cell);
}

static void set_args(struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	rows->scratch.size = 0;
	if (rows->events->extra && rows->events->extra[event] != OPS_NONE) {
		struct ops_string members = ops_trace_string(rows->trace, rows->events->extra[event]);

		ops_buffer_append_text(&rows->scratch, "{");
		ops_buffer_append(&rows->scratch, members.bytes, members.size);
		ops_buffer_append_text(&rows->scratch, "}");
	}
	relation_set_scratch(rows, cell);
}

RELATION_GETTER(get_event_shapes, set_shapes(rows, EVENT, cell))
RELATION_GETTER(get_event_types, set_types(rows, EVENT, cell))
RELATION_GETTER(get_event_args, set_args(rows, EVENT, cell))

static const struct result_column columns[] = {
	{.name = "id", .type = RESULT_INTEGER, .get = get_event_id, .about = "number of the event within its trace, from 0"},
	{.name = "name", .type = RESULT_TEXT, .get = get_event_name, .about = "name"},
	{.name = "category", .type = RESULT_TEXT, .get = get_event_category, .about = "category as in the trace file: cpu_op, kernel, python_function, …"},
	{.name = "start_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_event_start, .about = "start, since the Unix epoch"},
	{.name = "dur_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_event_duration, .about = "duration"},
	{.name = "self_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_event_self, .about = "duration without that of the events directly inside"},
	{.name = "parent_id", .type = RESULT_INTEGER, .nullable = true, .get = get_event_parent, .about = "id of the innermost event around it on its thread"},
	{.name = "pid", .type = RESULT_INTEGER, .nullable = true, .get = get_event_pid, .about = "process; the number of the device for what runs on one"},
	{.name = "tid", .type = RESULT_INTEGER, .nullable = true, .get = get_event_tid, .about = "thread; the stream for what runs on a device"},
	{.name = "on_device", .type = RESULT_FLAG, .get = get_event_on_device, .about = "whether it runs on a device"},
	{.name = "step", .type = RESULT_INTEGER, .nullable = true, .option = RELATION_STEPS, .get = get_event_step,
	 .about = "number of the step in which it starts; for work of a device, in which it was launched"},
	{.name = "module", .type = RESULT_TEXT, .nullable = true, .option = RELATION_MODULES, .get = get_event_module,
	 .about = "path of the innermost torch.nn.Module that it runs for, forward or backward"},
	{.name = "file", .type = RESULT_TEXT, .nullable = true, .get = get_event_file, .about = "file of the user's line that it runs for"},
	{.name = "line", .type = RESULT_INTEGER, .nullable = true, .get = get_event_line, .about = "number of that line"},
	{.name = "input_shapes", .type = RESULT_JSON, .nullable = true, .get = get_event_shapes, .about = "shapes of the inputs, as JSON"},
	{.name = "input_types", .type = RESULT_JSON, .nullable = true, .get = get_event_types, .about = "types of the inputs, as JSON"},
	{.name = "args", .type = RESULT_JSON, .nullable = true, .get = get_event_args, .about = "all further arguments, as JSON"},
	{.name = "external_id", .type = RESULT_INTEGER, .get = get_event_external_id, .about = "External id in the trace file"},
	{.name = "sequence_nr", .type = RESULT_INTEGER, .nullable = true, .get = get_event_sequence_nr,
	 .about = "autograd's number that a forward operator and its backward node share"},
	{.name = "correlation", .type = RESULT_INTEGER, .nullable = true, .get = get_event_correlation,
	 .about = "number that a launch call and its work on the device share"},
	{.name = "hidden", .type = RESULT_FLAG, .get = get_event_hidden, .about = "whether it is bookkeeping of the profiler, which views leave out"},
};
const struct result_declaration relation_events_declaration = RESULT_DECLARATION("events", "an event of the trace", columns);

bool relation_events_open(struct relation_rows *rows)
{
	rows->count = rows->events->count;
	return true;
}
