/* SPDX-License-Identifier: Apache-2.0
 *
 * Why a stream is idle: the host had not called yet (host_wait), kernels follow each other closely (kernel_wait), or
 * something else.
 *
 * A kernel that begins before the previous one ends waits 0. Later waits count from the latest end. Work without a
 * known launch does not count as host_wait. Streams of different devices are different streams.
 */
#include "analyze/time/device_time.h"

#include <math.h>
#include <string.h>

#include "analyze/describe.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"
#include "trace/kinds.h"

enum category { HOST_WAIT, KERNEL_WAIT, OTHER, CATEGORY_COUNT };
static const char *const names[] = {"host_wait", "kernel_wait", "other"};

struct category_sum {
	int64_t idle_ns;
	uint64_t count; /* number of kernels, including the first of a stream */
	struct numbers intervals_us;
};

/* A stream of one device. */
struct stream {
	int64_t device;
	int64_t number;
};

/* Orders rows by stream (streams by first appearance), then by time. */
struct order {
	const struct event_table *table;
	const uint32_t *stream_of; /* by row */
};

static bool idle_time_before(const void *context, uint32_t a, uint32_t b)
{
	const struct order *order = context;

	if (order->stream_of[a] != order->stream_of[b])
		return order->stream_of[a] < order->stream_of[b];
	return order->table->rows[a].ts_ns < order->table->rows[b].ts_ns;
}

static bool is_kernel(const struct event_table *table, const struct event_row *row)
{
	return row->on_device &&
	       (ops_kind_is_work(row->kind) || ops_string_is(ops_event_category(table->trace, row->source), "mtia_ccp_events"));
}

/* Classifies the idle intervals of one stream; `rows` are in order of time. */
static bool file_stream(const struct event_table *table, const uint32_t *rows, size_t count, int64_t delay_ns,
                        struct category_sum sums[CATEGORY_COUNT])
{
	int64_t end_ns = 0;

	for (size_t i = 0; i < count; i++) {
		const struct event_row *row = &table->rows[rows[i]];
		int64_t idle_ns = i && row->ts_ns > end_ns ? row->ts_ns - end_ns : 0;
		enum category category = OTHER;

		if (i && row->partner != OPS_NONE && table->rows[row->partner].ts_ns > end_ns)
			category = HOST_WAIT;
		else if (i && idle_ns < delay_ns)
			category = KERNEL_WAIT;
		sums[category].idle_ns = ops_sum(sums[category].idle_ns, idle_ns);
		sums[category].count++;
		if (i && !numbers_push(&sums[category].intervals_us, (double)idle_ns / 1000))
			return false;
		end_ns = !i || event_end(row) > end_ns ? event_end(row) : end_ns;
	}
	return true;
}

/* One category of a stream: its sum, or its intervals. */
struct idle_row {
	int64_t rank, stream, device;
	const char *category;
	int64_t idle_ns;
	double ratio;
	struct description described;
};

#define CATEGORY_COLUMN                                                                                                 \
	{.name = "idle_category", .type = RESULT_TEXT, .title = "Category",                                                \
	 .about = "Why the stream is idle: host_wait, before the launch call; kernel_wait, a short gap between kernels; other", \
	 RESULT_FIELD(struct idle_row, category)}

static const struct result_column sum_columns[] = {
	RANK_COLUMN(struct idle_row),
	STREAM_COLUMN(struct idle_row),
	CATEGORY_COLUMN,
	{.name = "idle_time", .type = RESULT_TIME, .title = "Idle", .about = "Sum of the idle intervals",
	 RESULT_FIELD(struct idle_row, idle_ns)},
	{.name = "idle_time_ratio", .type = RESULT_NUMBER, .title = "Ratio", .about = "Part of the stream's idle time, 0 to 1",
	 RESULT_FIELD(struct idle_row, ratio)},
	DEVICE_COLUMN(struct idle_row),
};
const struct result_declaration table_idle_time =
	RESULT_DECLARATION("idle_time_breakdown", "A category of idle time on a stream", sum_columns);

static const struct result_column interval_columns[] = {
	CATEGORY_COLUMN,
	RANK_COLUMN(struct idle_row),
	STREAM_COLUMN(struct idle_row),
	DESCRIPTION_COLUMNS(struct idle_row, "", "us", "intervals", "Number of idle intervals"),
	DEVICE_COLUMN(struct idle_row),
};
const struct result_declaration table_idle_intervals =
	RESULT_DECLARATION("idle_time_breakdown.interval_stats", "A category of idle time on a stream", interval_columns);

static void write_stream(struct result_table *out, int64_t rank, const struct stream *stream,
                         struct category_sum sums[CATEGORY_COUNT])
{
	int64_t total_ns = sums[HOST_WAIT].idle_ns + sums[KERNEL_WAIT].idle_ns + sums[OTHER].idle_ns;

	for (int i = 0; i < CATEGORY_COUNT; i++) {
		struct idle_row row = {rank, stream->number, stream->device, names[i], sums[i].idle_ns,
		                       total_ns ? result_round((double)sums[i].idle_ns / (double)total_ns, 2) : NAN,
		                       describe(&sums[i].intervals_us)};

		describe_round(&row.described, 2);
		if (sums[i].count)
			result_add(out, &row);
	}
}

/* Finds the streams of a rank in order of appearance, and the stream of each row. */
static bool idle_time_find_streams(const struct event_table *table, uint32_t *stream_of, uint32_t *rows, size_t *ret_count)
{
	const struct ops_track *tracks;
	size_t track_count;
	struct ops_intern streams = {0};
	bool done = true;

	tracks = ops_trace_tracks(table->trace, &track_count);
	*ret_count = 0;
	for (size_t i = 0; done && i < table->kept_count; i++) {
		const struct event_row *row = &table->rows[table->kept[i]];
		struct stream stream = {tracks[row->track].pid, row->stream};

		if (!is_kernel(table, row))
			continue;
		stream_of[table->kept[i]] = ops_intern_add(&streams, &stream, sizeof(stream));
		done = stream_of[table->kept[i]] != OPS_INTERN_NONE;
		rows[(*ret_count)++] = table->kept[i];
	}
	ops_intern_release(&streams);
	return done;
}

static bool idle_time_write_rank(struct analysis_run *run, const struct event_table *table, const void *context)
{
	int64_t delay_ns = *(const int64_t *)context;
	size_t stream_count;
	const int64_t *streams = analysis_integers(run, "streams", &stream_count);
	uint32_t *stream_of = ops_alloc_zeroed(table->count + 1, sizeof(*stream_of));
	uint32_t *rows = ops_alloc_zeroed(table->kept_count + 1, sizeof(*rows));
	struct order order = {table, stream_of};
	size_t count = 0, track_count;
	const struct ops_track *tracks = ops_trace_tracks(table->trace, &track_count);
	bool done = stream_of && rows && idle_time_find_streams(table, stream_of, rows, &count) &&
	            ops_sort_rows(rows, count, idle_time_before, &order);

	for (size_t i = 0, end; done && i < count; i = end) {
		struct category_sum sums[CATEGORY_COUNT] = {{0}};
		const struct event_row *row = &table->rows[rows[i]];
		struct stream stream = {tracks[row->track].pid, row->stream};

		for (end = i; end < count && stream_of[rows[end]] == stream_of[rows[i]];)
			end++;
		if (streams && !analysis_integers_have(streams, stream_count, row->stream))
			continue;
		done = file_stream(table, rows + i, end - i, delay_ns, sums);
		if (done)
			write_stream(&run->result.table, table->rank, &stream, sums);
		for (int at = 0; at < CATEGORY_COUNT; at++)
			numbers_release(&sums[at].intervals_us);
	}
	ops_free(stream_of);
	ops_free(rows);
	return done;
}

static enum ops_code run_idle(struct analysis_run *run, const struct result_declaration *declaration)
{
	double delay_us = analysis_number(run, "consecutive_kernel_delay");
	int64_t delay_ns;
	size_t count;

	analysis_integers(run, "streams", &count);
	if (run->code)
		return run->code;
	if (!(fabs(delay_us) < 9e15))
		return ops_fault(run->error, OPS_INVALID, "option 'consecutive_kernel_delay' is too large");
	delay_ns = (int64_t)(delay_us * 1000);
	result_declare(&run->result.table, declaration, 0);
	return analysis_each_rank(run, idle_time_write_rank, &delay_ns);
}

enum ops_code analysis_idle_time(struct analysis_run *run)
{
	return run_idle(run, &table_idle_time);
}

enum ops_code analysis_idle_intervals(struct analysis_run *run)
{
	return run_idle(run, &table_idle_intervals);
}
