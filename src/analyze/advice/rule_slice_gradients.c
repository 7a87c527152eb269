/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of a tensor that are taken one after another. In the backward pass, each part makes a gradient as large as the whole tensor, of
 * zeros but for the part, and autograd adds these gradients up.
 *
 *     encoded[:, t] for 320 values of t:  320 × (zeros of [32, 320, 160], a copy of [32, 160], and a sum of [32, 320, 160])
 *     encoded.unbind(1):                  1 × a stack
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define PARTS_MIN 8   /* minimum number of parts of a value */
#define SMALLER 4     /* minimum ratio of the tensor to a part */
#define PASSES 4.0    /* through the whole tensor for each part: zeros, and a sum of two tensors */
#define PART_PASSES 3.0 /* through the part, which remain */

/* A value that parts are taken of. */
struct sliced {
	uint32_t parts;
	int64_t whole_bytes, part_bytes; /* of gradients: the largest, and the sum of parts */
};

struct sliced_values {
	struct sliced *values; /* by value of the flow */
	uint64_t parts, bases;
	int64_t bytes;         /* of the gradients of whole tensors */
	int64_t largest_bytes;
	struct ops_input part; /* of the largest */
};

static const char *const names[] = {"SelectBackward0", "SliceBackward0", "IndexBackward0", "IndexSelectBackward0", "GatherBackward0", NULL};

/* Returns the largest value that a node of the forward pass uses; OPS_NONE: none. */
static uint32_t base_of(const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	uint32_t base = OPS_NONE;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		uint32_t value = flow->uses.items[flow->nodes[node].first + i].value;

		if (base == OPS_NONE || flow->values[value].bytes > flow->values[base].bytes)
			base = value;
	}
	return base;
}

/* Gets the forward operator of such a node, its base, and the bytes of the gradient of its part. Returns false for other rows, and for
 * iterations over rows that do not depend on each other, which need no loop. */
static bool is_part_with_gradient(const struct advice_result *result, uint32_t row, uint32_t *ret_forward, uint32_t *ret_base, struct ops_input *ret_part)
{
	const struct advice *advice = result->advice;
	uint32_t forward, loop;

	if (!result->which[advice->events->name[row]] || !advice_counts(advice, row) || advice->flow->memory.rows.node[row] == OPS_NONE ||
	    !advice_input(advice, row, 0, ret_part) || advice_input_elements(ret_part) <= 0)
		return false;
	forward = advice_forward_of(advice, row);
	if (forward == OPS_NONE || advice->flow->memory.rows.node[forward] == OPS_NONE || advice_is_claimed(result, forward))
		return false;
	loop = advice->loop_of[forward];
	if ((advice->zone[forward] & ADVICE_IN_ROW_LOOP) && loop != OPS_NONE && !advice->loops.items[loop].recurrent)
		return false;
	*ret_forward = forward;
	*ret_base = base_of(advice, advice->flow->memory.rows.node[forward]);
	return *ret_base != OPS_NONE;
}

static void count_gradient_of_part(struct sliced_values *all, const struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct ops_input part;
	uint32_t forward, base;
	int64_t whole;

	if (!is_part_with_gradient(result, row, &forward, &base, &part))
		return;
	whole = data_flow_made_bytes(advice->flow, advice->flow->memory.rows.node[row]);
	all->values[base].parts++;
	all->values[base].part_bytes = ops_sum(all->values[base].part_bytes, advice_input_bytes(&part));
	all->values[base].whole_bytes = whole > all->values[base].whole_bytes ? whole : all->values[base].whole_bytes;
}

static bool is_sliced(const struct sliced *value)
{
	return value->parts >= PARTS_MIN && value->part_bytes / value->parts <= value->whole_bytes / SMALLER;
}

static void add_gradient_of_part(struct sliced_values *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct ops_input part;
	uint32_t forward, base;
	const struct sliced *value;
	double whole, parts;

	if (!is_part_with_gradient(result, row, &forward, &base, &part))
		return;
	value = &all->values[base];
	if (!is_sliced(value))
		return;
	whole = PASSES * (double)value->whole_bytes * (1 - 1.0 / value->parts);
	parts = PART_PASSES * (double)value->part_bytes / value->parts;
	all->parts++;
	all->bytes = ops_sum(all->bytes, value->whole_bytes);
	if (value->whole_bytes > all->largest_bytes) {
		all->largest_bytes = value->whole_bytes;
		all->part = part;
	}
	result->claimed[forward] = 1;
	advice_add_share(result, forward, whole / (whole + parts) * advice_work_share(advice, forward));
}

static bool rule_slice_gradients_find(const struct advice *advice, struct advice_result *result)
{
	struct sliced_values all = {.values = ops_alloc_zeroed(advice->flow->memory.values.count + 1, sizeof(*all.values))};
	bool done = all.values != NULL;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		count_gradient_of_part(&all, result, row);
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_gradient_of_part(&all, result, row);
	if (done && all.parts)
		done = advice_report_costs(result, "%s taken of tensors one after another in each step, the largest of %s with parts of %s. Backward passes "
		                           "write a gradient of the whole tensor for each part, %s in total, and add them up, in %s.",
		                           advice_counted(advice, all.parts, "part is", "parts are").text,
		                           advice_bytes((double)all.largest_bytes).text,
		                           advice_describe_tensor(&all.part).text,
		                           advice_bytes((double)all.bytes / (double)advice->step_count).text, advice_cost(result).text);
	ops_free(all.values);
	return done;
}

const struct advice_rule advice_rule_slice_gradients = {
	.id = "gradients-of-parts",
	.title = "Each part of a tensor gets a gradient of the whole tensor",
	.condition = "Eight or more parts are taken of the same values by indexing (select, slice, index, gather), each at most a quarter of the tensor, and the "
		     "backward pass runs for each. Loops over rows that do not depend on each other are left to python-loop-over-rows.",
	.gain = "the share of whole tensors in the time of these operators, forward and backward, less one pass",
	.explanation = "The gradient of x[:, t] is as large as x: zeros, into which the gradient of the part is copied. Autograd adds up these gradients, so a "
		       "loop over all parts takes time with the square of their number.",
	.advice = "Take all parts with one operator before the loop: x.unbind(dim), x.split(size, dim) or x.chunk(n, dim), whose backward pass joins the gradients "
		  "of the parts. For rows by indices, index once with all of them, x[torch.cat(rows)], and split the result. To check: one backward node for all "
		  "parts.",
	.code = "for x in encoded.unbind(1):  # in place of encoded[:, t]\n"
		"    h = cell(x, h)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.unbind.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_REPEATED,
	.confidence = ADVICE_LIKELY,
	.names = names,
	.find = rule_slice_gradients_find,
};
