/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a graph that run more than once in a step: backward(retain_graph=True) for each of several losses, or for a
 * loss that is not detached from another model. All runs of a node except the last are work that one pass would have
 * done, or that nothing uses. A node is identified by its number, counted by each thread that runs forward passes.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

struct passes {
	struct ops_map last; /* by step, thread and number of a node: its last run */
	uint8_t *differs;     /* by step: it has gradients of gradients, or gradients requested one by one */
	uint32_t *optimizers; /* by row: number of optimizer steps so far */
	uint64_t again;
	bool apart;           /* an optimizer steps between passes, so they may differ on purpose */
};

/* With gradients of gradients, a node runs once for each order. Results of torch.autograd.grad for several outputs in
 * turn, as for a Jacobian or for gradients to compare, are not a sum. */
static void rule_passes_find_steps(struct passes *passes, const struct advice *advice, const uint8_t *which)
{
	uint32_t optimizers = 0;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t from = advice->forward[row];

		optimizers += advice->views->parts[row] == VIEW_OPTIMIZER;
		passes->optimizers[row] = optimizers;
		if (advice_counts(advice, row) && (which[advice->events->name[row]] ||
		                                   (from != OPS_NONE && (advice->zone[from] & ADVICE_IN_BACKWARD))))
			passes->differs[advice->step_of[row]] = 1;
	}
}

/* Returns false if out of memory. */
static bool rule_passes_add(struct passes *passes, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	int64_t number = advice->events->sequence_nr[row];
	uint64_t key = (uint64_t)advice->step_of[row] << 32 | advice->events->forward_thread[row];
	uint32_t *last, before;

	if (number < 0 || !advice_counts(advice, row) || passes->differs[advice->step_of[row]] ||
	    !advice_is_node(advice, row))
		return true;
	last = ops_map_slot(&passes->last, key * 0x9e3779b97f4a7c15u ^ (uint64_t)number, row);
	if (!last)
		return false;
	before = *last;
	*last = row;
	if (before == row || advice_is_claimed(result, before))
		return true;
	passes->again++;
	passes->apart |= passes->optimizers[before] != passes->optimizers[row];
	advice_add(result, advice_calling_row(advice, before), advice_node_ns(advice, before));
	advice_claim(result, before);
	return true;
}

static const char *const names[] = {"*: grad", "*autograd/functional.py(*", NULL};

static bool rule_passes_find(const struct advice *advice, struct advice_result *result)
{
	size_t count = advice->events->count + 1;
	struct passes passes = {.differs = ops_alloc_zeroed(advice->views->steps.count + 1, 1),
	                        .optimizers = ops_alloc_zeroed(count, sizeof(*passes.optimizers))};
	bool done = passes.differs && passes.optimizers;

	if (done)
		rule_passes_find_steps(&passes, advice, result->which);
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		done = rule_passes_add(&passes, result, row);
	result->confidence = passes.apart ? ADVICE_UNSURE : ADVICE_LIKELY;
	done = done && advice_report_costs(result, "%s again in a later pass, in %s%s.",
	                                   advice_counted(advice, passes.again, "node in each step runs", "nodes in each step run").text,
	                                   advice_cost(result).text,
	                                   passes.apart ? "; an optimizer steps between the passes" : "");
	ops_map_release(&passes.last);
	ops_free(passes.differs);
	ops_free(passes.optimizers);
	return done;
}

const struct advice_rule advice_rule_passes = {
	.id = "retained-graph",
	.title = "A graph is traversed more than once",
	.condition = "Nodes of the graph run in several backward passes of a step. Steps with gradients of gradients or with "
		     "torch.autograd.grad do not count. Confidence is low if an optimizer steps between the passes, since "
		     "the losses may differ on purpose.",
	.gain = "the time of all runs but the last of each node",
	.explanation = "backward(retain_graph=True) keeps the graph and its memory for another pass. What several losses share "
		       "is computed for each of them; a loss that is not detached also computes gradients that nothing reads.",
	.advice = "Add the losses and call backward once. Pass x.detach() where the output of another model is only an input, "
		  "as to a discriminator. To check: as many backward nodes as forward operators.",
	.code = "sum(losses).backward()  # in place of loss.backward(retain_graph=True) for each\n"
		"fake = generator(noise)\n"
		"loss = criterion(discriminator(fake.detach()))",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.backward.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_MODE, /* as gradients that nothing reads, which have the same cause */
	.names = names,
	.find = rule_passes_find,
};
