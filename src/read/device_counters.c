/* SPDX-License-Identifier: Apache-2.0
 *
 * The counters of the devices of a recording, as a separate process for each device, as in torch's files.
 */
#include "base/alloc.h"
#include "read/recording_devices.h"

/* Where torch's viewers expect them: after everything else. */
#define COUNTERS_SORT_INDEX 100

static uint32_t device_counters_counter_track(struct recording_devices *devices, uint16_t device)
{
	uint32_t number = ops_intern_add(&devices->counter_keys, &device, sizeof(device));
	struct ops_buffer *text = &devices->text;
	uint32_t *track, pid;

	if (number < devices->counter_tracks.count)
		return devices->counter_tracks.items[number];
	text->size = 0;
	ops_buffer_printf(text, "GPU %u Counters", device);
	track = number == OPS_INTERN_NONE || text->failed ? NULL : OPS_ARRAY_PUSH(&devices->counter_tracks);
	if (!track)
		return OPS_NONE;
	pid = ops_builder_string(devices->builder, text->bytes, text->size);
	ops_builder_process(devices->builder, &(struct ops_process){
						      .flags = OPS_TRACK_PID_TEXT,
						      .pid = pid,
						      .name = pid,
						      .labels = OPS_NONE,
						      .has_sort_index = 1,
						      .sort_index = COUNTERS_SORT_INDEX + device,
					      });
	return *track = ops_builder_track(devices->builder, &(struct ops_track){.kind = OPS_TRACK_STREAM,
	                                                                        .flags = OPS_TRACK_PID_TEXT,
	                                                                        .pid = pid});
}

bool recording_devices_add_counters(struct recording_devices *devices)
{
	ops_intern_release(&devices->counter_keys); /* from a failed attempt */
	OPS_ARRAY_RELEASE(&devices->counter_tracks);
	for (size_t i = 0; i < devices->activities->count; i++) {
		const struct ops_activity *activity = ops_activity_at(devices->activities, i);
		struct ops_new_event times;
		struct ops_counter_record counter = {.value = activity->value};

		if (!ops_activity_is_counter(activity))
			continue;
		recording_devices_times(devices, activity, &times);
		counter.time_ns = times.start_ns;
		counter.name = devices->strings[activity->name];
		counter.track = device_counters_counter_track(devices, activity->device);
		if (counter.track == OPS_NONE)
			return false;
		ops_builder_counter(devices->builder, &counter);
	}
	return true;
}
