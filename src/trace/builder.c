/* SPDX-License-Identifier: Apache-2.0
 *
 * Making a trace; see builder.h.
 */
#include "trace/builder.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "trace/inputs.h"
#include "trace/order.h"
#include "trace/table.h"

/* Function events are told from memory records by the top bit of a 32-bit number (opstrobe/analyze.h). */
#define ROWS_MAX ((size_t)INT32_MAX)

struct ops_builder {
	struct ops_trace *trace;
	bool failed;
};

/* --- life ----------------------------------------------------------------------------------------------------------- */

static bool add_fixed_strings(struct ops_trace *trace)
{
	static const char *const names[] = {
		"",
#define HIDDEN_NAME(text) text,
		OPS_HIDDEN_NAMES(HIDDEN_NAME)
#undef HIDDEN_NAME
	};

	_Static_assert(sizeof(names) / sizeof(names[0]) == OPS_HIDDEN_NAME_COUNT + 1, "hidden names");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (ops_intern_add(&trace->strings, names[i], strlen(names[i])) != i)
			return false;
	return true;
}

struct ops_builder *ops_builder_new(void)
{
	struct ops_builder *builder = ops_alloc_zeroed(1, sizeof(*builder));

	if (!builder)
		return NULL;
	builder->trace = ops_alloc_zeroed(1, sizeof(*builder->trace));
	if (builder->trace) {
		builder->trace->references = 1;
		builder->trace->info.host_name = builder->trace->info.process_name = "";
	}
	if (!builder->trace || !add_fixed_strings(builder->trace)) {
		ops_builder_free(builder);
		return NULL;
	}
	return builder;
}

void ops_builder_free(struct ops_builder *builder)
{
	if (builder)
		ops_trace_unref(builder->trace);
	ops_free(builder);
}

bool ops_builder_failed(const struct ops_builder *builder)
{
	return builder->failed;
}

/* --- columns -------------------------------------------------------------------------------------------------------- */

/* Makes an array larger or smaller; `column_field` is the address of the pointer to it. */
static bool resize(void *column_field, size_t capacity, size_t bytes_each)
{
	void **column = column_field;
	void *moved = ops_realloc_array(*column, capacity, bytes_each);

	if (moved)
		*column = moved;
	return moved != NULL;
}

static bool reserve_rows(struct ops_columns *c, size_t capacity)
{
	if (capacity > ROWS_MAX)
		return false;
#define RESIZE_COLUMN(type, name)                                                                  \
	if (!resize(&c->name, capacity, sizeof(type)))                                             \
		return false;
	OPS_COLUMNS(RESIZE_COLUMN)
#undef RESIZE_COLUMN
#define RESIZE_USED_COLUMN(type, name)                                                             \
	if (c->name && !resize(&c->name, capacity, sizeof(type)))                                  \
		return false;
	OPS_OPTIONAL_COLUMNS(RESIZE_USED_COLUMN)
#undef RESIZE_USED_COLUMN
	c->capacity = capacity;
	return true;
}

/* Makes an optional column when its first value comes; the rows so far get what a row without one has. */
static bool use_overload(struct ops_columns *c)
{
	c->overload = ops_alloc_zeroed(c->capacity, sizeof(*c->overload));
	return c->overload != NULL;
}

static bool use_end_track(struct ops_columns *c)
{
	c->end_track = ops_realloc_array(NULL, c->capacity, sizeof(*c->end_track));
	if (c->end_track)
		memcpy(c->end_track, c->track, c->count * sizeof(*c->end_track));
	return c->end_track != NULL;
}

static bool use_args(struct ops_columns *c)
{
	c->args = ops_realloc_array(NULL, c->capacity, sizeof(*c->args));
	for (size_t row = 0; c->args && row < c->count; row++)
		c->args[row] = OPS_NONE;
	return c->args != NULL;
}

static bool use_id(struct ops_columns *c)
{
	c->id = ops_alloc_zeroed(c->capacity, sizeof(*c->id));
	return c->id != NULL;
}

static bool set_optional(struct ops_columns *c, const struct ops_new_event *event, size_t row)
{
	bool elsewhere = event->end_track != OPS_NONE && event->end_track != event->track;

	if ((event->overload && !c->overload && !use_overload(c)) || (elsewhere && !c->end_track && !use_end_track(c)) ||
	    (event->args != OPS_NONE && !c->args && !use_args(c)) || (event->id && !c->id && !use_id(c)))
		return false;
	if (c->overload)
		c->overload[row] = event->overload;
	if (c->end_track)
		c->end_track[row] = elsewhere ? event->end_track : event->track;
	if (c->args)
		c->args[row] = event->args;
	if (c->id)
		c->id[row] = event->id;
	return true;
}

/* --- filling -------------------------------------------------------------------------------------------------------- */

void ops_builder_expect(struct ops_builder *builder, size_t events, size_t memory_records)
{
	struct ops_trace *trace = builder->trace;

	if (events > trace->columns.capacity && !reserve_rows(&trace->columns, events))
		builder->failed = true;
	if (!OPS_ARRAY_RESERVE(&trace->memory, memory_records))
		builder->failed = true;
}

uint32_t ops_builder_string(struct ops_builder *builder, const char *bytes, size_t size)
{
	uint32_t id = ops_intern_add(&builder->trace->strings, bytes, size);

	if (id == OPS_INTERN_NONE)
		builder->failed = true;
	return id;
}

uint32_t ops_builder_inputs(struct ops_builder *builder, const char *bytes, size_t size)
{
	struct ops_intern *inputs = &builder->trace->inputs;
	size_t known = inputs->count;
	uint32_t id;

	/* Most lists are known: only a new one needs to be checked, and that before it is in the table. */
	id = ops_intern_find(inputs, bytes, size);
	if (id != OPS_INTERN_NONE)
		return id;
	if (!ops_inputs_valid(bytes, size))
		return OPS_NONE;
	id = ops_intern_add(inputs, bytes, size);
	assert(id == OPS_INTERN_NONE || id == known);
	(void)known;
	if (id == OPS_INTERN_NONE)
		builder->failed = true;
	return id;
}

uint32_t ops_builder_track(struct ops_builder *builder, const struct ops_track *track)
{
	struct ops_track *added = OPS_ARRAY_PUSH(&builder->trace->tracks);

	if (!added) {
		builder->failed = true;
		return OPS_NONE;
	}
	*added = *track;
	return (uint32_t)builder->trace->tracks.count - 1;
}

void ops_builder_number_track(struct ops_builder *builder, uint32_t track, uint32_t number)
{
	if (!builder->failed)
		builder->trace->tracks.items[track].number = number;
}

uint32_t ops_builder_event(struct ops_builder *builder, const struct ops_new_event *event)
{
	struct ops_columns *c = &builder->trace->columns;
	size_t row = c->count;

	if (builder->failed)
		return OPS_NONE;
	if ((row == c->capacity && !reserve_rows(c, row ? row + row / 2 : 1024)) || !set_optional(c, event, row)) {
		builder->failed = true;
		return OPS_NONE;
	}
	assert(event->end_ns >= event->start_ns);
	c->start_ns[row] = event->start_ns;
	c->end_ns[row] = event->end_ns;
	c->sequence_nr[row] = event->sequence_nr;
	c->name[row] = event->name;
	c->track[row] = event->track;
	c->inputs[row] = event->inputs;
	c->forward_thread[row] = event->forward_thread;
	c->flags[row] = event->flags;
	c->kind[row] = event->kind;
	c->scope[row] = event->scope;
	if (event->end_track != OPS_NONE && event->end_track != event->track)
		c->flags[row] |= OPS_EVENT_ASYNC;
	c->count++;
	return (uint32_t)row;
}

void ops_builder_set_sequence(struct ops_builder *builder, uint32_t row, int64_t sequence_nr, uint32_t forward_thread)
{
	if (builder->failed)
		return;
	builder->trace->columns.sequence_nr[row] = sequence_nr;
	builder->trace->columns.forward_thread[row] = forward_thread;
}

void ops_builder_memory(struct ops_builder *builder, const struct ops_memory_record *record)
{
	struct ops_memory_record *added = OPS_ARRAY_PUSH(&builder->trace->memory);

	if (added)
		*added = *record;
	else
		builder->failed = true;
}

void ops_builder_counter(struct ops_builder *builder, const struct ops_counter_record *record)
{
	struct ops_counter_record *added = OPS_ARRAY_PUSH(&builder->trace->counters);

	if (added)
		*added = *record;
	else
		builder->failed = true;
}

/* The text as a string of the trace. */
static const char *info_text(struct ops_builder *builder, const char *text)
{
	uint32_t id = text ? ops_builder_string(builder, text, strlen(text)) : 0;

	return id == OPS_NONE ? "" : builder->trace->strings.entries[id].bytes;
}

void ops_builder_info(struct ops_builder *builder, const struct ops_trace_info *info)
{
	struct ops_trace_info *to = &builder->trace->info;

	*to = *info;
	to->host_name = info_text(builder, info->host_name);
	to->process_name = info_text(builder, info->process_name);
}

/* --- finishing ------------------------------------------------------------------------------------------------------ */

static bool event_before(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_columns *c = context;

	return c->start_ns[a] < c->start_ns[b] || (c->start_ns[a] == c->start_ns[b] && c->end_ns[a] > c->end_ns[b]);
}

static bool memory_before(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_memory_record *records = context;

	return records[a].time_ns < records[b].time_ns;
}

static bool counter_before(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_counter_record *records = context;

	return records[a].time_ns < records[b].time_ns;
}

static bool reorder_columns(struct ops_columns *c, const uint32_t *order)
{
#define REORDER_COLUMN(type, name)                                                                 \
	if (c->name && !ops_reorder(&c->name, c->count, sizeof(type), order))                      \
		return false;
	OPS_COLUMNS(REORDER_COLUMN)
	OPS_OPTIONAL_COLUMNS(REORDER_COLUMN)
#undef REORDER_COLUMN
	return true;
}

static bool sort_events(struct ops_columns *c)
{
	uint32_t *order;
	bool ok = ops_find_order(c->count, event_before, c, &order) && (!order || reorder_columns(c, order));

	ops_free(order);
	return ok;
}

static bool sort_records(struct ops_trace *trace)
{
	uint32_t *order;
	bool ok = ops_find_order(trace->memory.count, memory_before, trace->memory.items, &order) &&
	          (!order || ops_reorder(&trace->memory.items, trace->memory.count, sizeof(*trace->memory.items), order));

	ops_free(order);
	order = NULL;
	ok = ok && ops_find_order(trace->counters.count, counter_before, trace->counters.items, &order) &&
	     (!order ||
	      ops_reorder(&trace->counters.items, trace->counters.count, sizeof(*trace->counters.items), order));
	ops_free(order);
	return ok;
}

/* Gives back what was reserved and not used. That cannot go wrong: at worst it stays. */
static void trim(struct ops_trace *trace)
{
	struct ops_columns *c = &trace->columns;
	size_t rows = c->count ? c->count : 1;

#define TRIM_COLUMN(type, name)                                                                    \
	if (c->name)                                                                               \
		(void)resize(&c->name, rows, sizeof(type));
	OPS_COLUMNS(TRIM_COLUMN)
	OPS_OPTIONAL_COLUMNS(TRIM_COLUMN)
#undef TRIM_COLUMN
	if (trace->memory.count)
		(void)resize(&trace->memory.items, trace->memory.count, sizeof(*trace->memory.items));
	if (trace->links.count)
		(void)resize(&trace->links.items, trace->links.count, sizeof(*trace->links.items));
}

enum ops_code ops_builder_finish(struct ops_builder *take_builder, struct ops_trace **ret_trace, struct ops_error *error)
{
	struct ops_trace *trace = take_builder->trace;
	bool ok = !take_builder->failed && sort_events(&trace->columns) && sort_records(trace);

	if (ok) {
		struct ops_tree tree = {trace->columns.parent, trace->columns.self_ns, trace->columns.flags};

		ok = ops_tree_build(trace, &tree) && ops_links_build(trace);
	}
	if (!ok) {
		ops_builder_free(take_builder);
		return ops_fault_memory(error);
	}
	trim(trace);
	ops_trace_seal(trace);
	ops_free(take_builder);
	*ret_trace = trace;
	return OPS_OK;
}
