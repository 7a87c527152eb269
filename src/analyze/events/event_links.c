/* SPDX-License-Identifier: Apache-2.0
 *
 * Which call of the host launched which work on a device, by the correlation that they share.
 */
#include "analyze/events/event_table.h"

#include "base/alloc.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/launches.h"

/* Of a correlation: the last host call and the last device work. */
struct pair {
	uint32_t host;
	uint32_t device;
};

bool event_is_device_side(const struct event_table *table, const struct event_row *row)
{
	struct ops_string name;

	if (row->kind != OPS_EVENT_SYNC || row->stream >= 0)
		return row->stream >= 0 && row->correlation >= 0;
	name = event_name(table, row);
	return ops_string_is(name, "Event Sync") || ops_string_is(name, "Context Sync");
}

static bool before(const void *context, uint32_t a, uint32_t b)
{
	const struct event_row *rows = context;

	return rows[a].correlation < rows[b].correlation;
}

static void link(struct event_table *table, const uint32_t *rows, size_t count)
{
	struct pair last = {OPS_NONE, OPS_NONE};

	for (size_t i = 0; i < count; i++) {
		if (event_is_device_side(table, &table->rows[rows[i]]))
			last.device = rows[i];
		else
			last.host = rows[i];
	}
	if (last.device == OPS_NONE || last.host == OPS_NONE)
		return;
	for (size_t i = 0; i < count; i++) {
		struct event_row *row = &table->rows[rows[i]];

		row->partner = event_is_device_side(table, row) ? last.host : last.device;
	}
}

/* The other way round: all that a call launched. */
static bool list_launched(struct event_table *table)
{
	uint32_t *first = ops_alloc_zeroed(table->count + 2, sizeof(*first));

	table->launched_first = first;
	table->launched = ops_alloc_zeroed(table->count + 1, sizeof(*table->launched));
	if (!first || !table->launched)
		return false;
	/* Counted one behind the place, so that filling moves each beginning to where it belongs. */
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].on_device && table->rows[i].partner != OPS_NONE)
			first[table->rows[i].partner + 2]++;
	for (size_t i = 2; i < table->count + 2; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].on_device && table->rows[i].partner != OPS_NONE)
			table->launched[first[table->rows[i].partner + 1]++] = (uint32_t)i;
	return true;
}

/* Work has the call that ops_launching_calls finds for it. Other calls of its correlation launched nothing. */
static bool link_work(struct event_table *table)
{
	size_t count = ops_trace_events(table->trace)->count;
	const uint32_t *calls = ops_launchers(table->trace);
	uint32_t *row_of = ops_realloc_array(NULL, count + 1, sizeof(*row_of));
	bool done = calls && row_of;

	for (size_t row = 0; done && row < count; row++)
		row_of[row] = OPS_NONE;
	for (uint32_t i = 0; done && i < table->count; i++)
		row_of[table->rows[i].source] = i;
	for (uint32_t i = 0; done && i < table->count; i++) {
		struct event_row *row = &table->rows[i];
		uint32_t call = calls[row->source] == OPS_NONE ? OPS_NONE : row_of[calls[row->source]];

		if (call == OPS_NONE || !row->on_device || !ops_kind_is_work(row->kind))
			continue;
		row->partner = call;
		if (table->rows[call].partner == OPS_NONE)
			table->rows[call].partner = i;
	}
	for (uint32_t i = 0; done && i < table->count; i++) {
		struct event_row *row = &table->rows[i];
		const struct event_row *work = row->partner == OPS_NONE ? NULL : &table->rows[row->partner];

		if (work && work->on_device && ops_kind_is_call(row->kind) && ops_kind_is_work(work->kind) && work->partner != i)
			row->partner = OPS_NONE;
	}
	ops_free(row_of);
	return done;
}

bool event_links_build(struct event_table *table)
{
	uint32_t *order = ops_alloc_zeroed(table->count + 1, sizeof(*order));
	size_t count = 0;

	if (!order)
		return false;
	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].correlation >= 0)
			order[count++] = (uint32_t)i;
	if (!ops_sort_rows(order, count, before, table->rows)) {
		ops_free(order);
		return false;
	}
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count; end++)
			if (table->rows[order[end]].correlation != table->rows[order[i]].correlation)
				break;
		link(table, order + i, end - i);
	}
	ops_free(order);
	return link_work(table) && list_launched(table);
}
