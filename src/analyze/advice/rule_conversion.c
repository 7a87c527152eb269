/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversions to another type and back, or to another memory layout and back, of the same number of elements in the
 * same step.
 */
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "base/text.h"

/* A conversion from one type or layout to another. Two conversions in a step undo each other if they have the same
 * `elements` and swapped ends. */
struct conversion {
	int64_t elements;
	uint64_t from, to;
	uint32_t step;
	uint32_t row;
};

struct conversions {
	OPS_ARRAY(struct conversion) items;
};

static int rule_conversion_compare(const void *a, const void *b)
{
	const struct conversion *left = a, *right = b;
	uint64_t left_low = left->from < left->to ? left->from : left->to;
	uint64_t right_low = right->from < right->to ? right->from : right->to;
	uint64_t left_high = left->from ^ left->to ^ left_low, right_high = right->from ^ right->to ^ right_low;

	if (left->step != right->step)
		return left->step < right->step ? -1 : 1;
	if (left->elements != right->elements)
		return left->elements < right->elements ? -1 : 1;
	if (left_low != right_low)
		return left_low < right_low ? -1 : 1;
	if (left_high != right_high)
		return left_high < right_high ? -1 : 1;
	return (left->row > right->row) - (left->row < right->row);
}

static bool rule_conversion_add_type(struct conversions *conversions, const struct advice *advice, uint32_t row)
{
	struct ops_input tensor, type;

	if (!advice_input(advice, row, 0, &tensor) || !advice_input(advice, row, 1, &type) || type.tag != OPS_INPUT_INT ||
	    ops_input_int(&type, 0) == tensor.dtype || advice_input_elements(&tensor) <= 0)
		return true;
	return OPS_ARRAY_APPEND(&conversions->items, (struct conversion){advice_input_elements(&tensor), tensor.dtype,
	                                                                 (uint64_t)ops_input_int(&type, 0), advice->step_of[row],
	                                                                 row});
}

#define DIMENSIONS_MAX 8

/* Computes hashes of the sizes in memory order and of the logical sizes. A copy converts between the two. */
static bool orders(const struct ops_input *tensor, uint64_t *ret_memory, uint64_t *ret_logical)
{
	int order[DIMENSIONS_MAX];
	bool sorted = true;

	if (tensor->tag != OPS_INPUT_TENSOR || tensor->n < 2 || tensor->n > DIMENSIONS_MAX)
		return false;
	*ret_memory = *ret_logical = 0;
	for (int i = 0; i < tensor->n; i++) {
		int at = i;

		for (; at > 0 && ops_input_int(tensor, (size_t)tensor->n + (size_t)order[at - 1]) <
		                         ops_input_int(tensor, (size_t)tensor->n + (size_t)i); at--)
			order[at] = order[at - 1];
		order[at] = i;
		sorted &= at == i;
	}
	for (int i = 0; i < tensor->n; i++) {
		*ret_memory = *ret_memory * 0x9e3779b97f4a7c15u + (uint64_t)ops_input_int(tensor, (size_t)order[i]);
		*ret_logical = *ret_logical * 0x9e3779b97f4a7c15u + (uint64_t)ops_input_int(tensor, (size_t)i);
	}
	return !sorted && *ret_memory != *ret_logical;
}

/* A Fourier transform of several dimensions reorders its data by itself. */
static bool is_in_transform(const struct advice *advice, uint32_t row)
{
	do
		row = advice->events->parent[row];
	while (row != OPS_NONE && advice_is_operator(advice, row) && !ops_string_starts(advice_name(advice, row), "aten::_fft_"));
	return row != OPS_NONE && advice_is_operator(advice, row);
}

static bool add_layout(struct conversions *conversions, const struct advice *advice, uint32_t row)
{
	struct ops_input tensor;
	uint64_t memory, logical;

	if (!advice_input(advice, row, 0, &tensor) || !orders(&tensor, &memory, &logical) || is_in_transform(advice, row))
		return true;
	return OPS_ARRAY_APPEND(&conversions->items, (struct conversion){advice_input_elements(&tensor), memory, logical,
	                                                                 advice->step_of[row], row});
}

/* Maximum distance between the two conversions, in rows. This is a call or two; over longer distances a model may
 * compute in the wider type on purpose. */
#define REACH 512

/* Adds operators between a conversion to a wider type and the one back, which would take less time in the narrower
 * type, in proportion to the bytes. */
static void add_between(struct advice_result *result, const struct conversion *to, const struct conversion *back)
{
	const struct advice *advice = result->advice;
	double narrow = (double)advice_dtype_bytes((uint8_t)to->from), wide = (double)advice_dtype_bytes((uint8_t)to->to);

	for (uint32_t row = to->row + 1; narrow < wide && row < back->row && row - to->row < REACH; row++) {
		uint8_t dtype = 0;

		if (advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR) && !advice_is_claimed(result, row) &&
		    advice->events->track[row] == advice->events->track[to->row] &&
		    advice_elements(advice, row, &dtype) == to->elements && dtype == to->to)
			advice_add_share(result, row, (1 - narrow / wide) * advice_work_share(advice, row));
	}
}

/* Adds all conversions of each group in a step that contains both directions. Returns their number. */
static uint64_t add_pairs(const struct conversions *conversions, struct advice_result *result, bool types)
{
	const struct conversion *items = conversions->items.items;
	size_t count = conversions->items.count;
	uint64_t copies = 0;

	for (size_t first = 0, next; first < count; first = next) {
		bool back = false;

		for (next = first + 1; next < count; next++) {
			bool same = items[next].step == items[first].step && items[next].elements == items[first].elements &&
			            items[next].from == items[first].from && items[next].to == items[first].to;
			bool reverse = items[next].step == items[first].step && items[next].elements == items[first].elements &&
			               items[next].from == items[first].to && items[next].to == items[first].from;

			back |= reverse;
			if (!same && !reverse)
				break;
		}
		for (size_t i = first; back && i < next; i++) {
			advice_add(result, items[i].row, advice_claim(result, items[i].row));
			copies++;
			if (types && i + 1 < next && items[i].from == items[i + 1].to)
				add_between(result, &items[i], &items[i + 1]);
		}
	}
	return copies;
}

static bool find_pairs(const struct advice *advice, struct advice_result *result,
                       bool (*add)(struct conversions *, const struct advice *, uint32_t), bool types)
{
	struct conversions conversions = {{0}};
	uint64_t copies = 0;
	bool done = true;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (result->which[advice->events->name[row]] && advice_counts(advice, row) && !advice_is_claimed(result, row) &&
		    !(advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_BACKWARD)))
			done = add(&conversions, advice, row);
	if (done && conversions.items.count) {
		qsort(conversions.items.items, conversions.items.count, sizeof(struct conversion), rule_conversion_compare);
		copies = add_pairs(&conversions, result, types);
	}
	done = done && advice_report_costs(result, "%s equally many elements to another %s and "
	                                           "back, in %s%s.",
	                                   advice_counted(advice, copies, "copy in each step converts", "copies in each step convert").text,
	                                   types ? "type" : "memory layout",
	                                   advice_cost(result).text,
	                                   types ? " including the cost of the wider type for the operators in between" : "");
	OPS_ARRAY_RELEASE(&conversions.items);
	return done;
}

static bool find_types(const struct advice *advice, struct advice_result *result)
{
	return find_pairs(advice, result, rule_conversion_add_type, true);
}

static bool find_layouts(const struct advice *advice, struct advice_result *result)
{
	return find_pairs(advice, result, add_layout, false);
}

const struct advice_rule advice_rule_types = {
	.id = "type-conversions",
	.title = "Tensors are converted to another type and back",
	.condition = "A step converts equally many elements to another type and back.",
	.gain = "the time of the conversions and of the wider type in between, forward and backward",
	.explanation = "Each conversion reads and writes all elements, and computes nothing.",
	.advice = "Use one type from the input on. Convert parameters once, before the loop, and let torch.autocast choose the "
		       "type for each operator. To check: fewer aten::_to_copy in a step.",
	.link = "https://docs.pytorch.org/docs/stable/amp.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.bound = ADVICE_AT_LEAST,
	.stage = ADVICE_STAGE_COPIES,
	.confidence = ADVICE_LIKELY,
	.names = (const char *const[]){"aten::_to_copy", NULL},
	.find = find_types,
};

const struct advice_rule advice_rule_layouts = {
	.id = "layout-conversions",
	.title = "Tensors are copied to another memory layout and back",
	.condition = "A step copies equally many elements to another memory layout and back.",
	.gain = "the time of the copies, forward and backward",
	.explanation = "transpose and permute are free, but .contiguous(), .reshape() and some operators then copy all "
		       "elements, in an order that is slow for memory.",
	.advice = "Leave the tensor as it is where operators accept strides (matmul, einsum, scaled_dot_product_attention), or "
		       "use one layout throughout (channels_last for convolutions). To check: fewer aten::clone in a step.",
	.link = "https://docs.pytorch.org/tutorials/intermediate/memory_format_tutorial.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_COPIES,
	.confidence = ADVICE_LIKELY,
	.names = (const char *const[]){"aten::clone", NULL},
	.find = find_layouts,
};
