/* SPDX-License-Identifier: Apache-2.0
 *
 * Summary of a trace: where and when it was recorded, and the numbers of its records.
 */
#include <string.h>

#include "analyze/analysis.h"
#include "analyze/ranks/trace_job.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/sum.h"
#include "derive/extent.h"

static void write_count(struct ops_json_writer *json, const char *key, uint64_t count)
{
	ops_json_member(json, key, ops_clamped(count));
}

static void trace_info_write_events(struct ops_json_writer *json, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint64_t kinds[OPS_EVENT_KIND_COUNT] = {0};

	for (size_t i = 0; i < events->count; i++)
		kinds[events->kind[i]]++;
	write_count(json, "events", events->count);
	ops_json_member_open(json, "events_by_kind", '{');
	for (int kind = 0; kind < OPS_EVENT_KIND_COUNT; kind++) {
		const char *name = ops_event_kind_category((enum ops_event_kind)kind);

		if (kinds[kind])
			write_count(json, *name ? name : kind == OPS_EVENT_MARK ? "mark" : "other", kinds[kind]);
	}
	ops_json_close(json, '}');
}

static void trace_info_write_tracks(struct ops_json_writer *json, const struct ops_trace *trace)
{
	size_t count, streams = 0;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	for (size_t i = 0; i < count; i++)
		streams += tracks[i].kind == OPS_TRACK_STREAM;
	write_count(json, "threads", count - streams);
	write_count(json, "streams", streams);
}

static void write_times(struct ops_json_writer *json, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_interval extent = ops_extent_of(trace);

	ops_json_member(json, "start_ns", events->count ? events->start_ns[0] : 0);
	ops_json_member_us(json, "duration_us", ops_difference(extent.end_ns, extent.start_ns));
}

/* Writes the number of steps, and the numbers of the steps if they have any. */
static void trace_info_write_steps(struct ops_json_writer *json, const struct ops_trace *trace)
{
	struct ops_intern numbers = {0}; /* ranks merged into one trace share step numbers */
	const struct ops_steps *steps = ops_steps_of(trace);
	int64_t first = INT64_MAX, last = INT64_MIN;

	json->out->failed |= !steps;
	for (size_t i = 0; steps && i < steps->list.count; i++) {
		int64_t number = steps->list.items[i].number;

		first = number < first ? number : first;
		last = number > last ? number : last;
		json->out->failed |= ops_intern_add(&numbers, &number, sizeof(number)) == OPS_INTERN_NONE;
	}
	write_count(json, "steps", numbers.count);
	ops_json_member_text(json, "steps_from", ops_steps_source_name(steps ? steps->source : OPS_STEPS_NONE));
	if (numbers.count) {
		ops_json_member(json, "first_step", first);
		ops_json_member(json, "last_step", last);
	}
	ops_intern_release(&numbers);
}

static uint64_t count_module_calls(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint64_t calls = 0;

	for (size_t i = 0; events->python_module && i < events->count; i++)
		calls += events->python_module[i] != OPS_NONE;
	return calls;
}

static void trace_info_write_parts(struct ops_json_writer *json, const struct ops_trace *trace)
{
	size_t count;

	ops_trace_links(trace, &count);
	write_count(json, "arrows", count);
	ops_trace_memory(trace, &count);
	write_count(json, "memory_records", count);
	ops_trace_counters(trace, &count);
	write_count(json, "counter_values", count);
	ops_trace_modules(trace, &count);
	write_count(json, "modules", count);
	write_count(json, "module_calls", count_module_calls(trace));
	write_count(json, "lost_records", ops_trace_info(trace)->lost);
	ops_trace_notes(trace, &count);
	write_count(json, "notes", count);
}

static void write_metadata(struct ops_json_writer *json, const struct ops_trace *trace)
{
	struct ops_string key, value;

	ops_json_member_open(json, "metadata", '{');
	for (size_t i = 0; i < ops_trace_metadata_count(trace); i++) {
		ops_trace_metadata(trace, i, &key, &value);
		ops_json_key_of(json, key.bytes, key.size);
		ops_json_raw(json, value.bytes, value.size);
	}
	ops_json_close(json, '}');
}

/* Writes the settings of the recording, which its metadata has as `recording`: an object of texts and numbers. */
static void trace_info_write_recording(struct ops_json_writer *json, const struct ops_trace *trace)
{
	struct ops_string value;

	if (!ops_trace_find_metadata(trace, "recording", &value) || !value.size || value.bytes[0] != '{')
		return;
	ops_json_member_raw(json, "recording", value);
}

static void trace_info_write_trace(struct ops_json_writer *json, const struct ops_rank *rank, bool metadata)
{
	const struct ops_trace_info *info = ops_trace_info(rank->trace);
	struct trace_job job;

	ops_json_open(json, '{');
	if (rank->path)
		ops_json_member_text(json, "file", rank->path);
	trace_job_read(rank->trace, rank->path, &job);
	ops_json_member_or_null(json, "rank", job.rank);
	if (job.world_size >= 0)
		ops_json_member(json, "world_size", job.world_size);
	if (*info->host_name)
		ops_json_member_text(json, "host", info->host_name);
	if (*info->process_name)
		ops_json_member_text(json, "process", info->process_name);
	trace_info_write_recording(json, rank->trace);
	write_times(json, rank->trace);
	trace_info_write_steps(json, rank->trace);
	trace_info_write_events(json, rank->trace);
	trace_info_write_tracks(json, rank->trace);
	trace_info_write_parts(json, rank->trace);
	if (metadata)
		write_metadata(json, rank->trace);
	ops_json_close(json, '}');
}

enum ops_code analysis_info(struct analysis_run *run)
{
	struct ops_json_writer *json = &run->result.json;
	const struct ops_trace *trace;
	bool metadata;
	enum ops_code code = analysis_bool(run, "metadata", &metadata);

	if (!code)
		code = analysis_first_trace(run, &trace);
	if (code)
		return code;
	if (run->count == 1 && run->ranks[0].trace) {
		trace_info_write_trace(json, &run->ranks[0], metadata);
		return OPS_OK;
	}
	ops_json_open(json, '[');
	for (size_t i = 0; i < run->count; i++)
		if (run->ranks[i].trace)
			trace_info_write_trace(json, &run->ranks[i], metadata);
	ops_json_close(json, ']');
	return OPS_OK;
}
