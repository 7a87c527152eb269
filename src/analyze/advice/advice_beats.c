/* SPDX-License-Identifier: Apache-2.0
 *
 * What a program repeats: its steps or, without steps, the iterations of its outermost loop.
 */
#include "analyze/advice/advice.h"
#include "base/search.h"

#define BEATS_MAX 4096 /* what happens again and again is seen in fewer */

struct call_group {
	uint32_t parent, count;
	int64_t ns;
};

static uint64_t group_key(const struct advice *advice, uint32_t row)
{
	uint64_t line = advice->events->call_line ? advice->events->call_line[row] : 0;

	return ((uint64_t)advice->events->parent[row] * 0x9e3779b97f4a7c15u + line) * 0x9e3779b97f4a7c15u + advice->events->name[row];
}

/* Returns true for a call in the outermost function of the program. */
static bool is_outermost_call(const struct advice *advice, uint32_t row)
{
	uint32_t caller = advice->caller[row];

	if (caller == OPS_NONE || caller != advice->events->parent[row] || advice_own_site(advice, caller) == OPS_NONE || !advice_counts(advice, row))
		return false;
	for (uint32_t at = advice->caller[caller]; at != OPS_NONE; at = advice->caller[at])
		if (advice_own_site(advice, at) != OPS_NONE)
			return false;
	return true;
}

/* Adds the starts of the calls that repeat at one line of the outermost function and take most of the time. */
static bool add_outer_iterations(const struct advice *advice, struct advice_beats *beats)
{
	struct ops_map by_key = {0};
	OPS_ARRAY(struct call_group) groups = {0};
	uint32_t most = OPS_NONE;
	bool done = true;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		struct call_group *group;

		if (!is_outermost_call(advice, row))
			continue;
		group = OPS_ARRAY_AT(&groups, ops_map_number(&by_key, group_key(advice, row)));
		done = group != NULL;
		if (group) {
			group->count++;
			group->ns = ops_sum(group->ns, advice_ns(advice, row));
		}
	}
	for (uint32_t i = 0; done && i < groups.count; i++)
		if (groups.items[i].count >= ADVICE_BEATS_MIN && groups.items[i].count <= BEATS_MAX &&
		    (most == OPS_NONE || groups.items[i].ns > groups.items[most].ns))
			most = i;
	for (uint32_t row = 0; done && most != OPS_NONE && row < advice->events->count; row++)
		if (is_outermost_call(advice, row) && ops_map_find(&by_key, group_key(advice, row)) == most)
			done = OPS_ARRAY_APPEND(&beats->starts_ns, advice->events->start_ns[row]);
	OPS_ARRAY_RELEASE(&groups);
	ops_map_release(&by_key);
	return done;
}

bool advice_beats_find(const struct advice *advice, struct advice_beats *beats)
{
	bool done = true;

	if (!advice->real_steps)
		return add_outer_iterations(advice, beats);
	for (size_t i = 0; done && i < advice->views->steps.count && i <= BEATS_MAX; i++)
		done = OPS_ARRAY_APPEND(&beats->starts_ns, advice->views->steps.items[i].host_start_ns);
	return done;
}

uint32_t advice_beat_of(const struct advice_beats *beats, const struct advice *advice, uint32_t row)
{
	size_t at = 0;

	OPS_LOWER_BOUND(at, beats->starts_ns.count, i, beats->starts_ns.items[i] <= advice->events->start_ns[row]);
	return at ? (uint32_t)at - 1 : 0;
}
