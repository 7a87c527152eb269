/* SPDX-License-Identifier: Apache-2.0
 *
 * Which call of the host launched which work on a device (derive/launches.h), and the reverse.
 */
#include "analyze/events/event_table.h"

#include "base/alloc.h"
#include "base/text.h"
#include "derive/launches.h"

bool event_is_device_side(const struct event_table *table, const struct event_row *row)
{
	struct ops_string name;

	if (row->kind != OPS_EVENT_SYNC || row->stream >= 0)
		return row->stream >= 0 && row->correlation >= 0;
	name = event_name(table, row);
	return ops_string_is(name, "Event Sync") || ops_string_is(name, "Context Sync");
}

static uint32_t event_launching_row(const void *rows, uint32_t i)
{
	const struct event_row *row = &((const struct event_row *)rows)[i];

	return row->on_device ? row->partner : OPS_NONE;
}

/* The partner of a device row is the call that ops_launchers finds. The partner of a call is the last row that it
 * launched. */
bool event_links_build(struct event_table *table)
{
	size_t count = ops_trace_events(table->trace)->count;
	const uint32_t *launchers = ops_launchers(table->trace);
	uint32_t *row_of = ops_alloc_none(count + 1);
	bool done = launchers && row_of;

	for (uint32_t i = 0; done && i < table->count; i++)
		row_of[table->rows[i].source] = i;
	for (uint32_t i = 0; done && i < table->count; i++) {
		struct event_row *row = &table->rows[i];
		uint32_t call = OPS_NONE;

		if (ops_row_is_launched(ops_trace_events(table->trace), row->source) && launchers[row->source] != OPS_NONE)
			call = row_of[launchers[row->source]];
		if (call == OPS_NONE || !(row->on_device || event_is_device_side(table, row)))
			continue;
		row->partner = call;
		table->rows[call].partner = i;
	}
	ops_free(row_of);
	return done && ops_groups_init(&table->launched, table->count, table->count, event_launching_row, table->rows);
}
