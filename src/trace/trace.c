/* SPDX-License-Identifier: Apache-2.0
 *
 * A finished trace: its lifetime and its accessors.
 */
#include <opstrobe/internal/trace.h>
#include <opstrobe/trace.h>

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "trace/table.h"

void ops_trace_seal(struct ops_trace *trace)
{
	trace->events.count = trace->columns.count;
#define POINT_AT(type, name, ...) trace->events.name = trace->columns.name;
	OPS_COLUMNS(POINT_AT)
	OPS_OPTIONAL_COLUMNS(POINT_AT)
#undef POINT_AT
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

static void trace_free(struct ops_trace *trace)
{
	ops_trace_release_derived(trace);
#define FREE_COLUMN(type, name, ...) ops_free(trace->columns.name);
	OPS_COLUMNS(FREE_COLUMN)
	OPS_OPTIONAL_COLUMNS(FREE_COLUMN)
#undef FREE_COLUMN
	for (size_t i = 0; i < trace->metadata.count; i++) {
		ops_free(trace->metadata.items[i].key);
		ops_free(trace->metadata.items[i].json);
	}
	OPS_ARRAY_RELEASE(&trace->metadata);
	OPS_ARRAY_RELEASE(&trace->functions);
	OPS_ARRAY_RELEASE(&trace->processes);
	OPS_ARRAY_RELEASE(&trace->modules);
	OPS_ARRAY_RELEASE(&trace->aliases);
	OPS_ARRAY_RELEASE(&trace->notes);
	OPS_ARRAY_RELEASE(&trace->links);
	OPS_ARRAY_RELEASE(&trace->counters);
	OPS_ARRAY_RELEASE(&trace->memory);
	OPS_ARRAY_RELEASE(&trace->memory_stacks);
	OPS_ARRAY_RELEASE(&trace->roles);
	OPS_ARRAY_RELEASE(&trace->tracks);
	ops_free(trace->whole_rows);
	ops_intern_release(&trace->inputs);
	ops_intern_release(&trace->strings);
	ops_free(trace);
}

struct ops_trace *ops_trace_ref(struct ops_trace *trace)
{
	__atomic_fetch_add(&trace->references, 1, __ATOMIC_RELAXED);
	return trace;
}

void ops_trace_unref(struct ops_trace *trace)
{
	/* Release orders this owner's last reads, acquire those of all other owners, before the memory is freed. */
	if (trace && __atomic_sub_fetch(&trace->references, 1, __ATOMIC_ACQ_REL) == 0)
		trace_free(trace);
}

/* Notes are few: one for each kind, in order of kinds. */
bool ops_trace_note(struct ops_trace *trace, enum ops_note_kind kind, uint64_t count, uint64_t byte)
{
	size_t at = 0;

	while (at < trace->notes.count && trace->notes.items[at].kind < kind)
		at++;
	if (at == trace->notes.count || trace->notes.items[at].kind != kind) {
		if (!OPS_ARRAY_RESERVE(&trace->notes, 1))
			return false;
		memmove(trace->notes.items + at + 1, trace->notes.items + at,
		        (trace->notes.count++ - at) * sizeof(*trace->notes.items));
		trace->notes.items[at] = (struct ops_note){kind, 0, byte};
	}
	trace->notes.items[at].count += count;
	return true;
}

/* --- access --------------------------------------------------------------------------------------------------------- */

const struct ops_events *ops_trace_events(const struct ops_trace *trace)
{
	return &trace->events;
}

uint32_t ops_trace_whole_row(const struct ops_trace *trace, uint32_t row)
{
	return trace->whole_rows ? trace->whole_rows[row] : row;
}

const struct ops_trace_info *ops_trace_info(const struct ops_trace *trace)
{
	return &trace->info;
}

static struct ops_string entry_string(const struct ops_intern *table, uint32_t id)
{
	assert(id < table->count);
	return (struct ops_string){table->entries[id].bytes, table->entries[id].size};
}

struct ops_string ops_trace_string(const struct ops_trace *trace, uint32_t id)
{
	return entry_string(&trace->strings, id);
}

size_t ops_trace_string_count(const struct ops_trace *trace)
{
	return trace->strings.count;
}

uint32_t ops_trace_find_string(const struct ops_trace *trace, const char *bytes, size_t size)
{
	return ops_intern_find(&trace->strings, bytes, size);
}

struct ops_string ops_trace_inputs(const struct ops_trace *trace, uint32_t id)
{
	return entry_string(&trace->inputs, id);
}

size_t ops_trace_inputs_count(const struct ops_trace *trace)
{
	return trace->inputs.count;
}

const struct ops_track *ops_trace_tracks(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->tracks.count;
	return trace->tracks.items;
}

const struct ops_memory_record *ops_trace_memory(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->memory.count;
	return trace->memory.items;
}

const uint32_t *ops_trace_memory_stacks(const struct ops_trace *trace)
{
	return trace->memory_stacks.items;
}

const struct ops_role_record *ops_trace_roles(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->roles.count;
	return trace->roles.items;
}

const struct ops_counter_record *ops_trace_counters(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->counters.count;
	return trace->counters.items;
}

const struct ops_link *ops_trace_links(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->links.count;
	return trace->links.items;
}

const struct ops_function *ops_trace_functions(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->functions.count;
	return trace->functions.items;
}

const struct ops_process *ops_trace_processes(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->processes.count;
	return trace->processes.items;
}

const struct ops_module *ops_trace_modules(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->modules.count;
	return trace->modules.items;
}

const struct ops_module_alias *ops_trace_module_aliases(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->aliases.count;
	return trace->aliases.items;
}

const struct ops_note *ops_trace_notes(const struct ops_trace *trace, size_t *ret_count)
{
	*ret_count = trace->notes.count;
	return trace->notes.items;
}

const char *ops_note_text(enum ops_note_kind kind)
{
	static const char *const texts[] = {
#define TEXT(name, text) [OPS_NOTE_##name] = text,
		OPS_NOTES(TEXT)
#undef TEXT
	};

	assert(kind < OPS_NOTE_COUNT);
	return texts[kind];
}

const char *ops_event_kind_category(enum ops_event_kind kind)
{
	static const char *const categories[] = {
#define CATEGORY(name, category) [OPS_EVENT_##name] = category,
		OPS_EVENT_KINDS(CATEGORY)
#undef CATEGORY
	};

	assert(kind < OPS_EVENT_KIND_COUNT);
	return categories[kind];
}

struct ops_string ops_event_category(const struct ops_trace *trace, uint32_t row)
{
	const struct ops_events *events = &trace->events;
	const char *category;

	assert(row < events->count);
	if (events->category && events->category[row] != OPS_NONE)
		return ops_trace_string(trace, events->category[row]);
	category = ops_event_kind_category(events->kind[row]);
	return (struct ops_string){category, strlen(category)};
}

bool ops_event_storage(const struct ops_trace *trace, uint32_t row, size_t i, struct ops_storage *ret_storage)
{
	const uint32_t *ids = trace->events.storages;
	struct ops_string list;

	assert(row < trace->events.count);
	if (!ids || ids[row] == OPS_NONE)
		return false;
	list = ops_trace_string(trace, ids[row]);
	if (i >= list.size / sizeof(*ret_storage))
		return false;
	memcpy(ret_storage, list.bytes + i * sizeof(*ret_storage), sizeof(*ret_storage));
	return true;
}

/* Returns the end of a JSON value that is known to be well-formed: a comma, a colon or the end of the text. */
static const char *value_end(const char *at, const char *end)
{
	size_t depth = 0;
	bool in_string = false;

	for (; at < end; at++) {
		if (in_string && *at == '\\')
			at++;
		else if (*at == '"')
			in_string = !in_string;
		else if (!in_string && (*at == '[' || *at == '{'))
			depth++;
		else if (!in_string && (*at == ']' || *at == '}'))
			depth--;
		else if (!in_string && depth == 0 && (*at == ',' || *at == ':'))
			break;
	}
	return at;
}

bool ops_event_arg(const struct ops_trace *trace, uint32_t row, const char *key, struct ops_string *ret_json)
{
	const struct ops_events *events = &trace->events;
	struct ops_string extra;
	size_t key_size = strlen(key);
	const char *at, *end;

	assert(row < events->count);
	if (!events->extra || events->extra[row] == OPS_NONE)
		return false;
	extra = ops_trace_string(trace, events->extra[row]);
	end = ops_string_end(extra);
	for (at = extra.bytes; at < end;) {
		const char *colon = value_end(at, end);
		const char *comma = colon < end ? value_end(colon + 1, end) : end;

		if ((size_t)(colon - at) == key_size + 2 && memcmp(at + 1, key, key_size) == 0) {
			*ret_json = (struct ops_string){colon + 1, (size_t)(comma - colon - 1)};
			return true;
		}
		at = comma + 1;
	}
	return false;
}

int64_t ops_trace_origin(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t memory_count, counter_count;
	const struct ops_memory_record *memory = ops_trace_memory(trace, &memory_count);
	const struct ops_counter_record *counters = ops_trace_counters(trace, &counter_count);
	int64_t first = INT64_MAX;

	for (size_t row = 0; row < events->count; row++)
		first = events->start_ns[row] < first ? events->start_ns[row] : first;
	for (size_t i = 0; i < memory_count; i++)
		first = memory[i].time_ns < first ? memory[i].time_ns : first;
	for (size_t i = 0; i < counter_count; i++)
		first = counters[i].time_ns < first ? counters[i].time_ns : first;
	return first == INT64_MAX ? 0 : first;
}

int64_t ops_trace_end(const struct ops_trace *trace)
{
	static const char window_end[] = "Record Window End";
	const struct ops_events *events = ops_trace_events(trace);
	size_t memory_count, counter_count;
	const struct ops_memory_record *memory = ops_trace_memory(trace, &memory_count);
	const struct ops_counter_record *counters = ops_trace_counters(trace, &counter_count);
	uint32_t end_name = ops_trace_find_string(trace, window_end, strlen(window_end));
	int64_t last = ops_trace_origin(trace);

	for (size_t row = 0; row < events->count; row++)
		if (events->end_ns[row] > last && events->name[row] != end_name)
			last = events->end_ns[row];
	for (size_t i = 0; i < memory_count; i++)
		last = memory[i].time_ns > last ? memory[i].time_ns : last;
	for (size_t i = 0; i < counter_count; i++)
		last = counters[i].time_ns > last ? counters[i].time_ns : last;
	return last;
}
