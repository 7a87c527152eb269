/* SPDX-License-Identifier: Apache-2.0
 *
 * A penalty on parameters that is part of the loss, so that autograd computes what the optimizer can add as it updates.
 *
 *     parameter ──pow──▶ as large ──sum──▶ scalar ──▶ loss          weight_decay: gradient + decay * parameter
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define SCALARS_BYTES_MAX 4096 /* maximum bytes that the reader of a penalty reads: some hundred of them */
#define SAVES 0.7             /* gain: the penalty takes some eleven passes over a parameter, and the optimizer three for its decay */
#define CHAIN_MAX 4            /* maximum number of operators from the parameter to the number */
#define PARAMETERS_MIN 2       /* minimum number of them in a step; one may be a constraint on a layer */

enum penalty_name { NAME_EACH = 1, NAME_TO_ONE };

struct penalties {
	uint8_t *kind;    /* by string: enum penalty_name */
	uint8_t *trained; /* by block: an optimizer updates it */
	uint64_t parameters;
};

static void find_trained(struct penalties *all, const struct data_flow *flow)
{
	for (size_t i = 0; i < flow->uses.count; i++) {
		const struct data_use *use = &flow->uses.items[i];

		if (use->kind == DATA_UPDATES && (flow->memory.rows.context[use->node] & MEMORY_IN_OPTIMIZER))
			all->trained[flow->memory.values.items[use->value].block] = 1;
	}
}

/* Returns true if a node reads parameters and nothing else. */
static bool reads_parameters(const struct penalties *all, const struct data_flow *flow, uint32_t node)
{
	size_t read = 0;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];

		if (use->kind != DATA_READS || !all->trained[flow->memory.values.items[use->value].block])
			return false;
		read++;
	}
	return read > 0;
}

/* Returns the value that a node leaves, and the only node that reads it in the forward pass; OPS_NONE for the node if there are
 * none or several. */
static uint32_t next_of(const struct advice *advice, uint32_t node, int64_t *ret_bytes)
{
	const struct data_flow *flow = advice->flow;
	uint32_t reader = OPS_NONE;

	*ret_bytes = 0;
	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];

		*ret_bytes = flow->values[value].bytes > *ret_bytes ? flow->values[value].bytes : *ret_bytes;
		for (uint32_t k = flow->values[value].first; k != OPS_NONE; k = flow->uses.items[k].next) {
			const struct data_use *use = &flow->uses.items[k];

			if (use->kind < DATA_SELECTS || (flow->memory.rows.context[use->node] & MEMORY_IN_BACKWARD))
				continue;
			if (reader != OPS_NONE && reader != use->node)
				return OPS_NONE;
			reader = use->node;
		}
	}
	return reader;
}

/* Follows a parameter to the number that becomes part of a loss. Returns the number of operators, or 0 if it is used otherwise, as
 * in a norm by which a weight is divided. */
static size_t follow_penalty(const struct penalties *all, const struct advice *advice, uint32_t row, uint32_t chain[CHAIN_MAX])
{
	for (size_t count = 0; count < CHAIN_MAX;) {
		enum penalty_name kind = (enum penalty_name)all->kind[advice->events->name[row]];
		uint32_t reader;
		int64_t bytes;

		if (!kind || !advice->backward_ns[row] || !advice_counts(advice, row))
			return 0;
		chain[count++] = row;
		reader = next_of(advice, row, &bytes);
		if (reader == OPS_NONE)
			return 0;
		if (kind == NAME_TO_ONE && bytes <= SCALARS_BYTES_MAX)
			return data_flow_read_bytes(advice->flow, reader) <= SCALARS_BYTES_MAX ? count : 0;
		row = reader;
	}
	return 0;
}

static void add_penalty(struct penalties *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	uint32_t chain[CHAIN_MAX];
	size_t count;

	if (!all->kind[advice->events->name[row]] || !advice->flow->nodes[row].count ||
	    (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_OPTIMIZER | ADVICE_IN_OPERATOR)) || advice_is_claimed(result, row) ||
	    !reads_parameters(all, advice->flow, row))
		return;
	count = follow_penalty(all, advice, row, chain);
	all->parameters += count > 0;
	for (size_t i = 0; i < count; i++) {
		if (!advice_is_claimed(result, chain[i]))
			advice_add_share(result, chain[i], SAVES * advice_work_share(advice, chain[i]));
		result->claimed[chain[i]] = 1; /* several parameters may meet in one operator */
	}
}

static bool rule_penalty_find(const struct advice *advice, struct advice_result *result)
{
	static const struct advice_named names[] = {
		{"aten::pow", NAME_EACH}, {"aten::square", NAME_EACH}, {"aten::mul", NAME_EACH}, {"aten::abs", NAME_EACH}, {"aten::cat", NAME_EACH},
		{"aten::reshape", NAME_EACH}, {"aten::flatten", NAME_EACH}, {"aten::sum", NAME_TO_ONE}, {"aten::mean", NAME_TO_ONE},
		{"aten::norm", NAME_TO_ONE}, {"aten::linalg_norm", NAME_TO_ONE}, {"aten::linalg_vector_norm", NAME_TO_ONE},
		{"aten::linalg_matrix_norm", NAME_TO_ONE}, {"aten::frobenius_norm", NAME_TO_ONE}, {"aten::dot", NAME_TO_ONE}, {0}};
	struct penalties all = {.kind = advice_named_kinds(advice, names),
	                        .trained = ops_alloc_zeroed(advice->flow->memory.blocks.count + 1, 1)};
	bool done = all.kind && all.trained;

	if (done)
		find_trained(&all, advice->flow);
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_penalty(&all, result, row);
	if (advice_per_step(advice, all.parameters) < PARAMETERS_MIN)
		result->claims.count = 0;
	done = done && (!result->claims.count ||
	                advice_report_costs(result, "Each step computes a penalty of %s for the loss, and its gradients, in %s.",
	                                    advice_counted(advice, all.parameters, "parameter", "parameters").text,
	                                    advice_cost(result).text));
	ops_free(all.kind);
	ops_free(all.trained);
	return done;
}

const struct advice_rule advice_rule_penalty = {
	.id = "penalty-in-loss",
	.title = "Autograd computes a penalty on parameters",
	.condition = "Two parameters or more that an optimizer updates are squared, or their absolute values or norms taken, and reduced to one number each, "
		     "which is part of a graph and is not combined with a larger tensor.",
	.gain = "seven tenths of the operators of the penalty, forward and backward: the optimizer passes over the parameters in their place",
	.explanation = "The squares and the gradients of the penalty each pass over all parameters, and adding the gradients to those of the loss once more. "
		       "The gradient of a sum of squares is the parameter itself, which an optimizer adds as it updates.",
	.advice = "Pass weight_decay to the optimizer: twice the factor of a sum of squares. With Adam, only AdamW does not scale it. For absolute values, add the "
		  "sign of the parameter to its gradient under torch.no_grad(). To check: no operators on parameters between the model and the loss.",
	.code = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=2e-4)  # in place of loss + 1e-4 * sum of squares",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.optim.SGD.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_MODE,
	.confidence = ADVICE_LIKELY,
	.find = rule_penalty_find,
};
