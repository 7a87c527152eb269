/* SPDX-License-Identifier: Apache-2.0
 *
 * The nodes of the autograd engine, grouped by the module that each works for. Nodes of no module stay where they are.
 */
#include "analyze/views/view_backward.h"

#include "base/alloc.h"
#include "derive/backward.h"

/* Returns, by node, the module call that the node is or lies in; OPS_NONE: none. Returns NULL if out of memory. */
static uint32_t *find_modules(const struct ops_views *views)
{
	uint32_t *modules = ops_realloc_array(NULL, views->nodes.count + 1, sizeof(*modules));

	for (uint32_t i = 0; modules && i < views->nodes.count; i++) {
		uint32_t parent = views->nodes.items[i].parent;

		modules[i] = views->nodes.items[i].part == VIEW_MODULE ? i : parent == OPS_NONE ? OPS_NONE : modules[parent];
	}
	return modules;
}

/* Sets `of_node` to the module of each backward node. */
static bool find_backward_nodes(const struct ops_views *views, uint32_t *of_node)
{
	const uint32_t *modules = ops_backward_modules(views->trace);

	for (uint32_t i = 0; modules && i < views->nodes.count; i++) {
		uint32_t module = modules[views->nodes.items[i].row];

		if (module < OPS_ROW_PLAIN)
			of_node[i] = views->node_of[module];
	}
	return modules != NULL;
}

/* Adds the backward of a module call and of the calls around it. Returns the index of the first; OPS_NONE if out of
 * memory. */
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

/* Engine nodes extend the backward of their module, and a complete backward extends that of the module around it. Inner
 * modules come after the modules around them. */
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

/* Replaces modules in `of_node` by indexes of their backwards. */
static bool view_backward_gather(const struct ops_views *views, struct view_backwards *backwards, const uint32_t *modules)
{
	size_t count = views->nodes.count;
	uint32_t *of_module = ops_alloc_none(count + 1);
	bool done = of_module != NULL;

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

	*backwards = (struct view_backwards){.of_node = ops_alloc_none(views->nodes.count + 1)};
	if (!backwards->of_node)
		return false;
	if (!views->has_modules)
		return true;
	modules = find_modules(views);
	done = modules && find_backward_nodes(views, backwards->of_node) && view_backward_gather(views, backwards, modules);
	ops_free(modules);
	return done;
}

void view_backwards_release(struct view_backwards *backwards)
{
	OPS_ARRAY_RELEASE(&backwards->items);
	ops_free(backwards->of_node);
	backwards->of_node = NULL;
}
