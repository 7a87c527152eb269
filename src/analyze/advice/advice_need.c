/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of each result that anything needs, with all operators between: a selection needs few elements, and so do the elementwise
 * operators, convolutions and layers before it.
 *
 *     aten::lerp ──▶ aten::clamp ──▶ aten::conv2d ──▶ aten::slice     10 % of each is needed
 *
 * Readers come after what they read, so one pass over the operators from the last to the first finds all parts.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

/* Which elements of its inputs an operator requires for an element of its result. */
enum reach {
	REACH_ALL,      /* any */
	REACH_ELEMENT,  /* those at the same position, or close to it */
	REACH_ROW,      /* those with the same position in all dimensions but the last one */
	REACH_CHANNELS, /* those close to it in all channels: a convolution */
	REACH_REDUCED,  /* all along the dimensions in its arguments */
};

struct needs {
	const struct advice *advice;
	struct advice_part_needed *nodes; /* by row */
	uint8_t *reach;            /* by string: enum reach */
	uint8_t *residual;         /* by row of a selection: what it selects is the sum of a layer and of the input of this layer, whose
	                            * other layers need all elements */
};

static const struct advice_part_needed all_of_it = {.share = 1, .selection = OPS_NONE};

static uint8_t *reach_of_names(const struct advice *advice)
{
	static const char *const element[] = {"aten::dropout", "aten::dropout_", "aten::to", "aten::_to_copy", "aten::clone", "aten::contiguous",
	                                      "aten::float", "aten::max_pool2d", "aten::avg_pool2d", "aten::upsample*", NULL};
	static const char *const row[] = {"aten::linear", "aten::layer_norm", "aten::rms_norm", "aten::softmax", "aten::log_softmax", NULL};
	static const char *const channels[] = {"aten::conv1d", "aten::conv2d", "aten::conv3d", NULL};
	static const char *const reduced[] = {"aten::mean", "aten::sum", "aten::amax", "aten::amin", NULL};
	const char *const *const lists[] = {element, row, channels, reduced};
	size_t strings = ops_trace_string_count(advice->trace);
	uint8_t *reach = ops_alloc_zeroed(strings + 1, 1);

	for (size_t i = 0; reach && i < sizeof(lists) / sizeof(*lists); i++) {
		uint8_t *which = i ? advice_names(advice, lists[i]) : advice_elementwise_names(advice, element);

		if (!which) {
			ops_free(reach);
			return NULL;
		}
		for (size_t id = 0; id < strings; id++)
			reach[id] = which[id] ? (uint8_t)(REACH_ELEMENT + i) : reach[id];
		ops_free(which);
	}
	return reach;
}

/* --- selections ------------------------------------------------------------------------------------------------------ */

/* Returns true if the dimensions of a tensor are in the order in which its elements are in memory. */
static bool is_in_memory_order(const struct ops_input *tensor)
{
	for (size_t i = 1; tensor->tag == OPS_INPUT_TENSOR && i < tensor->n; i++)
		if (ops_input_int(tensor, tensor->n + i) > ops_input_int(tensor, tensor->n + i - 1))
			return false;
	return tensor->tag == OPS_INPUT_TENSOR;
}

/* Adds the dimension in which a node selects, counted from the last one. */
static void add_selection(const struct advice *advice, uint32_t node, struct advice_part_needed *need)
{
	struct ops_input tensor, dimension;
	int64_t at;

	need->selection = node;
	if (data_flow_kind(advice->flow, node) != OPERATOR_NARROWS || !advice_input(advice, node, 0, &tensor) || !is_in_memory_order(&tensor) ||
	    !advice_input(advice, node, 1, &dimension) || dimension.tag != OPS_INPUT_INT || !tensor.n || tensor.n > 8) {
		need->is_unknown = true;
		return;
	}
	at = ops_input_int(&dimension, 0);
	at = at < 0 ? -1 - at : (int64_t)tensor.n - 1 - at;
	/* A dimension that an earlier selection removed leaves the others where they are only if it is before them. */
	if (at < 0 || at >= (int64_t)tensor.n || (need->dimensions && need->dimensions != tensor.n)) {
		need->is_unknown = true;
		return;
	}
	need->selected |= (uint8_t)(1u << at);
	need->dimensions = (uint8_t)tensor.n;
	need->first = need->first ? need->first : ops_input_int(&tensor, 0);
}

/* --- operators ------------------------------------------------------------------------------------------------------- */

/* Returns a mask of the dimensions that a reduction sums over, counted from the last one; all of them if unknown. */
static uint8_t reduced_dimensions(const struct advice *advice, uint32_t node, uint8_t dimensions)
{
	struct ops_input list;
	uint8_t mask = 0;

	if (!advice_input(advice, node, 1, &list) || (list.tag != OPS_INPUT_INT && list.tag != OPS_INPUT_INT_LIST) || !list.n)
		return 0xff;
	for (size_t i = 0; i < list.n; i++) {
		int64_t at = ops_input_int(&list, i);

		at = at < 0 ? -1 - at : dimensions - 1 - at;
		if (at < 0 || at > 7)
			return 0xff;
		mask |= (uint8_t)(1u << at);
	}
	return mask;
}

/* Returns what an operator requires of its inputs if `of` is needed of its results. */
static struct advice_part_needed through(const struct needs *needs, uint32_t node, const struct advice_part_needed *of)
{
	const struct advice *advice = needs->advice;
	uint8_t reach = needs->reach[advice->events->name[node]], mask;
	struct advice_part_needed passed;
	struct ops_input input;

	if (of->share >= 1 || reach == REACH_ALL)
		return of->share > 0 ? all_of_it : *of;
	if (reach == REACH_ELEMENT || of->share <= 0)
		return *of;
	if (of->is_unknown || !advice_input(advice, node, 0, &input) || !ops_input_is_tensor(input.tag) || !input.n || input.n > 8 ||
	    ops_input_int(&input, 0) != of->first)
		return all_of_it;
	if (reach == REACH_REDUCED) {
		mask = reduced_dimensions(advice, node, (uint8_t)input.n);
		/* The reduced dimensions have to be before the selected ones, which then have the same position from the end. */
		return mask && mask != 0xff && (mask & ~(mask - 1)) > of->selected ? *of : all_of_it;
	}
	mask = reach == REACH_ROW ? 1 : (uint8_t)(1u << (input.n - 2));
	if (input.n != of->dimensions || input.n < 2 || (of->selected & mask))
		return all_of_it;
	passed = *of;
	passed.is_layer |= reach == REACH_ROW;
	return passed;
}

/* Returns true if an operator takes time in proportion to the part of its results that is needed. */
static bool is_proportional(const struct needs *needs, uint32_t node, const struct advice_part_needed *of)
{
	enum operator_kind kind = data_flow_kind(needs->advice->flow, node);
	uint8_t reach = needs->reach[needs->advice->events->name[node]];

	if (kind == OPERATOR_PRODUCT || kind == OPERATOR_ATTENTION || ops_string_is(advice_name(needs->advice, node), "aten::linear"))
		return true;
	return reach == REACH_ROW ? through(needs, node, of).share < 1 : reach != REACH_ALL;
}

/* Gradients are zero where nothing needs the result. So the backward pass of an operator requires the same part of what the operator has
 * read, which counts with the operator, and of its result only what others need. */
static struct advice_part_needed need_of_reader(const struct needs *needs, uint32_t reader, uint32_t maker)
{
	const struct advice *advice = needs->advice;
	uint32_t forward;

	if (!(advice->flow->memory.rows.context[reader] & MEMORY_IN_BACKWARD))
		return needs->nodes[reader].is_set ? through(needs, reader, &needs->nodes[reader]) : all_of_it;
	forward = advice_forward_of(advice, reader);
	return forward != OPS_NONE && advice->flow->memory.rows.node[forward] >= maker
	       ? (struct advice_part_needed){.share = 0, .selection = OPS_NONE}
	       : all_of_it;
}

static void merge_needs(struct advice_part_needed *need, const struct advice_part_needed *other)
{
	if (other->share <= 0)
		return;
	if (need->dimensions && other->dimensions && (need->dimensions != other->dimensions || need->first != other->first))
		need->is_unknown = true;
	need->is_unknown |= other->is_unknown;
	need->is_layer |= other->is_layer;
	need->selected |= other->selected;
	need->dimensions = need->dimensions ? need->dimensions : other->dimensions;
	need->first = need->first ? need->first : other->first;
	need->selection = need->selection == OPS_NONE ? other->selection : need->selection;
}

/* Returns the part of a value that its readers need. */
static struct advice_part_needed need_of_value(const struct needs *needs, uint32_t value)
{
	const struct data_flow *flow = needs->advice->flow;
	const struct data_value *of = &flow->values[value];
	const struct ops_memory_block *block = &flow->memory.blocks.items[flow->memory.values.items[value].block];
	struct advice_part_needed need = {.selection = OPS_NONE};
	bool is_selected_from = data_flow_is_selected_from(flow, value);
	bool is_read = false;
	unsigned readers = 0;

	if (!of->complete || of->bytes <= 0 || advice_may_read_block(needs->advice, block))
		return all_of_it;
	for (uint32_t i = of->first; need.share < 1 && i != OPS_NONE; i = flow->uses.items[i].next) {
		const struct data_use *use = &flow->uses.items[i];
		struct advice_part_needed other;
		double part = (double)use->bytes / (double)of->bytes;

		if (use->kind == DATA_NARROWS || use->kind == DATA_SELECTS)
			add_selection(needs->advice, use->node, &need);
		if (use->kind < DATA_SELECTS)
			continue;
		is_read = true;
		other = need_of_reader(needs, use->node, of->node);
		need.share += (use->kind == DATA_UPDATES || (part < 1 && !is_selected_from) ? 1 : part) * other.share;
		merge_needs(&need, &other);
		readers += other.share > 0;
	}
	if (need.is_layer && readers > 1 && need.selection != OPS_NONE)
		needs->residual[need.selection] = 1;
	/* What nothing reads may be read in another way; there are rules on results in vain. */
	return is_read && need.share < 1 && !(need.is_layer && readers > 1) ? need : all_of_it;
}

/* Returns the part of the results of a node that is needed: that of the result of which most is. */
static struct advice_part_needed need_of_results(const struct needs *needs, uint32_t node)
{
	const struct data_flow *flow = needs->advice->flow;
	struct advice_part_needed most = {.share = -1};

	for (uint32_t i = 0; most.share < 1 && i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];
		struct advice_part_needed need;

		if (data_flow_is_scratch(flow, node, value))
			continue;
		need = need_of_value(needs, value);
		if (need.share > most.share)
			most = need;
	}
	most = most.share < 0 ? all_of_it : most;
	most.is_set = true;
	most.is_proportional = most.share < 1 && is_proportional(needs, node, &most);
	return most;
}

struct advice_part_needed *advice_needs_of(const struct advice *advice)
{
	size_t rows = advice->events->count;
	struct needs needs = {.advice = advice, .reach = reach_of_names(advice), .residual = ops_alloc_zeroed(rows + 1, 1),
	                      .nodes = ops_alloc_zeroed(rows + 1, sizeof(*needs.nodes))};
	bool done = needs.reach && needs.residual && needs.nodes;

	for (uint32_t node = (uint32_t)rows; done && node-- > 0;)
		if (advice->flow->nodes[node].made_count && !(advice->flow->memory.rows.context[node] & MEMORY_IN_BACKWARD))
			needs.nodes[node] = need_of_results(&needs, node);
	for (uint32_t node = 0; done && node < rows; node++)
		if (needs.nodes[node].is_set && needs.nodes[node].selection != OPS_NONE && needs.residual[needs.nodes[node].selection])
			needs.nodes[node] = (struct advice_part_needed){.share = 1, .selection = OPS_NONE, .is_set = true};
	if (!done) {
		ops_free(needs.nodes);
		needs.nodes = NULL;
	}
	ops_free(needs.reach);
	ops_free(needs.residual);
	return needs.nodes;
}
