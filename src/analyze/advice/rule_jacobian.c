/* SPDX-License-Identifier: Apache-2.0
 *
 * Jacobians and Hessians that are computed row by row: one backward pass through the same graph for each element of a result.
 *
 *     hessian(energy, x) of 300 unknowns @ v:  300 backward passes of a backward pass     a product of both takes two
 *     for i in range(n): grad(y[i], x, retain_graph=True)                                 is_grads_batched=True takes one
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

#define PASSES_MIN 12 /* minimum number of passes through the same operators; losses of several tasks have fewer */
#define PASSES_LEFT 2.0

/* A node of the graph. Its sequence number is its own. */
struct jacobian_node {
	uint32_t function, step; /* that visited it last */
	uint32_t visits, most;   /* in that call, and in any call */
};

/* How often the backward pass of an operator runs within a call of a function of the program. */
struct jacobian_visits {
	struct ops_map nodes_of;                  /* by sequence number */
	OPS_ARRAY(struct jacobian_node) of_nodes;
	uint32_t most;
	uint64_t nodes;
};

/* Returns the call of a function of the program, or of a loop in a library, that runs a node of the engine; OPS_NONE: it is not a node. */
static uint32_t function_of_node(const struct advice *advice, uint32_t row)
{
	uint32_t call;

	if (advice->events->sequence_nr[row] < 0 || !advice_counts(advice, row) || !advice_is_node(advice, row))
		return OPS_NONE;
	call = advice_calling_row(advice, row);
	return call == OPS_NONE || advice->events->parent[call] == OPS_NONE ? call : advice->events->parent[call];
}

static bool count_visits(struct jacobian_visits *all, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t function = function_of_node(advice, row);
		struct jacobian_node *node;

		if (function == OPS_NONE)
			continue;
		node = OPS_ARRAY_AT(&all->of_nodes, ops_map_number(&all->nodes_of, (uint64_t)advice->events->sequence_nr[row]));
		if (!node)
			return false;
		if (node->function != function || node->step != advice->step_of[row])
			node->visits = 0;
		node->function = function;
		node->step = advice->step_of[row];
		node->visits++;
		node->most = node->visits > node->most ? node->visits : node->most;
	}
	return true;
}

static void add_visits(struct jacobian_visits *all, struct advice_result *result)
{
	const struct advice *advice = result->advice;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t function = function_of_node(advice, row), visits, call;

		if (function == OPS_NONE || advice_is_claimed(result, row))
			continue;
		visits = all->of_nodes.items[ops_map_number(&all->nodes_of, (uint64_t)advice->events->sequence_nr[row])].most;
		if (visits < PASSES_MIN)
			continue;
		call = advice_calling_row(advice, row);
		all->nodes++;
		all->most = visits > all->most ? visits : all->most;
		result->claimed[row] = 1;
		advice_add_at(result, advice->site[call], call, advice_claim_share(result, row, (1 - PASSES_LEFT / visits) * advice_work_share(advice, row)));
	}
}

static bool rule_jacobian_find(const struct advice *advice, struct advice_result *result)
{
	struct jacobian_visits all = {.most = 0};
	bool done = count_visits(&all, advice);

	if (done)
		add_visits(&all, result);
	if (done && all.nodes)
		done = advice_report_costs(result, "Backward passes run through the same operators up to %u times in one call of a function, for one element of a result at a "
		                           "time: %s in each step, in %s.", all.most, advice_counted(advice, all.nodes, "node", "nodes").text,
		                           advice_cost(result).text);
	ops_map_release(&all.nodes_of);
	OPS_ARRAY_RELEASE(&all.of_nodes);
	return done;
}

const struct advice_rule advice_rule_jacobian = {
	.id = "jacobian-by-rows",
	.title = "A Jacobian or Hessian is computed row by row",
	.condition = "Within one call of a function of the program, the backward pass of the same operators runs twelve times or more, as in "
		     "torch.autograd.functional.jacobian and hessian, or in a loop over elements with retain_graph=True.",
	.gain = "the time of these backward passes but for two",
	.explanation = "Each row takes a backward pass through the complete graph. Most programs need only products of the matrix with vectors, its trace, or its diagonal.",
	.advice = "For products with vectors, as conjugate gradients need them, use torch.autograd.functional.hvp, vjp or jvp, or two calls of autograd.grad: that of "
		  "(gradient * vector).sum() is a product with the Hessian. Estimate a trace from products with random vectors. For the complete matrix, pass "
		  "vectorize=True, is_grads_batched=True, or use torch.func.jacrev, jacfwd and hessian. Sum losses before one backward pass. To check: "
		  "fewer backward passes at the line.",
	.code = "grad, = torch.autograd.grad(energy(x), x, create_graph=True)\n"
		"product, = torch.autograd.grad(grad @ vector, x)  # in place of hessian(energy, x) @ vector",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.autograd.functional.hvp.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_MODE,
	.confidence = ADVICE_LIKELY,
	.bound = ADVICE_AT_MOST, /* how many products are needed is unknown */
	.find = rule_jacobian_find,
};
