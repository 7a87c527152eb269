/* SPDX-License-Identifier: Apache-2.0
 *
 * Effects of operators by their names; see operator_effects.h. Schemas show which inputs an operator writes to, but
 * neither whether it reads them nor which elements.
 */
#include "analyze/flow/operator_effects.h"

#include "base/text.h"
#include "derive/operator_call.h"

static const struct {
	const char *name; /* without "aten::" */
	enum operator_effect effect;
} effects[] = {
	{"diagonal", EFFECT_NARROWS},
	{"select", EFFECT_NARROWS},
	{"slice", EFFECT_NARROWS},
	{"narrow", EFFECT_NARROWS},

	{"alias", EFFECT_VIEWS},
	{"as_strided", EFFECT_VIEWS},
	{"chunk", EFFECT_VIEWS},
	{"detach", EFFECT_VIEWS},
	{"detach_", EFFECT_VIEWS},
	{"expand", EFFECT_VIEWS},
	{"expand_as", EFFECT_VIEWS},
	{"imag", EFFECT_VIEWS},
	{"lift_fresh", EFFECT_VIEWS},
	{"mT", EFFECT_VIEWS},
	{"movedim", EFFECT_VIEWS},
	{"numpy_T", EFFECT_VIEWS},
	{"permute", EFFECT_VIEWS},
	{"real", EFFECT_VIEWS},
	{"requires_grad_", EFFECT_VIEWS},
	{"set_", EFFECT_VIEWS},
	{"split", EFFECT_VIEWS},
	{"split_with_sizes", EFFECT_VIEWS},
	{"squeeze", EFFECT_VIEWS},
	{"swapaxes", EFFECT_VIEWS},
	{"t", EFFECT_VIEWS},
	{"tensor_split", EFFECT_VIEWS},
	{"transpose", EFFECT_VIEWS},
	{"unbind", EFFECT_VIEWS},
	{"unflatten", EFFECT_VIEWS},
	{"unfold", EFFECT_VIEWS},
	{"unsqueeze", EFFECT_VIEWS},
	{"view", EFFECT_VIEWS},
	{"view_as", EFFECT_VIEWS},
	{"view_as_complex", EFFECT_VIEWS},
	{"view_as_real", EFFECT_VIEWS},
	{"_reshape_alias", EFFECT_VIEWS},
	{"_unsafe_view", EFFECT_VIEWS},

	{"contiguous", EFFECT_MAY_VIEW},
	{"flatten", EFFECT_MAY_VIEW},
	{"reshape", EFFECT_MAY_VIEW},
	{"resolve_conj", EFFECT_MAY_VIEW},
	{"resolve_neg", EFFECT_MAY_VIEW},
	{"to", EFFECT_MAY_VIEW},
	{"type_as", EFFECT_MAY_VIEW},

	{"diag", EFFECT_SELECTS},
	{"diagonal_copy", EFFECT_SELECTS},
	{"embedding", EFFECT_SELECTS},
	{"gather", EFFECT_SELECTS},
	{"index", EFFECT_SELECTS},
	{"index_select", EFFECT_SELECTS},
	{"masked_select", EFFECT_SELECTS},
	{"take", EFFECT_SELECTS},
	{"take_along_dim", EFFECT_SELECTS},
	{"trace", EFFECT_SELECTS},

	{"empty", EFFECT_ALLOCATES},
	{"empty_like", EFFECT_ALLOCATES},
	{"empty_strided", EFFECT_ALLOCATES},
	{"new_empty", EFFECT_ALLOCATES},
	{"new_empty_strided", EFFECT_ALLOCATES},
	{"resize_", EFFECT_ALLOCATES},

	{"bernoulli_", EFFECT_OVERWRITES},
	{"copy_", EFFECT_OVERWRITES},
	{"exponential_", EFFECT_OVERWRITES},
	{"fill_", EFFECT_OVERWRITES},
	{"normal_", EFFECT_OVERWRITES},
	{"random_", EFFECT_OVERWRITES},
	{"uniform_", EFFECT_OVERWRITES},
	{"zero_", EFFECT_OVERWRITES},
	{"_foreach_zero_", EFFECT_OVERWRITES},
};

enum operator_effect operator_effect_of(struct ops_string name)
{
	/* Operators within aten::detach are called "detach". */
	if (ops_string_starts(name, "aten::")) {
		name.bytes += sizeof("aten::") - 1;
		name.size -= sizeof("aten::") - 1;
	}
	for (size_t i = 0; i < sizeof(effects) / sizeof(*effects); i++)
		if (ops_string_is(name, effects[i].name))
			return effects[i].effect;
	return EFFECT_READS;
}

static int64_t whole_at(const struct ops_input *input, int64_t default_value)
{
	return input->tag == OPS_INPUT_INT ? ops_input_int(input, 0) : default_value;
}

/* Returns how many of `size` elements the slice [start:end:step] selects, as in Python. */
static int64_t sliced(int64_t size, int64_t start, int64_t end, int64_t step)
{
	start = start < 0 ? ops_sum(start, size) : start;
	start = start < 0 ? 0 : start < size ? start : size;
	end = end < 0 ? ops_sum(end, size) : end;
	end = end < start ? start : end < size ? end : size;
	return step > 0 ? (end - start) / step + ((end - start) % step != 0) : 0;
}

/* Returns the elements of a diagonal of two dimensions, by default the first two, in all others. */
static int64_t diagonal_elements(const struct ops_input *tensor, const struct ops_input *arguments, size_t count)
{
	int64_t offset = count > 0 ? whole_at(&arguments[0], 0) : 0, left = 1;
	int64_t dimensions[2] = {count > 1 ? whole_at(&arguments[1], 0) : 0, count > 2 ? whole_at(&arguments[2], 1) : 1};
	int64_t sizes[2];

	for (int i = 0; i < 2; i++) {
		dimensions[i] += dimensions[i] < 0 ? tensor->n : 0;
		if (dimensions[i] < 0 || dimensions[i] >= tensor->n)
			return -1;
		sizes[i] = ops_input_int(tensor, (size_t)dimensions[i]);
	}
	sizes[0] += offset < 0 ? offset : 0;
	sizes[1] -= offset > 0 ? offset : 0;
	for (int64_t i = 0; i < tensor->n; i++)
		left = i == dimensions[0] || i == dimensions[1] ? left : ops_product(left, ops_input_int(tensor, (size_t)i));
	sizes[0] = sizes[0] < sizes[1] ? sizes[0] : sizes[1];
	return ops_product(left, sizes[0] > 0 ? sizes[0] : 0);
}

int64_t operator_narrowed_elements(struct ops_string name, struct ops_string inputs)
{
	struct ops_input_cursor cursor = ops_inputs_open(inputs.bytes, inputs.size);
	struct ops_input tensor, arguments[4];
	size_t count = 0;
	int64_t dimension, size, left;

	if (!ops_inputs_next(&cursor, &tensor) || !ops_input_is_tensor(tensor.tag) ||
	    operator_has_negative_size(&tensor))
		return -1;
	while (count < 4 && ops_inputs_next(&cursor, &arguments[count]))
		count++;
	if (ops_string_is(name, "aten::diagonal"))
		return diagonal_elements(&tensor, arguments, count);
	dimension = count ? whole_at(&arguments[0], INT64_MIN) : INT64_MIN;
	dimension += dimension < 0 ? tensor.n : 0;
	if (count < 2 || dimension < 0 || dimension >= tensor.n)
		return -1;
	size = ops_input_int(&tensor, (size_t)dimension);
	if (ops_string_is(name, "aten::select"))
		left = size > 0;
	else if (ops_string_is(name, "aten::slice"))
		left = sliced(size, whole_at(&arguments[1], 0), count > 2 ? whole_at(&arguments[2], INT64_MAX) : INT64_MAX,
		              count > 3 ? whole_at(&arguments[3], 1) : 1);
	else
		left = count > 2 ? whole_at(&arguments[2], size) : size;
	left = left < 0 ? 0 : left < size ? left : size;
	return ops_product(ops_product(operator_elements(&tensor, 0, (size_t)dimension), left),
	                   operator_elements(&tensor, (size_t)dimension + 1, tensor.n));
}
