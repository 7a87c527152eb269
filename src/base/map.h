/* SPDX-License-Identifier: Apache-2.0
 *
 * From 64-bit numbers, such as the correlations of a file, to 32-bit ones. Zero-initialised is empty.
 */
#ifndef OPS_BASE_MAP_H
#define OPS_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ops_map_slot {
	uint64_t key;
	uint32_t value;
	uint32_t used;
};

struct ops_map {
	struct ops_map_slot *slots; /* open addressing; a power of two of them */
	size_t slot_count;
	size_t count;
	uint32_t *dense; /* by key less `low`: values of keys that are known to lie close together, OPS_NONE for none */
	uint64_t low;
	uint64_t dense_count;
};

/* What keys there will be. Zero-initialised is none. */
struct ops_map_keys {
	uint64_t low, high;
	size_t count;
};

static inline void ops_map_keys_add(struct ops_map_keys *keys, uint64_t key)
{
	keys->low = !keys->count || key < keys->low ? key : keys->low;
	keys->high = !keys->count || key > keys->high ? key : keys->high;
	keys->count++;
}

/* For a map that is empty: where the keys lie close together, as numbers do that a program counted up, each has its place,
 * next to those before and after it. The map holds no value OPS_NONE then. False when memory is out. */
bool ops_map_expect(struct ops_map *map, const struct ops_map_keys *keys);

/* Keeps the value that a key has already. False when memory is out. */
bool ops_map_add(struct ops_map *map, uint64_t key, uint32_t value);
/* The slot of a key, added with `value` if it is new, to be changed; NULL when memory is out. Good until the next add. */
uint32_t *ops_map_slot(struct ops_map *map, uint64_t key, uint32_t value);
/* Numbers keys in order of their first appearance: 0, 1, 2, … OPS_NONE when memory is out. For maps to which nothing else is added. */
uint32_t ops_map_number(struct ops_map *map, uint64_t key);
/* OPS_NONE when there is none. */
uint32_t ops_map_find(const struct ops_map *map, uint64_t key);
void ops_map_release(struct ops_map *map);

#endif
