/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose results nothing reads before they are released, with all operators that compute only for them.
 *
 *     hidden ──▶ aten::linear ──▶ aten::softmax ──▶ (released)       a second head, weights of attention, a matrix for later
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "trace/inputs.h"

#define BYTES_MIN (16 << 10) /* minimum size of a result that matters */
#define VAIN_MAX 0.8         /* maximum share of the forward operators: more of them are a program whose results are for something else */

struct unused {
	struct advice_vain vain;
	uint8_t *integers;   /* by string: its results may be indices, whose readers recordings do not show */
	uint8_t *trains;     /* by step: it has a backward pass */
	uint8_t *branches;   /* by row: it reads a result of the same step that something else needs, or that of such an operator */
	double forward_ns;   /* time of the outermost operators outside of the backward pass and of optimizers */
	double vain_ns;
	uint64_t seeds;      /* results that nothing reads */
};

/* Returns true if nothing reads a result, and it is released by the end of the next step. */
static bool is_never_read(const struct advice *advice, uint32_t node, uint32_t value)
{
	const struct data_flow *flow = advice->flow;
	const struct ops_memory_block *block = &flow->memory.blocks.items[flow->memory.values.items[value].block];
	size_t next = (size_t)advice->step_of[node] + 1, steps = advice->views->steps.count;

	if (flow->memory.values.items[value].previous != OPS_NONE || !flow->values[value].complete ||
	    advice_reads_pointers(advice, block->start_ns, block->end_ns) ||
	    (next < steps && block->end_ns > advice->views->steps.items[next].host_end_ns))
		return false;
	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next)
		if (flow->uses.items[i].kind >= DATA_OVERWRITES)
			return false;
	return true;
}

static bool is_forward_operator(const struct advice *advice, uint32_t row)
{
	return advice_counts(advice, row) && advice->flow->memory.rows.node[row] == row &&
	       !(advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_OPTIMIZER | ADVICE_IN_LOADER | ADVICE_IN_OPERATOR));
}

/* Returns true if nothing reads any result of a node that outlives it. */
static bool has_unused_results(const struct unused *unused, const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	bool any = false;
	uint8_t dtype;

	if (!flow->nodes[node].made_count || !is_forward_operator(advice, node) || advice->backward_ns[node] > 0 || unused->integers[advice->events->name[node]] ||
	    data_flow_kind(flow, node) == OPERATOR_ALLOCATES || advice_elements(advice, node, &dtype) < 0 ||
	    (dtype != OPS_DTYPE_FLOAT && dtype != OPS_DTYPE_DOUBLE && dtype != OPS_DTYPE_BFLOAT16 && dtype != OPS_DTYPE_HALF))
		return false;
	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];

		if (data_flow_is_scratch(flow, node, value))
			continue;
		if (!is_never_read(advice, node, value))
			return false;
		any |= flow->values[value].bytes >= BYTES_MIN;
	}
	return any;
}

static bool init_unused(struct unused *unused, const struct advice *advice)
{
	static const char *const integers[] = {"aten::arg*", "aten::sort", "aten::topk", "aten::max", "aten::min", "aten::median", "aten::kthvalue", "aten::mode",
	                                       "aten::eq*", "aten::ne", "aten::gt*", "aten::lt*", "aten::ge*", "aten::le*", "aten::is*", "aten::logical_*", "aten::nonzero*",
	                                       "aten::multinomial", "aten::bernoulli", "aten::searchsorted", "aten::bucketize", "aten::to", "aten::_to_copy", "aten::type_as",
	                                       "aten::unique*", "aten::_unique*", "aten::bincount", "aten::long", "aten::where", "aten::rand*", "aten::signbit", "aten::cummax",
	                                       "aten::cummin", "aten::round", "aten::floor", "aten::empty*", "aten::zeros*", "aten::ones*", "aten::full*", NULL};
	size_t steps = advice->views->steps.count + 1;

	unused->integers = advice_names(advice, integers);
	unused->branches = ops_alloc_zeroed(advice->events->count + 1, sizeof(*unused->branches));
	unused->trains = ops_alloc_zeroed(steps, sizeof(*unused->trains));
	return unused->integers && unused->trains && unused->branches && advice_vain_init(&unused->vain, advice);
}

/* Finds results that nothing reads, and sums up the operators. */
static void find_unused(struct unused *unused, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t step = advice->step_of[row];

		if (step == OPS_NONE || !advice_is_operator(advice, row))
			continue;
		unused->trains[step] |= (advice->zone[row] & ADVICE_IN_BACKWARD) != 0;
		if (!is_forward_operator(advice, row))
			continue;
		unused->forward_ns += (double)advice_ns(advice, row);
		if (has_unused_results(unused, advice, row)) {
			advice_vain_add_reads(&unused->vain, advice, row);
			unused->seeds++;
		}
	}
}

/* A pass of a model of which nothing reads the result is a trial or a warm-up. A branch of a pass whose other results are read is not. */
static void find_branches(struct unused *unused, const struct advice *advice)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t node = 0; node < advice->events->count; node++) {
		if (unused->vain.nodes[node] != ADVICE_IN_VAIN)
			continue;
		for (uint32_t i = flow->nodes[node].first; i < flow->nodes[node].first + flow->nodes[node].count; i++) {
			uint32_t maker = flow->uses.items[i].kind >= DATA_SELECTS ? flow->values[flow->uses.items[i].value].node : OPS_NONE;

			if (maker != OPS_NONE && advice->step_of[maker] == advice->step_of[node])
				unused->branches[node] |= unused->vain.nodes[maker] != ADVICE_IN_VAIN || unused->branches[maker];
		}
	}
}

static bool is_unused(const struct unused *unused, const struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;

	return unused->vain.nodes[row] == ADVICE_IN_VAIN && unused->branches[row] && is_forward_operator(advice, row) && !advice_is_claimed(result, row) && unused->trains[advice->step_of[row]];
}

static bool rule_unused_find(const struct advice *advice, struct advice_result *result)
{
	struct unused unused = {.seeds = 0};
	bool done = init_unused(&unused, advice);
	double gain_ns = 0;
	uint64_t count = 0;

	if (done)
		find_unused(&unused, advice);
	if (done && unused.seeds) {
		advice_vain_follow(&unused.vain, advice, NULL);
		find_branches(&unused, advice);
	}
	for (uint32_t row = 0; done && unused.seeds && row < advice->events->count; row++)
		if (is_unused(&unused, result, row))
			unused.vain_ns += (double)advice_ns(advice, row);
	for (uint32_t row = 0; done && unused.vain_ns > 0 && unused.vain_ns <= VAIN_MAX * unused.forward_ns && row < advice->events->count; row++) {
		int64_t ns;

		if (!is_unused(&unused, result, row))
			continue;
		ns = advice_claim(result, row);
		advice_add_calls(result, row, ns);
		gain_ns += (double)ns;
		count++;
	}
	done = done && advice_report_gain(result, gain_ns, "%s results that nothing reads before they are released, in %s.",
	                                  advice_counted(advice, count, "operator in each step computes", "operators in each step compute").text,
	                                  advice_spent(advice, gain_ns).text);
	advice_vain_release(&unused.vain);
	ops_free(unused.integers);
	ops_free(unused.trains);
	ops_free(unused.branches);
	return done;
}

const struct advice_rule advice_rule_unused = {
	.id = "unused-result",
	.title = "Results are computed that nothing reads",
	.condition = "In a step with a backward pass, no operator and no Python code reads a result of 16 kB or more before it is released, at the end of the "
		     "next step at the latest, and it comes from a result of the step that something else needs. Operators that compute only for such results count as well. Integers and masks, whose use as indices "
		     "recordings do not show, are left out, as are steps in which most of the forward pass is unused.",
	.gain = "the time of these operators",
	.explanation = "The operators run, and their results are released unread: a second head, hidden states or weights of attention that are returned, a "
		       "statistic that is kept for later.",
	.advice = "Compute the result where it is read, on demand, or skip the branch during training, such as need_weights=False for attention. To check: "
		  "no operators at the line.",
	.code = "out, _ = attention(x, x, x, need_weights=False)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_MODE,
	.severity_max = ADVICE_MEDIUM, /* something else may read memory through a pointer */
	.confidence = ADVICE_LIKELY,
	.find = rule_unused_find,
};
