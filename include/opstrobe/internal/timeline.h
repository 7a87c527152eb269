/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/timeline.h: a trace as boxes on tracks, for a viewer that looks at a stretch of it at a time: tiles of any zoom,
 * counters, single events, hits of a search, sums of a range, arrows. What the answers look like is in docs/http-api.md
 * and docs/openapi.yaml.
 *
 *     ops_timeline_new(trace, &timeline, &error);
 *     ops_timeline_json(timeline, &text, &size, &error);                  // tracks, counters, steps
 *     ops_timeline_tiles(timeline, tiles, count, &bytes, &size, &error);  // boxes
 *     ops_timeline_free(timeline);
 *
 * A timeline borrows its trace and does not change: any thread may ask. Times are ns since the timeline's origin. What is
 * given is freed with ops_free; texts have a NUL behind. OPS_INVALID for tracks, rows, levels that are not there.
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

/* Near linear in the trace. */
enum ops_code ops_timeline_new(const struct ops_trace *trace, struct ops_timeline **ret_timeline, struct ops_error *error);
void ops_timeline_free(struct ops_timeline *timeline); /* NULL is allowed */
size_t ops_timeline_bytes(const struct ops_timeline *timeline); /* of memory, without the trace's */
/* Since 1970. */
int64_t ops_timeline_origin(const struct ops_timeline *timeline);

/* All but the events: groups, tracks, counters, steps. */
enum ops_code ops_timeline_json(const struct ops_timeline *timeline, char **ret_text, size_t *ret_size,
                                struct ops_error *error);

#define OPS_TILE_BINS 512
#define OPS_TILE_BAND_DEPTHS 64
#define OPS_TILE_LEVEL_MIN 9
#define OPS_TILE_LEVEL_MAX 63

/* A stretch of a track, or of a counter: 2^level ns from index * 2^level on. */
struct ops_tile {
	uint32_t track; /* or number of the counter */
	uint32_t level; /* OPS_TILE_LEVEL_MIN … OPS_TILE_LEVEL_MAX */
	uint64_t index;
	uint32_t band; /* of OPS_TILE_BAND_DEPTHS depths; 0 for counters */
	bool fold;     /* wrappers folded into what they call: depths are folded_depths; false for counters */
};

/* Tiles one behind the other, in the binary form of docs/http-api.md. */
enum ops_code ops_timeline_tiles(const struct ops_timeline *timeline, const struct ops_tile *tiles, size_t count,
                                 char **ret_bytes, size_t *ret_size, struct ops_error *error);
/* Values of counters in bins, as JSON. */
enum ops_code ops_timeline_counters(const struct ops_timeline *timeline, const struct ops_tile *tiles, size_t count,
                                    char **ret_text, size_t *ret_size, struct ops_error *error);

/* All that is known of an event. */
enum ops_code ops_timeline_event(const struct ops_timeline *timeline, uint32_t row, char **ret_text, size_t *ret_size,
                                 struct ops_error *error);

/* The calls of a name, or those of the name and kind of a row that is not OPS_NONE: how long they take, how that row ranks
 * among them, and the lines of the program that make them. */
enum ops_code ops_timeline_calls(const struct ops_timeline *timeline, struct ops_string name, uint32_t row, char **ret_text,
                                 size_t *ret_size, struct ops_error *error);

/* Selects a part of the timeline. A zero field requests nothing; OPS_WINDOW_ALL requests everything. */
struct ops_window {
	int64_t from_ns;
	int64_t to_ns;
	const uint32_t *tracks; /* only these; NULL: all */
	size_t track_count;
	size_t limit; /* maximum number of entries */
};
#define OPS_WINDOW_ALL {.from_ns = 0, .to_ns = INT64_MAX, .limit = 1000}

/* Events whose names hold a text; of ASCII letters the case does not count. */
struct ops_search {
	struct ops_window window;
	const char *text;
	size_t text_size;
	uint32_t after;  /* rows behind this one; OPS_NONE: from the first on */
	uint32_t before; /* if not OPS_NONE: rows before this one, nearest first; then `after` is not looked at */
	uint32_t bins;   /* count the hits also in that many parts of the window; 0: do not */
	bool arguments;  /* or whose arguments hold it */
};
enum ops_code ops_timeline_search(const struct ops_timeline *timeline, const struct ops_search *search, char **ret_text,
                                  size_t *ret_size, struct ops_error *error);

/* Sums by name of what runs in a window, cut at its ends. */
enum ops_code ops_timeline_range(const struct ops_timeline *timeline, const struct ops_window *window, char **ret_text,
                                 size_t *ret_size, struct ops_error *error);

/* Arrows of one row, or (OPS_NONE) of all that begin or end in the window; `kinds` has a bit for each enum ops_link_kind. */
enum ops_code ops_timeline_flows(const struct ops_timeline *timeline, const struct ops_window *window, uint32_t row,
                                 uint32_t kinds, char **ret_text, size_t *ret_size, struct ops_error *error);

/* One collective operation on the timelines of `count` ranks: the one that a row of the first timeline belongs to, or (OPS_NONE)
 * the first that all of them have. Near linear in the traces. */
enum ops_code ops_timelines_collective(const struct ops_timeline *const *timelines, size_t count, uint32_t row,
                                       char **ret_text, size_t *ret_size, struct ops_error *error);

/* The critical path of a region: the instance-th event whose name contains `annotation`, from 0 (if it is empty: of the steps, or
 * of the complete trace without steps). OPS_INVALID if there is none. Near linear in the trace. */
enum ops_code ops_timeline_critical_path(const struct ops_timeline *timeline, struct ops_string annotation, uint32_t instance,
                                         char **ret_text, size_t *ret_size, struct ops_error *error);

/* Texts by their numbers in the trace. */
enum ops_code ops_timeline_strings(const struct ops_timeline *timeline, const uint32_t *ids, size_t count, char **ret_text,
                                   size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
