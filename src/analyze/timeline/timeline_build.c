/* SPDX-License-Identifier: Apache-2.0
 *
 * The layout of a trace: computes the depth of each row, then groups the rows by lane.
 */
#include <string.h>

#include "analyze/timeline/lane_tree.h"
#include "analyze/timeline/timeline.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "base/sum.h"
#include "derive/extent.h"

/* Hides an operator's bookkeeping, which tables also omit, but shows the range of a session. `window_end` is the name
 * of Kineto's mark of the time at which it stopped waiting for devices; nothing of the program happens then. */
static bool timeline_build_is_shown(const struct ops_events *events, size_t row, uint32_t window_end)
{
	return events->name[row] != window_end &&
	       (!(events->flags[row] & OPS_EVENT_HIDDEN) || events->kind[row] != OPS_EVENT_CPU_OP);
}

static uint32_t window_end_of(const struct ops_trace *trace)
{
	return ops_trace_find_string(trace, "Record Window End", strlen("Record Window End"));
}

/* --- extent --------------------------------------------------------------------------------------------------------- */

static void find_extent(struct ops_timeline *timeline)
{
	struct ops_interval extent = ops_extent_of(timeline->trace);

	timeline->origin_ns = extent.start_ns;
	timeline->duration_ns = ops_difference(extent.end_ns, extent.start_ns);
	timeline->level_max = OPS_TILE_LEVEL_MIN;
	while (timeline->level_max < OPS_TILE_LEVEL_MAX && timeline->duration_ns >> timeline->level_max)
		timeline->level_max++;
}

/* --- depths --------------------------------------------------------------------------------------------------------- */

/* Puts a row below its parent, and in a separate lane from rows that it overlaps in part. Parents precede their
 * children. */
static bool lay_rows(struct ops_timeline *timeline, struct lane_tree *trees)
{
	const struct ops_events *events = timeline->events;
	uint32_t window_end = window_end_of(timeline->trace);

	for (size_t row = 0; row < events->count; row++) {
		uint32_t parent = events->parent[row], from = 0;

		timeline->depths[row] = OPS_NONE;
		if (!timeline_build_is_shown(events, row, window_end))
			continue;
		if (parent != OPS_NONE && timeline->depths[parent] != OPS_NONE)
			from = timeline->depths[parent] + 1;
		timeline->depths[row] = lane_tree_lay(&trees[timeline_place(events, row)], from, events->start_ns[row],
		                                      events->end_ns[row]);
		if (timeline->depths[row] == OPS_NONE)
			return false;
		timeline->entries++;
	}
	return true;
}

/* Returns true if a wrapper is folded; it never folds into a hidden row. */
static bool folds(const struct ops_timeline *timeline, size_t row)
{
	uint32_t into = timeline->wrappers->into ? timeline->wrappers->into[row] : OPS_NONE;

	return into != OPS_NONE && timeline->depths[into] != OPS_NONE && timeline->depths[row] != OPS_NONE;
}

/* Computes the depths with wrappers folded, for places that have wrappers. A wrapper has the depth of the row that it
 * leads to. `trees` are used only where something folds. */
static bool lay_folded_rows(struct ops_timeline *timeline, struct lane_tree *trees, const uint8_t *has_wrappers)
{
	const struct ops_events *events = timeline->events;
	const uint32_t *into = timeline->wrappers->into;
	uint32_t *depths = timeline->folded_depths;

	for (size_t row = 0; row < events->count; row++) {
		uint32_t parent = events->parent[row], from = 0;
		size_t place = timeline_place(events, row);

		depths[row] = timeline->depths[row];
		if (depths[row] == OPS_NONE || !has_wrappers[place])
			continue;
		if (parent != OPS_NONE && depths[parent] != OPS_NONE)
			from = depths[parent] + !folds(timeline, parent);
		depths[row] = from;
		if (folds(timeline, row))
			continue;
		depths[row] = lane_tree_lay(&trees[place], from, events->start_ns[row], events->end_ns[row]);
		if (depths[row] == OPS_NONE)
			return false;
		timeline->entries++;
	}
	for (size_t row = 0; row < events->count; row++)
		if (folds(timeline, row))
			depths[row] = depths[into[row]];
	return true;
}

static bool fold_wrappers(struct ops_timeline *timeline, struct lane_tree *trees, size_t places)
{
	uint8_t *has_wrappers = ops_alloc_zeroed(places + 1, 1);
	bool any = false, done = has_wrappers != NULL;

	for (size_t row = 0; done && timeline->wrappers->into && row < timeline->events->count; row++) {
		if (!folds(timeline, row))
			continue;
		has_wrappers[timeline_place(timeline->events, row)] = 1;
		any = true;
	}
	if (done && any) {
		timeline->folded_depths = ops_realloc_array(NULL, timeline->events->count + 1, sizeof(*timeline->folded_depths));
		done = timeline->folded_depths && lay_folded_rows(timeline, trees, has_wrappers);
	}
	ops_free(has_wrappers);
	return done;
}

static bool build_tracks(struct ops_timeline *timeline, const struct lane_tree *trees, size_t places)
{
	uint32_t *lanes = ops_realloc_array(NULL, 2 * places + 1, sizeof(*lanes));
	bool done = lanes != NULL;

	for (size_t place = 0; done && place < 2 * places; place++)
		lanes[place] = trees[place].used;
	done = done && timeline_tracks_build(timeline, lanes, lanes + places);
	ops_free(lanes);
	return done;
}

static bool timeline_build_find_depths(struct ops_timeline *timeline)
{
	struct lane_tree *trees; /* two for each place; the second is for folded wrappers */
	size_t places;
	bool done;

	ops_trace_tracks(timeline->trace, &places);
	places *= 2;
	trees = ops_alloc_zeroed(2 * places + 1, sizeof(*trees));
	timeline->depths = ops_realloc_array(NULL, timeline->events->count + 1, sizeof(*timeline->depths));
	done = trees && timeline->depths && lay_rows(timeline, trees) && fold_wrappers(timeline, trees + places, places) &&
	       build_tracks(timeline, trees, places);
	for (size_t place = 0; trees && place < 2 * places; place++)
		lane_tree_release(&trees[place]);
	ops_free(trees);
	return done;
}

/* --- lanes ---------------------------------------------------------------------------------------------------------- */

/* Returns OPS_NONE for a hidden row, and with wrappers folded also for wrappers and all rows of tracks without
 * wrappers. */
static uint32_t lane_of(const struct ops_timeline *timeline, uint32_t row, bool fold)
{
	uint32_t id = timeline_track_of(timeline, row);
	const struct timeline_track *track;

	if (id == OPS_NONE)
		return OPS_NONE;
	track = &timeline->tracks.items[id];
	if (!fold)
		return track->first_lane + timeline->depths[row];
	if (track->folded_lane == track->first_lane || folds(timeline, row))
		return OPS_NONE;
	return track->folded_lane + timeline->folded_depths[row];
}

/* A stable counting sort, which preserves the order by start. */
static void sort_rows(struct ops_timeline *timeline)
{
	uint32_t *first = timeline->lane_first;
	uint32_t count = (uint32_t)timeline->events->count, before = 0;
	bool twice = timeline->folded_depths != NULL;

	for (uint32_t row = 0; row < count; row++)
		for (int fold = 0; fold <= twice; fold++)
			if (lane_of(timeline, row, fold) != OPS_NONE)
				first[lane_of(timeline, row, fold)]++;
	for (size_t lane = 0; lane <= timeline->all_lanes; lane++) {
		uint32_t rows = first[lane];

		first[lane] = before;
		before += rows;
	}
	for (uint32_t row = 0; row < count; row++)
		for (int fold = 0; fold <= twice; fold++)
			if (lane_of(timeline, row, fold) != OPS_NONE)
				timeline->rows[first[lane_of(timeline, row, fold)]++] = row;
	memmove(first + 1, first, timeline->all_lanes * sizeof(*first));
	first[0] = 0;
}

static bool fill_lanes(struct ops_timeline *timeline)
{
	uint64_t sum = 0;

	timeline->lane_first = ops_alloc_zeroed(timeline->all_lanes + 1, sizeof(*timeline->lane_first));
	timeline->rows = ops_realloc_array(NULL, timeline->entries + 1, sizeof(*timeline->rows));
	timeline->starts = ops_realloc_array(NULL, timeline->entries + 1, sizeof(*timeline->starts));
	timeline->busy_ns = ops_realloc_array(NULL, timeline->entries + 1, sizeof(*timeline->busy_ns));
	if (!timeline->lane_first || !timeline->rows || !timeline->starts || !timeline->busy_ns)
		return false;
	sort_rows(timeline);
	for (size_t i = 0; i < timeline->entries; i++) {
		uint32_t row = timeline->rows[i];

		timeline->starts[i] = timeline_start(timeline, row);
		timeline->busy_ns[i] = sum;
		sum += (uint64_t)timeline_end(timeline, row) - (uint64_t)timeline->starts[i];
	}
	timeline->busy_ns[timeline->entries] = sum;
	return true;
}

/* --- links by target ------------------------------------------------------------------------------------------------ */

static bool sort_links(struct ops_timeline *timeline)
{
	size_t count, rows = timeline->events->count;
	const struct ops_link *links = ops_trace_links(timeline->trace, &count);
	uint32_t *first = ops_alloc_zeroed(count ? rows + 1 : 1, sizeof(*first));
	uint32_t before = 0;

	timeline->links_to = ops_realloc_array(NULL, count + 1, sizeof(*timeline->links_to));
	if (!first || !timeline->links_to) {
		ops_free(first);
		return false;
	}
	for (size_t i = 0; i < count; i++)
		first[links[i].to]++;
	for (size_t row = 0; count && row < rows; row++) {
		uint32_t here = first[row];

		first[row] = before;
		before += here;
	}
	for (size_t i = 0; i < count; i++)
		timeline->links_to[first[links[i].to]++] = (uint32_t)i;
	ops_free(first);
	return true;
}

/* --- construction and release --------------------------------------------------------------------------------------- */

enum ops_code ops_timeline_new(const struct ops_trace *trace, struct ops_timeline **ret_timeline, struct ops_error *error)
{
	struct ops_timeline *timeline = ops_alloc_zeroed(1, sizeof(*timeline));

	if (!timeline)
		return ops_fault_memory(error);
	timeline->trace = trace;
	timeline->events = ops_trace_events(trace);
	timeline->wrappers = ops_wrappers_of(trace);
	find_extent(timeline);
	if (!timeline->wrappers || !timeline_build_find_depths(timeline) || !fill_lanes(timeline) || !sort_links(timeline) ||
	    !timeline_counters_build(timeline)) {
		ops_timeline_free(timeline);
		return ops_fault_memory(error);
	}
	*ret_timeline = timeline;
	return OPS_OK;
}

void ops_timeline_free(struct ops_timeline *timeline)
{
	if (!timeline)
		return;
	for (size_t i = 0; i < timeline->counters.count; i++) {
		ops_free(timeline->counters.items[i].label);
		ops_free(timeline->counters.items[i].values);
		ops_free(timeline->counters.items[i].block_min);
		ops_free(timeline->counters.items[i].block_max);
	}
	for (size_t i = 0; i < timeline->counter_times.count; i++)
		ops_free(timeline->counter_times.items[i]);
	OPS_ARRAY_RELEASE(&timeline->counters);
	OPS_ARRAY_RELEASE(&timeline->counter_times);
	OPS_ARRAY_RELEASE(&timeline->tracks);
	OPS_ARRAY_RELEASE(&timeline->groups);
	ops_free(timeline->depths);
	ops_free(timeline->folded_depths);
	ops_free(timeline->track_of);
	ops_free(timeline->lane_first);
	ops_free(timeline->rows);
	ops_free(timeline->starts);
	ops_free(timeline->busy_ns);
	ops_free(timeline->links_to);
	ops_free(timeline);
}

size_t ops_timeline_bytes(const struct ops_timeline *timeline)
{
	size_t bytes = sizeof(*timeline), links;

	ops_trace_links(timeline->trace, &links);
	bytes += timeline->events->count * sizeof(*timeline->depths) * (timeline->folded_depths ? 2 : 1);
	bytes += timeline->entries * (sizeof(*timeline->rows) + sizeof(*timeline->starts) + sizeof(*timeline->busy_ns));
	bytes += timeline->all_lanes * sizeof(*timeline->lane_first) + links * sizeof(*timeline->links_to);
	for (size_t i = 0; i < timeline->counters.count; i++)
		bytes += timeline->counters.items[i].count * 2 * sizeof(double);
	return bytes;
}

int64_t ops_timeline_origin(const struct ops_timeline *timeline)
{
	return timeline->origin_ns;
}
