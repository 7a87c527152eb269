/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory snapshots of torch.cuda.memory (`_dump_snapshot`), pickles of a dict:
 *
 *     segments       of device memory, each with its blocks: {address, size, requested_size, state, frames}
 *     device_traces  by device, the history of its allocator, perhaps truncated: {action, addr, size, time_us, frames}
 *
 * Actions become memory records with their stacks. Blocks in use whose allocation is not in the history are allocated at its
 * beginning, with their stack in the snapshot, so that totals are right from the first record on.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/text.h"
#include "read/frame_text.h"
#include "read/pickle.h"

#define CUDA 1 /* c10::DeviceType */
#define DEVICES_MAX 128 /* torch stores device numbers in 8 bits */

#define FORGOTTEN_ACTIONS 65536 /* 2 MB */

/* The record types of containers. Lists of a type are represented by the range of their records. */
enum record_type {
	UNKNOWN,
	FRAME,    /* number: index in `frames` */
	STACK,    /* index in `stacks` */
	ACTION,
	ACTIONS,  /* of a device: index in `devices` */
	BLOCK,
	BLOCKS,   /* index of the first in `blocks` */
	SEGMENT,
	SEGMENTS,
	DEVICES,  /* lists of actions */
	SNAPSHOT,
};

struct frame {
	uint32_t file; /* string ids */
	uint32_t name;
	uint32_t line;
};

enum action { ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE, OUT_OF_MEMORY, OTHER_ACTION };

struct device_action {
	int64_t time_us;
	uint64_t address;
	int64_t size;
	uint32_t stack;
	enum action action;
};

struct device_block {
	uint64_t address;
	int64_t size;
	uint32_t stack;
	uint32_t device;
};

/* The actions of a device, which are consecutive. */
struct device_actions {
	size_t first;
	size_t count;
};

struct snapshot {
	struct pickle_visitor visitor; /* the first member, because its functions receive it */
	struct ops_reading *in;
	struct ops_intern frames; /* struct frame */
	struct ops_intern stacks; /* numbers of frames, innermost first */
	OPS_ARRAY(uint32_t) stack_texts; /* by stack: string ids; OPS_NONE until needed */
	OPS_ARRAY(struct device_action) actions;
	OPS_ARRAY(struct device_actions) devices;
	OPS_ARRAY(struct device_block) blocks;
	OPS_ARRAY(int64_t) reserved; /* by device: size of its segments */
	OPS_ARRAY(uint32_t) list; /* frames of the current stack */
	struct ops_buffer text;
	size_t actions_listed; /* number of actions that belong to lists */
	size_t blocks_placed;  /* number of blocks whose device is known */
};

/* --- members -------------------------------------------------------------------------------------------------------- */

static int64_t find_integer(const struct pickle_dict *dict, const char *name)
{
	int64_t value;

	pickle_find_integer(dict, name, &value);
	return value;
}

/* Returns OPS_NONE if there is none. */
static uint32_t find_stack(const struct pickle_dict *dict)
{
	const struct pickle_value *value = pickle_find(dict, "frames");

	return value && value->kind == PICKLE_RECORD && value->type == STACK ? value->number : OPS_NONE;
}

/* --- dicts ---------------------------------------------------------------------------------------------------------- */

static void become(struct pickle_value *so_far, enum record_type type, size_t number)
{
	*so_far = (struct pickle_value){.kind = PICKLE_RECORD, .type = type, .number = (uint32_t)number};
}

static enum ops_code snapshot_add_frame(struct snapshot *s, const struct pickle_dict *dict, struct pickle_value *so_far)
{
	int64_t line = find_integer(dict, "line");
	const struct frame frame = {pickle_find_text(dict, "filename"), pickle_find_text(dict, "name"),
	                            line > 0 && line < INT32_MAX ? (uint32_t)line : 0};
	uint32_t number = ops_intern_add(&s->frames, &frame, sizeof(frame));

	become(so_far, FRAME, number);
	return number == OPS_INTERN_NONE ? ops_fault_memory(s->in->error) : OPS_OK;
}

static enum action action_of(struct ops_string name)
{
	static const struct {
		const char *name;
		enum action action;
	} actions[] = {
		{"alloc", ALLOC}, {"free_completed", FREE}, {"free", FREE}, {"segment_alloc", SEGMENT_ALLOC},
		{"segment_map", SEGMENT_ALLOC}, {"segment_free", SEGMENT_FREE}, {"segment_unmap", SEGMENT_FREE},
		{"oom", OUT_OF_MEMORY},
	};

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (ops_string_is(name, actions[i].name))
			return actions[i].action;
	return OTHER_ACTION;
}

static enum ops_code add_device_action(struct snapshot *s, const struct pickle_dict *dict, struct pickle_value *so_far)
{
	enum action what = action_of(ops_builder_text(s->in->builder, pickle_find_text(dict, "action")));
	struct device_action *action;

	become(so_far, ACTION, 0);
	if (what == OTHER_ACTION)
		return OPS_OK;
	action = OPS_ARRAY_PUSH(&s->actions);
	if (!action)
		return ops_fault_memory(s->in->error);
	*action = (struct device_action){
		.time_us = find_integer(dict, "time_us"),
		.address = (uint64_t)find_integer(dict, "addr"),
		.size = find_integer(dict, "size"),
		.stack = find_stack(dict),
		.action = what,
	};
	return OPS_OK;
}

static enum ops_code add_device_block(struct snapshot *s, const struct pickle_dict *dict, struct pickle_value *so_far)
{
	struct ops_string state = ops_builder_text(s->in->builder, pickle_find_text(dict, "state"));
	int64_t requested = find_integer(dict, "requested_size");
	struct device_block *block;

	become(so_far, BLOCK, 0);
	if (!ops_string_starts(state, "active"))
		return OPS_OK;
	block = OPS_ARRAY_PUSH(&s->blocks);
	if (!block)
		return ops_fault_memory(s->in->error);
	*block = (struct device_block){
		.address = (uint64_t)find_integer(dict, "address"),
		.size = requested > 0 ? requested : find_integer(dict, "size"),
		.stack = find_stack(dict),
	};
	return OPS_OK;
}

/* Makes room for a device's number. OPS_CORRUPT if it is invalid. */
static enum ops_code reserve_device(struct snapshot *s, int64_t device)
{
	if (device < 0 || device >= DEVICES_MAX)
		return ops_reading_fault(s->in, s->in->window.at, "an invalid device number");
	while (s->reserved.count <= (size_t)device) {
		int64_t *added = OPS_ARRAY_PUSH(&s->reserved);

		if (!added)
			return ops_fault_memory(s->in->error);
		*added = 0;
	}
	return OPS_OK;
}

/* Its blocks were read just before, and do not belong to a segment yet. */
static enum ops_code add_segment(struct snapshot *s, const struct pickle_dict *dict, struct pickle_value *so_far)
{
	int64_t device = find_integer(dict, "device"), size = find_integer(dict, "total_size");
	uint64_t address = (uint64_t)find_integer(dict, "address");
	enum ops_code code = reserve_device(s, device);

	become(so_far, SEGMENT, 0);
	if (code)
		return code;
	if (__builtin_add_overflow(s->reserved.items[device], size, &s->reserved.items[device]) || size < 0)
		return ops_reading_fault(s->in, s->in->window.at, "invalid sizes of segments");
	for (; s->blocks_placed < s->blocks.count; s->blocks_placed++) {
		struct device_block *block = &s->blocks.items[s->blocks_placed];

		block->device = (uint32_t)device;
		if (!block->address) /* old snapshots: blocks are consecutive */
			block->address = address;
		address += (uint64_t)block->size;
	}
	return OPS_OK;
}

static enum ops_code on_dict(struct pickle_visitor *visitor, const struct pickle_value *pairs, size_t count,
                             struct pickle_value *so_far)
{
	struct snapshot *s = (struct snapshot *)(void *)visitor;
	const struct pickle_dict dict = {s->in, pairs, count};

	if (pickle_find(&dict, "action"))
		return add_device_action(s, &dict, so_far);
	if (pickle_find(&dict, "filename"))
		return snapshot_add_frame(s, &dict, so_far);
	if (pickle_find(&dict, "state"))
		return add_device_block(s, &dict, so_far);
	if (pickle_find(&dict, "blocks"))
		return add_segment(s, &dict, so_far);
	if (pickle_find(&dict, "segments") || pickle_find(&dict, "device_traces"))
		become(so_far, SNAPSHOT, 0);
	return OPS_OK;
}

/* --- lists ---------------------------------------------------------------------------------------------------------- */

/* Adds the frames of a stack. A long list comes in parts. */
static enum ops_code snapshot_add_stack(struct snapshot *s, const struct pickle_value *items, size_t count, struct pickle_value *so_far)
{
	uint32_t number;

	s->list.count = 0;
	if (so_far->type == STACK) {
		const struct ops_intern_entry *before = &s->stacks.entries[so_far->number];

		if (!OPS_ARRAY_RESERVE(&s->list, before->size / sizeof(uint32_t)))
			return ops_fault_memory(s->in->error);
		memcpy(s->list.items, before->bytes, before->size);
		s->list.count = before->size / sizeof(uint32_t);
	}
	for (size_t i = 0; i < count; i++) {
		uint32_t *frame = items[i].type == FRAME ? OPS_ARRAY_PUSH(&s->list) : NULL;

		if (frame)
			*frame = items[i].number;
		else if (items[i].type == FRAME)
			return ops_fault_memory(s->in->error);
	}
	number = ops_intern_add(&s->stacks, s->list.items, s->list.count * sizeof(uint32_t));
	become(so_far, STACK, number);
	return number == OPS_INTERN_NONE ? ops_fault_memory(s->in->error) : OPS_OK;
}

/* A device's actions are those read since the last list of actions. A long list comes in parts. */
static enum ops_code add_actions(struct snapshot *s, struct pickle_value *so_far)
{
	struct device_actions *list;

	if (so_far->type != ACTIONS || so_far->number + 1 != s->devices.count) {
		list = OPS_ARRAY_PUSH(&s->devices);
		if (!list)
			return ops_fault_memory(s->in->error);
		*list = (struct device_actions){.first = s->actions_listed};
		become(so_far, ACTIONS, s->devices.count - 1);
	}
	list = &s->devices.items[s->devices.count - 1];
	list->count = s->actions.count - list->first;
	s->actions_listed = s->actions.count;
	s->in->events = s->actions.count;
	return OPS_OK;
}

/* Returns the histories of devices in order; an empty one is a device without actions. */
static enum ops_code order_devices(struct snapshot *s, const struct pickle_value *items, size_t count, struct pickle_value *so_far)
{
	OPS_ARRAY(struct device_actions) ordered = {0};
	size_t first = so_far->type == DEVICES ? so_far->number : 0;
	bool full = OPS_ARRAY_RESERVE(&ordered, first + count);

	if (!full)
		return ops_fault_memory(s->in->error);
	for (size_t i = 0; i < first && i < s->devices.count; i++)
		ordered.items[ordered.count++] = s->devices.items[i];
	for (size_t i = 0; i < count; i++)
		ordered.items[ordered.count++] = items[i].type == ACTIONS && items[i].number < s->devices.count
			? s->devices.items[items[i].number]
			: (struct device_actions){0};
	OPS_ARRAY_RELEASE(&s->devices);
	s->devices.items = ordered.items;
	s->devices.count = ordered.count;
	s->devices.capacity = ordered.capacity;
	become(so_far, DEVICES, s->devices.count);
	return reserve_device(s, (int64_t)s->devices.count - 1);
}

static enum ops_code on_list(struct pickle_visitor *visitor, const struct pickle_value *items, size_t count,
                             struct pickle_value *so_far)
{
	struct snapshot *s = (struct snapshot *)(void *)visitor;
	enum record_type type = UNKNOWN;

	for (size_t i = 0; i < count && type == UNKNOWN; i++)
		type = items[i].kind == PICKLE_RECORD ? (enum record_type)items[i].type : UNKNOWN;
	if (type == FRAME)
		return snapshot_add_stack(s, items, count, so_far);
	if (type == ACTION)
		return add_actions(s, so_far);
	if (type == ACTIONS)
		return order_devices(s, items, count, so_far);
	return OPS_OK;
}

/* --- stacks as text ------------------------------------------------------------------------------------------------- */

/* Returns the string id of a stack; OPS_NONE if there is none, or if out of memory, which the builder remembers. */
static uint32_t stack_text(struct snapshot *s, uint32_t stack)
{
	const struct ops_intern_entry *entry;
	uint32_t *text;

	if (stack == OPS_NONE || !s->stack_texts.items)
		return OPS_NONE;
	text = &s->stack_texts.items[stack];
	if (*text != OPS_NONE)
		return *text;
	entry = &s->stacks.entries[stack];
	s->text.size = 0;
	for (size_t i = 0; i < entry->size / sizeof(uint32_t); i++) {
		struct frame frame;
		uint32_t number;

		memcpy(&number, entry->bytes + i * sizeof(number), sizeof(number));
		memcpy(&frame, s->frames.entries[number].bytes, sizeof(frame));
		ops_put_frame(&s->text, ops_builder_text(s->in->builder, frame.file), frame.line, ops_builder_text(s->in->builder, frame.name));
		ops_buffer_append_text(&s->text, ";");
	}
	*text = ops_builder_string(s->in->builder, ops_buffer_text(&s->text), s->text.size);
	return *text;
}

static bool prepare_stacks(struct snapshot *s)
{
	if (!OPS_ARRAY_RESERVE(&s->stack_texts, s->stacks.count))
		return false;
	for (size_t i = 0; i < s->stacks.count; i++)
		s->stack_texts.items[s->stack_texts.count++] = OPS_NONE;
	return true;
}

/* --- records -------------------------------------------------------------------------------------------------------- */

struct device_state {
	uint32_t device;
	uint32_t track;
	uint64_t allocated; /* sums overflow to 0 if sizes are invalid */
	uint64_t reserved;
};

static void add_record(struct snapshot *s, const struct device_state *state, const struct device_action *action, int64_t bytes)
{
	const struct ops_memory_record record = {
		.time_ns = action->time_us * 1000,
		.address = action->address,
		.bytes = bytes,
		.total_allocated = state->allocated,
		.total_reserved = state->reserved,
		.track = state->track,
		.device_index = (int16_t)state->device,
		.device_type = CUDA,
		.out_of_memory = action->action == OUT_OF_MEMORY,
	};

	ops_builder_memory(s->in->builder, &record);
	ops_builder_memory_stack(s->in->builder, stack_text(s, action->stack));
}

/* Adds an action of the allocator. Segments only change the total, which the next record has. */
static void add_action(struct snapshot *s, struct device_state *state, const struct device_action *action)
{
	switch (action->action) {
	case ALLOC:
		state->allocated += (uint64_t)action->size;
		add_record(s, state, action, action->size);
		break;
	case FREE:
		state->allocated -= (uint64_t)action->size;
		add_record(s, state, action, -action->size);
		break;
	case SEGMENT_ALLOC:
		state->reserved += (uint64_t)action->size;
		break;
	case SEGMENT_FREE:
		state->reserved -= (uint64_t)action->size;
		break;
	case OUT_OF_MEMORY:
		add_record(s, state, action, action->size);
		break;
	case OTHER_ACTION:
		break;
	}
}

/* The first allocation or free of each address in a history. A table of their numbers, 0 where there is none: a third of the memory of a
 * map, which would have the addresses again. */
struct first_actions {
	const struct device_action *actions;
	uint32_t *numbers; /* from 1 */
	size_t mask;
};

static bool first_actions_init(struct first_actions *first, const struct device_action *actions, size_t count)
{
	size_t places = 1024;

	while (places < count + count / 3)
		places *= 2;
	*first = (struct first_actions){actions, count < UINT32_MAX ? ops_pages_map(places * sizeof(uint32_t)) : NULL, places - 1};
	return first->numbers != NULL;
}

/* Returns where the number for an address is or belongs. */
static uint32_t *find_first_action(const struct first_actions *first, uint64_t address)
{
	size_t at = ops_hash(&address, sizeof(address)) & first->mask;

	while (first->numbers[at] && first->actions[first->numbers[at] - 1].address != address)
		at = (at + 1) & first->mask;
	return &first->numbers[at];
}

/* Reports what a device holds when its history begins: allocations that are freed in it, and blocks that are not in it. Returns
 * false if out of memory. */
static bool begin_device(struct snapshot *s, struct device_state *state, const struct device_actions *list, int64_t start_us)
{
	struct first_actions first;

	if (!first_actions_init(&first, list->count ? s->actions.items + list->first : NULL, list->count))
		return false;
	for (size_t i = 0; i < list->count; i++) {
		const struct device_action *action = &s->actions.items[list->first + i];
		uint32_t *number;

		if (action->action == SEGMENT_ALLOC)
			state->reserved -= (uint64_t)action->size;
		if (action->action == SEGMENT_FREE)
			state->reserved += (uint64_t)action->size;
		if (action->action != ALLOC && action->action != FREE)
			continue;
		number = find_first_action(&first, action->address);
		if (!*number && action->action == FREE)
			state->allocated += (uint64_t)action->size;
		if (!*number)
			*number = (uint32_t)i + 1;
	}
	for (size_t i = 0; i < s->blocks.count; i++) {
		const struct device_block *block = &s->blocks.items[i];
		const struct device_action before = {start_us, block->address, block->size, block->stack, ALLOC};

		if (block->device == state->device && !*find_first_action(&first, block->address))
			add_action(s, state, &before);
	}
	ops_pages_unmap(first.numbers, (first.mask + 1) * sizeof(uint32_t));
	return true;
}

/* Rejects sizes and times that cannot be added. */
static enum ops_code check_actions(struct snapshot *s)
{
	const int64_t most_us = INT64_MAX / 2000, most_bytes = INT64_C(1) << 50;
	int64_t last_us = 0;

	for (size_t i = 0; i < s->actions.count; i++) {
		struct device_action *action = &s->actions.items[i];

		if (action->size < 0 || action->size > most_bytes || action->time_us < 0 || action->time_us > most_us)
			return ops_fault(s->in->error, OPS_CORRUPT, "entry %zu of the history has an invalid size or time", i);
		if (!action->time_us) /* snapshots from before torch 2.2 have no times; uses the order instead */
			action->time_us = last_us + 1;
		last_us = action->time_us;
	}
	for (size_t i = 0; i < s->blocks.count; i++)
		if (s->blocks.items[i].size < 0 || s->blocks.items[i].size > most_bytes)
			return ops_fault(s->in->error, OPS_CORRUPT, "block %zu has an invalid size", i);
	return OPS_OK;
}

static void find_times(const struct snapshot *s, int64_t *ret_start_us, int64_t *ret_stop_us)
{
	*ret_start_us = s->actions.count ? INT64_MAX : 0;
	*ret_stop_us = 0;
	for (size_t i = 0; i < s->actions.count; i++) {
		int64_t time_us = s->actions.items[i].time_us;

		*ret_start_us = time_us < *ret_start_us ? time_us : *ret_start_us;
		*ret_stop_us = time_us > *ret_stop_us ? time_us : *ret_stop_us;
	}
}

static uint32_t add_track(struct snapshot *s, uint32_t device)
{
	char name[48];
	int size = snprintf(name, sizeof(name), "allocator of cuda:%" PRIu32, device);
	const struct ops_track track = {.kind = OPS_TRACK_THREAD, .tid = device + 1, .number = device + 1,
	                                .name = ops_builder_string(s->in->builder, name, (size_t)size)};

	return ops_builder_track(s->in->builder, &track);
}

/* Returns memory of actions that have become records to the system, so that a history is not in memory twice. */
static void forget_actions(struct device_action *actions, size_t count)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = ((uintptr_t)actions + page - 1) / page * page;
	uintptr_t end = (uintptr_t)(actions + count) / page * page;

	if (end > start)
		(void)madvise((char *)actions + (start - (uintptr_t)actions), end - start, MADV_DONTNEED);
}

/* Each list of actions is read once, unless a file names the same list for several devices. */
static bool is_read_once(const struct snapshot *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->devices.count; i++)
		count += s->devices.items[i].count;
	return count <= s->actions.count;
}

static void add_device_actions(struct snapshot *s, struct device_state *state, const struct device_actions *list, bool is_once)
{
	for (size_t i = list->first; i < list->first + list->count; i++) {
		add_action(s, state, &s->actions.items[i]);
		if (is_once && (i + 1 - list->first) % FORGOTTEN_ACTIONS == 0)
			forget_actions(&s->actions.items[i + 1 - FORGOTTEN_ACTIONS], FORGOTTEN_ACTIONS);
	}
}

static enum ops_code add_devices(struct snapshot *s)
{
	int64_t start_us, stop_us;
	bool is_once = is_read_once(s);

	if (!prepare_stacks(s))
		return ops_fault_memory(s->in->error);
	find_times(s, &start_us, &stop_us);
	if (is_once)
		ops_builder_expect(s->in->builder, 0, s->actions.count + s->blocks.count);
	for (uint32_t device = 0; device < s->reserved.count; device++) {
		const struct device_actions list = device < s->devices.count ? s->devices.items[device] : (struct device_actions){0};
		struct device_state state = {.device = device, .reserved = (uint64_t)s->reserved.items[device]};

		state.track = add_track(s, device);
		if (!begin_device(s, &state, &list, start_us))
			return ops_fault_memory(s->in->error);
		add_device_actions(s, &state, &list, is_once);
	}
	ops_builder_info(s->in->builder, &(struct ops_trace_info){.start_ns = start_us * 1000, .stop_ns = stop_us * 1000});
	return OPS_OK;
}

enum ops_code ops_read_memory_snapshot(struct ops_reading *reading, struct ops_trace **ret_trace)
{
	struct snapshot s = {.visitor = {on_dict, on_list}, .in = reading};
	struct pickle_value top;
	enum ops_code code = pickle_read(reading, &s.visitor, &top);

	if (!code && (top.kind != PICKLE_RECORD || top.type != SNAPSHOT))
		code = ops_fault(reading->error, OPS_CORRUPT, "a Python pickle, but not a memory snapshot");
	if (!code)
		code = check_actions(&s);
	if (!code)
		code = add_devices(&s);
	ops_intern_release(&s.frames);
	ops_intern_release(&s.stacks);
	OPS_ARRAY_RELEASE(&s.stack_texts);
	OPS_ARRAY_RELEASE(&s.actions);
	OPS_ARRAY_RELEASE(&s.devices);
	OPS_ARRAY_RELEASE(&s.blocks);
	OPS_ARRAY_RELEASE(&s.reserved);
	OPS_ARRAY_RELEASE(&s.list);
	ops_buffer_release(&s.text);
	return code ? code : ops_reading_finish(reading, ret_trace);
}
