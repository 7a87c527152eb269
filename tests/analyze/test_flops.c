/* SPDX-License-Identifier: Apache-2.0
 *
 * derive/flops: what counts once, what is unknown, and arguments that no program has. flops_against_torch.py checks the
 * formulas.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../trace/random.h"
#include "base/alloc.h"
#include "derive/flops.h"
#include "derive/operators.h"
#include "scene.h"

/* An event of kind "operator" with the inputs of the list. */
static void put_event(struct ops_builder *b, const char *name, int64_t start_ns, int64_t end_ns, const struct list *list)
{
	struct ops_new_event event = scene_event(b, 0, name, start_ns, end_ns);

	event.inputs = ops_builder_inputs(b, list->bytes, list->size);
	assert_int_not_equal(event.inputs, OPS_NONE);
	ops_builder_event(b, &event);
}

static int64_t flops_of(const char *name, const struct list *list)
{
	struct ops_builder *b = scene_open();
	struct ops_trace *trace;
	int64_t flops;

	put_event(b, name, 0, 10, list);
	trace = scene_close(b);
	flops = ops_event_flops(trace, 0);
	ops_trace_unref(trace);
	return flops;
}

static void put_matrices(struct list *list, int64_t rows, int64_t inner, int64_t inner_again, int64_t columns)
{
	list_open(list, 2);
	put_tensor(list, 6, 2, (const int64_t[]){rows, inner, inner, 1});
	put_tensor(list, 6, 2, (const int64_t[]){inner_again, columns, columns, 1});
}

static void products_of_matrices(void **state)
{
	struct list list;

	(void)state;
	put_matrices(&list, 3, 4, 4, 5);
	assert_int_equal(flops_of("aten::mm", &list), 120);
	assert_int_equal(flops_of("aten::mmm", &list), 0);
	assert_int_equal(flops_of("aten::m", &list), 0);
	assert_int_equal(flops_of("aten::", &list), 0);
	assert_int_equal(flops_of("mm", &list), 0);
	put_matrices(&list, 3, 4, 5, 5);
	assert_int_equal(flops_of("aten::mm", &list), 0);
	put_matrices(&list, 0, 4, 4, 5);
	assert_int_equal(flops_of("aten::mm", &list), 0);
}

static void huge_sizes_stop_at_the_end(void **state)
{
	struct list list;

	(void)state;
	put_matrices(&list, INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX);
	assert_int_equal(flops_of("aten::mm", &list), INT64_MAX);
	assert_int_equal(flops_of("aten::add", &list), INT64_MAX);
	put_matrices(&list, -3, 4, 4, -5);
	assert_int_equal(flops_of("aten::mm", &list), 0);
	assert_int_equal(flops_of("aten::mul", &list), 0);
}

static void convolution_with(struct list *list, int64_t stride, int64_t padding, int64_t dilation)
{
	list_open(list, 7);
	put_tensor(list, 6, 4, (const int64_t[]){1, 3, 8, 8, 192, 64, 8, 1});
	put_tensor(list, 6, 4, (const int64_t[]){4, 3, 3, 3, 27, 9, 3, 1});
	put_head(list, OPS_INPUT_NONE, 0, 0);
	put_int_list(list, 2, (const int64_t[]){stride, stride});
	put_int_list(list, 2, (const int64_t[]){padding, padding});
	put_int_list(list, 2, (const int64_t[]){dilation, dilation});
	put_int(list, 1);
}

static void convolutions_with_odd_arguments(void **state)
{
	static const int64_t odd[][3] = {{0, 0, 1}, {-1, 0, 1}, {1, -1, 1}, {1, 0, 0}, {1, 0, -1}};
	struct list list;

	(void)state;
	convolution_with(&list, 1, 0, 1);
	assert_int_equal(flops_of("aten::conv2d", &list), 2 * 36 * 108);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		convolution_with(&list, odd[i][0], odd[i][1], odd[i][2]);
		assert_int_equal(flops_of("aten::conv2d", &list), 0);
	}
	convolution_with(&list, 1, 0, INT64_MAX); /* the kernel does not fit */
	assert_int_equal(flops_of("aten::conv2d", &list), 0);
	convolution_with(&list, 1, INT64_MAX, 1);
	assert_int_equal(flops_of("aten::conv2d", &list), INT64_MAX);
	convolution_with(&list, INT64_MAX, 0, 1);
	assert_int_equal(flops_of("aten::conv2d", &list), 2 * 108);
}

/* The same call at several levels, as torch dispatches it. */
static void a_call_counts_at_the_outermost_operator_that_knows(void **state)
{
	struct ops_builder *b = scene_open();
	struct list list, unknown;
	struct ops_trace *trace;
	const uint16_t *operators;

	(void)state;
	convolution_with(&list, 1, 0, 1);
	list_open(&unknown, 7);
	put_tensor(&unknown, 6, 4, (const int64_t[]){1, 3, 8, 8, 192, 64, 8, 1});
	put_tensor(&unknown, 6, 4, (const int64_t[]){4, 3, 3, 3, 27, 9, 3, 1});
	for (int i = 0; i < 5; i++)
		put_head(&unknown, OPS_INPUT_NONE, 0, 0);
	put_event(b, "aten::conv2d", 0, 100, &list);
	put_event(b, "in between", 5, 95, &list);
	put_event(b, "aten::_convolution", 10, 90, &list);
	put_event(b, "aten::conv3d", 200, 300, &unknown);
	put_event(b, "aten::convolution", 210, 290, &list);
	put_event(b, "aten::conv1d", 220, 280, &list);
	trace = scene_close(b);
	operators = ops_operators_of(trace);
	assert_non_null(operators);
	for (uint32_t row = 0; row < 6; row++) {
		int64_t expected = row == 0 || row == 4 ? 2 * 36 * 108 : 0;

		assert_int_equal(ops_event_flops(trace, row), expected);
		assert_int_equal(ops_flops_of(trace, row, operators), expected);
	}
	ops_trace_unref(trace);
}

static void only_operators_count(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_new_event event = scene_event(b, 0, "aten::mm", 0, 10);
	struct ops_trace *trace;
	struct list list;

	(void)state;
	put_matrices(&list, 3, 4, 4, 5);
	event.inputs = ops_builder_inputs(b, list.bytes, list.size);
	event.kind = OPS_EVENT_USER_ANNOTATION;
	ops_builder_event(b, &event);
	scene_op(b, 0, "aten::mm", 20, 30);
	trace = scene_close(b);
	assert_int_equal(ops_event_flops(trace, 0), 0);
	assert_int_equal(ops_event_flops(trace, 1), 0);
	ops_trace_unref(trace);
}

static void put_random_item(struct random *random, struct list *list)
{
	int64_t numbers[12];
	uint16_t n = (uint16_t)random_below(random, 6);

	for (size_t i = 0; i < 12; i++)
		numbers[i] = random_below(random, 20) ? random_below(random, 9) : INT64_MIN + (int64_t)random_below(random, 9);
	switch (random_below(random, 7)) {
	case 0:
		put_plain_tensor(list, 6, n, numbers);
		break;
	case 1:
		put_int_list(list, n, numbers);
		break;
	case 2:
		put_bool(list, n & 1);
		break;
	case 3:
		put_head(list, OPS_INPUT_SCALAR_LIST, 0, 2);
		put_bool(list, 1);
		put_bool(list, n & 1);
		break;
	case 4:
		put_head(list, OPS_INPUT_NONE, 0, 0);
		break;
	default:
		put_tensor(list, 6, n, numbers);
	}
}

/* Any arguments at all, for every formula: nothing is read that is not there. */
static void any_arguments(void **state)
{
	static const char *const names[] = {
		"aten::add", "aten::mm", "aten::bmm", "aten::addmm", "aten::baddbmm", "aten::mv", "aten::addmv", "aten::dot",
		"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution", "aten::cudnn_convolution",
		"aten::_slow_conv2d_forward", "aten::conv_transpose2d", "aten::convolution_backward",
		"aten::_scaled_dot_product_flash_attention", "aten::_flash_attention_forward",
		"aten::_efficient_attention_backward",
	};
	struct random random = {7};
	int known = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint32_t count = random_below(&random, 15);
		struct list list;

		list_open(&list, count);
		for (uint32_t n = 0; n < count; n++)
			put_random_item(&random, &list);
		known += flops_of(names[random_below(&random, sizeof(names) / sizeof(names[0]))], &list) != 0;
	}
	assert_true(known > 100);
}

/* Tables omit these operators, so this gets the demand of a call. */
static int64_t demanded_flops(const char *name, const struct list *list)
{
	struct ops_builder *b = scene_open();
	struct ops_demand demand = {.flops = -1};
	struct ops_trace *trace;
	bool known;

	put_event(b, name, 0, 10, list);
	trace = scene_close(b);
	known = ops_demand_of(trace, 0, NULL, &demand);
	assert_int_equal(ops_event_flops(trace, 0), 0);
	ops_trace_unref(trace);
	return known ? demand.flops : -1;
}

static void put_matrix(struct list *list, int64_t rows, int64_t columns)
{
	list_open(list, 1);
	put_tensor(list, 6, 2, (const int64_t[]){rows, columns, columns, 1});
}

static void decompositions(void **state)
{
	struct list list;

	(void)state;
	put_matrix(&list, 30, 30);
	assert_int_equal(demanded_flops("aten::linalg_cholesky_ex", &list), 9000);
	assert_int_equal(demanded_flops("aten::linalg_lu_factor_ex", &list), 18000);
	assert_int_equal(demanded_flops("aten::linalg_inv_ex", &list), 54000);
	assert_int_equal(demanded_flops("aten::_linalg_eigh", &list), 36000);
	put_matrix(&list, 60, 30);
	assert_int_equal(demanded_flops("aten::linalg_qr", &list), 2 * 60 * 900 - 18000);
	assert_int_equal(demanded_flops("aten::_linalg_svd", &list), 4 * 60 * 900 - 36000);
	put_matrix(&list, 30, 60);
	assert_int_equal(demanded_flops("aten::_linalg_svd", &list), 4 * 60 * 900 - 36000);
	put_matrix(&list, INT64_MAX, INT64_MAX);
	assert_true(demanded_flops("aten::_linalg_svd", &list) >= INT64_MAX / 3);
	put_matrices(&list, 30, 30, 30, 5);
	assert_int_equal(demanded_flops("aten::_linalg_solve_ex", &list), 18000 + 2 * 900 * 5);
	put_matrix(&list, 30, 30);
	assert_true(demanded_flops("aten::_linalg_solve_ex", &list) <= 0);
}

static void fourier_transforms(void **state)
{
	struct list list;

	(void)state;
	list_open(&list, 2);
	put_tensor(&list, 6, 2, (const int64_t[]){3, 1024, 1024, 1});
	put_int_list(&list, 1, (const int64_t[]){-1});
	assert_int_equal(demanded_flops("aten::_fft_r2c", &list), 5 * 3 * 1024 * 10 / 2);
	assert_int_equal(demanded_flops("aten::_fft_c2c", &list), 5 * 3 * 1024 * 10);
	list_open(&list, 2);
	put_tensor(&list, 6, 2, (const int64_t[]){3, 1024, 1024, 1});
	put_int_list(&list, 1, (const int64_t[]){2});
	assert_true(demanded_flops("aten::_fft_c2c", &list) <= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_of_matrices),
		cmocka_unit_test(huge_sizes_stop_at_the_end),
		cmocka_unit_test(convolutions_with_odd_arguments),
		cmocka_unit_test(a_call_counts_at_the_outermost_operator_that_knows),
		cmocka_unit_test(only_operators_count),
		cmocka_unit_test(any_arguments),
		cmocka_unit_test(decompositions),
		cmocka_unit_test(fourier_transforms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
