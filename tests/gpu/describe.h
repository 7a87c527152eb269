/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace as text for comparison with a file: its rows, counters, views of devices and the table of averages.
 */
#ifndef OPS_TESTS_GPU_DESCRIBE_H
#define OPS_TESTS_GPU_DESCRIBE_H

#include <opstrobe/internal/analyze.h>
#include <opstrobe/internal/views.h>

#include "asking.h"
#include "base/buffer.h"

static inline void put_string(struct ops_buffer *text, const struct ops_trace *trace, uint32_t id)
{
	struct ops_string string = ops_trace_string(trace, id);

	ops_buffer_append(text, string.bytes, string.size);
}

static inline void put_track(struct ops_buffer *text, const struct ops_trace *trace, uint32_t i)
{
	size_t count;
	const struct ops_track *track = &ops_trace_tracks(trace, &count)[i];

	if (track->kind == OPS_TRACK_STREAM && !(track->flags & OPS_TRACK_PID_TEXT)) {
		ops_buffer_printf(text, "GPU %lld stream %lld", (long long)track->pid, (long long)track->tid);
		if (ops_trace_string(trace, track->name).size) {
			ops_buffer_append_text(text, " called ");
			put_string(text, trace, track->name);
		}
	} else if (track->flags & OPS_TRACK_PID_TEXT)
		put_string(text, trace, (uint32_t)track->pid);
	else
		ops_buffer_printf(text, "thread %lld", (long long)track->tid);
}

/* What a row waits for. */
static inline void put_waits(struct ops_buffer *text, const struct ops_trace *trace, uint32_t row)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(trace, &count);

	for (size_t i = 0; i < count; i++)
		if (links[i].to == row && links[i].kind == OPS_LINK_DEPENDENCY)
			ops_buffer_printf(text, ", after %u", links[i].from);
}

static inline void put_event(struct ops_buffer *text, const struct ops_trace *trace, uint32_t row, int64_t from_ns)
{
	const struct ops_events *e = ops_trace_events(trace);
	uint32_t by = launch_of(trace, row);

	ops_buffer_printf(text, "%u %s '", row, ops_event_category(trace, row).bytes);
	put_string(text, trace, e->name[row]);
	ops_buffer_append_text(text, "' on ");
	put_track(text, trace, e->track[row]);
	ops_buffer_printf(text, ", %lld to %lld ns, id %llu, correlation %lld", (long long)(e->start_ns[row] - from_ns),
	                  (long long)(e->end_ns[row] - from_ns), (unsigned long long)e->id[row],
	                  e->correlation ? (long long)e->correlation[row] : -1);
	if (e->parent[row] != OPS_NONE)
		ops_buffer_printf(text, ", in %u", e->parent[row]);
	if (by != OPS_NONE)
		ops_buffer_printf(text, ", by %u", by);
	put_waits(text, trace, row);
	if (e->extra && e->extra[row] != OPS_NONE) {
		ops_buffer_append_text(text, "\n\t");
		put_string(text, trace, e->extra[row]);
	}
	ops_buffer_append_text(text, "\n");
}

static inline void put_counters(struct ops_buffer *text, const struct ops_trace *trace, int64_t from_ns)
{
	size_t count;
	const struct ops_counter_record *counters = ops_trace_counters(trace, &count);

	for (size_t i = 0; i < count; i++) {
		put_track(text, trace, counters[i].track);
		ops_buffer_append_text(text, ": ");
		put_string(text, trace, counters[i].name);
		ops_buffer_printf(text, " %g at %lld ns\n", counters[i].value, (long long)(counters[i].time_ns - from_ns));
	}
}

/* The value of a key of the views, an object or array, with a line for each part. */
static inline void put_view(struct ops_buffer *text, const char *views, const char *key)
{
	const char *at = strstr(views, key);
	int depth = 0;

	assert_non_null(at);
	do {
		at++;
		depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
		ops_buffer_append(text, at, 1);
		if (*at == '{' || *at == '[' || (*at == ',' && (at[-1] == '}' || at[-1] == ']')))
			ops_buffer_append_text(text, "\n");
	} while (depth > 0 || (*at != '}' && *at != ']'));
	ops_buffer_append_text(text, "\n");
}

static inline void put_views(struct ops_buffer *text, const struct ops_trace *trace)
{
	char *views;
	size_t size;

	assert_int_equal(ops_views_json(trace, OPS_RULES_OPSTROBE, &views, &size, NULL), OPS_OK);
	put_view(text, views, "\"gpus\":");
	put_view(text, views, "\"kernels\":");
	ops_free(views);
}

/* key_averages().table(sort_by="self_cuda_time_total") */
static inline void put_table(struct ops_buffer *text, const struct ops_trace *trace)
{
	struct ops_table_options options = OPS_TABLE_OPTIONS_DEFAULT;
	struct ops_average_list list;
	struct ops_rows rows;
	struct ops_average *averages;
	struct ops_error error;
	char device[OPS_DEVICE_NAME_BYTES];
	char *table;
	size_t size;

	options.sort_by = "self_device_time_total";
	options.use_device = ops_trace_device(trace, device);
	if (ops_key_averages(trace, false, &(struct ops_averages_options){0}, &averages, &list.count, &error))
		fail_msg("%s", error.text);
	list.rows = averages;
	rows = ops_rows_of_averages(&list);
	if (ops_table_text(trace, &rows, &options, &table, &size, &error))
		fail_msg("%s", error.text);
	ops_buffer_append(text, table, size);
	ops_free(table);
	ops_free(averages);
}

static inline struct ops_buffer describe(const struct ops_trace *trace)
{
	int64_t from_ns = ops_trace_info(trace)->start_ns;
	struct ops_buffer text = {0};

	for (uint32_t row = 0; row < ops_trace_events(trace)->count; row++)
		put_event(&text, trace, row, from_ns);
	put_counters(&text, trace, from_ns);
	ops_buffer_printf(&text, "lost %llu\n", (unsigned long long)ops_trace_info(trace)->lost);
	put_views(&text, trace);
	put_table(&text, trace);
	ops_buffer_append(&text, "", 1);
	assert_false(text.failed);
	return text;
}

#endif
