/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/timeline.h: a trace as boxes on tracks, for a viewer that shows one range of time at a time: tiles of any
 * zoom, counters, single events, search hits, sums of a range, flows. docs/http-api.md and docs/openapi.yaml describe the
 * results.
 *
 *     ops_timeline_new(trace, &timeline, &error);
 *     ops_timeline_json(timeline, &text, &size, &error);                  // tracks, counters, steps
 *     ops_timeline_tiles(timeline, tiles, count, &bytes, &size, &error);  // boxes
 *     ops_timeline_free(timeline);
 *
 * A timeline borrows its trace and does not change, so any thread may use it. Times are ns since the timeline's origin. Results
 * are freed with ops_free; texts end with a NUL. OPS_INVALID for tracks, rows or levels that do not exist.
 */
#ifndef OPSTROBE_INTERNAL_TIMELINE_H
#define OPSTROBE_INTERNAL_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>
#include <opstrobe/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ops_timeline;

/* Near linear in the size of the trace. */
enum ops_code ops_timeline_new(const struct ops_trace *trace, struct ops_timeline **ret_timeline, struct ops_error *error);
void ops_timeline_free(struct ops_timeline *timeline); /* NULL is allowed */
size_t ops_timeline_bytes(const struct ops_timeline *timeline); /* memory in use, without that of the trace */
/* Returns the origin in ns since 1970. */
int64_t ops_timeline_origin(const struct ops_timeline *timeline);

/* Returns everything except the events: groups, tracks, counters, steps. */
enum ops_code ops_timeline_json(const struct ops_timeline *timeline, char **ret_text, size_t *ret_size,
                                struct ops_error *error);

#define OPS_TILE_BINS 512
#define OPS_TILE_BAND_DEPTHS 64
#define OPS_TILE_LEVEL_MIN 9
#define OPS_TILE_LEVEL_MAX 63

/* A part of a track or counter: 2^level ns from index * 2^level on. */
struct ops_tile {
	uint32_t track; /* or the number of a counter */
	uint32_t level; /* OPS_TILE_LEVEL_MIN … OPS_TILE_LEVEL_MAX */
	uint64_t index;
	uint32_t band; /* number of a band of OPS_TILE_BAND_DEPTHS depths; 0 for counters */
	bool fold;     /* fold wrappers into what they call: depths are folded_depths; false for counters */
};

/* Returns the tiles one after another, in the binary form of docs/http-api.md. */
enum ops_code ops_timeline_tiles(const struct ops_timeline *timeline, const struct ops_tile *tiles, size_t count,
                                 char **ret_bytes, size_t *ret_size, struct ops_error *error);
/* Returns values of counters in bins, as JSON. */
enum ops_code ops_timeline_counters(const struct ops_timeline *timeline, const struct ops_tile *tiles, size_t count,
                                    char **ret_text, size_t *ret_size, struct ops_error *error);

/* Returns all that is known about an event. */
enum ops_code ops_timeline_event(const struct ops_timeline *timeline, uint32_t row, char **ret_text, size_t *ret_size,
                                 struct ops_error *error);

/* Returns the calls of a name or, if `row` is not OPS_NONE, of the name and kind of that row: their durations, the rank of that
 * row among them, and the lines of the program that make them. */
enum ops_code ops_timeline_calls(const struct ops_timeline *timeline, struct ops_string name, uint32_t row, char **ret_text,
                                 size_t *ret_size, struct ops_error *error);

/* Selects a part of the timeline. A zero member selects nothing; OPS_WINDOW_ALL selects everything. */
struct ops_window {
	int64_t from_ns;
	int64_t to_ns;
	const uint32_t *tracks; /* only these; NULL: all */
	size_t track_count;
	size_t limit; /* maximum number of entries */
};
#define OPS_WINDOW_ALL {.from_ns = 0, .to_ns = INT64_MAX, .limit = 1000}

/* Searches for events whose names contain a text, ignoring the case of ASCII letters. */
struct ops_search {
	struct ops_window window;
	const char *text;
	size_t text_size;
	uint32_t after;  /* only rows after this one; OPS_NONE: from the first on */
	uint32_t before; /* if not OPS_NONE: rows before this one, nearest first; `after` is ignored */
	uint32_t bins;   /* also count the hits in this many parts of the window; 0: do not */
	bool arguments;  /* also search in arguments */
};
enum ops_code ops_timeline_search(const struct ops_timeline *timeline, const struct ops_search *search, char **ret_text,
                                  size_t *ret_size, struct ops_error *error);

/* Returns sums by name of what runs in a window, clipped to it. */
enum ops_code ops_timeline_range(const struct ops_timeline *timeline, const struct ops_window *window, char **ret_text,
                                 size_t *ret_size, struct ops_error *error);

/* Returns the flows of one row, or (OPS_NONE) all that begin or end in the window. `kinds` has a bit for each enum ops_link_kind. */
enum ops_code ops_timeline_flows(const struct ops_timeline *timeline, const struct ops_window *window, uint32_t row,
                                 uint32_t kinds, char **ret_text, size_t *ret_size, struct ops_error *error);

/* Returns one collective operation on the timelines of `count` ranks: the one that a row of the first timeline belongs to, or
 * (OPS_NONE) the first that all ranks have. Near linear in the size of the traces. */
enum ops_code ops_timelines_collective(const struct ops_timeline *const *timelines, size_t count, uint32_t row,
                                       char **ret_text, size_t *ret_size, struct ops_error *error);

/* Returns the critical path of a region: the instance-th event whose name contains `annotation`, from 0. If `annotation` is
 * empty, the regions are the steps or, without steps, the complete trace. OPS_INVALID if there is no such region. Near linear in
 * the size of the trace. */
enum ops_code ops_timeline_critical_path(const struct ops_timeline *timeline, struct ops_string annotation, uint32_t instance,
                                         char **ret_text, size_t *ret_size, struct ops_error *error);

/* Returns strings by their ids in the trace. */
enum ops_code ops_timeline_strings(const struct ops_timeline *timeline, const uint32_t *ids, size_t count, char **ret_text,
                                   size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
