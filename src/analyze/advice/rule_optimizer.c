/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer steps that go through the parameters one by one with an operator for each line of the formula. A fused one
 * reads and writes every element once.
 */
#include <math.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* A loop over fewer operators is no loop worth fusing: one parameter of Adam takes about ten. */
#define OPERATORS_MIN 16

struct update {
	struct advice_tally steps;
	int64_t *elements;  /* by name of operator: elements of first inputs */
	double best_ns;     /* an element, of the quickest operator that works in place on a large tensor */
	uint64_t operators;
	int64_t loop_ns;    /* what goes over the parameters */
	bool fused, foreach;
};

static void add_operator(struct update *update, const struct advice *advice, uint32_t row)
{
	struct ops_string name = advice_name(advice, row);
	uint8_t dtype;
	int64_t elements;

	update->fused |= advice_text_has(name, "_fused_");
	update->foreach |= advice_text_has(name, "_foreach_");
	update->operators++;
	elements = advice_elements(advice, row, &dtype);
	if (elements < 0 || !name.size || name.bytes[name.size - 1] != '_')
		return;
	update->elements[advice->events->name[row]] = ops_sum(update->elements[advice->events->name[row]], elements);
	/* Of small tensors the call is what takes the time. */
	if (elements >= 4096) {
		double each_ns = (double)advice_ns(advice, row) / (double)elements;

		update->best_ns = each_ns < update->best_ns ? each_ns : update->best_ns;
	}
}

static bool gather(struct update *update, const struct advice *advice)
{
	uint8_t *loops = advice_names(advice, (const char *const[]){"*: _single_tensor_*", "*_single_tensor_*", NULL});

	if (!loops)
		return false;
	for (uint32_t row = 0; row < advice->events->count; row++) {
		if (!(advice->zone[row] & ADVICE_IN_OPTIMIZER) || !advice_counts(advice, row))
			continue;
		if (advice->views.parts[row] == VIEW_OPTIMIZER) {
			advice_tally_add(&update->steps, advice, row, advice_ns(advice, row));
			/* Other packages' own, as in "Optimizer.step#FusedAdam.step". */
			update->fused |= advice_text_has(advice_name(advice, row), "Fused");
		}
		if (loops[advice->events->name[row]])
			update->loop_ns = ops_sum(update->loop_ns, advice_ns(advice, row));
		if (advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR) &&
		    advice->views.parts[row] != VIEW_OPTIMIZER)
			add_operator(update, advice, row);
	}
	ops_free(loops);
	return true;
}

/* Elements of all parameters: an operator of the formula works on each once, or a few times. */
static int64_t parameters(const struct update *update, const struct advice *advice)
{
	int64_t most = 0, least = 0;

	for (size_t i = 0; i < ops_trace_string_count(advice->trace); i++)
		most = update->elements[i] > most ? update->elements[i] : most;
	for (size_t i = 0; i < ops_trace_string_count(advice->trace); i++)
		if (update->elements[i] >= most / 4 && (!least || update->elements[i] < least))
			least = update->elements[i];
	return least;
}

static bool report(struct advice *advice, const struct advice_rule *rule, struct update *update)
{
	double total_ns = (double)(update->loop_ns ? update->loop_ns : update->steps.ns), fused_ns;
	double elements = (double)parameters(update, advice);

	if (!update->steps.events || update->fused || update->foreach ||
	    update->operators / update->steps.events < OPERATORS_MIN)
		return true;
	/* A formula reads and writes two or three tensors a line; all of it touches about twice as many. */
	fused_ns = update->best_ns < INFINITY ? 2 * elements * update->best_ns : 0;
	return advice_report_add(advice, rule, &update->steps,
	                         (struct advice_gain){.ns = total_ns - fused_ns, .confidence = ADVICE_LIKELY},
	                         "the optimizer calls %.0f operators a step, one parameter after the other, in %.3f ms (%.1f %%). "
	                         "Gain: that time, less twice that of its quickest operator for all %.3g elements.",
	                         advice_per_step(advice, update->operators), advice_step_ms(advice, total_ns),
	                         advice_percent(advice, total_ns), elements / (double)advice->step_count);
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	struct update update = {.best_ns = INFINITY};
	bool done;

	update.elements = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, sizeof(*update.elements));
	done = update.elements && advice_tally_init(&update.steps, advice) && gather(&update, advice) &&
	       report(advice, rule, &update);
	advice_tally_release(&update.steps);
	ops_free(update.elements);
	return done;
}

const struct advice_rule advice_rule_optimizer = {
	.id = "optimizer-loop",
	.title = "The optimizer goes through the parameters one by one",
	.explanation = "Each line of its formula is an operator for each parameter: calls cost more than small tensors' "
		       "arithmetic, and large ones go through memory once for each line.",
	.advice = "Pass fused=True (SGD, Adam, AdamW, Adagrad; on the CPU, too), else foreach=True. Check: one "
		  "aten::_fused_… a step.",
	.link = "https://docs.pytorch.org/docs/stable/optim.html#algorithms",
	.needs = ADVICE_NEEDS_OPERATORS,
	/* It is torch's default on the CPU: worth to know, no fault of the program. */
	.severity_max = ADVICE_MEDIUM,
	.check = check,
};
