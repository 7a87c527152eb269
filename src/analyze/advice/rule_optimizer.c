/* SPDX-License-Identifier: Apache-2.0
 *
 * Optimizer steps that update parameters one by one with an operator for each line of the formula. A fused step reads
 * and writes each element once.
 */
#include <math.h>
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

/* A loop over fewer operators is not worth fusing; one parameter of Adam takes about ten. */
#define OPERATORS_MIN 16

/* For smaller tensors the call overhead determines the time. */
#define LARGE_ELEMENTS 4096

/* Sums for an operator that works in place. */
struct line {
	int64_t elements;
	int64_t large_elements; /* elements of large tensors, and the time for them */
	int64_t large_ns;
};

struct update {
	struct line *lines; /* by name of the operator */
	uint64_t operators;
	int64_t loop_ns;     /* time of the functions that loop over parameters */
	int64_t products_ns; /* time of operators that no fused step replaces */
	bool fused, foreach;
	bool of_torch;       /* one of them is a class of torch.optim */
	bool evaluates;      /* one of them computes gradients itself, in a closure, as L-BFGS does */
};

/* Returns true for products and decompositions of matrices. */
static bool is_of_matrices(enum operator_kind kind)
{
	return kind == OPERATOR_PRODUCT || kind == OPERATOR_SUBSTITUTES || operator_factors(kind);
}

static void rule_optimizer_add_operator(struct update *update, const struct advice *advice, uint32_t row)
{
	struct ops_string name = advice_name(advice, row);
	struct line *line;
	uint8_t dtype;
	int64_t elements;

	update->fused |= ops_string_contains(name, "_fused_");
	update->foreach |= ops_string_contains(name, "_foreach_");
	if (is_of_matrices(advice_kind(advice, row))) {
		update->products_ns = ops_sum(update->products_ns, advice_ns(advice, row));
		return;
	}
	update->operators++;
	elements = advice_elements(advice, row, &dtype);
	if (elements < 0 || !name.size || name.bytes[name.size - 1] != '_')
		return;
	line = &update->lines[advice->events->name[row]];
	line->elements = ops_sum(line->elements, elements);
	if (elements >= LARGE_ELEMENTS) {
		line->large_elements = ops_sum(line->large_elements, elements);
		line->large_ns = ops_sum(line->large_ns, (int64_t)((double)advice_ns(advice, row) * advice_work_share(advice, row)));
	}
}

/* Steps of optimizers that wrap others contain the steps of those, which are counted as part of the outer one. */
static bool rule_optimizer_is_outermost(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	return parent == OPS_NONE || !(advice->zone[parent] & ADVICE_IN_OPTIMIZER);
}

static const char *const of_torch[] = {
	"*#Adadelta.step", "*#Adafactor.step", "*#Adagrad.step", "*#Adam.step", "*#AdamW.step", "*#Adamax.step", "*#ASGD.step",
	"*#NAdam.step", "*#RAdam.step", "*#RMSprop.step", "*#Rprop.step", "*#SGD.step", NULL};

static bool rule_optimizer_gather(struct update *update, const struct advice *advice, struct advice_result *result)
{
	uint8_t *loops = advice_names(advice, (const char *const[]){"*: _single_tensor_*", "*_single_tensor_*", NULL});

	if (!loops)
		return false;
	for (uint32_t row = 0; row < advice->events->count; row++) {
		if (!(advice->zone[row] & ADVICE_IN_OPTIMIZER) || !advice_counts(advice, row))
			continue;
		if (advice->views->parts[row] == VIEW_OPTIMIZER) {
			if (rule_optimizer_is_outermost(advice, row))
				advice_add(result, row, advice_ns(advice, row));
			/* Optimizers of other packages, such as "Optimizer.step#FusedAdam.step". */
			update->fused |= ops_string_contains(advice_name(advice, row), "Fused");
			update->of_torch |= advice_text_like(advice_name(advice, row), of_torch);
		}
		update->evaluates |= (advice->zone[row] & ADVICE_IN_BACKWARD) != 0;
		if (loops[advice->events->name[row]])
			update->loop_ns = ops_sum(update->loop_ns, advice_ns(advice, row));
		if (advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR) &&
		    advice->views->parts[row] != VIEW_OPTIMIZER)
			rule_optimizer_add_operator(update, advice, row);
	}
	ops_free(loops);
	return true;
}

/* Returns the number of elements of all parameters. An operator of the formula processes each once, or a few times. */
static int64_t parameters(const struct update *update, size_t names)
{
	int64_t most = 0, least = 0;

	for (size_t i = 0; i < names; i++)
		most = update->lines[i].elements > most ? update->lines[i].elements : most;
	for (size_t i = 0; i < names; i++)
		if (update->lines[i].elements >= most / 4 && (!least || update->lines[i].elements < least))
			least = update->lines[i].elements;
	return least;
}

/* Returns the time of a fused step, which memory limits. It reads and writes parameters and states and reads gradients:
 * five passes over the elements with one state (momentum), seven with two (Adam). The fastest operator of the formula
 * makes two passes, and formulas with two states have more operators. Tensors in a cache distort this, so the figures
 * are averages over all tensors. */
static double fused_ns(const struct update *update, size_t names, double elements)
{
	double best_ns = INFINITY;
	size_t lines = 0;

	for (size_t i = 0; i < names; i++) {
		const struct line *line = &update->lines[i];

		if (!line->large_elements || (double)line->elements < elements / 2)
			continue;
		best_ns = fmin(best_ns, (double)line->large_ns / (double)line->large_elements);
		lines++;
	}
	return lines ? (lines < 4 ? 2.5 : 3.5) * best_ns * elements : 0;
}

static const char other[] =
	"This optimizer is not a class of torch.optim and may have no argument fused. Let torch.compile fuse its step, or compute "
	"each line of its formula for all parameters with a function torch._foreach_….";

static bool rule_optimizer_report(const struct advice *advice, struct advice_result *result, const struct update *update)
{
	double total_ns = (double)ops_difference(update->loop_ns ? update->loop_ns : result->tally.ns, update->products_ns);
	size_t names = ops_trace_string_count(advice->trace);
	char rest[192] = "";
	double elements, fused;

	if (!result->tally.events || update->fused || update->foreach || update->evaluates ||
	    update->operators / result->tally.events < OPERATORS_MIN)
		return true;
	if (!update->of_torch)
		result->detail = other;
	elements = (double)parameters(update, names);
	fused = fused_ns(update, names, elements);
	if (fused > 0)
		snprintf(rest, sizeof(rest), "; reading and writing %s elements and their states once takes %s of that",
		         ops_figure_of_number(round(elements / (double)advice->step_count)).text, advice_time(advice_step_ms(advice, fused)).text);
	return advice_report_gain(result, total_ns - fused,
	                          "The optimizer calls %s in each step, for one parameter after another, in %s%s.",
	                          advice_counted(advice, update->operators, "operator", "operators").text,
	                          advice_spent(advice, total_ns).text, rest);
}

static bool rule_optimizer_find(const struct advice *advice, struct advice_result *result)
{
	struct update update = {.lines = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, sizeof(*update.lines))};
	bool done = update.lines && rule_optimizer_gather(&update, advice, result) &&
	            rule_optimizer_report(advice, result, &update);

	ops_free(update.lines);
	return done;
}

const struct advice_rule advice_rule_optimizer = {
	.id = "optimizer-loop",
	.title = "The optimizer updates parameters one by one",
	.condition = "A step of an optimizer calls 16 operators or more, and none of them is fused or foreach. Products and decompositions of "
		     "matrices do not count, nor do optimizers that compute gradients themselves (L-BFGS).",
	.gain = "the time of the loop, less what memory requires to read and write the elements and their states once, "
		"estimated from the fastest of its operators",
	.explanation = "Each line of the formula is one operator for each parameter. Calls cost more than the arithmetic on "
		       "small tensors; large ones pass through memory once for each line.",
	.advice = "Pass fused=True (SGD, Adam, AdamW, Adagrad; also on the CPU), or else foreach=True. To check: one "
		  "aten::_fused_… in a step.",
	.code = "optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)",
	.link = "https://docs.pytorch.org/docs/stable/optim.html#algorithms",
	.needs = ADVICE_NEEDS_OPERATORS,
	/* This is torch's default on the CPU: worth knowing, but not a mistake in the program. */
	.severity_max = ADVICE_MEDIUM,
	.stage = ADVICE_STAGE_FUNCTIONS,
	.general = true,
	.usual = true,
	.confidence = ADVICE_LIKELY,
	.find = rule_optimizer_find,
};
