/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a trace; see builder.h.
 */
#include "trace/builder.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/order.h"
#include "trace/inputs.h"
#include "trace/module_paths.h"
#include "trace/table.h"

/* The top bit of a 32-bit number distinguishes memory records from function events (opstrobe/analyze.h). */
#define ROWS_MAX ((size_t)INT32_MAX)

struct ops_builder {
	struct ops_trace *trace;
	OPS_ARRAY(struct ops_new_flow) flows;
	struct ops_intern functions; /* struct ops_function as bytes, to find functions of the trace */
	bool links_given;
	bool failed;
};

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

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
		ops_trace_init_derived(builder->trace);
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
	if (!builder)
		return;
	ops_trace_unref(builder->trace);
	OPS_ARRAY_RELEASE(&builder->flows);
	ops_intern_release(&builder->functions);
	ops_free(builder);
}

bool ops_builder_failed(const struct ops_builder *builder)
{
	return builder->failed;
}

void ops_builder_retry(struct ops_builder *builder)
{
	builder->failed = false;
}

struct ops_builder_mark ops_builder_mark(const struct ops_builder *builder)
{
	const struct ops_trace *trace = builder->trace;

	return (struct ops_builder_mark){
		.events = trace->columns.count,
		.tracks = trace->tracks.count,
		.counters = trace->counters.count,
		.processes = trace->processes.count,
		.links = trace->links.count,
	};
}

void ops_builder_rewind(struct ops_builder *builder, const struct ops_builder_mark *mark)
{
	struct ops_trace *trace = builder->trace;

	trace->columns.count = mark->events;
	trace->tracks.count = mark->tracks;
	trace->counters.count = mark->counters;
	trace->processes.count = mark->processes;
	trace->links.count = mark->links;
	ops_builder_retry(builder);
}

/* --- columns -------------------------------------------------------------------------------------------------------- */

/* Enlarges or shrinks an array; `column_field` is the address of the pointer to it. */
static bool resize(void *column_field, size_t capacity, size_t bytes_each)
{
	void **column = column_field;
	void *moved = ops_realloc_array(*column, capacity, bytes_each);

	if (!moved)
		return false;
	ops_pages_large(moved, capacity * bytes_each);
	*column = moved;
	return true;
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
#define RESIZE_USED_COLUMN(type, name, ...)                                                          \
	if (c->name && !resize(&c->name, capacity, sizeof(type)))                                  \
		return false;
	OPS_OPTIONAL_COLUMNS(RESIZE_USED_COLUMN)
#undef RESIZE_USED_COLUMN
	c->capacity = capacity;
	return true;
}

/* Creates an optional column for its first value; earlier rows get the value for "none". */
#define USE_COLUMN(type, name, none)                                                               \
	static bool use_##name(struct ops_columns *c)                                              \
	{                                                                                          \
		if (!resize(&c->name, c->capacity, sizeof(type)))                                  \
			return false;                                                              \
		for (size_t row = 0; row < c->count; row++)                                        \
			c->name[row] = none;                                                       \
		return true;                                                                       \
	}
OPS_OPTIONAL_COLUMNS(USE_COLUMN)
#undef USE_COLUMN

static bool set_optional(struct ops_columns *c, const struct ops_new_event *event, size_t row)
{
#define SET_COLUMN(type, name, none)                                                               \
	if (event->name != none && !c->name && !use_##name(c))                                     \
		return false;                                                                      \
	if (c->name)                                                                               \
		c->name[row] = event->name;
	OPS_OPTIONAL_COLUMNS(SET_COLUMN)
#undef SET_COLUMN
	return true;
}

/* Sets the end track of rows that end where they started. */
static void fill_end_tracks(struct ops_columns *c)
{
	for (size_t row = 0; c->end_track && row < c->count; row++)
		if (c->end_track[row] == OPS_NONE)
			c->end_track[row] = c->track[row];
}

/* --- adding --------------------------------------------------------------------------------------------------------- */

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

struct ops_string ops_builder_text(const struct ops_builder *builder, uint32_t id)
{
	const struct ops_intern_entry *entry = &builder->trace->strings.entries[id];

	return (struct ops_string){entry->bytes, entry->size};
}

uint32_t ops_builder_inputs(struct ops_builder *builder, const char *bytes, size_t size)
{
	struct ops_intern *inputs = &builder->trace->inputs;
	size_t known = inputs->count;
	uint32_t id;

	/* Most lists are known, so only a new one is checked, before it is added to the table. */
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

uint32_t ops_builder_function(struct ops_builder *builder, const struct ops_function *function)
{
	size_t known = builder->trace->functions.count;
	uint32_t id = ops_intern_add(&builder->functions, function, sizeof(*function));
	struct ops_function *added;

	if (id < known)
		return id;
	added = id == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&builder->trace->functions);
	if (!added) {
		builder->failed = true;
		return OPS_NONE;
	}
	*added = *function;
	return id;
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

void ops_builder_set_end(struct ops_builder *builder, uint32_t row, int64_t end_ns, uint16_t flags)
{
	if (builder->failed)
		return;
	assert(end_ns >= builder->trace->columns.start_ns[row]);
	builder->trace->columns.end_ns[row] = end_ns;
	builder->trace->columns.flags[row] |= flags;
}

void ops_builder_set_apart(struct ops_builder *builder, uint32_t row, uint32_t track)
{
	if (builder->failed)
		return;
	builder->trace->columns.track[row] = track;
	builder->trace->columns.flags[row] |= OPS_EVENT_ASYNC;
}

struct ops_string ops_builder_extra(const struct ops_builder *builder, uint32_t row)
{
	const uint32_t *extra = builder->trace->columns.extra;

	return extra && extra[row] != OPS_NONE ? ops_builder_text(builder, extra[row]) : (struct ops_string){"", 0};
}

void ops_builder_set_extra(struct ops_builder *builder, uint32_t row, uint32_t extra)
{
	struct ops_columns *c = &builder->trace->columns;

	if (!builder->failed && !c->extra && !use_extra(c))
		builder->failed = true;
	if (!builder->failed)
		c->extra[row] = extra;
}

void ops_builder_shift(struct ops_builder *builder, int64_t offset_ns)
{
	struct ops_trace *trace = builder->trace;

	for (size_t row = 0; row < trace->columns.count; row++) {
		trace->columns.start_ns[row] += offset_ns;
		trace->columns.end_ns[row] += offset_ns;
	}
	for (size_t i = 0; i < trace->memory.count; i++)
		trace->memory.items[i].time_ns += offset_ns;
	for (size_t i = 0; i < trace->roles.count; i++)
		trace->roles.items[i].time_ns += offset_ns;
	for (size_t i = 0; i < trace->counters.count; i++)
		trace->counters.items[i].time_ns += offset_ns;
	for (size_t i = 0; i < builder->flows.count; i++)
		builder->flows.items[i].time_ns += offset_ns;
}

void ops_builder_link(struct ops_builder *builder, const struct ops_link *link)
{
	struct ops_link *added = OPS_ARRAY_PUSH(&builder->trace->links);

	if (added)
		*added = *link;
	else
		builder->failed = true;
}

void ops_builder_flow(struct ops_builder *builder, const struct ops_new_flow *flow)
{
	struct ops_new_flow *added = OPS_ARRAY_PUSH(&builder->flows);

	if (added)
		*added = *flow;
	else
		builder->failed = true;
}

void ops_builder_links_given(struct ops_builder *builder)
{
	builder->links_given = true;
}

void ops_builder_process(struct ops_builder *builder, const struct ops_process *process)
{
	struct ops_process *added = OPS_ARRAY_PUSH(&builder->trace->processes);

	if (added)
		*added = *process;
	else
		builder->failed = true;
}

void ops_builder_notes(struct ops_builder *builder, enum ops_note_kind kind, uint64_t count, uint64_t byte)
{
	if (!ops_trace_note(builder->trace, kind, count, byte))
		builder->failed = true;
}

uint64_t ops_builder_note_count(const struct ops_builder *builder)
{
	uint64_t count = 0;

	for (size_t i = 0; i < builder->trace->notes.count; i++)
		count += builder->trace->notes.items[i].count;
	return count;
}

void ops_builder_module(struct ops_builder *builder, const struct ops_module *module)
{
	struct ops_module *added = OPS_ARRAY_PUSH(&builder->trace->modules);

	if (added)
		*added = *module;
	else
		builder->failed = true;
}

void ops_builder_module_alias(struct ops_builder *builder, const struct ops_module_alias *alias)
{
	struct ops_module_alias *added = OPS_ARRAY_PUSH(&builder->trace->aliases);

	if (added)
		*added = *alias;
	else
		builder->failed = true;
}

void ops_builder_memory(struct ops_builder *builder, const struct ops_memory_record *record)
{
	struct ops_memory_record *added = OPS_ARRAY_PUSH(&builder->trace->memory);

	if (added)
		*added = *record;
	else
		builder->failed = true;
}

/* Extends the list of stacks to that many records. */
static bool extend_memory_stacks(struct ops_trace *trace, size_t count)
{
	/* As many as records are expected, once. */
	if (!trace->memory_stacks.count && !OPS_ARRAY_RESERVE(&trace->memory_stacks, trace->memory.capacity))
		return false;
	while (trace->memory_stacks.count < count) {
		uint32_t *added = OPS_ARRAY_PUSH(&trace->memory_stacks);

		if (!added)
			return false;
		*added = OPS_NONE;
	}
	return true;
}

void ops_builder_memory_stack(struct ops_builder *builder, uint32_t stack)
{
	struct ops_trace *trace = builder->trace;
	size_t count = trace->memory.count;

	if (builder->failed || stack == OPS_NONE)
		return;
	if (extend_memory_stacks(trace, count))
		trace->memory_stacks.items[count - 1] = stack;
	else
		builder->failed = true;
}

void ops_builder_role(struct ops_builder *builder, const struct ops_role_record *record)
{
	struct ops_role_record *added = OPS_ARRAY_PUSH(&builder->trace->roles);

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

/* Returns the text as a string that the trace owns. */
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

static bool role_before(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_role_record *records = context;

	return records[a].time_ns < records[b].time_ns;
}

static bool counter_before(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_counter_record *records = context;

	return records[a].time_ns < records[b].time_ns;
}

/* Reorders all columns or, if out of memory, none. */
static bool reorder_columns(struct ops_columns *c, const uint32_t *order)
{
	uint64_t *scratch = ops_realloc_array(NULL, c->count, sizeof(*scratch));

	if (!scratch)
		return false;
#define REORDER_COLUMN(type, name, ...)                                                              \
	_Static_assert(sizeof(type) <= sizeof(*scratch), "a column fits in the scratch space");    \
	if (c->name)                                                                               \
		ops_reorder_by(c->name, scratch, c->count, sizeof(type), order);
	OPS_COLUMNS(REORDER_COLUMN)
	OPS_OPTIONAL_COLUMNS(REORDER_COLUMN)
#undef REORDER_COLUMN
	ops_free(scratch);
	return true;
}

/* Computes the rows of the events that were added as 0, 1, … Only if they moved and flows refer to them. */
static bool builder_find_places(const uint32_t *order, size_t count, uint32_t **ret_places)
{
	uint32_t *places = ops_realloc_array(NULL, count, sizeof(*places));

	for (size_t row = 0; places && row < count; row++)
		places[order[row]] = (uint32_t)row;
	*ret_places = places;
	return places != NULL;
}

/* Sorts the rows and updates the flows that refer to them. If out of memory, nothing has moved. */
static bool sort_events(struct ops_builder *builder)
{
	struct ops_trace *trace = builder->trace;
	struct ops_columns *c = &trace->columns;
	uint32_t *order, *places = NULL;
	bool ok = ops_find_order(c->count, event_before, c, &order);

	if (ok && order && (trace->links.count || builder->flows.count))
		ok = builder_find_places(order, c->count, &places);
	ok = ok && (!order || reorder_columns(c, order));
	for (size_t i = 0; ok && places && i < trace->links.count; i++) {
		trace->links.items[i].from = places[trace->links.items[i].from];
		trace->links.items[i].to = places[trace->links.items[i].to];
	}
	for (size_t i = 0; ok && places && i < builder->flows.count; i++)
		if (builder->flows.items[i].row != OPS_NONE)
			builder->flows.items[i].row = places[builder->flows.items[i].row];
	ops_free(places);
	ops_free(order);
	return ok;
}

/* Builds the tree and the flows. */
static bool connect_events(struct ops_builder *builder)
{
	struct ops_trace *trace = builder->trace;
	struct ops_tree tree = {trace->columns.parent, trace->columns.self_ns, trace->columns.flags};

	return ops_tree_build(trace, &tree) && (builder->links_given || ops_links_build(trace)) &&
	       ops_flows_join(trace, builder->flows.items, builder->flows.count) && ops_links_sort(trace);
}

static bool sort_memory(struct ops_trace *trace)
{
	size_t count = trace->memory.count;
	bool stacks = trace->memory_stacks.count > 0;
	uint32_t *order;
	bool ok = (!stacks || extend_memory_stacks(trace, count)) &&
	          ops_find_order(count, memory_before, trace->memory.items, &order);

	if (ok && order) {
		ok = ops_reorder(&trace->memory.items, count, sizeof(*trace->memory.items), order) &&
		     (!stacks || ops_reorder(&trace->memory_stacks.items, count, sizeof(uint32_t), order));
		ops_free(order);
	}
	return ok;
}

static bool sort_records(struct ops_trace *trace)
{
	return sort_memory(trace) && OPS_ARRAY_SORT_STABLE(&trace->roles, role_before) &&
	       OPS_ARRAY_SORT_STABLE(&trace->counters, counter_before);
}

/* Frees reserved but unused memory. If that fails, the memory stays in use. */
static void builder_trim(struct ops_trace *trace)
{
	struct ops_columns *c = &trace->columns;
	size_t rows = c->count ? c->count : 1;

#define TRIM_COLUMN(type, name, ...)                                                                 \
	if (c->name)                                                                               \
		(void)resize(&c->name, rows, sizeof(type));
	OPS_COLUMNS(TRIM_COLUMN)
	OPS_OPTIONAL_COLUMNS(TRIM_COLUMN)
#undef TRIM_COLUMN
	if (trace->memory.count)
		(void)resize(&trace->memory.items, trace->memory.count, sizeof(*trace->memory.items));
	if (trace->memory_stacks.count)
		(void)resize(&trace->memory_stacks.items, trace->memory_stacks.count, sizeof(uint32_t));
	if (trace->links.count)
		(void)resize(&trace->links.items, trace->links.count, sizeof(*trace->links.items));
}

/* If out of memory, each step leaves its input unchanged, so that all steps can be repeated; the last one removes its flows. */
static bool complete(struct ops_builder *builder)
{
	struct ops_trace *trace = builder->trace;
	size_t links = trace->links.count;

	fill_end_tracks(&trace->columns);
	if (builder->failed || !sort_events(builder) || !sort_records(trace))
		return false;
	if (connect_events(builder) && (!trace->modules.count || ops_module_paths_find(trace)))
		return true;
	trace->links.count = links;
	return false;
}

/* Detaches the trace of a completed builder, and frees the builder. */
static struct ops_trace *detach_trace(struct ops_builder *builder)
{
	struct ops_trace *trace = builder->trace;

	builder_trim(trace);
	ops_trace_seal(trace);
	builder->trace = NULL;
	ops_builder_free(builder);
	return trace;
}

enum ops_code ops_builder_finish(struct ops_builder *take_builder, struct ops_trace **ret_trace, struct ops_error *error)
{
	if (!complete(take_builder)) {
		ops_builder_free(take_builder);
		return ops_fault_memory(error);
	}
	*ret_trace = detach_trace(take_builder);
	return OPS_OK;
}

enum ops_code ops_builder_try_finish(struct ops_builder **builder, struct ops_trace **ret_trace, struct ops_error *error)
{
	assert(!(*builder)->flows.count && !(*builder)->trace->memory_stacks.count);
	if (!complete(*builder))
		return ops_fault_memory(error);
	*ret_trace = detach_trace(*builder);
	*builder = NULL;
	return OPS_OK;
}
