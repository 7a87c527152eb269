/* SPDX-License-Identifier: Apache-2.0
 *
 * A comparison of two traces. The nodes of the steps on each side's main thread form one sequence. Loaders, modules and
 * their backwards, optimizer steps and steps are anchors: each is matched with the next one of the same kind and name
 * on the other side. The nodes between two matches form one pair of lists. The contents of a matched pair are compared
 * in the same way.
 */
#include "analyze/views/view_diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/views/view_diff_sums.h"
#include "analyze/views/view_step_stats.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/order.h"
#include "base/text.h"
#include "derive/modules.h"

struct list {
	uint32_t *items;
	size_t count;
	size_t capacity;
};

/* Two matching nodes whose children are still to be compared. */
struct task {
	uint32_t nodes[2];
	size_t pair; /* index of the root's pair whose children are counted; SIZE_MAX: a pair further down */
};

#define ROOT (SIZE_MAX - 1) /* used instead of the index of a pair */

struct comparer {
	struct view_diff_tree sides[2];
	struct ops_intern keys; /* keys of anchors, shared by both sides */
	uint32_t *later;   /* by position on the right: the next position with the same key */
	uint32_t *head;    /* by key: its first position that has not been passed */
	size_t later_capacity, head_capacity;
	OPS_ARRAY(struct task) tasks;
	struct view_diff *diff;
};

/* --- lists of nodes ------------------------------------------------------------------------------------------------- */

static bool view_diff_push(struct list *list, uint32_t node)
{
	return OPS_ARRAY_APPEND(list, node);
}

static bool push_children(const struct view_diff_tree *side, uint32_t node, struct list *list)
{
	for (uint32_t child = side->first[node]; child != OPS_NONE; child = side->next[child])
		if (!view_diff_push(list, child))
			return false;
	return true;
}

static int view_diff_compare_places(const void *a, const void *b, void *context)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	int64_t left_ns = view_diff_start(context, left), right_ns = view_diff_start(context, right);

	if (left_ns != right_ns)
		return left_ns < right_ns ? -1 : 1;
	return (left > right) - (left < right);
}

static bool is_mark(const struct view_diff_tree *side, uint32_t at)
{
	return at < side->views->nodes.count && side->views->nodes.items[at].part == VIEW_STEP;
}

/* Returns the node around a place that is not a mark of a step; OPS_NONE: none. Marks of other steps than the derived ones are not parts of a step. */
static uint32_t parent_without_marks(const struct view_diff_tree *side, uint32_t at)
{
	do
		at = view_diff_parent(side, at);
	while (at != OPS_NONE && is_mark(side, at));
	return at;
}

/* Adds the outermost nodes that begin in a derived step, since no event contains them. */
static bool push_derived(const struct view_diff_tree *side, uint32_t track, struct list *list)
{
	const struct ops_views *views = side->views;
	size_t places = views->nodes.count + side->backwards.items.count;

	for (uint32_t at = 0; at < places; at++) {
		int64_t start_ns = view_diff_start(side, at);
		uint32_t step = view_diff_host_step(side, start_ns), parent;

		if (step == OPS_NONE || is_mark(side, at) || !view_averages(views, start_ns) || view_diff_track(side, at) != track || (at < views->nodes.count && views->nodes.items[at].kept != at))
			continue;
		parent = parent_without_marks(side, at);
		if ((parent == OPS_NONE || view_diff_start(side, parent) < views->host_steps->list.items[step].start_ns) &&
		    !view_diff_push(list, at))
			return false;
	}
	OPS_ARRAY_SORT_BY(list, view_diff_compare_places, (void *)side);
	return true;
}

/* Collects the contents of all steps, or of the main thread without steps. A step in another one is a part of it. */
static bool root_list(const struct view_diff_tree *side, struct list *list)
{
	const struct ops_views *views = side->views;
	int64_t until_ns = INT64_MIN;
	uint32_t track;

	if (!view_main_track(views, &track))
		return false;
	if (views->host_steps->source == OPS_STEPS_NONE) {
		for (uint32_t at = side->roots; at != OPS_NONE; at = side->next[at])
			if (view_diff_track(side, at) == track && !view_diff_push(list, at))
				return false;
		return true;
	}
	if (views->host_steps->source != OPS_STEPS_MARKED)
		return push_derived(side, track, list);
	for (uint32_t i = 0; i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];

		if (node->part != VIEW_STEP || views->events->track[node->row] != track || !view_averages(views, view_start(views, node->row)) ||
		    view_end(views, node->row) <= until_ns)
			continue;
		until_ns = view_end(views, node->row);
		if (!push_children(side, i, list))
			return false;
	}
	return true;
}

static bool view_diff_add_operator(struct view_diff_rows *rows, int which, const struct ops_views *views,
                                   const struct view_node *node)
{
	return view_diff_rows_add(rows, which, view_row_name(views, node->row),
	                          (int64_t[VIEW_DIFF_TIMES]){[VIEW_DIFF_HOST] = view_duration(views, node->row),
	                                                     [VIEW_DIFF_HOST_SELF] = view_host_self_ns(views, node),
	                                                     [VIEW_DIFF_DEVICE] = node->device_total_ns,
	                                                     [VIEW_DIFF_DEVICE_SELF] = node->device_self_ns});
}

/* Counts the names of operators among the nodes and inside them, and adds them to the rows, if these are given. */
static bool count_operators(struct comparer *comparer, int which, const uint32_t *items, size_t count,
                            struct view_diff_rows *rows, size_t *ret_names)
{
	struct view_diff_tree *side = &comparer->sides[which];
	const struct ops_views *views = side->views;
	struct list todo = {0};
	bool done = true;

	side->mark++;
	*ret_names = 0;
	for (size_t i = 0; done && i < count; i++)
		done = view_diff_push(&todo, items[i]);
	while (done && todo.count) {
		uint32_t at = todo.items[--todo.count], name;
		const struct view_node *node = view_diff_node(side, at);

		done = push_children(side, at, &todo);
		if (!node || !view_is_operator(views, node))
			continue;
		name = views->events->name[node->row];
		*ret_names += side->marks[name] != side->mark;
		side->marks[name] = side->mark;
		done = done && (!rows || view_diff_add_operator(rows, which, views, node));
	}
	OPS_ARRAY_RELEASE(&todo);
	return done;
}

static bool view_diff_describe(struct comparer *comparer, int which, const uint32_t *items, size_t count,
                               struct view_diff_rows *rows, struct view_diff_side *ret_side)
{
	const struct view_diff_tree *tree = &comparer->sides[which];

	bool plugin_names = tree->views->policy->plugin_names;

	*ret_side = (struct view_diff_side){.name = ops_string_of(plugin_names ? "CompositeNodes" : "(several)")};
	if (count == 0)
		ret_side->name = ops_string_of(plugin_names ? "Blank" : "(none)");
	if (count == 1 && !rows)
		ret_side->name = view_diff_name(tree, items[0]);
	for (size_t i = 0; i < count; i++) {
		int64_t host_ns = view_diff_host_ns(tree, items[i]), device_ns = view_diff_device_ns(tree, items[i]);

		view_add(&ret_side->host_ns, host_ns);
		view_add(&ret_side->device_ns, device_ns);
		view_add(&ret_side->total_ns, device_ns ? device_ns : host_ns);
	}
	return ret_side->name.bytes && count_operators(comparer, which, items, count, rows, &ret_side->operators);
}

/* --- matching ------------------------------------------------------------------------------------------------------- */

/* Links the right side's anchors of each key in order. */
static bool chain(struct comparer *comparer, const struct list *left, const struct list *right)
{
	size_t keys = comparer->keys.count + 1;
	const uint32_t *left_key = comparer->sides[0].keys, *key = comparer->sides[1].keys;

	if (!ops_array_reserve(&comparer->later, &comparer->later_capacity, 0, right->count + 1, sizeof(*comparer->later)) ||
	    !ops_array_reserve(&comparer->head, &comparer->head_capacity, 0, keys, sizeof(*comparer->head)))
		return false;
	for (size_t i = 0; i < left->count; i++)
		if (left_key[left->items[i]] != OPS_NONE)
			comparer->head[left_key[left->items[i]]] = OPS_NONE;
	for (size_t i = 0; i < right->count; i++)
		if (key[right->items[i]] != OPS_NONE)
			comparer->head[key[right->items[i]]] = OPS_NONE;
	for (size_t i = right->count; i-- > 0;) {
		uint32_t k = key[right->items[i]];

		if (k == OPS_NONE)
			continue;
		comparer->later[i] = comparer->head[k];
		comparer->head[k] = (uint32_t)i;
	}
	return true;
}

/* Returns the first right anchor from `from` on that matches the left one; the end of the list if there is none. */
static size_t match(struct comparer *comparer, const struct list *right, uint32_t key, size_t from)
{
	uint32_t at = comparer->head[key];

	while (at != OPS_NONE && at < from)
		at = comparer->later[at];
	comparer->head[key] = at;
	return at == OPS_NONE ? right->count : at;
}

/* Returns the items from a position on. An empty list has no array to point into. */
static const uint32_t *items_from(const struct list *list, size_t from)
{
	return list->count ? list->items + from : NULL;
}

/* Adds a pair: a pair of the root's list is described, one further down is only counted. */
static bool add_pair(struct comparer *comparer, size_t parent, const struct list *left, size_t left_from, size_t left_to,
                     const struct list *right, size_t right_from, size_t right_to)
{
	struct view_diff *diff = comparer->diff;
	struct view_diff_pair *pair;

	diff->nodes++;
	if (parent != ROOT) {
		if (parent != SIZE_MAX)
			diff->pairs.items[parent].children++;
		return true;
	}
	diff->root.children++;
	pair = OPS_ARRAY_PUSH(&diff->pairs);
	if (!pair)
		return false;
	*pair = (struct view_diff_pair){0};
	return view_diff_describe(comparer, 0, items_from(left, left_from), left_to - left_from, NULL, &pair->sides[0]) &&
	       view_diff_describe(comparer, 1, items_from(right, right_from), right_to - right_from, NULL, &pair->sides[1]);
}

static bool has_anchors(const struct view_diff_tree *side, const struct list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (side->keys[list->items[i]] != OPS_NONE)
			return true;
	return false;
}

/* Compares two lists: adds a pair for each match and one for each gap between two. Adds matched nodes to the tasks.
 * Without anchors there is one gap. */
static bool compare_lists(struct comparer *comparer, const struct list *left, const struct list *right, size_t parent)
{
	const uint32_t *left_keys = comparer->sides[0].keys;
	size_t l = 0, r = 0;

	if (!has_anchors(&comparer->sides[0], left) && !has_anchors(&comparer->sides[1], right))
		return true;
	if (!chain(comparer, left, right))
		return false;
	for (size_t i = 0; i < left->count; i++) {
		uint32_t key = left_keys[left->items[i]];
		size_t at = key == OPS_NONE ? right->count : match(comparer, right, key, r);

		if (at == right->count)
			continue;
		if ((i > l || at > r) && !add_pair(comparer, parent, left, l, i, right, r, at))
			return false;
		if (!add_pair(comparer, parent, left, i, i + 1, right, at, at + 1))
			return false;
		if (!OPS_ARRAY_APPEND(&comparer->tasks, (struct task){{left->items[i], right->items[at]},
		                                                      parent == ROOT ? comparer->diff->pairs.count - 1 : SIZE_MAX}))
			return false;
		l = i + 1;
		r = at + 1;
	}
	return (l == left->count && r == right->count) ||
	       add_pair(comparer, parent, left, l, left->count, right, r, right->count);
}

static bool compare_children(struct comparer *comparer, const struct task *task)
{
	struct list left = {0}, right = {0};
	bool done = push_children(&comparer->sides[0], task->nodes[0], &left) &&
	            push_children(&comparer->sides[1], task->nodes[1], &right) &&
	            compare_lists(comparer, &left, &right, task->pair);

	OPS_ARRAY_RELEASE(&left);
	OPS_ARRAY_RELEASE(&right);
	return done;
}

static bool view_diff_compare_roots(struct comparer *comparer)
{
	struct view_diff *diff = comparer->diff;
	struct list left = {0}, right = {0};
	bool done = root_list(&comparer->sides[0], &left) && root_list(&comparer->sides[1], &right) &&
	            view_diff_describe(comparer, 0, left.items, left.count, &diff->root_operators, &diff->root.sides[0]) &&
	            view_diff_describe(comparer, 1, right.items, right.count, &diff->root_operators, &diff->root.sides[1]);

	diff->nodes = 1;
	done = done && view_diff_add_parts(diff, 0, &comparer->sides[0], left.items, left.count) &&
	       view_diff_add_parts(diff, 1, &comparer->sides[1], right.items, right.count) &&
	       compare_lists(comparer, &left, &right, ROOT);
	while (done && comparer->tasks.count) {
		struct task task = comparer->tasks.items[--comparer->tasks.count];

		done = compare_children(comparer, &task);
	}
	OPS_ARRAY_RELEASE(&left);
	OPS_ARRAY_RELEASE(&right);
	return done;
}

/* Adds the operators of every thread that begin in a step, or all operators if there are no steps. */
static bool add_all_operators(struct view_diff *diff, int which, const struct view_diff_tree *tree)
{
	const struct ops_views *views = tree->views;
	bool done = true;

	for (uint32_t i = 0; done && i < views->nodes.count; i++) {
		const struct view_node *node = &views->nodes.items[i];

		if (node->kept == i && view_is_operator(views, node) && view_averages(views, view_start(views, node->row)))
			done = view_diff_add_operator(&diff->operators, which, views, node);
	}
	return done;
}

static bool view_diff_add_kernels(struct view_diff *diff, int which, const struct view_diff_tree *tree)
{
	const struct ops_views *views = tree->views;
	bool done = true;

	for (size_t i = 0; done && i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];

		if (event->part == VIEW_KERNEL && view_averages_event(views, event))
			done = view_diff_rows_add(&diff->kernels, which, view_row_name(views, event->row),
			                          (int64_t[VIEW_DIFF_TIMES]){[VIEW_DIFF_TOTAL] = view_duration(views, event->row)});
	}
	return done;
}

/* --- steps ---------------------------------------------------------------------------------------------------------- */

/* With fewer steps, their spread is too uncertain to exclude the largest deviations. */
#define ROBUST_MIN 8
/* Ratio of the standard error of a median to that of a mean if steps are normally distributed. */
#define ERRORS 1.2533

/* A single slow step affects neither the median nor, with enough steps, its error. Returns false if out of memory. */
static bool measure_noise(const struct ops_views *views, struct view_diff_noise *ret_noise)
{
	size_t from = view_averaged_from(views);
	struct view_diff_noise noise = {.steps = views->steps.count - from, .mean_ns = view_step_shown_average_ns(views, VIEW_TIME_COUNT)};
	struct ops_step_wait *waits = ops_alloc_zeroed(views->steps.count + 1, sizeof(*waits));
	double squares = 0, *values = ops_realloc_array(NULL, noise.steps + 1, sizeof(*values)), spread;
	bool done = values && waits && view_waits_find(views, waits, &noise.waited);

	ops_free(waits);
	if (!done) {
		ops_free(values);
		return false;
	}
	for (size_t i = 0; i < noise.steps; i++) {
		values[i] = (double)view_step_shown_ns(&views->steps.items[from + i], VIEW_TIME_COUNT);
		squares += (values[i] - noise.mean_ns) * (values[i] - noise.mean_ns);
	}
	noise.median_ns = ops_median(values, noise.steps);
	if (noise.steps > 1)
		noise.deviation_ns = sqrt(squares / (double)(noise.steps - 1));
	for (size_t i = 0; i < noise.steps; i++)
		values[i] = fabs(values[i] - noise.median_ns);
	spread = noise.steps < ROBUST_MIN ? noise.deviation_ns : OPS_DEVIATION_OF_MAD * ops_median(values, noise.steps);
	noise.error_ns = noise.steps ? ERRORS * spread / sqrt((double)noise.steps) : 0;
	ops_free(values);
	*ret_noise = noise;
	return true;
}

/* Returns the name of the function of a call, without its line, which an edit above it changes. */
static struct ops_string name_of_loop_call(const struct ops_views *views, uint32_t row)
{
	struct ops_function_text function;

	return ops_event_function(views->trace, row, &function) ? function.name : view_row_name(views, row);
}

/* Returns the call of a function around a row; OPS_NONE: none. */
static uint32_t loop_call_around(const struct ops_events *events, uint32_t row)
{
	do
		row = events->parent[row];
	while (row != OPS_NONE && events->kind[row] != OPS_EVENT_PYTHON_FUNCTION);
	return row;
}

/* Returns whether the calls by which iterations are counted are of one function, and made by one. */
static bool is_one_loop(const struct view_diff *diff)
{
	uint32_t rows[2];

	for (int side = 0; side < 2; side++)
		rows[side] = diff->views[side]->host_steps->loop_row;
	for (int level = 0; level < 2 && rows[0] != OPS_NONE && rows[1] != OPS_NONE; level++) {
		struct ops_string names[2];

		for (int side = 0; side < 2; side++) {
			names[side] = name_of_loop_call(diff->views[side], rows[side]);
			rows[side] = loop_call_around(diff->views[side]->events, rows[side]);
		}
		if (!ops_string_equals(names[0], names[1]))
			return false;
	}
	return (rows[0] == OPS_NONE) == (rows[1] == OPS_NONE);
}

/* Returns why steps do not compare, or NULL. An iteration of a loop or a server is other work than a step of a training, such as a token
 * of a text that a program generates afterwards. */
static const char *view_diff_why_undecided(const struct view_diff *diff)
{
	enum ops_steps_source sources[2];
	bool iterates[2];

	for (int side = 0; side < 2; side++) {
		sources[side] = diff->views[side]->host_steps->source;
		if (diff->steps[side].steps < 2)
			return diff->views[side]->unmarked ? "recordings without steps do not show the noise from step to step" : "one step does not show the noise from step to step";
		iterates[side] = sources[side] == OPS_STEPS_LOOP || sources[side] == OPS_STEPS_ITERATIONS;
	}
	if (iterates[0] != iterates[1])
		return iterates[0] ? "before, a step is an iteration of a loop, and now it is not" : "now a step is an iteration of a loop, and before it was not";
	if (sources[0] != sources[1])
		return "the steps have different sources, which 'opstrobe info' names";
	return is_one_loop(diff) ? NULL : "the steps are iterations of different loops";
}

/* Computes the noise of a difference of medians: two standard errors, which cover about 95 % of the differences between
 * equal programs. */
static void view_diff_judge(struct view_diff *diff, const struct ops_diff_options *options)
{
	const struct view_diff_noise *base = &diff->steps[0], *now = &diff->steps[1];
	double gate = options ? options->gate_ratio : 0;
	struct ops_diff_verdict *verdict = &diff->verdict;

	verdict->undecided = view_diff_why_undecided(diff);
	if (!(base->median_ns > 0) || !now->steps)
		return;
	verdict->change_ratio = now->median_ns / base->median_ns - 1;
	if (verdict->undecided)
		return;
	verdict->noise_ratio = 2 * hypot(base->error_ns, now->error_ns) / base->median_ns;
	verdict->regression = verdict->change_ratio > gate && verdict->change_ratio > verdict->noise_ratio;
}

bool view_diff_init(struct view_diff *diff, const struct ops_trace *base, const struct ops_trace *experiment,
                    const struct ops_diff_options *options)
{
	struct comparer comparer = {.diff = diff};
	enum ops_rules rules = options ? options->rules : OPS_RULES_OPSTROBE;
	bool by_path = ops_has_module_paths(base) && ops_has_module_paths(experiment);
	bool done;

	*diff = (struct view_diff){0};
	diff->views[0] = ops_views_open(&diff->own[0], base, rules, true);
	diff->views[1] = ops_views_open(&diff->own[1], experiment, rules, true);
	done = diff->views[0] && diff->views[1] &&
	       view_diff_tree_init(&comparer.sides[0], diff->views[0], &comparer.keys, &diff->texts, by_path) &&
	       view_diff_tree_init(&comparer.sides[1], diff->views[1], &comparer.keys, &diff->texts, by_path) &&
	       view_diff_compare_roots(&comparer);
	for (int side = 0; done && side < 2; side++)
		done = add_all_operators(diff, side, &comparer.sides[side]) &&
		       view_diff_add_kernels(diff, side, &comparer.sides[side]) &&
		       view_diff_add_modules(diff, side, &comparer.sides[side]) &&
		       view_diff_add_memory(diff, side, &comparer.sides[side]);
	view_diff_finish_parts(diff);
	view_diff_rows_sort(&diff->root_operators);
	view_diff_rows_sort(&diff->operators);
	view_diff_rows_sort(&diff->kernels);
	for (int side = 0; done && side < 2; side++) {
		diff->counted[side] = ops_steps_counted(diff->views[side]->host_steps) - view_averaged_from(diff->views[side]);
		done = measure_noise(diff->views[side], &diff->steps[side]);
	}
	view_diff_judge(diff, options);
	view_diff_tree_release(&comparer.sides[0]);
	view_diff_tree_release(&comparer.sides[1]);
	ops_intern_release(&comparer.keys);
	ops_free(comparer.later);
	ops_free(comparer.head);
	OPS_ARRAY_RELEASE(&comparer.tasks);
	return done;
}

void view_diff_release(struct view_diff *diff)
{
	ops_views_release(&diff->own[0]);
	ops_views_release(&diff->own[1]);
	ops_intern_release(&diff->texts);
	OPS_ARRAY_RELEASE(&diff->pairs);
	view_diff_rows_release(&diff->parts);
	view_diff_rows_release(&diff->modules);
	OPS_ARRAY_RELEASE(&diff->memory);
	view_diff_rows_release(&diff->root_operators);
	view_diff_rows_release(&diff->operators);
	view_diff_rows_release(&diff->kernels);
}
