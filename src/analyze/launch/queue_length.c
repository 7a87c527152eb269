/* SPDX-License-Identifier: Apache-2.0
 *
 * Queue lengths: statistics, the series over time, and how long queues were full.
 */
#include "analyze/launch/launches.h"

#include "base/alloc.h"

/* Writes the queues of a rank; ranks without launches are skipped. */
struct queue_writer {
	bool (*write)(struct analysis_run *run, const struct event_table *table, const struct queues *queues, int64_t parameter);
	int64_t parameter;
};

static bool queue_length_write_rank(struct analysis_run *run, const struct event_table *table, const void *context)
{
	const struct queue_writer *writer = context;
	struct queues queues = {0};
	bool done = queues_build(&queues, table);

	if (done && queues.points.count)
		done = writer->write(run, table, &queues, writer->parameter);
	queues_release(&queues);
	return done;
}

/* --- summary ------------------------------------------------------------------------------------------------------ */

struct summary_row {
	int64_t rank, stream, device;
	struct description described;
};

static const struct result_column summary_columns[] = {
	RANK_COLUMN(struct summary_row),
	STREAM_COLUMN(struct summary_row),
	DESCRIPTION_COLUMNS(struct summary_row, "queue_length_", NULL, "queue length", "Number of changes of the queue length"),
	DEVICE_COLUMN(struct summary_row),
};
const struct result_declaration table_queue_summary =
	RESULT_DECLARATION("queue_length_summary", "A stream", summary_columns);

static bool queue_length_write_summary(struct analysis_run *run, const struct event_table *table, const struct queues *queues,
                                       int64_t parameter)
{
	size_t count = queues->queues.count;
	struct numbers *lengths = ops_alloc_zeroed(count + 1, sizeof(*lengths));
	bool done = lengths;

	(void)parameter;
	for (size_t i = 0; done && i < queues->points.count; i++)
		done = numbers_push(&lengths[queues->points.items[i].queue], (double)queues->points.items[i].length);
	for (size_t i = 0; lengths && i < count; i++) {
		const struct queue *queue = &queues->queues.items[i];

		result_add(&run->result.table, &(struct summary_row){table->rank, queue->stream, queue->device, describe(&lengths[i])});
		numbers_release(&lengths[i]);
	}
	ops_free(lengths);
	return done;
}

enum ops_code analysis_queue_summary(struct analysis_run *run)
{
	result_declare(&run->result.table, &table_queue_summary, 0);
	return analysis_each_rank(run, queue_length_write_rank, &(struct queue_writer){queue_length_write_summary, 0});
}

/* --- over time ---------------------------------------------------------------------------------------------------- */

struct point_row {
	uint32_t index;
	int64_t ts_ns, device, stream, length;
};

/* Device work has its stream as thread id. */
static const struct result_column point_columns[] = {
	INDEX_COLUMN(struct point_row),
	TIME_COLUMN(struct point_row),
	{.name = "pid", .type = RESULT_INTEGER, .title = "Process", .about = "Process in the trace file: the device",
	 RESULT_FIELD(struct point_row, device)},
	{.name = "tid", .type = RESULT_INTEGER, .title = "Thread", .about = "Thread in the trace file: the stream",
	 RESULT_FIELD(struct point_row, stream)},
	STREAM_COLUMN(struct point_row),
	{.name = "queue_length", .type = RESULT_INTEGER, .title = "Queue length", .about = "Length from this time on",
	 RESULT_FIELD(struct point_row, length)},
};
const struct result_declaration table_queue_points =
	RESULT_DECLARATION("queue_length_time_series.series", "A change of a queue's length", point_columns);

static bool queue_length_write_points(struct analysis_run *run, const struct event_table *table, const struct queues *queues)
{
	struct result_table series = {.rounded = run->result.table.rounded};

	result_declare(&series, &table_queue_points, 0);
	for (size_t i = 0; i < queues->points.count; i++) {
		const struct queue_point *point = &queues->points.items[i];
		const struct queue *queue = &queues->queues.items[point->queue];

		result_add(&series, &(struct point_row){table->rows[point->row].index, point->ts_ns - run->events.first_ns,
		                                        queue->device, queue->stream, point->length});
	}
	ops_json_key(&run->result.json, "series");
	result_put_table(&run->result, &series);
	return !run->result.value.failed;
}

/* Writes the last queue length of each stream. If two devices have the same stream number, the last one counts. */
static bool write_final(struct ops_json_writer *json, const struct queues *queues)
{
	int64_t *last = ops_alloc_zeroed(queues->queues.count + 1, sizeof(*last));

	if (!last)
		return false;
	for (size_t i = 0; i < queues->points.count; i++)
		last[queues->points.items[i].queue] = queues->points.items[i].length;
	ops_json_member_open(json, "final_by_stream", '{');
	for (size_t i = 0; i < queues->queues.count; i++) {
		if (i + 1 < queues->queues.count && queues->queues.items[i + 1].stream == queues->queues.items[i].stream)
			continue;
		analysis_rank_key(json, queues->queues.items[i].stream);
		ops_json_integer(json, last[i]);
	}
	ops_json_close(json, '}');
	ops_free(last);
	return true;
}

static bool queue_length_write_series(struct analysis_run *run, const struct event_table *table, const struct queues *queues,
                                      int64_t with_points)
{
	struct ops_json_writer *json = &run->result.json;
	int64_t most = 0, negative = 0;
	bool done;

	for (size_t i = 0; i < queues->points.count; i++) {
		most = queues->points.items[i].length > most ? queues->points.items[i].length : most;
		negative += queues->points.items[i].length < 0;
	}
	analysis_rank_key(json, table->rank);
	ops_json_open(json, '{');
	ops_json_member(json, "points", (int64_t)queues->points.count);
	ops_json_member(json, "max", most);
	ops_json_member(json, "negative_points", negative);
	done = write_final(json, queues) && (!with_points || queue_length_write_points(run, table, queues));
	ops_json_close(json, '}');
	return done;
}

enum ops_code analysis_queue_series(struct analysis_run *run)
{
	bool series = analysis_bool(run, "series");
	enum ops_code code = run->code;

	if (code)
		return code;
	ops_json_open(&run->result.json, '{');
	code = analysis_each_rank(run, queue_length_write_rank, &(struct queue_writer){queue_length_write_series, series});
	ops_json_close(&run->result.json, '}');
	return code;
}

/* --- full queues -------------------------------------------------------------------------------------------------- */

/* Returns the time from the first event's start to the last event's start. */
static int64_t duration_of(const struct event_table *table)
{
	int64_t first_ns = INT64_MAX, last_ns = INT64_MIN;

	for (size_t i = 0; i < table->kept_count; i++) {
		int64_t ts_ns = table->rows[table->kept[i]].ts_ns;

		first_ns = ts_ns < first_ns ? ts_ns : first_ns;
		last_ns = ts_ns > last_ns ? ts_ns : last_ns;
	}
	return last_ns > first_ns ? last_ns - first_ns : 0;
}

struct blocked_row {
	int64_t rank, stream, device, blocked_ns;
	double ratio;
};

static const struct result_column blocked_columns[] = {
	RANK_COLUMN(struct blocked_row),
	STREAM_COLUMN(struct blocked_row),
	{.name = "duration_at_max_queue_length", .type = RESULT_TIME, .title = "Full", .about = "Time with a full queue",
	 RESULT_FIELD(struct blocked_row, blocked_ns)},
	{.name = "relative_duration_at_max_queue_length", .type = RESULT_NUMBER, .title = "Ratio",
	 .about = "Part of the time of the trace, 0 to 1", RESULT_FIELD(struct blocked_row, ratio)},
	DEVICE_COLUMN(struct blocked_row),
};
const struct result_declaration table_full_queue =
	RESULT_DECLARATION("time_blocked_on_full_queue", "A stream whose queue is full at a time", blocked_columns);

/* Covers every stream that was full, not only the last one. */
static bool write_blocked(struct analysis_run *run, const struct event_table *table, const struct queues *queues,
                          int64_t limit)
{
	size_t count = queues->queues.count;
	int64_t *full_since = ops_alloc_zeroed(count + 1, sizeof(*full_since));
	int64_t *blocked_ns = ops_alloc_zeroed(count + 1, sizeof(*blocked_ns));
	uint8_t *is_full = ops_alloc_zeroed(count + 1, 1);
	int64_t duration_ns = duration_of(table);
	bool done = full_since && blocked_ns && is_full;

	for (size_t i = 0; done && i < queues->points.count; i++) {
		const struct queue_point *point = &queues->points.items[i];

		if (is_full[point->queue])
			blocked_ns[point->queue] += point->ts_ns - full_since[point->queue];
		is_full[point->queue] = point->length >= limit;
		full_since[point->queue] = point->ts_ns;
	}
	for (size_t i = 0; done && i < count; i++) {
		const struct queue *queue = &queues->queues.items[i];
		double ratio = duration_ns ? (double)blocked_ns[i] / (double)duration_ns : 0;

		if (blocked_ns[i])
			result_add(&run->result.table,
			           &(struct blocked_row){table->rank, queue->stream, queue->device, blocked_ns[i], ratio});
	}
	ops_free(full_since);
	ops_free(blocked_ns);
	ops_free(is_full);
	return done;
}

enum ops_code analysis_full_queue(struct analysis_run *run)
{
	int64_t limit = analysis_count(run, "max_queue_length");

	if (run->code)
		return run->code;
	result_declare(&run->result.table, &table_full_queue, 0);
	return analysis_each_rank(run, queue_length_write_rank, &(struct queue_writer){write_blocked, limit});
}
