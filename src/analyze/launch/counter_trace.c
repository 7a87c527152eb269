/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of a trace file with queue lengths and memory traffic added as counters, for viewers.
 */
#include "analyze/launch/launches.h"
#include "analyze/overlay.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_writer.h"
#include "base/text.h"

struct counters {
	const struct event_table *table;
	const struct ops_track *tracks;
	struct queues queues;
	struct traffic traffic;
};

static bool counters_init(struct counters *counters, const struct event_table *table)
{
	size_t count;

	*counters = (struct counters){.table = table, .tracks = ops_trace_tracks(table->trace, &count)};
	return queues_build(&counters->queues, table) && traffic_build(&counters->traffic, table);
}

static void counters_release(struct counters *counters)
{
	queues_release(&counters->queues);
	traffic_release(&counters->traffic);
}

static void counter_trace_write(struct ops_buffer *event, struct ops_string name, int64_t pid, int64_t id, int64_t ts_ns,
                                const char *what, double value)
{
	struct ops_json_writer json = {.out = event};

	ops_json_open(&json, '{');
	ops_json_member_text(&json, "ph", "C");
	ops_json_member_string(&json, "name", name);
	ops_json_member(&json, "pid", pid);
	ops_json_member(&json, "id", id);
	ops_json_member_us(&json, "ts", ts_ns);
	ops_json_member_open(&json, "args", '{');
	ops_json_member_number(&json, what, value);
	ops_json_close(&json, '}');
	ops_json_close(&json, '}');
}

/* Queue lengths come first. */
static bool add_counter(void *context, size_t i, struct ops_buffer *event)
{
	const struct counters *counters = context;
	size_t queue_points = counters->queues.points.count;

	if (i < queue_points) {
		const struct queue_point *point = &counters->queues.points.items[i];
		const struct queue *queue = &counters->queues.queues.items[point->queue];

		counter_trace_write(event, ops_string_of("Queue Length"), queue->device, queue->stream, point->ts_ns, "Queue Length",
		                    (double)point->length);
	} else if (i - queue_points < counters->traffic.points.count) {
		const struct traffic_point *point = &counters->traffic.points.items[i - queue_points];
		const struct event_row *row = &counters->table->rows[point->row];

		counter_trace_write(event, counters->traffic.kinds.items[point->kind], counters->tracks[row->track].pid, row->stream,
		                    point->ts_ns, "Memcpy BW", point->gbps);
	}
	return i < queue_points + counters->traffic.points.count;
}

struct copy_row {
	int64_t rank;
	struct ops_string file;
	uint64_t queue_points, traffic_points;
};

static const struct result_column copy_columns[] = {
	RANK_COLUMN(struct copy_row),
	{.name = "file", .type = RESULT_TEXT, .title = "File", .about = "The copy of the trace", RESULT_FIELD(struct copy_row, file)},
	{.name = "queue_length_points", .type = RESULT_COUNT, .title = "Queue length points",
	 .about = "Number of values of the counter of queue lengths", RESULT_FIELD(struct copy_row, queue_points)},
	{.name = "memory_bw_points", .type = RESULT_COUNT, .title = "Bandwidth points",
	 .about = "Number of values of the counter of memory bandwidth", RESULT_FIELD(struct copy_row, traffic_points)},
};
const struct result_declaration table_counter_trace =
	RESULT_DECLARATION("trace_with_counters", "A trace file that was written", copy_columns);

static enum ops_code counter_trace_write_rank(struct analysis_run *run, size_t at, const char *folder)
{
	const struct event_table *table = analysis_table(run, at);
	struct counters counters = {0};
	const struct overlay overlay = {.add = add_counter, .context = &counters, .suffix = "_with_counters.json"};
	struct ops_buffer path = {0};
	enum ops_code code = OPS_OK;

	if (!table)
		return analysis_failed(run);
	if (!run->ranks[at].path)
		return ops_fault(run->error, OPS_INVALID, "rank %lld was not read from a file", (long long)run->ranks[at].rank);
	code = counters_init(&counters, table) ? overlay_write(&run->ranks[at], folder, &overlay, &path, run->error)
	                                       : ops_fault_memory(run->error);
	if (!code)
		result_add(&run->result.table, &(struct copy_row){run->ranks[at].rank, {path.bytes, path.size - 1},
		                                                  counters.queues.points.count, counters.traffic.points.count});
	counters_release(&counters);
	ops_buffer_release(&path);
	return code;
}

enum ops_code analysis_counter_trace(struct analysis_run *run)
{
	struct ops_string folder = analysis_text(run, "output_dir");
	size_t *ranks, count;
	enum ops_code code = run->code ? run->code : analysis_ranks(run, &ranks, &count);

	if (!code) {
		run->result.table.copies = true;
		result_declare(&run->result.table, &table_counter_trace, 0);
		for (size_t i = 0; !code && i < count; i++)
			code = counter_trace_write_rank(run, ranks[i], folder.bytes);
		ops_free(ranks);
	}
	return code;
}
