/* SPDX-License-Identifier: Apache-2.0
 *
 * A recording becomes a trace. Every thread left its slots in order of time; they are merged into one order, slot by
 * slot, and each block goes back as soon as its last slot is read, so that blocks and columns together stay near one
 * copy:
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
#include "base/json.h"
#include "read/recording_calls.h"
#include "read/recording_modules.h"
#include "read/slot_values.h"
#include "record/recording.h"
#include "trace/builder.h"

/* at::RecordScope */
#define SCOPE_FUNCTION 0
#define SCOPE_BACKWARD_FUNCTION 1

/* What autograd's engine runs around every backward node. */
static const char wrapper_prefix[] = "autograd::engine::evaluate_function: ";

/* A thread's interned name, as strings of the trace. */
struct name {
	uint32_t first;
	uint32_t second; /* overload name or argument text, OPS_NONE when there is none */
	bool wrapper;    /* begins with wrapper_prefix */
};

struct lane {
	struct ops_share *share;
	struct name *names;     /* by ops_slot.name - 1 */
	const struct ops_slot *slot; /* the head; lies in share->blocks */
	uint32_t left;          /* slots from the head to the end of its block */
	uint32_t track;
	int64_t start_ns; /* of the head */
	int64_t end_ns;
	struct ops_open_calls calls; /* of Python */
	bool unfinished;
	bool named_wrapper; /* the head's name begins with wrapper_prefix; set by describe */
	uint32_t wrapper; /* row of an evaluate_function that the thread's next operator may complete, or OPS_NONE */
};

struct reader {
	struct ops_recording *recording;
	struct ops_builder *builder;
	struct ops_clock_map clock;
	int64_t stop_ns;
	struct lane *lanes; /* by track; those with torch's numbers first */
	size_t lane_count;
	uint32_t *by_number; /* lane indexes in order of share->number */
	struct ops_called_functions functions;
	struct lane **heap;
	size_t heap_count;
	struct ops_called_modules modules;
	uint32_t number_max; /* the highest of torch's thread numbers seen anywhere */
	uint64_t lost;
	struct ops_buffer text; /* scratch */
	bool failed; /* memory is out */
};

static bool is_wrapper(const char *name, size_t size)
{
	return size >= sizeof(wrapper_prefix) - 1 && memcmp(name, wrapper_prefix, sizeof(wrapper_prefix) - 1) == 0;
}

/* --- lanes ---------------------------------------------------------------------------------------------------------- */

/* Torch's threads by their number, then the others in order of their making. */
static int compare_lanes(const void *a, const void *b)
{
	const struct ops_share *left = ((const struct lane *)a)->share;
	const struct ops_share *right = ((const struct lane *)b)->share;

	if (left->torch_number != right->torch_number)
		return left->torch_number - 1 < right->torch_number - 1 ? -1 : 1; /* 0 last */
	return left->number < right->number ? -1 : left->number > right->number;
}

static int compare_numbers(const void *a, const void *b, void *lanes)
{
	uint32_t left = ((const struct lane *)lanes)[*(const uint32_t *)a].share->number;
	uint32_t right = ((const struct lane *)lanes)[*(const uint32_t *)b].share->number;

	return left < right ? -1 : left > right;
}

/* The track of a thread by its number in the process, OPS_NONE when it recorded nothing. */
static uint32_t track_of(const struct reader *reader, uint32_t number)
{
	size_t low = 0;
	size_t high = reader->lane_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct lane *lane = &reader->lanes[reader->by_number[middle]];

		if (lane->share->number == number)
			return lane->track;
		if (lane->share->number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return OPS_NONE;
}

/* Puts the thread's names into the trace's strings. */
static bool translate_names(struct reader *reader, struct lane *lane)
{
	const struct ops_share *share = lane->share;

	lane->names = ops_realloc_array(NULL, share->names.count + 1, sizeof(*lane->names));
	if (!lane->names)
		return false;
	for (uint32_t i = 0; i < share->names.count; i++) {
		struct ops_name ids = ops_share_name(share, i + 1);
		const struct ops_intern_entry *first = &share->texts.entries[ids.first];
		struct name *name = &lane->names[i];

		name->first = ops_builder_string(reader->builder, first->bytes, first->size);
		name->second = OPS_NONE;
		if (ids.second != OPS_INTERN_NONE)
			name->second = ops_builder_string(reader->builder, share->texts.entries[ids.second].bytes,
			                                  share->texts.entries[ids.second].size);
		name->wrapper = is_wrapper(first->bytes, first->size);
	}
	return !ops_builder_failed(reader->builder);
}

static bool open_lane(struct reader *reader, struct lane *lane)
{
	const struct ops_share *share = lane->share;
	struct ops_track track = {.kind = OPS_TRACK_THREAD, .pid = getpid(), .tid = share->tid};

	if (share->name)
		track.name = ops_builder_string(reader->builder, share->name, share->name_size);
	lane->wrapper = OPS_NONE;
	lane->track = ops_builder_track(reader->builder, &track);
	if (share->torch_number > reader->number_max)
		reader->number_max = share->torch_number;
	return translate_names(reader, lane);
}

static bool open_lanes(struct reader *reader)
{
	size_t count = reader->recording->share_count;
	struct ops_share *share = reader->recording->shares;

	reader->lanes = ops_alloc_zeroed(count + 1, sizeof(*reader->lanes));
	reader->by_number = ops_realloc_array(NULL, count + 1, sizeof(*reader->by_number));
	reader->heap = ops_realloc_array(NULL, count + 1, sizeof(struct lane *));
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
	qsort_r(reader->by_number, count, sizeof(*reader->by_number), compare_numbers, reader->lanes);
	return true;
}

/* Threads that torch never ran on are numbered behind all numbers that torch gave, whether or not their threads are part
 * of the recording: a backward operator may name any of them. */
static void number_tracks(struct reader *reader)
{
	uint32_t number = reader->number_max;

	for (size_t i = 0; i < reader->lane_count; i++) {
		const struct lane *lane = &reader->lanes[i];
		bool own = lane->share->torch_number &&
		           (i == 0 || lane->share->torch_number != lane[-1].share->torch_number);

		ops_builder_number_track(reader->builder, lane->track, own ? lane->share->torch_number : ++number);
	}
}

/* --- the merge ------------------------------------------------------------------------------------------------------ */

static int64_t to_ns(const struct reader *reader, uint64_t ticks)
{
	/* A thread may see the stop a little late. */
	return ticks < reader->recording->stop.ticks ? ops_clock_to_ns(&reader->clock, ticks) : reader->stop_ns;
}

/* Takes the times of the lane's head. What is open at the stop, or ends later, ends with the session. */
static void load_head(const struct reader *reader, struct lane *lane)
{
	const struct ops_slot *slot = lane->slot;
	uint64_t end_ticks;

	lane->start_ns = lane->end_ns = to_ns(reader, slot->start_ticks);
	lane->unfinished = false;
	if (slot->kind != OPS_SLOT_OP && slot->kind != OPS_SLOT_RANGE && slot->kind != OPS_SLOT_PYTHON &&
	    slot->kind != OPS_SLOT_MODULE)
		return;
	end_ticks = ops_slot_end(slot);
	lane->unfinished = end_ticks == 0 || end_ticks > reader->recording->stop.ticks;
	if (lane->unfinished)
		lane->end_ns = reader->stop_ns;
	else if (end_ticks > slot->start_ticks)
		lane->end_ns = to_ns(reader, end_ticks);
}

/* Makes the next slot the head; false at the end of the lane. Blocks go back when their last slot is passed. */
static bool advance(const struct reader *reader, struct lane *lane)
{
	struct ops_block *block = lane->share->blocks;

	if (lane->left > 1) {
		lane->left--;
		lane->slot++;
		load_head(reader, lane);
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
	load_head(reader, lane);
	return true;
}

static bool lane_before(const struct lane *a, const struct lane *b)
{
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns;
	return a->end_ns != b->end_ns ? a->end_ns > b->end_ns : a->track < b->track;
}

/* Lets the lane at `at` sink to its place below. */
static void sink_lane(struct reader *reader, size_t at)
{
	struct lane *lane = reader->heap[at];

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

/* --- slots ---------------------------------------------------------------------------------------------------------- */

/* Finds the slot's name, and in `*ret_second` its overload name or argument text. */
static bool take_names(struct reader *reader, struct lane *lane, struct ops_payload *payload, uint32_t *ret_name,
                       uint32_t *ret_second)
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
	lane->named_wrapper = is_wrapper(text.bytes, text.size);
	if (!(slot->flags & OPS_SLOT_HAS_ARGS))
		return true;
	if (!ops_payload_text(payload, &text))
		return false;
	*ret_second = ops_builder_string(reader->builder, text.bytes, text.size);
	return true;
}

/* Named values, of which those of counters are known once the slot is closed. */
static bool take_values(struct reader *reader, const struct lane *lane, struct ops_payload *payload,
                        struct ops_new_event *event)
{
	struct ops_buffer *text = &reader->text;

	text->size = 0;
	if (!ops_payload_values(payload, !lane->unfinished, text) || text->failed)
		return false;
	if (text->size)
		event->extra = ops_builder_string(reader->builder, text->bytes, text->size);
	return true;
}

/* The text with a thread's id, OPS_NONE for 0; false when there is no such. */
static bool find_text(const struct lane *lane, uint32_t id, uint32_t *ret_string)
{
	if (id > lane->share->names.count)
		return false;
	*ret_string = id ? lane->names[id - 1].first : OPS_NONE;
	return true;
}

/* Where in a script an operator runs. The modules go behind the named values. */
static bool take_script(struct reader *reader, const struct lane *lane, struct ops_payload *payload,
                        struct ops_new_event *event)
{
	struct ops_string text;
	uint32_t ids[2], hierarchy;

	if (!ops_payload_take(payload, ids, sizeof(ids)) || !find_text(lane, ids[0], &event->call_stack) ||
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

/* Name, overload, argument text, named values and inputs. False when the slot makes no sense: then it counts as lost. */
static bool describe(struct reader *reader, struct lane *lane, struct ops_new_event *event)
{
	const struct ops_slot *slot = lane->slot;
	const struct ops_block *block = lane->share->blocks;
	struct ops_payload payload = {(const char *)block + slot->payload, slot->payload_bytes};
	uint32_t second;

	if ((uint64_t)slot->payload + slot->payload_bytes > block->bytes ||
	    !take_names(reader, lane, &payload, &event->name, &second))
		return false;
	if (slot->kind == OPS_SLOT_RANGE)
		event->args = second;
	else if (second != OPS_NONE)
		event->overload = second;
	if ((slot->flags & OPS_SLOT_HAS_VALUES) && !take_values(reader, lane, &payload, event))
		return false;
	if ((slot->flags & OPS_SLOT_HAS_SCRIPT) && !take_script(reader, lane, &payload, event))
		return false;
	if (slot->flags & OPS_SLOT_HAS_STORAGES) {
		struct ops_string storages;

		if (!ops_payload_text(&payload, &storages))
			return false;
		if (storages.size)
			event->storages = ops_builder_string(reader->builder, storages.bytes, storages.size);
	}
	if (!(slot->flags & OPS_SLOT_HAS_INPUTS))
		return true;
	event->inputs = ops_builder_inputs(reader->builder, payload.at, payload.size);
	if (event->inputs == OPS_NONE)
		return false;
	if (ops_inputs_count(payload.at, payload.size) == 0)
		event->inputs = OPS_NONE; /* as if nobody had asked: so torch shows what takes none */
	return true;
}

/* An evaluate_function takes over what its backward node says, if that follows on the same thread (spec, Appendix B). */
static void complete_wrapper(struct reader *reader, struct lane *lane, uint32_t row)
{
	const struct ops_slot *slot = lane->slot;

	if (lane->wrapper != OPS_NONE && slot->kind == OPS_SLOT_OP && slot->scope == SCOPE_BACKWARD_FUNCTION)
		ops_builder_set_sequence(reader->builder, lane->wrapper, slot->sequence_nr, slot->forward_thread);
	lane->wrapper = OPS_NONE;
	if (slot->kind == OPS_SLOT_OP && slot->scope == SCOPE_FUNCTION && lane->named_wrapper)
		lane->wrapper = row;
}

static void take_event(struct reader *reader, struct lane *lane)
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

	if (!describe(reader, lane, &event)) {
		reader->lost++;
		return;
	}
	if (slot->kind == OPS_SLOT_INSTANT) {
		ops_builder_event(reader->builder, &event);
		return;
	}
	event.call_line = slot->call_line;
	event.sequence_nr = slot->sequence_nr < 0 ? -1 : slot->sequence_nr;
	event.forward_thread = slot->forward_thread;
	if (slot->forward_thread > reader->number_max)
		reader->number_max = slot->forward_thread;
	if (slot->flags & OPS_SLOT_ASYNC)
		event.flags |= OPS_EVENT_ASYNC;
	if (lane->unfinished) {
		event.flags |= OPS_EVENT_UNFINISHED;
	} else if (slot->end_thread && slot->end_thread != lane->share->number) {
		event.flags |= OPS_EVENT_ASYNC;
		event.end_track = track_of(reader, slot->end_thread);
	}
	row = ops_builder_event(reader->builder, &event);
	if (row != OPS_NONE)
		complete_wrapper(reader, lane, row);
}

/* A call of Python or of a module, which ends on the thread that began it. */
static void take_call(struct reader *reader, struct lane *lane)
{
	const struct ops_slot *slot = lane->slot;
	struct ops_new_event event = {
		OPS_NEW_EVENT,
		.start_ns = lane->start_ns,
		.end_ns = lane->end_ns,
		.track = lane->track,
		.kind = OPS_EVENT_PYTHON_FUNCTION,
		.flags = lane->unfinished ? OPS_EVENT_UNFINISHED : 0,
	};

	if (slot->flags & OPS_SLOT_DROPPED)
		return;
	event.call_line = slot->call_line;
	if (slot->kind == OPS_SLOT_MODULE ? !ops_called_modules_describe(&reader->modules, slot->sequence_nr, &event)
	                                  : !ops_called_functions_describe(&reader->functions, slot->name, &event)) {
		reader->lost++;
		return;
	}
	if (ops_open_calls_add(&lane->calls, &reader->functions, &event))
		ops_builder_event(reader->builder, &event);
	else
		reader->failed = true;
}

static void take_memory(struct reader *reader, const struct lane *lane)
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

static void take_counter(struct reader *reader, struct lane *lane)
{
	struct ops_counter_record record = {.time_ns = lane->start_ns, .track = lane->track};
	struct ops_new_event event = {OPS_NEW_EVENT};

	if (!describe(reader, lane, &event)) {
		reader->lost++;
		return;
	}
	record.name = event.name;
	memcpy(&record.value, &lane->slot->sequence_nr, sizeof(record.value));
	ops_builder_counter(reader->builder, &record);
}

static void take_role(struct reader *reader, struct lane *lane)
{
	struct ops_role_record record = {.time_ns = lane->start_ns, .track = lane->track};
	struct ops_new_event event = {OPS_NEW_EVENT};
	struct ops_string storage;

	if (!describe(reader, lane, &event)) {
		reader->lost++;
		return;
	}
	storage = ops_builder_text(reader->builder, event.overload);
	if (storage.size != sizeof(record.storage)) {
		reader->lost++;
		return;
	}
	memcpy(&record.storage, storage.bytes, sizeof(record.storage));
	record.name = event.name;
	ops_builder_role(reader->builder, &record);
}

static void take_slot(struct reader *reader, struct lane *lane)
{
	switch (lane->slot->kind) {
	case OPS_SLOT_OP:
	case OPS_SLOT_RANGE:
	case OPS_SLOT_INSTANT:
		take_event(reader, lane);
		break;
	case OPS_SLOT_MODULE:
	case OPS_SLOT_PYTHON:
		take_call(reader, lane);
		break;
	case OPS_SLOT_MEMORY:
	case OPS_SLOT_OOM:
		take_memory(reader, lane);
		break;
	case OPS_SLOT_ROLE:
		take_role(reader, lane);
		break;
	case OPS_SLOT_COUNTER:
		take_counter(reader, lane);
		break;
	default:
		reader->lost++;
	}
}

static void merge_lanes(struct reader *reader)
{
	for (size_t i = 0; i < reader->lane_count; i++)
		if (advance(reader, &reader->lanes[i]))
			reader->heap[reader->heap_count++] = &reader->lanes[i];
	for (size_t i = reader->heap_count; i-- > 0;)
		sink_lane(reader, i);
	while (reader->heap_count && !reader->failed && !ops_builder_failed(reader->builder)) {
		take_slot(reader, reader->heap[0]);
		if (!advance(reader, reader->heap[0]))
			reader->heap[0] = reader->heap[--reader->heap_count];
		sink_lane(reader, 0);
	}
}

/* --- the whole ------------------------------------------------------------------------------------------------------ */

static void set_info(struct reader *reader)
{
	char host[256];
	struct ops_trace_info info = {
		.start_ns = ops_clock_to_ns(&reader->clock, reader->recording->start.ticks),
		.stop_ns = reader->stop_ns,
		.pid = getpid(),
		.lost = reader->recording->lost + reader->lost,
		.host_name = gethostname(host, sizeof(host)) == 0 ? host : "",
		.process_name = program_invocation_short_name,
	};

	host[sizeof(host) - 1] = '\0';
	ops_builder_info(reader->builder, &info);
}

static bool read_all(struct reader *reader)
{
	if (!open_lanes(reader) || !ops_called_modules_init(&reader->modules, reader->recording, reader->builder) ||
	    !ops_called_functions_init(&reader->functions, reader->recording, reader->builder))
		return false;
	ops_builder_expect(reader->builder, reader->recording->slot_count, 0);
	merge_lanes(reader);
	number_tracks(reader);
	set_info(reader);
	return !reader->failed && !ops_builder_failed(reader->builder);
}

enum ops_code ops_trace_from_recording(struct ops_recording *take_recording, struct ops_trace **ret_trace,
                                       struct ops_error *error)
{
	struct reader reader = {
		.recording = take_recording,
		.builder = ops_builder_new(),
		.clock = ops_clock_map_between(take_recording->start, take_recording->stop),
	};
	enum ops_code code;
	bool ok;

	reader.stop_ns = ops_clock_to_ns(&reader.clock, take_recording->stop.ticks);
	ok = reader.builder && read_all(&reader);
	for (size_t i = 0; i < reader.lane_count; i++) {
		ops_free(reader.lanes[i].names);
		ops_open_calls_release(&reader.lanes[i].calls);
	}
	ops_called_modules_release(&reader.modules);
	ops_called_functions_release(&reader.functions);
	ops_free(reader.lanes);
	ops_free(reader.by_number);
	ops_free(reader.heap);
	ops_buffer_release(&reader.text);
	ops_recording_free(take_recording);
	if (ok) {
		code = ops_builder_finish(reader.builder, ret_trace, error);
	} else {
		ops_builder_free(reader.builder);
		code = ops_fault_memory(error);
	}
	return code ? ops_fault_context(error, code, "cannot make a trace of the recording") : OPS_OK;
}
