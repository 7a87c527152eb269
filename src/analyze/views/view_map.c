/* SPDX-License-Identifier: Apache-2.0
 *
 * From 64-bit numbers to indexes.
 */
#include "analyze/views/view_map.h"

#include <opstrobe/trace.h>

#include "base/alloc.h"

#define FIRST_SLOTS 64u

static size_t place(const struct view_map *map, uint64_t key)
{
	uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)(hash ^ hash >> 32) & (map->slot_count - 1);

	while (map->slots[at].used && map->slots[at].key != key)
		at = (at + 1) & (map->slot_count - 1);
	return at;
}

/* At most half of the slots are taken. */
static bool grow(struct view_map *map)
{
	struct view_map bigger = {.slot_count = map->slot_count ? map->slot_count * 2 : FIRST_SLOTS, .count = map->count};

	bigger.slots = ops_alloc_zeroed(bigger.slot_count, sizeof(*bigger.slots));
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < map->slot_count; i++)
		if (map->slots[i].used)
			bigger.slots[place(&bigger, map->slots[i].key)] = map->slots[i];
	ops_free(map->slots);
	*map = bigger;
	return true;
}

uint32_t *view_map_slot(struct view_map *map, uint64_t key, uint32_t value)
{
	size_t at;

	if (map->count * 2 >= map->slot_count && !grow(map))
		return NULL;
	at = place(map, key);
	if (!map->slots[at].used) {
		map->slots[at] = (struct view_map_slot){key, value, 1};
		map->count++;
	}
	return &map->slots[at].value;
}

bool view_map_add(struct view_map *map, uint64_t key, uint32_t value)
{
	return view_map_slot(map, key, value) != NULL;
}

uint32_t view_map_find(const struct view_map *map, uint64_t key)
{
	size_t at;

	if (!map->slot_count)
		return OPS_NONE;
	at = place(map, key);
	return map->slots[at].used ? map->slots[at].value : OPS_NONE;
}

void view_map_release(struct view_map *map)
{
	ops_free(map->slots);
	*map = (struct view_map){0};
}
