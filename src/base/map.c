/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table with linear probing; see map.h.
 */
#include "base/map.h"

#include <string.h>

#include <opstrobe/common.h>

#include "base/alloc.h"

#define FIRST_SLOTS 64u

/* Maximum number of places for each expected key; that still takes less memory than slots. */
#define PLACES_MAX 4u

bool ops_map_expect(struct ops_map *map, const struct ops_map_keys *keys)
{
	if (!keys->count || keys->high - keys->low >= (uint64_t)keys->count * PLACES_MAX)
		return true;
	map->dense_count = keys->high - keys->low + 1;
	map->low = keys->low;
	map->dense = ops_realloc_array(NULL, map->dense_count, sizeof(*map->dense));
	if (map->dense)
		memset(map->dense, 0xff, map->dense_count * sizeof(*map->dense));
	else
		map->dense_count = 0;
	return map->dense != NULL;
}

static size_t map_place(const struct ops_map *map, uint64_t key)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash ^ hash >> 32) & (map->slot_count - 1);

	while (map->slots[at].used && map->slots[at].key != key)
		at = (at + 1) & (map->slot_count - 1);
	return at;
}

/* At most half of the slots are used. */
static bool map_grow(struct ops_map *map)
{
	struct ops_map bigger = *map;

	bigger.slot_count = map->slot_count ? map->slot_count * 2 : FIRST_SLOTS;
	bigger.slots = ops_alloc_zeroed(bigger.slot_count, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < map->slot_count; i++)
		if (map->slots[i].used)
			bigger.slots[map_place(&bigger, map->slots[i].key)] = map->slots[i];
	ops_free(map->slots);
	*map = bigger;
	return true;
}

uint32_t *ops_map_slot(struct ops_map *map, uint64_t key, uint32_t value)
{
	size_t at;

	if (key - map->low < map->dense_count) {
		uint32_t *dense = &map->dense[key - map->low];

		*dense = *dense == OPS_NONE ? value : *dense;
		return dense;
	}
	if (map->count * 2 >= map->slot_count && !map_grow(map))
		return NULL;
	at = map_place(map, key);
	if (!map->slots[at].used) {
		map->slots[at] = (struct ops_map_slot){key, value, 1};
		map->count++;
	}
	return &map->slots[at].value;
}

bool ops_map_add(struct ops_map *map, uint64_t key, uint32_t value)
{
	return ops_map_slot(map, key, value) != NULL;
}

uint32_t ops_map_number(struct ops_map *map, uint64_t key)
{
	const uint32_t *slot = ops_map_slot(map, key, (uint32_t)map->count);

	return slot ? *slot : OPS_NONE;
}

uint32_t ops_map_find(const struct ops_map *map, uint64_t key)
{
	size_t at;

	if (key - map->low < map->dense_count)
		return map->dense[key - map->low];
	if (!map->slot_count)
		return OPS_NONE;
	at = map_place(map, key);
	return map->slots[at].used ? map->slots[at].value : OPS_NONE;
}

void ops_map_release(struct ops_map *map)
{
	ops_free(map->slots);
	ops_free(map->dense);
	*map = (struct ops_map){0};
}
