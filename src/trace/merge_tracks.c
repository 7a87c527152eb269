/* SPDX-License-Identifier: Apache-2.0
 *
 * See merge_tracks.h.
 */
#include "trace/merge_tracks.h"

#include "base/alloc.h"

#define NEAR 1000 /* a number in use is replaced by the next free one; after this many attempts, by one above all others */

struct track_key {
	int64_t pid, tid;
	uint32_t kind, flags, number, unused;
};

static struct track_key merge_tracks_key_of(const struct ops_track *track)
{
	return (struct track_key){track->pid, track->tid, (uint32_t)track->kind, track->flags, track->number, 0};
}

uint32_t merge_tracks_find(const struct merge_tracks *tracks, const struct ops_track *track)
{
	struct track_key key = merge_tracks_key_of(track);
	uint32_t id = ops_intern_find(&tracks->known, &key, sizeof(key));

	return id == OPS_INTERN_NONE ? OPS_NONE : tracks->of_known.items[id];
}

static bool merge_tracks_has(const struct ops_intern *numbers, const void *number, size_t size)
{
	return ops_intern_find(numbers, number, size) != OPS_INTERN_NONE;
}

static uint32_t free_number(const struct merge_tracks *tracks, uint32_t number)
{
	for (uint32_t tried = 0; merge_tracks_has(&tracks->numbers, &number, sizeof(number)); tried++)
		number = tried < NEAR ? number + 1 : tracks->number_max + 1 + (tried - NEAR);
	return number;
}

static bool add_pid(struct merge_tracks *tracks, int64_t pid)
{
	if (pid > tracks->pid_max)
		tracks->pid_max = pid;
	return ops_intern_add(&tracks->pids, &pid, sizeof(pid)) != OPS_INTERN_NONE;
}

bool merge_tracks_reserve_pid(struct merge_tracks *tracks, int64_t *pid)
{
	uint64_t number = (uint64_t)*pid;

	for (uint64_t tried = 0; merge_tracks_has(&tracks->pids, &number, sizeof(number)); tried++)
		number = tried < NEAR ? number + 1 : (uint64_t)tracks->pid_max + 1 + (tried - NEAR);
	*pid = (int64_t)number;
	return add_pid(tracks, *pid);
}

uint32_t merge_tracks_add(struct merge_tracks *tracks, struct ops_track *track)
{
	uint32_t at = (uint32_t)tracks->list.count, id;
	struct ops_track *added = OPS_ARRAY_PUSH(&tracks->list);
	struct track_key key;

	if (!added || !OPS_ARRAY_RESERVE(&tracks->of_known, 1))
		return OPS_NONE;
	if (track->kind == OPS_TRACK_THREAD) {
		track->number = free_number(tracks, track->number);
		if (track->number > tracks->number_max)
			tracks->number_max = track->number;
		if (ops_intern_add(&tracks->numbers, &track->number, sizeof(track->number)) == OPS_INTERN_NONE)
			return OPS_NONE;
	}
	if (track->flags & OPS_TRACK_COROUTINE)
		track->tid = OPS_COROUTINE_TIDS + track->number;
	key = merge_tracks_key_of(track);
	id = ops_intern_add(&tracks->known, &key, sizeof(key));
	if (id == OPS_INTERN_NONE || (!(track->flags & OPS_TRACK_PID_TEXT) && !add_pid(tracks, track->pid)))
		return OPS_NONE;
	if (id == tracks->of_known.count)
		tracks->of_known.items[tracks->of_known.count++] = at;
	*added = *track;
	return at;
}

void merge_tracks_release(struct merge_tracks *tracks)
{
	OPS_ARRAY_RELEASE(&tracks->list);
	OPS_ARRAY_RELEASE(&tracks->of_known);
	ops_intern_release(&tracks->known);
	ops_intern_release(&tracks->numbers);
	ops_intern_release(&tracks->pids);
}
