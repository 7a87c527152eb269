/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs that include earlier steps, because a state is not detached and retain_graph=True is set. Each backward pass
 * runs the nodes of all steps so far.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Minimum number of consecutive steps with a growing graph. */
#define STEPS_MIN 4

struct passes {
	uint32_t *nodes; /* by step: number of nodes */
	int64_t *ns;
	uint32_t *row;   /* by step: the call of the program that contains the pass */
};

static bool is_node_of_pass(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	return advice_counts(advice, row) && (advice->zone[row] & ADVICE_IN_BACKWARD) &&
	       (parent == OPS_NONE || !(advice->zone[parent] & ADVICE_IN_BACKWARD));
}

static void rule_graph_count(struct passes *passes, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t step = advice->step_of[row];

		if (!is_node_of_pass(advice, row))
			continue;
		if (!passes->nodes[step])
			passes->row[step] = row;
		passes->nodes[step]++;
		passes->ns[step] = ops_sum(passes->ns[step], advice_node_ns(advice, row));
	}
}

/* Returns the number of nodes that a step adds if the graph grows in all steady steps, else 0. */
static uint32_t growth(const struct passes *passes, const struct advice *advice)
{
	uint32_t last = 0, least = UINT32_MAX;
	size_t seen = 0;

	for (size_t i = 0; i < advice->views->steps.count; i++) {
		if (!advice->steady[i])
			continue;
		if (passes->nodes[i] <= last)
			return 0;
		if (seen++ && passes->nodes[i] - last < least)
			least = passes->nodes[i] - last;
		last = passes->nodes[i];
	}
	return seen >= STEPS_MIN && least != UINT32_MAX ? least : 0;
}

static bool rule_graph_report(const struct passes *passes, const struct advice *advice, struct advice_result *result)
{
	uint32_t added = growth(passes, advice), first = 0, last = 0;

	for (size_t i = 0; added && i < advice->views->steps.count; i++) {
		if (!advice->steady[i] || !passes->nodes[i])
			continue;
		first = first ? first : passes->nodes[i];
		last = passes->nodes[i];
		/* The nodes of the step itself are still required. */
		advice_tally_add(&result->tally, advice_calling_row(advice, passes->row[i]), (int64_t)((double)passes->ns[i] * (1 - (double)added / (double)passes->nodes[i])));
	}
	for (uint32_t row = 0; added && row < advice->events->count; row++)
		if (is_node_of_pass(advice, row))
			advice_add_cost(result, row, (int64_t)((double)advice_node_ns(advice, row) * (1 - (double)added / (double)passes->nodes[advice->step_of[row]])));
	result->always = true;
	result->severity = ADVICE_MEDIUM;
	return !added || advice_report_costs(result, "The backward pass grows from %u to %u nodes, by %u or more in each step. "
	                                             "All nodes but %u are of earlier steps, and their number grows with each "
	                                             "further step.", first, last, added, added);
}

static bool rule_graph_find(const struct advice *advice, struct advice_result *result)
{
	size_t steps = advice->views->steps.count + 1;
	struct passes passes = {ops_alloc_zeroed(steps, sizeof(*passes.nodes)), ops_alloc_zeroed(steps, sizeof(*passes.ns)),
	                        ops_alloc_zeroed(steps, sizeof(*passes.row))};
	bool done = passes.nodes && passes.ns && passes.row;

	if (done) {
		rule_graph_count(&passes, advice);
		done = rule_graph_report(&passes, advice, result);
	}
	ops_free(passes.nodes);
	ops_free(passes.ns);
	ops_free(passes.row);
	return done;
}

const struct advice_rule advice_rule_graph = {
	.id = "growing-graph",
	.title = "The graph grows from step to step",
	.condition = "The backward pass of every steady step has more nodes than the one before, in four steps or more.",
	.gain = "the time of all nodes except as many as one step adds",
	.explanation = "A tensor that one step passes to the next carries the graph that created it. The backward pass then "
		       "traverses all steps so far, and their activations are kept (retain_graph=True).",
	.advice = "Cut the graph: state = state.detach() between steps, and backward() without retain_graph=True. To check: "
		  "the same number of backward nodes in each step.",
	.code = "state = state.detach()  # between steps\n"
		"loss.backward()  # without retain_graph=True",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.detach.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_STEPS,
	.bound = ADVICE_AT_LEAST,
	.stage = ADVICE_STAGE_GRAPH,
	.confidence = ADVICE_SURE,
	.find = rule_graph_find,
};
