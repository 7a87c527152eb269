/* SPDX-License-Identifier: Apache-2.0
 *
 * A copy of a trace file with queue lengths and memory traffic added as counters, for viewers.
 *
 * The text is copied unchanged as a stream. Only the nesting depth is tracked, to find the end of the events, where the
 * counters are inserted.
 */
#include <string.h>

#include "analyze/launch/launches.h"
#include "base/alloc.h"
#include "base/window.h"
#include "base/sink.h"

#define KEY_MAX 16u
#define GZIP_LEVEL 6

/* Position of the copy in the text. */
struct copy {
	struct ops_sink *sink;
	const struct ops_buffer *counters; /* events, separated by commas */
	char key[KEY_MAX]; /* the last string at depth 1 */
	size_t key_size;
	int64_t depth;
	int64_t events_depth; /* depth of the elements in the array of events; 0: outside of it */
	bool in_string;
	bool escaped;
	bool any;  /* the array has an event */
	bool done; /* the counters have been written */
};

static void counter_trace_write_counters(struct copy *copy)
{
	if (copy->counters->size && copy->any)
		ops_sink_write(copy->sink, ",\n", 2);
	ops_sink_write(copy->sink, copy->counters->bytes, copy->counters->size);
	copy->done = true;
}

static void parse_string_byte(struct copy *copy, char byte)
{
	if (copy->escaped) {
		copy->escaped = false;
	} else if (byte == '\\') {
		copy->escaped = true;
	} else if (byte == '"') {
		copy->in_string = false;
		return;
	}
	if (copy->depth == 1 && copy->key_size < KEY_MAX)
		copy->key[copy->key_size++] = byte;
}

/* Returns true if the events end before this byte. */
static bool parse_byte(struct copy *copy, char byte)
{
	bool ends = false;

	if (copy->in_string) {
		parse_string_byte(copy, byte);
		return false;
	}
	if (byte == '"') {
		copy->in_string = true;
		copy->key_size = copy->depth == 1 ? 0 : copy->key_size;
	} else if (byte == '[' || byte == '{') {
		bool is_events = byte == '[' && !copy->done && !copy->events_depth &&
		                 (copy->depth == 0 || (copy->depth == 1 && copy->key_size == 11 &&
		                                       !memcmp(copy->key, "traceEvents", 11)));

		copy->any = copy->any || copy->events_depth;
		copy->depth++;
		if (is_events)
			copy->events_depth = copy->depth;
	} else if (byte == ']' || byte == '}') {
		ends = copy->events_depth && copy->depth == copy->events_depth;
		copy->depth--;
	}
	return ends;
}

static void copy_chunk(struct copy *copy, const char *bytes, size_t size)
{
	size_t written = 0;

	for (size_t i = 0; i < size; i++) {
		if (!parse_byte(copy, bytes[i]))
			continue;
		ops_sink_write(copy->sink, bytes + written, i - written);
		written = i;
		counter_trace_write_counters(copy);
		copy->events_depth = 0;
	}
	ops_sink_write(copy->sink, bytes + written, size - written);
}

/* --- counters ----------------------------------------------------------------------------------------------------- */

static void begin_counter(struct ops_json_writer *json, struct ops_string name, int64_t pid, int64_t id, int64_t ts_ns)
{
	if (json->out->size)
		ops_buffer_append_text(json->out, ",\n");
	json->comma = false;
	ops_json_open(json, '{');
	ops_json_member_text(json, "ph", "C");
	ops_json_member_string(json, "name", name);
	ops_json_member(json, "pid", pid);
	ops_json_member(json, "id", id);
	ops_json_member_us(json, "ts", ts_ns);
	ops_json_member_open(json, "args", '{');
}

static void end_counter(struct ops_json_writer *json)
{
	ops_json_close(json, '}');
	ops_json_close(json, '}');
}

static bool add_queues(struct ops_json_writer *json, const struct event_table *table, size_t *ret_count)
{
	struct queues queues;
	bool done = queues_build(&queues, table);

	for (size_t i = 0; done && i < queues.points.count; i++) {
		const struct queue_point *point = &queues.points.items[i];
		const struct queue *queue = &queues.queues.items[point->queue];

		begin_counter(json, (struct ops_string){"Queue Length", 12}, queue->device, queue->stream, point->ts_ns);
		ops_json_member(json, "Queue Length", point->length);
		end_counter(json);
	}
	*ret_count = queues.points.count;
	queues_release(&queues);
	return done;
}

static bool add_traffic(struct ops_json_writer *json, const struct event_table *table, size_t *ret_count)
{
	struct traffic traffic;
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(table->trace, &count);
	bool done = traffic_build(&traffic, table);

	for (size_t i = 0; done && i < traffic.points.count; i++) {
		const struct traffic_point *point = &traffic.points.items[i];
		const struct event_row *row = &table->rows[point->row];

		begin_counter(json, traffic.kinds.items[point->kind], tracks[row->track].pid, row->stream, point->ts_ns);
		ops_json_member_number(json, "Memcpy BW", point->gbps);
		end_counter(json);
	}
	*ret_count = traffic.points.count;
	traffic_release(&traffic);
	return done;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Converts "dir/name.json.gz" to "folder/name_with_counters.json.gz". With an empty folder the copy is next to the
 * file. */
static void name_copy(const char *path, const struct ops_buffer *folder, struct ops_buffer *out)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t size = strlen(name);

	size -= size > 3 && !strcmp(name + size - 3, ".gz") ? 3 : 0;
	size -= size > 4 && !strcmp(name + size - 4, ".zst") ? 4 : 0;
	size -= size > 5 && !strncmp(name + size - 5, ".json", 5) ? 5 : 0;
	if (folder->size) {
		ops_buffer_append(out, folder->bytes, folder->size);
		ops_buffer_append(out, "/", 1);
	} else {
		ops_buffer_append(out, path, (size_t)(name - path));
	}
	ops_buffer_append(out, name, size);
	ops_buffer_append(out, "_with_counters.json.gz", sizeof("_with_counters.json.gz"));
}

static enum ops_code copy_file(const char *path, const char *to, const struct ops_buffer *counters,
                               struct ops_error *error)
{
	struct ops_source *source = NULL;
	struct ops_window window = {0};
	struct copy copy = {.counters = counters};
	enum ops_code code = ops_source_open_file(path, &source, error);

	if (!code)
		code = ops_window_open(&window, &source, error);
	if (!code)
		code = ops_sink_open_file(to, GZIP_LEVEL, &copy.sink, error);
	while (!code) {
		copy_chunk(&copy, window.at, (size_t)(window.end - window.at));
		window.at = window.end;
		if (window.last)
			break;
		code = ops_window_more(&window, error);
	}
	if (!code && !copy.done)
		code = ops_fault(error, OPS_CORRUPT, "'%s' has no end of its events", path);
	if (!code)
		code = ops_sink_close(copy.sink, error);
	else
		ops_sink_abandon(copy.sink);
	ops_window_release(&window);
	ops_source_close(source);
	return code;
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

static enum ops_code counter_trace_write_rank(struct analysis_run *run, size_t at, const struct ops_buffer *folder)
{
	const struct event_table *table = analysis_table(run, at);
	struct ops_buffer counters = {0}, path = {0};
	struct ops_json_writer json = {.out = &counters};
	size_t queue_points = 0, traffic_points = 0;
	enum ops_code code = OPS_OK;

	if (!table)
		return analysis_failed(run);
	if (!run->ranks[at].path)
		return ops_fault(run->error, OPS_INVALID, "rank %lld was not read from a file", (long long)run->ranks[at].rank);
	name_copy(run->ranks[at].path, folder, &path);
	if (!add_queues(&json, table, &queue_points) || !add_traffic(&json, table, &traffic_points) || counters.failed ||
	    path.failed)
		code = ops_fault_memory(run->error);
	if (!code)
		code = copy_file(run->ranks[at].path, path.bytes, &counters, run->error);
	if (!code)
		result_add(&run->result.table, &(struct copy_row){run->ranks[at].rank, {path.bytes, path.size - 1}, queue_points,
		                                                  traffic_points});
	ops_buffer_release(&counters);
	ops_buffer_release(&path);
	return code;
}

enum ops_code analysis_counter_trace(struct analysis_run *run)
{
	struct ops_buffer folder = {0};
	size_t *ranks, count;
	enum ops_code code = analysis_text(run, "output_dir", &folder);

	if (!code)
		code = analysis_ranks(run, &ranks, &count);
	if (!code) {
		run->result.table.copies = true;
		result_declare(&run->result.table, &table_counter_trace, 0);
		for (size_t i = 0; !code && i < count; i++)
			code = counter_trace_write_rank(run, ranks[i], &folder);
		ops_free(ranks);
	}
	ops_buffer_release(&folder);
	return code;
}
