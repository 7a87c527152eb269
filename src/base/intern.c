/* SPDX-License-Identifier: Apache-2.0
 *
 * Interning by open addressing with linear probing; see intern.h.
 */
#include "base/intern.h"

#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/array.h"

#define SLOTS_MIN 64u

/* --- hash ---------------------------------------------------------------------------------------------------------- */

static uint64_t load8(const unsigned char *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static uint64_t load4(const unsigned char *at)
{
	uint32_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

/* Folds both halves of the product into one word, so that every bit of either factor affects the middle. */
static uint64_t intern_mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Odd constants with about as many ones as zeros: digits of pi, e and the golden ratio. */
#define KEY_A UINT64_C(0x9e3779b97f4a7c15)
#define KEY_B UINT64_C(0x243f6a8885a308d3)
#define KEY_C UINT64_C(0xb7e151628aed2a6b)

uint64_t ops_hash(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;
	uint64_t hash = intern_mix(size ^ KEY_A, KEY_B);
	uint64_t first = 0;
	uint64_t last = 0;
	size_t left = size;

	for (; left > 16; left -= 16, at += 16)
		hash = intern_mix(load8(at) ^ KEY_B, load8(at + 8) ^ hash);
	/* The remaining bytes, at most 16, as two overlapping words. */
	if (left >= 8) {
		first = load8(at);
		last = load8(at + left - 8);
	} else if (left >= 4) {
		first = load4(at);
		last = load4(at + left - 4);
	} else if (left > 0) {
		first = (uint64_t)at[0] << 16 | (uint64_t)at[left / 2] << 8 | at[left - 1];
	}
	return intern_mix(intern_mix(first ^ KEY_C, last ^ hash), KEY_A);
}

/* --- table --------------------------------------------------------------------------------------------------------- */

/* Returns the slot of the string, or the empty slot in which to insert it. */
static uint32_t *intern_find_slot(const struct ops_intern *table, const void *bytes, size_t size, uint64_t hash)
{
	size_t mask = table->slot_count - 1;
	size_t i = hash & mask;

	for (;; i = (i + 1) & mask) {
		uint32_t id = table->slots[i];
		const struct ops_intern_entry *entry;

		if (id == 0)
			return &table->slots[i];
		entry = &table->entries[id - 1];
		if (entry->hash == hash && entry->size == size && (size == 0 || memcmp(entry->bytes, bytes, size) == 0))
			return &table->slots[i];
	}
}

/* Keeps at least a third of the slots empty. */
static bool make_slot_room(struct ops_intern *table)
{
	size_t slot_count = table->slot_count ? table->slot_count * 2 : SLOTS_MIN;
	uint32_t *slots;

	if (table->slot_count - table->slot_count / 3 > table->count)
		return true;
	slots = ops_alloc_zeroed(slot_count, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t id = 0; id < table->count; id++) {
		size_t i = table->entries[id].hash & (slot_count - 1);

		while (slots[i])
			i = (i + 1) & (slot_count - 1);
		slots[i] = (uint32_t)id + 1;
	}
	ops_free(table->slots);
	table->slots = slots;
	table->slot_count = slot_count;
	return true;
}

uint32_t ops_intern_find(const struct ops_intern *table, const void *bytes, size_t size)
{
	uint32_t id = table->slot_count ? *intern_find_slot(table, bytes, size, ops_hash(bytes, size)) : 0;

	return id ? id - 1 : OPS_INTERN_NONE;
}

uint32_t ops_intern_add(struct ops_intern *table, const void *bytes, size_t size)
{
	uint64_t hash = ops_hash(bytes, size);
	struct ops_intern_entry *entry;
	uint32_t *slot;

	if (table->slot_count) {
		slot = intern_find_slot(table, bytes, size, hash);
		if (*slot)
			return *slot - 1;
	}
	if (table->count >= OPS_INTERN_NONE - 1 || !make_slot_room(table) ||
	    !ops_array_reserve(&table->entries, &table->capacity, table->count, 1, sizeof(*table->entries)))
		return OPS_INTERN_NONE;
	entry = &table->entries[table->count];
	entry->bytes = ops_arena_copy(&table->arena, bytes, size);
	if (!entry->bytes)
		return OPS_INTERN_NONE;
	entry->size = size;
	entry->hash = hash;
	*intern_find_slot(table, bytes, size, hash) = (uint32_t)++table->count;
	return (uint32_t)table->count - 1;
}

void ops_intern_release(struct ops_intern *table)
{
	ops_arena_release(&table->arena);
	ops_free(table->entries);
	ops_free(table->slots);
	*table = (struct ops_intern){0};
}
