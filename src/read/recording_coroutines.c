/* SPDX-License-Identifier: Apache-2.0
 *
 * See recording_coroutines.h.
 */
#include "read/recording_coroutines.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/text.h"

/* Maximum number of separate tracks. Servers have a coroutine for each request, and thousands of tracks are of no use. */
#define OWN_TRACKS_MAX 100

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
	for (size_t i = 0; i < coroutines->items.count; i++)
		coroutines->items.items[i].first_track = 0;
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

/* Returns whether the function that began `range` still runs and called the current one, whose contexts are `contexts`. */
static bool recording_coroutines_is_running(const struct recording_open *range, uint64_t greenlet, struct ops_payload contexts)
{
	uint64_t context;

	if (range->greenlet && range->greenlet != greenlet)
		return false;
	if (!range->context)
		return true;
	while (ops_payload_read(&contexts, &context, sizeof(context)))
		if (context == range->context)
			return true;
	return false;
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
                                 struct ops_payload payload, int64_t time_ns)
{
	struct ops_string name;
	struct ops_payload contexts;
	uint32_t name_id;

	if (!ops_payload_text(&payload, &name) || !ops_payload_read(&payload, &turn->greenlet, sizeof(turn->greenlet)))
		return true;
	contexts = payload;
	turn->context = 0;
	turn->coroutine = OPS_NONE;
	ops_payload_read(&payload, &turn->context, sizeof(turn->context));
	if (turn->greenlet || turn->context) {
		struct coroutine_key key = {turn->tid, turn->greenlet, turn->context, COROUTINE_OF_PROGRAM};

		name_id = ops_builder_string(coroutines->builder, name.bytes, name.size);
		turn->coroutine = name_id == OPS_NONE ? OPS_NONE : find_coroutine(coroutines, key, name_id);
		if (turn->coroutine == OPS_NONE)
			return false;
	}
	if (!recording_coroutines_reserve(coroutines, turn))
		return false;
	for (size_t i = 0; i < turn->open.count; i++) {
		struct recording_open *range = &turn->open.items[i];

		if (range->can_move && !range->is_moved && range->end_ns > time_ns &&
		    !recording_coroutines_is_running(range, turn->greenlet, contexts))
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

static uint32_t recording_coroutines_name_track(struct recording_coroutines *coroutines, uint32_t coroutine)
{
	const struct recording_coroutine *item = &coroutines->items.items[coroutine];
	struct ops_string name = ops_builder_text(coroutines->builder, item->name);
	struct ops_buffer label = {0};
	uint32_t id = OPS_NONE;

	ops_buffer_append(&label, name.bytes, name.size);
	if (item->kind == COROUTINE_NONE)
		ops_buffer_append_text(&label, "overlapping ranges");
	else if (item->kind == COROUTINE_FURTHER)
		ops_buffer_append_text(&label, "further coroutines");
	else if (!name.size)
		ops_buffer_printf(&label, "coroutine %" PRIu32, coroutine + 1);
	ops_buffer_printf(&label, " of thread %" PRId64, item->tid);
	if (!label.failed)
		id = ops_builder_string(coroutines->builder, label.bytes, label.size);
	ops_buffer_release(&label);
	return id;
}

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
	*added = (struct recording_coroutine_track){ops_builder_track(coroutines->builder, &track), item->first_track, {0}};
	item->first_track = (uint32_t)coroutines->tracks.count;
	return added->track == OPS_NONE || track.name == OPS_NONE ? NULL : added;
}

/* Returns the coroutine on whose tracks the range is shown. */
static uint32_t recording_coroutines_find_shown(struct recording_coroutines *coroutines, const struct recording_moved *range)
{
	struct coroutine_key key = {.tid = range->tid, .kind = COROUTINE_NONE};

	if (range->coroutine != OPS_NONE) {
		if (coroutines->items.items[range->coroutine].first_track || coroutines->tracks.count < OWN_TRACKS_MAX)
			return range->coroutine;
		key.kind = COROUTINE_FURTHER;
	}
	return find_coroutine(coroutines, key, 0);
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

static bool recording_coroutines_place(struct recording_coroutines *coroutines, const struct recording_moved *range,
                                       int64_t pid, uint32_t *number)
{
	uint32_t coroutine = recording_coroutines_find_shown(coroutines, range);
	struct recording_coroutine_track *track = NULL;
	int64_t *end_ns;

	if (coroutine == OPS_NONE)
		return false;
	for (uint32_t at = coroutines->items.items[coroutine].first_track; at && !track; at = coroutines->tracks.items[at - 1].next)
		if (has_room(&coroutines->tracks.items[at - 1], range))
			track = &coroutines->tracks.items[at - 1];
	if (!track && !(track = recording_coroutines_add_track(coroutines, coroutine, pid, number)))
		return false;
	end_ns = OPS_ARRAY_PUSH(&track->open_ends_ns);
	if (!end_ns)
		return false;
	*end_ns = range->end_ns;
	ops_builder_set_apart(coroutines->builder, range->row, track->track);
	return true;
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
