/* SPDX-License-Identifier: Apache-2.0
 *
 * Relations `processes` and `ranks`: who recorded the trace, and for what job.
 */
#include <string.h>

#include "analyze/ranks/trace_job.h"
#include "analyze/relations/relation_list.h"
#include "base/sum.h"

/* --- processes ------------------------------------------------------------------------------------------------------ */

#define PROCESS (&ops_trace_processes(rows->trace, &(size_t){0})[row->at])

static void set_string(const struct relation_rows *rows, uint32_t id, struct result_cell *cell)
{
	relation_set_text(cell, id == OPS_NONE ? (struct ops_string){0} : ops_trace_string(rows->trace, id));
}

static void set_process_pid(const struct ops_process *process, struct result_cell *cell)
{
	cell->is_null = process->flags & OPS_TRACK_PID_TEXT;
	cell->integer = cell->is_null ? 0 : process->pid;
}

RELATION_GETTER(get_process_pid, set_process_pid(PROCESS, cell))
RELATION_GETTER(get_process_name, set_string(rows, PROCESS->name, cell))
RELATION_GETTER(get_process_labels, set_string(rows, PROCESS->labels, cell))

static const struct result_column process_columns[] = {
	{.name = "pid", .type = RESULT_INTEGER, .nullable = true, .get = get_process_pid, .about = "process; the number of the device for one"},
	{.name = "name", .type = RESULT_TEXT, .nullable = true, .get = get_process_name, .about = "name"},
	{.name = "labels", .type = RESULT_TEXT, .nullable = true, .get = get_process_labels, .about = "what the trace says of it: CPU, GPU 0, …"},
};
const struct result_declaration relation_processes_declaration =
	RESULT_DECLARATION("processes", "a process or device of the trace", process_columns);

bool relation_processes_open(struct relation_rows *rows)
{
	ops_trace_processes(rows->trace, &rows->count);
	return true;
}

/* --- ranks ---------------------------------------------------------------------------------------------------------- */

static struct ops_trace_job job_of(const struct relation_rows *rows)
{
	struct ops_trace_job job;

	trace_job_read(rows->trace, NULL, &job);
	return job;
}

static void set_world_size(const struct relation_rows *rows, struct result_cell *cell)
{
	cell->integer = job_of(rows).world_size;
	cell->is_null = cell->integer < 0;
}

static void set_job(struct relation_rows *rows, struct result_cell *cell)
{
	struct ops_string json = {0};

	ops_trace_find_metadata(rows->trace, "job", &json);
	relation_set_json_text(rows, json, cell);
}

/* Sets a cell to a text in an object of the metadata; null if there is none. */
static void set_member(struct relation_rows *rows, const char *key, const char *name, struct result_cell *cell)
{
	struct ops_string json = {0};

	trace_find_member(rows->trace, key, name, &json);
	relation_set_json_text(rows, json, cell);
}

RELATION_GETTER(get_rank_world, set_world_size(rows, cell))
RELATION_GETTER(get_rank_job, set_job(rows, cell))
RELATION_GETTER(get_rank_backend, set_member(rows, "distributedInfo", "backend", cell))
RELATION_GETTER(get_rank_host, relation_set_text(cell, ops_string_of(ops_trace_info(rows->trace)->host_name)))
RELATION_GETTER(get_rank_command, set_member(rows, "recording", "command", cell))
RELATION_GETTER(get_rank_start, cell->integer = job_of(rows).start_ns)
RELATION_GETTER(get_rank_duration, struct ops_trace_job job = job_of(rows); cell->integer = job.end_ns - job.start_ns)
RELATION_GETTER(get_rank_events, cell->integer = (int64_t)rows->events->count)
RELATION_GETTER(get_rank_lost, cell->integer = ops_clamped(ops_trace_info(rows->trace)->lost))
RELATION_GETTER(get_rank_complete, cell->integer = ops_trace_is_complete(rows->trace))

static const struct result_column rank_columns[] = {
	{.name = "world_size", .type = RESULT_COUNT, .nullable = true, .get = get_rank_world, .about = "number of ranks of the job"},
	{.name = "job_id", .type = RESULT_TEXT, .nullable = true, .get = get_rank_job,
	 .about = "what started the job calls it: torchrun's run id, or Slurm's job and step"},
	{.name = "backend", .type = RESULT_TEXT, .nullable = true, .get = get_rank_backend, .about = "backend of torch.distributed: nccl, gloo, …"},
	{.name = "host", .type = RESULT_TEXT, .nullable = true, .get = get_rank_host, .about = "name of the machine"},
	{.name = "command", .type = RESULT_TEXT, .nullable = true, .get = get_rank_command, .about = "command line of the program"},
	{.name = "start_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_rank_start, .about = "start of the recording, since the Unix epoch"},
	{.name = "dur_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_rank_duration, .about = "its duration"},
	{.name = "events", .type = RESULT_COUNT, .get = get_rank_events, .about = "number of its events"},
	{.name = "lost", .type = RESULT_COUNT, .get = get_rank_lost, .about = "number of records that were lost"},
	{.name = "complete", .type = RESULT_FLAG, .get = get_rank_complete, .about = "whether no record was lost and the file does not end early"},
};
const struct result_declaration relation_ranks_declaration =
	RESULT_DECLARATION("ranks", "the recording of a rank; the only row of its trace", rank_columns);

bool relation_ranks_open(struct relation_rows *rows)
{
	rows->count = 1;
	return true;
}
