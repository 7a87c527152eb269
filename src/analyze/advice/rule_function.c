/* SPDX-License-Identifier: Apache-2.0
 *
 * Autograd functions written in Python (torch.autograd.Function) that are called often. Each call is an operator with
 * Python code below it, forward and backward, where an operator of torch would be a single one.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

/* Minimum number of calls per step on a hot path. */
#define CALLS_MIN 4.0

struct functions {
	uint8_t *python;     /* by row: a function of the program is directly below this operator */
	int64_t *largest_ns; /* by row: time of its most expensive operator, which is about what a single operator would
	                      * take */
	uint64_t calls;
};

static void rule_function_find_functions(struct functions *functions, const struct advice *advice)
{
	for (uint32_t row = (uint32_t)advice->events->count; row-- > 0;) {
		uint32_t parent = advice->events->parent[row];
		int64_t ns;

		if (parent == OPS_NONE || !advice_counts(advice, row))
			continue;
		/* "package::operator" comes from torch.library. Its Python code may call separate kernels. */
		if (advice->events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && advice_is_operator(advice, parent) &&
		    advice_own_site(advice, row) != OPS_NONE && !ops_string_contains(advice_name(advice, parent), "::") &&
		    !advice_is_region(advice_name(advice, parent)))
			functions->python[parent] = 1;
		/* Operators of a Function are below its Python code, so a row that contains some is not one of them. */
		ns = functions->largest_ns[row];
		if (!ns && advice_is_operator(advice, row))
			ns = advice_ns(advice, row);
		if (ns > functions->largest_ns[parent])
			functions->largest_ns[parent] = ns;
	}
}

/* There are two Python functions between the call of apply and its operator. */
#define DEPTH_MAX 4

/* Starts with the call of apply, which is also Python. */
static uint32_t rule_function_whole(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row];

	for (int i = 0; i < DEPTH_MAX && parent != OPS_NONE && advice->events->kind[parent] == OPS_EVENT_PYTHON_FUNCTION &&
	       advice_own_site(advice, parent) == OPS_NONE && ops_string_contains(advice_name(advice, parent), "apply"); i++) {
		row = parent;
		parent = advice->events->parent[row];
	}
	return row;
}

static bool rule_function_find(const struct advice *advice, struct advice_result *result)
{
	size_t count = advice->events->count + 1;
	struct functions functions = {.python = ops_alloc_zeroed(count, 1),
	                              .largest_ns = ops_alloc_zeroed(count, sizeof(*functions.largest_ns))};
	bool done = functions.python && functions.largest_ns;

	if (done)
		rule_function_find_functions(&functions, advice);
	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t call;
		int64_t ns;

		/* Only forward calls; the time of their nodes in the backward pass is claimed with them. */
		if (!functions.python[row] || (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_OPERATOR)) ||
		    advice_is_claimed(result, row))
			continue;
		call = rule_function_whole(advice, row);
		ns = ops_sum(advice_left_ns(advice, call), advice_backward_left_ns(advice, call));
		ns -= functions.largest_ns[row] * (advice->backward_ns[row] ? 2 : 1);
		functions.calls++;
		if (ns > 0)
			advice_add(result, call, ns);
		advice_claim_share(result, call, ns > 0 ? (double)ns / (double)(ns + 2 * functions.largest_ns[row]) : 0);
	}
	done = done && (advice_per_step(advice, functions.calls) < CALLS_MIN ||
	                advice_report_costs(result, "Each step calls Functions in Python %s.",
	                                    advice_counted(advice, functions.calls, "time", "times").text));
	ops_free(functions.python);
	ops_free(functions.largest_ns);
	return done;
}

/* --- gradients that are not needed ----------------------------------------------------------------------------------- */

#define GRADIENT_BYTES_MIN (16 << 10)

/* Returns the outermost operator in the backward pass of a Python function that runs at a time; OPS_NONE: none. */
static uint32_t operator_at(const struct advice *advice, uint32_t node, int64_t time_ns)
{
	const struct ops_events *events = advice->events;

	for (uint32_t row = node + 1; row < events->count && events->start_ns[row] <= time_ns; row++)
		if (advice_is_operator(advice, row) && events->track[row] == events->track[node] && events->end_ns[row] >= time_ns &&
		    ops_string_starts(advice_name(advice, row), "aten::"))
			return row;
	return OPS_NONE;
}

/* Returns whether a node is the backward pass of a Python function, and a value that it makes is released after its end, but before that of
 * the engine's range around it, without a use. */
static bool is_dropped(const struct advice *advice, uint32_t node, uint32_t value)
{
	const struct data_flow *flow = advice->flow;
	const struct ops_memory_block *block = &flow->memory.blocks.items[flow->memory.values.items[value].block];
	uint32_t range = advice->events->parent[node];

	return flow->values[value].complete && flow->values[value].first == OPS_NONE && block->bytes >= GRADIENT_BYTES_MIN && range != OPS_NONE &&
	       ops_string_contains(advice_name(advice, range), "evaluate_function") && block->end_ns > advice->events->end_ns[node] &&
	       block->end_ns <= advice->events->end_ns[range];
}

static bool rule_function_find_dropped(const struct advice *advice, struct advice_result *result)
{
	const struct data_flow *flow = advice->flow;
	uint64_t gradients = 0;

	for (uint32_t node = 0; node < advice->events->count; node++) {
		if (!flow->nodes[node].made_count || !advice_counts(advice, node) || !ops_string_ends(advice_name(advice, node), "Backward"))
			continue;
		for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
			uint32_t value = flow->made.items[flow->nodes[node].first_made + i], row;

			if (!is_dropped(advice, node, value))
				continue;
			row = operator_at(advice, node, flow->memory.blocks.items[flow->memory.values.items[value].block].start_ns);
			if (row == OPS_NONE || advice_is_claimed(result, row) || !advice_counts(advice, row))
				continue;
			gradients++;
			advice_add(result, row, advice_claim(result, row));
		}
	}
	return advice_report_costs(result, "Python functions of autograd return %s in each step that autograd drops, since the inputs require none. "
	                           "That takes %s.", advice_counted(advice, gradients, "gradient", "gradients").text,
	                           advice_cost(result).text);
}

const struct advice_rule advice_rule_dropped = {
	.id = "gradient-not-needed",
	.title = "A Python function of autograd computes a gradient that is not needed",
	.condition = "In the backward pass of a torch.autograd.Function, an operator makes a tensor of 16 kB or more that nothing reads, and that is released when "
		     "autograd receives the gradients.",
	.gain = "the time of these operators",
	.explanation = "autograd drops the gradients of inputs that do not require one, such as constant matrices and frozen weights, but backward() computes all that "
		       "its code computes.",
	.advice = "Compute each gradient in backward() only if ctx.needs_input_grad[i] is true, and return None otherwise. To check: no operators at the line.",
	.code = "grad_weight = x.T @ grad if ctx.needs_input_grad[1] else None",
	.link = "https://docs.pytorch.org/docs/stable/notes/extending.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_MODE,
	.confidence = ADVICE_LIKELY,
	.find = rule_function_find_dropped,
};

const struct advice_rule advice_rule_function = {
	.id = "python-autograd-function",
	.title = "Autograd functions in Python are on the hot path",
	.condition = "Operators call functions of the program directly, four times a step or more. Regions compiled by "
		     "torch.compile do not count.",
	.gain = "their time, forward and backward, less the most expensive operator in each",
	.explanation = "Each call of a torch.autograd.Function enters Python twice, forward and backward, and its formula is a "
		       "chain of operators with a temporary each.",
	.advice = "Use the operator of torch if one exists (torch.nn.functional), let torch.compile fuse the formula, or write "
		  "it in C++ with torch.library. To check: no Python below operators.",
	.link = "https://docs.pytorch.org/docs/stable/notes/extending.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_FUNCTIONS,
	.confidence = ADVICE_LIKELY,
	.find = rule_function_find,
};
