/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules, including those of Lightning. The caller of a module is derived from the Python calls between them, or from
 * Lightning's dotted names. Calls with the same name, number and inner calls are one node. Times include all calls of a
 * name and number. The TensorBoard plugin excludes operators from a module's self time on the host but not on devices,
 * and does not show its backward; both are given in addition.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/views/view_backward.h"
#include "analyze/views/views.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/map.h"
#include "base/text.h"

struct figures {
	uint64_t occurrences;
	uint64_t operators;
	int64_t host_total_ns;
	int64_t host_self_ns;
	int64_t host_with_operators_ns;
	int64_t device_total_ns;
	int64_t device_self_ns;
	int64_t backward_host_ns;
	int64_t backward_device_ns;
};

/* A call that represents all identical calls. */
struct module {
	struct ops_string name;
	int64_t number;
	uint32_t figures;
	uint32_t first; /* first child */
	uint32_t next;  /* next sibling */
};

struct modules {
	const struct ops_views *views;
	OPS_ARRAY(struct module) items;
	OPS_ARRAY(struct figures) figures;
	struct ops_intern keys; /* from name and number to figures */
	OPS_ARRAY(uint32_t) roots;
};

/* --- figures -------------------------------------------------------------------------------------------------------- */

static struct ops_string view_modules_module_name(const struct ops_views *views, uint32_t row)
{
	return ops_module_path(view_row_name(views, row));
}

static int64_t module_number(const struct ops_views *views, uint32_t row)
{
	return views->modules == OPS_MODULES_PYTHON ? (int64_t)views->events->python_module[row] : 0;
}

/* Returns the entry of a name and number, which is added if it is new. Returns OPS_NONE if out of memory. */
static uint32_t figures_of(struct modules *modules, uint32_t row)
{
	struct ops_string name = view_modules_module_name(modules->views, row);
	int64_t number = module_number(modules->views, row);
	struct ops_buffer key = {0};
	uint32_t at = OPS_NONE;

	ops_buffer_append(&key, &number, sizeof(number));
	ops_buffer_append(&key, name.bytes, name.size);
	if (!key.failed)
		at = ops_intern_add(&modules->keys, key.bytes, key.size);
	ops_buffer_release(&key);
	return OPS_ARRAY_AT(&modules->figures, at) ? at : OPS_NONE;
}

static bool view_modules_sum(struct modules *modules)
{
	const struct ops_views *views = modules->views;

	for (size_t i = 0; i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];
		struct figures *figures;
		uint32_t at;

		if (node->part != VIEW_MODULE)
			continue;
		at = figures_of(modules, node->row);
		if (at == OPS_NONE)
			return false;
		figures = &modules->figures.items[at];
		figures->occurrences++;
		figures->operators += node->operators;
		view_add(&figures->host_total_ns, view_duration(views, node->row));
		view_add(&figures->host_self_ns, view_host_self_ns(views, node));
		view_add(&figures->host_with_operators_ns, ops_sum(view_host_self_ns(views, node), node->operators_host_ns));
		view_add(&figures->device_total_ns, node->device_total_ns);
		view_add(&figures->device_self_ns, node->device_self_ns + node->operators_device_ns);
	}
	return true;
}

static bool sum_backward(struct modules *modules)
{
	const struct ops_views *views = modules->views;
	struct view_backwards backwards;
	bool done = view_backwards_find(views, &backwards);

	for (size_t i = 0; done && i < backwards.items.count; i++) {
		const struct view_backward *backward = &backwards.items.items[i];
		uint32_t at = figures_of(modules, views->nodes.items[backward->module].row);

		done = at != OPS_NONE;
		if (!done)
			break;
		view_add(&modules->figures.items[at].backward_host_ns, backward->host_total_ns);
		view_add(&modules->figures.items[at].backward_device_ns, backward->device_total_ns);
	}
	view_backwards_release(&backwards);
	return done;
}

/* --- calls ---------------------------------------------------------------------------------------------------------- */

/* Temporary data of the call tree, by row. */
struct calls {
	uint32_t *module; /* the innermost module call around the row, including itself */
	uint32_t *first;  /* first module call below it */
	uint32_t *next;
	uint32_t *kind;   /* for module calls: equal calls have the same kind */
	struct ops_map ids;
	struct ops_intern kinds;
};

static bool calls_alloc(struct calls *calls, size_t count)
{
	uint32_t **const columns[] = {&calls->module, &calls->first, &calls->next, &calls->kind};

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		*columns[i] = ops_alloc_none(count + 1);
		if (!*columns[i])
			return false;
	}
	return true;
}

static void calls_release(struct calls *calls)
{
	ops_free(calls->module);
	ops_free(calls->first);
	ops_free(calls->next);
	ops_free(calls->kind);
	ops_map_release(&calls->ids);
	ops_intern_release(&calls->kinds);
}

/* Returns the row of the caller, by its Python id, or by the tree if the file has no ids. */
static uint32_t caller_of(const struct ops_views *views, const struct calls *calls, uint32_t row)
{
	const struct ops_events *events = views->events;

	if (!events->python_parent || !events->python_id || events->python_id[row] == OPS_NONE)
		return events->parent[row];
	return events->python_parent[row] == OPS_NONE ? OPS_NONE : ops_map_find(&calls->ids, events->python_parent[row]);
}

static bool view_modules_is_call(const struct ops_views *views, uint32_t row)
{
	return views->parts[row] == VIEW_MODULE || views->parts[row] == VIEW_FUNCTION;
}

/* Callers precede their callees, so one pass finds the module around each call. */
static bool find_callers(const struct ops_views *views, struct calls *calls, uint32_t *outer)
{
	const struct ops_events *events = views->events;

	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t caller;

		if (!view_modules_is_call(views, row))
			continue;
		if (events->python_id && events->python_id[row] != OPS_NONE &&
		    !ops_map_add(&calls->ids, events->python_id[row], row))
			return false;
		caller = caller_of(views, calls, row);
		while (caller != OPS_NONE && !view_modules_is_call(views, caller))
			caller = events->parent[caller];
		outer[row] = caller == OPS_NONE || caller >= row ? OPS_NONE : calls->module[caller];
		calls->module[row] = views->parts[row] == VIEW_MODULE ? row : outer[row];
	}
	return true;
}

/* Numbers a call by its name, number and the kinds of the calls below it. */
static bool view_modules_find_kind(struct modules *modules, struct calls *calls, uint32_t row)
{
	struct ops_buffer text = {0};
	uint32_t figures = figures_of(modules, row);

	ops_buffer_append(&text, &figures, sizeof(figures));
	for (uint32_t child = calls->first[row]; child != OPS_NONE; child = calls->next[child])
		ops_buffer_append(&text, &calls->kind[child], sizeof(calls->kind[child]));
	if (!text.failed && figures != OPS_NONE)
		calls->kind[row] = ops_intern_add(&calls->kinds, text.bytes, text.size);
	ops_buffer_release(&text);
	return calls->kind[row] != OPS_NONE;
}

static bool view_modules_add_module(struct modules *modules, uint32_t row)
{
	uint32_t figures = figures_of(modules, row);
	struct module *module = figures == OPS_NONE ? NULL : OPS_ARRAY_PUSH(&modules->items);

	if (module)
		*module = (struct module){view_modules_module_name(modules->views, row), module_number(modules->views, row),
		                          figures, OPS_NONE, OPS_NONE};
	return module != NULL;
}

/* Copies the calls below a root level by level, without recursion, since a program may nest deeply. */
static bool add_calls(struct modules *modules, const struct calls *calls, uint32_t root)
{
	struct pair {
		uint32_t row, at;
	};
	OPS_ARRAY(struct pair) todo = {0};
	struct pair *pushed = OPS_ARRAY_PUSH(&todo);
	bool done = pushed != NULL;

	if (done)
		*pushed = (struct pair){root, OPS_NONE};
	while (done && todo.count) {
		struct pair pair = todo.items[--todo.count];
		uint32_t at = (uint32_t)modules->items.count, before = OPS_NONE;

		done = view_modules_add_module(modules, pair.row);
		if (!done)
			break;
		/* The last child is popped first, and is inserted before those already there. */
		if (pair.at != OPS_NONE) {
			before = modules->items.items[pair.at].first;
			modules->items.items[pair.at].first = at;
			modules->items.items[at].next = before;
		}
		for (uint32_t child = calls->first[pair.row]; done && child != OPS_NONE; child = calls->next[child])
			done = OPS_ARRAY_APPEND(&todo, (struct pair){child, at});
	}
	OPS_ARRAY_RELEASE(&todo);
	return done;
}

static bool add_root(struct modules *modules, uint32_t at)
{
	return OPS_ARRAY_APPEND(&modules->roots, at);
}

/* From the last row to the first, a call is complete when it is visited, and lists come out in order. */
static bool find_kinds(struct modules *modules, struct calls *calls, const uint32_t *outer)
{
	const struct ops_views *views = modules->views;

	for (size_t row = views->events->count; row-- > 0;) {
		if (views->parts[row] != VIEW_MODULE)
			continue;
		if (!view_modules_find_kind(modules, calls, (uint32_t)row))
			return false;
		if (outer[row] == OPS_NONE)
			continue;
		calls->next[row] = calls->first[outer[row]];
		calls->first[outer[row]] = (uint32_t)row;
	}
	return true;
}

static bool collect_calls(struct modules *modules)
{
	const struct ops_views *views = modules->views;
	size_t count = views->events->count;
	struct calls calls = {0};
	struct ops_map seen = {0};
	uint32_t *outer = ops_realloc_array(NULL, count + 1, sizeof(*outer));
	bool done = outer && calls_alloc(&calls, count) && find_callers(views, &calls, outer) &&
	            find_kinds(modules, &calls, outer);

	for (uint32_t row = 0; done && row < count; row++) {
		size_t before = seen.count;

		if (views->parts[row] != VIEW_MODULE || outer[row] != OPS_NONE)
			continue;
		done = ops_map_add(&seen, calls.kind[row], 0);
		if (done && seen.count > before)
			done = add_root(modules, (uint32_t)modules->items.count) && add_calls(modules, &calls, row);
	}
	ops_map_release(&seen);
	calls_release(&calls);
	ops_free(outer);
	return done;
}

/* --- Lightning ------------------------------------------------------------------------------------------------------ */

/* Returns the module whose name is this one without its last part. */
static uint32_t dotted_parent(const struct ops_intern *names, struct ops_string name)
{
	while (name.size && name.bytes[name.size - 1] != '.')
		name.size--;
	return name.size ? ops_intern_find(names, name.bytes, name.size - 1) : OPS_INTERN_NONE;
}

static bool collect_names(struct modules *modules)
{
	const struct ops_views *views = modules->views;
	struct ops_intern names = {0};
	bool done = true;

	for (uint32_t row = 0; done && row < views->events->count; row++) {
		struct ops_string name;

		if (views->parts[row] != VIEW_MODULE)
			continue;
		name = view_modules_module_name(views, row);
		done = ops_intern_add(&names, name.bytes, name.size) != OPS_INTERN_NONE;
		if (!done || names.count == modules->items.count)
			continue;
		done = view_modules_add_module(modules, row);
	}
	for (size_t i = modules->items.count; done && i-- > 0;) {
		struct module *module = &modules->items.items[i];
		uint32_t parent = dotted_parent(&names, module->name);

		if (parent == OPS_INTERN_NONE) {
			done = add_root(modules, (uint32_t)i);
			continue;
		}
		module->next = modules->items.items[parent].first;
		modules->items.items[parent].first = (uint32_t)i;
	}
	ops_intern_release(&names);
	return done;
}

/* --- output --------------------------------------------------------------------------------------------------------- */

static int view_modules_compare_roots(const void *a, const void *b, void *context)
{
	const struct modules *modules = context;
	const struct module *left = &modules->items.items[*(const uint32_t *)a];
	const struct module *right = &modules->items.items[*(const uint32_t *)b];
	int order = ops_string_compare(left->name, right->name);

	return order ? order : (left > right) - (left < right);
}

static void view_modules_write_figures(const struct modules *modules, struct ops_json_writer *json, const struct module *module)
{
	const struct figures *figures = &modules->figures.items[module->figures];
	int64_t total_ns = figures->device_total_ns > 0 ? figures->device_total_ns : figures->host_total_ns;

	ops_json_member_string(json, "name", module->name);
	ops_json_member(json, "module_id", module->number);
	ops_json_member(json, "occurrences", (int64_t)figures->occurrences);
	ops_json_member(json, "operators", (int64_t)figures->operators);
	ops_json_member_us(json, "host_total", figures->host_total_ns);
	ops_json_member_us(json, "host_self", figures->host_self_ns);
	ops_json_member_us(json, "host_self_with_operators", figures->host_with_operators_ns);
	ops_json_member_us(json, "device_total", figures->device_total_ns);
	ops_json_member_us(json, "device_self", figures->device_self_ns);
	ops_json_member_us(json, "backward_host_total", figures->backward_host_ns);
	ops_json_member_us(json, "backward_device_total", figures->backward_device_ns);
	ops_json_member_number(json, "avg_duration",
	                       figures->occurrences ? (double)total_ns / (double)figures->occurrences / 1000 : (double)NAN);
}

/* Walks to first children and then to siblings; `path` has the open modules. */
static bool write_module(const struct modules *modules, struct ops_json_writer *json, uint32_t at)
{
	OPS_ARRAY(uint32_t) path = {0};
	bool done = true;

	while (done) {
		uint32_t *pushed = OPS_ARRAY_PUSH(&path);

		done = pushed != NULL;
		if (!done)
			break;
		*pushed = at;
		ops_json_open(json, '{');
		view_modules_write_figures(modules, json, &modules->items.items[at]);
		ops_json_member_open(json, "children", '[');
		at = modules->items.items[at].first;
		while (at == OPS_NONE && path.count) {
			ops_json_close(json, ']');
			ops_json_close(json, '}');
			at = modules->items.items[path.items[--path.count]].next;
			if (path.count == 0)
				at = OPS_NONE;
		}
		if (at == OPS_NONE)
			break;
	}
	OPS_ARRAY_RELEASE(&path);
	return done;
}

bool view_write_modules(const struct ops_views *views, struct ops_json_writer *json)
{
	struct modules modules = {.views = views};
	bool done = true;

	ops_json_key(json, "modules");
	if (!views->has_modules) {
		ops_json_null(json);
		return true;
	}
	done = view_modules_sum(&modules) && sum_backward(&modules) &&
	       (views->modules == OPS_MODULES_LIGHTNING ? collect_names(&modules) : collect_calls(&modules));
	if (done)
		OPS_ARRAY_SORT_BY(&modules.roots, view_modules_compare_roots, &modules);
	ops_json_open(json, '[');
	for (size_t i = 0; done && i < modules.roots.count; i++)
		done = write_module(&modules, json, modules.roots.items[i]);
	ops_json_close(json, ']');
	OPS_ARRAY_RELEASE(&modules.items);
	OPS_ARRAY_RELEASE(&modules.figures);
	OPS_ARRAY_RELEASE(&modules.roots);
	ops_intern_release(&modules.keys);
	return done;
}
