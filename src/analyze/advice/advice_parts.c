/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of a storage an operator reads. Recordings have the storage and the shape of each input, not its offset, so a part is
 * identified by the views that created it:
 *
 *     aten::slice(words, 1, 0, -1) ──▶ 760 elements of words ──▶ aten::embedding
 *
 * Two views of equal size that were both created before one of them is read cannot be distinguished. The first read after them then
 * counts as a different part than the second one, so that only the same sequence of views and reads gives the same parts.
 */
#include "analyze/advice/advice_parts.h"
#include "base/text.h"

/* The order of both matters. */
static uint64_t parts_mix(uint64_t a, uint64_t b)
{
	a = (a * 3 ^ b) * 0x9e3779b97f4a7c15u;
	return a ^ a >> 29;
}

static struct advice_part *part_slot(struct advice_parts *parts, uint64_t address, int64_t elements, bool adds)
{
	uint64_t key = parts_mix(address + 1, (uint64_t)elements);

	if (!adds && ops_map_find(&parts->slots, key) == OPS_NONE)
		return NULL;
	return OPS_ARRAY_AT(&parts->items, ops_map_number(&parts->slots, key));
}

uint64_t advice_part_read(struct advice_parts *parts, uint64_t address, uint64_t number, int64_t elements)
{
	struct advice_part *part = part_slot(parts, address, elements, false);
	uint64_t key;

	if (!part || part->number != number)
		return 0;
	part->read = true;
	key = part->several ? parts_mix(part->key, ++part->reads) : part->key;
	return key | 1;
}

/* Returns the number of elements in each view that an operator creates of its first input; -1: it creates none, or unknown ones. */
static int64_t viewed_elements(const struct advice *advice, uint32_t row, const struct ops_input *tensor, bool *ret_several)
{
	static const char *const same[] = {"aten::transpose", "aten::permute", "aten::t", "aten::unsqueeze", "aten::squeeze", "aten::view", "aten::reshape",
	                                   "aten::flatten", "aten::movedim", "aten::detach", NULL};
	struct ops_string name = advice_name(advice, row);
	int64_t elements = advice_input_elements(tensor);
	struct ops_input argument;

	*ret_several = false;
	if (advice_kind(advice, row) == OPERATOR_NARROWS)
		return data_flow_narrowed_elements(name, ops_trace_inputs(advice->trace, advice->events->inputs[row]));
	if (advice_text_like(name, same))
		return elements;
	*ret_several = true;
	if (!advice_input(advice, row, 1, &argument))
		argument.tag = OPS_INPUT_NONE;
	if (ops_string_is(name, "aten::unbind") && tensor->n && argument.tag == OPS_INPUT_INT) {
		int64_t dimension = ops_input_int(&argument, 0) + (ops_input_int(&argument, 0) < 0 ? tensor->n : 0);
		int64_t size = dimension >= 0 && dimension < tensor->n ? ops_input_int(tensor, (size_t)dimension) : 0;

		return size > 0 ? elements / size : -1;
	}
	if (ops_string_is(name, "aten::chunk") && argument.tag == OPS_INPUT_INT && ops_input_int(&argument, 0) > 0)
		return elements / ops_input_int(&argument, 0);
	return -1;
}

static bool parts_add(struct advice_parts *parts, uint64_t address, uint64_t number, uint64_t key, int64_t elements, bool several)
{
	struct advice_part *part = part_slot(parts, address, elements, true);

	if (!part)
		return false;
	if (part->read || part->number != number)
		*part = (struct advice_part){.number = number};
	part->several |= several || (part->key && part->key != key);
	part->key = part->key && part->key != key ? parts_mix(part->key, key) : key;
	return true;
}

/* Adds the views of aten::split_with_sizes(tensor, sizes, dimension). */
static bool parts_add_sizes(struct advice_parts *parts, const struct advice *advice, uint32_t row, const struct ops_input *tensor, uint64_t address,
                            uint64_t number, uint64_t key)
{
	struct ops_input sizes, dimension;
	int64_t elements = advice_input_elements(tensor), at, size;
	bool done = true;

	if (!advice_input(advice, row, 1, &sizes) || sizes.tag != OPS_INPUT_INT_LIST || !advice_input(advice, row, 2, &dimension) ||
	    dimension.tag != OPS_INPUT_INT)
		return true;
	at = ops_input_int(&dimension, 0) + (ops_input_int(&dimension, 0) < 0 ? tensor->n : 0);
	size = at >= 0 && at < tensor->n ? ops_input_int(tensor, (size_t)at) : 0;
	for (size_t i = 0; done && size > 0 && i < sizes.n; i++)
		done = ops_input_int(&sizes, i) <= 0 ||
		       parts_add(parts, address, number, parts_mix(key, i), elements / size * ops_input_int(&sizes, i), false);
	return done;
}

bool advice_parts_follow(struct advice_parts *parts, const struct advice *advice, uint32_t row, uint64_t address, uint64_t number, uint64_t base)
{
	uint64_t key = parts_mix(parts_mix(advice->events->name[row] + 1, advice->events->inputs[row]), base);
	struct ops_input tensor;
	int64_t elements;
	bool several;

	if (!address || !advice_input(advice, row, 0, &tensor) || !ops_input_is_tensor(tensor.tag))
		return true;
	if (ops_string_is(advice_name(advice, row), "aten::split_with_sizes"))
		return parts_add_sizes(parts, advice, row, &tensor, address, number, key);
	elements = viewed_elements(advice, row, &tensor, &several);
	return elements <= 0 || parts_add(parts, address, number, key, elements, several);
}

void advice_parts_release(struct advice_parts *parts)
{
	ops_map_release(&parts->slots);
	OPS_ARRAY_RELEASE(&parts->items);
	*parts = (struct advice_parts){0};
}
