/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrows of one event, or those that begin or end in a window.
 */
#include "analyze/timeline/timeline.h"
#include "base/alloc.h"
#include "base/bits.h"
#include "base/fault.h"
#include "base/search.h"

/* --- links by their end points --------------------------------------------------------------------------------------- */

size_t timeline_links_from(const struct ops_timeline *timeline, uint32_t row)
{
	size_t low = 0, count;
	const struct ops_link *links = ops_trace_links(timeline->trace, &count);

	OPS_LOWER_BOUND(low, count, mid, links[mid].from < row);
	return low;
}

size_t timeline_links_to(const struct ops_timeline *timeline, uint32_t row)
{
	size_t low = 0, count;
	const struct ops_link *links = ops_trace_links(timeline->trace, &count);

	OPS_LOWER_BOUND(low, count, mid, links[timeline->links_to[mid]].to < row);
	return low;
}

/* --- arrows --------------------------------------------------------------------------------------------------------- */

struct flowing {
	const struct ops_timeline *timeline;
	const struct ops_window *window;
	const struct ops_link *links;
	size_t link_count;
	uint32_t kinds;
	uint8_t *wanted;
	uint64_t total;
	struct ops_json_writer json;
};

static bool timeline_flows_is_wanted(const struct flowing *f, const struct ops_link *link)
{
	uint32_t from = timeline_track_of(f->timeline, link->from), to = timeline_track_of(f->timeline, link->to);

	if (!(f->kinds >> link->kind & 1) || from == OPS_NONE || to == OPS_NONE)
		return false;
	return !f->wanted || ops_bit(f->wanted, from) || ops_bit(f->wanted, to);
}

static void timeline_flows_add(struct flowing *f, const struct ops_link *link)
{
	if (timeline_flows_is_wanted(f, link) && f->total++ < f->window->limit)
		timeline_write_flow(f->timeline, &f->json, link);
}

/* Adds the links from rows in [first, last), then those that only end there. */
static void timeline_flows_add_rows(struct flowing *f, uint32_t first, uint32_t last)
{
	for (size_t i = timeline_links_from(f->timeline, first); i < f->link_count && f->links[i].from < last; i++)
		timeline_flows_add(f, &f->links[i]);
	for (size_t i = timeline_links_to(f->timeline, first); i < f->link_count; i++) {
		const struct ops_link *link = &f->links[f->timeline->links_to[i]];

		if (link->to >= last)
			break;
		if (link->from < first || link->from >= last)
			timeline_flows_add(f, link);
	}
}

static bool add_window(struct flowing *f)
{
	struct timeline_rows rows;

	if (!timeline_rows_in(f->timeline, f->window, &rows))
		return false;
	ops_free(rows.straddlers);
	timeline_flows_add_rows(f, rows.first, rows.last);
	return true;
}

enum ops_code ops_timeline_flows(const struct ops_timeline *timeline, const struct ops_window *window, uint32_t row,
                                 uint32_t kinds, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct flowing f = {.timeline = timeline, .window = window, .kinds = kinds, .json = {.out = &out}};
	enum ops_code code = timeline_wanted(timeline, window, &f.wanted, error);

	f.links = ops_trace_links(timeline->trace, &f.link_count);
	ops_json_open(&f.json, '{');
	ops_json_member_open(&f.json, "flows", '[');
	if (!code && row != OPS_NONE && row >= timeline->events->count)
		code = ops_fault(error, OPS_INVALID, "row %u does not exist", row);
	else if (!code && row != OPS_NONE)
		timeline_flows_add_rows(&f, row, row + 1);
	else if (!code && !add_window(&f))
		code = ops_fault_memory(error);
	ops_json_close(&f.json, ']');
	ops_json_member(&f.json, "total", (int64_t)f.total);
	ops_json_close(&f.json, '}');
	ops_free(f.wanted);
	return ops_buffer_detach(&out, code, ret_text, ret_size, error);
}
