/* SPDX-License-Identifier: Apache-2.0
 *
 * Relations of a trace's records other than events: `memory`, `counters`, `flows` and `tracks`.
 */
#include "analyze/relations/relation_list.h"
#include "base/sum.h"

#define MEMORY (&rows->memory[row->at])
#define COUNTER (&rows->counters[row->at])
#define LINK (&rows->links[row->at])

/* --- memory --------------------------------------------------------------------------------------------------------- */

RELATION_GETTER(get_memory_time, cell->integer = MEMORY->time_ns)
RELATION_GETTER(get_address, cell->integer = (int64_t)MEMORY->address)
RELATION_GETTER(get_bytes, cell->integer = MEMORY->bytes)
RELATION_GETTER(get_on_cpu, cell->integer = MEMORY->device_index < 0)
RELATION_GETTER(get_device_index, cell->integer = MEMORY->device_index; cell->is_null = MEMORY->device_index < 0)
RELATION_GETTER(get_allocated, cell->integer = ops_clamped(MEMORY->total_allocated))
RELATION_GETTER(get_reserved, cell->integer = ops_clamped(MEMORY->total_reserved))
RELATION_GETTER(get_memory_pid, relation_get_pid(rows, MEMORY->track, cell))
RELATION_GETTER(get_memory_tid, relation_get_tid(rows, MEMORY->track, cell))
RELATION_GETTER(get_failed, cell->integer = MEMORY->out_of_memory)

static const struct result_column memory_columns[] = {
	{.name = "time_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_memory_time, .about = "when, since the Unix epoch"},
	{.name = "address", .type = RESULT_INTEGER, .get = get_address, .about = "address of the block"},
	{.name = "bytes", .type = RESULT_BYTES, .get = get_bytes,
	 .about = "size: positive where the block is allocated, negative where it is freed"},
	{.name = "on_cpu", .type = RESULT_FLAG, .get = get_on_cpu, .about = "whether it is the CPU's memory"},
	{.name = "device", .type = RESULT_INTEGER, .nullable = true, .get = get_device_index, .about = "number of the device"},
	{.name = "total_allocated", .type = RESULT_BYTES, .get = get_allocated, .about = "what the allocator has given out by then"},
	{.name = "total_reserved", .type = RESULT_BYTES, .get = get_reserved, .about = "what the allocator holds by then"},
	{.name = "pid", .type = RESULT_INTEGER, .nullable = true, .get = get_memory_pid, .about = "process"},
	{.name = "tid", .type = RESULT_INTEGER, .nullable = true, .get = get_memory_tid, .about = "thread"},
	{.name = "out_of_memory", .type = RESULT_FLAG, .get = get_failed, .about = "whether the allocation failed"},
};
const struct result_declaration relation_memory_declaration =
	RESULT_DECLARATION("memory", "an allocation or a release of memory", memory_columns);

bool relation_memory_open(struct relation_rows *rows)
{
	rows->memory = ops_trace_memory(rows->trace, &rows->count);
	return true;
}

/* --- counters ------------------------------------------------------------------------------------------------------- */

RELATION_GETTER(get_counter_time, cell->integer = COUNTER->time_ns)
RELATION_GETTER(get_counter_name, cell->text = ops_trace_string(rows->trace, COUNTER->name))
RELATION_GETTER(get_series, relation_set_text(cell, ops_trace_string(rows->trace, COUNTER->series)))
RELATION_GETTER(get_value, cell->number = COUNTER->value)
RELATION_GETTER(get_counter_pid, relation_get_pid(rows, COUNTER->track, cell))

static const struct result_column counter_columns[] = {
	{.name = "time_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_counter_time, .about = "when, since the Unix epoch"},
	{.name = "name", .type = RESULT_TEXT, .get = get_counter_name, .about = "name of the counter"},
	{.name = "series", .type = RESULT_TEXT, .nullable = true, .get = get_series, .about = "which of its values, where it has several"},
	{.name = "value", .type = RESULT_NUMBER, .nullable = true, .get = get_value, .about = "value"},
	{.name = "pid", .type = RESULT_INTEGER, .nullable = true, .get = get_counter_pid, .about = "process"},
};
const struct result_declaration relation_counters_declaration =
	RESULT_DECLARATION("counters", "a value of a counter", counter_columns);

bool relation_counters_open(struct relation_rows *rows)
{
	rows->counters = ops_trace_counters(rows->trace, &rows->count);
	return true;
}

/* --- flows ---------------------------------------------------------------------------------------------------------- */

static const char *link_name(enum ops_link_kind kind)
{
	switch (kind) {
	case OPS_LINK_FORWARD_BACKWARD:
		return "backward";
	case OPS_LINK_LAUNCH:
		return "launch";
	case OPS_LINK_DEPENDENCY:
		return "dependency";
	default:
		return "other";
	}
}

RELATION_GETTER(get_kind, cell->text = ops_string_of(link_name(LINK->kind)))
RELATION_GETTER(get_from, cell->integer = LINK->from)
RELATION_GETTER(get_to, cell->integer = LINK->to)

static const struct result_column flow_columns[] = {
	{.name = "kind", .type = RESULT_TEXT, .get = get_kind,
	 .about = "launch: from a call to its work on a device; backward: from a forward operator to its backward node; dependency; other"},
	{.name = "from_id", .type = RESULT_INTEGER, .get = get_from, .about = "id of the event where it begins"},
	{.name = "to_id", .type = RESULT_INTEGER, .get = get_to, .about = "id of the event where it ends"},
};
const struct result_declaration relation_flows_declaration =
	RESULT_DECLARATION("flows", "a link from one event to another", flow_columns);

bool relation_flows_open(struct relation_rows *rows)
{
	rows->links = ops_trace_links(rows->trace, &rows->count);
	return true;
}

/* --- tracks --------------------------------------------------------------------------------------------------------- */

RELATION_GETTER(get_track_pid, relation_get_pid(rows, (uint32_t)row->at, cell))
RELATION_GETTER(get_track_tid, relation_get_tid(rows, (uint32_t)row->at, cell))
RELATION_GETTER(get_track_on_device, cell->integer = rows->tracks[row->at].kind == OPS_TRACK_STREAM)
RELATION_GETTER(get_track_name, relation_set_text(cell, ops_trace_string(rows->trace, rows->tracks[row->at].name)))

static const struct result_column track_columns[] = {
	{.name = "pid", .type = RESULT_INTEGER, .nullable = true, .get = get_track_pid, .about = "process; the number of the device for a stream"},
	{.name = "tid", .type = RESULT_INTEGER, .nullable = true, .get = get_track_tid, .about = "thread or stream"},
	{.name = "on_device", .type = RESULT_FLAG, .get = get_track_on_device, .about = "whether it is a stream of a device"},
	{.name = "name", .type = RESULT_TEXT, .nullable = true, .get = get_track_name, .about = "name of the thread"},
};
const struct result_declaration relation_tracks_declaration =
	RESULT_DECLARATION("tracks", "a thread, or a stream of a device", track_columns);

bool relation_tracks_open(struct relation_rows *rows)
{
	ops_trace_tracks(rows->trace, &rows->count);
	return true;
}
