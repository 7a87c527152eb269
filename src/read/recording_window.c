/* SPDX-License-Identifier: Apache-2.0
 *
 * The last part of a recording (recording_window.h).
 */
#include "read/recording_window.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/map.h"

#define BASELINE_DEVICES 64u /* more than a machine has; the last one counts for all others */

int64_t recording_window_start_ns(const struct recording_reader *reader)
{
	if (reader->window_ns != INT64_MIN)
		return reader->window_ns - 1;
	return ops_clock_to_ns(&reader->clock, reader->recording->start.ticks);
}

bool recording_window_clip(const struct recording_reader *reader, struct recording_lane *lane)
{
	lane->cut = false;
	if (OPS_LIKELY(lane->start_ns >= reader->window_ns))
		return true;
	switch (lane->slot->kind) {
	case OPS_SLOT_OP:
	case OPS_SLOT_RANGE:
	case OPS_SLOT_PYTHON:
	case OPS_SLOT_MODULE:
		if (lane->end_ns <= reader->window_ns)
			return false;
		lane->cut = true;
		lane->start_ns = reader->window_ns;
		return true;
	case OPS_SLOT_ROLE:
	case OPS_SLOT_CONTEXT: /* remain valid */
		lane->start_ns = lane->end_ns = recording_window_start_ns(reader);
		return true;
	default:
		return false;
	}
}

/* --- baseline ------------------------------------------------------------------------------------------------------- */

/* The last record of an address before the window. */
struct baseline_record {
	const struct ops_memory_slot *slot;
	uint32_t thread;
};

struct baseline {
	struct ops_map by_place; /* address and device → index in `records` */
	OPS_ARRAY(struct baseline_record) records;
	uint64_t window_ticks;
};

/* Returns false if out of memory. */
static bool note_slot(struct baseline *baseline, const struct ops_memory_slot *slot, uint32_t thread)
{
	uint32_t *index = ops_map_slot(&baseline->by_place, ops_memory_place(slot), UINT32_MAX);
	struct baseline_record *record;

	if (!index)
		return false;
	if (*index != UINT32_MAX) {
		record = &baseline->records.items[*index];
		if (slot->time_ticks < record->slot->time_ticks)
			return true;
	} else {
		record = OPS_ARRAY_PUSH(&baseline->records);
		if (!record)
			return false;
		*index = (uint32_t)(baseline->records.count - 1);
	}
	*record = (struct baseline_record){slot, thread};
	return true;
}

static bool note_blocks(struct baseline *baseline, const struct ops_block *block)
{
	for (; block; block = block->next) {
		for (uint32_t i = 0; i < block->count; i++) {
			const struct ops_memory_slot *slot = (const struct ops_memory_slot *)(const void *)&block->slots[i];

			if (slot->kind == OPS_SLOT_MEMORY && slot->time_ticks < baseline->window_ticks &&
			    !note_slot(baseline, slot, block->thread ? block->thread : slot->unused[0]))
				return false;
		}
	}
	return true;
}

static int baseline_compare(const void *a, const void *b)
{
	const struct ops_memory_slot *left = ((const struct baseline_record *)a)->slot;
	const struct ops_memory_slot *right = ((const struct baseline_record *)b)->slot;

	return left->time_ticks < right->time_ticks ? -1 : left->time_ticks > right->time_ticks;
}

/* The total of a device. */
struct baseline_device {
	uint16_t type;
	int16_t index;
	uint64_t allocated;
	uint64_t reserved;
	uint64_t later_bytes; /* of the records that have not been added yet */
};

struct baseline_devices {
	struct baseline_device items[BASELINE_DEVICES];
	size_t count;
};

static struct baseline_device *find_device(struct baseline_devices *devices, const struct ops_memory_slot *slot)
{
	for (size_t i = 0; i < devices->count; i++)
		if (devices->items[i].type == slot->device_type && devices->items[i].index == slot->device_index)
			return &devices->items[i];
	if (devices->count < BASELINE_DEVICES)
		devices->items[devices->count++] =
			(struct baseline_device){.type = slot->device_type, .index = slot->device_index};
	return &devices->items[devices->count - 1];
}

/* Adds the live allocations in order of time. The totals of the last record are those of its device at the start of the window. */
static void baseline_write(struct recording_reader *reader, const struct baseline *baseline)
{
	struct baseline_devices devices = {.count = 0};
	struct baseline_device *device;

	for (size_t i = 0; i < baseline->records.count; i++) {
		const struct ops_memory_slot *slot = baseline->records.items[i].slot;

		device = find_device(&devices, slot);
		device->allocated = slot->total_allocated;
		device->reserved = slot->total_reserved;
		device->later_bytes += slot->bytes > 0 ? (uint64_t)slot->bytes : 0;
	}
	for (size_t i = 0; i < baseline->records.count; i++) {
		const struct ops_memory_slot *slot = baseline->records.items[i].slot;
		uint32_t track = recording_track_of(reader, baseline->records.items[i].thread);
		struct ops_memory_record record = {
			.time_ns = recording_window_start_ns(reader),
			.address = slot->address,
			.bytes = slot->bytes,
			.track = track != OPS_NONE ? track : reader->lanes[0].track,
			.device_index = slot->device_index,
			.device_type = (uint8_t)slot->device_type,
		};

		if (slot->bytes <= 0)
			continue;
		device = find_device(&devices, slot);
		device->later_bytes -= (uint64_t)slot->bytes;
		record.total_allocated = device->allocated > device->later_bytes ? device->allocated - device->later_bytes : 0;
		record.total_reserved = device->reserved;
		if (record.track != OPS_NONE)
			ops_builder_memory(reader->builder, &record);
	}
}

bool recording_window_add_baseline(struct recording_reader *reader)
{
	struct baseline baseline = {.window_ticks = reader->recording->window_ticks};
	bool done;

	if (!baseline.window_ticks || !reader->lane_count)
		return true;
	done = note_blocks(&baseline, reader->recording->baseline);
	for (struct ops_share *share = reader->recording->shares; done && share; share = share->next)
		done = note_blocks(&baseline, share->blocks);
	if (done && baseline.records.count) {
		qsort(baseline.records.items, baseline.records.count, sizeof(*baseline.records.items), baseline_compare);
		baseline_write(reader, &baseline);
	}
	ops_map_release(&baseline.by_place);
	OPS_ARRAY_RELEASE(&baseline.records);
	return done;
}
