/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice on accelerators, rules about operators and Python: they use the device's time for what an operator launches and
 * the device's wait for the host, not the time on the host.
 */
#include "device_trace.h"

#define STEPS 4
/* Float tensors of half a million elements. */
#define LARGE "\"Input Dims\": [[1024, 512], [1024, 512]], \"Input Strides\": [[512, 1], [512, 1]], "
#define FLOATS LARGE "\"Input type\": [\"float\", \"float\"]"
#define DOUBLES LARGE "\"Input type\": [\"double\", \"double\"]"

static void assert_near(double value, double expected)
{
	if (!(value >= expected * 0.98 - 0.001 && value <= expected * 1.02 + 0.001))
		fail_msg("%g is not %g", value, expected);
}

/* Operators of 10 us on the host, whose kernels take 100 us each: the device always has something to do. */
static char *advise_busy(const char *const *operators, const char *args)
{
	struct device_trace trace;

	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		size_t count = 0;

		while (operators[count])
			count++;
		device_trace_step(&trace, step, step * 100.0 * (double)count, 100.0 * (double)count - 1);
		for (size_t i = 0; i < count; i++)
			device_trace_work(&trace, operators[i], args, "kernel", "k", "", step * 100.0 * (double)count + 11.0 * (double)i, 100);
	}
	return device_trace_advise(&trace);
}

/* Scores of a batch of 8 with 12 heads and 197 positions. */
#define SCORES "\"Input Dims\": [[96, 197, 197], [96, 197, 64]], \"Input type\": [\"c10::BFloat16\", \"c10::BFloat16\"]"

/* Of 500 us the two between the products, except for a quarter of softmax; where sizes are known, except for the time that
 * 3.7 million exponentials take on 108 multiprocessors: 1.4 us. */
static void charges_attention_its_kernels(void **state)
{
	static const char *const operators[] = {"aten::bmm", "aten::div", "aten::softmax", "aten::bmm", "aten::relu", NULL};
	char *text = advise_busy(operators, "");

	(void)state;
	assert_near(finding_ms(text, "unfused-attention"), 0.175);
	ops_free(text);
	text = advise_busy(operators, SCORES);
	assert_near(finding_ms(text, "unfused-attention"), 0.1986);
	ops_free(text);
}

/* A softmax kernel of 5 ms between products of 0.1 ms, 12 times a step. */
static void puts_slow_softmax_first(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 62500.0;

		device_trace_step(&trace, step, at, 62499);
		for (int layer = 0; layer < 12; layer++) {
			double host = at + 60 * layer;

			device_trace_work(&trace, "aten::bmm", SCORES, "kernel", "gemm", "", host, 100);
			device_trace_work(&trace, "aten::_softmax", SCORES, "kernel", "void cunn_SoftMaxForward<8>", "", host + 20, 5000);
			device_trace_work(&trace, "aten::bmm", SCORES, "kernel", "gemm", "", host + 40, 100);
		}
	}
	text = device_trace_advise(&trace);
	assert_true(strstr(text, "\"id\":\"unfused-attention\"") == strstr(text, "\"id\":"));
	assert_true(finding_ms(text, "unfused-attention") > 59);
	ops_free(text);
}

/* Products and softmax inside scaled_dot_product_attention's own formula. */
static void finds_attention_without_a_fused_kernel(void **state)
{
	static const char *const operators[] = {"aten::matmul", "aten::softmax", "aten::matmul"};
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 300.0;

		device_trace_step(&trace, step, at, 299);
		device_trace_host(&trace, "cpu_op", "aten::scaled_dot_product_attention", at, 60);
		device_trace_host(&trace, "cpu_op", "aten::_scaled_dot_product_attention_math", at + 1, 58);
		for (int i = 0; i < 3; i++)
			device_trace_work(&trace, operators[i], SCORES, "kernel", "k", "", at + 5 + 15 * i, 100);
	}
	text = device_trace_advise(&trace);
	assert_near(finding_ms(text, "unfused-attention"), 0.0986);
	assert_non_null(strstr(text, "No fused kernel supports"));
	ops_free(text);
}

static void charges_double_precision_its_kernels(void **state)
{
	char *text = advise_busy((const char *const[]){"aten::mm", "aten::mm", NULL}, DOUBLES);

	(void)state;
	assert_near(finding_ms(text, "float64"), 0.1);
	assert_non_null(strstr(text, "\"confidence\":\"low\"")); /* nothing computes with a narrower type */
	ops_free(text);
}

/* A step of the optimizer by single operators: 20 of half a million elements each, 100 us of the device each. Fused, it takes as
 * long as two and a half of them for each of the ten parameters. */
static void charges_optimizers_their_kernels(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 3000.0;

		device_trace_step(&trace, step, at, 2999);
		for (int i = 0; i < 10; i++)
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 11 * i, 99);
		device_trace_host(&trace, "user_annotation", "Optimizer.step#SGD.step", at + 120, 400);
		for (int i = 0; i < 20; i++)
			device_trace_work(&trace, i < 10 ? "aten::mul_" : "aten::add_", FLOATS, "kernel", "k", "", at + 125 + 15 * i, 100);
	}
	text = device_trace_advise(&trace);
	/* Of the 2000 us, 2.5 times 1000 are more than there is: it pays for states that are larger, or for the host. */
	assert_true(finding_ms(text, "optimizer-loop") < 0);
	/* No processor is at work here. */
	assert_true(finding_ms(text, "denormals") < 0);
	assert_true(finding_ms(text, "thread-count") < 0);
	ops_free(text);
}

/* An optimizer that calls another, as wrappers for sharded parameters do: 400 us on the host, with 20 operators. */
static void charges_wrapped_optimizers_once(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 3000.0;

		device_trace_step(&trace, step, at, 2000);
		device_trace_host(&trace, "cpu_op", "aten::mm", at + 10, 1000);
		device_trace_host(&trace, "user_annotation", "Optimizer.step#Combined.step", at + 1100, 400);
		device_trace_host(&trace, "user_annotation", "Optimizer.step#Keyed.step", at + 1102, 396);
		device_trace_host(&trace, "user_annotation", "Optimizer.step#SGD.step", at + 1104, 392);
		for (int i = 0; i < 20; i++)
			device_trace_host(&trace, "cpu_op", i < 10 ? "aten::mul_" : "aten::add_", at + 1105 + 15 * i, 14);
	}
	text = device_trace_advise(&trace);
	assert_near(finding_ms(text, "optimizer-loop"), 0.4);
	assert_null(strstr(text, "not a class of torch.optim"));
	ops_free(text);
}

/* An optimizer of the program with a decomposition of 300 us, and 20 small operators in 100 us. */
static void knows_optimizers_of_the_program(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 3000.0;

		device_trace_step(&trace, step, at, 2000);
		device_trace_host(&trace, "user_annotation", "Optimizer.step#LowRank.step", at + 1100, 400);
		device_trace_host(&trace, "cpu_op", "aten::linalg_svd", at + 1100, 300);
		for (int i = 0; i < 20; i++)
			device_trace_host(&trace, "cpu_op", i < 10 ? "aten::mul_" : "aten::add_", at + 1401 + 4 * i, 3);
	}
	text = device_trace_advise(&trace);
	assert_float_equal(finding_ms(text, "optimizer-loop"), 0.1, 0.01);
	assert_non_null(strstr(text, "not a class of torch.optim"));
	ops_free(text);
}

/* Output of 400 us: hidden behind kernels that are queued, or not. */
static char *advise_output(bool hidden)
{
	struct device_trace trace;

	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double at = step * 1000.0;

		device_trace_step(&trace, step, at, 999);
		for (int i = 0; i < 10; i++)
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 11 * i, hidden ? 99 : 50);
		device_trace_host(&trace, "python_function", "<built-in function print>", at + (hidden ? 200 : 550), 400);
	}
	return device_trace_advise(&trace);
}

static void charges_output_the_wait_alone(void **state)
{
	char *text = advise_output(true);

	(void)state;
	assert_true(finding_ms(text, "logging-in-step") < 0);
	ops_free(text);
	text = advise_output(false);
	assert_near(finding_ms(text, "logging-in-step"), 0.4);
	ops_free(text);
}

/* Operators on processors of a trace that has a device, too, which are many times as slow as they should be; the same operators
 * with kernels are only late. */
static void tells_processors_from_devices(void **state)
{
	(void)state;
	for (int kernels = 0; kernels < 2; kernels++) {
		struct device_trace trace;
		char *text;

		device_trace_open(&trace);
		for (int step = 0; step < STEPS; step++) {
			double at = step * 10000.0;

			device_trace_step(&trace, step, at, 9999);
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 10, 20);
			device_trace_add(&trace, "python_function", "train.py(3): usual", 1, 1, at + 90, 150, "\"Python id\": 1");
			device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, at + 100, 100, FLOATS);
			device_trace_add(&trace, "python_function", "train.py(9): decay", 1, 1, at + 290, 8200,
			                 "\"Python id\": 2");
			for (int i = 0; i < 2; i++) {
				double us = at + 300 + 4000 * i;

				device_trace_add(&trace, "cpu_op", "aten::mul", 1, 1, us, 3900, FLOATS);
				if (kernels)
					device_trace_work(&trace, "aten::fill_", "", "kernel", "k", "", us + 3800, 20);
			}
		}
		text = device_trace_advise(&trace);
		assert_true((finding_ms(text, "denormals") > 0) == !kernels);
		ops_free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(charges_attention_its_kernels),
		cmocka_unit_test(puts_slow_softmax_first), cmocka_unit_test(finds_attention_without_a_fused_kernel), cmocka_unit_test(charges_double_precision_its_kernels),
		cmocka_unit_test(charges_optimizers_their_kernels), cmocka_unit_test(charges_wrapped_optimizers_once),
		cmocka_unit_test(knows_optimizers_of_the_program),
		cmocka_unit_test(charges_output_the_wait_alone),
		cmocka_unit_test(tells_processors_from_devices)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
