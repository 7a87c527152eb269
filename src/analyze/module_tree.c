/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of calls (module_costs.h), summed by module and by class; see opstrobe/modules.h.
 */
#include "analyze/module_tree.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/intern.h"
#include "base/sum.h"
#include "derive/extent.h"
#include "derive/modules.h"
#include "derive/steps.h"

/* --- rows ----------------------------------------------------------------------------------------------------------- */

static bool add_known_modules(struct ops_module_tree *tree)
{
	size_t count;
	const struct ops_module *modules = ops_trace_modules(tree->trace, &count);

	for (size_t i = 0; i < count; i++) {
		struct ops_module_row *row = OPS_ARRAY_PUSH(&tree->rows);

		if (!row)
			return false;
		*row = (struct ops_module_row){
			.name = ops_trace_string(tree->trace, modules[i].name),
			.path = ops_trace_string(tree->trace, modules[i].unique_path),
			.class_name = ops_trace_string(tree->trace, modules[i].class_name),
			.module = (uint32_t)i,
			.parent = modules[i].parent,
			.depth = modules[i].parent == OPS_NONE ? 0 : tree->rows.items[modules[i].parent].depth + 1,
			.parameter_count = modules[i].parameter_count,
			.parameter_bytes = modules[i].parameter_bytes,
		};
	}
	return true;
}

/* A module known only from its calls, identified by its name and number. */
struct key {
	uint32_t name;
	uint32_t number;
};

/* Returns the row of a call's module, which is added if it is new. Returns OPS_NONE if out of memory. */
static uint32_t row_of_call(struct ops_module_tree *tree, struct ops_intern *keys, size_t known,
                            const struct ops_module_call *call)
{
	const struct ops_events *events = ops_trace_events(tree->trace);
	struct key key = {events->name[call->event], events->python_module ? events->python_module[call->event] : OPS_NONE};
	struct ops_module_row *row;
	uint32_t index;

	if (events->module && events->module[call->event] != OPS_NONE)
		return events->module[call->event];
	index = ops_intern_add(keys, &key, sizeof(key));
	if (index == OPS_INTERN_NONE || known + index < tree->rows.count)
		return index == OPS_INTERN_NONE ? OPS_NONE : (uint32_t)known + index;
	row = OPS_ARRAY_PUSH(&tree->rows);
	if (!row)
		return OPS_NONE;
	*row = (struct ops_module_row){.module = OPS_NONE, .parent = OPS_NONE,
	                               .name = ops_trace_string(tree->trace, key.name)};
	row->path = ops_module_path(row->name);
	row->class_name = ops_module_class(row->name);
	if (call->outer != OPS_NONE) {
		row->parent = tree->calls.items[call->outer].row;
		row->depth = tree->rows.items[row->parent].depth + 1;
	}
	return (uint32_t)known + index;
}

/* Returns false if out of memory. */
static bool module_tree_find_rows(struct ops_module_tree *tree)
{
	struct ops_intern keys = {0};
	size_t known;
	bool ok = add_known_modules(tree);

	known = tree->rows.count;
	for (size_t i = 0; ok && i < tree->calls.count; i++) {
		struct ops_module_call *call = &tree->calls.items[i];

		call->row = row_of_call(tree, &keys, known, call);
		ok = call->row != OPS_NONE;
		if (ok && tree->rows.items[call->row].name.size == 0) /* in joined traces, the first may have no call of
		                                                       * the module */
			tree->rows.items[call->row].name =
				ops_trace_string(tree->trace, ops_trace_events(tree->trace)->name[call->event]);
	}
	ops_intern_release(&keys);
	return ok;
}

/* Adds the classes of called modules. `of_row` gets the class of each. Returns false if out of memory. */
static bool find_classes(struct ops_module_tree *tree, uint32_t *of_row)
{
	struct ops_intern names = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < tree->calls.count; i++) {
		const struct ops_module_row *row = &tree->rows.items[tree->calls.items[i].row];
		uint32_t class = ops_intern_add(&names, row->class_name.bytes, row->class_name.size);
		struct ops_module_row *added;

		of_row[tree->calls.items[i].row] = class;
		if (class < tree->classes.count)
			continue;
		added = class == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&tree->classes);
		ok = added != NULL;
		if (ok)
			*added = (struct ops_module_row){.name = {"", 0}, .path = row->class_name, .class_name = row->class_name,
			                                 .module = OPS_NONE, .parent = OPS_NONE};
	}
	ops_intern_release(&names);
	return ok;
}

/* --- sums ----------------------------------------------------------------------------------------------------------- */

static void add_values(int64_t *to, const int64_t *from)
{
	for (int metric = 0; metric < OPS_MODULE_METRIC_COUNT; metric++)
		to[metric] = ops_sum(to[metric], from[metric]);
}

/* The calls as a tree: the first call inside each one, and the next one in the same call. Calls have their number + 1; 0: none. */
struct call_links {
	uint32_t *inner;
	uint32_t *next;
	uint32_t first; /* outside of others */
	uint32_t *inside; /* by group: how many of its calls are around the current one */
};

static void module_tree_link_calls(const struct ops_module_tree *tree, struct call_links *links)
{
	for (uint32_t i = (uint32_t)tree->calls.count; i-- > 0;) {
		uint32_t outer = tree->calls.items[i].outer;
		uint32_t *first = outer == OPS_NONE ? &links->first : &links->inner[outer];

		links->next[i] = *first;
		*first = i + 1;
	}
}

/* Marks calls that are made inside another one of the same group. */
static void mark_repeated(const struct ops_module_tree *tree, const struct call_links *links, const uint32_t *group_of,
                          uint8_t *repeated)
{
	const struct ops_module_call *calls = tree->calls.items;
	uint32_t at = links->first;

	while (at) {
		uint32_t call = at - 1, *inside = &links->inside[group_of[calls[call].row]];

		repeated[call] = *inside > 0;
		if (links->inner[call]) {
			++*inside;
			at = links->inner[call];
			continue;
		}
		for (at = links->next[call]; !at && calls[call].outer != OPS_NONE; at = links->next[call]) {
			call = calls[call].outer;
			--links->inside[group_of[calls[call].row]];
		}
	}
}

static void add_peak(int64_t *peak_bytes, int64_t bytes)
{
	if (bytes > *peak_bytes)
		*peak_bytes = bytes;
}

/* Sums the costs of calls without those of the calls inside. */
static void sum_self(const struct ops_module_tree *tree, const struct module_cost *costs, struct ops_module_row *groups,
                     const uint32_t *group_of)
{
	for (uint32_t i = 0; i < tree->calls.count; i++) {
		struct ops_module_row *group = &groups[group_of[tree->calls.items[i].row]];

		group->first_call = group->calls ? group->first_call : i;
		group->calls++;
		add_values(group->self, costs[i].self);
		add_peak(&group->cpu_peak_bytes, costs[i].peak_bytes[0]);
		add_peak(&group->device_peak_bytes, costs[i].peak_bytes[1]);
	}
}

/* Without steps, and outside of them, every thread is one of a step. */
static bool is_on_step_thread(const struct ops_module_tree *tree, const struct ops_steps *steps, uint32_t event)
{
	const struct ops_events *events = ops_trace_events(tree->trace);
	uint32_t step = ops_steps_at(steps, events->start_ns[event]);

	return step == OPS_NONE || steps->list.items[step].track == events->track[event];
}

/* Sums the costs of calls including the calls inside, see add_inner_calls. */
static void sum_totals(const struct ops_module_tree *tree, const struct module_cost *costs, struct ops_module_row *groups,
                       const uint32_t *group_of, const uint8_t *repeated)
{
	const struct ops_steps *steps = ops_steps_of(tree->trace); /* module_costs_init() has computed them */

	for (uint32_t i = 0; i < tree->calls.count; i++)
		if (!repeated[i]) {
			struct ops_module_row *group = &groups[group_of[tree->calls.items[i].row]];

			add_values(group->total, costs[i].self);
			group->step_ns += (double)costs[i].step_ns;
			if (is_on_step_thread(tree, steps, tree->calls.items[i].event))
				group->share += (double)costs[i].step_ns;
		}
}

/* From here on, the cost of a call includes everything inside it. Inner calls come later. */
static void add_inner_calls(const struct ops_module_tree *tree, struct module_cost *costs)
{
	for (size_t i = tree->calls.count; i-- > 0;)
		if (tree->calls.items[i].outer != OPS_NONE) {
			struct module_cost *outer = &costs[tree->calls.items[i].outer];

			add_values(outer->self, costs[i].self);
			outer->step_ns = ops_sum(outer->step_ns, costs[i].step_ns);
		}
}

/* A module that only contains others shows their totals. */
static void fill_holders(struct ops_module_tree *tree)
{
	for (size_t i = tree->rows.count; i-- > 0;) {
		const struct ops_module_row *row = &tree->rows.items[i];
		struct ops_module_row *parent = row->parent == OPS_NONE ? NULL : &tree->rows.items[row->parent];

		if (!parent || parent->calls)
			continue;
		add_values(parent->total, row->total);
		parent->step_ns += row->step_ns;
		parent->share += row->share;
		if (row->first_call < parent->first_call)
			parent->first_call = row->first_call;
		add_peak(&parent->cpu_peak_bytes, row->cpu_peak_bytes);
		add_peak(&parent->device_peak_bytes, row->device_peak_bytes);
	}
}

/* Returns false if out of memory. */
static bool sum_all(struct ops_module_tree *tree, struct module_cost *costs, const uint32_t *itself, const uint32_t *class_of)
{
	size_t count = tree->calls.count;
	struct call_links links = {
		.inner = ops_alloc_zeroed(count + 1, sizeof(*links.inner)),
		.next = ops_alloc_zeroed(count + 1, sizeof(*links.next)),
		.inside = ops_alloc_zeroed(tree->rows.count + tree->classes.count + 1, sizeof(*links.inside)),
	};
	uint8_t *repeated = ops_alloc_zeroed(count + 1, 1);
	bool ok = links.inner && links.next && links.inside && repeated;

	if (ok) {
		module_tree_link_calls(tree, &links);
		sum_self(tree, costs, tree->rows.items, itself);
		sum_self(tree, costs, tree->classes.items, class_of);
		add_inner_calls(tree, costs);
		mark_repeated(tree, &links, itself, repeated);
		sum_totals(tree, costs, tree->rows.items, itself, repeated);
		mark_repeated(tree, &links, class_of, repeated);
		sum_totals(tree, costs, tree->classes.items, class_of, repeated);
	}
	ops_free(links.inner);
	ops_free(links.next);
	ops_free(links.inside);
	ops_free(repeated);
	return ok;
}

static void module_tree_count_modules(struct ops_module_tree *tree, const uint32_t *class_of)
{
	for (size_t i = 0; i < tree->rows.count; i++) {
		tree->rows.items[i].modules = tree->rows.items[i].calls > 0;
		if (!tree->rows.items[i].calls)
			tree->rows.items[i].first_call = OPS_NONE;
		else
			tree->classes.items[class_of[i]].modules++;
	}
}

/* Fills the figures that refer to the steps that means cover, also to those without device work. A step that several processes run
 * together counts once. Before, `step_ns`
 * and `share` are sums of time. Returns false if out of memory. */
static bool fill_steps(struct ops_module_tree *tree)
{
	const struct ops_steps *steps = ops_steps_of(tree->trace);
	struct ops_interval extent = ops_extent_of(tree->trace);
	double count = steps ? (double)ops_steps_averaged(steps) : 0, all_ns = 0;

	for (size_t i = 0; steps && i < steps->list.count; i++)
		if (!steps->list.items[i].is_shadow && (i || !steps->first_is_apart))
			all_ns += (double)ops_difference(steps->list.items[i].end_ns, steps->list.items[i].start_ns);
	if (!count)
		all_ns = (double)ops_difference(extent.end_ns, extent.start_ns);
	for (size_t i = 0; i < tree->rows.count + tree->classes.count; i++) {
		struct ops_module_row *row = i < tree->rows.count ? &tree->rows.items[i] : &tree->classes.items[i - tree->rows.count];

		row->step_ns = count > 0 ? row->step_ns / count : (double)NAN;
		/* Threads of the autograd engine may work for several calls at once. A module that other threads call has no share. */
		row->share = all_ns > 0 && (row->share > 0 || !row->calls) ? fmin(row->share / all_ns, 1) : (double)NAN;
	}
	return steps != NULL;
}

/* --- construction --------------------------------------------------------------------------------------------------- */

/* Returns false if out of memory. */
static bool make_tree(struct ops_module_tree *tree, struct module_costs *costs)
{
	uint32_t *itself = NULL, *class_of = NULL;
	bool ok = module_costs_init(costs, tree->trace);

	if (ok) {
		tree->calls = costs->calls;
		costs->calls = (struct module_calls){0};
		ok = module_tree_find_rows(tree);
	}
	if (ok) {
		itself = ops_realloc_array(NULL, tree->rows.count + 1, sizeof(*itself));
		class_of = ops_realloc_array(NULL, tree->rows.count + 1, sizeof(*class_of));
		ok = itself && class_of && find_classes(tree, class_of);
	}
	if (ok) {
		for (uint32_t i = 0; i < tree->rows.count; i++)
			itself[i] = i;
		ok = sum_all(tree, costs->costs, itself, class_of);
	}
	if (ok) {
		module_tree_count_modules(tree, class_of);
		fill_holders(tree);
		ok = fill_steps(tree);
	}
	ops_free(itself);
	ops_free(class_of);
	return ok;
}

enum ops_code ops_module_tree_new(const struct ops_trace *trace, struct ops_module_tree **ret_tree, struct ops_error *error)
{
	struct ops_module_tree *tree = ops_alloc_zeroed(1, sizeof(*tree));
	struct module_costs costs = {0};
	bool ok = tree != NULL;

	if (ok) {
		tree->trace = trace;
		ok = make_tree(tree, &costs);
	}
	module_costs_release(&costs);
	if (!ok) {
		ops_module_tree_free(tree);
		return ops_fault_memory(error);
	}
	*ret_tree = tree;
	return OPS_OK;
}

void ops_module_tree_free(struct ops_module_tree *tree)
{
	if (!tree)
		return;
	OPS_ARRAY_RELEASE(&tree->rows);
	OPS_ARRAY_RELEASE(&tree->classes);
	OPS_ARRAY_RELEASE(&tree->calls);
	ops_free(tree);
}

const struct ops_module_row *ops_module_tree_rows(const struct ops_module_tree *tree, size_t *ret_count)
{
	*ret_count = tree->rows.count;
	return tree->rows.items;
}

const struct ops_module_row *ops_module_tree_classes(const struct ops_module_tree *tree, size_t *ret_count)
{
	*ret_count = tree->classes.count;
	return tree->classes.items;
}

const struct ops_module_call *ops_module_tree_calls(const struct ops_module_tree *tree, size_t *ret_count)
{
	*ret_count = tree->calls.count;
	return tree->calls.items;
}
