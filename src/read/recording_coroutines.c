/* SPDX-License-Identifier: Apache-2.0
 *
 * See recording_coroutines.h.
 */
#include "read/recording_coroutines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/heap.h"
#include "base/json.h"
#include "base/text.h"

/* Maximum number of tracks that belong to one coroutine each. Servers have a coroutine for each request. Further coroutines share
 * as many tracks as there are of them at the same time, and their ranges name them. */
#define OWN_TRACKS_MAX 1000

struct coroutine_key {
	int64_t tid;
	uint64_t greenlet;
	uint64_t context;
	uint64_t kind;
};

static void release_tracks(struct recording_coroutines *coroutines)
{
	for (size_t i = 0; i < coroutines->tracks.count; i++)
		OPS_ARRAY_RELEASE(&coroutines->tracks.items[i].open_ends_ns);
	OPS_ARRAY_RELEASE(&coroutines->tracks);
	coroutines->own_track_count = 0;
	for (size_t i = 0; i < coroutines->items.count; i++) {
		coroutines->items.items[i].first_track = 0;
		coroutines->items.items[i].is_sharing = false;
		OPS_ARRAY_RELEASE(&coroutines->items.items[i].shared);
	}
}

void recording_coroutines_release(struct recording_coroutines *coroutines)
{
	release_tracks(coroutines);
	OPS_ARRAY_RELEASE(&coroutines->moved);
	OPS_ARRAY_RELEASE(&coroutines->items);
	OPS_ARRAY_RELEASE(&coroutines->latest);
	ops_intern_release(&coroutines->keys);
}

/* --- coroutines ----------------------------------------------------------------------------------------------------- */

/* Memory is reused: equal identities with another name are another coroutine. Without the GIL the name is unknown. Returns
 * OPS_NONE if out of memory. */
static uint32_t find_coroutine(struct recording_coroutines *coroutines, struct coroutine_key key, uint32_t name)
{
	size_t known = coroutines->latest.count;
	uint32_t id = OPS_ARRAY_RESERVE(&coroutines->latest, 1) ? ops_intern_add(&coroutines->keys, &key, sizeof(key))
	                                                          : OPS_INTERN_NONE;
	struct recording_coroutine *item = id < known ? &coroutines->items.items[coroutines->latest.items[id]] : NULL;

	if (id == OPS_INTERN_NONE)
		return OPS_NONE;
	if (item && (!name || !item->name || item->name == name)) {
		item->name = item->name ? item->name : name;
		return coroutines->latest.items[id];
	}
	item = OPS_ARRAY_PUSH(&coroutines->items);
	if (!item)
		return OPS_NONE;
	*item = (struct recording_coroutine){.tid = key.tid, .kind = key.kind, .name = name};
	if (id == known)
		coroutines->latest.count++;
	return coroutines->latest.items[id] = (uint32_t)coroutines->items.count - 1;
}

/* Room must have been reserved. */
static void move(struct recording_coroutines *coroutines, const struct recording_turn *turn, struct recording_open *range)
{
	range->is_moved = true;
	coroutines->moved.items[coroutines->moved.count++] =
		(struct recording_moved){range->start_ns, range->end_ns, turn->tid, range->row, range->coroutine};
}

bool recording_coroutines_reserve(struct recording_coroutines *coroutines, struct recording_turn *turn)
{
	return OPS_ARRAY_RESERVE(&turn->open, 1) && OPS_ARRAY_RESERVE(&coroutines->moved, turn->open.count + 1);
}

bool recording_coroutines_switch(struct recording_coroutines *coroutines, struct recording_turn *turn,
                                 const struct recording_running *running, int64_t time_ns)
{
	uint32_t name_id;

	turn->greenlet = running->greenlet;
	turn->context = running->context;
	turn->coroutine = OPS_NONE;
	if (turn->greenlet || turn->context) {
		struct coroutine_key key = {turn->tid, turn->greenlet, turn->context, COROUTINE_OF_PROGRAM};

		name_id = ops_builder_string(coroutines->builder, running->name.bytes, running->name.size);
		turn->coroutine = name_id == OPS_NONE ? OPS_NONE : find_coroutine(coroutines, key, name_id);
		if (turn->coroutine == OPS_NONE)
			return false;
	}
	if (!recording_coroutines_reserve(coroutines, turn))
		return false;
	for (size_t i = 0; i < turn->open.count; i++) {
		struct recording_open *range = &turn->open.items[i];

		if (range->can_move && !range->is_moved && range->end_ns > time_ns &&
		    !recording_running_calls(running, range->greenlet, range->context))
			move(coroutines, turn, range);
	}
	return true;
}

/* --- open ranges ---------------------------------------------------------------------------------------------------- */

static bool recording_coroutines_is_step(const struct recording_coroutines *coroutines, const struct ops_new_event *event)
{
	struct ops_string name = ops_builder_text(coroutines->builder, event->name);

	return event->kind == OPS_EVENT_USER_ANNOTATION && ops_begins_with(name.bytes, name.size, "ProfilerStep#");
}

/* Removes ranges that have ended. A range that began after one that ends later may stay, and is checked again. */
static void recording_coroutines_close_until(struct recording_turn *turn, int64_t time_ns)
{
	while (turn->open.count && (turn->open.items[turn->open.count - 1].end_ns <= time_ns ||
	                            turn->open.items[turn->open.count - 1].is_moved))
		turn->open.count--;
}

/* A step may be recorded after its end, and after the events inside it. */
static bool begins_within(const struct recording_open *range, const struct recording_open *outer)
{
	return range->start_ns > outer->start_ns || (range->start_ns == outer->start_ns && range->end_ns <= outer->end_ns);
}

/* Moves `range` or, so that a step is not cut, the range that it overlaps. */
static void resolve_cuts(struct recording_coroutines *coroutines, const struct recording_turn *turn, struct recording_open *range)
{
	for (size_t i = turn->open.count; i-- > 0;) {
		struct recording_open *other = &turn->open.items[i];

		if (other->is_moved || other->end_ns <= range->start_ns)
			continue;
		if (begins_within(range, other)) {
			if (other->end_ns >= range->end_ns)
				break; /* outer ranges do as well */
		} else if (other->end_ns <= range->end_ns) {
			continue;
		}
		if (range->can_move) {
			move(coroutines, turn, range);
			return;
		}
		if (other->can_move)
			move(coroutines, turn, other);
	}
}

void recording_coroutines_open(struct recording_coroutines *coroutines, struct recording_turn *turn,
                               const struct ops_new_event *event, uint32_t row, bool is_held)
{
	bool is_range = event->kind == OPS_EVENT_USER_ANNOTATION;
	struct recording_open range = {
		.start_ns = event->start_ns,
		.end_ns = event->end_ns,
		.row = row,
		.greenlet = turn->greenlet,
		.context = turn->context,
		.coroutine = turn->coroutine,
		.can_move = is_held || (is_range && !recording_coroutines_is_step(coroutines, event)),
	};

	recording_coroutines_close_until(turn, event->start_ns);
	if (is_range || is_held)
		resolve_cuts(coroutines, turn, &range);
	if (!range.is_moved) {
		size_t at = turn->open.count++;

		for (; at && turn->open.items[at - 1].start_ns > range.start_ns; at--)
			turn->open.items[at] = turn->open.items[at - 1];
		turn->open.items[at] = range;
	}
}

/* --- tracks --------------------------------------------------------------------------------------------------------- */

static int compare_moved(const void *left, const void *right)
{
	const struct recording_moved *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return a->row < b->row ? -1 : a->row > b->row;
}

/* Appends "asyncio Task-3". */
static void append_coroutine(const struct recording_coroutines *coroutines, uint32_t coroutine, struct ops_buffer *out)
{
	const struct recording_coroutine *item = &coroutines->items.items[coroutine];
	struct ops_string name = ops_builder_text(coroutines->builder, item->name);

	if (item->kind == COROUTINE_NONE)
		ops_buffer_append_text(out, "overlapping ranges");
	else if (item->kind == COROUTINE_FURTHER)
		ops_buffer_append_text(out, "further coroutines");
	else if (name.size)
		ops_buffer_append(out, name.bytes, name.size);
	else
		ops_buffer_printf(out, "coroutine %" PRIu32, coroutine + 1);
}

static uint32_t recording_coroutines_name_track(struct recording_coroutines *coroutines, uint32_t coroutine)
{
	struct ops_buffer label = {0};
	uint32_t id = OPS_NONE;

	append_coroutine(coroutines, coroutine, &label);
	ops_buffer_printf(&label, " of thread %" PRId64, coroutines->items.items[coroutine].tid);
	if (!label.failed)
		id = ops_builder_string(coroutines->builder, label.bytes, label.size);
	ops_buffer_release(&label);
	return id;
}

/* Adds a track for a coroutine, or for those that share tracks. Returns NULL if out of memory. */
static struct recording_coroutine_track *recording_coroutines_add_track(struct recording_coroutines *coroutines,
                                                                        uint32_t coroutine, int64_t pid, uint32_t *number)
{
	struct recording_coroutine *item = &coroutines->items.items[coroutine];
	struct recording_coroutine_track *added = OPS_ARRAY_PUSH(&coroutines->tracks);
	struct ops_track track = {.kind = OPS_TRACK_THREAD, .flags = OPS_TRACK_COROUTINE, .pid = pid};

	if (!added)
		return NULL;
	track.number = ++*number;
	track.tid = OPS_COROUTINE_TIDS + track.number;
	track.name = recording_coroutines_name_track(coroutines, coroutine);
	*added = (struct recording_coroutine_track){.track = ops_builder_track(coroutines->builder, &track),
	                                            .next = item->first_track,
	                                            .owner = coroutine};
	item->first_track = (uint32_t)coroutines->tracks.count;
	return added->track == OPS_NONE || track.name == OPS_NONE ? NULL : added;
}

/* Returns whether the range nests among those on the track; ranges come in order of their start. */
static bool has_room(struct recording_coroutine_track *track, const struct recording_moved *range)
{
	size_t count = track->open_ends_ns.count;

	while (count && track->open_ends_ns.items[count - 1] <= range->start_ns)
		count--;
	track->open_ends_ns.count = count;
	return !count || track->open_ends_ns.items[count - 1] >= range->end_ns;
}

/* Returns a track that belongs to one coroutine; NULL if out of memory. */
static struct recording_coroutine_track *recording_coroutines_own_track(struct recording_coroutines *coroutines,
                                                                        uint32_t coroutine, const struct recording_moved *range,
                                                                        int64_t pid, uint32_t *number)
{
	struct recording_coroutine_track *track;

	for (uint32_t at = coroutines->items.items[coroutine].first_track; at; at = coroutines->tracks.items[at - 1].next)
		if (has_room(&coroutines->tracks.items[at - 1], range))
			return &coroutines->tracks.items[at - 1];
	track = recording_coroutines_add_track(coroutines, coroutine, pid, number);
	coroutines->own_track_count += track != NULL;
	return track;
}

static bool recording_coroutines_is_free_before(const void *tracks, uint32_t a, uint32_t b)
{
	const struct recording_coroutine_track *items = tracks;

	return items[a].free_ns != items[b].free_ns ? items[a].free_ns < items[b].free_ns : a < b;
}

/* Removes a track on which nothing is open from the shared ones. Returns NULL if there is none. */
static struct recording_coroutine_track *find_free_track(struct recording_coroutines *coroutines, struct recording_coroutine *further,
                                                         const struct recording_moved *range)
{
	struct recording_coroutine_track *tracks = coroutines->tracks.items;

	while (further->shared.count && tracks[further->shared.items[0]].free_ns <= range->start_ns) {
		uint32_t first = further->shared.items[0];

		ops_heap_pop(further->shared.items, &further->shared.count, recording_coroutines_is_free_before, tracks);
		has_room(&tracks[first], range);
		if (!tracks[first].open_ends_ns.count)
			return &tracks[first];
		tracks[first].free_ns = tracks[first].open_ends_ns.items[0];
		ops_heap_push(further->shared.items, &further->shared.count, first, recording_coroutines_is_free_before, tracks);
	}
	return NULL;
}

/* Returns a track that coroutines share; NULL if out of memory. Ranges of different coroutines never nest on it. */
static struct recording_coroutine_track *recording_coroutines_shared_track(struct recording_coroutines *coroutines,
                                                                           const struct recording_moved *range, int64_t pid,
                                                                           uint32_t *number)
{
	struct recording_coroutine *item = &coroutines->items.items[range->coroutine], *further;
	struct recording_coroutine_track *track = item->first_track ? &coroutines->tracks.items[item->first_track - 1] : NULL;
	struct coroutine_key key = {.tid = range->tid, .kind = COROUTINE_FURTHER};
	uint32_t sharing;

	if (track && track->owner == range->coroutine && has_room(track, range))
		return track;
	sharing = find_coroutine(coroutines, key, 0);
	if (sharing == OPS_NONE || !OPS_ARRAY_RESERVE(&coroutines->items.items[sharing].shared, 1))
		return NULL;
	further = &coroutines->items.items[sharing];
	track = find_free_track(coroutines, further, range);
	if (!track && !(track = recording_coroutines_add_track(coroutines, sharing, pid, number)))
		return NULL;
	track->owner = range->coroutine;
	track->free_ns = range->end_ns;
	item = &coroutines->items.items[range->coroutine];
	item->first_track = (uint32_t)(track - coroutines->tracks.items) + 1;
	item->is_sharing = true;
	ops_heap_push(further->shared.items, &further->shared.count, item->first_track - 1, recording_coroutines_is_free_before,
	              coroutines->tracks.items);
	return track;
}

/* Adds the name of a range's coroutine, which its track does not give, to its arguments. A second attempt finds it there. */
static bool recording_coroutines_name_range(struct recording_coroutines *coroutines, const struct recording_moved *range)
{
	struct ops_string before = ops_builder_extra(coroutines->builder, range->row);
	struct ops_buffer text = {0};
	struct ops_buffer name = {0};
	bool ok;

	append_coroutine(coroutines, range->coroutine, &name);
	ops_buffer_append_text(&text, "\"Coroutine\":");
	ops_json_string(&text, name.bytes, name.size);
	ok = !name.failed && !text.failed;
	if (ok && (before.size < text.size || memcmp(before.bytes, text.bytes, text.size) != 0)) {
		if (before.size)
			ops_buffer_append_text(&text, ",");
		ops_buffer_append(&text, before.bytes, before.size);
		ok = !text.failed;
		if (ok)
			ops_builder_set_extra(coroutines->builder, range->row,
			                      ops_builder_string(coroutines->builder, text.bytes, text.size));
	}
	ops_buffer_release(&name);
	ops_buffer_release(&text);
	return ok;
}

static bool recording_coroutines_place(struct recording_coroutines *coroutines, const struct recording_moved *range,
                                       int64_t pid, uint32_t *number)
{
	const struct recording_coroutine *item = range->coroutine == OPS_NONE ? NULL : &coroutines->items.items[range->coroutine];
	struct recording_coroutine_track *track = NULL;
	bool is_sharing = item && (item->is_sharing || (!item->first_track && coroutines->own_track_count >= OWN_TRACKS_MAX));
	uint32_t coroutine = item ? range->coroutine
	                          : find_coroutine(coroutines, (struct coroutine_key){.tid = range->tid, .kind = COROUTINE_NONE}, 0);

	if (is_sharing)
		track = recording_coroutines_shared_track(coroutines, range, pid, number);
	else if (coroutine != OPS_NONE)
		track = recording_coroutines_own_track(coroutines, coroutine, range, pid, number);
	if (!track || !OPS_ARRAY_APPEND(&track->open_ends_ns, range->end_ns))
		return false;
	ops_builder_set_apart(coroutines->builder, range->row, track->track);
	return !is_sharing || recording_coroutines_name_range(coroutines, range);
}

bool recording_coroutines_finish(struct recording_coroutines *coroutines, int64_t pid, uint32_t *number)
{
	release_tracks(coroutines);
	if (coroutines->moved.count)
		qsort(coroutines->moved.items, coroutines->moved.count, sizeof(*coroutines->moved.items), compare_moved);
	for (size_t i = 0; i < coroutines->moved.count; i++)
		if (!recording_coroutines_place(coroutines, &coroutines->moved.items[i], pid, number))
			return false;
	return true;
}
