/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work and its launch: device event → launching call → node. derive/launches.h defines the call and the
 * operator, derive/captures.h those of the work of graphs. A call outside of operators belongs to its collective, if that is a node.
 */
#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/map.h"
#include "derive/around.h"
#include "derive/captures.h"
#include "derive/launches.h"

struct linker {
	struct ops_views *views;
	const uint32_t *launchers;
	const uint32_t *origins;
	uint32_t *launch_of; /* by row: launch */
	uint32_t *labels;    /* by row: the innermost label around it */
};

static bool view_launches_is_device(uint8_t part)
{
	return part == VIEW_KERNEL || part == VIEW_COPY || part == VIEW_FILL;
}

static bool view_launches_add_device_event(struct ops_views *views, uint32_t row)
{
	return OPS_ARRAY_APPEND(&views->device_events, (struct view_device_event){.row = row, .launch = OPS_NONE, .origin = OPS_NONE, .next = OPS_NONE,
	                                                                          .node = OPS_NONE, .label = OPS_NONE,
	                                                                          .collective = OPS_NONE,
	                                                                          .part = views->parts[row]});
}

static bool add_launch(struct linker *linker, uint32_t row)
{
	if (!OPS_ARRAY_APPEND(&linker->views->launches, (struct view_launch){.row = row, .node = OPS_NONE, .first = OPS_NONE}))
		return false;
	linker->launch_of[row] = (uint32_t)linker->views->launches.count - 1;
	return true;
}

static bool view_launches_collect(struct linker *linker)
{
	struct ops_views *views = linker->views;
	size_t devices = 0, launches = 0;
	bool done;

	for (uint32_t row = 0; row < views->events->count; row++) {
		devices += view_launches_is_device(views->parts[row]);
		launches += views->parts[row] == VIEW_LAUNCH;
	}
	done = OPS_ARRAY_RESERVE(&views->device_events, devices) && OPS_ARRAY_RESERVE(&views->launches, launches);
	for (uint32_t row = 0; done && row < views->events->count; row++) {
		linker->launch_of[row] = OPS_NONE;
		if (view_launches_is_device(views->parts[row]))
			done = view_launches_add_device_event(views, row);
		else if (views->parts[row] == VIEW_LAUNCH)
			done = add_launch(linker, row);
	}
	return done;
}

/* --- calls to nodes ------------------------------------------------------------------------------------------------- */

/* Of operators that are folded into one node, returns the innermost one that is open when the call is made: the node
 * has only the calls of that one. */
static uint32_t node_of_operator(const struct ops_views *views, uint32_t operator, uint32_t call)
{
	uint32_t node = views->node_of[operator], inner;

	if (node == OPS_NONE || views->nodes.items[node].part != VIEW_OPERATOR)
		return OPS_NONE;
	inner = views->nodes.items[node].calls_of;
	if (inner != node && view_start(views, views->nodes.items[inner].row) <= view_start(views, call) &&
	    view_start(views, call) < view_end(views, views->nodes.items[inner].row))
		return inner;
	return node;
}

static bool is_label(const void *context, uint32_t row)
{
	const struct ops_views *views = context;
	uint8_t part = views->parts[row];

	return part == VIEW_LABEL || part == VIEW_FUNCTION || part == VIEW_MODULE || part == VIEW_OLD_PYTHON;
}

static bool view_launches_is_collective(const void *context, uint32_t row)
{
	const struct ops_views *views = context;

	return views->parts[row] == VIEW_LABEL && views->node_of[row] != OPS_NONE;
}

/* Links a call to the first node with its external id. The work of others is not in the tree. Returns false if out of
 * memory. */
static bool link_calls_by_id(struct linker *linker)
{
	struct ops_views *views = linker->views;
	const uint64_t *ids = views->events->id;
	struct ops_map nodes = {0};
	bool done = true;

	for (uint32_t i = 0; done && ids && i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];

		if (node->part != VIEW_MODULE && ids[node->row])
			done = ops_map_slot(&nodes, ids[node->row], i);
	}
	for (uint32_t i = 0; done && i < views->launches.count; i++) {
		struct view_launch *launch = &views->launches.items[i];
		uint64_t id = ids ? ids[launch->row] : 0;

		launch->node = id ? ops_map_find(&nodes, id) : OPS_NONE;
		launch->is_lost = launch->node == OPS_NONE;
	}
	ops_map_release(&nodes);
	return done;
}

static bool link_calls(struct linker *linker)
{
	struct ops_views *views = linker->views;
	uint32_t *collectives = ops_rows_around(views->trace, view_launches_is_collective, views);

	for (uint32_t i = 0; collectives && i < views->launches.count; i++) {
		struct view_launch *launch = &views->launches.items[i];
		uint32_t operator = linker->launchers[launch->row], collective;

		if (operator != OPS_NONE)
			launch->node = node_of_operator(views, operator, launch->row);
		if (launch->node != OPS_NONE)
			continue;
		collective = collectives[launch->row];
		launch->node = collective == OPS_NONE ? OPS_NONE : views->node_of[collective];
	}
	ops_free(collectives);
	return collectives != NULL;
}

/* --- device events to calls ----------------------------------------------------------------------------------------- */

static void link_event(struct linker *linker, struct view_device_event *event, uint32_t at)
{
	struct ops_views *views = linker->views;
	uint32_t call = linker->launchers[event->row], label;
	struct view_launch *launch;

	if (call != OPS_NONE)
		event->launch = linker->launch_of[call];
	if (event->launch == OPS_NONE)
		return;
	launch = &views->launches.items[event->launch];
	event->next = launch->first;
	launch->first = at;
	event->origin = event->launch;
	if (linker->launch_of[linker->origins[event->row]] != OPS_NONE) {
		call = linker->origins[event->row];
		event->origin = linker->launch_of[call];
	}
	event->node = views->launches.items[event->origin].node;
	event->in_tree = true;
	label = linker->labels[call];
	if (label != OPS_NONE)
		event->label = views->events->name[label];
}

/* Links from the last event to the first, so that lists are in order of time. Work of unknown origin belongs to the
 * root of the thread with the steps, if there are steps. */
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
		else if (views->launches.items[event->origin].is_lost)
			event->in_tree = false;
		else if (event->node != OPS_NONE && views->nodes.items[views->nodes.items[event->node].kept].calls_of != event->node)
			event->in_tree = false; /* not counted, like the calls of a folded node */
		else if (event->node != OPS_NONE)
			event->node = views->nodes.items[event->node].kept;
	}
}

static bool find_queued_before(struct linker *linker)
{
	int64_t *first_launched = ops_first_launched(linker->views->trace, linker->launchers);

	for (size_t i = 0; first_launched && i < linker->views->device_events.count; i++) {
		struct view_device_event *event = &linker->views->device_events.items[i];

		event->queued_before = ops_was_queued_before(linker->views->events, linker->launchers, first_launched, event->row);
	}
	ops_free(first_launched);
	return first_launched;
}

bool view_launches_link(struct ops_views *views)
{
	struct linker linker = {.views = views, .launchers = ops_launchers(views->trace), .origins = ops_origins(views->trace)};
	bool done;

	linker.launch_of = ops_realloc_array(NULL, views->events->count + 1, sizeof(*linker.launch_of));
	linker.labels = ops_rows_around(views->trace, is_label, views);
	done = linker.launchers && linker.origins && linker.launch_of && linker.labels && view_launches_collect(&linker);
	if (done) {
		done = views->policy->links_by_id ? link_calls_by_id(&linker) : link_calls(&linker);
		link_events(&linker);
		done = done && find_queued_before(&linker);
	}
	ops_free(linker.launch_of);
	ops_free(linker.labels);
	return done;
}

bool view_origins_find(const struct ops_views *views, struct view_origins *origins)
{
	const struct ops_captures *captures = ops_captures_of(views->trace);

	*origins = (struct view_origins){0};
	for (size_t i = 0; i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];

		if (!event->queued_before)
			continue;
		origins->queued++;
		view_add(&origins->queued_ns, view_duration(views, event->row));
	}
	if (captures) {
		origins->replayed = captures->replayed;
		origins->captured = captures->known;
	}
	return captures;
}
