/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward passes with create_graph=True whose own graph is never used. Their operators record the counter of autograd nodes,
 * which those of other backward passes do not.
 */
#include "analyze/advice/advice.h"
#include "analyze/format.h"
#include "base/alloc.h"
#include "base/text.h"

#define NODES_MIN 4 /* minimum number of nodes that a backward pass creates */

/* A backward pass, by the row that calls it. */
struct graph_pass {
	uint32_t call;
	int64_t first, end; /* range of numbers of the nodes that it creates */
	int64_t end_ns;
	bool used;
};

struct graph_passes {
	OPS_ARRAY(struct graph_pass) items;
	struct ops_map by_call;
	OPS_ARRAY(int64_t) view_ns; /* times of views */
	uint64_t nodes, formulas;
	double node_ns;
};

/* Returns true for an operator of a backward pass that is not below another operator. */
static bool is_of_pass(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	return advice_is_operator(advice, row) && (advice->zone[row] & ADVICE_IN_BACKWARD) && advice->events->sequence_nr[row] >= 0 &&
	       advice_counts(advice, row) && parent != OPS_NONE && ops_string_starts(advice_name(advice, row), "aten::") &&
	       !ops_string_starts(advice_name(advice, parent), "aten::");
}

static bool rule_create_graph_gather(struct graph_passes *passes, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t number = advice->events->sequence_nr[row];
		struct graph_pass *pass;
		uint32_t call;

		if (!is_of_pass(advice, row))
			continue;
		call = advice_calling_row(advice, row);
		pass = call == OPS_NONE ? NULL : OPS_ARRAY_AT(&passes->items, ops_map_number(&passes->by_call, call));
		if (call == OPS_NONE)
			continue;
		if (!pass)
			return false;
		if (!pass->end_ns)
			*pass = (struct graph_pass){.call = call, .first = number, .end = number, .end_ns = advice->events->end_ns[call]};
		pass->first = number < pass->first ? number : pass->first;
		pass->end = number > pass->end ? number : pass->end;
		if (advice_kind(advice, row) == OPERATOR_VIEWS && !OPS_ARRAY_APPEND(&passes->view_ns, advice_ns(advice, row)))
			return false;
	}
	return true;
}

/* Marks the passes of which a later one runs nodes. Numbers increase, so passes are in order of both number and time. */
static void mark_used(struct graph_passes *passes, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t number = advice->events->sequence_nr[row];
		size_t low = 0, high = passes->items.count;

		if (number < 0 || !advice_is_node(advice, row))
			continue;
		while (low < high) {
			size_t middle = (low + high) / 2;

			if (passes->items.items[middle].end <= number)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < passes->items.count && passes->items.items[low].first <= number && advice->events->start_ns[row] >= passes->items.items[low].end_ns)
			passes->items.items[low].used = true;
	}
}

#define FORMULA_OPERATORS 4 /* minimum number of operators that replace a fused one */

/* With a graph, nodes of activations and normalizations compute by a formula of single operators, in place of one operator. Claims
 * all of them but the longest. */
static int64_t claim_formula(struct advice_result *result, uint32_t node)
{
	const struct advice *advice = result->advice;
	uint32_t longest = OPS_NONE, count = 0;
	int64_t ns = 0;

	for (uint32_t row = node + 1; row < advice->events->count && advice->events->start_ns[row] < advice->events->end_ns[node]; row++) {
		if (advice->events->parent[row] != node)
			continue;
		count += ops_string_starts(advice_name(advice, row), "aten::");
		longest = longest == OPS_NONE || advice_ns(advice, row) > advice_ns(advice, longest) ? row : longest;
	}
	for (uint32_t row = node + 1; count >= FORMULA_OPERATORS && row < advice->events->count && advice->events->start_ns[row] < advice->events->end_ns[node]; row++)
		if (advice->events->parent[row] == node && row != longest && !advice_is_claimed(result, row))
			ns = ops_sum(ns, advice_claim(result, row));
	return ns;
}

/* Returns true for a node that computes by a formula if gradients are enabled (derivatives.yaml of PyTorch). */
static bool has_formula(const struct advice *advice, uint32_t row)
{
	static const char *const nodes[] = {"SiluBackward*", "GeluBackward*", "NativeGroupNormBackward*", "NativeLayerNormBackward*", "MishBackward*", NULL};

	return (advice->zone[row] & ADVICE_IN_BACKWARD) && advice_text_like(advice_name(advice, row), nodes);
}

static void add_unused(struct graph_passes *passes, struct advice_result *result)
{
	const struct advice *advice = result->advice;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t call = is_of_pass(advice, row) ? advice_calling_row(advice, row) : OPS_NONE, index, node;
		int64_t ns = 0;

		index = call == OPS_NONE ? OPS_NONE : ops_map_find(&passes->by_call, call);
		if (index == OPS_NONE || passes->items.items[index].used || passes->items.items[index].end - passes->items.items[index].first < NODES_MIN)
			continue;
		node = advice->events->parent[row];
		if (has_formula(advice, node) && !result->claimed[node]) {
			ns = claim_formula(result, node);
			result->claimed[node] = 1; /* once */
			passes->formulas += ns > 0;
		}
		passes->nodes++;
		advice_add_at(result, advice->site[call], call, ops_sum(ns, (int64_t)passes->node_ns));
	}
}

static bool rule_create_graph_find(const struct advice *advice, struct advice_result *result)
{
	struct graph_passes passes = {0};
	bool done = rule_create_graph_gather(&passes, advice);

	if (done && passes.items.count) {
		passes.node_ns = advice_creation_ns(passes.view_ns.items, passes.view_ns.count);
		mark_used(&passes, advice);
		add_unused(&passes, result);
	}
	if (done && passes.nodes)
		done = advice_report_costs(result, "Backward passes create %s of a graph in each step that no other backward pass runs, each in %s"
		                           ", and compute %s by formulas of several operators in place of one. That takes %s.",
		                           advice_counted(advice, passes.nodes, "node", "nodes").text,
		                           advice_time(passes.node_ns / 1e6).text,
		                           advice_counted(advice, passes.formulas, "gradient", "gradients").text,
		                           advice_cost(result).text);
	OPS_ARRAY_RELEASE(&passes.items);
	OPS_ARRAY_RELEASE(&passes.view_ns);
	ops_map_release(&passes.by_call);
	return done;
}

const struct advice_rule advice_rule_create_graph = {
	.id = "unused-second-order-graph",
	.title = "A backward pass creates a graph that is not used",
	.condition = "A backward pass with create_graph=True creates four or more nodes, and no later backward pass runs any of them.",
	.gain = "the time of the nodes, seven tenths of a view each, and of the operators but the longest where an activation or a normalization computes its gradient by "
		"a formula",
	.explanation = "With create_graph=True, the backward pass records a graph of itself and keeps its inputs, which only second derivatives require. Fused "
		       "operators for gradients of activations and normalizations are then not used.",
	.advice = "Pass create_graph=False unless a loss contains the gradient, such as create_graph=self.training for forces. To check: a lower peak of memory, and "
		  "fewer operators in the backward pass.",
	.code = "forces = -torch.autograd.grad(energy, positions, create_graph=self.training)[0]",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.autograd.grad.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_MODE,
	.confidence = ADVICE_LIKELY,
	.bound = ADVICE_AT_LEAST,
	.find = rule_create_graph_find,
};
