/* SPDX-License-Identifier: Apache-2.0
 *
 * The flows of a file. A file has them as points: a time on a track, with an id that the points of a flow share. Each point is on
 * an event. If the event is not known, it is the innermost one that encloses the point or, among those that start at the point,
 * the one that suits the flow.
 *
 *     launch  ├─ cudaLaunchKernel ─┤
 *             s (ac2g 7)
 *     stream          ├─ kernel ─┤
 *                     f (ac2g 7)
 */
#include "base/alloc.h"

#include <opstrobe/internal/trace.h>
#include "base/order.h"
#include "trace/builder.h"
#include "trace/nests.h"
#include "trace/table.h"

/* Maximum number of enclosing events to try among those that start together. */
#define LOOK_OUT_MAX 64

/* --- events of the points ------------------------------------------------------------------------------------------- */

/* Returns whether the flow can refer to the row. */
static bool suits(const struct ops_columns *c, uint32_t row, const struct ops_new_flow *flow)
{
	if (flow->kind == OPS_LINK_FORWARD_BACKWARD)
		return c->sequence_nr[row] >= 0;
	return c->correlation && c->correlation[row] >= 0 && (uint64_t)c->correlation[row] == flow->id;
}

/* Returns the row of the point, given the innermost row that is open at its time. */
static uint32_t flows_row_at(const struct ops_columns *c, uint32_t innermost, const struct ops_new_flow *flow)
{
	uint32_t row = innermost;

	for (int i = 0; i < LOOK_OUT_MAX && row != OPS_NONE && c->start_ns[row] == flow->time_ns; i++) {
		if (suits(c, row, flow))
			return row;
		row = c->parent[row];
	}
	return innermost;
}

static bool earlier_flow(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_new_flow *flows = context;

	return flows[a].time_ns < flows[b].time_ns;
}

/* Walks points and rows in order of time. `open` has the innermost row of each track; events that have ended are not visited
 * again. */
static void place_flows(const struct ops_columns *c, struct ops_new_flow *flows, size_t count, const uint32_t *order,
                        uint32_t *open)
{
	size_t row = 0;

	for (size_t i = 0; i < count; i++) {
		struct ops_new_flow *flow = &flows[order ? order[i] : i];
		uint32_t *top = &open[flow->track];

		for (; row < c->count && c->start_ns[row] <= flow->time_ns; row++)
			if (ops_row_nests(c->flags[row], c->kind[row]))
				open[c->track[row]] = (uint32_t)row;
		while (*top != OPS_NONE && c->end_ns[*top] < flow->time_ns)
			*top = c->parent[*top];
		if (flow->row == OPS_NONE)
			flow->row = flows_row_at(c, *top, flow);
	}
}

/* Returns false if out of memory. */
static bool flows_find_rows(const struct ops_trace *trace, struct ops_new_flow *flows, size_t count)
{
	uint32_t *open, *order;
	bool missing = false;

	for (size_t i = 0; i < count; i++)
		missing |= flows[i].row == OPS_NONE;
	if (!missing)
		return true;
	open = ops_realloc_array(NULL, trace->tracks.count + 1, sizeof(*open));
	for (size_t track = 0; open && track < trace->tracks.count; track++)
		open[track] = OPS_NONE;
	if (!open || !ops_find_order(count, earlier_flow, flows, &order)) {
		ops_free(open);
		return false;
	}
	place_flows(&trace->columns, flows, count, order, open);
	ops_free(order);
	ops_free(open);
	return true;
}

/* --- joining points ------------------------------------------------------------------------------------------------- */

static int compare_arrows(const struct ops_new_flow *a, const struct ops_new_flow *b)
{
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->category != b->category)
		return a->category < b->category ? -1 : 1;
	return a->id < b->id ? -1 : a->id > b->id;
}

/* Sorts by flow, then by time, starts first. */
static bool flow_before(const void *context, uint32_t a, uint32_t b)
{
	const struct ops_new_flow *left = (const struct ops_new_flow *)context + a;
	const struct ops_new_flow *right = (const struct ops_new_flow *)context + b;
	int order = compare_arrows(left, right);

	if (order)
		return order < 0;
	return left->time_ns != right->time_ns ? left->time_ns < right->time_ns : left->phase < right->phase;
}

static bool is_dependency(const struct ops_trace *trace, const struct ops_new_flow *from, const struct ops_new_flow *to)
{
	return from->kind == OPS_LINK_LAUNCH && from->id >= OPS_DEPENDENCY_ARROWS &&
	       ops_is_one_launch(trace, from->row, to->row);
}

struct arrows {
	struct ops_trace *trace;
	const struct ops_new_flow *flows;
	const uint32_t *order;
	uint8_t *launched; /* for the file of a recording, a bit for each row: its launch is known. Else NULL */
};

static const struct ops_new_flow *point(const struct arrows *arrows, size_t i)
{
	return &arrows->flows[arrows->order ? arrows->order[i] : i];
}

/* Returns whether a recording can have the flow: it has at most one launch for each work item. Other flows of the recording are
 * not from its file. */
static bool is_of_recording(struct arrows *arrows, const struct ops_new_flow *from, const struct ops_new_flow *to)
{
	uint8_t *bits = &arrows->launched[to->row / 8];
	uint8_t bit = (uint8_t)(1 << to->row % 8);

	if (from->kind != OPS_LINK_LAUNCH || !ops_is_launch(arrows->trace, from->row, to->row) || *bits & bit)
		return false;
	*bits |= bit;
	return true;
}

static bool flows_add_link(struct arrows *arrows, const struct ops_new_flow *from, const struct ops_new_flow *to)
{
	struct ops_trace *trace = arrows->trace;
	struct ops_link *link;
	bool dependency;

	if (from->row == OPS_NONE || to->row == OPS_NONE || from->row == to->row)
		return ops_trace_note(trace, OPS_NOTE_UNMATCHED_ARROW, 1, 0);
	dependency = is_dependency(trace, from, to);
	if (!dependency && arrows->launched && !is_of_recording(arrows, from, to))
		return ops_trace_note(trace, OPS_NOTE_UNMATCHED_ARROW, 1, 0);
	link = OPS_ARRAY_PUSH(&trace->links);
	if (link)
		*link = (struct ops_link){from->row, to->row, dependency ? OPS_LINK_DEPENDENCY : from->kind,
		                          from->category};
	return link;
}

/* Adds the links between the points first … last - 1 of one id: to each finish from the preceding start or, if device clocks are
 * off and a finish comes first, from the first start. */
static bool flows_join(struct arrows *arrows, size_t first, size_t last)
{
	const struct ops_new_flow *start = NULL;

	for (size_t i = first; !start && i < last; i++)
		if (point(arrows, i)->phase == OPS_FLOW_START)
			start = point(arrows, i);
	if (!start || last - first == 1)
		return ops_trace_note(arrows->trace, OPS_NOTE_UNMATCHED_ARROW, last - first, 0);
	for (size_t i = first; i < last; i++) {
		const struct ops_new_flow *flow = point(arrows, i);

		if (flow->phase != OPS_FLOW_START && !flows_add_link(arrows, start, flow))
			return false;
		if (flow->phase != OPS_FLOW_FINISH)
			start = flow;
	}
	return true;
}

bool ops_flows_join(struct ops_trace *trace, struct ops_new_flow *flows, size_t count)
{
	struct arrows arrows = {trace, flows, NULL, NULL};
	uint32_t *order;
	bool ok = true;

	if (count == 0)
		return true;
	if (!flows_find_rows(trace, flows, count) || !ops_find_order(count, flow_before, flows, &order))
		return false;
	arrows.order = order;
	if (!trace->columns.index)
		ok = (arrows.launched = ops_alloc_zeroed(trace->columns.count / 8 + 1, 1)) != NULL;
	for (size_t first = 0, last; ok && first < count; first = last) {
		for (last = first + 1; last < count; last++)
			if (compare_arrows(point(&arrows, first), point(&arrows, last)))
				break;
		ok = flows_join(&arrows, first, last);
	}
	ops_free(arrows.launched);
	ops_free(order);
	return ok;
}
