/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of threads; see thread_table.h.
 */
#include "analyze/time/thread_table.h"

#include <stdlib.h>

#include "analyze/tables.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/map.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/blocking.h"
#include "derive/program.h"
#include "derive/thread_states.h"

struct thread_row {
	int64_t tid, time_ns;
	struct ops_string name, waits_in;
	int64_t running_ns, ready_ns, gil_ns, lock_ns, queue_ns, thread_ns, io_ns, process_ns, sleeping_ns, waiting_ns;
};

#define STATE_COLUMN(name_, title_, about_, member) \
	{.name = name_, .type = RESULT_TIME, .title = title_, .about = about_, RESULT_FIELD(struct thread_row, member)}

static const struct result_column thread_columns[] = {
	{.name = "thread", .type = RESULT_INTEGER, .title = "Thread", .about = "Number of the thread on Linux",
	 RESULT_FIELD(struct thread_row, tid)},
	{.name = "name", .type = RESULT_TEXT, .priority = RESULT_MAJOR, .title = "Name", .nullable = true,
	 .about = "Name of the thread; null: it has no events", RESULT_FIELD(struct thread_row, name)},
	{.name = "time_us", .type = RESULT_TIME, .title = "Time", .about = "Time in which it was sampled",
	 RESULT_FIELD(struct thread_row, time_ns)},
	STATE_COLUMN("running_us", "Running", "On a CPU", running_ns),
	STATE_COLUMN("ready_us", "Ready", "Ready to run, but other threads had the CPUs", ready_ns),
	STATE_COLUMN("gil_us", "GIL", "Waited for the global interpreter lock of Python", gil_ns),
	STATE_COLUMN("lock_us", "Lock", "Waited for a lock; of a thread without events also for work", lock_ns),
	STATE_COLUMN("queue_us", "Queue", "Waited for a queue", queue_ns),
	STATE_COLUMN("thread_us", "Threads", "Waited for another thread: an event, a condition, a future or its end", thread_ns),
	STATE_COLUMN("io_us", "I/O", "Waited for a file, a pipe or the network", io_ns),
	STATE_COLUMN("process_us", "Process", "Waited for a process to end", process_ns),
	STATE_COLUMN("sleeping_us", "Sleeping", "Waited for a time", sleeping_ns),
	STATE_COLUMN("waiting_us", "Unknown", "Waited between two samples", waiting_ns),
	{.name = "waits_in", .type = RESULT_TEXT, .title = "Waits in", .nullable = true,
	 .about = "Function of the program in which it waited longest", RESULT_FIELD(struct thread_row, waits_in)},
};
const struct result_declaration table_threads =
	RESULT_DECLARATION("threads", "A thread: how long it ran and what it waited for", thread_columns);

struct thread_tables {
	const struct ops_trace *trace;
	const struct ops_events *events;
	uint8_t *blocking;        /* by string: enum ops_blocking */
	struct thread_row *rows;  /* by sampled thread */
	struct ops_map wait_of;   /* by thread and function name: index of its time */
	OPS_ARRAY(int64_t) waits;
	int64_t *longest;         /* by thread */
};

/* Finds what a wait for a lock waits for, by the calls around it. */
static int64_t *lock_of(const struct thread_tables *tables, const struct ops_thread_part *part)
{
	struct thread_row *row = &tables->rows[part->thread];

	for (uint32_t at = part->row; at != OPS_NONE; at = tables->events->parent[at]) {
		enum ops_blocking kind = tables->blocking[tables->events->name[at]];

		if (kind == OPS_BLOCKING_QUEUE)
			return &row->queue_ns;
		if (kind == OPS_BLOCKING_THREAD)
			return &row->thread_ns;
	}
	return &row->lock_ns;
}

static int64_t *thread_table_time_of(const struct thread_tables *tables, const struct ops_thread_part *part)
{
	struct thread_row *row = &tables->rows[part->thread];

	switch (part->state) {
	case OPS_THREAD_RUNNING: return &row->running_ns;
	case OPS_THREAD_READY: return &row->ready_ns;
	case OPS_THREAD_GIL: return &row->gil_ns;
	case OPS_THREAD_LOCK: return lock_of(tables, part);
	case OPS_THREAD_IO: return &row->io_ns;
	case OPS_THREAD_PROCESS: return &row->process_ns;
	case OPS_THREAD_SLEEPING: return &row->sleeping_ns;
	case OPS_THREAD_WAITING:
	case OPS_THREAD_STATES: break;
	}
	return &row->waiting_ns;
}

static bool add_wait(struct thread_tables *tables, const struct ops_thread_part *part)
{
	struct ops_function_text function;
	uint32_t row = part->row, *index;

	while (row != OPS_NONE && (!ops_event_function(tables->trace, row, &function) || !function.file.size ||
	                           ops_file_is_library(function.file)))
		row = tables->events->parent[row];
	if (row == OPS_NONE)
		return true;
	index = ops_map_slot(&tables->wait_of, (uint64_t)part->thread << 32 | tables->events->name[row],
	                     (uint32_t)tables->waits.count);
	if (!index || (*index == tables->waits.count && !OPS_ARRAY_APPEND(&tables->waits, 0)))
		return false;
	tables->waits.items[*index] = ops_sum(tables->waits.items[*index], part->end_ns - part->start_ns);
	if (tables->waits.items[*index] > tables->longest[part->thread]) {
		tables->longest[part->thread] = tables->waits.items[*index];
		tables->rows[part->thread].waits_in = ops_trace_string(tables->trace, tables->events->name[row]);
	}
	return true;
}

static bool thread_table_add_part(void *context, const struct ops_thread_part *part)
{
	struct thread_tables *tables = context;
	int64_t *time_ns = thread_table_time_of(tables, part);
	size_t count;

	*time_ns = ops_sum(*time_ns, part->end_ns - part->start_ns);
	tables->rows[part->thread].name =
		ops_trace_string(tables->trace, ops_trace_tracks(tables->trace, &count)[part->track].name);
	return part->state <= OPS_THREAD_READY || add_wait(tables, part);
}

/* Adds threads without events, which have no part of any row. */
static void add_silent(struct thread_tables *tables, const struct ops_thread_states *states)
{
	for (uint32_t i = 0; i < states->threads.count; i++) {
		const struct ops_thread_samples *thread = &states->threads.items[i];
		struct thread_row *row = &tables->rows[i];
		bool silent = !row->name.bytes;

		row->tid = thread->tid;
		for (size_t n = 0; n < thread->spans.count; n++) {
			const struct ops_thread_span *span = &thread->spans.items[n];
			struct ops_thread_part part = {span->start_ns, span->end_ns, span->state, i, 0, OPS_NONE, OPS_NONE, OPS_NONE};
			int64_t *time_ns = thread_table_time_of(tables, &part);

			row->time_ns = ops_sum(row->time_ns, span->end_ns - span->start_ns);
			if (silent)
				*time_ns = ops_sum(*time_ns, span->end_ns - span->start_ns);
		}
	}
}

OPS_ORDER(thread_table_compare, struct thread_row,
          OPS_ORDER_BY(right->time_ns - right->lock_ns, left->time_ns - left->lock_ns) OPS_UP(tid))

static bool thread_table_sum(struct thread_tables *tables, const struct ops_thread_states *states)
{
	tables->blocking = ops_blocking_names(tables->trace);
	tables->rows = ops_alloc_zeroed(states->threads.count + 1, sizeof(*tables->rows));
	tables->longest = ops_alloc_zeroed(states->threads.count + 1, sizeof(*tables->longest));
	if (!tables->blocking || !tables->rows || !tables->longest ||
	    !ops_thread_states_walk(states, tables->trace, thread_table_add_part, tables))
		return false;
	add_silent(tables, states);
	if (states->threads.count)
		qsort(tables->rows, states->threads.count, sizeof(*tables->rows), thread_table_compare);
	return true;
}

enum ops_code threads_fill(const struct run_rows *rows, const struct ops_trace *trace, const void *context,
                           struct ops_error *error)
{
	struct thread_tables tables = {.trace = trace, .events = ops_trace_events(trace)};
	struct ops_thread_states states;
	bool done = ops_thread_states_read(&states, trace) && thread_table_sum(&tables, &states);

	(void)context;
	for (size_t i = 0; done && i < states.threads.count && i < rows->limit; i++)
		run_rows_add(rows, &tables.rows[i]);
	ops_map_release(&tables.wait_of);
	OPS_ARRAY_RELEASE(&tables.waits);
	ops_free(tables.blocking);
	ops_free(tables.rows);
	ops_free(tables.longest);
	ops_thread_states_release(&states);
	return done ? OPS_OK : ops_fault_memory(error);
}
