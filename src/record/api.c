/* SPDX-License-Identifier: Apache-2.0
 *
 * The C API's ranges, instants, counters and roles of storages: a collector that is independent of the torch bridge.
 */
#include <opstrobe/common.h>
#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/record.h>

#include <string.h>

#include "base/clock.h"
#include "record/recorder.h"

/* Longer texts are interned, because a block should have room for many records. */
#define INLINE_BYTES 2048u

#define USER_SCOPE 7

/* Returns the size of a text in a payload: its length, its bytes, padding. */
static inline size_t inline_bytes(size_t size)
{
	return 4 + ((size + 3) & ~(size_t)3);
}

static inline char *api_write_text(char *to, struct ops_string text)
{
	uint32_t length = (uint32_t)text.size;

	memcpy(to, &length, sizeof(length));
	if (length)
		memcpy(to + sizeof(length), text.bytes, length);
	return to + inline_bytes(length);
}

/* Reserves a slot and stores its texts. Returns NULL if the record is dropped. */
static inline struct ops_slot *open_slot(struct ops_thread *thread, uint64_t epoch, struct ops_string name,
                                         const struct ops_string *args)
{
	bool fits = name.size <= INLINE_BYTES && (!args || args->size <= INLINE_BYTES);
	size_t payload_bytes = fits ? inline_bytes(name.size) + (args ? inline_bytes(args->size) : 0) : 0;
	uint32_t id = 0;
	struct ops_slot *slot;

	if (OPS_UNLIKELY(!fits)) {
		id = ops_recorder_collector.intern(thread, name.bytes, name.size, args ? args->bytes : NULL,
		                                   args ? args->size : 0);
		if (!id)
			return NULL;
	}
	slot = ops_reserve(&ops_recorder_collector, thread, epoch, payload_bytes);
	if (OPS_UNLIKELY(!slot))
		return NULL;
	slot->name = id;
	slot->flags = (uint16_t)((fits ? OPS_SLOT_NAME_INLINE : 0) | (args ? OPS_SLOT_HAS_ARGS : 0));
	if (OPS_LIKELY(fits)) {
		char *next = api_write_text(ops_slot_payload(thread, slot), name);

		if (args)
			api_write_text(next, *args);
	}
	return slot;
}

/* Records one slot; for OPS_SLOT_RANGE an open one, unless it has an end. `start_ticks` 0 means now; the clock is read as late as
 * possible. */
static inline struct ops_slot *api_record(uint8_t kind, struct ops_string name, const struct ops_string *args,
                                          int64_t sequence_nr, uint64_t start_ticks, uint64_t end_ticks)
{
	uint64_t epoch = ops_collector_epoch(&ops_recorder_collector);
	struct ops_thread *thread;
	struct ops_slot *slot;

	if (OPS_LIKELY(!epoch))
		return NULL;
	thread = ops_recorder_thread();
	if (thread && kind == OPS_SLOT_RANGE)
		ops_note_context(&ops_recorder_collector, thread, epoch);
	slot = thread ? open_slot(thread, epoch, name, args) : NULL;
	if (OPS_UNLIKELY(!slot))
		return NULL;
	slot->owner = NULL;
	slot->sequence_nr = sequence_nr;
	slot->call_line = end_ticks ? 0 : ops_call_line(&ops_recorder_collector); /* a range that is over may have begun elsewhere */
	slot->forward_thread = 0;
	slot->end_thread = thread->number;
	slot->kind = kind;
	slot->flags |= kind == OPS_SLOT_RANGE && end_ticks ? OPS_SLOT_ADDED : 0;
	slot->scope = USER_SCOPE;
	slot->start_ticks = start_ticks ? start_ticks : ops_ticks(ops_recorder_collector.tsc);
	slot->end_ticks = end_ticks || kind == OPS_SLOT_RANGE ? end_ticks : slot->start_ticks;
	ops_publish(thread);
	return slot;
}

struct ops_range ops_range_begin(const char *name, size_t name_bytes)
{
	return (struct ops_range){api_record(OPS_SLOT_RANGE, (struct ops_string){name, name_bytes}, NULL, -1, 0, 0)};
}

struct ops_range ops_range_begin_args(const char *name, size_t name_bytes, const char *args, size_t args_bytes)
{
	const struct ops_string text = {args ? args : "", args ? args_bytes : 0};

	return (struct ops_range){api_record(OPS_SLOT_RANGE, (struct ops_string){name, name_bytes}, &text, -1, 0, 0)};
}

void ops_range_end(struct ops_range range)
{
	uint64_t epoch, ticks;
	struct ops_thread *thread;

	if (!range.slot)
		return;
	ticks = ops_ticks(ops_recorder_collector.tsc);
	thread = ops_recorder_thread();
	epoch = ops_collector_epoch(&ops_recorder_collector);
	if (thread && epoch)
		ops_note_context_again(&ops_recorder_collector, thread, epoch);
	ops_slot_close(range.slot, ticks, thread ? thread->number : 0);
}

void ops_range_add(const char *name, size_t name_bytes, uint64_t start_ticks, uint64_t end_ticks)
{
	api_record(OPS_SLOT_RANGE, (struct ops_string){name, name_bytes}, NULL, -1, start_ticks, end_ticks);
}

void ops_instant(const char *name, size_t name_bytes)
{
	api_record(OPS_SLOT_INSTANT, (struct ops_string){name, name_bytes}, NULL, -1, 0, 0);
}

void ops_counter(const char *name, size_t name_bytes, double value)
{
	int64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	api_record(OPS_SLOT_COUNTER, (struct ops_string){name, name_bytes}, NULL, bits, 0, 0);
}

void ops_storage_role(const char *name, size_t name_bytes, const struct ops_storage *storage)
{
	const struct ops_string text = {(const char *)storage, sizeof(*storage)};

	api_record(OPS_SLOT_ROLE, (struct ops_string){name, name_bytes}, &text, -1, 0, 0);
}

bool ops_recording_active(void)
{
	return ops_collector_epoch(ops_collector_get()) != 0;
}

const char *ops_recording_clock(void)
{
	return ops_clock_reason();
}
