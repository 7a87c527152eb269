/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work and who launched it (3.2): device event → launching call by correlation, call → operator by external id.
 * Some files have the correlation in the external id's place (F03): where most ids do not lead to the operator that is
 * running, and for calls without one, what runs on the thread at that time is the operator.
 */
#include "analyze/views/view_map.h"
#include "analyze/views/views.h"
#include "base/alloc.h"

/* The innermost open node and label of each thread while time goes on. */
struct open {
	uint32_t node;
	uint32_t label; /* row */
};

struct linker {
	struct ops_views *views;
	struct view_map nodes;        /* external id → node */
	struct view_map correlations; /* → launch */
	uint32_t *within;             /* node by launch: what runs around the call */
	uint32_t *labels;             /* row by launch: the innermost label around it */
	struct open *open;            /* by track */
	uint32_t *outer;              /* by row of a label: the label around it */
	size_t agree, disagree;
};

static bool is_device(uint8_t part)
{
	return part == VIEW_KERNEL || part == VIEW_COPY || part == VIEW_FILL;
}

static bool add_device_event(struct ops_views *views, uint32_t row)
{
	struct view_device_event *event = OPS_ARRAY_PUSH(&views->device_events);

	if (!event)
		return false;
	*event = (struct view_device_event){.row = row, .launch = OPS_NONE, .next = OPS_NONE, .node = OPS_NONE,
	                                    .label = OPS_NONE, .collective = OPS_NONE, .part = views->parts[row]};
	return true;
}

static bool add_launch(struct linker *linker, uint32_t row)
{
	struct ops_views *views = linker->views;
	const int64_t *correlation = views->events->correlation;
	struct view_launch *launch = OPS_ARRAY_PUSH(&views->launches);

	if (!launch)
		return false;
	*launch = (struct view_launch){row, OPS_NONE, OPS_NONE};
	/* The first call of a number is the one that counts. */
	return !correlation || correlation[row] < 0 ||
	       view_map_add(&linker->correlations, (uint64_t)correlation[row], (uint32_t)views->launches.count - 1);
}

/* Whether the row is a node that its external id names. */
static bool is_named(const struct ops_views *views, uint32_t row)
{
	return views->node_of[row] != OPS_NONE && views->events->id && views->events->id[row] &&
	       views->parts[row] != VIEW_MODULE && views->parts[row] != VIEW_LAUNCH && !is_device(views->parts[row]);
}

/* Makes room for all that is to be collected. */
static bool reserve(struct linker *linker)
{
	struct ops_views *views = linker->views;
	const struct ops_events *events = views->events;
	struct view_map_keys ids = {0}, correlations = {0};
	size_t devices = 0, launches = 0;

	for (uint32_t row = 0; row < events->count; row++) {
		bool launch = views->parts[row] == VIEW_LAUNCH;

		devices += is_device(views->parts[row]);
		launches += launch;
		if (launch && events->correlation && events->correlation[row] >= 0)
			view_map_keys_add(&correlations, (uint64_t)events->correlation[row]);
		if (is_named(views, row))
			view_map_keys_add(&ids, events->id[row]);
	}
	return OPS_ARRAY_RESERVE(&views->device_events, devices) && OPS_ARRAY_RESERVE(&views->launches, launches) &&
	       view_map_expect(&linker->nodes, &ids) && view_map_expect(&linker->correlations, &correlations);
}

static bool collect(struct linker *linker)
{
	struct ops_views *views = linker->views;
	bool done = reserve(linker);

	for (uint32_t row = 0; done && row < views->events->count; row++) {
		if (is_device(views->parts[row]))
			done = add_device_event(views, row);
		else if (views->parts[row] == VIEW_LAUNCH)
			done = add_launch(linker, row);
		else if (is_named(views, row))
			done = view_map_add(&linker->nodes, views->events->id[row], views->node_of[row]);
	}
	return done;
}

/* --- calls to nodes ------------------------------------------------------------------------------------------------- */

static uint32_t close_nodes(const struct ops_views *views, uint32_t node, int64_t time_ns)
{
	while (node != OPS_NONE && view_end(views, views->nodes.items[node].row) <= time_ns)
		node = views->nodes.items[node].parent;
	return node;
}

/* Modules and what else is neither operator nor collective own no calls: those are the operator's around, or the root's. */
static uint32_t owner(const struct ops_views *views, uint32_t node)
{
	while (node != OPS_NONE && views->nodes.items[node].part != VIEW_OPERATOR &&
	       views->nodes.items[node].part != VIEW_LABEL)
		node = views->nodes.items[node].parent;
	return node;
}

/* Goes through all rows in time and notes what runs around each call. */
static void find_within(struct linker *linker)
{
	struct ops_views *views = linker->views;
	const struct ops_events *events = views->events;
	uint32_t launch = 0;

	for (uint32_t row = 0; row < events->count; row++) {
		struct open *open = &linker->open[events->track[row]];
		int64_t time_ns = events->start_ns[row];
		uint8_t part = views->parts[row];

		if (view_holds(views, row))
			open->node = views->node_of[row];
		if (part == VIEW_LABEL || part == VIEW_LAUNCH)
			while (open->label != OPS_NONE && events->end_ns[open->label] <= time_ns)
				open->label = linker->outer[open->label];
		if (part == VIEW_LABEL) {
			linker->outer[row] = open->label;
			open->label = row;
		}
		if (part != VIEW_LAUNCH)
			continue;
		open->node = close_nodes(views, open->node, time_ns);
		linker->within[launch] = open->node;
		linker->labels[launch++] = open->label;
	}
}

static uint32_t node_by_id(const struct linker *linker, uint32_t row)
{
	const uint64_t *ids = linker->views->events->id;

	return ids && ids[row] ? view_map_find(&linker->nodes, ids[row]) : OPS_NONE;
}

/* Whether the node runs when the call is made, or at its edge. */
static bool runs(const struct ops_views *views, uint32_t node, uint32_t call)
{
	uint32_t row = views->nodes.items[node].row;

	return views->events->track[row] == views->events->track[call] && view_start(views, row) <= view_start(views, call) &&
	       view_start(views, call) <= view_end(views, row);
}

/* Do ids name operators in this file? Those that lead nowhere or to one that does not run speak against it. */
static bool ids_hold(struct linker *linker)
{
	struct ops_views *views = linker->views;
	const uint64_t *ids = views->events->id;

	for (uint32_t i = 0; ids && i < views->launches.count; i++) {
		uint32_t row = views->launches.items[i].row;
		uint32_t node = node_by_id(linker, row);

		if (!ids[row])
			continue;
		if (node != OPS_NONE && runs(views, node, row))
			linker->agree++;
		else if (owner(views, linker->within[i]) != OPS_NONE)
			linker->disagree++;
	}
	return ids && linker->agree >= linker->disagree;
}

static void link_calls(struct linker *linker)
{
	struct ops_views *views = linker->views;
	bool by_id = ids_hold(linker);

	for (uint32_t i = 0; i < views->launches.count; i++) {
		struct view_launch *launch = &views->launches.items[i];
		bool has_id = views->events->id && views->events->id[launch->row];

		if (by_id && has_id)
			launch->node = node_by_id(linker, launch->row);
		if (launch->node == OPS_NONE)
			launch->node = owner(views, linker->within[i]);
	}
}

/* --- device events to calls ----------------------------------------------------------------------------------------- */

static void link_event(struct linker *linker, struct view_device_event *event, uint32_t at)
{
	struct ops_views *views = linker->views;
	const int64_t *correlation = views->events->correlation;
	struct view_launch *launch;
	uint32_t label;

	if (correlation && correlation[event->row] >= 0)
		event->launch = view_map_find(&linker->correlations, (uint64_t)correlation[event->row]);
	if (event->launch == OPS_NONE)
		return;
	launch = &views->launches.items[event->launch];
	event->next = launch->first;
	launch->first = at;
	event->node = launch->node;
	event->in_tree = true;
	label = linker->labels[event->launch];
	if (label != OPS_NONE)
		event->label = views->events->name[label];
}

/* From the last to the first, so that chains are in order of time. Work of unknown origin hangs on the root of the steps'
 * thread where there are steps. */
static void link_events(struct linker *linker)
{
	struct ops_views *views = linker->views;
	bool has_steps = false;

	for (size_t i = 0; i < views->nodes.count && !has_steps; i++)
		has_steps = views->nodes.items[i].part == VIEW_STEP;
	for (size_t i = views->device_events.count; i-- > 0;) {
		struct view_device_event *event = &views->device_events.items[i];

		link_event(linker, event, (uint32_t)i);
		if (event->launch == OPS_NONE)
			event->in_tree = has_steps;
		else if (event->node != OPS_NONE && views->nodes.items[views->nodes.items[event->node].kept].calls_of != event->node)
			event->in_tree = false; /* lost with the calls of a node that was folded */
		else if (event->node != OPS_NONE)
			event->node = views->nodes.items[event->node].kept;
	}
}

bool view_launches_link(struct ops_views *views)
{
	struct linker linker = {.views = views};
	size_t tracks;
	bool done;

	ops_trace_tracks(views->trace, &tracks);
	done = collect(&linker);
	linker.within = ops_realloc_array(NULL, views->launches.count + 1, sizeof(*linker.within));
	linker.labels = ops_realloc_array(NULL, views->launches.count + 1, sizeof(*linker.labels));
	linker.open = ops_realloc_array(NULL, tracks + 1, sizeof(*linker.open));
	linker.outer = views->launches.count ? ops_realloc_array(NULL, views->events->count + 1, sizeof(*linker.outer)) : NULL;
	done = done && linker.within && linker.labels && linker.open && (linker.outer || !views->launches.count);
	if (done && views->launches.count) {
		for (size_t i = 0; i < tracks; i++)
			linker.open[i] = (struct open){OPS_NONE, OPS_NONE};
		find_within(&linker);
		link_calls(&linker);
	}
	if (done)
		link_events(&linker);
	view_map_release(&linker.nodes);
	view_map_release(&linker.correlations);
	ops_free(linker.within);
	ops_free(linker.labels);
	ops_free(linker.open);
	ops_free(linker.outer);
	return done;
}
