/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs for a backward pass that never comes: evaluation and serving without no_grad. While gradients are on, an operator
 * carries autograd's counter of nodes; the counter moves on with each node, and a backward pass runs them by number.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* So many nodes a step are a model's, and not a stray sum. */
#define NODES_MIN 4.0

struct graphs {
	uint32_t *backward_of; /* by steady step: nodes that ran */
	uint32_t *made_of;
	uint8_t *kept_in;      /* by steady step: its graph is held on to, which rule_growth.c tells of */
	bool trains;           /* there is a backward pass somewhere */
	int64_t view_ns;       /* of the quickest view: what it takes to make a node and its output */
};

static bool init(struct graphs *graphs, const struct advice *advice)
{
	size_t steps = advice->views.steps.count + 1;

	graphs->backward_of = ops_alloc_zeroed(steps, sizeof(*graphs->backward_of));
	graphs->made_of = ops_alloc_zeroed(steps, sizeof(*graphs->made_of));
	graphs->kept_in = ops_alloc_zeroed(steps, sizeof(*graphs->kept_in));
	return graphs->backward_of && graphs->made_of && graphs->kept_in;
}

static void count(struct graphs *graphs, const struct advice *advice, const uint8_t *views)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		graphs->trains |= (advice->zone[row] & ADVICE_IN_BACKWARD) != 0;
		if (!advice_counts(advice, row) || !advice_is_operator(advice, row))
			continue;
		graphs->kept_in[advice->step_of[row]] |= (advice->zone[row] & ADVICE_KEPT) != 0;
		graphs->backward_of[advice->step_of[row]] += (advice->zone[row] & ADVICE_IN_BACKWARD) != 0;
		if (views[advice->events->name[row]] && (!graphs->view_ns || advice_ns(advice, row) < graphs->view_ns))
			graphs->view_ns = advice_ns(advice, row);
	}
}

/* Outermost operators behind which the counter stands higher; the nodes go to their places. */
static void tally_nodes(const struct graphs *graphs, const struct advice *advice, struct advice_tally *tally)
{
	uint32_t last = OPS_NONE;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t nodes;

		if (!advice_is_operator(advice, row) || !advice_counts(advice, row) ||
		    (advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD | ADVICE_IN_OPTIMIZER | ADVICE_IN_LOADER)) ||
		    graphs->backward_of[advice->step_of[row]] || graphs->kept_in[advice->step_of[row]])
			continue;
		if (last != OPS_NONE && advice->events->track[last] == advice->events->track[row] &&
		    advice->events->sequence_nr[last] >= 0 &&
		    (nodes = ops_difference(advice->events->sequence_nr[row], advice->events->sequence_nr[last])) > 0 && nodes < 64) {
			advice_tally_add(tally, advice, last, nodes * graphs->view_ns);
			graphs->made_of[advice->step_of[last]] += (uint32_t)nodes;
		}
		last = row;
	}
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"aten::t", "aten::view", "aten::transpose", "aten::expand", "aten::detach", NULL};
	uint8_t *views = advice_names(advice, patterns);
	struct graphs graphs = {0};
	struct advice_tally tally = {0};
	uint64_t nodes = 0;
	bool done = views && init(&graphs, advice) && advice_tally_init(&tally, advice);

	if (done) {
		count(&graphs, advice, views);
		tally_nodes(&graphs, advice, &tally);
		for (size_t i = 0; i < advice->views.steps.count; i++)
			nodes += graphs.made_of[i];
		/* It costs memory more than time: worth a word whatever the gain, unless the backward pass of these steps may
		 * just be missing. */
		if (advice_per_step(advice, nodes) >= NODES_MIN)
			done = advice_report_add(advice, rule, &tally,
			                         (struct advice_gain){.ns = (double)tally.ns, .confidence = ADVICE_LIKELY,
			                                              .always = !graphs.trains, .severity = ADVICE_MEDIUM},
			                         "%.1f nodes of a graph are made a step, in steps without a backward pass. Gain: a view's "
			                         "time (%.2f us) for each; besides, the activations that they keep.",
			                         advice_per_step(advice, nodes), (double)graphs.view_ns / 1000);
	}
	ops_free(views);
	ops_free(graphs.backward_of);
	ops_free(graphs.made_of);
	ops_free(graphs.kept_in);
	advice_tally_release(&tally);
	return done;
}

const struct advice_rule advice_rule_no_grad = {
	.id = "autograd-unused",
	.title = "Gradients are prepared that nobody asks for",
	.explanation = "With gradients on, each operator makes a node and keeps its inputs until the result is freed, so memory "
		       "holds all activations of the pass.",
	.advice = "Put evaluation and serving under `with torch.inference_mode():` or torch.no_grad(). Check: memory at its peak, "
		  "and no sequence numbers on the operators.",
	.code = "with torch.inference_mode():\n"
		"    out = model(x)",
	.link = "https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disable-grad-doc",
	.needs = ADVICE_NEEDS_OPERATORS,
	.severity_max = ADVICE_HIGH,
	.check = check,
};
