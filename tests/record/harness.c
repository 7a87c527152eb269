/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How far the TSCs of two processors may be apart, in ticks. */
#define CLOCK_SLACK 10000

struct ops_session *start_bounded(uint64_t max_bytes)
{
	struct ops_record_options options = {.size = sizeof(options), .max_bytes = max_bytes};
	struct ops_session *session = NULL;
	struct ops_error error = {.text = ""};

	if (ops_session_start(&options, &session, &error) != OPS_OK)
		fail_msg("%s", error.text);
	assert_non_null(session);
	return session;
}

struct ops_session *start(void)
{
	return start_bounded(0);
}

struct ops_recording *stop(struct ops_session *session)
{
	struct ops_recording *recording = NULL;
	struct ops_error error = {.text = ""};

	if (ops_session_stop(session, &recording, &error) != OPS_OK)
		fail_msg("%s", error.text);
	check_recording(recording);
	return recording;
}

static void check_slot(const struct ops_block *block, const struct ops_slot *slot, uint64_t *last_start)
{
	if (ops_slot_is_memory(slot))
		return;
	assert_true(slot->kind >= OPS_SLOT_OP && slot->kind <= OPS_SLOT_COUNTER);
	if (slot->payload) {
		assert_true(slot->payload >= sizeof(*block) + block->count * sizeof(*slot));
		assert_true(slot->payload + slot->payload_bytes <= block->bytes);
	}
	assert_true(slot->start_ticks >= *last_start);
	*last_start = slot->start_ticks;
	if (ops_slot_end(slot))
		assert_true(ops_slot_end(slot) + (slot->end_thread != block->thread ? CLOCK_SLACK : 0) >= slot->start_ticks);
}

void check_recording(const struct ops_recording *recording)
{
	size_t shares = 0, slots = 0;

	assert_true(recording->stop.ticks > recording->start.ticks);
	for (const struct ops_share *share = recording->shares; share; share = share->next) {
		size_t share_slots = 0;
		uint64_t last_start = recording->start.ticks;

		shares++;
		assert_true(share->number > 0);
		for (const struct ops_block *block = share->blocks; block; block = block->next) {
			assert_int_equal(block->magic, OPS_BLOCK_MAGIC);
			assert_int_equal(block->abi, OPS_COLLECTOR_ABI);
			assert_int_equal(block->epoch, recording->epoch);
			assert_int_equal(block->thread, share->number);
			assert_true(block->count > 0);
			share_slots += block->count;
			for (uint32_t i = 0; i < block->count; i++)
				check_slot(block, &block->slots[i], &last_start);
		}
		assert_int_equal(share_slots, share->slot_count);
		slots += share_slots;
	}
	assert_int_equal(shares, recording->share_count);
	assert_int_equal(slots, recording->slot_count);
}

static struct text interned(const struct ops_share *share, uint32_t id)
{
	if (id == OPS_INTERN_NONE)
		return (struct text){NULL, 0};
	assert_true(id < share->texts.count);
	return (struct text){share->texts.entries[id].bytes, share->texts.entries[id].size};
}

static const char *read_inline(const char *from, struct text *ret_text)
{
	uint32_t length;

	memcpy(&length, from, sizeof(length));
	*ret_text = (struct text){from + 4, length};
	return from + 4 + ((length + 3) & ~3u);
}

static struct found look(const struct ops_share *share, const struct ops_block *block, const struct ops_slot *slot)
{
	struct found found = {.share = share, .slot = slot};
	const char *next;

	if (ops_slot_is_memory(slot))
		return found;
	found.payload = slot->payload ? (const char *)block + slot->payload : NULL;
	if (slot->flags & OPS_SLOT_NAME_INLINE) {
		assert_non_null(found.payload);
		next = read_inline(found.payload, &found.name);
		if (slot->flags & OPS_SLOT_HAS_ARGS)
			read_inline(next, &found.args);
	} else if (slot->name) {
		struct ops_name name = ops_share_name(share, slot->name);

		found.name = interned(share, name.first);
		found.args = interned(share, name.second);
	}
	return found;
}

void each_slot(const struct ops_recording *recording, void (*visit)(const struct found *found, void *context),
               void *context)
{
	for (const struct ops_share *share = recording->shares; share; share = share->next) {
		for (const struct ops_block *block = share->blocks; block; block = block->next) {
			for (uint32_t i = 0; i < block->count; i++) {
				struct found found = look(share, block, &block->slots[i]);

				visit(&found, context);
			}
		}
	}
}

struct search {
	struct text name;
	size_t count;
	struct found last;
};

static void compare(const struct found *found, void *context)
{
	struct search *search = context;

	if (found->name.bytes && found->name.size == search->name.size &&
	    memcmp(found->name.bytes, search->name.bytes, search->name.size) == 0) {
		search->count++;
		search->last = *found;
	}
}

size_t count_named(const struct ops_recording *recording, struct text name)
{
	struct search search = {.name = name};

	each_slot(recording, compare, &search);
	return search.count;
}

struct found find(const struct ops_recording *recording, struct text name)
{
	struct search search = {.name = name};

	each_slot(recording, compare, &search);
	assert_int_equal(search.count, 1);
	return search.last;
}

const struct ops_share *find_share(const struct ops_recording *recording, int64_t tid)
{
	const struct ops_share *share = recording->shares;

	while (share && share->tid != tid)
		share = share->next;
	return share;
}

double slot_value(const struct ops_slot *slot)
{
	double value;

	memcpy(&value, &slot->sequence_nr, sizeof(value));
	return value;
}

int64_t own_tid(void)
{
	return syscall(SYS_gettid);
}

uint64_t resident_bytes(void)
{
	unsigned long pages = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*u %lu", &pages), 1);
	fclose(file);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

void record_ranges(struct text name, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ops_range_end(ops_range_begin(name.bytes, name.size));
}
