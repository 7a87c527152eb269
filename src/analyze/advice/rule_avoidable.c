/* SPDX-License-Identifier: Apache-2.0
 *
 * Avoidable time without a known cause: the time of operators above their lower bound (analyze/roofline), at lines that
 * no other rule explains, if something about their tensors is unusual (analyze/flow).
 *
 *     train.py:40  aten::cat   20 ms, 2 ms at the roof   reads again what it read in the step before
 */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_unusual.h"
#include "analyze/roofline/roofline.h"
#include "base/alloc.h"
#include "base/text.h"

#define SHARE_MIN 0.04       /* minimum share of the steps at a line; a smaller difference between roof and steps is
                              * noise */
#define CLAIMED_MAX 0.01     /* maximum share of a line that rules with a cause claim */
#define CHAIN_CLAIMED_MAX 0.1 /* the same for chains, whose mechanism is known */

#define CHAIN_MIN 4          /* minimum number of elementwise operators in a row */
#define CHAIN_BYTES_MIN (1 << 20) /* minimum size of their tensors; smaller ones stay in the caches of a processor */

/* What to do about it, before the advice of the rule. */
static const char *const unusual_fixes[UNUSUAL_COUNT] = {
	[NEVER_READ] = "Leave out what nothing reads.",
	[READ_IN_PART] = "Compute only the part that is read: select before the operator.",
	[MOSTLY_ZEROS] = "Leave the zeros out: select what is filled by lengths or a mask, broadcast in place of a diagonal matrix, or use a sparse tensor.",
	[MOSTLY_COPIES] = "Compute with the elements before they are copied, and broadcast, repeat or select from the result.",
	[GROWN] = "Compute with the new part alone and keep the result for the rest, such as a running sum.",
	[SCATTERED] = "Store the tensor in the order in which it is read, for example by contiguous() once after a transposition.",
	[AGAINST_EACH_OTHER] = "Convert one of the tensors once, before the steps, so that both have the same layout.",
	[IN_CHAIN] = "Replace the operators in a row by one (nn.functional.layer_norm, torch.addcmul, torch.compile).",
};

/* Sums of a line. */
struct avoidable_line {
	int64_t ns, left_ns;   /* time of all calls with a bound, and the part that other rules leave */
	int64_t avoidable_ns;  /* avoidable time of unusual calls */
	int64_t longest_ns;
	uint32_t longest;      /* row of an unusual call */
	bool is_reported;
	struct unusual_call unusual; /* what is unusual about that call */
};

/* An unusual call, and its avoidable time. */
struct avoidable_call {
	int64_t ns;
	uint32_t row;
	uint32_t line; /* index of its line */
};

struct avoidable {
	struct roofline roofline;
	OPS_ARRAY(struct avoidable_call) calls;
	bool failed;            /* out of memory */
	uint8_t *grown;         /* by value: it was copied to extend it */
	struct avoidable_line *lines; /* by place; the last entry is for calls without one */
	uint8_t *elementwise;   /* by string: elementwise or a reduction */
	uint32_t *chain_site;   /* by node in a chain: the line in the function in which the chain begins */
	float *fused;           /* by node: part of its time that is saved if one operator does the work of a chain; 0: it is
	                         * in none */
};

/* Elementwise operators in a row that process equally many elements and use each other's results, also in functions that the function
 * of the first one calls. Reductions belong to chains, since their results are small. */
struct avoidable_chain {
	uint32_t first, last, length; /* nodes */
	uint32_t function; /* name of the function of the program */
	int64_t elements;
	int64_t ns, longest_ns;
};

static struct avoidable_line *avoidable_line_of(const struct avoidable *all, const struct advice *advice, uint32_t row)
{
	return &all->lines[advice->site[row] == OPS_NONE ? advice->sites.count : advice->site[row]];
}

static struct unusual_call unusual_of(const struct avoidable *all, const struct advice *advice, const struct roofline_call *call, uint32_t node)
{
	struct unusual_call found = advice_unusual_of(advice, all->grown, node);

	if (!found.kind && call->row == node)
		found.kind = advice_unusual_layout(advice, node, call->is_compute_bound);
	if (!found.kind && all->fused[node] > 0)
		found.kind = IN_CHAIN;
	return found;
}

/* --- chains ----------------------------------------------------------------------------------------------------------- */

static uint32_t avoidable_function(const struct advice *advice, uint32_t node)
{
	uint32_t site = advice->site[node];

	return site == OPS_NONE ? OPS_NONE : advice->events->name[advice->sites.items[site].frame];
}

static bool is_elementwise(const struct avoidable *all, const struct advice *advice, uint32_t node)
{
	return advice->flow->memory.rows.node[node] == node && all->elementwise[advice->events->name[node]] &&
	       !(advice->zone[node] & (ADVICE_IN_OPTIMIZER | ADVICE_IN_BACKWARD)) && advice_counts(advice, node);
}

/* Returns the index of the line of a row in a function, or of the call in it that leads to the row; OPS_NONE if nothing does. The index after
 * the last is for rows without a line. */
static uint32_t line_in_function(const struct advice *advice, uint32_t row, uint32_t function)
{
	while (row != OPS_NONE && avoidable_function(advice, row) != function)
		row = advice->caller[row];
	return row == OPS_NONE ? OPS_NONE : advice->site[row] == OPS_NONE ? (uint32_t)advice->sites.count : advice->site[row];
}

static void end_chain_of(struct avoidable *all, const struct advice *advice, struct avoidable_chain *chain)
{
	for (uint32_t row = chain->first; chain->length >= CHAIN_MIN && row <= chain->last; row++) {
		if (!is_elementwise(all, advice, row))
			continue;
		all->chain_site[row] = line_in_function(advice, row, chain->function);
		if (all->chain_site[row] != OPS_NONE)
			all->fused[row] = (float)(1 - (double)chain->longest_ns / (double)chain->ns);
	}
	*chain = (struct avoidable_chain){.function = OPS_NONE};
}

/* Returns the number of elements of the largest tensor that a node reads or makes; -1 if it is small. */
static int64_t chain_elements(const struct avoidable *all, const struct advice *advice, uint32_t node)
{
	struct ops_input input;
	int64_t most = -1;

	for (size_t i = 0; advice_input(advice, node, i, &input); i++) {
		int64_t elements = advice_input_elements(&input);

		if (elements > most && ops_product(elements, (int64_t)advice_dtype_bytes(input.dtype)) >= CHAIN_BYTES_MIN)
			most = elements;
		if (!i && data_flow_made_bytes(advice->flow, node) >= CHAIN_BYTES_MIN && all->elementwise[advice->events->name[node]]) {
			elements = data_flow_made_bytes(advice->flow, node) / (int64_t)advice_dtype_bytes(input.dtype);
			most = elements > most ? elements : most;
		}
	}
	return most;
}

static bool uses_result_of(const struct advice *advice, uint32_t node, const struct avoidable_chain *chain)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		uint32_t maker = flow->values[flow->uses.items[flow->nodes[node].first + i].value].node;

		if (maker != OPS_NONE && maker >= chain->first && maker <= chain->last)
			return true;
	}
	return false;
}

/* Scratch memory of an operator may count as part of its result. */
static bool are_equally_many(int64_t elements, int64_t others)
{
	return elements >= 0 && llabs(elements - others) <= others / 64;
}

/* Views and operators on small tensors do not end a chain. */
static void add_to_chain(struct avoidable *all, const struct advice *advice, uint32_t node, struct avoidable_chain *chain)
{
	int64_t elements = chain_elements(all, advice, node), ns = advice_ns(advice, node);
	uint32_t function = avoidable_function(advice, node);
	bool continues = chain->length && line_in_function(advice, node, chain->function) != OPS_NONE;

	if (continues && (elements < 0 || !advice->flow->nodes[node].made_count))
		return;
	if (!continues || !is_elementwise(all, advice, node) || !are_equally_many(elements, chain->elements) || !uses_result_of(advice, node, chain))
		end_chain_of(all, advice, chain);
	if (elements < 0 || !is_elementwise(all, advice, node))
		return;
	if (!chain->length)
		*chain = (struct avoidable_chain){.first = node, .function = function, .elements = elements};
	chain->last = node;
	chain->length++;
	chain->ns = ops_sum(chain->ns, ns);
	chain->longest_ns = ns > chain->longest_ns ? ns : chain->longest_ns;
}

/* --- lines ------------------------------------------------------------------------------------------------------------ */

static double left_part(int64_t left_ns, int64_t ns)
{
	return ns > 0 ? (double)left_ns / (double)ns : 1;
}

/* Returns the time of a call that other rules leave. They claim outermost operators, and the backward pass with its
 * forward operator. */
static int64_t avoidable_left(const struct advice *advice, uint32_t row, uint32_t forward)
{
	uint32_t node = advice->flow->memory.rows.node[row];
	double part = left_part(advice_left_ns(advice, row), advice_ns(advice, row)), of_node;

	if (advice->claimed[row])
		return 0;
	of_node = node == OPS_NONE ? 1 : left_part(advice_left_ns(advice, node), advice_ns(advice, node));
	part = of_node < part ? of_node : part;
	if (forward != OPS_NONE)
		part *= left_part(advice_backward_left_ns(advice, forward), advice->backward_ns[forward]);
	return (int64_t)(part * (double)advice_ns(advice, row));
}

static double avoidable_part(const struct advice *advice, const struct roofline_call *call, int64_t left_ns)
{
	double ns = (double)advice_ns(advice, call->row);
	double bound = ns > 0 ? call->bound_ns / ns : 1;

	return bound < 1 ? (double)left_ns * (1 - bound) : 0;
}

static void sum_call(struct avoidable *all, const struct advice *advice, const struct roofline_call *call)
{
	uint32_t forward = advice_forward_of(advice, call->row), place = forward == OPS_NONE ? call->row : forward;
	uint32_t node = advice->flow->memory.rows.node[place];
	struct avoidable_line *line = avoidable_line_of(all, advice, place);
	int64_t left_ns, avoidable_ns;
	struct unusual_call unusual;

	if (!call->roof || call->roof->source == ROOF_UNKNOWN || call->bound_ns < call->roof->call_ns || !advice_counts(advice, call->row) ||
	    (advice->zone[call->row] & (ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)) || node == OPS_NONE)
		return;
	left_ns = avoidable_left(advice, call->row, forward);
	line->ns = ops_sum(line->ns, advice_ns(advice, call->row));
	line->left_ns = ops_sum(line->left_ns, left_ns);
	unusual = unusual_of(all, advice, call, node);
	avoidable_ns = (int64_t)(unusual.kind == IN_CHAIN ? all->fused[node] * (double)left_ns : avoidable_part(advice, call, left_ns));
	if (!unusual.kind || !avoidable_ns)
		return;
	if (unusual.kind == IN_CHAIN)
		line = &all->lines[all->chain_site[node]];
	line->avoidable_ns = ops_sum(line->avoidable_ns, avoidable_ns);
	all->failed |= !OPS_ARRAY_APPEND(&all->calls, ((struct avoidable_call){avoidable_ns, call->row, (uint32_t)(line - all->lines)}));
	if (avoidable_ns > line->longest_ns) {
		line->longest_ns = avoidable_ns;
		line->longest = place;
		line->unusual = unusual;
	}
}

static bool report_lines(struct avoidable *all, struct advice_result *result)
{
	const struct advice *advice = result->advice;
	const struct avoidable_line *most = NULL;
	struct ops_input tensor;
	char text[640];

	for (uint32_t site = 0; site <= advice->sites.count; site++) {
		struct avoidable_line *line = &all->lines[site];
		double claimed_max = line->unusual.kind == IN_CHAIN ? CHAIN_CLAIMED_MAX : CLAIMED_MAX;

		if ((double)line->avoidable_ns < SHARE_MIN * (double)advice->steps_ns ||
		    (double)(line->ns - line->left_ns) > claimed_max * (double)line->ns)
			continue;
		line->is_reported = true;
		advice_tally_add_at(&result->tally, site < advice->sites.count ? site : OPS_NONE, line->longest, line->avoidable_ns);
		most = !most || line->avoidable_ns > most->avoidable_ns ? line : most;
	}
	if (!most)
		return true;
	for (size_t i = 0; i < all->calls.count; i++)
		if (all->lines[all->calls.items[i].line].is_reported)
			advice_add_cost(result, all->calls.items[i].row, all->calls.items[i].ns);
	tensor = advice_largest_input(advice, most->longest);
	advice_describe_unusual(advice, &most->unusual, most->longest, text, sizeof(text));
	result->detail = unusual_fixes[most->unusual.kind];
	return advice_report_costs(result, "Each step takes %s above the lower bound of the FLOPs and bytes of operators at these lines. Most of it takes %s%s%s. %s",
	                           advice_cost(result).text,
	                           advice_name(advice, most->longest).bytes, tensor.tag ? " of " : "",
	                           tensor.tag ? advice_describe_tensor(&tensor).text : "", text);
}

/* Operators that only select have no demand by their arguments, because indices are not recorded. They read and write
 * what they return. */
static void sum_selections(struct avoidable *all, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		struct roofline_call call = {.row = row, .roof = &all->roofline.cpu};
		double bytes = 2 * (double)data_flow_made_bytes(advice->flow, row);

		if (!advice->flow->nodes[row].count || bytes < UNUSUAL_BYTES_MIN || !advice_only_selects(advice, row) ||
		    ops_string_is(advice_name(advice, row), "aten::embedding"))
			continue;
		call.bound_ns = roof_memory_ns(call.roof, bytes, (double)advice_ns(advice, row));
		if (!advice->views->device_events.count)
			sum_call(all, advice, &call);
	}
}

static void avoidable_sum_calls(struct avoidable *all, const struct advice *advice)
{
	struct avoidable_chain chain = {.function = OPS_NONE};

	for (uint32_t row = 0; row < advice->events->count; row++)
		if (advice->flow->memory.rows.node[row] == row && advice_is_operator(advice, row))
			add_to_chain(all, advice, row, &chain);
	end_chain_of(all, advice, &chain);
	for (size_t i = 0; i < all->roofline.calls.count; i++)
		sum_call(all, advice, &all->roofline.calls.items[i]);
	sum_selections(all, advice);
}

static bool rule_avoidable_find(const struct advice *advice, struct advice_result *result)
{
	static const char *const reductions[] = {"aten::mean", "aten::sum", "aten::var", "aten::amax", NULL};
	struct avoidable all = {.lines = NULL};
	bool done;

	all.lines = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*all.lines));
	all.grown = advice_unusual_grown(advice);
	all.elementwise = advice_elementwise_names(advice, reductions);
	all.chain_site = ops_alloc_none(advice->events->count + 1);
	all.fused = ops_alloc_zeroed(advice->events->count + 1, sizeof(*all.fused));
	done = all.lines && all.grown && all.elementwise && all.fused && all.chain_site &&
	       roofline_init(&all.roofline, advice->trace, OPS_ROOFLINE_OPERATOR, NULL, NULL) == OPS_OK;
	if (done)
		avoidable_sum_calls(&all, advice);
	done = done && !all.failed && report_lines(&all, result);
	roofline_release(&all.roofline);
	OPS_ARRAY_RELEASE(&all.calls);
	ops_free(all.lines);
	ops_free(all.grown);
	ops_free(all.elementwise);
	ops_free(all.chain_site);
	ops_free(all.fused);
	return done;
}

const struct advice_rule advice_rule_avoidable = {
	.id = "avoidable-time",
	.title = "Operators take much longer than their work requires",
	.condition = "Operators at a line take at least 4 % of a step above the lower bound that the roofline "
		     "gives them, no other rule explains more than 1 % of the line, and their tensors are unusual: results are never read or at most half, "
		     "inputs are zeros or copies by construction, copied again to grow, scattered in memory, or laid out in different orders while one of them lasts. Or four or "
		     "more elementwise operators and reductions of a function, and of those that it calls, pass one after another over tensors of 1 MiB or more.",
	.gain = "the time above the lower bound of the unusual operators; all but the longest of elementwise operators in a row",
	.explanation = "The lower bound is the time for the FLOPs and for the bytes of the tensors at the measured speed of the machine.",
	.advice = "At the other lines, also compare what operators read and make with what is needed. `opstrobe roofline --by line` lists the lower bounds "
		  "of all lines, `opstrobe analyze data_flow` what becomes of results. To check: less avoidable time at the line.",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES | ADVICE_NEEDS_ROOF,
	.stage = ADVICE_STAGE_REST,
	.severity_max = ADVICE_MEDIUM, /* it shows where time goes, but not why */
	.confidence = ADVICE_UNSURE,
	.bound = ADVICE_AT_MOST,
	.general = true,
	.find = rule_avoidable_find,
};
