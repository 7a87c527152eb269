/* SPDX-License-Identifier: Apache-2.0
 *
 * Lengths of queues: what they are like, over time, and how long they were full (8).
 */
#include "analyze/launch/launches.h"

#include "base/alloc.h"

/* Calls `write` for each of the ranks asked for; those without launches are left out. */
typedef bool write_queues(struct analysis_run *run, const struct event_table *table, const struct queues *queues,
                          int64_t parameter);

static enum ops_code each_rank(struct analysis_run *run, write_queues *write, int64_t parameter)
{
	size_t *ranks, count;
	enum ops_code code = analysis_ranks(run, &ranks, &count);

	if (code)
		return code;
	for (size_t i = 0; !code && i < count; i++) {
		const struct event_table *table = analysis_table(run, ranks[i]);
		struct queues queues = {0};
		bool done = table && queues_build(&queues, table);

		if (done && queues.points.count)
			done = write(run, table, &queues, parameter);
		queues_release(&queues);
		if (!done)
			code = analysis_failed(run);
	}
	ops_free(ranks);
	return code;
}

/* --- summary ------------------------------------------------------------------------------------------------------ */

static bool write_summary(struct analysis_run *run, const struct event_table *table, const struct queues *queues,
                          int64_t parameter)
{
	size_t count = queues->queues.count;
	struct numbers *lengths = ops_alloc_zeroed(count + 1, sizeof(*lengths));
	bool done = lengths;

	(void)parameter;
	for (size_t i = 0; done && i < queues->points.count; i++)
		done = numbers_push(&lengths[queues->points.items[i].queue], (double)queues->points.items[i].length);
	for (size_t i = 0; lengths && i < count; i++) {
		struct description description = describe(&lengths[i]);

		result_integer(&run->result.table, table->rank);
		result_integer(&run->result.table, queues->queues.items[i].stream);
		describe_cells(&run->result.table, &description, -1);
		result_integer(&run->result.table, queues->queues.items[i].device);
		numbers_release(&lengths[i]);
	}
	ops_free(lengths);
	return done;
}

enum ops_code analysis_queue_summary(struct analysis_run *run)
{
	struct result_table *table = &run->result.table;

	RESULT_COLUMNS(table, RESULT_COLUMN("rank", INTEGER), RESULT_COLUMN("stream", INTEGER), RESULT_COLUMN("queue_length_count", COUNT),
	               RESULT_COLUMN("queue_length_mean", NUMBER), RESULT_COLUMN("queue_length_std", NUMBER),
	               RESULT_COLUMN("queue_length_min", NUMBER), RESULT_COLUMN("queue_length_25%", NUMBER),
	               RESULT_COLUMN("queue_length_50%", NUMBER), RESULT_COLUMN("queue_length_75%", NUMBER),
	               RESULT_COLUMN("queue_length_max", NUMBER), RESULT_COLUMN("device", INTEGER));
	return each_rank(run, write_summary, 0);
}

/* --- over time ---------------------------------------------------------------------------------------------------- */

static bool write_points(struct analysis_run *run, const struct event_table *table, const struct queues *queues)
{
	struct result_table series = {0};

	RESULT_COLUMNS(&series, RESULT_COLUMN("index", INTEGER), RESULT_COLUMN("ts", TIME), RESULT_COLUMN("pid", INTEGER), RESULT_COLUMN("tid", INTEGER),
	               RESULT_COLUMN("stream", INTEGER), RESULT_COLUMN("queue_length", INTEGER));
	for (size_t i = 0; i < queues->points.count; i++) {
		const struct queue_point *point = &queues->points.items[i];
		const struct queue *queue = &queues->queues.items[point->queue];

		result_integer(&series, table->rows[point->row].index);
		result_time(&series, point->ts_ns - run->events.first_ns);
		result_integer(&series, queue->device);
		result_integer(&series, queue->stream); /* that of a device's rows is their stream */
		result_integer(&series, queue->stream);
		result_integer(&series, point->length);
	}
	ops_json_key(&run->result.json, "series");
	result_table_json(&series, &run->result.json);
	result_table_release(&series);
	return !run->result.value.failed;
}

/* The last length of each stream; of two devices with the same stream that of the last. */
static bool write_final(struct ops_json_writer *json, const struct queues *queues)
{
	int64_t *last = ops_alloc_zeroed(queues->queues.count + 1, sizeof(*last));

	if (!last)
		return false;
	for (size_t i = 0; i < queues->points.count; i++)
		last[queues->points.items[i].queue] = queues->points.items[i].length;
	ops_json_key(json, "final_by_stream");
	ops_json_open(json, '{');
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

static bool write_series(struct analysis_run *run, const struct event_table *table, const struct queues *queues,
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
	done = write_final(json, queues) && (!with_points || write_points(run, table, queues));
	ops_json_close(json, '}');
	return done;
}

enum ops_code analysis_queue_series(struct analysis_run *run)
{
	bool series;
	enum ops_code code = analysis_bool(run, "series", &series);

	if (code)
		return code;
	ops_json_open(&run->result.json, '{');
	code = each_rank(run, write_series, series);
	ops_json_close(&run->result.json, '}');
	return code;
}

/* --- full queues -------------------------------------------------------------------------------------------------- */

/* From the first start of an event to the last. */
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

/* Every stream that was full, not the last alone (flaw 10). */
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
		if (!blocked_ns[i])
			continue;
		result_integer(&run->result.table, table->rank);
		result_integer(&run->result.table, queues->queues.items[i].stream);
		result_time(&run->result.table, blocked_ns[i]);
		result_number(&run->result.table, duration_ns ? (double)blocked_ns[i] / (double)duration_ns : 0);
		result_integer(&run->result.table, queues->queues.items[i].device);
	}
	ops_free(full_since);
	ops_free(blocked_ns);
	ops_free(is_full);
	return done;
}

enum ops_code analysis_full_queue(struct analysis_run *run)
{
	struct result_table *table = &run->result.table;
	int64_t limit;
	enum ops_code code = analysis_count(run, "max_queue_length", &limit);

	if (code)
		return code;
	RESULT_COLUMNS(table, RESULT_COLUMN("rank", INTEGER), RESULT_COLUMN("stream", INTEGER),
	               RESULT_COLUMN("duration_at_max_queue_length", TIME),
	               RESULT_COLUMN("relative_duration_at_max_queue_length", NUMBER), RESULT_COLUMN("device", INTEGER));
	return each_rank(run, write_blocked, limit);
}
