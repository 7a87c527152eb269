/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace laid out for drawing. Every visible row is in a lane, which is one depth of a track. The rows of a lane do
 * not overlap, so a lane is a sorted list of starts, and a time range in it is found by binary search.
 *
 *     tracks   │ thread 1              │ thread 1, asynchronous │ stream 7 │   in the order to show them
 *     lanes    │ 0      │ 1    │ 2     │ 0                      │ 0        │   a track's are neighbours
 *     rows[]   │ 0 9 17 │ 1 10 │ 2 3 4 │ 5 11                   │ 6 12     │   ascending in each lane
 *     starts[] │ with their starts                                        │
 *     busy[]   │ and the sum of the durations before                      │
 *
 * A track with wrappers (derive/program.h) has a second set of lanes in which the wrappers are folded. These lanes
 * follow those of all tracks.
 *
 *     timeline_build.c     depths, lanes            lane_tree.c          which depth is free
 *     timeline_tracks.c    tracks and groups        timeline_counters.c  counters
 *     timeline_tiles.c, timeline_event.c, timeline_search.c, timeline_range.c, timeline_flows.c, timeline_json.c: answers
 */
#ifndef OPS_ANALYZE_TIMELINE_H
#define OPS_ANALYZE_TIMELINE_H

#include <opstrobe/internal/timeline.h>

#include "base/array.h"
#include "base/json_writer.h"
#include "derive/program.h"

enum timeline_group_kind { TIMELINE_PROCESS, TIMELINE_DEVICE, TIMELINE_OTHER_GROUP };
enum timeline_track_kind { TIMELINE_THREAD, TIMELINE_STREAM, TIMELINE_ASYNC, TIMELINE_OTHER };
enum timeline_unit { TIMELINE_PLAIN, TIMELINE_BYTES, TIMELINE_RATIO };

struct timeline_group {
	enum timeline_group_kind kind;
	int64_t pid;      /* device ordinal, or string id for other kinds of groups */
	uint32_t process; /* index into ops_trace_processes; OPS_NONE: none */
};

struct timeline_track {
	enum timeline_track_kind kind;
	uint32_t source; /* track of the trace */
	uint32_t group;
	uint32_t first_lane;
	uint32_t depths; /* number of lanes */
	uint32_t folded_lane; /* first of the lanes with wrappers folded; equal to first_lane if there are no wrappers */
	uint32_t folded_depths;
	uint64_t events;
	int64_t start_ns;
	int64_t end_ns;
};

/* Values over time: a counter of the trace, the bytes held by an allocator, or the utilization of a device. */
struct timeline_counter {
	uint32_t group; /* OPS_NONE: no group */
	enum timeline_unit unit;
	char *label;
	const int64_t *times_ns; /* ascending */
	double *values;
	size_t count;
	double *block_min; /* minimum of each block of TIMELINE_BLOCK values */
	double *block_max;
	double min, max;
};
#define TIMELINE_BLOCK 64

struct ops_timeline {
	const struct ops_trace *trace;
	const struct ops_events *events;
	int64_t origin_ns;
	int64_t duration_ns;
	uint32_t level_max;
	uint32_t *depths;    /* by row; OPS_NONE: not visible */
	uint32_t *folded_depths; /* the same with wrappers folded: a wrapper has the depth of the row that it folds
	                          * into; NULL: equal to `depths` */
	const struct ops_wrappers *wrappers;
	uint32_t *track_of;  /* two entries per track of the trace: its nested rows and its asynchronous rows; OPS_NONE:
	                      * no such rows */
	uint32_t *lane_first; /* by lane, with one more entry: start of its rows in the three arrays below */
	uint32_t *rows;      /* by entry: the row */
	int64_t *starts;     /* by entry: its start, relative to the origin */
	uint64_t *busy_ns;   /* by entry, with one more: sum of the durations before; wraps between lanes */
	uint32_t *links_to;  /* indexes of links, by the row that they lead to */
	size_t entries;
	size_t lane_count;   /* excludes the lanes with wrappers folded */
	size_t all_lanes;
	OPS_ARRAY(struct timeline_track) tracks;
	OPS_ARRAY(struct timeline_group) groups;
	OPS_ARRAY(struct timeline_counter) counters;
	OPS_ARRAY(int64_t *) counter_times; /* storage of the counters' times */
};

/* Returns the index of a row's place: its track in the trace, nested or asynchronous. */
static inline size_t timeline_place(const struct ops_events *events, size_t row)
{
	return events->track[row] * 2u + (events->flags[row] & OPS_EVENT_ASYNC ? 1 : 0);
}

/* Converts a time to one relative to the origin. Saturates at the limits of the type. */
static inline int64_t timeline_since(const struct ops_timeline *timeline, int64_t time_ns)
{
	uint64_t since = (uint64_t)time_ns - (uint64_t)timeline->origin_ns;

	return time_ns <= timeline->origin_ns ? 0 : since > INT64_MAX ? INT64_MAX : (int64_t)since;
}

static inline int64_t timeline_start(const struct ops_timeline *timeline, uint32_t row)
{
	return timeline_since(timeline, timeline->events->start_ns[row]);
}

static inline int64_t timeline_end(const struct ops_timeline *timeline, uint32_t row)
{
	return timeline_since(timeline, timeline->events->end_ns[row]);
}

static inline uint32_t timeline_track_of(const struct ops_timeline *timeline, uint32_t row)
{
	return timeline->depths[row] == OPS_NONE ? OPS_NONE : timeline->track_of[timeline_place(timeline->events, row)];
}

static inline uint32_t timeline_depth(const struct ops_timeline *timeline, uint32_t row, bool fold)
{
	return (fold && timeline->folded_depths ? timeline->folded_depths : timeline->depths)[row];
}

/* Returns the name of a kind: its category, "mark" or "other". */
const char *timeline_kind_name(int kind);

/* Builds tracks and groups from all rows, whose depths are set. `lanes` and `folded_lanes` are the numbers of lanes of
 * each place; the latter are 0 where nothing folds. Returns false if out of memory. */
bool timeline_tracks_build(struct ops_timeline *timeline, const uint32_t *lanes, const uint32_t *folded_lanes);
void timeline_tracks_write(const struct ops_timeline *timeline, struct ops_json_writer *json);
/* Finds the group of a process or device. Returns OPS_NONE if nothing of it is visible. */
uint32_t timeline_find_group(const struct ops_timeline *timeline, enum timeline_group_kind kind, int64_t pid);

bool timeline_counters_build(struct ops_timeline *timeline);
void timeline_counters_write(const struct ops_timeline *timeline, struct ops_json_writer *json);

/* Writes the depths of a row as members; null for OPS_NONE. */
void timeline_write_depths(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row);
/* Writes the members that locate a row. */
void timeline_write_place(const struct ops_timeline *timeline, struct ops_json_writer *json, const char *key, uint32_t row);
void timeline_write_flow(const struct ops_timeline *timeline, struct ops_json_writer *json, const struct ops_link *link);
/* Returns the index of the first link from `row` or a later row. timeline_links_to() returns the same for links to
 * these rows, as an index into `links_to`. */
size_t timeline_links_from(const struct ops_timeline *timeline, uint32_t row);
size_t timeline_links_to(const struct ops_timeline *timeline, uint32_t row);
/* Writes a number, or null for OPS_NONE. */
void timeline_write_number(struct ops_json_writer *json, const char *key, uint32_t value);
void timeline_write_string(const struct ops_timeline *timeline, struct ops_json_writer *json, const char *key, uint32_t id);

/* Builds the set of the tracks of a window, for tests of single tracks: bits by track, NULL for all. */
enum ops_code timeline_wanted(const struct ops_timeline *timeline, const struct ops_window *window, uint8_t **ret_wanted,
                              struct ops_error *error);

/* The rows of a window: `straddlers` begin before it and reach into it, in ascending order; `first` up to `last`,
 * exclusive, begin in it. The caller frees `straddlers`. */
struct timeline_rows {
	uint32_t *straddlers;
	size_t straddler_count;
	uint32_t first, last;
};
bool timeline_rows_in(const struct ops_timeline *timeline, const struct ops_window *window, struct timeline_rows *ret_rows);

#endif
