/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the rows that a change applies to.
 */
#include <string.h>

#include "analyze/replay/replay.h"
#include "base/alloc.h"
#include "derive/backward.h"
#include "derive/launches.h"
#include "trace/kinds.h"

void replay_changes_release(struct replay_changes *changes)
{
	ops_free(changes->mask);
	changes->mask = NULL;
}

/* Marks operators around a call that launches work, the outermost one with everything that it calls. */
static void mark_launching(const struct replay *replay, uint16_t *mask, uint16_t bit)
{
	const struct ops_events *events = replay->events;

	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t outermost = OPS_NONE;

		if (!ops_kind_is_call(events->kind[row]) || !replay_name_is(replay, row, REPLAY_NAME_LAUNCHES))
			continue;
		for (uint32_t at = row; at != OPS_NONE && !(mask[at] & bit); at = events->parent[at])
			if (events->kind[at] == OPS_EVENT_CPU_OP ? !replay_name_is(replay, at, REPLAY_NAME_STEP) : at == row)
				outermost = at;
		if (outermost != OPS_NONE)
			mask[outermost] |= bit;
	}
}

static void mark_names(const struct replay *replay, uint16_t *mask, uint16_t bit, unsigned names)
{
	for (uint32_t row = 0; row < replay->events->count; row++)
		if (replay_name_is(replay, row, names) && replay_is_host_row(replay, row))
			mask[row] |= bit;
}

/* Of blocking calls, only the time in which the host waited is removed. */
static void mark_syncs(const struct replay *replay, uint16_t *mask, uint16_t bit)
{
	for (size_t i = 0; i < replay->nodes.count; i++)
		if (replay->nodes.items[i].kind == REPLAY_SYNC)
			mask[replay->nodes.items[i].row] |= bit;
}

static void replay_mark_change(const struct replay *replay, struct replay_changes *changes, size_t i)
{
	uint16_t bit = (uint16_t)(1u << i);

	switch (changes->items[i].kind) {
	case REPLAY_REMOVE_SYNCS:
		mark_syncs(replay, changes->mask, bit);
		break;
	case REPLAY_NO_LAUNCH_OVERHEAD:
		mark_launching(replay, changes->mask, bit);
		break;
	case REPLAY_WORKERS:
		if (replay->batches.count && (!replay->batch_period_ns || replay->workers))
			mark_names(replay, changes->mask, bit, REPLAY_NAME_BATCH);
		break;
	default:
		break;
	}
}

/* Returns the changes that propagate from a row to its children, to the work that it launched, and to its backward
 * pass. */
static unsigned inherited(const struct replay_changes *changes, bool to_work, bool to_backward)
{
	unsigned bits = 0;

	for (size_t i = 0; i < changes->count; i++) {
		enum replay_change_kind kind = changes->items[i].kind;
		bool whole = kind == REPLAY_SCALE || kind == REPLAY_OVERLAP;

		if (to_work || to_backward ? whole : kind != REPLAY_REMOVE_SYNCS)
			bits |= 1u << i;
	}
	return bits;
}

static void count_marked(const struct replay *replay, struct replay_changes *changes)
{
	for (uint32_t row = 0; row < replay->events->count; row++)
		for (unsigned bits = changes->mask[row]; bits; bits &= bits - 1)
			changes->items[__builtin_ctz(bits)].events++;
}

bool replay_select(const struct replay *replay, struct replay_changes *changes)
{
	const struct ops_events *events = replay->events;
	const uint32_t *forward = ops_forward_rows(replay->trace);
	unsigned children = inherited(changes, false, false), work = inherited(changes, true, false),
	         backward = inherited(changes, false, true);
	uint16_t *mask;

	if (!changes->mask)
		changes->mask = ops_alloc_zeroed(events->count + 1, sizeof(*changes->mask));
	mask = changes->mask;
	if (!mask || !forward)
		return false;
	for (size_t i = 0; i < changes->count; i++)
		replay_mark_change(replay, changes, i);
	count_marked(replay, changes);
	for (uint32_t row = 0; row < events->count; row++) {
		if (forward[row] < row)
			mask[row] |= (uint16_t)(mask[forward[row]] & backward);
		if (events->parent[row] != OPS_NONE)
			mask[row] |= (uint16_t)(mask[events->parent[row]] & children);
	}
	for (uint32_t row = 0; row < events->count; row++)
		if (ops_kind_is_work(events->kind[row]) && replay->launchers[row] != OPS_NONE)
			mask[row] |= (uint16_t)(mask[replay->launchers[row]] & work);
	return true;
}
