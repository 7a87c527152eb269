/* SPDX-License-Identifier: Apache-2.0
 *
 * Host calls related to devices, and the operators and annotations around them; see recording_devices.h.
 */
#include "read/recording_devices.h"

#include <math.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/order.h"

#define RATE_MAX 2 /* of two clocks of a machine: beyond this, one of them is wrong */

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

static bool translate_texts(struct recording_devices *devices)
{
	const struct ops_intern *texts = &devices->activities->texts;

	devices->strings = ops_realloc_array(NULL, texts->count, sizeof(*devices->strings));
	for (size_t i = 0; devices->strings && i < texts->count; i++)
		devices->strings[i] =
			ops_builder_string(devices->builder, texts->entries[i].bytes, texts->entries[i].size);
	return devices->strings && !ops_builder_failed(devices->builder);
}

/* Returns the possible error of the difference of two readings of a clock's offset. */
static double offset_error_ns(const struct ops_activities *activities, const struct ops_clock_map *clock)
{
	return (double)(activities->start.width_ticks + activities->stop.width_ticks) * clock->ns_per_tick / 2;
}

/* Both clocks count nanoseconds: their rates are equal unless they have drifted apart by more than the error of the readings. */
static void tie_clocks(struct recording_devices *devices, const struct ops_clock_map *clock)
{
	const struct ops_activity_clock *start = &devices->activities->start;
	const struct ops_activity_clock *stop = &devices->activities->stop;
	int64_t wall_ns, device_ns;

	devices->from_wall_ns = ops_clock_to_ns(clock, start->ticks);
	wall_ns = ops_clock_to_ns(clock, stop->ticks) - devices->from_wall_ns;
	devices->rate = 1;
	if (!__builtin_sub_overflow(stop->device_ns, start->device_ns, &device_ns) && device_ns > 0 && wall_ns > 0 &&
	    fabs((double)wall_ns - (double)device_ns) > offset_error_ns(devices->activities, clock))
		devices->rate = (double)wall_ns / (double)device_ns;
	if (devices->rate > RATE_MAX || devices->rate < 1.0 / RATE_MAX)
		devices->rate = 1;
}

static bool recording_devices_starts_before(const void *context, uint32_t a, uint32_t b)
{
	return ops_activity_at(context, a)->start_ns < ops_activity_at(context, b)->start_ns;
}

static bool order_calls(struct recording_devices *devices)
{
	const struct ops_activities *activities = devices->activities;

	devices->calls = ops_realloc_array(NULL, activities->count + 1, sizeof(*devices->calls));
	for (size_t i = 0; devices->calls && i < activities->count; i++)
		if (ops_activity_is_call(ops_activity_at(activities, i)))
			devices->calls[devices->call_count++] = (uint32_t)i;
	return devices->calls && OPS_ARRAY_RESERVE(&devices->met, devices->call_count) &&
	       ops_sort_rows(devices->calls, devices->call_count, recording_devices_starts_before, activities);
}

bool recording_devices_init(struct recording_devices *devices, const struct ops_recording *recording,
                            const struct ops_clock_map *clock, struct ops_builder *builder)
{
	*devices = (struct recording_devices){
		.activities = recording->activities, .builder = builder, .last_thread = OPS_INTERN_NONE};
	if (!devices->activities)
		return true;
	tie_clocks(devices, clock);
	return translate_texts(devices) && order_calls(devices);
}

void recording_devices_release(struct recording_devices *devices)
{
	ops_free(devices->strings);
	ops_free(devices->calls);
	ops_intern_release(&devices->tids);
	OPS_ARRAY_RELEASE(&devices->threads);
	OPS_ARRAY_RELEASE(&devices->annotations);
	OPS_ARRAY_RELEASE(&devices->met);
	ops_intern_release(&devices->streams);
	OPS_ARRAY_RELEASE(&devices->stream_list);
	device_graphs_release(&devices->graphs);
	ops_intern_release(&devices->counter_keys);
	OPS_ARRAY_RELEASE(&devices->counter_tracks);
	ops_intern_release(&devices->span_keys);
	OPS_ARRAY_RELEASE(&devices->latest_spans);
	OPS_ARRAY_RELEASE(&devices->spans);
	ops_buffer_release(&devices->metadata);
	ops_buffer_release(&devices->text);
}

/* --- threads and their open ranges --------------------------------------------------------------------------------- */

bool recording_devices_thread(struct recording_devices *devices, int64_t tid, uint32_t track,
                              struct recording_ranges *ranges)
{
	struct recording_thread *thread;
	uint32_t number;

	if (!devices->activities)
		return true;
	number = ops_intern_add(&devices->tids, &tid, sizeof(tid));
	if (number < devices->threads.count)
		return true; /* the number of an ended thread was reused: which of the two made a call is unknown */
	thread = number == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&devices->threads);
	if (thread)
		*thread = (struct recording_thread){track, ranges};
	return thread != NULL;
}

/* Returns the thread that made a call. A thread that recorded nothing gets its track now. Returns NULL if out of memory. */
static const struct recording_thread *thread_of(struct recording_devices *devices, int64_t tid)
{
	uint32_t number = devices->last_thread;

	if (number == OPS_INTERN_NONE || devices->last_tid != tid)
		number = ops_intern_find(&devices->tids, &tid, sizeof(tid));
	if (number == OPS_INTERN_NONE || number == devices->threads.count) {
		const struct ops_track track = {.kind = OPS_TRACK_THREAD, .pid = getpid(), .tid = tid};
		uint32_t added;

		/* The track is added after everything else that can fail, because the next attempt would add another. */
		number = ops_intern_add(&devices->tids, &tid, sizeof(tid));
		if (number == OPS_INTERN_NONE || !OPS_ARRAY_RESERVE(&devices->threads, 1) ||
		    (added = ops_builder_track(devices->builder, &track)) == OPS_NONE)
			return NULL;
		devices->threads.items[devices->threads.count++] = (struct recording_thread){added, NULL};
	}
	devices->last_tid = tid;
	devices->last_thread = number;
	return &devices->threads.items[number];
}

uint32_t recording_devices_open(struct recording_devices *devices, struct recording_ranges *ranges,
                                struct ops_new_event *event, uint32_t collective)
{
	struct recording_range range = {.start_ns = event->start_ns, .end_ns = event->end_ns, .own_collective = collective};
	uint32_t row;

	if (!devices->activities)
		return ops_builder_event(devices->builder, event);
	if (!recording_ranges_reserve(ranges, &devices->annotations, event->start_ns))
		return OPS_NONE;
	event->id = devices->last_id + 1;
	row = ops_builder_event(devices->builder, event);
	if (row == OPS_NONE)
		return OPS_NONE;
	devices->last_id++;
	if ((event->flags & OPS_EVENT_ASYNC) || event->end_track != OPS_NONE)
		return row; /* encloses nothing */
	range.id = event->id;
	range.name = event->name;
	range.is_operator = event->kind == OPS_EVENT_CPU_OP;
	recording_ranges_add(ranges, &devices->annotations, &range);
	return row;
}

bool recording_devices_switch(struct recording_devices *devices, struct recording_ranges *ranges,
                              const struct recording_running *running, int64_t time_ns)
{
	return !devices->activities || recording_ranges_switch(ranges, &devices->annotations, running, time_ns);
}

/* --- calls ---------------------------------------------------------------------------------------------------------- */

/* Converts a time of the collector's clock to ns since the epoch; implausible times are clamped. */
static int64_t to_wall_ns(const struct recording_devices *devices, int64_t device_ns)
{
	int64_t since_start_ns, wall_ns;

	if (__builtin_sub_overflow(device_ns, devices->activities->start.device_ns, &since_start_ns) ||
	    since_start_ns > OPS_TIME_MAX_NS || since_start_ns < -OPS_TIME_MAX_NS)
		since_start_ns = device_ns < 0 ? -OPS_TIME_MAX_NS : OPS_TIME_MAX_NS;
	wall_ns = devices->from_wall_ns + (int64_t)((double)since_start_ns * devices->rate);
	return wall_ns > 0 ? wall_ns : 0;
}

void recording_devices_times(const struct recording_devices *devices, const struct ops_activity *activity,
                             struct ops_new_event *event)
{
	event->start_ns = to_wall_ns(devices, activity->start_ns);
	event->end_ns = to_wall_ns(devices, activity->end_ns);
	if (event->end_ns < event->start_ns)
		event->end_ns = event->start_ns;
}

/* Finds the innermost operator or range around a call. Returns false if out of memory. */
static bool recording_devices_around(struct recording_devices *devices, const struct recording_thread *thread, int64_t time_ns,
                                     const struct recording_range **ret_around)
{
	*ret_around = NULL;
	return !thread->ranges || recording_ranges_find(thread->ranges, &devices->annotations, time_ns, ret_around);
}

static bool recording_devices_read_call(struct recording_devices *devices, const struct ops_activity *activity,
                                        struct ops_new_event *event)
{
	const struct recording_thread *thread = thread_of(devices, activity->thread);
	const struct recording_range *around;
	struct recording_call call = {.correlation = activity->correlation, .annotation = OPS_NONE, .collective = OPS_NONE};

	if (!thread || !recording_devices_around(devices, thread, event->start_ns, &around))
		return false;
	if (around) {
		call.operator_id = around->operator_id;
		call.annotation = around->annotation;
		call.collective = around->collective;
	}
	event->track = thread->track;
	event->id = call.operator_id;
	call.row = ops_builder_event(devices->builder, event);
	if (call.row == OPS_NONE)
		return false;
	if (activity->correlation)
		devices->met.items[devices->met.count++] = call; /* order_calls reserved room for all calls */
	return true;
}

/* Reads a graph node, which represents the operator that captured it or its original. */
static bool recording_devices_read_node(struct recording_devices *devices, const struct ops_activity *activity, int64_t time_ns)
{
	const struct recording_thread *thread = thread_of(devices, activity->thread);
	const struct recording_range *around;

	return thread && recording_devices_around(devices, thread, time_ns, &around) &&
	       device_graphs_add_node(&devices->graphs, activity->correlation, activity->bytes,
	                              around ? around->operator_name : 0);
}

bool recording_devices_until(struct recording_devices *devices, int64_t time_ns)
{
	static const uint8_t kinds[OPS_ACTIVITY_KIND_COUNT] = {
		[OPS_ACTIVITY_RUNTIME] = OPS_EVENT_RUNTIME,
		[OPS_ACTIVITY_DRIVER] = OPS_EVENT_DRIVER,
		[OPS_ACTIVITY_OVERHEAD] = OPS_EVENT_OVERHEAD,
		[OPS_ACTIVITY_NVTX] = OPS_EVENT_USER_ANNOTATION,
	};

	for (; devices->next_call < devices->call_count; devices->next_call++) {
		const struct ops_activity *activity = ops_activity_at(devices->activities, devices->calls[devices->next_call]);
		struct ops_new_event event = {
			OPS_NEW_EVENT,
			.kind = kinds[activity->kind],
			.name = devices->strings[activity->name],
		};
		bool taken;

		if (activity->correlation)
			event.correlation = (int64_t)activity->correlation;
		if (activity->details)
			event.extra = devices->strings[activity->details];
		recording_devices_times(devices, activity, &event);
		if (event.start_ns >= time_ns)
			break;
		if (activity->kind == OPS_ACTIVITY_GRAPH_NODE)
			taken = recording_devices_read_node(devices, activity, event.start_ns);
		else if (activity->kind == OPS_ACTIVITY_GRAPH_DEPENDENCY)
			taken = device_graphs_add_edge(&devices->graphs, activity->bytes, activity->correlation);
		else
			taken = recording_devices_read_call(devices, activity, &event);
		if (!taken)
			return false;
	}
	return true;
}

bool recording_devices_finish(struct recording_devices *devices)
{
	return !devices->activities ||
	       (device_graphs_finish(&devices->graphs, devices->activities) && recording_devices_add_work(devices) &&
	        recording_devices_add_counters(devices));
}
