/* SPDX-License-Identifier: Apache-2.0
 *
 * Assigns events to steps, and removes the last step, which is often incomplete.
 */
#include "analyze/events/event_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/heap.h"
#include "base/order.h"
#include "base/search.h"
#include "base/text.h"

/* --- iterations --------------------------------------------------------------------------------------------------- */

/* A time range in which one step applies: of the steps that run, the last one in the file. */
struct stretch {
	int64_t start_ns;
	uint32_t row; /* OPS_NONE: none */
};

struct stretches {
	struct stretch *items;
	size_t count;
};

/* The last row of the file is the first of the heap. */
static bool is_later_row(const void *context, uint32_t a, uint32_t b)
{
	(void)context;
	return a > b;
}

/* Visits the times at which any step begins or ends. */
static void sweep(const struct event_table *table, const uint32_t *by_start, const int64_t *times, uint32_t *heap,
                  struct stretches *stretches)
{
	size_t steps = table->steps.count, begun = 0, running = 0;

	for (size_t i = 0; i < 2 * steps; i++) {
		if (i + 1 < 2 * steps && times[i] == times[i + 1])
			continue;
		for (; begun < steps && table->rows[by_start[begun]].ts_ns <= times[i]; begun++)
			ops_heap_push(heap, &running, by_start[begun], is_later_row, NULL);
		while (running && event_end(&table->rows[heap[0]]) <= times[i])
			ops_heap_pop(heap, &running, is_later_row, NULL);
		stretches->items[stretches->count++] = (struct stretch){times[i], running ? heap[0] : OPS_NONE};
	}
}

static bool find_stretches(struct event_table *table, struct stretches *stretches)
{
	size_t steps = table->steps.count;
	uint32_t *by_start = ops_alloc_zeroed(2 * steps + 1, sizeof(*by_start));
	int64_t *times = ops_alloc_zeroed(2 * steps + 1, sizeof(*times));
	bool done;

	stretches->items = ops_alloc_zeroed(2 * steps + 1, sizeof(*stretches->items));
	done = by_start && times && stretches->items;
	for (size_t i = 0; done && i < steps; i++) {
		uint32_t row = by_start[i] = table->steps.items[i];

		times[2 * i] = table->rows[row].ts_ns;
		times[2 * i + 1] = event_end(&table->rows[row]);
	}
	done = done && ops_sort_rows(by_start, steps, event_starts_before, table->rows);
	if (done) {
		qsort(times, 2 * steps, sizeof(*times), ops_compare_int64);
		sweep(table, by_start, times, by_start + steps, stretches);
	}
	ops_free(by_start);
	ops_free(times);
	return done;
}

static int64_t event_steps_step_at(const struct event_table *table, const struct stretches *stretches, int64_t time_ns)
{
	size_t low = 0;
	int64_t number = EVENT_NO_STEP;
	uint32_t row;

	OPS_LOWER_BOUND(low, stretches->count, mid, stretches->items[mid].start_ns <= time_ns);
	row = low ? stretches->items[low - 1].row : OPS_NONE;
	if (row != OPS_NONE)
		ops_step_number(event_name(table, &table->rows[row]), &number);
	return number;
}

static bool collect_steps(struct event_table *table)
{
	int64_t number;

	for (size_t i = 0; i < table->count; i++) {
		if (!ops_row_step(table->trace, table->rows[i].source, &number))
			continue;
		if (!OPS_ARRAY_APPEND(&table->steps, (uint32_t)i))
			return false;
	}
	return true;
}

/* Assigns host rows by time, and device work by its launch, on stream 0 too. */
bool event_steps_assign(struct event_table *table)
{
	struct stretches stretches = {0};
	bool done = collect_steps(table) && find_stretches(table, &stretches);

	for (size_t i = 0; done && i < table->count; i++)
		if (table->rows[i].stream < 0)
			table->rows[i].step = event_steps_step_at(table, &stretches, table->rows[i].ts_ns);
	/* A step without duration contains at least the row that marks it. */
	for (size_t i = 0; done && i < table->steps.count && !table->policy->no_empty_steps; i++) {
		struct event_row *row = &table->rows[table->steps.items[i]];

		if (row->step == EVENT_NO_STEP)
			ops_step_number(event_name(table, row), &row->step);
	}
	for (size_t i = 0; done && i < table->count; i++)
		if (table->rows[i].stream >= 0 && table->rows[i].partner != OPS_NONE)
			table->rows[i].step = table->rows[table->rows[i].partner].step;
	ops_free(stretches.items);
	return done;
}

/* --- the filter --------------------------------------------------------------------------------------------------- */

size_t event_step_index(const struct event_set *set, int64_t number)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, set->steps.count, mid, set->steps.items[mid] < number);
	return low < set->steps.count && set->steps.items[low] == number ? low : set->steps.count;
}

/* Returns the start of the last step; in a trace without steps, of the last host row. */
static int64_t last_start(const struct event_table *table)
{
	int64_t start = INT64_MIN;

	for (size_t i = 0; i < table->steps.count; i++) {
		const struct event_row *row = &table->rows[table->steps.items[i]];

		start = row->ts_ns > start ? row->ts_ns : start;
	}
	for (size_t i = 0; !table->steps.count && i < table->count; i++) {
		const struct event_row *row = &table->rows[i];

		if (row->stream < 0 && (start == INT64_MIN || row->ts_ns < start))
			start = row->ts_ns;
	}
	return start;
}

/* Device rows are kept or removed with their launch. HTA removes those of an unknown launch; otherwise they stay if
 * they began before the end. */
static void event_steps_apply_filter(struct event_table *table, int64_t end_ns)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++) {
		const struct event_row *row = &table->rows[i];
		const struct event_row *call = row->partner == OPS_NONE ? NULL : &table->rows[row->partner];

		if (!call && !table->policy->only_launched_work)
			call = row;
		if (event_is_device_side(table, row) && call && call->ts_ns < end_ns)
			table->kept[count++] = (uint32_t)i;
	}
	for (size_t i = 0; i < table->count; i++)
		if (!event_is_device_side(table, &table->rows[i]) && table->rows[i].ts_ns < end_ns)
			table->kept[count++] = (uint32_t)i;
	table->kept_count = count;
}

/* Recognises host events by their category. */
static bool is_host_call(const struct event_table *table, const struct event_row *row)
{
	struct ops_string category = ops_event_category(table->trace, row->source);

	return ops_string_starts(category, "cpu_op") || ops_string_is(category, "user_annotation") ||
	       (category.size > 8 && !memcmp(category.bytes + category.size - 8, "_runtime", 8));
}

struct window {
	int64_t from_ns, to_ns;
};

static bool is_host_call_in(const struct event_table *table, uint32_t row, struct window window)
{
	const struct event_row *call = &table->rows[row];

	return is_host_call(table, call) && call->ts_ns >= window.from_ns && event_end(call) <= window.to_ns;
}

/* A copy without a known launch belongs to the step around it, on a stream with the number of its thread. */
static void event_steps_attach_copy(struct event_table *table, struct event_row *row, int64_t step)
{
	size_t count;
	const struct ops_track *track = &ops_trace_tracks(table->trace, &count)[row->track];

	row->step = step;
	if (row->stream < 0 && !(track->flags & OPS_TRACK_TID_TEXT) && track->tid >= 0) {
		row->stream = track->tid;
		row->on_device = true;
	}
}

/* Filter for MTIA devices: keeps host events between the beginning of the first step and the end of the last, the work
 * that they launched, and copies within a step. */
static bool filter_mtia(struct event_table *table)
{
	struct window window = {INT64_MAX, INT64_MIN};
	struct stretches stretches = {0};
	size_t count = 0;

	if (!find_stretches(table, &stretches)) {
		ops_free(stretches.items);
		return false;
	}
	for (size_t i = 0; i < table->steps.count; i++) {
		const struct event_row *row = &table->rows[table->steps.items[i]];

		window.from_ns = row->ts_ns < window.from_ns ? row->ts_ns : window.from_ns;
		window.to_ns = event_end(row) > window.to_ns ? event_end(row) : window.to_ns;
	}
	for (uint32_t i = 0; i < table->count; i++) {
		struct event_row *row = &table->rows[i];
		int64_t step = event_steps_step_at(table, &stretches, row->ts_ns);
		bool kept = is_host_call_in(table, i, window);

		if (!is_host_call(table, row) && row->partner != OPS_NONE)
			kept = is_host_call_in(table, row->partner, window);
		if (!kept && !is_host_call(table, row) && row->class_ == EVENT_MEMORY && step != EVENT_NO_STEP) {
			event_steps_attach_copy(table, row, step);
			kept = true;
		}
		if (kept)
			table->kept[count++] = i;
	}
	table->kept_count = count;
	ops_free(stretches.items);
	return true;
}

static bool has_host_rows(const struct event_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].stream < 0)
			return true;
	return false;
}

bool event_steps_filter(struct event_table *table, bool filtered, bool mtia, bool include_last)
{
	table->kept = ops_alloc_zeroed(table->count + 1, sizeof(*table->kept));
	if (!table->kept)
		return false;
	table->kept_count = table->count;
	for (size_t row = 0; row < table->count; row++)
		table->kept[row] = (uint32_t)row;
	if (filtered && mtia && table->steps.count)
		return filter_mtia(table);
	/* If the last step is kept, so are host events after it, because HTA compares aligned starts with an unaligned
	 * end. */
	if (filtered && has_host_rows(table))
		event_steps_apply_filter(table, include_last ? INT64_MAX : last_start(table));
	return true;
}
