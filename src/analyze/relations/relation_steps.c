/* SPDX-License-Identifier: Apache-2.0
 *
 * Relation `steps`: one row per step of the program, marked or derived.
 */
#include "analyze/relations/relation_list.h"

#define STEP (&rows->steps->list.items[row->at])

static void set_phase(const struct relation_rows *rows, const struct ops_step *step, enum ops_phase phase, struct result_cell *cell)
{
	int64_t ns[OPS_PHASE_COUNT] = {0};

	ops_phases_within(&rows->phases, (struct ops_interval){step->start_ns, step->end_ns}, ns);
	cell->integer = ns[phase];
}

RELATION_GETTER(get_step_number, cell->integer = STEP->number)
RELATION_GETTER(get_step_start, cell->integer = STEP->start_ns)
RELATION_GETTER(get_step_duration, cell->integer = STEP->end_ns - STEP->start_ns)
RELATION_GETTER(get_step_pid, relation_get_pid(rows, STEP->track, cell))
RELATION_GETTER(get_step_tid, relation_get_tid(rows, STEP->track, cell))
RELATION_GETTER(get_step_event, relation_set_id(cell, STEP->row))
RELATION_GETTER(get_step_from, cell->text = ops_string_of(ops_steps_source_name(rows->steps->source)))
RELATION_GETTER(get_step_kind, cell->text = ops_string_of(ops_iteration_kind_name((enum ops_iteration_kind)STEP->kind)))
RELATION_GETTER(get_step_data_loading, set_phase(rows, STEP, OPS_PHASE_DATA_LOADING, cell))
RELATION_GETTER(get_step_forward, set_phase(rows, STEP, OPS_PHASE_FORWARD, cell))
RELATION_GETTER(get_step_backward, set_phase(rows, STEP, OPS_PHASE_BACKWARD, cell))
RELATION_GETTER(get_step_optimizer, set_phase(rows, STEP, OPS_PHASE_OPTIMIZER, cell))
RELATION_GETTER(get_step_other, set_phase(rows, STEP, OPS_PHASE_OTHER, cell))

static const struct result_column columns[] = {
	{.name = "step", .type = RESULT_INTEGER, .get = get_step_number, .about = "number of the step"},
	{.name = "start_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_step_start, .about = "start, since the Unix epoch"},
	{.name = "dur_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_step_duration, .about = "duration on the host"},
	{.name = "pid", .type = RESULT_INTEGER, .nullable = true, .get = get_step_pid, .about = "process"},
	{.name = "tid", .type = RESULT_INTEGER, .nullable = true, .get = get_step_tid, .about = "thread"},
	{.name = "event_id", .type = RESULT_INTEGER, .nullable = true, .get = get_step_event,
	 .about = "id of the event that marks it; null for a derived step"},
	{.name = "steps_from", .type = RESULT_TEXT, .get = get_step_from, .about = "what the steps are taken from: marks, optimizer, batches, iterations or loop"},
	{.name = "kind", .type = RESULT_TEXT, .get = get_step_kind,
	 .about = "of an iteration of a server: prefill, decode, mixed, idle or unknown; empty for other steps"},
	{.name = "data_loading_ns", .type = RESULT_INTEGER, .unit = "ns", .option = RELATION_PHASES, .get = get_step_data_loading,
	 .about = "part in which the step waits for its batch"},
	{.name = "forward_ns", .type = RESULT_INTEGER, .unit = "ns", .option = RELATION_PHASES, .get = get_step_forward, .about = "part of the forward pass"},
	{.name = "backward_ns", .type = RESULT_INTEGER, .unit = "ns", .option = RELATION_PHASES, .get = get_step_backward, .about = "part of the backward pass"},
	{.name = "optimizer_ns", .type = RESULT_INTEGER, .unit = "ns", .option = RELATION_PHASES, .get = get_step_optimizer, .about = "part of the optimizer's step"},
	{.name = "other_ns", .type = RESULT_INTEGER, .unit = "ns", .option = RELATION_PHASES, .get = get_step_other, .about = "all other time of the step"},
};
const struct result_declaration relation_steps_declaration = RESULT_DECLARATION("steps", "a step of the program", columns);

bool relation_steps_open(struct relation_rows *rows)
{
	rows->steps = ops_steps_of(rows->trace);
	rows->count = rows->steps ? rows->steps->list.count : 0;
	return rows->steps;
}
