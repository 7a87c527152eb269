/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of all calls of one name: durations, rank of one call, and the lines that make them.
 */
#include <opstrobe/internal/timeline.h>

#include <stdlib.h>
#include <string.h>

#include "analyze/timeline/timeline.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/sum.h"

#define LONGEST_MAX 10
#define LINES_MAX 20
#define BINS 24

struct call {
	int64_t duration_ns;
	uint32_t row;
};

struct line {
	struct ops_string file;
	uint32_t line;
	uint64_t count;
	int64_t total_ns;
};

struct calls {
	const struct ops_timeline *timeline;
	OPS_ARRAY(struct call) items; /* longest first */
	OPS_ARRAY(struct line) lines;
	int64_t total_ns;
};

OPS_ORDER(compare_calls, struct call, OPS_DOWN(duration_ns) OPS_UP(row))

OPS_ORDER(compare_lines, struct line, OPS_DOWN(total_ns) OPS_UP(line))

/* Finds the visible calls of a name; only those of `kind`, unless it is negative. */
static bool timeline_calls_find_calls(struct calls *calls, uint32_t name, int kind)
{
	const struct ops_timeline *timeline = calls->timeline;
	const struct ops_events *events = timeline->events;

	for (uint32_t row = 0; row < events->count; row++) {
		struct call *call;

		if (events->name[row] != name || (kind >= 0 && events->kind[row] != kind) ||
		    timeline_track_of(timeline, row) == OPS_NONE)
			continue;
		call = OPS_ARRAY_PUSH(&calls->items);
		if (!call)
			return false;
		*call = (struct call){ops_difference(events->end_ns[row], events->start_ns[row]), row};
		calls->total_ns = ops_sum(calls->total_ns, call->duration_ns);
	}
	OPS_ARRAY_SORT(&calls->items, compare_calls);
	return true;
}

static bool timeline_calls_find_lines(struct calls *calls)
{
	struct ops_intern places = {0};
	struct ops_buffer place = {0};
	bool done = true;

	for (size_t i = 0; done && i < calls->items.count; i++) {
		const struct call *call = &calls->items.items[i];
		uint32_t number = 0;
		struct ops_string file = ops_event_line(calls->timeline->trace, call->row, &number);
		struct line *line;

		if (!file.size)
			continue;
		place.size = 0;
		ops_buffer_append(&place, file.bytes, file.size);
		ops_buffer_append(&place, (const char *)&number, sizeof(number));
		line = OPS_ARRAY_AT(&calls->lines, ops_intern_add(&places, place.bytes, place.size));
		done = line != NULL && !place.failed;
		if (!done)
			break;
		line->file = file;
		line->line = number;
		line->count++;
		line->total_ns = ops_sum(line->total_ns, call->duration_ns);
	}
	ops_buffer_release(&place);
	ops_intern_release(&places);
	OPS_ARRAY_SORT(&calls->lines, compare_lines);
	return done;
}

/* Returns the duration that a share of the calls does not exceed. */
static int64_t timeline_calls_quantile(const struct calls *calls, double share)
{
	size_t at = (size_t)((1 - share) * (double)(calls->items.count - 1) + 0.5);

	return calls->items.items[at].duration_ns;
}

/* Divides the range from the shortest to the longest duration into equal parts. */
static void write_histogram(const struct calls *calls, struct ops_json_writer *json)
{
	uint64_t counts[BINS] = {0};
	int64_t most = calls->items.items[0].duration_ns, least = calls->items.items[calls->items.count - 1].duration_ns;
	double width = ((double)most - (double)least) / BINS;

	for (size_t i = 0; i < calls->items.count; i++) {
		double at = width > 0 ? ((double)calls->items.items[i].duration_ns - (double)least) / width : 0;

		counts[at >= BINS ? BINS - 1 : (size_t)at]++;
	}
	OPS_JSON_LIST(json, "histogram", i, BINS, ops_json_integer(json, (int64_t)counts[i]));
}

static void write_longest(const struct calls *calls, struct ops_json_writer *json)
{
	ops_json_member_open(json, "longest", '[');
	for (size_t i = 0; i < calls->items.count && i < LONGEST_MAX; i++) {
		const struct call *call = &calls->items.items[i];

		ops_json_open(json, '{');
		ops_json_member(json, "row", call->row);
		ops_json_member(json, "start_ns", timeline_start(calls->timeline, call->row));
		ops_json_member(json, "duration_ns", call->duration_ns);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void timeline_calls_write_lines(const struct calls *calls, struct ops_json_writer *json)
{
	ops_json_member_open(json, "lines", '[');
	for (size_t i = 0; i < calls->lines.count && i < LINES_MAX; i++) {
		const struct line *line = &calls->lines.items[i];

		ops_json_open(json, '{');
		ops_json_member_string(json, "file", line->file);
		ops_json_member(json, "line", line->line);
		ops_json_member(json, "count", (int64_t)line->count);
		ops_json_member(json, "total_ns", line->total_ns);
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void write_calls(const struct calls *calls, uint32_t row, struct ops_json_writer *json)
{
	size_t count = calls->items.count, rank = 0;

	/* Calls of equal duration have the rank of the first. */
	for (size_t i = 0; row != OPS_NONE && !rank && i < count; i++)
		if (calls->items.items[i].row == row)
			for (rank = i + 1; rank > 1 && calls->items.items[rank - 2].duration_ns == calls->items.items[i].duration_ns;)
				rank--;
	ops_json_open(json, '{');
	ops_json_member(json, "count", (int64_t)count);
	ops_json_member_or_null(json, "rank", rank ? (int64_t)rank : -1);
	if (count) {
		ops_json_member(json, "total_ns", calls->total_ns);
		ops_json_member(json, "min_ns", calls->items.items[count - 1].duration_ns);
		ops_json_member(json, "median_ns", timeline_calls_quantile(calls, 0.5));
		ops_json_member(json, "p95_ns", timeline_calls_quantile(calls, 0.95));
		ops_json_member(json, "max_ns", calls->items.items[0].duration_ns);
		write_histogram(calls, json);
	}
	write_longest(calls, json);
	timeline_calls_write_lines(calls, json);
	ops_json_close(json, '}');
}

enum ops_code ops_timeline_calls(const struct ops_timeline *timeline, struct ops_string name, uint32_t row, char **ret_text,
                                 size_t *ret_size, struct ops_error *error)
{
	struct calls calls = {.timeline = timeline};
	bool by_row = row != OPS_NONE;
	uint32_t id = by_row ? timeline->events->name[row] : ops_trace_find_string(timeline->trace, name.bytes, name.size);
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	bool done = id == OPS_NONE || (timeline_calls_find_calls(&calls, id, by_row ? timeline->events->kind[row] : -1) &&
	                               timeline_calls_find_lines(&calls));

	if (done)
		write_calls(&calls, row, &json);
	OPS_ARRAY_RELEASE(&calls.items);
	OPS_ARRAY_RELEASE(&calls.lines);
	return ops_buffer_detach(&out, done ? OPS_OK : ops_fault_memory(error), ret_text, ret_size, error);
}
