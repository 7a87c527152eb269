/* SPDX-License-Identifier: Apache-2.0
 *
 * Which module each node of the autograd engine works for (10): that of the forward operator it is linked with. What
 * accumulates a gradient goes with the node before it. Nodes of no module stay where they are (F28).
 */
#include "analyze/views/view_backward.h"

#include <string.h>

#include "base/alloc.h"
#include "trace/names.h"

static bool is_engine_node(const struct ops_views *views, uint32_t node)
{
	return ops_is_engine_name(view_row_name(views, views->nodes.items[node].row));
}

static bool accumulates(const struct ops_views *views, uint32_t node)
{
	return ops_string_ends(view_row_name(views, views->nodes.items[node].row), "AccumulateGrad");
}

/* By node: itself or the nearest one above that is of the kind asked for; OPS_NONE. NULL when memory is out. */
static uint32_t *nearest(const struct ops_views *views, bool (*is)(const struct ops_views *views, uint32_t node))
{
	uint32_t *found = ops_realloc_array(NULL, views->nodes.count + 1, sizeof(*found));

	for (uint32_t i = 0; found && i < views->nodes.count; i++) {
		uint32_t parent = views->nodes.items[i].parent;

		found[i] = is(views, i) ? i : parent == OPS_NONE ? OPS_NONE : found[parent];
	}
	return found;
}

static bool is_module(const struct ops_views *views, uint32_t node)
{
	return views->nodes.items[node].part == VIEW_MODULE;
}

/* Puts the module of each engine node in `of_node`: of several links the first one counts (C06). */
static bool link_modules(const struct ops_views *views, const uint32_t *modules, uint32_t *of_node)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(views->trace, &count);
	uint32_t *engine = nearest(views, is_engine_node);

	for (size_t i = 0; engine && i < count; i++) {
		uint32_t from = views->node_of[links[i].from], to = views->node_of[links[i].to];

		if (links[i].kind != OPS_LINK_FORWARD_BACKWARD || from == OPS_NONE || to == OPS_NONE || engine[to] == OPS_NONE)
			continue;
		if (of_node[engine[to]] == OPS_NONE)
			of_node[engine[to]] = modules[from];
	}
	ops_free(engine);
	return engine != NULL;
}

/* Gives what accumulates a gradient to the module of the engine node before, if there is one (C07). */
static bool view_backward_follow(const struct ops_views *views, uint32_t *of_node)
{
	size_t tracks;
	uint32_t *before;

	ops_trace_tracks(views->trace, &tracks);
	before = ops_realloc_array(NULL, tracks + 1, sizeof(*before));
	for (size_t i = 0; before && i < tracks; i++)
		before[i] = OPS_NONE;
	for (uint32_t i = 0; before && i < views->nodes.count; i++) {
		uint32_t track = views->events->track[views->nodes.items[i].row];

		if (!is_engine_node(views, i))
			continue;
		if (of_node[i] == OPS_NONE && accumulates(views, i) && before[track] != OPS_NONE)
			of_node[i] = of_node[before[track]];
		before[track] = i;
	}
	ops_free(before);
	return before != NULL;
}

/* The backward of a module call and of those around it: index of the first. OPS_NONE when memory is out. */
static uint32_t view_backward_add(const struct ops_views *views, struct view_backwards *backwards, const uint32_t *modules,
                                  uint32_t *of_module, uint32_t module)
{
	uint32_t below = OPS_NONE, made = OPS_NONE;

	for (; module != OPS_NONE; module = views->nodes.items[module].parent == OPS_NONE
	                                            ? OPS_NONE
	                                            : modules[views->nodes.items[module].parent]) {
		uint32_t at = of_module[module];
		struct view_backward *backward = at == OPS_NONE ? OPS_ARRAY_PUSH(&backwards->items) : NULL;

		if (at == OPS_NONE && !backward)
			return OPS_NONE;
		if (backward) {
			at = (uint32_t)(backwards->items.count - 1);
			of_module[module] = at;
			*backward = (struct view_backward){.module = module, .parent = OPS_NONE, .first = OPS_NONE,
			                                   .start_ns = INT64_MAX, .end_ns = INT64_MIN};
		}
		if (below != OPS_NONE)
			backwards->items.items[below].parent = at;
		made = made == OPS_NONE ? at : made;
		below = at;
		if (!backward)
			break;
	}
	return made;
}

static void view_backward_stretch(struct view_backward *to, const struct view_backward *by)
{
	if (by->start_ns < to->start_ns) {
		to->first = by->first;
		to->start_ns = by->start_ns;
	}
	if (by->end_ns > to->end_ns)
		to->end_ns = by->end_ns;
	view_add(&to->host_total_ns, by->host_total_ns);
	view_add(&to->device_total_ns, by->device_total_ns);
}

/* Engine nodes stretch their backward, and that, once it is whole, the one it is in: modules stand behind those around. */
static void view_backward_sum(const struct ops_views *views, struct view_backwards *backwards, const uint32_t *of_module)
{
	for (uint32_t i = 0; i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];

		if (backwards->of_node[i] != OPS_NONE)
			view_backward_stretch(&backwards->items.items[backwards->of_node[i]],
			                      &(struct view_backward){.first = i,
			                                              .start_ns = view_start(views, node->row),
			                                              .end_ns = view_end(views, node->row),
			                                              .host_total_ns = view_duration(views, node->row),
			                                              .device_total_ns = node->device_total_ns});
	}
	for (size_t i = views->nodes.count; i-- > 0;) {
		uint32_t at = of_module[i];

		if (at != OPS_NONE && backwards->items.items[at].parent != OPS_NONE)
			view_backward_stretch(&backwards->items.items[backwards->items.items[at].parent],
			                      &backwards->items.items[at]);
	}
}

/* Turns modules in of_node into indexes of their backwards. */
static bool view_backward_gather(const struct ops_views *views, struct view_backwards *backwards, const uint32_t *modules)
{
	size_t count = views->nodes.count;
	uint32_t *of_module = ops_realloc_array(NULL, count + 1, sizeof(*of_module));
	bool done = of_module != NULL;

	if (done)
		memset(of_module, 0xff, (count + 1) * sizeof(*of_module));
	for (uint32_t i = 0; done && i < count; i++) {
		uint32_t *module = &backwards->of_node[i];

		if (*module == OPS_NONE)
			continue;
		*module = view_backward_add(views, backwards, modules, of_module, *module);
		done = *module != OPS_NONE;
	}
	if (done)
		view_backward_sum(views, backwards, of_module);
	ops_free(of_module);
	return done;
}

bool view_backwards_find(const struct ops_views *views, struct view_backwards *backwards)
{
	uint32_t *modules;
	bool done;

	*backwards = (struct view_backwards){.of_node = ops_realloc_array(NULL, views->nodes.count + 1, sizeof(uint32_t))};
	if (!backwards->of_node)
		return false;
	memset(backwards->of_node, 0xff, (views->nodes.count + 1) * sizeof(uint32_t));
	if (!views->has_modules)
		return true;
	modules = nearest(views, is_module);
	done = modules && link_modules(views, modules, backwards->of_node) && view_backward_follow(views, backwards->of_node) &&
	       view_backward_gather(views, backwards, modules);
	ops_free(modules);
	return done;
}

void view_backwards_release(struct view_backwards *backwards)
{
	OPS_ARRAY_RELEASE(&backwards->items);
	ops_free(backwards->of_node);
	backwards->of_node = NULL;
}
