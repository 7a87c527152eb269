/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps 64-bit numbers, such as the correlations of a file, to 32-bit ones. A zero-initialised map is empty.
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
	struct ops_map_slot *slots; /* open addressing; their number is a power of two */
	size_t slot_count;
	size_t count;
	uint32_t *dense; /* indexed by key - `low`: values of keys that are known to be close together; OPS_NONE: none */
	uint64_t low;
	uint64_t dense_count;
};

/* Statistics of the expected keys. Zero-initialised: no keys. */
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

/* Prepares an empty map. If the keys are close together, as numbers from a counter are, each gets its own place in order. Then no
 * value may be OPS_NONE. Returns false if out of memory. */
bool ops_map_expect(struct ops_map *map, const struct ops_map_keys *keys);

/* Adds a key; if it exists, its value is kept. Returns false if out of memory. */
bool ops_map_add(struct ops_map *map, uint64_t key, uint32_t value);
/* Returns the slot of a key, which the caller may change; adds it with `value` if it is new. Returns NULL if out of memory. Valid
 * until the next addition. */
uint32_t *ops_map_slot(struct ops_map *map, uint64_t key, uint32_t value);
/* Numbers keys in order of their first appearance: 0, 1, 2, … Returns OPS_NONE if out of memory. Nothing else may be added to the
 * map. */
uint32_t ops_map_number(struct ops_map *map, uint64_t key);
/* Returns the value of a key, or OPS_NONE if there is none. */
uint32_t ops_map_find(const struct ops_map *map, uint64_t key);
void ops_map_release(struct ops_map *map);

#endif
