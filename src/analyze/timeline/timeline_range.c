/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums by name of the events in a window. Events are clipped to the window. The time of a child is subtracted from its
 * parent's self time, so the self times of a thread add up to the time in which it ran anything.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/timeline/timeline.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/fault.h"
#include "base/order.h"
#include "base/search.h"

/* --- rows in a window ----------------------------------------------------------------------------------------------- */

enum ops_code timeline_wanted(const struct ops_timeline *timeline, const struct ops_window *window, uint8_t **ret_wanted,
                              struct ops_error *error)
{
	uint8_t *wanted = NULL;

	if (window->from_ns > window->to_ns)
		return ops_fault(error, OPS_INVALID, "the window ends before it begins");
	if (window->tracks) {
		wanted = ops_alloc_zeroed(timeline->tracks.count / 8 + 1, 1);
		if (!wanted)
			return ops_fault_memory(error);
	}
	for (size_t i = 0; window->tracks && i < window->track_count; i++) {
		if (window->tracks[i] >= timeline->tracks.count) {
			ops_free(wanted);
			return ops_fault(error, OPS_INVALID, "track %u does not exist", window->tracks[i]);
		}
		ops_bit_set(wanted, window->tracks[i]);
	}
	*ret_wanted = wanted;
	return OPS_OK;
}

/* Returns the first row that starts at or after a time relative to the origin. */
static uint32_t timeline_range_find_row(const struct ops_timeline *timeline, int64_t time_ns)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, timeline->events->count, mid, timeline_start(timeline, (uint32_t)mid) < time_ns);
	return (uint32_t)low;
}

static int timeline_range_compare_rows(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

/* In each lane at most one row reaches into the window: the last one that begins before it. */
bool timeline_rows_in(const struct ops_timeline *timeline, const struct ops_window *window, struct timeline_rows *ret_rows)
{
	uint32_t *straddlers = ops_realloc_array(NULL, timeline->lane_count + 1, sizeof(*straddlers));
	size_t count = 0;

	if (!straddlers)
		return false;
	for (size_t lane = 0; lane < timeline->lane_count; lane++) {
		size_t low = timeline->lane_first[lane], begin = low;

		OPS_LOWER_BOUND(low, timeline->lane_first[lane + 1], mid, timeline->starts[mid] < window->from_ns);
		if (low > begin && timeline_end(timeline, timeline->rows[low - 1]) > window->from_ns)
			straddlers[count++] = timeline->rows[low - 1];
	}
	qsort(straddlers, count, sizeof(*straddlers), timeline_range_compare_rows);
	*ret_rows = (struct timeline_rows){straddlers, count, timeline_range_find_row(timeline, window->from_ns),
	                                   timeline_range_find_row(timeline, window->to_ns)};
	if (window->to_ns == INT64_MAX)
		ret_rows->last = (uint32_t)timeline->events->count;
	return true;
}

/* --- sums ----------------------------------------------------------------------------------------------------------- */

struct name_sum {
	uint32_t name;
	uint8_t kind;
	uint32_t longest;
	uint64_t count;
	int64_t total_ns;
	int64_t self_ns;
	int64_t max_ns;
};

struct track_sum {
	uint64_t events;
	int64_t busy_ns;
	int64_t until_ns;
};

struct range {
	const struct ops_timeline *timeline;
	const struct ops_window *window;
	uint8_t *wanted;
	uint32_t *slots; /* by name: index of its first sum; OPS_NONE: none. `next` links further sums of other kinds */
	OPS_ARRAY(struct name_sum) sums;
	OPS_ARRAY(uint32_t) next; /* by sum: next sum of the same name */
	struct track_sum *tracks;
	int64_t *covered; /* by row: end of its children so far, relative to the start of the window; children may
	                   * overlap */
	uint64_t events;
};

/* Returns the sum for a row's name and kind. One name has only few kinds. */
static struct name_sum *timeline_range_sum_of(struct range *range, uint32_t row)
{
	const struct ops_events *events = range->timeline->events;
	uint32_t *at = &range->slots[events->name[row]];
	uint32_t *next;
	struct name_sum *sum;

	while (*at != OPS_NONE) {
		sum = &range->sums.items[*at];
		if (sum->kind == events->kind[row])
			return sum;
		at = &range->next.items[*at];
	}
	*at = (uint32_t)range->sums.count;
	sum = OPS_ARRAY_PUSH(&range->sums);
	next = OPS_ARRAY_PUSH(&range->next);
	if (!sum || !next)
		return NULL;
	*next = OPS_NONE;
	*sum = (struct name_sum){.name = events->name[row], .kind = events->kind[row], .max_ns = -1};
	return sum;
}

/* Subtracts a child's time from its parent's self time, except what earlier children cover. */
static bool subtract_child(struct range *range, uint32_t parent, int64_t start_ns, int64_t end_ns)
{
	struct name_sum *sum = timeline_range_sum_of(range, parent);
	int64_t covered_ns = range->window->from_ns + range->covered[parent];

	start_ns = start_ns < covered_ns ? covered_ns : start_ns;
	if (sum && end_ns > start_ns) {
		sum->self_ns -= end_ns - start_ns;
		range->covered[parent] = end_ns - range->window->from_ns;
	}
	return sum != NULL;
}

static bool timeline_range_add_row(struct range *range, uint32_t row)
{
	const struct ops_timeline *timeline = range->timeline;
	uint32_t track = timeline_track_of(timeline, row), parent = timeline->events->parent[row];
	int64_t start_ns, end_ns;
	struct name_sum *sum;
	struct track_sum *of;

	if (track == OPS_NONE || (range->wanted && !ops_bit(range->wanted, track)) ||
	    (timeline->events->flags[row] & OPS_EVENT_FOLDED))
		return true;
	start_ns = timeline_start(timeline, row);
	end_ns = timeline_end(timeline, row);
	start_ns = start_ns < range->window->from_ns ? range->window->from_ns : start_ns;
	end_ns = end_ns > range->window->to_ns ? range->window->to_ns : end_ns;
	if (parent != OPS_NONE && !subtract_child(range, parent, start_ns, end_ns))
		return false;
	sum = timeline_range_sum_of(range, row);
	if (!sum)
		return false;
	sum->count++;
	sum->total_ns += end_ns - start_ns;
	sum->self_ns += end_ns - start_ns;
	if (end_ns - start_ns > sum->max_ns) {
		sum->max_ns = end_ns - start_ns;
		sum->longest = row;
	}
	of = &range->tracks[track];
	of->events++;
	start_ns = start_ns < of->until_ns ? of->until_ns : start_ns;
	of->busy_ns += end_ns > start_ns ? end_ns - start_ns : 0;
	of->until_ns = end_ns > of->until_ns ? end_ns : of->until_ns;
	range->events++;
	return true;
}

static bool timeline_range_add_rows(struct range *range)
{
	struct timeline_rows rows;
	bool done = timeline_rows_in(range->timeline, range->window, &rows);

	if (!done)
		return false;
	for (size_t i = 0; done && i < rows.straddler_count; i++)
		done = timeline_range_add_row(range, rows.straddlers[i]);
	for (uint32_t row = rows.first; done && row < rows.last; row++)
		done = timeline_range_add_row(range, row);
	ops_free(rows.straddlers);
	return done;
}

static bool timeline_range_init(struct range *range)
{
	size_t strings = ops_trace_string_count(range->timeline->trace);

	range->slots = ops_alloc_none(strings + 1);
	range->tracks = ops_alloc_zeroed(range->timeline->tracks.count + 1, sizeof(*range->tracks));
	range->covered = ops_alloc_zeroed(range->timeline->events->count + 1, sizeof(*range->covered));
	if (!range->slots || !range->tracks || !range->covered)
		return false;
	return true;
}

/* --- result --------------------------------------------------------------------------------------------------------- */

OPS_ORDER(timeline_range_compare_sums, struct name_sum, OPS_DOWN(total_ns) OPS_UP(name) OPS_UP(kind))

static void timeline_range_write_sums(const struct range *range, struct ops_json_writer *json, size_t count)
{
	ops_json_member_open(json, "rows", '[');
	for (size_t i = 0; i < count; i++) {
		const struct name_sum *sum = &range->sums.items[i];
		const char *kind = timeline_kind_name(sum->kind);

		ops_json_open(json, '{');
		timeline_write_string(range->timeline, json, "name", sum->name);
		ops_json_member_text(json, "kind", kind);
		ops_json_member(json, "count", (int64_t)sum->count);
		ops_json_member(json, "total_ns", sum->total_ns);
		ops_json_member(json, "self_ns", sum->self_ns);
		ops_json_member(json, "max_ns", sum->max_ns);
		ops_json_member(json, "longest", sum->longest);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void timeline_range_write_tracks(const struct range *range, struct ops_json_writer *json)
{
	ops_json_member_open(json, "tracks", '[');
	for (size_t i = 0; i < range->timeline->tracks.count; i++) {
		if (!range->tracks[i].events)
			continue;
		ops_json_open(json, '{');
		ops_json_member(json, "track", (int64_t)i);
		ops_json_member(json, "events", (int64_t)range->tracks[i].events);
		ops_json_member(json, "busy_ns", range->tracks[i].busy_ns);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

/* Drops sums without an event in the window. They exist because a child's time was subtracted from them. */
static void drop_empty(struct range *range)
{
	size_t kept = 0;

	for (size_t i = 0; i < range->sums.count; i++)
		if (range->sums.items[i].count)
			range->sums.items[kept++] = range->sums.items[i];
	range->sums.count = kept;
}

static void write_range(struct range *range, struct ops_json_writer *json)
{
	int64_t end_ns = range->timeline->duration_ns;
	size_t count;

	drop_empty(range);
	count = range->sums.count < range->window->limit ? range->sums.count : range->window->limit;
	if (count)
		qsort(range->sums.items, range->sums.count, sizeof(*range->sums.items), timeline_range_compare_sums);
	ops_json_open(json, '{');
	ops_json_member(json, "from_ns", range->window->from_ns);
	ops_json_member(json, "to_ns", range->window->to_ns < end_ns ? range->window->to_ns : end_ns);
	ops_json_member(json, "events", (int64_t)range->events);
	ops_json_member(json, "left_out", (int64_t)(range->sums.count - count));
	timeline_range_write_sums(range, json, count);
	timeline_range_write_tracks(range, json);
	ops_json_close(json, '}');
}

enum ops_code ops_timeline_range(const struct ops_timeline *timeline, const struct ops_window *window, char **ret_text,
                                 size_t *ret_size, struct ops_error *error)
{
	struct range range = {.timeline = timeline, .window = window};
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	enum ops_code code = timeline_wanted(timeline, window, &range.wanted, error);

	if (!code && !(timeline_range_init(&range) && timeline_range_add_rows(&range)))
		code = ops_fault_memory(error);
	if (!code)
		write_range(&range, &json);
	ops_free(range.wanted);
	ops_free(range.slots);
	ops_free(range.tracks);
	ops_free(range.covered);
	OPS_ARRAY_RELEASE(&range.sums);
	OPS_ARRAY_RELEASE(&range.next);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}
