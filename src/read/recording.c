/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts a recording to a trace. The slots of every thread are in order of time; they are merged slot by slot, and each block
 * is released as soon as its last slot has been read, so that blocks and columns together take little more memory than one copy.
 * If memory runs out, the recording keeps the results of the released blocks, and the next attempt continues:
 *
 *     share ─▶ lane (head slot, its times) ─┐
 *     share ─▶ lane                         ├─ heap by (start, longest first) ─▶ builder
 *     share ─▶ lane                        ─┘
 */
#include <opstrobe/read.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/search.h"
#include "read/recording_slots.h"
#include "read/recording_window.h"
#include "trace/names.h"

/* --- lanes ---------------------------------------------------------------------------------------------------------- */

/* Sorts torch's threads by their number, then the others in order of creation. */
static int compare_lanes(const void *a, const void *b)
{
	const struct ops_share *left = ((const struct recording_lane *)a)->share;
	const struct ops_share *right = ((const struct recording_lane *)b)->share;

	if (left->torch_number != right->torch_number)
		return left->torch_number - 1 < right->torch_number - 1 ? -1 : 1; /* 0 comes last */
	return left->number < right->number ? -1 : left->number > right->number;
}

static int recording_compare_numbers(const void *a, const void *b, void *lanes)
{
	uint32_t left = ((const struct recording_lane *)lanes)[*(const uint32_t *)a].share->number;
	uint32_t right = ((const struct recording_lane *)lanes)[*(const uint32_t *)b].share->number;

	return left < right ? -1 : left > right;
}

uint32_t recording_track_of(const struct recording_reader *reader, uint32_t number)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, reader->lane_count, mid, reader->lanes[reader->by_number[mid]].share->number < number);
	if (low < reader->lane_count && reader->lanes[reader->by_number[low]].share->number == number)
		return reader->lanes[reader->by_number[low]].track;
	return OPS_NONE;
}

/* Adds the thread's names to the trace's strings. */
static bool translate_names(struct recording_reader *reader, struct recording_lane *lane)
{
	const struct ops_share *share = lane->share;

	lane->names = ops_realloc_array(NULL, share->names.count + 1, sizeof(*lane->names));
	if (!lane->names)
		return false;
	for (uint32_t i = 0; i < share->names.count; i++) {
		struct ops_name ids = ops_share_name(share, i + 1);
		const struct ops_intern_entry *first = &share->texts.entries[ids.first];
		struct recording_name *name = &lane->names[i];

		name->first = ops_builder_string(reader->builder, first->bytes, first->size);
		name->second = OPS_NONE;
		if (ids.second != OPS_INTERN_NONE)
			name->second = ops_builder_string(reader->builder, share->texts.entries[ids.second].bytes,
			                                  share->texts.entries[ids.second].size);
		name->wrapper = ops_is_engine_name((struct ops_string){first->bytes, first->size});
	}
	return !ops_builder_failed(reader->builder);
}

static int64_t recording_pid(const struct recording_reader *reader)
{
	return reader->recording->recovered ? reader->recording->recovered->pid : getpid();
}

/* A thread that only samples others is not part of the program: it has no track. */
static bool is_sampler(const struct ops_share *share)
{
	const struct ops_block *block = share->blocks;

	for (; block; block = block->next)
		for (uint32_t i = 0; i < block->count; i++)
			if (block->slots[i].kind != OPS_SLOT_SAMPLE)
				return false;
	return share->blocks && share->blocks->count;
}

static bool open_lane(struct recording_reader *reader, struct recording_lane *lane)
{
	const struct ops_share *share = lane->share;
	struct ops_track track = {.kind = OPS_TRACK_THREAD, .pid = recording_pid(reader), .tid = share->tid};

	lane->wrapper = OPS_NONE;
	if (is_sampler(share)) {
		lane->track = OPS_NONE;
		return true;
	}
	if (share->name)
		track.name = ops_builder_string(reader->builder, share->name, share->name_size);
	lane->turn = (struct recording_turn){.tid = share->tid, .coroutine = OPS_NONE};
	lane->track = ops_builder_track(reader->builder, &track);
	if (share->torch_number > reader->number_max)
		reader->number_max = share->torch_number;
	return translate_names(reader, lane) && recording_steps_find(&lane->borders, share) &&
	       recording_devices_thread(&reader->devices, share->tid, lane->track, &lane->ranges);
}

static bool open_lanes(struct recording_reader *reader)
{
	size_t count = reader->recording->share_count;
	struct ops_share *share = reader->recording->shares;

	reader->lanes = ops_alloc_zeroed(count + 1, sizeof(*reader->lanes));
	reader->by_number = ops_realloc_array(NULL, count + 1, sizeof(*reader->by_number));
	reader->heap = ops_realloc_array(NULL, count + 1, sizeof(struct recording_lane *));
	if (!reader->lanes || !reader->by_number || !reader->heap)
		return false;
	for (; share; share = share->next)
		reader->lanes[reader->lane_count++].share = share;
	qsort(reader->lanes, count, sizeof(*reader->lanes), compare_lanes);
	for (uint32_t i = 0; i < count; i++) {
		reader->by_number[i] = i;
		if (!open_lane(reader, &reader->lanes[i]))
			return false;
	}
	qsort_r(reader->by_number, count, sizeof(*reader->by_number), recording_compare_numbers, reader->lanes);
	return true;
}

/* Threads on which torch never ran get numbers above all numbers that torch assigned, even to threads that are not part of the
 * recording, because a backward operator may refer to any of them. Returns the last number. */
static uint32_t recording_number_tracks(struct recording_reader *reader)
{
	uint32_t number = reader->number_max;

	for (size_t i = 0; i < reader->lane_count; i++) {
		const struct recording_lane *lane = &reader->lanes[i];
		bool own = lane->share->torch_number &&
		           (i == 0 || lane->share->torch_number != lane[-1].share->torch_number);

		if (lane->track != OPS_NONE)
			ops_builder_number_track(reader->builder, lane->track, own ? lane->share->torch_number : ++number);
	}
	for (size_t i = 0; i < reader->devices.threads.count; i++)
		if (!reader->devices.threads.items[i].ranges)
			ops_builder_number_track(reader->builder, reader->devices.threads.items[i].track, ++number);
	return number;
}

/* --- merge ---------------------------------------------------------------------------------------------------------- */

static int64_t to_ns(const struct recording_reader *reader, uint64_t ticks)
{
	/* A thread may see the stop a little late. */
	return ticks < reader->recording->stop.ticks ? ops_clock_to_ns(&reader->clock, ticks) : reader->stop_ns;
}

/* Computes the times of the lane's head. Slots that are open at the stop, or end later, end with the session. */
static void load_head(const struct recording_reader *reader, struct recording_lane *lane)
{
	const struct ops_slot *slot = lane->slot;
	uint64_t start_ticks = slot->start_ticks, end_ticks;

	if (slot->kind == OPS_SLOT_RANGE && (slot->flags & OPS_SLOT_ADDED))
		start_ticks = recording_steps_move(&lane->borders, start_ticks);
	lane->start_ns = lane->end_ns = to_ns(reader, start_ticks);
	lane->unfinished = false;
	if (slot->kind != OPS_SLOT_OP && slot->kind != OPS_SLOT_RANGE && slot->kind != OPS_SLOT_PYTHON &&
	    slot->kind != OPS_SLOT_MODULE)
		return;
	end_ticks = ops_slot_end(slot);
	if (slot->flags & OPS_SLOT_ADDED)
		end_ticks = recording_steps_move(&lane->borders, end_ticks);
	lane->unfinished = end_ticks == 0 || end_ticks > reader->recording->stop.ticks;
	if (lane->unfinished)
		lane->end_ns = reader->stop_ns;
	else if (end_ticks > start_ticks)
		lane->end_ns = to_ns(reader, end_ticks);
}

/* Makes the next slot the head. Returns false at the end of the lane. A block is released after its last slot. */
static bool next_slot(struct recording_lane *lane)
{
	struct ops_block *block = lane->share->blocks;

	if (lane->left > 1) {
		lane->left--;
		lane->slot++;
		return true;
	}
	if (lane->slot) {
		ops_share_drop_block(lane->share);
		block = lane->share->blocks;
	}
	while (block && block->count == 0) {
		ops_share_drop_block(lane->share);
		block = lane->share->blocks;
	}
	if (!block)
		return false;
	lane->slot = block->slots;
	lane->left = block->count;
	return true;
}

/* Like next_slot, but skips slots that are outside of the window. */
static bool recording_advance(struct recording_reader *reader, struct recording_lane *lane)
{
	while (next_slot(lane)) {
		load_head(reader, lane);
		if (recording_window_clip(reader, lane))
			return true;
	}
	return false;
}

static bool lane_before(const struct recording_lane *a, const struct recording_lane *b)
{
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns;
	return a->end_ns != b->end_ns ? a->end_ns > b->end_ns : a->track < b->track;
}

/* Lets the lane at `at` sink to its position in the heap. */
static void sink_lane(struct recording_reader *reader, size_t at)
{
	struct recording_lane *lane = reader->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < reader->heap_count && lane_before(reader->heap[child + 1], reader->heap[child]))
			child++;
		if (child >= reader->heap_count || !lane_before(reader->heap[child], lane))
			break;
		reader->heap[at] = reader->heap[child];
		at = child;
	}
	reader->heap[at] = lane;
}

static void fill_heap(struct recording_reader *reader)
{
	for (size_t i = 0; i < reader->lane_count; i++)
		if (recording_advance(reader, &reader->lanes[i]))
			reader->heap[reader->heap_count++] = &reader->lanes[i];
	for (size_t i = reader->heap_count; i-- > 0;)
		sink_lane(reader, i);
}

/* Returns false if out of memory. The next attempt continues with the head of the heap. */
static bool merge_lanes(struct recording_reader *reader)
{
	while (reader->heap_count) {
		if (reader->devices.next_call < reader->devices.call_count &&
		    !recording_devices_until(&reader->devices, reader->heap[0]->start_ns))
			return false;
		recording_read_slot(reader, reader->heap[0]);
		if (recording_out_of_memory(reader))
			return false;
		if (!recording_advance(reader, reader->heap[0]))
			reader->heap[0] = reader->heap[--reader->heap_count];
		sink_lane(reader, 0);
	}
	return recording_devices_until(&reader->devices, INT64_MAX);
}

/* --- conversion ----------------------------------------------------------------------------------------------------- */

static void set_info(struct recording_reader *reader)
{
	const struct ops_recovered *recovered = reader->recording->recovered;
	char host[256];
	struct ops_trace_info info = {
		.start_ns = recording_window_start_ns(reader),
		.stop_ns = reader->stop_ns,
		.pid = recording_pid(reader),
		.lost = reader->recording->lost + reader->lost +
		        (reader->recording->activities ? reader->recording->activities->lost : 0),
		.host_name = gethostname(host, sizeof(host)) == 0 ? host : "",
		.process_name = program_invocation_short_name,
	};

	host[sizeof(host) - 1] = '\0';
	if (recovered) {
		info.host_name = recovered->host_name;
		info.process_name = recovered->process_name;
	}
	ops_builder_info(reader->builder, &info);
}

/* Returns whether there is memory to read all blocks; checked before the first one is released. The columns are allocated already. */
static bool has_memory(const struct ops_recording *recording)
{
	uint64_t bytes = 0;

	for (const struct ops_share *share = recording->shares; share; share = share->next)
		for (const struct ops_block *block = share->blocks; block; block = block->next)
			bytes += block->bytes;
	return ops_recording_has_memory(bytes);
}

static void release_lanes(struct recording_reader *reader)
{
	for (size_t i = 0; i < reader->lane_count; i++) {
		ops_free(reader->lanes[i].names);
		ops_open_calls_release(&reader->lanes[i].calls);
		recording_ranges_release(&reader->lanes[i].ranges);
		OPS_ARRAY_RELEASE(&reader->lanes[i].turn.open);
		OPS_ARRAY_RELEASE(&reader->lanes[i].borders.list);
	}
	reader->lane_count = 0;
	ops_called_modules_release(&reader->modules);
	ops_called_functions_release(&reader->functions);
	ops_free(reader->lanes);
	ops_free(reader->by_number);
	ops_free(reader->heap);
	reader->modules = (struct ops_called_modules){0};
	reader->functions = (struct ops_called_functions){0};
	reader->lanes = NULL;
	reader->by_number = NULL;
	reader->heap = NULL;
	ops_buffer_release(&reader->text);
}

static void reader_free(void *reading)
{
	struct recording_reader *reader = reading;

	if (!reader)
		return;
	release_lanes(reader);
	recording_coroutines_release(&reader->coroutines);
	recording_devices_release(&reader->devices);
	recording_samples_release(&reader->samples);
	ops_builder_free(reader->builder);
	ops_trace_unref(reader->trace);
	ops_free(reader);
}

/* Prepares everything that precedes the first slot. */
static bool recording_prepare(struct recording_reader *reader)
{
	const struct ops_activities *activities = reader->recording->activities;

	reader->coroutines.builder = reader->builder;
	if (!reader->builder ||
	    !recording_devices_init(&reader->devices, reader->recording, &reader->clock, reader->builder) ||
	    !open_lanes(reader) || !ops_called_modules_init(&reader->modules, reader->recording, reader->builder) ||
	    !ops_called_functions_init(&reader->functions, reader->recording, reader->builder) ||
	    !recording_window_add_baseline(reader))
		return false;
	ops_builder_expect(reader->builder, reader->recording->slot_count + (activities ? activities->count : 0), 0);
	return !ops_builder_failed(reader->builder) && has_memory(reader->recording);
}

/* Returns the reader of a recording, created at the first attempt. Returns NULL if out of memory; then the recording is unchanged. */
static struct recording_reader *reader_of(struct ops_recording *recording)
{
	struct recording_reader *reader = recording->reading;

	if (reader)
		return reader;
	reader = ops_alloc_zeroed(1, sizeof(*reader));
	if (!reader)
		return NULL;
	reader->recording = recording;
	reader->clock = recording->recovered ? recording->recovered->clock
	                                     : ops_clock_map_between(recording->start, recording->stop);
	reader->stop_ns = ops_clock_to_ns(&reader->clock, recording->stop.ticks);
	reader->window_ns = recording->window_ticks ? ops_clock_to_ns(&reader->clock, recording->window_ticks) : INT64_MIN;
	reader->builder = ops_builder_new();
	if (!recording_prepare(reader)) {
		reader_free(reader);
		return NULL;
	}
	fill_heap(reader);
	recording->reading = reader;
	recording->free_reading = reader_free;
	return reader;
}

/* Adds everything that remains to the builder. Returns false if out of memory. */
static bool read_all(struct recording_reader *reader)
{
	uint32_t number;

	reader->failed = false;
	ops_buffer_release(&reader->text);
	ops_builder_retry(reader->builder);
	if (!reader->merged) {
		if (!merge_lanes(reader))
			return false;
		reader->merged = true;
		reader->mark = ops_builder_mark(reader->builder);
	}
	ops_builder_rewind(reader->builder, &reader->mark);
	if (!recording_devices_finish(&reader->devices))
		return false;
	number = recording_number_tracks(reader);
	if (!recording_coroutines_finish(&reader->coroutines, recording_pid(reader), &number))
		return false;
	set_info(reader);
	if (recording_out_of_memory(reader))
		return false;
	reader->taken = true;
	release_lanes(reader);
	return true;
}

/* Each step is done once. If it fails for lack of memory, the next attempt continues with it. */
static enum ops_code recording_make_trace(struct recording_reader *reader, struct ops_error *error)
{
	enum ops_code code = OPS_OK;

	if (!reader->taken && !read_all(reader))
		return ops_fault_memory(error);
	if (!reader->trace)
		code = ops_builder_try_finish(&reader->builder, &reader->trace, error);
	if (!code)
		code = recording_samples_describe(&reader->samples, reader->trace, error);
	return code ? code : recording_devices_describe(&reader->devices, reader->trace, error);
}

enum ops_code ops_trace_from_recording(struct ops_recording *recording, struct ops_trace **ret_trace, struct ops_error *error)
{
	struct recording_reader *reader = reader_of(recording);
	enum ops_code code = reader ? recording_make_trace(reader, error) : ops_fault_memory(error);

	if (code)
		return ops_fault_context(error, code, "cannot make a trace of the recording");
	*ret_trace = reader->trace;
	reader->trace = NULL;
	ops_recording_free(recording);
	return OPS_OK;
}
