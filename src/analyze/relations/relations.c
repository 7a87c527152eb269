/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of relations, and the functions that their columns share.
 */
#include "analyze/relations/relations.h"

#include <string.h>

#include <opstrobe/internal/advice.h>

#include "analyze/relations/relation_list.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/json_value.h"
#include "derive/captures.h"
#include "derive/launches.h"
#include "derive/messages.h"
#include "derive/places.h"

#define LISTED(name) {&relation_##name##_declaration, relation_##name##_open},
const struct relation relations[] = {RELATIONS(LISTED)};
#undef LISTED
const size_t relation_count = sizeof(relations) / sizeof(relations[0]);

const struct relation *relation_find(const char *name)
{
	for (size_t i = 0; i < relation_count; i++)
		if (!strcmp(relations[i].declaration->id, name))
			return &relations[i];
	return NULL;
}

/* --- steps ---------------------------------------------------------------------------------------------------------- */

/* By track: the process whose steps contain its rows; OPS_NONE: none. By process: its current step while rows are
 * visited in order of time. */
struct process_steps {
	uint32_t *process_of;
	uint32_t *step;
	size_t count;
};

static bool find_step_processes(const struct relation_rows *rows, struct process_steps *processes)
{
	struct ops_intern pids = {0};
	size_t tracks;
	bool done = true;

	ops_trace_tracks(rows->trace, &tracks);
	for (size_t i = 0; done && i < rows->steps->list.count; i++) {
		int64_t pid = rows->tracks[rows->steps->list.items[i].track].pid;

		done = ops_intern_add(&pids, &pid, sizeof(pid)) != OPS_INTERN_NONE;
	}
	processes->count = pids.count;
	processes->process_of = ops_realloc_array(NULL, tracks + 1, sizeof(*processes->process_of));
	processes->step = ops_alloc_none(pids.count + 1);
	done = done && processes->process_of && processes->step;
	for (size_t i = 0; done && i < tracks; i++) {
		/* Devices belong to no process. Their work counts for the only process, unless its launch says
		 * otherwise. */
		if (rows->tracks[i].kind == OPS_TRACK_STREAM)
			processes->process_of[i] = pids.count == 1 ? 0 : OPS_NONE;
		else
			processes->process_of[i] = ops_intern_find(&pids, &rows->tracks[i].pid, sizeof(rows->tracks[i].pid));
	}
	ops_intern_release(&pids);
	return done;
}

/* Rows belong to the step of their process in which they start. */
static void find_steps_by_time(struct relation_rows *rows, struct process_steps *processes)
{
	const struct ops_step *steps = rows->steps->list.items;
	size_t next = 0;

	for (size_t row = 0; row < rows->events->count; row++) {
		uint32_t process = processes->process_of[rows->events->track[row]], step;
		int64_t start_ns = rows->events->start_ns[row];

		for (; next < rows->steps->list.count && steps[next].start_ns <= start_ns; next++)
			processes->step[processes->process_of[steps[next].track]] = (uint32_t)next;
		step = process == OPS_NONE ? OPS_NONE : processes->step[process];
		rows->step_of[row] = step == OPS_NONE || start_ns >= steps[step].end_ns ? OPS_NONE : step;
	}
}

static bool find_steps(struct relation_rows *rows)
{
	struct process_steps processes = {0};
	int64_t *first_launched = ops_first_launched(rows->trace, rows->launchers);
	bool done;

	rows->steps = ops_steps_of(rows->trace);
	rows->step_of = ops_realloc_array(NULL, rows->events->count + 1, sizeof(*rows->step_of));
	done = first_launched && rows->steps && rows->step_of && find_step_processes(rows, &processes);
	if (done)
		find_steps_by_time(rows, &processes);
	/* Work belongs to the step that launched it, even if it runs later. */
	for (size_t row = 0; done && row < rows->events->count; row++) {
		if (ops_row_is_launched(rows->events, row) && rows->launchers[row] != OPS_NONE)
			rows->step_of[row] = rows->step_of[rows->launchers[row]];
		else if (ops_was_queued_before(rows->events, rows->launchers, first_launched, row))
			rows->step_of[row] = OPS_NONE;
	}
	ops_free(first_launched);
	ops_free(processes.process_of);
	ops_free(processes.step);
	return done;
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

bool relation_open(struct relation_rows *rows, const struct relation *relation, const struct ops_trace *trace, unsigned needs)
{
	size_t tracks;

	*rows = (struct relation_rows){.relation = relation, .trace = trace, .events = ops_trace_events(trace),
	                               .tracks = ops_trace_tracks(trace, &tracks), .line_row = OPS_NONE};
	if (!ops_places_init(&rows->places, trace) || !relation->open(rows))
		return false;
	if (needs & RELATION_LAUNCHERS) {
		rows->launchers = ops_launchers(trace);
		rows->origins = ops_origins(trace);
		if (!rows->launchers || !rows->origins)
			return false;
	}
	if ((needs & RELATION_STEPS) == RELATION_STEPS && !find_steps(rows))
		return false;
	return !(needs & RELATION_PHASES) || ops_phases_find(&rows->phases, trace, rows->steps);
}

void relation_close(struct relation_rows *rows)
{
	ops_free(rows->step_of);
	ops_free(rows->selected);
	ops_free(rows->class_of);
	ops_module_tree_free(rows->module_tree);
	line_costs_release(&rows->lines);
	ops_adviser_free(rows->adviser);
	ops_phases_release(&rows->phases);
	ops_buffer_release(&rows->scratch);
}

bool relation_select(struct relation_rows *rows, bool (*selects)(const struct relation_rows *rows, uint32_t event))
{
	const size_t events = rows->events->count;

	for (size_t row = 0; row < events; row++)
		rows->count += selects(rows, (uint32_t)row);
	rows->selected = ops_realloc_array(NULL, rows->count + 1, sizeof(*rows->selected));
	if (!rows->selected)
		return false;
	rows->count = 0;
	for (size_t row = 0; row < events; row++)
		if (selects(rows, (uint32_t)row))
			rows->selected[rows->count++] = (uint32_t)row;
	return true;
}

/* --- classes of device work ----------------------------------------------------------------------------------------- */

bool relation_classify(struct relation_rows *rows)
{
	rows->class_of = ops_alloc_zeroed(ops_trace_string_count(rows->trace) + 1, sizeof(*rows->class_of));
	return rows->class_of != NULL;
}

enum ops_work relation_work(const struct relation_rows *rows, uint32_t event)
{
	uint8_t kind = rows->events->kind[event];
	uint32_t name = rows->events->name[event];
	struct relation_class *known = &rows->class_of[name];

	if (kind != OPS_EVENT_KERNEL)
		return ops_work_of(kind, ops_trace_string(rows->trace, name));
	if (!known->work)
		known->work = (uint8_t)(1 + ops_work_of(kind, ops_trace_string(rows->trace, name)));
	return (enum ops_work)(known->work - 1);
}

enum ops_category relation_category(const struct relation_rows *rows, uint32_t event)
{
	uint8_t kind = rows->events->kind[event];
	uint32_t name = rows->events->name[event];
	struct relation_class *known = &rows->class_of[name];

	if (kind != OPS_EVENT_KERNEL)
		return ops_category_of(kind, ops_trace_string(rows->trace, name));
	if (!known->category)
		known->category = (uint8_t)(1 + ops_category_of(kind, ops_trace_string(rows->trace, name)));
	return (enum ops_category)(known->category - 1);
}

/* --- cells ---------------------------------------------------------------------------------------------------------- */

void relation_get_step(const struct relation_rows *rows, uint32_t row, struct result_cell *cell)
{
	uint32_t step = row == OPS_NONE ? OPS_NONE : rows->step_of[row];

	if (step == OPS_NONE)
		cell->is_null = true;
	else
		cell->integer = rows->steps->list.items[step].number;
}

void relation_set_scratch(struct relation_rows *rows, struct result_cell *cell)
{
	cell->text = ops_buffer_text(&rows->scratch) ? (struct ops_string){ops_buffer_text(&rows->scratch), rows->scratch.size}
	                                             : (struct ops_string){0};
	cell->is_null = !cell->text.size;
}

void relation_set_json_text(struct relation_rows *rows, struct ops_string json, struct result_cell *cell)
{
	rows->scratch.size = 0;
	ops_json_decode_value(&rows->scratch, json);
	relation_set_scratch(rows, cell);
}

void relation_get_duration(const struct relation_rows *rows, uint32_t row, struct result_cell *cell)
{
	cell->integer = rows->events->end_ns[row] - rows->events->start_ns[row];
}

void relation_get_module(const struct relation_rows *rows, uint32_t row, struct result_cell *cell)
{
	struct ops_string path = {0};

	if (row != OPS_NONE && ops_row_is_launched(rows->events, row))
		row = rows->origins[row];
	if (row != OPS_NONE)
		path = ops_place_module(&rows->places, row);
	relation_set_text(cell, path);
}

/* Getters visit the columns of a row one after another, so the program's line is found once for both. */
static void relation_find_line(struct relation_rows *rows, uint32_t row)
{
	if (rows->line_row == row)
		return;
	rows->line_row = row;
	rows->line = 0;
	rows->line_file = row == OPS_NONE ? (struct ops_string){0} : ops_place_line(&rows->places, row, &rows->line);
}

void relation_get_file(struct relation_rows *rows, uint32_t row, struct result_cell *cell)
{
	relation_find_line(rows, row);
	relation_set_text(cell, rows->line_file);
}

void relation_get_line(struct relation_rows *rows, uint32_t row, struct result_cell *cell)
{
	relation_find_line(rows, row);
	cell->integer = rows->line;
	cell->is_null = !rows->line;
}

void relation_get_message(const struct relation_rows *rows, uint32_t row, struct result_cell *cell)
{
	cell->integer = ops_message_bytes(rows->trace, row);
	cell->is_null = !cell->integer;
}

void relation_get_pid(const struct relation_rows *rows, uint32_t track, struct result_cell *cell)
{
	cell->is_null = track == OPS_NONE || rows->tracks[track].flags & OPS_TRACK_PID_TEXT;
	cell->integer = cell->is_null ? 0 : rows->tracks[track].pid;
}

void relation_get_tid(const struct relation_rows *rows, uint32_t track, struct result_cell *cell)
{
	cell->is_null = track == OPS_NONE || rows->tracks[track].flags & OPS_TRACK_TID_TEXT;
	cell->integer = cell->is_null ? 0 : rows->tracks[track].tid;
}
