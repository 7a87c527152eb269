/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the tables after the filters: HTA's data frame, for further analysis by the user.
 */
#include "analyze/events/event_list.h"

#include "analyze/analysis.h"
#include "base/alloc.h"

struct listed_event {
	int64_t rank, ts_ns, dur_ns, pid, tid, stream, correlation, partner, step;
	uint32_t index;
	struct ops_string name, category, annotation;
};

/* A process or thread whose id is a text has no number. */
static const struct result_column event_columns[] = {
	RANK_COLUMN(struct listed_event),
	INDEX_COLUMN(struct listed_event),
	TIME_COLUMN(struct listed_event),
	{.name = "dur", .type = RESULT_TIME, .title = "Duration", .about = "Duration of the event",
	 RESULT_FIELD(struct listed_event, dur_ns)},
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the event", RESULT_FIELD(struct listed_event, name)},
	{.name = "cat", .type = RESULT_TEXT, .title = "Kind", .about = "Kind of the event",
	 RESULT_FIELD(struct listed_event, category)},
	{.name = "pid", .type = RESULT_INTEGER, .title = "Process", .about = "Process of the event; null: not a number",
	 RESULT_FIELD(struct listed_event, pid)},
	{.name = "tid", .type = RESULT_INTEGER, .title = "Thread", .about = "Thread of the event; null: not a number",
	 RESULT_FIELD(struct listed_event, tid)},
	{.name = "stream", .type = RESULT_INTEGER, .title = "Stream", .about = "Stream of device work; -1: none",
	 RESULT_FIELD(struct listed_event, stream)},
	{.name = "correlation", .type = RESULT_INTEGER, .title = "Correlation",
	 .about = "Number that a launch call and its device work share; -1: none", RESULT_FIELD(struct listed_event, correlation)},
	{.name = "index_correlation", .type = RESULT_INTEGER, .title = "Partner",
	 .about = "Index of the device work of a launch call, or of the call of device work; -1: none",
	 RESULT_FIELD(struct listed_event, partner)},
	{.name = "iteration", .type = RESULT_INTEGER, .title = "Step", .about = "Number of the step; -1: none",
	 RESULT_FIELD(struct listed_event, step)},
	{.name = "user_annotation", .type = RESULT_TEXT, .title = "Annotation", .option = EVENT_LIST_ANNOTATED,
	 .about = "Shortest annotation of the device that it runs under; empty: none",
	 .when = "in gpu_kernels_with_user_annotations with the option kernels", RESULT_FIELD(struct listed_event, annotation)},
};
const struct result_declaration table_events = RESULT_DECLARATION("events", "An event", event_columns);

void event_list_put(struct result_table *out, const struct event_set *set, const struct event_table *table,
                    const struct event_row *row, struct ops_string annotation)
{
	size_t count;
	const struct ops_track *track = &ops_trace_tracks(table->trace, &count)[row->track];

	result_add(out, &(struct listed_event){
		.rank = table->rank,
		.index = row->index,
		.ts_ns = row->ts_ns - set->first_ns,
		.dur_ns = row->dur_ns,
		.name = event_name(table, row),
		.category = ops_event_category(table->trace, row->source),
		.pid = track->flags & OPS_TRACK_PID_TEXT ? RESULT_NULL : track->pid,
		.tid = track->flags & OPS_TRACK_TID_TEXT ? RESULT_NULL : track->tid,
		.stream = row->stream,
		.correlation = row->correlation,
		.partner = row->partner == OPS_NONE ? -1 : (int64_t)table->rows[row->partner].index,
		.step = row->step,
		.annotation = annotation,
	});
}

static bool event_list_write_rank(struct analysis_run *run, const struct event_table *table, const void *context)
{
	(void)context;
	for (size_t i = 0; i < table->kept_count; i++)
		event_list_put(&run->result.table, &run->events, table, &table->rows[table->kept[i]], (struct ops_string){0});
	return true;
}

enum ops_code analysis_events(struct analysis_run *run)
{
	result_declare(&run->result.table, &table_events, 0);
	return analysis_each_rank(run, event_list_write_rank, NULL);
}
