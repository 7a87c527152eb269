/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the slots of a recording; see recording_slots.h.
 */
#include "read/recording_slots.h"

#include <string.h>

#include <opstrobe/inputs.h>

#include "base/json.h"
#include "read/slot_values.h"
#include "trace/names.h"

/* at::RecordScope */
#define SCOPE_FUNCTION 0
#define SCOPE_BACKWARD_FUNCTION 1

/* Skips a slot because it is malformed, or because memory has run out. In the latter case the next attempt reads it again. */
static void skip_slot(struct recording_reader *reader)
{
	if (recording_out_of_memory(reader))
		reader->failed = true;
	else
		reader->lost++;
}

/* Finds the slot's name, and in `*ret_second` its overload name or argument text. */
static bool read_names(struct recording_reader *reader, struct recording_lane *lane, struct ops_payload *payload,
                       uint32_t *ret_name, uint32_t *ret_second)
{
	const struct ops_slot *slot = lane->slot;
	struct ops_string text;

	*ret_second = OPS_NONE;
	if (!(slot->flags & OPS_SLOT_NAME_INLINE)) {
		if (slot->name - 1 >= lane->share->names.count)
			return false;
		*ret_name = lane->names[slot->name - 1].first;
		*ret_second = lane->names[slot->name - 1].second;
		lane->named_wrapper = lane->names[slot->name - 1].wrapper;
		return true;
	}
	if (!ops_payload_text(payload, &text))
		return false;
	*ret_name = ops_builder_string(reader->builder, text.bytes, text.size);
	lane->named_wrapper = ops_is_engine_name(text);
	if (!(slot->flags & OPS_SLOT_HAS_ARGS))
		return true;
	if (!ops_payload_text(payload, &text))
		return false;
	*ret_second = ops_builder_string(reader->builder, text.bytes, text.size);
	return true;
}

/* Returns the description of a collective: the named values from its name on, which are the last ones. Within a text, the quotes
 * of this key would be escaped. */
static uint32_t find_collective(const struct recording_reader *reader)
{
	static const char key[] = "\"Collective name\":";
	const struct ops_buffer *text = &reader->text;
	const char *at = memmem(text->bytes, text->size, key, sizeof(key) - 1);

	return at ? ops_builder_string(reader->builder, at, text->size - (size_t)(at - text->bytes)) : OPS_NONE;
}

/* Reads named values. Those of counters and pairs are known once the slot is closed. */
static bool read_values(struct recording_reader *reader, struct recording_lane *lane, struct ops_payload *payload,
                        struct ops_new_event *event)
{
	const struct ops_pair_times pairs = {reader->recording->pair_times_ns, reader->recording->pair_count};
	struct ops_buffer *text = &reader->text;

	text->size = 0;
	if (!ops_payload_values(payload, !lane->unfinished, pairs, text) || text->failed)
		return false;
	if (!text->size)
		return true;
	event->extra = ops_builder_string(reader->builder, text->bytes, text->size);
	if (reader->devices.activities)
		lane->collective = find_collective(reader);
	return true;
}

/* Finds the text of a thread's id; OPS_NONE for 0. Returns false if there is none. */
static bool find_text(const struct recording_lane *lane, uint32_t id, uint32_t *ret_string)
{
	if (id > lane->share->names.count)
		return false;
	*ret_string = id ? lane->names[id - 1].first : OPS_NONE;
	return true;
}

/* Reads where the program made a call. The stack of an operator inside another one is that of the outer one. */
static bool recording_slots_read_caller(struct recording_lane *lane, struct ops_new_event *event)
{
	uint32_t caller = lane->slot->call_line;

	if (!(caller & OPS_CALL_STACK)) {
		event->call_line = ops_open_calls_line(&lane->calls, lane->start_ns, caller);
		return true;
	}
	if (event->kind == OPS_EVENT_CPU_OP && lane->start_ns < lane->operator_end_ns)
		return true;
	return event->call_stack != OPS_NONE || find_text(lane, caller & ~OPS_CALL_STACK, &event->call_stack);
}

/* Reads where in a script an operator runs. The modules are appended to the named values. */
static bool read_script(struct recording_reader *reader, const struct recording_lane *lane, struct ops_payload *payload,
                        struct ops_new_event *event)
{
	struct ops_string text;
	uint32_t ids[2], hierarchy;

	if (!ops_payload_read(payload, ids, sizeof(ids)) || !find_text(lane, ids[0], &event->call_stack) ||
	    !find_text(lane, ids[1], &hierarchy))
		return false;
	if (hierarchy == OPS_NONE)
		return true;
	if (!(lane->slot->flags & OPS_SLOT_HAS_VALUES))
		reader->text.size = 0;
	if (reader->text.size)
		ops_buffer_append_text(&reader->text, ",");
	ops_buffer_append_text(&reader->text, "\"Module Hierarchy\":");
	text = ops_builder_text(reader->builder, hierarchy);
	ops_json_string(&reader->text, text.bytes, text.size);
	event->extra = ops_builder_string(reader->builder, reader->text.bytes, reader->text.size);
	return !reader->text.failed;
}

/* Adds an input list with a text, which has no shape, as torch does. Returns false if out of memory. */
static bool add_args_as_inputs(struct recording_reader *reader, struct ops_new_event *event)
{
	static const struct {
		uint32_t count;
		struct ops_input_head head;
	} text = {1, {.tag = OPS_INPUT_NONE}};

	event->inputs = ops_builder_inputs(reader->builder, (const char *)&text, sizeof(text));
	return event->inputs != OPS_NONE;
}

/* Reads name, overload, argument text, named values and inputs. Returns false if the slot is malformed; it then counts as lost. */
static bool recording_slots_describe(struct recording_reader *reader, struct recording_lane *lane, struct ops_new_event *event)
{
	const struct ops_slot *slot = lane->slot;
	const struct ops_block *block = lane->share->blocks;
	struct ops_payload payload = {(const char *)block + slot->payload, slot->payload_bytes};
	uint32_t second;

	lane->collective = OPS_NONE;
	if ((uint64_t)slot->payload + slot->payload_bytes > block->bytes ||
	    !read_names(reader, lane, &payload, &event->name, &second))
		return false;
	if (slot->kind == OPS_SLOT_RANGE)
		event->args = second;
	else if (second != OPS_NONE)
		event->overload = second;
	if ((slot->flags & OPS_SLOT_HAS_VALUES) && !read_values(reader, lane, &payload, event))
		return false;
	if ((slot->flags & OPS_SLOT_HAS_SCRIPT) && !read_script(reader, lane, &payload, event))
		return false;
	if (slot->flags & OPS_SLOT_HAS_STORAGES) {
		struct ops_string storages;

		if (!ops_payload_text(&payload, &storages))
			return false;
		if (storages.size)
			event->storages = ops_builder_string(reader->builder, storages.bytes, storages.size);
	}
	if (!(slot->flags & OPS_SLOT_HAS_INPUTS))
		return event->args == OPS_NONE || !reader->recording->args_are_inputs || add_args_as_inputs(reader, event);
	event->inputs = ops_builder_inputs(reader->builder, payload.at, payload.size);
	if (event->inputs == OPS_NONE)
		return false;
	if (ops_inputs_count(payload.at, payload.size) == 0)
		event->inputs = OPS_NONE; /* as if inputs were not recorded, which is how torch shows operators without inputs */
	return true;
}

/* An evaluate_function gets the members of its backward node, if that follows on the same thread. */
static void complete_wrapper(struct recording_reader *reader, struct recording_lane *lane, uint32_t row)
{
	const struct ops_slot *slot = lane->slot;

	if (lane->wrapper != OPS_NONE && slot->kind == OPS_SLOT_OP && slot->scope == SCOPE_BACKWARD_FUNCTION)
		ops_builder_set_sequence(reader->builder, lane->wrapper, slot->sequence_nr, slot->forward_thread);
	lane->wrapper = OPS_NONE;
	if (slot->kind == OPS_SLOT_OP && slot->scope == SCOPE_FUNCTION && lane->named_wrapper)
		lane->wrapper = row;
}

static void recording_slots_read_event(struct recording_reader *reader, struct recording_lane *lane)
{
	const struct ops_slot *slot = lane->slot;
	struct ops_new_event event = {
		OPS_NEW_EVENT,
		.start_ns = lane->start_ns,
		.end_ns = lane->end_ns,
		.track = lane->track,
		.scope = slot->scope,
		.kind = slot->kind == OPS_SLOT_OP      ? OPS_EVENT_CPU_OP
		        : slot->kind == OPS_SLOT_RANGE ? OPS_EVENT_USER_ANNOTATION
		                                       : OPS_EVENT_CPU_INSTANT,
	};
	uint32_t row;

	if (!recording_slots_describe(reader, lane, &event) || !recording_slots_read_caller(lane, &event)) {
		skip_slot(reader);
		return;
	}
	if (slot->kind == OPS_SLOT_INSTANT) {
		ops_builder_event(reader->builder, &event);
		return;
	}
	event.sequence_nr = slot->sequence_nr < 0 ? -1 : slot->sequence_nr;
	event.forward_thread = slot->forward_thread;
	if (slot->forward_thread > reader->number_max)
		reader->number_max = slot->forward_thread;
	if (slot->flags & OPS_SLOT_ASYNC)
		event.flags |= OPS_EVENT_ASYNC;
	if (lane->cut)
		event.flags |= OPS_EVENT_CUT;
	if (lane->unfinished) {
		event.flags |= OPS_EVENT_UNFINISHED;
	} else if (slot->end_thread && slot->end_thread != lane->share->number) {
		event.flags |= OPS_EVENT_ASYNC;
		event.end_track = recording_track_of(reader, slot->end_thread);
	}
	row = recording_coroutines_reserve(&reader->coroutines, &lane->turn)
	              ? recording_devices_open(&reader->devices, &lane->ranges, &event, lane->collective)
	              : OPS_NONE;
	if (row == OPS_NONE) {
		reader->failed = true;
		return;
	}
	complete_wrapper(reader, lane, row);
	if (event.kind == OPS_EVENT_CPU_OP && event.call_stack != OPS_NONE && !(event.flags & OPS_EVENT_ASYNC) && !(slot->flags & OPS_SLOT_HELD))
		lane->operator_end_ns = lane->end_ns;
	if (!(event.flags & OPS_EVENT_ASYNC))
		recording_coroutines_open(&reader->coroutines, &lane->turn, &event, row, slot->flags & OPS_SLOT_HELD);
}

/* The following slots of the lane belong to another coroutine. */
static void switch_context(struct recording_reader *reader, struct recording_lane *lane)
{
	const struct ops_slot *slot = lane->slot;
	const struct ops_block *block = lane->share->blocks;
	struct ops_payload payload = {(const char *)block + slot->payload, slot->payload_bytes};

	struct recording_running running;

	if ((uint64_t)slot->payload + slot->payload_bytes > block->bytes || !recording_running_parse(payload, &running))
		skip_slot(reader);
	else if (!recording_coroutines_switch(&reader->coroutines, &lane->turn, &running, lane->start_ns) ||
	         !recording_devices_switch(&reader->devices, &lane->ranges, &running, lane->start_ns))
		reader->failed = true;
}

/* Reads a call of Python or of a module, which ends on the thread that began it. */
static void recording_slots_read_call(struct recording_reader *reader, struct recording_lane *lane)
{
	const struct ops_slot *slot = lane->slot;
	struct ops_new_event event = {
		OPS_NEW_EVENT,
		.start_ns = lane->start_ns,
		.end_ns = lane->end_ns,
		.track = lane->track,
		.kind = OPS_EVENT_PYTHON_FUNCTION,
		.flags = (uint16_t)((lane->unfinished ? OPS_EVENT_UNFINISHED : 0) | (lane->cut ? OPS_EVENT_CUT : 0)),
	};

	if (slot->flags & OPS_SLOT_DROPPED) {
		reader->failed |= !ops_open_calls_add_dropped(&lane->calls, lane->start_ns, lane->end_ns, slot->call_line);
		return;
	}
	if (!recording_slots_read_caller(lane, &event) ||
	    (slot->kind == OPS_SLOT_MODULE ? !ops_called_modules_describe(&reader->modules, slot->sequence_nr, &event)
	                                  : !ops_called_functions_describe(&reader->functions, slot->name, &event))) {
		skip_slot(reader);
		return;
	}
	if (!ops_open_calls_add(&lane->calls, &reader->functions, reader->builder, &event))
		reader->failed = true;
}

static void recording_slots_read_memory(struct recording_reader *reader, const struct recording_lane *lane)
{
	const struct ops_memory_slot *slot = (const struct ops_memory_slot *)(const void *)lane->slot;
	struct ops_memory_record record = {
		.time_ns = lane->start_ns,
		.address = slot->address,
		.bytes = slot->bytes,
		.total_allocated = slot->total_allocated,
		.total_reserved = slot->total_reserved,
		.track = lane->track,
		.device_index = slot->device_index,
		.device_type = (uint8_t)slot->device_type,
		.out_of_memory = slot->kind == OPS_SLOT_OOM,
	};

	ops_builder_memory(reader->builder, &record);
}

static void read_counter(struct recording_reader *reader, struct recording_lane *lane)
{
	struct ops_counter_record record = {.time_ns = lane->start_ns, .track = lane->track};
	struct ops_new_event event = {OPS_NEW_EVENT};

	if (!recording_slots_describe(reader, lane, &event)) {
		skip_slot(reader);
		return;
	}
	record.name = event.name;
	memcpy(&record.value, &lane->slot->sequence_nr, sizeof(record.value));
	ops_builder_counter(reader->builder, &record);
}

static void recording_slots_read_role(struct recording_reader *reader, struct recording_lane *lane)
{
	struct ops_role_record record = {.time_ns = lane->start_ns, .track = lane->track};
	struct ops_new_event event = {OPS_NEW_EVENT};
	struct ops_string storage;

	if (!recording_slots_describe(reader, lane, &event)) {
		skip_slot(reader);
		return;
	}
	storage = ops_builder_text(reader->builder, event.overload);
	if (storage.size != sizeof(record.storage)) {
		skip_slot(reader);
		return;
	}
	memcpy(&record.storage, storage.bytes, sizeof(record.storage));
	record.name = event.name;
	ops_builder_role(reader->builder, &record);
}

static void recording_slots_read_sample(struct recording_reader *reader, const struct recording_lane *lane)
{
	const struct ops_block *block = lane->share->blocks;

	if (!recording_samples_is_valid(lane->slot, block, lane->share))
		skip_slot(reader);
	else if (!recording_samples_add(&reader->samples, lane->slot, block, lane->share, lane->start_ns))
		reader->failed = true;
}

void recording_read_slot(struct recording_reader *reader, struct recording_lane *lane)
{
	switch (lane->slot->kind) {
	case OPS_SLOT_OP:
	case OPS_SLOT_RANGE:
	case OPS_SLOT_INSTANT:
		recording_slots_read_event(reader, lane);
		break;
	case OPS_SLOT_MODULE:
	case OPS_SLOT_PYTHON:
		recording_slots_read_call(reader, lane);
		break;
	case OPS_SLOT_MEMORY:
	case OPS_SLOT_OOM:
		recording_slots_read_memory(reader, lane);
		break;
	case OPS_SLOT_ROLE:
		recording_slots_read_role(reader, lane);
		break;
	case OPS_SLOT_COUNTER:
		read_counter(reader, lane);
		break;
	case OPS_SLOT_CONTEXT:
		switch_context(reader, lane);
		break;
	case OPS_SLOT_SAMPLE:
		recording_slots_read_sample(reader, lane);
		break;
	default:
		skip_slot(reader);
	}
}
