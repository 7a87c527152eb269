/* SPDX-License-Identifier: Apache-2.0
 *
 * Sampled Python stacks; see python_samples.h.
 */
#include "derive/python_samples.h"

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/text.h"
#include "derive/blocking.h"
#include "derive/helper_waits.h"
#include "derive/program.h"
#include "trace/nests.h"
#include "trace/track_rows.h"

/* Reads the next `count` integers of a list. Returns false at its end. */
static bool next_numbers(struct ops_json_walk *walk, int64_t *ret_numbers, size_t count)
{
	struct ops_string text;

	for (size_t i = 0; i < count; i++)
		if (!ops_json_next_element(walk, &text) || !ops_json_parse_integer(text, &ret_numbers[i]))
			return false;
	return true;
}

/* Decodes a text into the buffer, which has room for all. */
static struct ops_string sampled_decode_text(struct ops_python_samples *samples, struct ops_string value)
{
	size_t start = samples->texts.size;

	ops_json_decode_value(&samples->texts, value);
	return samples->texts.failed ? (struct ops_string){"", 0}
	                             : (struct ops_string){samples->texts.bytes + start, samples->texts.size - start};
}

static bool sampled_read_functions(struct ops_python_samples *samples, struct ops_string list)
{
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size);
	struct ops_string pair;

	while (ops_json_next_element(&walk, &pair)) {
		struct ops_json_walk texts = ops_json_walk(pair.bytes, pair.size);
		struct ops_string file = {0}, name = {0};

		if (pair.bytes[0] != '[' || !ops_json_next_element(&texts, &file) || !ops_json_next_element(&texts, &name))
			file = name = (struct ops_string){0}; /* keeps the numbers of later functions */
		file = sampled_decode_text(samples, file);
		name = sampled_decode_text(samples, name);
		if (!OPS_ARRAY_APPEND(&samples->functions, (struct ops_sampled_function){file, name}))
			return false;
	}
	return true;
}

/* Returns true for the function of multiprocessing with which a process starts. */
static bool starts_process(const struct ops_sampled_function *function)
{
	return ops_string_ends(function->file, "multiprocessing/process.py") && ops_string_ends(function->name, "_bootstrap");
}

/* The numbers of functions and stacks in an object start with these. */
struct sampled_base {
	size_t functions, stacks;
};

/* Stops at the first invalid stack, since later ones may refer to it. */
static bool sampled_read_stacks(struct ops_python_samples *samples, struct ops_string list, const struct sampled_base *base)
{
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size);
	int64_t functions = (int64_t)(samples->functions.count - base->functions), fields[3];

	while (next_numbers(&walk, fields, 3)) {
		struct ops_sampled_stack stack;

		if (fields[0] < -1 || fields[0] >= (int64_t)(samples->stacks.count - base->stacks) || fields[1] < 0 || fields[1] >= functions ||
		    fields[2] < 0 || fields[2] > UINT32_MAX)
			return true;
		stack = (struct ops_sampled_stack){fields[0] < 0 ? OPS_NONE : (uint32_t)(base->stacks + (size_t)fields[0]),
		                                   (uint32_t)(base->functions + (size_t)fields[1]), (uint32_t)fields[2]};
		if (starts_process(&samples->functions.items[stack.function]))
			stack.caller = OPS_NONE;
		if (!OPS_ARRAY_APPEND(&samples->stacks, stack))
			return false;
	}
	return true;
}

/* The time range of the trace; everything if the trace is not a slice. */
struct sampled_range {
	int64_t start_ns, end_ns;
};

static struct sampled_range find_range(const struct ops_trace *trace)
{
	struct ops_string json;
	struct ops_json_walk walk;
	int64_t limits[2];

	if (ops_trace_find_metadata(trace, "python_samples_range", &json) && json.bytes[0] == '[') {
		walk = ops_json_walk(json.bytes, json.size);
		if (next_numbers(&walk, limits, 2))
			return (struct sampled_range){limits[0], limits[1]};
	}
	return (struct sampled_range){INT64_MIN, INT64_MAX};
}

/* Skips samples that are out of order. */
static bool sampled_read_samples(struct ops_python_samples *samples, struct ops_string list, int64_t tid, int64_t start_ns,
                                 struct sampled_range range, size_t first_stack)
{
	struct ops_json_walk walk = ops_json_walk(list.bytes, list.size);
	int64_t fields[4], last_us = 0;

	while (next_numbers(&walk, fields, 4)) {
		if (fields[0] < last_us || fields[0] > OPS_TIME_MAX_NS / 1000 || fields[1] < 0 || fields[1] > UINT32_MAX || fields[2] < 0 ||
		    fields[2] >= (int64_t)(samples->stacks.count - first_stack) || fields[3] < 0 || fields[3] > OPS_THREAD_STATES)
			continue;
		last_us = fields[0];
		if (start_ns + 1000 * last_us < range.start_ns || start_ns + 1000 * last_us >= range.end_ns)
			continue;
		if (!OPS_ARRAY_APPEND(&samples->samples,
		                      (struct ops_python_sample){tid, start_ns + 1000 * fields[0], 1000 * fields[1],
		                                                 (uint32_t)(first_stack + (size_t)fields[2]), (enum ops_thread_state)fields[3]}))
			return false;
	}
	return true;
}

/* Adds the samples of one process. */
static bool sampled_read_process(struct ops_python_samples *samples, struct ops_string json, struct sampled_range range)
{
	struct ops_string functions, stacks, threads, thread, text, list;
	struct sampled_base base = {samples->functions.count, samples->stacks.count};
	struct ops_json_walk walk;
	int64_t start_ns, tid;
	bool done;

	if (json.bytes[0] != '{' || !ops_json_find_member(json, "start_ns", &text) || !ops_json_parse_integer(text, &start_ns) || start_ns < 0 ||
	    start_ns > OPS_TIME_MAX_NS * 2 || !ops_json_find_member(json, "functions", &functions) ||
	    !ops_json_find_member(json, "stacks", &stacks) || !ops_json_find_member(json, "threads", &threads))
		return true;
	done = sampled_read_functions(samples, functions) && sampled_read_stacks(samples, stacks, &base);
	walk = ops_json_walk(threads.bytes, threads.size);
	while (done && ops_json_next_element(&walk, &thread))
		if (thread.bytes[0] == '{' && ops_json_find_member(thread, "tid", &text) && ops_json_parse_integer(text, &tid) &&
		    ops_json_find_member(thread, "samples", &list))
			done = sampled_read_samples(samples, list, tid, start_ns, range, base.stacks);
	return done && !samples->texts.failed;
}

bool ops_python_samples_read(struct ops_python_samples *samples, const struct ops_trace *trace)
{
	struct sampled_range range = find_range(trace);
	struct ops_json_walk processes;
	struct ops_string json, process;
	bool done = true;

	*samples = (struct ops_python_samples){0};
	if (!ops_trace_find_metadata(trace, OPS_PYTHON_SAMPLES, &json))
		return true;
	if (!ops_buffer_room(&samples->texts, json.size)) /* so that texts stay where they are */
		return false;
	if (json.bytes[0] != '[')
		return sampled_read_process(samples, json, range);
	processes = ops_json_walk(json.bytes, json.size);
	while (done && ops_json_next_element(&processes, &process))
		done = sampled_read_process(samples, process, range);
	return done;
}

void ops_python_samples_release(struct ops_python_samples *samples)
{
	OPS_ARRAY_RELEASE(&samples->functions);
	OPS_ARRAY_RELEASE(&samples->stacks);
	OPS_ARRAY_RELEASE(&samples->samples);
	ops_buffer_release(&samples->texts);
}

/* --- the program's frames --------------------------------------------------------------------------------------------- */

uint32_t *ops_sampled_program_frames(const struct ops_python_samples *samples)
{
	uint8_t *imports = ops_alloc_zeroed(samples->stacks.count + 1, 1);
	uint32_t *result = imports ? ops_alloc_none(samples->stacks.count + 1) : NULL;

	/* Stacks come after those of their callers. */
	for (uint32_t i = 0; result && i < samples->stacks.count; i++) {
		const struct ops_sampled_stack *stack = &samples->stacks.items[i];
		struct ops_string file = samples->functions.items[stack->function].file;

		imports[i] = (stack->caller != OPS_NONE && imports[stack->caller]) || ops_string_starts(file, "<frozen importlib");
		if (!imports[i] && file.size && stack->line && !ops_file_is_library(file))
			result[i] = i;
		else if (stack->caller != OPS_NONE)
			result[i] = result[stack->caller];
	}
	ops_free(imports);
	return result;
}

/* --- waits ----------------------------------------------------------------------------------------------------------- */

void ops_sampled_frame_append(struct ops_buffer *out, const struct ops_python_samples *samples, const struct ops_sampled_stack *stack)
{
	const struct ops_sampled_function *function = &samples->functions.items[stack->function];

	ops_buffer_append(out, function->file.bytes, function->file.size);
	if (function->file.size)
		ops_buffer_printf(out, "(%u): ", stack->line);
	ops_buffer_append(out, function->name.bytes, function->name.size);
}

/* Returns, by stack, 1 if one of its functions only waits: for samples without a state. Stacks come after those of their callers. */
static uint8_t *find_blocked_stacks(const struct ops_python_samples *samples)
{
	uint8_t *blocked = ops_alloc_zeroed(samples->stacks.count + 1, 1);
	struct ops_buffer text = {0};

	for (size_t i = 0; blocked && !text.failed && i < samples->stacks.count; i++) {
		const struct ops_sampled_stack *stack = &samples->stacks.items[i];

		text.size = 0;
		ops_sampled_frame_append(&text, samples, stack);
		blocked[i] = (stack->caller != OPS_NONE && blocked[stack->caller]) ||
		             ops_blocking_of((struct ops_string){ops_buffer_text(&text), text.size}) != OPS_BLOCKING_NONE;
	}
	if (text.failed) {
		ops_free(blocked);
		blocked = NULL;
	}
	ops_buffer_release(&text);
	return blocked;
}

static bool sample_waits(const struct ops_python_sample *sample, const uint8_t *blocked)
{
	return sample->state == OPS_THREAD_STATES ? blocked[sample->stack] : ops_thread_state_waits(sample->state);
}

static bool is_worker_loop(const struct ops_python_samples *samples, uint32_t stack)
{
	const struct ops_sampled_function *function = &samples->functions.items[samples->stacks.items[stack].function];

	return ops_is_worker_loop(function->file, function->name);
}

/* Finds the loop of a worker, and whether a call in it only waits. */
static void sampled_find_workers(const struct ops_python_samples *samples, const uint8_t *blocked, uint8_t *workers)
{
	/* Stacks come after those of their callers. */
	for (size_t i = 0; i < samples->stacks.count; i++) {
		uint32_t caller = samples->stacks.items[i].caller;

		if (is_worker_loop(samples, (uint32_t)i))
			workers[i] = OPS_SAMPLED_WORKS;
		else if (caller != OPS_NONE && workers[caller] == OPS_SAMPLED_WORKS && blocked[i] && is_worker_loop(samples, caller))
			workers[i] = OPS_SAMPLED_IDLES;
		else if (caller != OPS_NONE)
			workers[i] = workers[caller];
	}
}

uint8_t *ops_sampled_workers(const struct ops_python_samples *samples)
{
	uint8_t *blocked = find_blocked_stacks(samples);
	uint8_t *workers = blocked ? ops_alloc_zeroed(samples->stacks.count + 1, 1) : NULL;

	if (workers)
		sampled_find_workers(samples, blocked, workers);
	ops_free(blocked);
	return workers;
}

uint8_t *ops_python_sample_waits(const struct ops_python_samples *samples, const struct ops_trace *trace)
{
	const struct ops_helper_waits *waits = ops_helper_waits_of(trace);
	uint8_t *blocked = waits ? find_blocked_stacks(samples) : NULL;
	uint8_t *workers = blocked ? ops_alloc_zeroed(samples->stacks.count + 1, 1) : NULL;
	uint8_t *result = workers ? ops_alloc_zeroed(samples->samples.count + 1, 1) : NULL;
	bool is_helper = false;

	if (result)
		sampled_find_workers(samples, blocked, workers);
	for (size_t i = 0; result && i < samples->samples.count; i++) {
		const struct ops_python_sample *sample = &samples->samples.items[i];

		if (!i || sample->tid != sample[-1].tid)
			is_helper = ops_is_helper(waits, trace, sample->tid);
		result[i] = workers[sample->stack] == OPS_SAMPLED_IDLES || (is_helper && sample_waits(sample, blocked));
	}
	ops_free(workers);
	ops_free(blocked);
	return result;
}

/* --- rows ------------------------------------------------------------------------------------------------------------ */

/* Finds the rows of samples `from` to `to` - 1, all of one thread, on a track of it. */
static void find_rows_of_samples(const struct ops_python_samples *samples, size_t from, size_t to, const struct ops_events *events,
                                 const uint32_t *rows, size_t count, uint32_t *ret_rows)
{
	uint32_t current = OPS_NONE;
	size_t next = 0;

	for (size_t i = from; i < to; i++) {
		int64_t time_ns = samples->samples.items[i].time_ns;

		for (; next < count && events->start_ns[rows[next]] <= time_ns; next++)
			if (ops_event_nests(events, rows[next]))
				current = rows[next];
		while (current != OPS_NONE && events->end_ns[current] <= time_ns)
			current = events->parent[current];
		if (current != OPS_NONE)
			ret_rows[i] = current;
	}
}

uint32_t *ops_python_sample_rows(const struct ops_python_samples *samples, const struct ops_trace *trace)
{
	size_t track_count, count = samples->samples.count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &track_count);
	uint32_t *result = ops_alloc_none(count + 1);
	struct ops_track_rows by_track;
	bool done = ops_track_rows_init(&by_track, trace) && result;

	for (size_t from = 0, to; done && from < count; from = to) {
		int64_t tid = samples->samples.items[from].tid;

		for (to = from; to < count && samples->samples.items[to].tid == tid; to++);
		for (size_t track = 0; track < track_count; track++)
			if (tracks[track].kind == OPS_TRACK_THREAD && tracks[track].tid == tid)
				find_rows_of_samples(samples, from, to, ops_trace_events(trace), by_track.rows + by_track.first[track],
				                     by_track.first[track + 1] - by_track.first[track], result);
	}
	ops_track_rows_release(&by_track);
	if (!done) {
		ops_free(result);
		return NULL;
	}
	return result;
}
