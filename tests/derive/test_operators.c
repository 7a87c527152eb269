/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of operators: each name once, formulas that agree with kinds, and names that are not operators.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "derive/operators.h"

#define ROWS_MAX 1000

static enum operator_kind kind_of_name(const char *name)
{
	return operator_rows[operator_find(ops_string_of(name))].kind;
}

/* A second row with the same name would never be found. */
static void finds_each_row_by_its_name(void **state)
{
	char name[128] = "aten::";
	size_t rows = 0;

	(void)state;
	for (size_t i = 1; i < operator_row_count; i++) {
		bool has_prefix = strstr(operator_rows[i].name, "::") || strstr(operator_rows[i].name, "Backward");

		assert_true(strlen(operator_rows[i].name) < sizeof(name) - 6);
		strcpy(name + 6, operator_rows[i].name);
		assert_int_equal(operator_find(ops_string_of(has_prefix ? name + 6 : name)), i);
		rows++;
	}
	assert_in_range(rows, 300, ROWS_MAX);
}

static void gives_formulas_to_operators_of_their_kind(void **state)
{
	static const struct {
		operator_formula *flops;
		enum operator_kind kind;
	} formulas[] = {{flops_matrix_product, OPERATOR_PRODUCT}, {flops_fused_linear, OPERATOR_PRODUCT},
	                {flops_convolution, OPERATOR_CONVOLUTION}, {flops_transposed_convolution, OPERATOR_CONVOLUTION},
	                {flops_convolution_backward, OPERATOR_CONVOLUTION}, {flops_fused_convolution, OPERATOR_CONVOLUTION},
	                {flops_attention, OPERATOR_ATTENTION}, {flops_recurrent, OPERATOR_RECURRENT}};

	(void)state;
	for (size_t i = 1; i < operator_row_count; i++) {
		for (size_t j = 0; j < sizeof(formulas) / sizeof(*formulas); j++)
			if (operator_rows[i].flops == formulas[j].flops)
				assert_int_equal(operator_rows[i].kind, formulas[j].kind);
		if (operator_rows[i].flops == flops_decomposition)
			assert_true(operator_factors(operator_rows[i].kind));
	}
}

static void knows_kinds(void **state)
{
	(void)state;
	assert_int_equal(kind_of_name("aten::linear"), OPERATOR_PRODUCT);
	assert_int_equal(kind_of_name("aten::conv_transpose2d"), OPERATOR_CONVOLUTION);
	assert_int_equal(kind_of_name("aten::linalg_svdvals"), OPERATOR_VALUES);
	assert_int_equal(kind_of_name("aten::linalg_vector_norm"), OPERATOR_REDUCES);
	assert_int_equal(kind_of_name("aten::cholesky_solve"), OPERATOR_SUBSTITUTES);
	assert_false(operator_factors(OPERATOR_SUBSTITUTES));
	assert_int_equal(kind_of_name("MmBackward0"), OPERATOR_PRODUCT);
	assert_int_equal(kind_of_name("mkldnn::_convolution_pointwise"), OPERATOR_CONVOLUTION);
	assert_int_equal(kind_of_name("detach"), OPERATOR_VIEWS); /* within aten::detach */
	/* Ranges and functions of programs. */
	assert_int_equal(operator_find(ops_string_of("mm")), 0);
	assert_int_equal(operator_find(ops_string_of("linear")), 0);
	assert_int_equal(operator_find(ops_string_of("aten::")), 0);
	assert_int_equal(operator_find(ops_string_of("aten::mm_of_something")), 0);
	assert_int_equal(operator_find((struct ops_string){NULL, 0}), 0);
}

static void fits_tensor_cores(void **state)
{
	size_t in_plugin = 0;

	(void)state;
	for (size_t i = 0; i < operator_row_count; i++)
		in_plugin += (operator_rows[i].flags & OPERATOR_IN_PLUGIN) != 0;
	assert_int_equal(in_plugin, 45); /* as many as the TensorBoard plugin lists */
	assert_true(operator_fits_tensor_cores(&operator_rows[operator_find(ops_string_of("aten::_cudnn_rnn"))]));
	assert_true(operator_fits_tensor_cores(&operator_rows[operator_find(ops_string_of("aten::prelu"))]));
	assert_false(operator_fits_tensor_cores(&operator_rows[operator_find(ops_string_of("aten::relu"))]));
	assert_false(operator_fits_tensor_cores(&operator_rows[0]));
}

static bool is_elementwise(const char *name)
{
	return operator_rows[operator_find(ops_string_of(name))].flags & OPERATOR_ELEMENTWISE;
}

static void knows_elementwise_operators(void **state)
{
	static const char *const elementwise[] = {"aten::add", "aten::rsub", "aten::div_", "aten::gelu", "aten::clamp", "aten::where", "aten::masked_fill"};
	static const char *const others[] = {"aten::copy_", "aten::sum", "aten::mm", "aten::embedding", "aten::cat", "aten::softmax", "aten::cumsum", "program"};

	(void)state;
	for (size_t i = 0; i < sizeof(elementwise) / sizeof(*elementwise); i++)
		assert_true(is_elementwise(elementwise[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(is_elementwise(others[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_each_row_by_its_name),
		cmocka_unit_test(gives_formulas_to_operators_of_their_kind),
		cmocka_unit_test(knows_kinds),
		cmocka_unit_test(fits_tensor_cores),
		cmocka_unit_test(knows_elementwise_operators),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
