/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of the tables as they are, behind the filters (23): HTA's data frame, for those who go on by themselves.
 */
#include "analyze/events/event_list.h"

#include "analyze/analysis.h"
#include "base/alloc.h"

void event_list_columns(struct result_table *out)
{
	RESULT_COLUMNS(out, RESULT_COLUMN("rank", INTEGER), RESULT_COLUMN("index", INTEGER), RESULT_COLUMN("ts", TIME), RESULT_COLUMN("dur", TIME),
	               RESULT_COLUMN("name", TEXT), RESULT_COLUMN("cat", TEXT), RESULT_COLUMN("pid", INTEGER), RESULT_COLUMN("tid", INTEGER),
	               RESULT_COLUMN("stream", INTEGER), RESULT_COLUMN("correlation", INTEGER), RESULT_COLUMN("index_correlation", INTEGER),
	               RESULT_COLUMN("iteration", INTEGER));
}

/* Texts in the place of numbers are none. */
static void put_number(struct result_table *out, int64_t number, bool is_text)
{
	if (is_text)
		result_null(out);
	else
		result_integer(out, number);
}

void event_list_put(struct result_table *out, const struct event_set *set, const struct event_table *table,
                    const struct event_row *row)
{
	size_t count;
	const struct ops_track *track = &ops_trace_tracks(table->trace, &count)[row->track];

	result_integer(out, table->rank);
	result_integer(out, row->index);
	result_time(out, row->ts_ns - set->first_ns);
	result_time(out, row->dur_ns);
	result_text(out, event_name(table, row));
	result_text(out, ops_event_category(table->trace, row->source));
	put_number(out, track->pid, track->flags & OPS_TRACK_PID_TEXT);
	put_number(out, track->tid, track->flags & OPS_TRACK_TID_TEXT);
	result_integer(out, row->stream);
	result_integer(out, row->correlation);
	result_integer(out, row->partner == OPS_NONE ? -1 : (int64_t)table->rows[row->partner].index);
	result_integer(out, row->step);
}

enum ops_code analysis_events(struct analysis_run *run)
{
	size_t *ranks, count;
	enum ops_code code = analysis_ranks(run, &ranks, &count);

	if (code)
		return code;
	event_list_columns(&run->result.table);
	for (size_t i = 0; !code && i < count; i++) {
		const struct event_table *table = analysis_table(run, ranks[i]);

		for (size_t row = 0; table && row < table->kept_count; row++)
			event_list_put(&run->result.table, &run->events, table, &table->rows[table->kept[row]]);
		code = table ? OPS_OK : analysis_failed(run);
	}
	ops_free(ranks);
	return code;
}
