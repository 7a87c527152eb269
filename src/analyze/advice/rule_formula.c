/* SPDX-License-Identifier: Apache-2.0
 *
 * Normalisations and softmax that are written out in single operators, each of which passes over memory.
 *
 *     x ──mean──▶ small ──┐
 *     x ──────────────────sub──▶ d ──pow──▶ ──mean──▶ ──sqrt──▶ small ──┐
 *                                 d ────────────────────────────────────div──▶ result      layer_norm reads x and writes the result
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define BYTES_MIN (64 << 10) /* minimum size of the tensor */
#define RATIO_MIN 8          /* minimum ratio of its size to that of the statistics */
#define SMALL_MAX 6          /* maximum number of operators on statistics, such as adding epsilon */
#define OPERATORS_MAX 24
#define OPERATORS_MIN 4
#define PASSES_LEFT 3.0      /* a fused operator reads its input once or twice, and writes its result */

enum formula_name { NAME_SCALES = 1, NAME_CENTERS, NAME_SQUARES, NAME_EXPONENTIAL, NAME_AVERAGES, NAME_SUMS, NAME_DEVIATES, NAME_MAXIMUM };

struct formula {
	uint32_t rows[OPERATORS_MAX]; /* the operators of one formula */
	size_t count;
	double passes;                /* times that these read or write the large tensor */
	int64_t bytes;                /* its size */
};

struct formulas {
	uint8_t *kind;                /* by string: enum formula_name */
	uint64_t normalisations, softmaxes;
};

static enum formula_name formula_name_of(const struct formulas *all, const struct advice *advice, uint32_t row)
{
	return (enum formula_name)all->kind[advice->events->name[row]];
}

static bool can_be_part(const struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;

	return row != OPS_NONE && advice_counts(advice, row) && !advice_is_claimed(result, row) &&
	       !(advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER));
}

/* Adds an operator once, with the times that it passes over the large tensor. */
static void rule_formula_add_part(struct formula *formula, const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;

	for (size_t i = 0; i < formula->count; i++)
		if (formula->rows[i] == row)
			return;
	if (formula->count == OPERATORS_MAX)
		return;
	formula->rows[formula->count++] = row;
	for (uint32_t i = 0; i < flow->nodes[row].count; i++)
		formula->passes += (double)flow->uses.items[flow->nodes[row].first + i].bytes / (double)formula->bytes;
	formula->passes += (double)data_flow_made_bytes(flow, row) / (double)formula->bytes;
}

/* Gets the largest and the smallest value that a node reads. Returns the number of values. */
static size_t find_read_values(const struct data_flow *flow, uint32_t node, uint32_t *ret_large, uint32_t *ret_small)
{
	size_t count = 0;

	*ret_large = *ret_small = OPS_NONE;
	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];

		if (use->kind < DATA_OVERWRITES)
			continue;
		count++;
		if (*ret_large == OPS_NONE || flow->values[use->value].bytes > flow->values[*ret_large].bytes)
			*ret_large = use->value;
		if (*ret_small == OPS_NONE || flow->values[use->value].bytes < flow->values[*ret_small].bytes)
			*ret_small = use->value;
	}
	return count;
}

/* Returns the operator that makes a value, if it can be part of a formula; OPS_NONE otherwise. */
static uint32_t maker_of(const struct advice_result *result, uint32_t value)
{
	uint32_t node = value == OPS_NONE ? OPS_NONE : result->advice->flow->values[value].node;

	return can_be_part(result, node) ? node : OPS_NONE;
}

/* Returns the value from which a statistic was subtracted, or the value itself. Adds the subtraction, and the operator that makes the
 * statistic. */
static uint32_t before_centering(const struct formulas *all, struct formula *formula, const struct advice_result *result, uint32_t value)
{
	const struct data_flow *flow = result->advice->flow;
	uint32_t row = maker_of(result, value), large, small, statistic;

	if (row == OPS_NONE || formula_name_of(all, result->advice, row) != NAME_CENTERS || find_read_values(flow, row, &large, &small) != 2 ||
	    ops_product(flow->values[small].bytes, RATIO_MIN) > flow->values[large].bytes)
		return value;
	rule_formula_add_part(formula, result->advice, row);
	statistic = maker_of(result, small);
	if (statistic != OPS_NONE && formula_name_of(all, result->advice, statistic) >= NAME_AVERAGES)
		rule_formula_add_part(formula, result->advice, statistic);
	return large;
}

/* Follows small values back to the operator that reduces a large one; OPS_NONE: none. */
static uint32_t find_statistic(const struct formulas *all, struct formula *formula, const struct advice_result *result, uint32_t value)
{
	const struct data_flow *flow = result->advice->flow;

	for (int i = 0; i < SMALL_MAX; i++) {
		uint32_t row = maker_of(result, value), large, small;

		if (row == OPS_NONE || !find_read_values(flow, row, &large, &small))
			return OPS_NONE;
		rule_formula_add_part(formula, result->advice, row);
		if (ops_product(flow->values[value].bytes, RATIO_MIN) <= flow->values[large].bytes)
			return formula_name_of(all, result->advice, row) >= NAME_AVERAGES ? row : OPS_NONE;
		value = large;
	}
	return OPS_NONE;
}

/* Returns true if a value is scaled by a statistic of itself, as in a normalisation, or in a softmax. */
static bool is_of_itself(const struct formulas *all, struct formula *formula, const struct advice_result *result, uint32_t value,
                         uint32_t statistic, bool *ret_softmax)
{
	const struct advice *advice = result->advice;
	enum formula_name name = formula_name_of(all, advice, statistic);
	uint32_t large, small, squared, maker = maker_of(result, value), centered;

	find_read_values(advice->flow, statistic, &large, &small);
	*ret_softmax = name == NAME_SUMS && large == value && maker != OPS_NONE && formula_name_of(all, advice, maker) == NAME_EXPONENTIAL;
	if (*ret_softmax) {
		rule_formula_add_part(formula, advice, maker);
		find_read_values(advice->flow, maker, &large, &small);
		before_centering(all, formula, result, large);
		return true;
	}
	centered = before_centering(all, formula, result, value);
	if (name == NAME_DEVIATES)
		return before_centering(all, formula, result, large) == centered;
	squared = maker_of(result, large);
	if ((name != NAME_AVERAGES && name != NAME_SUMS) || squared == OPS_NONE || (formula_name_of(all, advice, squared) != NAME_SQUARES && formula_name_of(all, advice, squared) != NAME_SCALES))
		return false;
	rule_formula_add_part(formula, advice, squared);
	return find_read_values(advice->flow, squared, &large, &small) == 1 && before_centering(all, formula, result, large) == centered;
}

/* Adds the operators that scale and shift the result by parameters. */
static void add_affine(const struct formulas *all, struct formula *formula, const struct advice_result *result, uint32_t row)
{
	const struct data_flow *flow = result->advice->flow;

	for (int i = 0; i < 2; i++) {
		uint32_t large, small, next = OPS_NONE, value = flow->nodes[row].made_count == 1 ? flow->made.items[flow->nodes[row].first_made] : OPS_NONE;

		for (uint32_t k = value == OPS_NONE ? OPS_NONE : flow->values[value].first; k != OPS_NONE; k = flow->uses.items[k].next)
			if (flow->uses.items[k].kind >= DATA_OVERWRITES && can_be_part(result, flow->uses.items[k].node))
				next = next == OPS_NONE ? flow->uses.items[k].node : next;
		if (next == OPS_NONE || !(formula_name_of(all, result->advice, next) == NAME_SCALES || formula_name_of(all, result->advice, next) == NAME_CENTERS) ||
		    find_read_values(flow, next, &large, &small) != 2 || ops_product(flow->values[small].bytes, RATIO_MIN) > flow->values[large].bytes)
			return;
		rule_formula_add_part(formula, result->advice, next);
		row = next;
	}
}

static void add_formula(struct formulas *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct formula formula = {.count = 0};
	uint32_t large, small, statistic;
	bool is_softmax;

	if (formula_name_of(all, advice, row) != NAME_SCALES || !advice->flow->nodes[row].made_count || !can_be_part(result, row) ||
	    find_read_values(advice->flow, row, &large, &small) != 2 || advice->flow->values[large].bytes < BYTES_MIN ||
	    ops_product(advice->flow->values[small].bytes, RATIO_MIN) > advice->flow->values[large].bytes)
		return;
	formula.bytes = advice->flow->values[large].bytes;
	rule_formula_add_part(&formula, advice, row);
	statistic = find_statistic(all, &formula, result, small);
	if (statistic == OPS_NONE || !is_of_itself(all, &formula, result, large, statistic, &is_softmax))
		return;
	add_affine(all, &formula, result, row);
	if (formula.count < OPERATORS_MIN || formula.passes <= PASSES_LEFT)
		return;
	for (size_t i = 0; i < formula.count; i++) {
		advice_add_share(result, formula.rows[i], (1 - PASSES_LEFT / formula.passes) * advice_work_share(advice, formula.rows[i]));
		result->claimed[formula.rows[i]] = 1;
	}
	*(is_softmax ? &all->softmaxes : &all->normalisations) += 1;
}

static bool rule_formula_find(const struct advice *advice, struct advice_result *result)
{
	static const struct {
		const char *name;
		enum formula_name kind;
	} kinds[] = {
		{"aten::div", NAME_SCALES}, {"aten::mul", NAME_SCALES}, {"aten::sub", NAME_CENTERS}, {"aten::add", NAME_CENTERS},
		{"aten::pow", NAME_SQUARES}, {"aten::square", NAME_SQUARES}, {"aten::exp", NAME_EXPONENTIAL}, {"aten::mean", NAME_AVERAGES},
		{"aten::sum", NAME_SUMS}, {"aten::var", NAME_DEVIATES}, {"aten::std", NAME_DEVIATES}, {"aten::var_mean", NAME_DEVIATES},
		{"aten::max", NAME_MAXIMUM}, {"aten::amax", NAME_MAXIMUM},
	};
	struct formulas all = {.kind = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, 1)};
	char normalisations[96] = "", softmaxes[96] = "";
	bool done = all.kind != NULL;

	for (size_t i = 0; done && i < sizeof(kinds) / sizeof(*kinds); i++) {
		uint8_t *which = advice_names(advice, (const char *const[]){kinds[i].name, NULL});

		done = which != NULL;
		for (size_t id = 0; done && id < ops_trace_string_count(advice->trace); id++)
			all.kind[id] = which[id] ? (uint8_t)kinds[i].kind : all.kind[id];
		ops_free(which);
	}
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_formula(&all, result, row);
	if (all.normalisations)
		snprintf(normalisations, sizeof(normalisations), "%s", advice_counted(advice, all.normalisations, "normalisation", "normalisations").text);
	if (all.softmaxes)
		snprintf(softmaxes, sizeof(softmaxes), "%s", advice_counted(advice, all.softmaxes, "softmax function", "softmax functions").text);
	done = done && advice_report_costs(result, "%s %s%s%s one pass at a time. All passes but three take %s.",
	                                   advice_events(result, "operator in each step computes", "operators in each step compute").text,
	                                   normalisations, *normalisations && *softmaxes ? " and " : "", softmaxes,
	                                   advice_cost(result).text);
	ops_free(all.kind);
	return done;
}

const struct advice_rule advice_rule_formula = {
	.id = "formula-by-hand",
	.title = "A normalisation or softmax is written out in single operators",
	.condition = "A tensor of at least 64 kB is multiplied with, or divided by, what follows from the mean of its squares or its variance, with or without its "
		     "mean subtracted, or exponentials are divided by their sum. The operators are outermost ones of the forward pass.",
	.gain = "all but three of the passes over the tensor, forward and backward",
	.explanation = "Each operator reads the tensor from memory and writes another, and keeps it for the backward pass. One operator for the formula "
		       "reads it once or twice.",
	.advice = "Use the function of torch.nn.functional for the formula: layer_norm, rms_norm, group_norm, batch_norm, softmax or log_softmax. "
		  "torch.compile fuses what has no function. To check: one operator at the line.",
	.code = "y = torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.layer_norm.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.severity_max = ADVICE_MEDIUM, /* how much a fused operator saves depends on the size of the caches */
	.confidence = ADVICE_LIKELY,
	.find = rule_formula_find,
};
