/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace laid out for drawing. Every visible row is in a lane, a depth of a track; the rows of a lane do not
 * overlap, so each lane is a sorted list of starts, and any question about a time range of it is a binary search.
 *
 *     tracks   │ thread 1              │ thread 1, asynchronous │ stream 7 │   in the order to show them
 *     lanes    │ 0      │ 1    │ 2     │ 0                      │ 0        │   a track's are neighbours
 *     rows[]   │ 0 9 17 │ 1 10 │ 2 3 4 │ 5 11                   │ 6 12     │   ascending in each lane
 *     starts[] │ with their starts                                        │
 *     busy[]   │ and the sum of the durations before                      │
 *
 * A track with wrappers (derive/program.h) has a second set of lanes, behind those of all tracks, in which they are folded.
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
	int64_t pid;      /* device ordinal, or string id of another kind of group */
	uint32_t process; /* index into ops_trace_processes, OPS_NONE */
};

struct timeline_track {
	enum timeline_track_kind kind;
	uint32_t source; /* track of the trace */
	uint32_t group;
	uint32_t first_lane;
	uint32_t depths; /* lanes */
	uint32_t folded_lane; /* the first with wrappers folded; first_lane if there are none */
	uint32_t folded_depths;
	uint64_t events;
	int64_t start_ns;
	int64_t end_ns;
};

/* Values over time: of one of a trace's own counters, of what an allocator holds, of how busy a device is. */
struct timeline_counter {
	uint32_t group; /* OPS_NONE: of none */
	enum timeline_unit unit;
	char *label;
	const int64_t *times_ns; /* ascending */
	double *values;
	size_t count;
	double *block_min; /* of each TIMELINE_BLOCK values */
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
	uint32_t *depths;    /* by row; OPS_NONE: not shown */
	uint32_t *folded_depths; /* the same with wrappers folded, which have that of what they fold into; NULL: as `depths` */
	const struct ops_wrappers *wrappers;
	uint32_t *track_of;  /* by the trace's track, twice: what is nested, what is asynchronous; OPS_NONE: no such */
	uint32_t *lane_first; /* by lane, one more than there are: where its rows begin in the three below */
	uint32_t *rows;      /* by entry */
	int64_t *starts;     /* since the origin */
	uint64_t *busy_ns;   /* one more than there are; sums of two lanes wrap */
	uint32_t *links_to;  /* indexes of links, by the row they lead to */
	size_t entries;
	size_t lane_count;   /* without those in which wrappers are folded */
	size_t all_lanes;
	OPS_ARRAY(struct timeline_track) tracks;
	OPS_ARRAY(struct timeline_group) groups;
	OPS_ARRAY(struct timeline_counter) counters;
	OPS_ARRAY(int64_t *) counter_times; /* what the counters' times point into */
};

/* The index of a row in its track of the trace, nested or asynchronous. */
static inline size_t timeline_place(const struct ops_events *events, size_t row)
{
	return events->track[row] * 2u + (events->flags[row] & OPS_EVENT_ASYNC ? 1 : 0);
}

/* Since the origin; times that are out of all reason stop at the end of the type. */
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

/* How a kind is called: its category, "mark" or "other". */
const char *timeline_kind_name(int kind);

/* Finds tracks and groups of all rows, whose depths are known; `lanes` and `folded_lanes` have how many a place has. The latter
 * are 0 where nothing folds. False when memory is out. */
bool timeline_tracks_build(struct ops_timeline *timeline, const uint32_t *lanes, const uint32_t *folded_lanes);
void timeline_tracks_write(const struct ops_timeline *timeline, struct ops_json_writer *json);
/* The group of a process (or of a device), OPS_NONE when nothing of it is shown. */
uint32_t timeline_find_group(const struct ops_timeline *timeline, enum timeline_group_kind kind, int64_t pid);

bool timeline_counters_build(struct ops_timeline *timeline);
void timeline_counters_write(const struct ops_timeline *timeline, struct ops_json_writer *json);

/* The depths of a row, as members; null for OPS_NONE. */
void timeline_write_depths(const struct ops_timeline *timeline, struct ops_json_writer *json, uint32_t row);
/* The members of an object that says where a row stands. */
void timeline_write_place(const struct ops_timeline *timeline, struct ops_json_writer *json, const char *key, uint32_t row);
void timeline_write_flow(const struct ops_timeline *timeline, struct ops_json_writer *json, const struct ops_link *link);
/* The first link from `row` or a row behind it, and, as a place in `links_to`, the first to it or a row behind. */
size_t timeline_links_from(const struct ops_timeline *timeline, uint32_t row);
size_t timeline_links_to(const struct ops_timeline *timeline, uint32_t row);
/* A number, or null for OPS_NONE. */
void timeline_write_number(struct ops_json_writer *json, const char *key, uint32_t value);
void timeline_write_string(const struct ops_timeline *timeline, struct ops_json_writer *json, const char *key, uint32_t id);

/* Whether a window has a track; `wanted` is made of it by timeline_wanted: bits by track, NULL for all. */
enum ops_code timeline_wanted(const struct ops_timeline *timeline, const struct ops_window *window, uint8_t **ret_wanted,
                              struct ops_error *error);

/* The rows of a window: first those that begin before it and reach into it, ascending, then from the first to before the
 * last of those that begin in it. `straddlers` is to be freed. */
struct timeline_rows {
	uint32_t *straddlers;
	size_t straddler_count;
	uint32_t first, last;
};
bool timeline_rows_in(const struct ops_timeline *timeline, const struct ops_window *window, struct timeline_rows *ret_rows);

#endif
