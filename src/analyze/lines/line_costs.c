/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of lines; opstrobe/lines.h defines what belongs to a line.
 *
 *     train.py(1): main        ├──────────────────────────────────────────┤
 *       called from line 3       ├ torch/…: forward ────┤  ├ net.py(7): step ──────┤
 *                                   ├ aten::mm ┤             ├ aten::add ┤  called from line 9
 *
 * Line 3 of train.py has the total of forward, with aten::mm; line 9 of net.py has aten::add, which is not self time of
 * the line of train.py that called step.
 */
#include "analyze/lines/line_costs.h"

#include <opstrobe/internal/trace.h>

#include "analyze/frames.h"
#include "analyze/visible.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/sum.h"
#include "derive/backward.h"
#include "derive/captures.h"
#include "derive/memory_events.h"
#include "derive/program.h"
#include "trace/kinds.h"
#include "trace/nests.h"

/* --- functions and lines -------------------------------------------------------------------------------------------- */

static uint32_t file_number(struct line_costs *costs, struct ops_string name)
{
	uint32_t number = ops_intern_add(&costs->names, name.bytes, name.size);

	if (number == OPS_INTERN_NONE || number < costs->files.count)
		return number;
	if (!OPS_ARRAY_APPEND(&costs->files, (struct line_file){.name = {costs->names.entries[number].bytes, name.size},
	                                                        .is_library = ops_file_is_library(name)}))
		return OPS_INTERN_NONE;
	return number;
}

/* Finds the function that a row of PYTHON_FUNCTION calls. Returns false if out of memory. */
static bool find_function(struct line_costs *costs, uint32_t row, uint32_t *ret_function)
{
	const struct ops_events *e = costs->events;
	bool known = e->function && e->function[row] != OPS_NONE;
	uint64_t key = known ? UINT64_C(1) << 32 | e->function[row] : e->name[row];
	uint32_t *slot = ops_map_slot(&costs->function_of, key, OPS_NONE);
	struct line_function function = {.file = OPS_NONE};
	struct line_function *added;
	struct ops_function_text text;

	if (!slot)
		return false;
	*ret_function = *slot;
	if (*slot != OPS_NONE)
		return true;
	*ret_function = *slot = (uint32_t)costs->functions.count;
	if (ops_event_function(costs->trace, row, &text) && text.file.size && !ops_file_is_torch(text.file)) {
		function = (struct line_function){text.name, file_number(costs, text.file), text.line};
		if (function.file == OPS_INTERN_NONE)
			return false;
	}
	added = OPS_ARRAY_PUSH(&costs->functions);
	if (added)
		*added = function;
	return added;
}

/* Returns the sums of a line of a function; OPS_NONE if out of memory. */
static uint32_t find_line(struct line_costs *costs, uint32_t function, uint32_t line)
{
	uint32_t file = costs->functions.items[function].file;
	uint32_t *slot = ops_map_slot(&costs->line_of, (uint64_t)file << 32 | line, OPS_NONE);

	if (!slot || *slot != OPS_NONE)
		return slot ? *slot : OPS_NONE;
	if (!OPS_ARRAY_APPEND(&costs->lines, (struct line_cost){.file = file, .line = line, .function = function,
	                                                        .longest = OPS_NONE, .longest_ns = -1}))
		return OPS_NONE;
	return *slot = (uint32_t)(costs->lines.count - 1);
}

uint32_t line_costs_find(struct line_costs *costs, const struct ops_function_text *function)
{
	uint32_t file = file_number(costs, function->file);

	if (file == OPS_INTERN_NONE || !OPS_ARRAY_APPEND(&costs->functions, (struct line_function){function->name, file, 0}))
		return OPS_NONE;
	return find_line(costs, (uint32_t)(costs->functions.count - 1), function->line);
}

/* --- place of each row ---------------------------------------------------------------------------------------------- */

/* Finds the line from which a function called a row. */
static bool place_call(struct line_costs *costs, uint32_t row, uint32_t function)
{
	const uint32_t *call_line = costs->events->call_line;
	uint32_t line = call_line && call_line[row] ? call_line[row] : costs->functions.items[function].line;

	costs->place[row] = line ? find_line(costs, function, line) : costs->place[costs->events->parent[row]];
	return costs->place[row] != OPS_NONE;
}

/* Finds the line at which the call stack of a row begins, if calls were not recorded. The first line of its function is unknown. */
static bool place_by_stack(struct line_costs *costs, uint32_t row)
{
	uint32_t stack = costs->events->call_stack ? costs->events->call_stack[row] : OPS_NONE, *slot;
	struct ops_function_text function;

	if (stack == OPS_NONE)
		return true;
	slot = ops_map_slot(&costs->place_of_stack, stack, OPS_NONE);
	if (slot && *slot == OPS_NONE && ops_stack_function(ops_trace_string(costs->trace, stack), &function)) {
		*slot = line_costs_find(costs, &function);
		if (*slot == OPS_NONE)
			return false;
	}
	if (slot)
		costs->place[row] = *slot;
	return slot != NULL;
}

/* Rows come after their parents, and backward nodes after their forward operators. */
static bool line_costs_place_row(struct line_costs *costs, uint32_t row, const uint32_t *forward)
{
	const struct ops_events *e = costs->events;
	uint32_t parent = e->parent[row], function;

	costs->place[row] = costs->inside[row] = OPS_NONE;
	if (e->kind[row] == OPS_EVENT_PYTHON_FUNCTION) {
		if (!find_function(costs, row, &function))
			return false;
		if (costs->functions.items[function].file != OPS_NONE)
			costs->inside[row] = function;
	} else if (parent != OPS_NONE && e->kind[row] == OPS_EVENT_USER_ANNOTATION) {
		costs->inside[row] = costs->inside[parent];
	}
	if (forward[row] < OPS_ROW_PLAIN && costs->place[forward[row]] != OPS_NONE) {
		costs->place[row] = costs->place[forward[row]]; /* also on the thread that called backward() */
		return true;
	}
	if (!place_by_stack(costs, row))
		return false;
	if (costs->place[row] != OPS_NONE) {
		if (e->kind[row] == OPS_EVENT_USER_ANNOTATION)
			costs->inside[row] = costs->lines.items[costs->place[row]].function;
		return true;
	}
	if (parent != OPS_NONE && costs->inside[parent] != OPS_NONE)
		return place_call(costs, row, costs->inside[parent]);
	if (parent != OPS_NONE)
		costs->place[row] = costs->place[parent];
	return true;
}

/* --- sums ----------------------------------------------------------------------------------------------------------- */

/* Negative if events of a file overlap each other. Waits of helper threads are no self time of a line. */
static int64_t line_costs_self_of(const struct line_costs *costs, uint32_t row)
{
	if (ops_bit(costs->waits->rows, row))
		return 0;
	return costs->events->self_ns[row] > 0 ? costs->events->self_ns[row] : 0;
}

/* Adds the part of a row that was not counted before for the same key on its track: the complete row, or nothing if it
 * is nested. Rows are in order of their start, so the end of the last outermost one decides. Returns false if out of
 * memory. */
static bool count_outermost(struct line_costs *costs, uint32_t key, uint32_t row, int64_t *sum)
{
	const struct ops_events *e = costs->events;
	uint32_t *slot = ops_map_slot(&costs->open, (uint64_t)key << 32 | e->track[row], OPS_NONE);
	int64_t *end_ns;

	if (!slot)
		return false;
	if (*slot == OPS_NONE) {
		end_ns = OPS_ARRAY_PUSH(&costs->ends);
		if (!end_ns)
			return false;
		*slot = (uint32_t)(costs->ends.count - 1);
	} else {
		end_ns = &costs->ends.items[*slot];
		if (e->start_ns[row] < *end_ns)
			return true;
	}
	*end_ns = e->end_ns[row];
	*sum = ops_sum(*sum, ops_difference(e->end_ns[row], e->start_ns[row]));
	return true;
}

/* Keys of files follow those of all lines. */
static bool count_file(struct line_costs *costs, uint32_t file, uint32_t row)
{
	return count_outermost(costs, OPS_NONE - 1 - file, row, &costs->files.items[file].host_ns);
}

/* Counts a row that a line called itself. A backward node runs outside of the file's functions, so its time is also
 * added to the file here. */
static bool count_call(struct line_costs *costs, uint32_t row, uint32_t place, bool is_backward)
{
	const struct ops_events *e = costs->events;
	struct line_cost *line = &costs->lines.items[place];
	int64_t duration_ns = ops_difference(e->end_ns[row], e->start_ns[row]);

	/* The first line has the calls of the function. */
	line->calls += !is_backward && line->line != costs->functions.items[line->function].line;
	if (duration_ns > line->longest_ns) {
		line->longest_ns = duration_ns;
		line->longest = row;
	}
	return count_outermost(costs, place, row, &line->host_ns) && count_file(costs, line->file, row);
}

/* The first line of a function has its calls, and the self time of its code. */
static bool count_function(struct line_costs *costs, uint32_t row)
{
	uint32_t function = costs->inside[row];
	uint32_t place = find_line(costs, function, costs->functions.items[function].line);
	struct line_cost *line;

	if (place == OPS_NONE)
		return false;
	line = &costs->lines.items[place];
	line->calls++;
	line->self_ns = ops_sum(line->self_ns, line_costs_self_of(costs, row));
	line->host_ns = ops_sum(line->host_ns, line_costs_self_of(costs, row));
	if (line->longest == OPS_NONE)
		line->longest = row;
	return count_file(costs, line->file, row);
}

static bool count_row(struct line_costs *costs, uint32_t row, bool is_backward)
{
	const struct ops_events *e = costs->events;
	uint32_t place = costs->place[row], parent = e->parent[row];
	bool is_function = costs->inside[row] != OPS_NONE && e->kind[row] == OPS_EVENT_PYTHON_FUNCTION;
	struct line_cost *line = place == OPS_NONE ? NULL : &costs->lines.items[place];

	if (line && !is_function)
		line->self_ns = ops_sum(line->self_ns, line_costs_self_of(costs, row));
	if (line && !is_function && line_costs_is_open(e, row))
		line->open_ns = ops_sum(line->open_ns, line_costs_self_of(costs, row));
	if (line && !is_function && costs->inside[row] != OPS_NONE) {
		line->host_ns = ops_sum(line->host_ns,
		                        line_costs_self_of(costs, row)); /* calls inside a range were made by other lines */
		return true;
	}
	if (is_function && !count_function(costs, row))
		return false;
	if (!line)
		return true;
	/* Below another row of the line, it is part of that row's time. */
	if (parent == OPS_NONE || costs->inside[parent] != OPS_NONE || costs->place[parent] != place)
		return count_call(costs, row, place, is_backward);
	return true;
}

static bool line_costs_is_counted(const struct line_costs *costs, const struct ops_track *tracks, size_t row)
{
	const struct ops_events *e = costs->events;

	return ops_event_visible(e, row) && ops_event_nests(e, row) && tracks[e->track[row]].kind == OPS_TRACK_THREAD;
}

static bool line_costs_add_rows(struct line_costs *costs)
{
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(costs->trace, &count);
	const uint32_t *forward = ops_forward_rows(costs->trace);
	bool done = forward;

	for (size_t row = 0; done && row < costs->events->count; row++) {
		done = line_costs_place_row(costs, (uint32_t)row, forward);
		if (done && ops_bit(costs->waits->rows, row) && costs->events->self_ns[row] > 0)
			costs->waits_ns = ops_sum(costs->waits_ns, costs->events->self_ns[row]);
		if (done && line_costs_is_counted(costs, tracks, row))
			done = count_row(costs, (uint32_t)row, forward[row] != OPS_ROW_PLAIN);
	}
	return done;
}

static bool line_costs_add_device_work(struct line_costs *costs)
{
	const struct ops_events *e = costs->events;
	const uint32_t *origins = ops_origins(costs->trace);

	for (size_t row = 0; origins && row < e->count; row++) {
		uint32_t place = OPS_NONE;

		if (ops_kind_is_work(e->kind[row]) && origins[row] != OPS_NONE)
			place = costs->place[origins[row]];
		if (place != OPS_NONE)
			costs->lines.items[place].device_ns = ops_sum(costs->lines.items[place].device_ns,
			                                              ops_difference(e->end_ns[row], e->start_ns[row]));
	}
	return origins != NULL;
}

static bool line_costs_add_memory(struct line_costs *costs)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(costs->trace, &count);
	uint32_t *rows = ops_memory_events(costs->trace);

	for (size_t i = 0; rows && i < count; i++) {
		uint32_t place = rows[i] == OPS_NONE ? OPS_NONE : costs->place[rows[i]];

		if (place != OPS_NONE && records[i].bytes > 0 && !records[i].out_of_memory)
			costs->lines.items[place].allocated_bytes =
				ops_sum(costs->lines.items[place].allocated_bytes, records[i].bytes);
	}
	ops_free(rows);
	return rows != NULL;
}

static void add_up_files(struct line_costs *costs)
{
	for (size_t i = 0; i < costs->lines.count; i++) {
		const struct line_cost *line = &costs->lines.items[i];
		struct line_file *file = &costs->files.items[line->file];

		file->self_ns = ops_sum(file->self_ns, line->self_ns);
		file->device_ns = ops_sum(file->device_ns, line->device_ns);
		file->allocated_bytes = ops_sum(file->allocated_bytes, line->allocated_bytes);
	}
}

bool line_costs_init(struct line_costs *costs, const struct ops_trace *trace)
{
	*costs = (struct line_costs){.trace = trace, .events = ops_trace_events(trace)};
	costs->place = ops_realloc_array(NULL, costs->events->count + 1, sizeof(*costs->place));
	costs->inside = ops_realloc_array(NULL, costs->events->count + 1, sizeof(*costs->inside));
	costs->waits = ops_helper_waits_of(trace);
	if (!costs->place || !costs->inside || !costs->waits || !line_costs_add_rows(costs) || !line_costs_add_memory(costs) ||
	    !line_costs_add_device_work(costs) || !line_costs_add_samples(costs))
		return false;
	add_up_files(costs);
	return true;
}

void line_costs_release(struct line_costs *costs)
{
	ops_intern_release(&costs->names);
	OPS_ARRAY_RELEASE(&costs->files);
	OPS_ARRAY_RELEASE(&costs->functions);
	OPS_ARRAY_RELEASE(&costs->lines);
	OPS_ARRAY_RELEASE(&costs->ends);
	ops_map_release(&costs->function_of);
	ops_map_release(&costs->line_of);
	ops_map_release(&costs->place_of_stack);
	ops_map_release(&costs->open);
	ops_python_samples_release(&costs->samples);
	ops_free(costs->place);
	ops_free(costs->inside);
}
