/* SPDX-License-Identifier: Apache-2.0
 *
 * Relation `collectives`: a row for each collective operation, which is a kernel that communicates, or the range of an
 * operation that the host performs.
 */
#include "analyze/ranks/collectives.h"
#include "analyze/relations/relation_list.h"
#include "derive/arguments.h"
#include "derive/messages.h"
#include "derive/work.h"
#include "trace/kinds.h"

#define EVENT (rows->selected[row->at])

static bool is_collective(const struct relation_rows *rows, uint32_t event)
{
	struct ops_string name = ops_trace_string(rows->trace, rows->events->name[event]);
	uint8_t kind = rows->events->kind[event];

	if (ops_kind_is_work(kind))
		return relation_work(rows, event) == OPS_WORK_COMMUNICATION;
	return (kind == OPS_EVENT_CPU_OP || kind == OPS_EVENT_USER_ANNOTATION) && ops_collective_of(name) == OPS_COLLECTIVE_HOST;
}

/* Sets a cell to a text among the arguments of an event; null if there is none. */
static void set_argument(struct relation_rows *rows, uint32_t event, const char *key, struct result_cell *cell)
{
	struct ops_string json = {0};

	ops_event_arg(rows->trace, event, key, &json);
	relation_set_json_text(rows, json, cell);
}

static void set_number(const struct relation_rows *rows, uint32_t event, const char *key, struct result_cell *cell)
{
	cell->integer = ops_argument_integer(rows->trace, event, key, RESULT_NULL);
	cell->is_null = cell->integer == RESULT_NULL;
}

static void set_operation(struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	set_argument(rows, event, "Collective name", cell);
	if (cell->is_null)
		relation_set_text(cell, ops_trace_string(rows->trace, rows->events->name[event]));
}

/* Returns the larger side of a message, as `opstrobe analyze collective_bandwidth` counts it. */
static double larger_side(struct relation_rows *rows, uint32_t event)
{
	struct result_cell in = {0}, out = {0}, type = {0};

	set_number(rows, event, "In msg nelems", &in);
	set_number(rows, event, "Out msg nelems", &out);
	set_argument(rows, event, "dtype", &type);
	if (type.is_null || (in.is_null && out.is_null))
		return 0;
	return (double)(out.is_null || in.integer > out.integer ? in.integer : out.integer) * (double)ops_type_bytes(type.text);
}

static void set_bus_bytes(struct relation_rows *rows, uint32_t event, struct result_cell *cell)
{
	double bytes = larger_side(rows, event);
	struct result_cell ranks = {0}, name = {0};

	set_number(rows, event, "Group size", &ranks);
	set_operation(rows, event, &name);
	cell->is_null = !(bytes > 0);
	cell->number = cell->is_null ? 0 : bytes * collective_bus_factor(name.text, ranks.is_null ? 0 : ranks.integer);
}

RELATION_GETTER(get_collective_id, cell->integer = EVENT)
RELATION_GETTER(get_collective_name, set_operation(rows, EVENT, cell))
RELATION_GETTER(get_collective_on_device, cell->integer = ops_kind_is_work(rows->events->kind[EVENT]))
RELATION_GETTER(get_collective_start, cell->integer = rows->events->start_ns[EVENT])
RELATION_GETTER(get_collective_duration, relation_get_duration(rows, EVENT, cell))
RELATION_GETTER(get_collective_step, relation_get_step(rows, EVENT, cell))
RELATION_GETTER(get_collective_group, set_argument(rows, EVENT, "Process Group Name", cell))
RELATION_GETTER(get_collective_description, set_argument(rows, EVENT, "Process Group Description", cell))
RELATION_GETTER(get_collective_size, set_number(rows, EVENT, "Group size", cell))
RELATION_GETTER(get_collective_dtype, set_argument(rows, EVENT, "dtype", cell))
RELATION_GETTER(get_collective_in, set_number(rows, EVENT, "In msg nelems", cell))
RELATION_GETTER(get_collective_out, set_number(rows, EVENT, "Out msg nelems", cell))
RELATION_GETTER(get_collective_message, relation_get_message(rows, EVENT, cell))
RELATION_GETTER(get_collective_bus, set_bus_bytes(rows, EVENT, cell))

static const struct result_column columns[] = {
	{.name = "id", .type = RESULT_INTEGER, .get = get_collective_id, .about = "id of its row in events"},
	{.name = "name", .type = RESULT_TEXT, .get = get_collective_name, .about = "name of the operation; of the event where that is not known"},
	{.name = "on_device", .type = RESULT_FLAG, .get = get_collective_on_device, .about = "whether a device carries it out, not the host"},
	{.name = "start_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_collective_start, .about = "start, since the Unix epoch"},
	{.name = "dur_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_collective_duration, .about = "duration"},
	{.name = "step", .type = RESULT_INTEGER, .nullable = true, .option = RELATION_STEPS, .get = get_collective_step,
	 .about = "number of the step that started it"},
	{.name = "process_group", .type = RESULT_TEXT, .nullable = true, .get = get_collective_group, .about = "name of the process group"},
	{.name = "group_description", .type = RESULT_TEXT, .nullable = true, .get = get_collective_description,
	 .about = "description of the process group"},
	{.name = "group_size", .type = RESULT_COUNT, .nullable = true, .get = get_collective_size, .about = "number of ranks of the process group"},
	{.name = "dtype", .type = RESULT_TEXT, .nullable = true, .get = get_collective_dtype, .about = "type of the elements"},
	{.name = "elements_in", .type = RESULT_COUNT, .nullable = true, .get = get_collective_in, .about = "elements of the input"},
	{.name = "elements_out", .type = RESULT_COUNT, .nullable = true, .get = get_collective_out, .about = "elements of the output"},
	{.name = "message_bytes", .type = RESULT_BYTES, .unit = "bytes", .nullable = true, .get = get_collective_message, .about = "bytes that the rank contributes"},
	{.name = "bus_bytes", .type = RESULT_NUMBER, .unit = "bytes", .nullable = true, .get = get_collective_bus,
	 .about = "bytes that the link of the rank carries, as NCCL's tests define it; by dur_ns they are GB/s"},
};
const struct result_declaration relation_collectives_declaration =
	RESULT_DECLARATION("collectives", "a collective operation of the rank", columns);

bool relation_collectives_open(struct relation_rows *rows)
{
	return relation_classify(rows) && relation_select(rows, is_collective);
}
