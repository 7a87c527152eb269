/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a part of a merged trace into the builder; see merge_part.h.
 */
#include "trace/merge_part.h"

#include <string.h>

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "trace/merge_places.h"

/* Maps the numbers of one part to those in the new trace. */
struct copier {
	const struct ops_trace_part *part;
	const struct ops_trace *trace;
	const struct ops_events *events;
	uint32_t *strings; /* by id in the part; OPS_NONE until needed */
	uint32_t *inputs;
	uint32_t *functions;
	uint32_t *tracks;
	uint32_t *rows; /* by row in the part: its number in the new trace; only for copying links */
	size_t track_count;
	const struct ops_track *old_tracks;
	const struct ops_memory_record *memory;
	size_t memory_count;
	uint32_t first_python_id; /* added to the ids of the part */
	uint32_t *modules; /* by module in the part: its index in the new trace */
	int64_t stop_ns; /* of the new trace */
	bool own_tracks;
	const char *rank_name; /* NULL: not one of several ranks */
	int64_t shift_ns;
	int64_t first_correlation; /* added to the correlations of the part */
	struct renamed_process *processes; /* of a rank */
	struct ops_intern process_keys; /* struct process_key, in order of `processes` */
	struct ops_intern numbers; /* numbers of threads, in order of `number_tracks` */
	uint32_t *number_tracks;
};

struct process_key {
	int64_t pid;
	uint64_t flags;
};

/* A process of a rank, with a number in the new trace that no other part has. */
struct renamed_process {
	uint32_t flags;
	bool named;
	int64_t old_pid;
	int64_t pid;
};

/* The correlations of a rank begin at a multiple of this. It is larger than torch's correlations, and all ranks' values are exact
 * as doubles. */
#define CORRELATIONS_PER_RANK (INT64_C(1) << 32)

int64_t merge_shifted(int64_t ns, int64_t shift_ns)
{
	int64_t sum;

	if (!__builtin_add_overflow(ns, shift_ns, &sum))
		return sum;
	return shift_ns > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t shifted(const struct copier *copier, int64_t ns)
{
	return merge_shifted(ns, copier->shift_ns);
}

static uint32_t copy_string(struct merge *merge, struct copier *copier, uint32_t id)
{
	if (id == OPS_NONE)
		return OPS_NONE;
	if (copier->strings[id] == OPS_NONE) {
		struct ops_string text = ops_trace_string(copier->trace, id);
		copier->strings[id] = ops_builder_string(merge->builder, text.bytes, text.size);
	}
	return copier->strings[id];
}

/* --- tracks --------------------------------------------------------------------------------------------------------- */

/* Adds "rank 3: Spans". */
static uint32_t rank_string(struct merge *merge, const struct copier *copier, struct ops_string text)
{
	struct ops_buffer name = {0};
	uint32_t id = OPS_NONE;

	ops_buffer_append_text(&name, copier->rank_name);
	if (text.size) {
		ops_buffer_append_text(&name, ": ");
		ops_buffer_append(&name, text.bytes, text.size);
	}
	if (!name.failed)
		id = ops_builder_string(merge->builder, name.bytes, name.size);
	ops_buffer_release(&name);
	return id;
}

/* Finds or adds the process in the new trace of a process of a rank; a new one gets the next free number. Returns NULL if out of
 * memory. */
static struct renamed_process *rename_process(struct merge *merge, struct copier *copier, uint32_t flags, int64_t pid)
{
	struct process_key key = {pid, flags & OPS_TRACK_PID_TEXT};
	size_t known = copier->process_keys.count;
	uint32_t id = ops_intern_add(&copier->process_keys, &key, sizeof(key));
	struct renamed_process *process;

	if (id == OPS_INTERN_NONE)
		return NULL;
	process = &copier->processes[id];
	if (id < known)
		return process;
	*process = (struct renamed_process){.flags = flags & OPS_TRACK_PID_TEXT, .old_pid = pid, .pid = pid};
	if (process->flags)
		process->pid = rank_string(merge, copier, ops_trace_string(copier->trace, (uint32_t)pid));
	else if (!merge_tracks_reserve_pid(&merge->tracks, &process->pid))
		return NULL;
	return process;
}

/* Returns the track of the new trace for a part's track, added if new. Sessions that overlap in time share no tracks, because
 * their events would nest in one another. (A process has one session at a time, so these are the same session twice.) */
static uint32_t copy_track(struct merge *merge, struct copier *copier, const struct ops_track *old)
{
	struct renamed_process *process = copier->rank_name ? rename_process(merge, copier, old->flags, old->pid) : NULL;
	struct ops_track track = *old;
	uint32_t known, added;

	if (copier->rank_name && !process)
		return OPS_NONE;
	if (process)
		track.pid = process->pid;
	else if (track.flags & OPS_TRACK_PID_TEXT)
		track.pid = copy_string(merge, copier, (uint32_t)old->pid);
	if (track.flags & OPS_TRACK_TID_TEXT)
		track.tid = copy_string(merge, copier, (uint32_t)old->tid);
	known = copier->own_tracks || track.flags & OPS_TRACK_COROUTINE ? OPS_NONE : merge_tracks_find(&merge->tracks, &track);
	if (known != OPS_NONE)
		return known;
	track.name = copy_string(merge, copier, old->name);
	added = merge_tracks_add(&merge->tracks, &track);
	return added == OPS_NONE ? OPS_NONE : ops_builder_track(merge->builder, &track);
}

static uint32_t copy_thread_number(const struct merge *merge, const struct copier *copier, uint32_t number)
{
	uint32_t id = number ? ops_intern_find(&copier->numbers, &number, sizeof(number)) : OPS_INTERN_NONE;

	return id == OPS_INTERN_NONE ? number : merge->tracks.list.items[copier->number_tracks[id]].number;
}

/* --- one part ------------------------------------------------------------------------------------------------------- */

static uint32_t copy_inputs(struct merge *merge, struct copier *copier, uint32_t id)
{
	if (id == OPS_NONE)
		return OPS_NONE;
	if (copier->inputs[id] == OPS_NONE) {
		struct ops_string list = ops_trace_inputs(copier->trace, id);
		copier->inputs[id] = ops_builder_inputs(merge->builder, list.bytes, list.size);
	}
	return copier->inputs[id];
}

static uint32_t copy_function(struct merge *merge, struct copier *copier, uint32_t id)
{
	size_t count;
	struct ops_function function;

	if (id == OPS_NONE)
		return OPS_NONE;
	if (copier->functions[id] == OPS_NONE) {
		function = ops_trace_functions(copier->trace, &count)[id];
		function.name = copy_string(merge, copier, function.name);
		function.file = copy_string(merge, copier, function.file);
		copier->functions[id] = ops_builder_function(merge->builder, &function);
	}
	return copier->functions[id];
}

/* Each part numbers its calls from 1 on; the numbers of later parts are increased. */
static uint32_t copy_python_id(struct merge *merge, const struct copier *copier, uint32_t id)
{
	if (id >= OPS_NONE - copier->first_python_id) /* includes OPS_NONE */
		return OPS_NONE;
	id += copier->first_python_id;
	if (id > merge->python_id)
		merge->python_id = id;
	return id;
}

static void copy_python_columns(struct merge *merge, struct copier *copier, uint32_t row, struct ops_new_event *event)
{
	const struct ops_events *e = copier->events;

	if (e->function)
		event->function = copy_function(merge, copier, e->function[row]);
	if (e->call_line)
		event->call_line = e->call_line[row];
	if (e->python_id)
		event->python_id = copy_python_id(merge, copier, e->python_id[row]);
	if (e->python_parent)
		event->python_parent = copy_python_id(merge, copier, e->python_parent[row]);
	if (e->python_module)
		event->python_module = e->python_module[row];
	if (e->module && e->module[row] != OPS_NONE)
		event->module = copier->modules[e->module[row]];
}

/* Correlations connect calls with their device work; different ranks get different ones. */
static int64_t copy_correlation(const struct copier *copier, int64_t correlation)
{
	bool moves = correlation >= 0 && correlation < CORRELATIONS_PER_RANK;

	return moves ? correlation + copier->first_correlation : correlation;
}

static int64_t between(int64_t time_ns, int64_t from_ns, int64_t to_ns)
{
	return time_ns < from_ns ? from_ns : time_ns > to_ns ? to_ns : time_ns;
}

static void merge_part_clip(const struct ops_trace_part *part, struct ops_new_event *event)
{
	if (event->kind == OPS_EVENT_PYTHON_FUNCTION && event->start_ns < part->clip_from_ns)
		event->flags |= OPS_EVENT_CUT;
	event->start_ns = between(event->start_ns, part->clip_from_ns, part->clip_to_ns);
	event->end_ns = between(event->end_ns, part->clip_from_ns, part->clip_to_ns);
}

static void merge_part_copy_event(struct merge *merge, struct copier *copier, uint32_t row)
{
	const struct ops_events *e = copier->events;
	struct ops_new_event event = {
		OPS_NEW_EVENT,
		.start_ns = shifted(copier, e->start_ns[row]),
		.end_ns = shifted(copier, e->end_ns[row]),
		.name = copy_string(merge, copier, e->name[row]),
		.track = copier->tracks[e->track[row]],
		.overload = e->overload ? copy_string(merge, copier, e->overload[row]) : 0,
		.flags = e->flags[row] & (OPS_EVENT_ASYNC | OPS_EVENT_UNFINISHED | OPS_EVENT_CUT),
		.kind = e->kind[row],
		.scope = e->scope[row],
	};

	if ((e->kind[row] == OPS_EVENT_TRACE || e->kind[row] == OPS_EVENT_PYTHON_FUNCTION) &&
	    copier->part->clip_from_ns < copier->part->clip_to_ns)
		merge_part_clip(copier->part, &event);
	event.sequence_nr = e->sequence_nr[row];
	event.forward_thread = copy_thread_number(merge, copier, e->forward_thread[row]);
	event.inputs = copy_inputs(merge, copier, e->inputs[row]);
	if (e->end_track)
		event.end_track = copier->tracks[e->end_track[row]];
	if (e->args)
		event.args = copy_string(merge, copier, e->args[row]);
	if (e->storages && !copier->part->process_name)
		event.storages = copy_string(merge, copier, e->storages[row]);
	if (e->call_stack)
		event.call_stack = copy_string(merge, copier, e->call_stack[row]);
	if (e->extra)
		event.extra = copy_string(merge, copier, e->extra[row]);
	if (e->id && merge->keep_ids)
		event.id = e->id[row];
	copy_python_columns(merge, copier, row, &event);
	if (e->correlation)
		event.correlation = copy_correlation(copier, e->correlation[row]);
	if (e->category)
		event.category = copy_string(merge, copier, e->category[row]);
	if (e->index)
		event.index = e->index[row];
	if (copier->rows)
		copier->rows[row] = (uint32_t)merge->event_count;
	if (event.end_ns != copier->stop_ns) /* an unfinished event ends with the session, which is now longer */
		event.flags &= (uint16_t)~OPS_EVENT_UNFINISHED;
	ops_builder_event(merge->builder, &event);
	merge->event_count++;
}

/* Copies the links between copied events. */
static void copy_links(struct merge *merge, struct copier *copier)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(copier->trace, &count);

	for (size_t i = 0; copier->rows && i < count; i++) {
		struct ops_link link = links[i];

		link.from = copier->rows[link.from];
		link.to = copier->rows[link.to];
		link.category = copy_string(merge, copier, link.category);
		if (link.from != OPS_NONE && link.to != OPS_NONE)
			ops_builder_link(merge->builder, &link);
	}
}

static struct ops_string merge_part_text_of(const struct copier *copier, uint32_t id)
{
	return id == OPS_NONE ? (struct ops_string){"", 0} : ops_trace_string(copier->trace, id);
}

static bool copy_processes(struct merge *merge, struct copier *copier)
{
	size_t count;
	const struct ops_process *processes = ops_trace_processes(copier->trace, &count);

	for (size_t i = 0; i < count; i++) {
		struct ops_process process = processes[i];

		if (copier->rank_name) {
			struct renamed_process *renamed = rename_process(merge, copier, process.flags, process.pid);

			if (!renamed)
				return false;
			process.pid = renamed->pid;
			renamed->named = true;
		} else if (process.flags & OPS_TRACK_PID_TEXT) {
			process.pid = copy_string(merge, copier, (uint32_t)process.pid);
		}
		if (copier->rank_name)
			process.name = rank_string(merge, copier, merge_part_text_of(copier, process.name));
		else
			process.name = copy_string(merge, copier, process.name);
		process.labels = copy_string(merge, copier, process.labels);
		ops_builder_process(merge->builder, &process);
	}
	for (size_t i = 0; i < copier->process_keys.count; i++) {
		const struct renamed_process *renamed = &copier->processes[i];

		if (!renamed->named && !renamed->flags)
			ops_builder_process(merge->builder,
			                    &(struct ops_process){.pid = renamed->pid, .labels = OPS_NONE,
			                                          .name = rank_string(merge, copier, (struct ops_string){"", 0})});
	}
	return true;
}

/* The identity of a module: a module of several parts is one module, whatever its number in each. */
struct module_key {
	uint64_t address;
	uint32_t class_name; /* this and the other ids are those of the new trace */
	uint32_t path;
	uint32_t parent;
	uint32_t unused;
};

/* Returns false if out of memory. */
static bool copy_modules(struct merge *merge, struct copier *copier)
{
	size_t count, alias_count;
	const struct ops_module *modules = ops_trace_modules(copier->trace, &count);
	const struct ops_module_alias *aliases = ops_trace_module_aliases(copier->trace, &alias_count);
	size_t alias = 0;

	for (size_t i = 0; i < count; i++) {
		struct ops_module module = modules[i];
		size_t known = merge->modules.count;
		struct module_key key = {.address = module.address};

		key.class_name = module.class_name = copy_string(merge, copier, module.class_name);
		key.path = module.path = copy_string(merge, copier, module.path);
		key.parent = module.parent = module.parent == OPS_NONE ? OPS_NONE : copier->modules[module.parent];
		module.name = copy_string(merge, copier, module.name);
		copier->modules[i] = ops_intern_add(&merge->modules, &key, sizeof(key));
		if (copier->modules[i] == OPS_INTERN_NONE)
			return false;
		if (copier->modules[i] == known)
			ops_builder_module(merge->builder, &module);
		for (; alias < alias_count && aliases[alias].module == i; alias++)
			if (copier->modules[i] == known)
				ops_builder_module_alias(merge->builder, &(struct ops_module_alias){
										 (uint32_t)known,
										 copy_string(merge, copier, aliases[alias].path)});
	}
	return true;
}

static void copy_memory(struct merge *merge, struct copier *copier, size_t i)
{
	struct ops_memory_record record = copier->memory[i];
	const uint32_t *stacks = ops_trace_memory_stacks(copier->trace);

	record.track = copier->tracks[record.track];
	record.time_ns = shifted(copier, record.time_ns);
	ops_builder_memory(merge->builder, &record);
	if (stacks)
		ops_builder_memory_stack(merge->builder, copy_string(merge, copier, stacks[i]));
	merge->memory_count++;
}

static void copy_roles(struct merge *merge, struct copier *copier)
{
	size_t count;
	const struct ops_role_record *roles = ops_trace_roles(copier->trace, &count);

	for (size_t i = 0; i < count; i++) {
		struct ops_role_record record = roles[i];
		record.name = copy_string(merge, copier, record.name);
		record.track = copier->tracks[record.track];
		record.time_ns = shifted(copier, record.time_ns);
		ops_builder_role(merge->builder, &record);
	}
}

static void copy_counters(struct merge *merge, struct copier *copier)
{
	size_t count;
	const struct ops_counter_record *counters = ops_trace_counters(copier->trace, &count);

	for (size_t i = 0; i < count; i++) {
		struct ops_counter_record record = counters[i];
		record.name = copy_string(merge, copier, record.name);
		record.series = copy_string(merge, copier, record.series);
		record.track = copier->tracks[record.track];
		record.time_ns = shifted(copier, record.time_ns);
		ops_builder_counter(merge->builder, &record);
	}
}

/* Copies the part; sets the number, in order of adding, of each of its refs. */
static void copy_part(struct merge *merge, struct copier *copier, const struct ops_trace_part *part, uint32_t *places)
{
	size_t first_event = merge->event_count, first_memory = merge->memory_count;

	if (part->whole) {
		for (size_t row = 0; row < copier->events->count; row++)
			merge_part_copy_event(merge, copier, (uint32_t)row);
		for (size_t i = 0; i < copier->memory_count && !part->process_name; i++)
			copy_memory(merge, copier, i);
	}
	if ((part->whole && !part->process_name) || part->with_roles)
		copy_roles(merge, copier);
	if (part->whole || part->with_counters)
		copy_counters(merge, copier);
	for (size_t i = 0; i < part->ref_count; i++) {
		uint32_t ref = part->refs[i];
		if (part->whole) {
			places[i] = ref + (uint32_t)(ref & OPS_MEMORY_REF ? first_memory : first_event);
		} else if (ref & OPS_MEMORY_REF) {
			places[i] = OPS_MEMORY_REF | (uint32_t)merge->memory_count;
			copy_memory(merge, copier, ref & ~OPS_MEMORY_REF);
		} else {
			places[i] = (uint32_t)merge->event_count;
			merge_part_copy_event(merge, copier, ref);
		}
	}
}

/* Copies all of a part. */
static bool copy_all(struct merge *merge, struct copier *copier, const struct ops_trace_part *part, uint32_t *places)
{
	if (!copy_modules(merge, copier))
		return false;
	copy_part(merge, copier, part, places);
	copy_links(merge, copier);
	return copy_processes(merge, copier);
}

/* If two threads have the same number, the first one keeps it. */
static bool know_number(struct copier *copier, size_t i)
{
	const struct ops_track *track = &copier->old_tracks[i];
	size_t known = copier->numbers.count;
	uint32_t id;

	if (track->kind != OPS_TRACK_THREAD)
		return true;
	id = ops_intern_add(&copier->numbers, &track->number, sizeof(track->number));
	if (id == known)
		copier->number_tracks[id] = copier->tracks[i];
	return id != OPS_INTERN_NONE;
}

static bool copier_init(struct copier *copier, struct merge *merge, const struct ops_trace_part *part, int64_t stop_ns,
                        bool own_tracks)
{
	const struct ops_trace *trace = part->trace;
	size_t strings = ops_trace_string_count(trace), inputs = ops_trace_inputs_count(trace);
	size_t functions, modules, processes;

	*copier = (struct copier){.part = part, .trace = trace, .events = ops_trace_events(trace), .stop_ns = stop_ns,
	                          .own_tracks = own_tracks, .rank_name = part->rank_name, .shift_ns = part->shift_ns};
	copier->old_tracks = ops_trace_tracks(trace, &copier->track_count);
	copier->memory = ops_trace_memory(trace, &copier->memory_count);
	copier->first_python_id = merge->python_id;
	ops_trace_functions(trace, &functions);
	ops_trace_modules(trace, &modules);
	ops_trace_processes(trace, &processes);
	if (part->rank_name)
		copier->processes = ops_realloc_array(NULL, copier->track_count + processes + 1, sizeof(*copier->processes));
	copier->strings = ops_realloc_array(NULL, strings + 1, sizeof(*copier->strings));
	copier->inputs = ops_realloc_array(NULL, inputs + 1, sizeof(*copier->inputs));
	copier->functions = ops_realloc_array(NULL, functions + 1, sizeof(*copier->functions));
	copier->tracks = ops_realloc_array(NULL, copier->track_count + 1, sizeof(*copier->tracks));
	copier->modules = ops_realloc_array(NULL, modules + 1, sizeof(*copier->modules));
	copier->number_tracks = ops_realloc_array(NULL, copier->track_count + 1, sizeof(*copier->number_tracks));
	if (!copier->number_tracks || !copier->modules || !copier->strings || !copier->inputs || !copier->functions || !copier->tracks ||
	    (part->rank_name && !copier->processes))
		return false;
	memset(copier->functions, 0xff, functions * sizeof(*copier->functions));
	memset(copier->strings, 0xff, strings * sizeof(*copier->strings));
	memset(copier->inputs, 0xff, inputs * sizeof(*copier->inputs));
	if (merge->links_given) {
		copier->rows = ops_realloc_array(NULL, copier->events->count + 1, sizeof(*copier->rows));
		if (!copier->rows)
			return false;
		memset(copier->rows, 0xff, copier->events->count * sizeof(*copier->rows));
	}
	for (size_t i = 0; i < copier->track_count; i++) {
		copier->tracks[i] = copy_track(merge, copier, &copier->old_tracks[i]);
		if (copier->tracks[i] == OPS_NONE || !know_number(copier, i))
			return false;
	}
	return true;
}

static void copier_release(struct copier *copier)
{
	ops_intern_release(&copier->process_keys);
	ops_intern_release(&copier->numbers);
	ops_free(copier->number_tracks);
	ops_free(copier->strings);
	ops_free(copier->inputs);
	ops_free(copier->functions);
	ops_free(copier->modules);
	ops_free(copier->tracks);
	ops_free(copier->rows);
	ops_free(copier->processes);
}

bool merge_add_part(struct merge *merge, const struct ops_trace_part *part, size_t index, bool own_tracks, uint32_t *places)
{
	struct copier copier;
	bool done = copier_init(&copier, merge, part, merge->info.stop_ns, own_tracks);

	if (part->rank_name)
		copier.first_correlation = (int64_t)index * CORRELATIONS_PER_RANK;
	done = done && copy_all(merge, &copier, part, places);
	copier_release(&copier);
	return done;
}
