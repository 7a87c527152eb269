/* SPDX-License-Identifier: Apache-2.0
 *
 * ops_trace_check: checks all invariants of opstrobe/trace.h, row by row. Everything derived from the rows (parents, folding,
 * self times) is computed again and compared, so that a row missing from the tree is found as well as a wrong one.
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json.h"
#include "base/order.h"
#include "trace/inputs.h"
#include "trace/table.h"

#define KNOWN_FLAGS (OPS_EVENT_ASYNC | OPS_EVENT_UNFINISHED | OPS_EVENT_HIDDEN | OPS_EVENT_FOLDED | OPS_EVENT_CUT)

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static enum ops_code bad_row(struct ops_error *error, size_t row, const char *what)
{
	return ops_fault(error, OPS_CORRUPT, "event %zu: %s", row, what);
}

static bool is_string_or_none(const struct ops_trace *trace, const uint32_t *column, size_t row)
{
	return !column || column[row] == OPS_NONE || column[row] < trace->strings.count;
}

static enum ops_code check_ids(const struct ops_trace *trace, size_t row, struct ops_error *error)
{
	const struct ops_events *e = &trace->events;
	size_t strings = trace->strings.count;
	size_t tracks = trace->tracks.count;

	if (e->name[row] >= strings)
		return bad_row(error, row, "name is not a string of the trace");
	if (e->track[row] >= tracks)
		return bad_row(error, row, "track is not one of the trace");
	if (e->inputs[row] != OPS_NONE && e->inputs[row] >= trace->inputs.count)
		return bad_row(error, row, "inputs are not a list of the trace");
	if (e->kind[row] >= OPS_EVENT_KIND_COUNT)
		return bad_row(error, row, "unknown kind");
	if (e->flags[row] & ~KNOWN_FLAGS)
		return bad_row(error, row, "unknown flag");
	if (e->overload && e->overload[row] >= strings)
		return bad_row(error, row, "overload name is not a string of the trace");
	if (e->args && e->args[row] != OPS_NONE && e->args[row] >= strings)
		return bad_row(error, row, "argument text is not a string of the trace");
	if (e->end_track && e->end_track[row] >= tracks)
		return bad_row(error, row, "end track is not one of the trace");
	if (!is_string_or_none(trace, e->storages, row))
		return bad_row(error, row, "storages are not a string of the trace");
	if (e->module && e->module[row] != OPS_NONE && e->module[row] >= trace->modules.count)
		return bad_row(error, row, "module is not one of the trace");
	if (!is_string_or_none(trace, e->category, row) || !is_string_or_none(trace, e->call_stack, row) ||
	    !is_string_or_none(trace, e->extra, row))
		return bad_row(error, row, "category, call stack or further arguments are not a string of the trace");
	if (e->function && e->function[row] != OPS_NONE && e->function[row] >= trace->functions.count)
		return bad_row(error, row, "function is not one of the trace");
	if (e->function && e->function[row] != OPS_NONE && e->kind[row] != OPS_EVENT_PYTHON_FUNCTION)
		return bad_row(error, row, "has a function but is not a Python call");
	return OPS_OK;
}

static enum ops_code check_row(const struct ops_trace *trace, size_t row, struct ops_error *error)
{
	const struct ops_events *e = &trace->events;

	if (e->end_ns[row] < e->start_ns[row])
		return bad_row(error, row, "ends before it starts");
	if (row && e->start_ns[row] < e->start_ns[row - 1])
		return bad_row(error, row, "starts before the event above it");
	if (row && e->start_ns[row] == e->start_ns[row - 1] && e->end_ns[row] > e->end_ns[row - 1])
		return bad_row(error, row, "starts with the event above it and is longer");
	if (e->sequence_nr[row] < -1)
		return bad_row(error, row, "sequence number below -1");
	if ((e->kind[row] == OPS_EVENT_CPU_INSTANT || e->kind[row] == OPS_EVENT_MARK) && e->end_ns[row] != e->start_ns[row])
		return bad_row(error, row, "an instant that lasts");
	if ((e->flags[row] & OPS_EVENT_UNFINISHED) && e->end_ns[row] != trace->info.stop_ns)
		return bad_row(error, row, "unfinished, but does not end with the session");
	if (e->end_track && e->end_track[row] != e->track[row] && !(e->flags[row] & OPS_EVENT_ASYNC))
		return bad_row(error, row, "ends on another track, but is not asynchronous");
	return OPS_OK;
}

static enum ops_code check_events(const struct ops_trace *trace, struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	if (trace->events.count > INT32_MAX)
		return ops_fault(error, OPS_CORRUPT, "more events than row numbers");
	for (size_t row = 0; !code && row < trace->events.count; row++) {
		code = check_ids(trace, row, error);
		if (!code)
			code = check_row(trace, row, error);
	}
	return code;
}

/* --- tree ----------------------------------------------------------------------------------------------------------- */

static enum ops_code compare_tree(const struct ops_trace *trace, const struct ops_tree *tree, struct ops_error *error)
{
	const struct ops_events *e = &trace->events;

	for (size_t row = 0; row < e->count; row++) {
		if (e->parent[row] != tree->parent[row])
			return ops_fault(error, OPS_CORRUPT, "event %zu: parent is %" PRId64 ", should be %" PRId64, row,
			                 e->parent[row] == OPS_NONE ? -1 : (int64_t)e->parent[row],
			                 tree->parent[row] == OPS_NONE ? -1 : (int64_t)tree->parent[row]);
		if ((e->flags[row] ^ tree->flags[row]) & OPS_EVENT_HIDDEN)
			return bad_row(error, row, "hidden flag is wrong");
		if ((e->flags[row] ^ tree->flags[row]) & OPS_EVENT_FOLDED)
			return bad_row(error, row, "folded flag is wrong");
		if (e->self_ns[row] != tree->self_ns[row])
			return ops_fault(error, OPS_CORRUPT, "event %zu: self time is %" PRId64 " ns, should be %" PRId64, row,
			                 e->self_ns[row], tree->self_ns[row]);
	}
	return OPS_OK;
}

static enum ops_code check_tree(const struct ops_trace *trace, struct ops_error *error)
{
	size_t count = trace->events.count + 1;
	struct ops_tree tree = {
		.parent = ops_realloc_array(NULL, count, sizeof(*tree.parent)),
		.self_ns = ops_realloc_array(NULL, count, sizeof(*tree.self_ns)),
		.flags = ops_alloc_zeroed(count, sizeof(*tree.flags)),
	};
	enum ops_code code;

	if (tree.parent && tree.self_ns && tree.flags && ops_tree_build(trace, &tree))
		code = compare_tree(trace, &tree, error);
	else
		code = ops_fault_memory(error);
	ops_free(tree.parent);
	ops_free(tree.self_ns);
	ops_free(tree.flags);
	return code;
}

/* --- links ---------------------------------------------------------------------------------------------------------- */

static enum ops_code bad_link(struct ops_error *error, size_t i, const char *what)
{
	return ops_fault(error, OPS_CORRUPT, "link %zu: %s", i, what);
}

static enum ops_code check_link(const struct ops_trace *trace, size_t i, struct ops_error *error)
{
	const struct ops_events *e = &trace->events;
	const struct ops_link *link = &trace->links.items[i];

	if ((unsigned)link->kind > OPS_LINK_DEPENDENCY)
		return bad_link(error, i, "unknown kind");
	if (link->from >= e->count || link->to >= e->count)
		return bad_link(error, i, "end is not an event of the trace");
	if (link->category != OPS_NONE && link->category >= trace->strings.count)
		return bad_link(error, i, "category is not a string of the trace");
	if (i && (link->from < link[-1].from || (link->from == link[-1].from && link->to < link[-1].to)))
		return bad_link(error, i, "not in order of 'from' and 'to'");
	return OPS_OK;
}

/* A call may start several pieces of work, and because of different clocks one may seem to begin before its call. */
static enum ops_code check_launch(const struct ops_trace *trace, size_t i, struct ops_error *error)
{
	const struct ops_link *link = &trace->links.items[i];

	return ops_is_launch(trace, link->from, link->to) ? OPS_OK : bad_link(error, i, "is not from a call to work of a device");
}

/* Checks what holds for the links of a recording. */
static enum ops_code check_recorded_link(const struct ops_trace *trace, size_t i, struct ops_error *error)
{
	const struct ops_events *e = &trace->events;
	const struct ops_link *link = &trace->links.items[i];

	if (link->kind == OPS_LINK_LAUNCH)
		return check_launch(trace, i, error);
	if (link->kind == OPS_LINK_DEPENDENCY)
		return link->from != link->to && ops_is_one_launch(trace, link->from, link->to)
		               ? OPS_OK
		               : bad_link(error, i, "a dependency that is not between work of one launch");
	if (link->kind != OPS_LINK_FORWARD_BACKWARD)
		return bad_link(error, i, "unknown kind");
	if (link->from >= link->to)
		return bad_link(error, i, "points backwards");
	if (i && link->from == link[-1].from)
		return bad_link(error, i, "the second from its event");
	if (e->kind[link->from] != OPS_EVENT_CPU_OP || e->kind[link->to] != OPS_EVENT_CPU_OP)
		return bad_link(error, i, "end is not an operator");
	if (e->forward_thread[link->from] != 0 || e->sequence_nr[link->from] < 0)
		return bad_link(error, i, "does not start at a forward operator");
	if (e->sequence_nr[link->to] != e->sequence_nr[link->from] ||
	    e->forward_thread[link->to] != trace->tracks.items[e->track[link->from]].number)
		return bad_link(error, i, "does not end at a backward node of its forward operator");
	return OPS_OK;
}

static enum ops_code check_links(const struct ops_trace *trace, struct ops_error *error)
{
	uint8_t *ended = ops_alloc_zeroed(trace->events.count / 8 + 1, 1); /* a bit for each row: a link ends there */
	enum ops_code code = ended ? OPS_OK : ops_fault_memory(error);
	bool recorded = !trace->events.index;

	for (size_t i = 0; !code && i < trace->links.count; i++) {
		uint32_t to = trace->links.items[i].to;

		code = check_link(trace, i, error);
		if (!code && recorded)
			code = check_recorded_link(trace, i, error);
		if (!code && trace->links.items[i].kind == OPS_LINK_DEPENDENCY)
			continue;
		if (!code && recorded && ended[to / 8] & 1 << to % 8)
			code = bad_link(error, i, "the second to its event");
		if (!code)
			ended[to / 8] |= (uint8_t)(1 << to % 8);
	}
	ops_free(ended);
	return code;
}

/* --- everything else ------------------------------------------------------------------------------------------------ */

static bool lower_number(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_track *tracks = context;

	return tracks[a].number < tracks[b].number;
}

/* Threads have distinct numbers, streams have none. */
static enum ops_code check_numbers(const struct ops_trace *trace, struct ops_error *error)
{
	const struct ops_track *tracks = trace->tracks.items;
	size_t count = trace->tracks.count;
	uint32_t *order = ops_realloc_array(NULL, count + 1, sizeof(*order));
	enum ops_code code = OPS_OK;

	for (size_t i = 0; order && i < count; i++)
		order[i] = (uint32_t)i;
	if (!order || !ops_sort_rows(order, count, lower_number, tracks))
		code = ops_fault_memory(error);
	for (size_t i = 0; !code && i < count; i++) {
		const struct ops_track *track = &tracks[order[i]];

		if ((track->kind == OPS_TRACK_THREAD) != (track->number != 0))
			code = ops_fault(error, OPS_CORRUPT, "track %u: a thread without number or a stream with one", order[i]);
		else if (i && track->number && track->number == tracks[order[i - 1]].number)
			code = ops_fault(error, OPS_CORRUPT, "track %u: number %u is in use", order[i], track->number);
	}
	ops_free(order);
	return code;
}

static enum ops_code check_tracks(const struct ops_trace *trace, struct ops_error *error)
{
	for (size_t i = 0; i < trace->tracks.count; i++) {
		const struct ops_track *track = &trace->tracks.items[i];

		if (track->kind != OPS_TRACK_THREAD && track->kind != OPS_TRACK_STREAM)
			return ops_fault(error, OPS_CORRUPT, "track %zu: unknown kind", i);
		if (track->name >= trace->strings.count)
			return ops_fault(error, OPS_CORRUPT, "track %zu: name is not a string of the trace", i);
		if (((track->flags & OPS_TRACK_PID_TEXT) && (uint64_t)track->pid >= trace->strings.count) ||
		    ((track->flags & OPS_TRACK_TID_TEXT) && (uint64_t)track->tid >= trace->strings.count))
			return ops_fault(error, OPS_CORRUPT, "track %zu: process or thread is not a string of the trace", i);
	}
	return check_numbers(trace, error);
}

static enum ops_code check_records(const struct ops_trace *trace, struct ops_error *error)
{
	if (trace->memory_stacks.count && trace->memory_stacks.count != trace->memory.count)
		return ops_fault(error, OPS_CORRUPT, "not as many call stacks as memory records");
	for (size_t i = 0; i < trace->memory.count; i++) {
		const struct ops_memory_record *record = &trace->memory.items[i];

		if (record->track >= trace->tracks.count)
			return ops_fault(error, OPS_CORRUPT, "memory record %zu: track is not one of the trace", i);
		if (i && record->time_ns < record[-1].time_ns)
			return ops_fault(error, OPS_CORRUPT, "memory record %zu: earlier than the one above it", i);
		if (record->out_of_memory > 1)
			return ops_fault(error, OPS_CORRUPT, "memory record %zu: unknown flag", i);
		if (trace->memory_stacks.count && trace->memory_stacks.items[i] != OPS_NONE &&
		    trace->memory_stacks.items[i] >= trace->strings.count)
			return ops_fault(error, OPS_CORRUPT, "memory record %zu: call stack is not a string of the trace", i);
	}
	for (size_t i = 0; i < trace->roles.count; i++) {
		const struct ops_role_record *record = &trace->roles.items[i];

		if (record->track >= trace->tracks.count || record->name >= trace->strings.count)
			return ops_fault(error, OPS_CORRUPT, "role %zu: track or name is not one of the trace", i);
		if (i && record->time_ns < record[-1].time_ns)
			return ops_fault(error, OPS_CORRUPT, "role %zu: earlier than the one above it", i);
	}
	for (size_t i = 0; i < trace->counters.count; i++) {
		const struct ops_counter_record *record = &trace->counters.items[i];

		if (record->track >= trace->tracks.count)
			return ops_fault(error, OPS_CORRUPT, "counter record %zu: track is not one of the trace", i);
		if (record->name >= trace->strings.count || record->series >= trace->strings.count)
			return ops_fault(error, OPS_CORRUPT, "counter record %zu: name is not a string of the trace", i);
		if (i && record->time_ns < record[-1].time_ns)
			return ops_fault(error, OPS_CORRUPT, "counter record %zu: earlier than the one above it", i);
	}
	return OPS_OK;
}

static enum ops_code check_processes(const struct ops_trace *trace, struct ops_error *error)
{
	size_t strings = trace->strings.count;

	for (size_t i = 0; i < trace->processes.count; i++) {
		const struct ops_process *process = &trace->processes.items[i];

		if ((process->name != OPS_NONE && process->name >= strings) ||
		    (process->labels != OPS_NONE && process->labels >= strings) ||
		    ((process->flags & OPS_TRACK_PID_TEXT) && (uint64_t)process->pid >= strings))
			return ops_fault(error, OPS_CORRUPT, "process %zu: a text is not a string of the trace", i);
	}
	return OPS_OK;
}

static enum ops_code check_functions(const struct ops_trace *trace, struct ops_error *error)
{
	for (size_t i = 0; i < trace->functions.count; i++) {
		const struct ops_function *function = &trace->functions.items[i];

		if (function->name >= trace->strings.count || function->file >= trace->strings.count)
			return ops_fault(error, OPS_CORRUPT, "function %zu: name or file is not a string of the trace", i);
	}
	return OPS_OK;
}

static enum ops_code check_module(const struct ops_trace *trace, size_t i, struct ops_error *error)
{
	const struct ops_module *module = &trace->modules.items[i];
	size_t strings = trace->strings.count;

	if (module->name >= strings || module->class_name >= strings || module->path >= strings || module->unique_path >= strings)
		return ops_fault(error, OPS_CORRUPT, "module %zu: a text is not a string of the trace", i);
	if (module->parent != OPS_NONE && module->parent >= i)
		return ops_fault(error, OPS_CORRUPT, "module %zu: parent is not above it", i);
	return OPS_OK;
}

static enum ops_code check_modules(const struct ops_trace *trace, struct ops_error *error)
{
	size_t count = trace->modules.count;
	enum ops_code code = OPS_OK;

	for (size_t i = 0; !code && i < count; i++)
		code = check_module(trace, i, error);
	for (size_t i = 0; !code && i < trace->aliases.count; i++) {
		const struct ops_module_alias *alias = &trace->aliases.items[i];

		if (alias->module >= count || alias->path >= trace->strings.count)
			code = ops_fault(error, OPS_CORRUPT, "further path %zu of a module: not of the trace", i);
		else if (i && alias->module < alias[-1].module)
			code = ops_fault(error, OPS_CORRUPT, "further path %zu of a module: out of order", i);
	}
	return code;
}

static enum ops_code check_tables(const struct ops_trace *trace, struct ops_error *error)
{
	for (size_t i = 0; i < trace->inputs.count; i++)
		if (!ops_inputs_valid(trace->inputs.entries[i].bytes, trace->inputs.entries[i].size))
			return ops_fault(error, OPS_CORRUPT, "input list %zu: malformed", i);
	for (size_t i = 0; i < trace->metadata.count; i++) {
		const struct ops_metadata_entry *entry = &trace->metadata.items[i];
		enum ops_code code = ops_json_validate(entry->json, entry->json_size, error);

		if (code)
			return ops_fault(error, OPS_CORRUPT, "metadata %zu: not JSON", i);
	}
	if (trace->info.stop_ns < trace->info.start_ns)
		return ops_fault(error, OPS_CORRUPT, "the session stops before it starts");
	return OPS_OK;
}

enum ops_code ops_trace_check(const struct ops_trace *trace, struct ops_error *error)
{
	enum ops_code code = check_tables(trace, error);

	if (!code)
		code = check_tracks(trace, error);
	if (!code)
		code = check_processes(trace, error);
	if (!code)
		code = check_functions(trace, error);
	if (!code)
		code = check_modules(trace, error);
	if (!code)
		code = check_records(trace, error);
	if (!code)
		code = check_events(trace, error);
	if (!code)
		code = check_tree(trace, error);
	if (!code)
		code = check_links(trace, error);
	return code;
}
