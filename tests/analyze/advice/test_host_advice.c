/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice on programs without devices: denormal numbers, memory near its limit, slow first steps, and waits for the
 * processor, for which the program is not responsible.
 */
#include "device_trace.h"

#include "../../base/failing.h"
#include "asking.h"

#define STEPS 8

static void open_trace(struct device_trace *trace, const char *machine)
{
	*trace = (struct device_trace){.correlation = 1};
	ops_buffer_printf(&trace->text,
	                  "{\"machine\": {%s}, \"traceEvents\": [\n"
	                  "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}", machine);
}

/* Each step has one usual operator and four slow ones. */
static double denormals_ms(const char *machine)
{
	static const char tensors[] = "\"Input Dims\": [[100000], [100000]], \"Input Strides\": [[1], [1]], "
				      "\"Input type\": [\"float\", \"float\"]";
	struct device_trace trace;
	char *json;
	double ms;

	open_trace(&trace, machine);
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 3000 * step;

		device_trace_step(&trace, step, us, 2990);
		device_trace_add(&trace, "python_function", "train.py(3): usual", 1, 1, us + 5, 50, "\"Python id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, us + 10, 30, tensors);
		device_trace_add(&trace, "python_function", "train.py(9): decay", 1, 1, us + 90, 2700, "\"Python id\": 2");
		for (int i = 0; i < 4; i++)
			device_trace_add(&trace, "cpu_op", "aten::mul", 1, 1, us + 100 + 650 * i, 600, tensors);
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "denormals");
	ops_free(json);
	return ms;
}

static void finds_denormals(void **state)
{
	(void)state;
	assert_float_equal(denormals_ms("\"threads\": 1"), 4 * 0.57, 0.001);
}

/* The operators may have waited for a thread that waited for a processor, unless they have only one. */
static void does_not_take_starved_threads_for_denormals(void **state)
{
	static const char waits[] = "[0, 2500000, 400000, 0, 0], [1, 2500000, 400000, 0, 0], [2, 2500000, 400000, 0, 0], "
				    "[3, 2500000, 400000, 0, 0], [4, 2500000, 400000, 0, 0], [5, 2500000, 400000, 0, 0], "
				    "[6, 2500000, 400000, 0, 0], [7, 2500000, 400000, 0, 0]";
	char machine[768];

	(void)state;
	for (int threads = 1; threads <= 2; threads++) {
		snprintf(machine, sizeof(machine), "\"threads\": %d, \"steps\": [%s]", threads, waits);
		assert_true((denormals_ms(machine) > 1) == (threads == 1));
	}
}

/* Operators that are slow for another reason: their result is new memory, they are too short to show it, or all are slow. */
static void knows_what_is_slow_without_denormals(void **state)
{
	static const int elements[] = {100000, 10000, 100000};
	static const double each_ns[] = {6.5, 6.5, 25}, other_ns[] = {0.1, 0.1, 10};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		char tensors[128], *json;
		struct device_trace trace;

		snprintf(tensors, sizeof(tensors), "\"Input Dims\": [[%d]], \"Input Strides\": [[1]], \"Input type\": [\"float\"]", elements[i]);
		open_trace(&trace, "\"threads\": 1, \"page_ns\": 2600");
		for (int step = 0; step < STEPS; step++) {
			double us = 10 + 5000 * step;

			device_trace_step(&trace, step, us, 4990);
			device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, us + 10, elements[i] * other_ns[i] / 1000, tensors);
			device_trace_add(&trace, "cpu_op", "aten::relu", 1, 1, us + 1100, elements[i] * each_ns[i] / 1000, tensors);
		}
		json = device_trace_advise(&trace);
		assert_true(finding_ms(json, "denormals") < 0);
		ops_free(json);
	}
}

/* Each step has an operator at line 9, for 20 million FLOPs: float32 takes 20 us at the roof. */
static double integers_ms(const char *name, const char *type, double duration_us)
{
	static const char roofs[] = "\"threads\": 1}, \"roof\": {\"flops\": {\"float32\": 1e12}, \"bandwidth\": 1e12, \"call_us\": 1";
	char tensors[192], *json;
	struct device_trace trace;
	double ms;

	snprintf(tensors, sizeof(tensors),
	         "\"Input Dims\": [[100, 1000], [1000, 100]], \"Input Strides\": [[1000, 1], [100, 1]], \"Input type\": [\"%s\", \"%s\"]", type, type);
	open_trace(&trace, roofs);
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 3000 * step;

		device_trace_step(&trace, step, us, 2990);
		device_trace_add(&trace, "python_function", "train.py(9): count", 1, 1, us + 900, duration_us + 10, "\"Python id\": 1");
		device_trace_add(&trace, "cpu_op", name, 1, 1, us + 905, duration_us, tensors);
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "integer-products");
	ops_free(json);
	return ms;
}

static void finds_products_of_integers(void **state)
{
	(void)state;
	assert_float_equal(integers_ms("aten::mm", "long int", 600), 0.6 - 0.02, 0.001);
	assert_true(integers_ms("aten::mm", "long int", 100) < 0);
	assert_true(integers_ms("aten::mm", "float", 600) < 0);
	assert_true(integers_ms("aten::add", "long int", 600) < 0);
}

/* A call in each step of an operator on 2^20 bytes, whose lower bound is 1 or 2 us. Other arguments are in `arguments`. */
static char *advise_slow(const char *name, const char *dims, const char *strides, const char *arguments, double duration_us)
{
	static const char roofs[] = "\"threads\": 1}, \"roof\": {\"flops\": {\"float32\": 1e12}, \"bandwidth\": 1e12, \"call_us\": 1";
	char values[384], *json;
	struct device_trace trace;

	snprintf(values, sizeof(values), "\"Input Dims\": [[%s], []], \"Input Strides\": [[%s], []], \"Input type\": [\"float\", \"%s\"], "
	         "\"Concrete Inputs\": [\"\", \"%s\"]", dims, strides, *arguments == '[' ? "ScalarList" : "Scalar", arguments);
	open_trace(&trace, roofs);
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 3000 * step;

		device_trace_step(&trace, step, us, 2990);
		device_trace_add(&trace, "python_function", "train.py(9): f", 1, 1, us + 900, duration_us + 10, "\"Python id\": 1");
		device_trace_add(&trace, "cpu_op", name, 1, 1, us + 905, duration_us, values);
	}
	json = device_trace_advise(&trace);
	return json;
}

static bool says_slow(const char *name, const char *dims, const char *strides, const char *arguments, double duration_us, const char *reason)
{
	char *json = advise_slow(name, dims, strides, arguments, duration_us);
	bool says = finding_ms(json, "slow-operator") > 0 && strstr(json, reason) != NULL;

	ops_free(json);
	return says;
}

/* Two Fourier transforms in each step, of a length that is a prime and of one with small factors: the second shows what is usual. */
static double fourier_ms(double prime_us)
{
	static const char prime[] = "\"Input Dims\": [[26, 10007], []], \"Input Strides\": [[10007, 1], []], \"Input type\": [\"float\", \"ScalarList\"], "
	                            "\"Concrete Inputs\": [\"\", \"[1]\"]";
	static const char good[] = "\"Input Dims\": [[26, 10000], []], \"Input Strides\": [[10000, 1], []], \"Input type\": [\"float\", \"ScalarList\"], "
	                           "\"Concrete Inputs\": [\"\", \"[1]\"]";
	static const char roofs[] = "\"threads\": 1}, \"roof\": {\"flops\": {\"float32\": 1e12}, \"bandwidth\": 1e12, \"call_us\": 1";
	struct device_trace trace;
	char *json;
	double ms;

	open_trace(&trace, roofs);
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 3000 * step;

		device_trace_step(&trace, step, us, 2990);
		device_trace_add(&trace, "python_function", "train.py(9): f", 1, 1, us + 100, prime_us + 10, "\"Python id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::_fft_r2c", 1, 1, us + 105, prime_us, prime);
		device_trace_add(&trace, "python_function", "train.py(19): g", 1, 1, us + 1900, 110, "\"Python id\": 2");
		device_trace_add(&trace, "cpu_op", "aten::_fft_r2c", 1, 1, us + 1905, 100, good);
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "slow-operator");
	ops_free(json);
	return ms;
}

static void compares_fourier_transforms_with_each_other(void **state)
{
	(void)state;
	assert_float_equal(fourier_ms(1000), 0.9, 0.02);
	assert_true(fourier_ms(300) < 0);
}

/* Without other operators to compare with, eight times the lower bound is usual, and the cost of a call counts as 4 us. */
static void finds_operators_that_are_slow(void **state)
{
	(void)state;
	assert_true(says_slow("aten::sub", "512, 512", "512, 1", "", 900, "Nothing in its arguments explains it."));
	assert_false(says_slow("aten::sub", "512, 512", "512, 1", "", 300, ""));
	assert_false(says_slow("aten::sort", "512, 512", "512, 1", "", 900, "")); /* has no useful lower bound */
	assert_true(says_slow("aten::avg_pool2d", "4, 64, 32, 32", "65536, 1024, 32, 1", "[9, 9]", 900, "Its window has 81 elements"));
	assert_true(says_slow("aten::avg_pool2d", "4, 64, 32, 32", "65536, 1024, 32, 1", "[2, 2]", 900, "Its input has the channels first."));
	assert_false(says_slow("aten::avg_pool2d", "4, 64, 32, 32", "65536, 1, 2048, 64", "[2, 2]", 900, "Its input has the channels first."));
	assert_true(says_slow("aten::_fft_r2c", "26, 10007", "10007, 1", "[1]", 1900, "The length of its signals, 10007, has the prime factor 10007"));
	assert_false(says_slow("aten::_fft_r2c", "26, 10000", "10000, 1", "[1]", 1900, "prime factor"));
	/* A prime that would take minutes to factor. */
	assert_false(says_slow("aten::_fft_r2c", "1, 9223372036854775783", "1, 1", "[1]", 1900, "prime factor"));
}

/* torch has shortcuts for the exponent 3, and 2.2 has no cheaper form. */
static void finds_powers_that_products_compute(void **state)
{
	(void)state;
	assert_true(says_slow("aten::pow", "512, 512", "512, 1", "4", 300, "Its exponent is 4"));
	assert_true(says_slow("aten::pow", "512, 512", "512, 1", "1.5", 300, "Its exponent is 1.5"));
	assert_false(says_slow("aten::pow", "512, 512", "512, 1", "4", 100, "Its exponent is 4"));
	assert_false(says_slow("aten::pow", "512, 512", "512, 1", "3", 300, ""));
	assert_false(says_slow("aten::pow", "512, 512", "512, 1", "-0.5", 300, ""));
	assert_false(says_slow("aten::pow", "512, 512", "512, 1", "2.2", 300, ""));
	assert_false(says_slow("aten::pow", "512, 512", "512, 1", "64", 300, ""));
}

/* The position of a maximum is slow only across memory. */
static void finds_searches_across_memory(void **state)
{
	(void)state;
	assert_true(says_slow("aten::argmax", "512, 512", "512, 1", "0", 900, "It searches along a dimension whose elements are not next to each other"));
	assert_false(says_slow("aten::argmax", "512, 512", "512, 1", "1", 900, "It searches along"));
}

/* Steps of 1 ms, of which each fourth also sleeps for 8 ms; `slow` is how many of these do. */
static double recurring_ms(int slow)
{
	struct device_trace trace;
	double us = 10, ms;
	char *json;

	open_trace(&trace, "\"threads\": 1");
	for (int step = 0; step < 16; step++) {
		bool is_slow = step % 4 == 3 && slow-- > 0;

		device_trace_step(&trace, step, us, is_slow ? 9000 : 1000);
		for (int i = 0; i < 10; i++)
			device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, us + 5 + 98 * i, 97, "\"Input Dims\": [[9]], \"Input type\": [\"float\"]");
		for (int i = 0; is_slow && i < 8; i++)
			device_trace_add(&trace, "python_function", "<built-in function sleep>", 1, 1, us + 1000 + 990 * i, 980, "\"Python id\": 1");
		us += is_slow ? 9100 : 1100;
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "waiting-in-step");
	ops_free(json);
	return ms;
}

/* A program without steps waits for others for 90 ms of 100 ms. */
static void knows_programs_that_only_start_others(void **state)
{
	(void)state;
	for (int computes = 0; computes < 2; computes++) {
		struct device_trace trace;
		char *json;

		open_trace(&trace, "\"threads\": 1");
		device_trace_add(&trace, "python_function", "train.py(9): <module>", 1, 1, 0, 100000, "\"Python id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, 10, computes ? 5000 : 50, "\"Input Dims\": [[9]], \"Input type\": [\"float\"]");
		device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, 99900, 50, "\"Input Dims\": [[9]], \"Input type\": [\"float\"]");
		device_trace_add(&trace, "python_function", "/usr/lib/python3.11/multiprocessing/process.py(142): BaseProcess.join", 1, 1, 9000, 90000,
		                 "\"Python id\": 2, \"Python parent id\": 1, \"CallFrom\": \"train.py:30\"");
		json = device_trace_advise(&trace);
		assert_float_equal(finding_ms(json, "work-in-children"), computes ? -1 : 0, 0.001);
		assert_float_equal(finding_ms(json, "waiting-in-step"), computes ? 90 : -1, 0.1);
		ops_free(json);
	}
}

/* Long steps count if they recur and make more calls. */
static void counts_long_steps_that_recur(void **state)
{
	(void)state;
	assert_true(recurring_ms(2) < 0);
	assert_float_equal(recurring_ms(4), 4 * 7.84 / 16, 0.05);
}

/* A function that computes for 1 ms of its 2 ms in each step, in a recording with a setting. */
static double settings_ms(const char *setting)
{
	char machine[128], *json;
	struct device_trace trace;
	double ms;

	snprintf(machine, sizeof(machine), "\"threads\": 1}, \"recording\": {\"settings\": [%s]", setting);
	open_trace(&trace, machine);
	device_trace_add(&trace, "python_function", "<built-in function start>", 1, 1, 1, 2, "\"Python id\": 9, \"CallFrom\": \"train.py:5\"");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 3000 * step;

		device_trace_step(&trace, step, us, 2990);
		device_trace_add(&trace, "python_function", "train.py(9): f", 1, 1, us + 900, 2000, "\"Python id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, us + 905, 1000, "\"Input Dims\": [[9]], \"Input type\": [\"float\"]");
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "slow-settings");
	ops_free(json);
	return ms;
}

/* A product of 1000 us and its inner one of the same type, in each step of 3 ms; a name that begins with "_slow" is a fallback. */
static double emulated_ms(const char *types, const char *name, const char *dtype)
{
	struct device_trace trace;
	char machine[128], args[128];
	char *json;
	double ms;

	snprintf(machine, sizeof(machine), "\"threads\": 1}, \"recording\": {\"emulated_types\": [%s]", types);
	snprintf(args, sizeof(args), "\"Input Dims\": [[64, 64], [64, 64]], \"Input type\": [\"%s\", \"%s\"]", dtype, dtype);
	open_trace(&trace, machine);
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 3000 * step;

		device_trace_step(&trace, step, us, 2990);
		device_trace_add(&trace, "cpu_op", "aten::matmul", 1, 1, us + 900, 1000, args);
		device_trace_add(&trace, "cpu_op", name, 1, 1, us + 950, 900, args);
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "emulated-type");
	ops_free(json);
	return ms;
}

static void finds_emulated_types(void **state)
{
	(void)state;
	assert_float_equal(emulated_ms("\"bfloat16\"", "aten::mm", "c10::BFloat16"), 1, 0.001);
	assert_float_equal(emulated_ms("\"bfloat16\", \"float16\"", "aten::mm", "c10::BFloat16"), 1, 0.001);
	assert_true(emulated_ms("\"bfloat16\"", "aten::mm", "float") < 0);
	assert_float_equal(emulated_ms("\"bfloat16\", \"float16\"", "aten::mm", "c10::Half"), 1, 0.001);
	assert_true(emulated_ms("\"float16\"", "aten::mm", "c10::BFloat16") < 0);
	assert_true(emulated_ms("", "aten::mm", "c10::BFloat16") < 0);
	assert_float_equal(emulated_ms("", "aten::_slow_conv2d_forward", "c10::BFloat16"), 1, 0.001);
	assert_true(emulated_ms("", "aten::_slow_conv2d_forward", "double") < 0);
}

static void finds_slow_settings(void **state)
{
	(void)state;
	assert_true(settings_ms("") < 0);
	assert_true(settings_ms("\"another\"") < 0);
	assert_float_equal(settings_ms("\"tracemalloc\""), 0.8, 0.001);
	assert_float_equal(settings_ms("\"debug_allocator\""), 0.2, 0.001);
	assert_float_equal(settings_ms("\"no_vector_instructions\""), 0.5, 0.001);
}

/* Ten calls of a model in each step, whose inputs have these dimensions at first. `grows` is the dimension that is larger by one
 * each time. The time of a call is 12 us and 10 us for each element of that dimension. */
static double prefix_ms(const int dims[3], int grows)
{
	struct device_trace trace;
	char *json, tensors[160];
	double ms;

	open_trace(&trace, "\"threads\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 5000 * step, at = us + 10;
		int now[] = {dims[0], dims[1], dims[2]};

		device_trace_step(&trace, step, us, 4990);
		device_trace_add(&trace, "python_function", "train.py(3): generate", 1, 1, us + 5, 4900, "\"Python id\": 1");
		for (int i = 0; i < 10; i++, now[grows]++) {
			int duration_us = 12 + 10 * now[grows];

			snprintf(tensors, sizeof(tensors), "\"Input Dims\": [[%d, %d, %d], [32, %d]], \"Input type\": [\"float\", \"float\"]",
			         now[0], now[1], now[2], now[2]);
			device_trace_add(&trace, "python_function", "train.py(9): model", 1, 1, at, duration_us,
			                 "\"Python id\": 2, \"Python parent id\": 1");
			device_trace_add(&trace, "cpu_op", "aten::linear", 1, 1, at + 1, duration_us - 2, tensors);
			at += duration_us + 5;
		}
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "decode-without-cache");
	ops_free(json);
	return ms;
}

/* A call with one more token would take 22 us in place of 12 + 10 * length, for lengths from 9 to 17. */
static void finds_tokens_computed_again(void **state)
{
	(void)state;
	assert_float_equal(prefix_ms((int[]){4, 8, 16}, 1), 1.08, 0.001);
	assert_true(prefix_ms((int[]){8, 4, 16}, 0) < 0); /* larger batches */
	assert_true(prefix_ms((int[]){4, 16, 8}, 2) < 0); /* more features */
}

static double memory_advice_ms(const char *machine)
{
	struct device_trace trace;
	char *json;
	double ms;

	open_trace(&trace, machine);
	ops_buffer_append_text(&trace.text,
	                       ",\n{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": 1, \"tid\": 1, "
	                       "\"ts\": 20, \"args\": {\"Device Type\": 0, \"Device Id\": -1, \"Addr\": 4096, \"Bytes\": 64, "
	                       "\"Total Allocated\": 64, \"Total Reserved\": 0}}");
	device_trace_host(&trace, "cpu_op", "aten::add", 10, 30);
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "memory-limit");
	ops_free(json);
	return ms;
}

static void finds_memory_near_its_limit(void **state)
{
	(void)state;
	assert_true(memory_advice_ms("\"memory_limit_bytes\": 1000000000, \"memory_peak_bytes\": 950000000") >= 0);
	assert_true(memory_advice_ms("\"memory_limit_bytes\": 1000000000, \"memory_peak_bytes\": 500000000") < 0);
}

/* Assignments to slices in each step, each with its node in the backward pass. */
static char *advise_slices(int assignments)
{
	struct device_trace trace;

	open_trace(&trace, "\"threads\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 3000 * step;

		device_trace_step(&trace, step, us, 2990);
		device_trace_add(&trace, "python_function", "train.py(3): unroll", 1, 1, us + 1, 400, "\"Python id\": 1");
		for (int i = 0; i < assignments; i++)
			device_trace_add(&trace, "cpu_op", "aten::copy_", 1, 1, us + 5 + 20 * i, 10, "\"CallFrom\": \"train.py:7\"");
		for (int i = 0; i < assignments; i++)
			device_trace_add(&trace, "cpu_op", "autograd::engine::evaluate_function: torch::autograd::CopySlices", 1, 1, us + 500 + 110 * i, 100, "");
	}
	return device_trace_advise(&trace);
}

static void finds_assignments_to_slices(void **state)
{
	char *json = advise_slices(10);

	(void)state;
	assert_float_equal(finding_ms(json, "slice-assignments"), 1, 0.01);
	assert_non_null(strstr(json, "\"file\":\"train.py\",\"line\":7,\"function\":\"unroll\""));
	ops_free(json);
	json = advise_slices(3);
	assert_true(finding_ms(json, "slice-assignments") < 0);
	ops_free(json);
}

/* A function of 400 us in each step that opens an image, or a file, and makes these calls of 100 us each. */
static double gain_of_function_ms(const char *rule, const char *function, const char *const *calls)
{
	struct device_trace trace;
	char *json;
	double ms;

	open_trace(&trace, "\"threads\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 1000 * step;

		device_trace_step(&trace, step, us, 990);
		device_trace_host(&trace, "cpu_op", "aten::mm", us + 1, 100);
		device_trace_add(&trace, "python_function", function, 1, 1, us + 110, 400, "\"Python id\": 1");
		for (int i = 0; calls[i]; i++)
			device_trace_add(&trace, "python_function", calls[i], 1, 1, us + 110 + 100 * i, 99,
			                 "\"Python id\": 2, \"Python parent id\": 1");
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, rule);
	ops_free(json);
	return ms;
}

static double output_ms(const char *const *calls)
{
	return gain_of_function_ms("logging-in-step", "train.py(3): show", calls);
}

/* Messages to another process do not count as output, but the answer is waited for. */
static void knows_messages_by_their_function(void **state)
{
	static const char *const writes[] = {"<built-in function write>", NULL};

	(void)state;
	assert_float_equal(output_ms(writes), 0.099, 0.001);
	assert_true(gain_of_function_ms("logging-in-step", "/usr/lib/python3.11/multiprocessing/connection.py(366): Connection._send", writes) < 0);
	assert_float_equal(gain_of_function_ms("waiting-in-step", "/usr/lib/python3.11/multiprocessing/managers.py(818): BaseProxy._callmethod", writes),
	                   0.4, 0.001);
}

/* The calls matter, not the file in which they are. */
static void knows_output_by_its_calls(void **state)
{
	static const char *const reads[] = {"/usr/lib/python3/dist-packages/PIL/Image.py(3416): open",
	                                    "/usr/lib/python3/dist-packages/PIL/Image.py(987): Image.convert",
	                                    "<built-in function open>", "<built-in method __exit__ of _io.TextIOWrapper object at 0x7>",
	                                    NULL};
	static const char *const formats[] = {"/usr/lib/python3.11/json/__init__.py(183): dumps",
	                                      "/x/site-packages/matplotlib/axes/_axes.py(1): plot",
	                                      "<built-in method write of _io.StringIO object at 0x7>", "train.py(9): _log", NULL};
	static const char *const writes[] = {"<built-in function open>", "<built-in method write of _io.TextIOWrapper>",
	                                     "<built-in method __exit__ of _io.TextIOWrapper object at 0x7>", NULL};
	static const char *const saves[] = {"/usr/lib/python3/dist-packages/PIL/Image.py(2000): Image.save", NULL};
	static const char *const logs[] = {"logging/__init__.py(1610): _log", "/usr/lib/python3.11/logging/__init__.py(9): Logger._log",
	                                   NULL};

	(void)state;
	assert_true(output_ms(reads) < 0);
	assert_true(output_ms(formats) < 0);
	assert_float_equal(output_ms(writes), 0.297, 0.001);
	assert_float_equal(output_ms(saves), 0.099, 0.001);
	assert_float_equal(output_ms(logs), 0.198, 0.001);
}

/* On one of four processors; as many threads as processors are good. */
static void finds_idle_processors(void **state)
{
	static const char *const machines[] = {"\"threads\": 1, \"processors\": 4", "\"threads\": 4, \"processors\": 4"};

	(void)state;
	for (int fits = 0; fits < 2; fits++) {
		struct device_trace trace;
		char *json;

		open_trace(&trace, machines[fits]);
		device_trace_step(&trace, 0, 10, 1000);
		device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, 20, 900,
		                 "\"Input Dims\": [[512, 512], [512, 512]], \"Input type\": [\"float\", \"float\"]");
		json = device_trace_advise(&trace);
		assert_true((finding_ms(json, "thread-count") >= 0) == !fits);
		assert_true(fits || strstr(json, "Operators run on 1 thread, and 4 CPUs"));
		ops_free(json);
	}
}

/* Automatic ones, as a recording with record_python_gc_info=True has them. */
static void finds_collections(void **state)
{
	struct device_trace trace;
	char *json;

	(void)state;
	open_trace(&trace, "\"threads\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 1000 * step;

		device_trace_step(&trace, step, us, 990);
		device_trace_add(&trace, "python_function", "train.py(3): load", 1, 1, us + 5, 600, "\"Python id\": 1");
		device_trace_add(&trace, "python_function", "Python GC", 1, 1, us + 100, 200, "\"Python id\": 2, \"Python parent id\": 1");
	}
	json = device_trace_advise(&trace);
	assert_float_equal(finding_ms(json, "gc-pauses"), 0.2, 0.001);
	ops_free(json);
}

/* A full collection of 4 ms in one of eight steps, next to small ones: nobody knows how often it runs. */
static void doubts_one_long_collection(void **state)
{
	struct device_trace trace;
	char *json;

	(void)state;
	open_trace(&trace, "\"threads\": 1");
	device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, 1, 90000, "\"Python id\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 10000 * step;

		device_trace_step(&trace, step, us, 9990);
		device_trace_add(&trace, "python_function", "Python GC", 1, 1, us + 100, step == 4 ? 4000 : 20,
		                 "\"Python id\": 2, \"Python parent id\": 1");
		for (int i = 0; i < 2 + step; i++)
			device_trace_host(&trace, "cpu_op", "aten::mm", us + 4200 + 100 * i, 99);
	}
	json = device_trace_advise(&trace);
	assert_true(finding_ms(json, "gc-pauses") > 0.4);
	assert_non_null(strstr(json, "One of them takes 4.00 ms."));
	assert_non_null(strstr(json, "\"confidence\":\"low\""));
	ops_free(json);
}

/* Nodes of 10 us, and 2 us of the engine's between them, of which a tenth is what it costs to record the node: four more a step. */
static void gives_nodes_the_time_between(void **state)
{
	struct device_trace trace;
	double gain_us = 0;
	char *json;

	(void)state;
	open_trace(&trace, "\"threads\": 1");
	for (int step = 0; step < 5; step++) {
		int nodes = 4 * (step + 1);
		double us = 10 + 1000 * step;

		device_trace_step(&trace, step, us, 900);
		device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, us + 5, 800, "\"Python id\": 1");
		device_trace_add(&trace, "python_function", "<built-in method run_backward of torch._C._EngineBase>", 1, 1, us + 10,
		                 12 * nodes, "\"Python id\": 2, \"Python parent id\": 1");
		for (int i = 0; i < nodes; i++)
			device_trace_host(&trace, "cpu_op", "autograd::engine::evaluate_function: MulBackward0", us + 11 + 12 * i, 10);
		gain_us += (nodes - 4) * 11.8;
	}
	json = device_trace_advise(&trace);
	assert_float_equal(finding_ms(json, "growing-graph"), gain_us / 5 / 1000, 0.0001);
	ops_free(json);
}

/* Four nodes of 12 us with what is between them, in each of two passes. */
static void add_passes(struct device_trace *trace, double us)
{
	for (int pass = 0; pass < 2; pass++) {
		device_trace_add(trace, "python_function", "<built-in method run_backward of torch._C._EngineBase>", 1, 1,
		                 us + 10 + 100 * pass, 48, "\"Python id\": 2, \"Python parent id\": 1");
		for (int i = 0; i < 4; i++) {
			char number[32];

			snprintf(number, sizeof(number), "\"Sequence number\": %d", 9 - i);
			device_trace_add(trace, "cpu_op", "autograd::engine::evaluate_function: MulBackward0", 1, 1,
			                 us + 11 + 100 * pass + 12 * i, 10, number);
		}
	}
}

/* Products of equal size in a loop, ten of which are slow: the same ones in each step, or others. Within vmap each contains the product
 * of all examples, and the slow ones have more of them. */
static double slow_products_ms(bool same, bool in_vmap)
{
	struct device_trace trace;
	char *json;
	double ms;

	open_trace(&trace, "\"threads\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 3000 * step, at = us + 10;

		device_trace_step(&trace, step, us, 2990);
		device_trace_add(&trace, "python_function", "train.py(3): decay", 1, 1, us + 5, 2900, "\"Python id\": 1");
		for (int i = 0; i < 50; i++) {
			int first = same ? 30 : 11 * (step % 4);
			double duration = i >= first && i < first + 10 ? 110 : 10;

			device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, at, duration,
			                 "\"CallFrom\": \"train.py:7\", \"Input Dims\": [[64, 64], [64, 64]], \"Input type\": [\"float\", \"float\"]");
			if (in_vmap)
				device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, at + 1, duration - 2,
				                 duration > 10 ? "\"Input Dims\": [[6400, 64], [64, 64]], \"Input type\": [\"float\", \"float\"]"
				                               : "\"Input Dims\": [[64, 64], [64, 64]], \"Input type\": [\"float\", \"float\"]");
			at += duration + 2;
		}
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "denormals");
	ops_free(json);
	return ms;
}

static void finds_products_that_are_slow_in_each_step(void **state)
{
	(void)state;
	assert_float_equal(slow_products_ms(true, false), 1, 0.01);
	assert_true(slow_products_ms(false, false) < 0);
	assert_true(slow_products_ms(true, true) < 0);
}

/* A gradient that torch.autograd.grad computes twice is not a sum. */
static void finds_graphs_gone_through_again(void **state)
{
	(void)state;
	for (int asks = 0; asks < 2; asks++) {
		struct device_trace trace;
		char *json;

		open_trace(&trace, "\"threads\": 1");
		for (int step = 0; step < STEPS; step++) {
			double us = 10 + 1000 * step;

			device_trace_step(&trace, step, us, 900);
			device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, us + 5, 800, "\"Python id\": 1");
			add_passes(&trace, us);
			if (asks)
				device_trace_add(&trace, "python_function", "torch/autograd/__init__.py(400): grad", 1, 1, us + 500, 9,
				                 "\"Python id\": 3, \"Python parent id\": 1");
		}
		json = device_trace_advise(&trace);
		if (asks)
			assert_true(finding_ms(json, "retained-graph") < 0);
		else
			assert_float_equal(finding_ms(json, "retained-graph"), 4 * 0.0118, 0.0001);
		ops_free(json);
	}
}

static void finds_slow_first_steps(void **state)
{
	struct device_trace trace;
	char *json;

	(void)state;
	/* That it waited for a CPU as well does not explain it. */
	open_trace(&trace, "\"threads\": 1, \"steps\": [[0,8000000,100000,0,0]]");
	for (int step = 0; step < STEPS; step++) {
		double us = step ? 10000 + 1000 * step : 10;

		device_trace_step(&trace, step, us, step ? 990 : 9000);
		device_trace_host(&trace, "cpu_op", "aten::add", us + 10, 900);
	}
	json = device_trace_advise(&trace);
	assert_non_null(strstr(json, "The first step takes 56.5 % of the time of 8 steps, 9.00 ms; a steady step takes"));
	ops_free(json);
}

/* All steps but one wait 5 ms, each at another of eight calls, the last at a collection of garbage. In a loop over rows each
 * round needs the one before. */
static void fill_waiting(struct device_trace *trace)
{
	static const char machine[] =
		"\"steps\": [[0, 1000000, 0, 0, 0], [1, 1000000, 5000000, 0, 9], [2, 1000000, 5000000, 0, 9], "
		"[3, 1000000, 5000000, 0, 9], [4, 1000000, 5000000, 0, 9], [5, 1000000, 5000000, 0, 9], "
		"[6, 1000000, 5000000, 0, 9], [7, 1000000, 5000000, 0, 9]], \"page_ns\": 250.5";
	char name[64];

	open_trace(trace, machine);
	device_trace_add(trace, "python_function", "train.py(3): train", 1, 1, 1, 60000, "\"Python id\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 7000 * step, at = us + 10;

		device_trace_step(trace, step, us, step ? 6000 : 1000);
		for (int i = 0; i < STEPS; i++) {
			bool last = i == STEPS - 1;
			double duration_us = (last ? 200 : 100) + (step && step == i ? 5000 : 0);

			snprintf(name, sizeof(name), "<built-in function f%d>", i);
			device_trace_add(trace, "python_function", last ? "<built-in function collect>" : name, 1, 1, at, duration_us,
			                 "\"Python id\": 2, \"Python parent id\": 1");
			at += duration_us + 5;
		}
		for (int i = 0; i < 16; i++, at += 3)
			device_trace_host(trace, "cpu_op", "aten::select", at, 2);
	}
}

static void subtracts_waits(void **state)
{
	struct device_trace trace;
	char *json;

	(void)state;
	fill_waiting(&trace);
	json = device_trace_advise(&trace);
	assert_float_equal(finding_ms(json, "gc-pauses"), 0.2, 0.001);
	ops_free(json);
}

/* One call in each step, which takes 100 us and in six of eight steps a wait of 5 ms more. */
static char *advise_waiting_call(const char *machine, const char *category, const char *name)
{
	struct device_trace trace;

	open_trace(&trace, machine);
	device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, 1, 60000, "\"Python id\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 7000 * step;

		device_trace_step(&trace, step, us, step > 1 ? 6000 : 1000);
		device_trace_add(&trace, category, name, 1, 1, us + 10, step > 1 ? 5100 : 100,
		                 strcmp(category, "cpu_op") == 0 ? "" : "\"Python id\": 2, \"Python parent id\": 1");
	}
	return device_trace_advise(&trace);
}

/* Most of the equal calls have waited: the fastest of them show the duration of the call itself. */
static void subtracts_waits_of_most_calls(void **state)
{
	char *json = advise_waiting_call("\"steps\": [[0, 1000000, 0, 0, 0], [1, 1000000, 0, 0, 9], [2, 1000000, 5000000, 0, 9], "
	                                 "[3, 1000000, 5000000, 0, 9], [4, 1000000, 5000000, 0, 9], [5, 1000000, 5000000, 0, 9], "
	                                 "[6, 1000000, 5000000, 0, 9], [7, 1000000, 5000000, 0, 9]]",
	                                 "python_function", "<built-in function collect>");

	(void)state;
	assert_float_equal(finding_ms(json, "gc-pauses"), 0.1, 0.001);
	ops_free(json);
}

/* The thread ran all the time, to poll for the other thread of the operator, which waited for a processor. */
static void subtracts_polling(void **state)
{
	static const char polls[] = "[0, 1000000, 900000, 0, 0], [1, 1000000, 900000, 0, 9], [2, 5100000, 900000, 0, 9], "
				    "[3, 5100000, 900000, 0, 9], [4, 5100000, 900000, 0, 9], [5, 5100000, 900000, 0, 9], "
				    "[6, 5100000, 900000, 0, 9], [7, 5100000, 900000, 0, 9]]";

	(void)state;
	for (int threads = 1; threads <= 2; threads++) {
		char machine[768], *json;

		snprintf(machine, sizeof(machine), "\"threads\": %d, \"processors\": 2, \"steps\": [%s", threads, polls);
		json = advise_waiting_call(machine, "cpu_op", "aten::item");
		if (threads == 2)
			assert_true(finding_ms(json, "synchronising-calls") < 0.2);
		else
			assert_true(finding_ms(json, "synchronising-calls") > 2);
		ops_free(json);
	}
}

/* Each step waits 4 ms for a lock, 3 ms of them since its holder waits for a processor. */
static void subtracts_waits_of_the_holder(void **state)
{
	struct device_trace trace = {.correlation = 1};
	char *json;

	(void)state;
	ops_buffer_append_text(&trace.text, "{\"machine\": {\"steps\": [");
	for (int step = 0; step < STEPS; step++)
		ops_buffer_printf(&trace.text, "%s[%d, 2000000, 0, 0, 0]", step ? ", " : "", step);
	ops_buffer_append_text(&trace.text, "]}, \"thread_states\": {\"start_ns\": 0, \"threads\": [{\"tid\": 1, \"intervals\": [");
	for (int step = 0; step < STEPS; step++)
		ops_buffer_printf(&trace.text, "%s%d, %d, 3", step ? ", " : "", 1020 + 7000 * step, 5020 + 7000 * step);
	ops_buffer_append_text(&trace.text, "]}, {\"tid\": 2, \"intervals\": [");
	for (int step = 0; step < STEPS; step++)
		ops_buffer_printf(&trace.text, "%s%d, %d, 1, %d, %d, 0", step ? ", " : "", 1020 + 7000 * step, 4020 + 7000 * step,
		                  4020 + 7000 * step, 5020 + 7000 * step);
	ops_buffer_append_text(&trace.text, "]}]}, \"traceEvents\": [\n"
	                                    "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
	device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, 1, 60000, "\"Python id\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 7000 * step;

		device_trace_step(&trace, step, us, 6000);
		device_trace_add(&trace, "python_function", "train.py(20): save", 1, 1, us + 5, 5900,
		                 "\"Python id\": 2, \"Python parent id\": 1");
	}
	json = device_trace_advise(&trace);
	assert_float_equal(finding_ms(json, "lock-in-step"), 1, 0.01);
	ops_free(json);
}

/* A function computes for 0.6 ms in each step, and once for 6 ms: what one step says is no more than three times the usual.
 * The steps differ in their calls, so that none is left out as slow. */
static void leaves_out_accidents(void **state)
{
	struct device_trace trace;
	char *json;

	(void)state;
	open_trace(&trace, "\"threads\": 1");
	device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, 1, 90000, "\"Python id\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 10000 * step, own_us = step == 4 ? 6000 : 600;

		device_trace_step(&trace, step, us, 9990);
		device_trace_add(&trace, "python_function", "train.py(20): metric", 1, 1, us + 5, own_us,
		                 "\"Python id\": 2, \"Python parent id\": 1");
		for (int i = 0; i < 2 + step; i++)
			device_trace_host(&trace, "cpu_op", "aten::mm", us + 6 + own_us + 100 * i, 99);
		device_trace_host(&trace, "cpu_op", "aten::mm", us + 6 + own_us + 100 * (2 + step), 9980 - own_us - 100 * (2 + step));
	}
	json = device_trace_advise(&trace);
	assert_float_equal(finding_ms(json, "python-in-step"), (7 * 0.6 + 1.8) / STEPS, 0.03);
	ops_free(json);
}

/* A cause of 3 ms is more useful than that Python takes 5 ms. */
static void names_causes_first(void **state)
{
	struct device_trace trace;
	const char *general, *cause;
	char *json;

	(void)state;
	open_trace(&trace, "\"threads\": 1");
	device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, 1, 90000, "\"Python id\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 10000 * step;

		device_trace_step(&trace, step, us, 9990);
		device_trace_add(&trace, "python_function", "train.py(20): metric", 1, 1, us + 5, 5000,
		                 "\"Python id\": 2, \"Python parent id\": 1");
		device_trace_add(&trace, "python_function", "<built-in function sleep>", 1, 1, us + 5010, 3000,
		                 "\"Python id\": 3, \"Python parent id\": 1");
		device_trace_host(&trace, "cpu_op", "aten::mm", us + 8020, 1960);
	}
	json = device_trace_advise(&trace);
	general = strstr(json, "\"id\":\"python-in-step\"");
	cause = strstr(json, "\"id\":\"waiting-in-step\"");
	assert_non_null(general);
	assert_non_null(cause);
	assert_true(cause < general);
	ops_free(json);
}

/* On the CPU, finding nonzero elements is work. */
static void finds_no_read_in_masks(void **state)
{
	char *json = advise_waiting_call("\"threads\": 1", "cpu_op", "aten::nonzero");

	(void)state;
	assert_true(finding_ms(json, "synchronising-calls") < 0);
	ops_free(json);
}

/* Steps of 30 ms with the rows that `add` adds. Returns the gain of a rule in milliseconds; -1 without a finding. */
static double gain_of_steps(const char *rule, void (*add)(struct device_trace *trace, double us, bool cause), bool cause)
{
	struct device_trace trace;
	char *json;
	double ms;

	open_trace(&trace, "\"threads\": 1, \"memory_limit_bytes\": 1000000000");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 30000 * step;

		device_trace_step(&trace, step, us, 29990);
		add(&trace, us, cause);
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, rule);
	ops_free(json);
	return ms;
}

/* A function that only reads a value and iterates over parameters, or also computes something else. */
static void add_report(struct device_trace *trace, double us, bool cause)
{
	device_trace_add(trace, "python_function", "train.py(3): train", 1, 1, us + 5, 20000, "\"Python id\": 1");
	device_trace_add(trace, "python_function", "train.py(30): report", 1, 1, us + 10, 5000, "\"Python id\": 2, \"Python parent id\": 1");
	device_trace_host(trace, "cpu_op", "aten::item", us + 1100, 3000);
	device_trace_add(trace, "python_function", "torch/nn/modules/module.py(2600): named_parameters", 1, 1, us + 4200, 500,
	                 "\"Python id\": 3, \"Python parent id\": 2");
	if (!cause)
		device_trace_host(trace, "cpu_op", "aten::mm", us + 100, 900);
	device_trace_host(trace, "cpu_op", "aten::mm", us + 6000, 9000);
}

/* An f-string with tensors, or a number of one. */
static void add_message(struct device_trace *trace, double us, bool cause)
{
	device_trace_add(trace, "python_function", "train.py(3): train", 1, 1, us + 5, 20000, "\"Python id\": 1");
	device_trace_add(trace, "python_function", cause ? "torch/_tensor.py(1120): Tensor.__format__" : "<built-in method item of Tensor object>", 1, 1,
	                 us + 10, 5000, "\"Python id\": 2, \"Python parent id\": 1");
	device_trace_host(trace, "cpu_op", "aten::item", us + 1100, 3000);
	device_trace_host(trace, "cpu_op", "aten::mm", us + 6000, 9000);
}

static void says_that_tensors_become_text(void **state)
{
	(void)state;
	for (int cause = 0; cause < 2; cause++) {
		struct device_trace trace;
		char *json;

		open_trace(&trace, "\"threads\": 1, \"memory_limit_bytes\": 1000000000");
		for (int step = 0; step < STEPS; step++) {
			device_trace_step(&trace, step, 10 + 30000 * step, 29990);
			add_message(&trace, 10 + 30000 * step, cause);
		}
		json = device_trace_advise(&trace);
		assert_true(finding_ms(json, "synchronising-calls") > 2);
		assert_int_equal(strstr(json, "log.isEnabledFor()") != NULL, cause);
		ops_free(json);
	}
}

/* Two hundred calls of a function of a package, of 80 or 40 us each, in a loop around a selection and operators. */
static void add_copies(struct device_trace *trace, double us, bool cause)
{
	device_trace_add(trace, "python_function", "train.py(3): train", 1, 1, us + 5, 29000, "\"Python id\": 1");
	for (int i = 0; i < 200; i++) {
		double at = us + 10 + 120 * i;

		device_trace_add(trace, "python_function", "/lib/python3.11/copy.py(128): deepcopy", 1, 1, at, cause ? 80 : 40,
		                 "\"Python id\": 2, \"Python parent id\": 1, \"CallFrom\": \"train.py:7\"");
		device_trace_add(trace, "cpu_op", "aten::select", 1, 1, at + 90, 10, "\"Python parent id\": 1, \"CallFrom\": \"train.py:8\"");
		device_trace_add(trace, "cpu_op", "aten::add", 1, 1, at + 105, 10, "\"Python parent id\": 1, \"CallFrom\": \"train.py:8\"");
	}
}

static void counts_many_short_calls_of_a_package(void **state)
{
	(void)state;
	assert_true(gain_of_steps("python-in-step", add_copies, true) >= 16); /* and the time in between */
	assert_true(gain_of_steps("python-loop-over-rows", add_copies, true) < 0);
	assert_true(gain_of_steps("python-loop-over-rows", add_copies, false) > 10);
}

static void counts_functions_that_only_read(void **state)
{
	(void)state;
	assert_float_equal(gain_of_steps("synchronising-calls", add_report, true), 5, 0.001);
	assert_float_equal(gain_of_steps("synchronising-calls", add_report, false), 3, 0.001);
}

/* A distribution that checks its parameters and a sample, or only its shapes. */
static void add_distribution(struct device_trace *trace, double us, bool cause)
{
	device_trace_add(trace, "python_function", "torch/distributions/normal.py(48): Normal.__init__", 1, 1, us + 10, 3000, "\"Python id\": 1");
	device_trace_add(trace, "python_function", "torch/distributions/distribution.py(52): Distribution.__init__", 1, 1, us + 1000, 1500,
	                 "\"Python id\": 2, \"Python parent id\": 1");
	if (cause)
		device_trace_host(trace, "cpu_op", "aten::ge", us + 1100, 1000);
	device_trace_host(trace, "cpu_op", "aten::mm", us + 4000, 5000);
}

static void finds_checks_of_distributions(void **state)
{
	(void)state;
	assert_float_equal(gain_of_steps("distribution-checks", add_distribution, true), 1.5, 0.001);
	assert_true(gain_of_steps("distribution-checks", add_distribution, false) < 0);
}

/* A backward pass that runs a part of the forward pass again; with `cause` false, CheckpointFunction, which runs the backward pass of
 * that part as well. */
static void add_checkpoint(struct device_trace *trace, double us, bool cause)
{
	device_trace_add(trace, "python_function", "train.py(3): forward", 1, 1, us + 5, 1000, "\"Python id\": 1");
	device_trace_add(trace, "python_function", "torch/utils/checkpoint.py(354): checkpoint", 1, 1, us + 10, 900,
	                 "\"Python id\": 2, \"Python parent id\": 1");
	device_trace_add(trace, "python_function", cause ? "torch/utils/checkpoint.py(1657): recompute_fn" : "torch/utils/checkpoint.py(278): backward",
	                 1, 1, us + 2000, 5000, "\"Python id\": 3");
	device_trace_host(trace, "cpu_op", "aten::mm", us + 2100, 1000);
	if (!cause)
		device_trace_add(trace, "python_function", "torch/autograd/__init__.py(251): backward", 1, 1, us + 4000, 2000,
		                 "\"Python id\": 4, \"Python parent id\": 3");
}

static void finds_activations_computed_again(void **state)
{
	(void)state;
	assert_float_equal(gain_of_steps("recomputed-activations", add_checkpoint, true), 5, 0.001);
	assert_float_equal(gain_of_steps("recomputed-activations", add_checkpoint, false), 3, 0.001);
}

/* A training step, and an evaluation in it; with `cause` false, one without a backward pass. */
static void add_evaluation(struct device_trace *trace, double us, bool cause)
{
	device_trace_add(trace, "python_function", "torch/nn/modules/module.py(2800): Module.eval", 1, 1, us + 10, 100, "\"Python id\": 1");
	device_trace_add(trace, "python_function", "torch/nn/modules/module.py(2780): Module.train", 1, 1, us + 20, 50,
	                 "\"Python id\": 2, \"Python parent id\": 1");
	device_trace_host(trace, "cpu_op", "aten::mm", us + 200, 4000);
	device_trace_add(trace, "python_function", "torch/nn/modules/module.py(2780): Module.train", 1, 1, us + 4300, 100, "\"Python id\": 3");
	device_trace_host(trace, "cpu_op", cause ? "autograd::engine::evaluate_function: MmBackward0" : "aten::mm", us + 5000, 3000);
}

static void finds_evaluations_in_each_step(void **state)
{
	(void)state;
	assert_float_equal(gain_of_steps("evaluation-in-step", add_evaluation, true), 4, 0.001);
	assert_true(gain_of_steps("evaluation-in-step", add_evaluation, false) < 0);
}

/* Twenty iterations with a layer, which is large or small, and a loop of twenty rows each. */
static void add_nested_loops(struct device_trace *trace, double us, bool cause)
{
	static const char tensors[] = "\"Input Dims\": [[100, 100], []]";

	device_trace_add(trace, "python_function", "train.py(3): main", 1, 1, us + 1, 29980, "\"Python id\": 1");
	for (int i = 0; i < 20; i++) {
		double from_us = us + 10 + 1490 * i;
		char args[64];

		if (cause)
			device_trace_host(trace, "cpu_op", "aten::conv2d", from_us, 1200);
		snprintf(args, sizeof(args), "\"Python id\": %d, \"Python parent id\": 1", 2 + i);
		device_trace_add(trace, "python_function", "train.py(20): pick", 1, 1, from_us + 1240, 240, args);
		for (int k = 0; k < 20; k++)
			device_trace_add(trace, "cpu_op", "aten::select", 1, 1, from_us + 1242 + 10 * k, cause ? 1 : 8, tensors);
	}
}

/* In the first case the loop over rows is within one of large operators, in the second all operators are small. */
static void finds_loops_in_loops(void **state)
{
	double outer_ms = gain_of_steps("python-loop-over-rows", add_nested_loops, false);
	double inner_ms = gain_of_steps("python-loop-over-rows", add_nested_loops, true);

	(void)state;
	assert_true(inner_ms > 20 * 0.15 && inner_ms < 20 * 0.24);
	assert_true(outer_ms > inner_ms);
}

/* Twenty products of 20 rows, which take 60 us; with `cause`, the operations of one product for all rows take a third of that. */
static void add_small_products(struct device_trace *trace, double us, bool cause)
{
	device_trace_add(trace, "python_function", "train.py(3): main", 1, 1, us + 1, 9000, "\"Python id\": 1");
	if (cause)
		device_trace_add(trace, "cpu_op", "aten::mm", 1, 1, us + 10000, 400,
		                 "\"Input Dims\": [[400, 100], [100, 100]], \"Input Strides\": [[100, 1], [100, 1]], \"Input type\": [\"float\", \"float\"]");
	for (int i = 0; i < 20; i++) {
		device_trace_add(trace, "cpu_op", "aten::select", 1, 1, us + 3000 + 200 * i, 5, "\"Input Dims\": [[400, 100], [], []]");
		device_trace_add(trace, "cpu_op", "aten::mm", 1, 1, us + 3010 + 200 * i, 60,
		                 "\"Input Dims\": [[20, 100], [100, 100]], \"Input Strides\": [[100, 1], [100, 1]], \"Input type\": [\"float\", \"float\"]");
	}
}

static void leaves_out_arithmetic_that_remains(void **state)
{
	double all_ms = gain_of_steps("python-loop-over-rows", add_small_products, false);

	(void)state;
	assert_true(all_ms > 0);
	assert_float_equal(all_ms - gain_of_steps("python-loop-over-rows", add_small_products, true), 20 * 0.02, 0.01);
}

/* Lookups of 100 and of 2000 rows of a table with 10 000, with the sum of both gradients; with `cause` false, only the first one. */
static void add_two_lookups(struct device_trace *trace, double us, bool cause)
{
	static const char table[] = "\"Input Dims\": [[10000, 8], [10000, 8], []]";
	static const char few[] = "\"Input Dims\": [[100, 8], [100], [], [], []], \"Input Strides\": [[8, 1], [1], [], [], []], \"Input type\": [\"float\", \"long int\", \"Scalar\", \"Scalar\", \"Scalar\"], "
	                          "\"Concrete Inputs\": [\"\", \"\", \"10000\", \"-1\", \"False\"]";
	static const char many[] = "\"Input Dims\": [[2000, 8], [2000], [], [], []], \"Input Strides\": [[8, 1], [1], [], [], []], \"Input type\": [\"float\", \"long int\", \"Scalar\", \"Scalar\", \"Scalar\"], "
	                           "\"Concrete Inputs\": [\"\", \"\", \"10000\", \"-1\", \"False\"]";

	device_trace_host(trace, "cpu_op", "aten::mm", us + 10, 5000);
	device_trace_add(trace, "cpu_op", "aten::embedding_dense_backward", 1, 1, us + 6000, 1000, few);
	if (!cause)
		return;
	device_trace_add(trace, "cpu_op", "autograd::engine::evaluate_function: EmbeddingBackward0", 1, 1, us + 7000, 1500, "");
	device_trace_add(trace, "cpu_op", "aten::embedding_dense_backward", 1, 1, us + 7010, 1000, many);
	device_trace_add(trace, "cpu_op", "aten::add", 1, 1, us + 8010, 400, table);
}

static void counts_all_lookups_of_a_table(void **state)
{
	(void)state;
	assert_float_equal(gain_of_steps("dense-embedding-gradient", add_two_lookups, false), 0.99, 0.001);
	assert_float_equal(gain_of_steps("dense-embedding-gradient", add_two_lookups, true), 0.99 + 0.8 + 0.4 * 0.79, 0.01);
}

static void ask(void *trace)
{
	advise_as(trace, OPS_FORMAT_JSON);
}

static void survives_failures(void **state)
{
	struct device_trace trace;
	struct ops_trace *read;

	(void)state;
	fill_waiting(&trace);
	read = device_trace_read(&trace);
	assert_true(fail_each(ask, read) > 40);
	ops_trace_unref(read);
}

/* Code of torch that takes 2 ms of a step of 5 ms, 1 ms of them in a module: in each step, or only in the first. */
static double torch_ms(const char *file, bool each_step)
{
	struct device_trace trace;
	char *json, name[64];
	double ms;

	snprintf(name, sizeof(name), "%s(5): work", file);
	open_trace(&trace, "\"threads\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 5000 * step;

		device_trace_step(&trace, step, us, 4990);
		device_trace_add(&trace, "python_function", "train.py(3): step", 1, 1, us + 5, 4900, "\"Python id\": 1");
		if (each_step || !step) {
			device_trace_add(&trace, "python_function", name, 1, 1, us + 100, 2000, "\"Python id\": 2, \"Python parent id\": 1");
			device_trace_add(&trace, "python_function", "torch/nn/modules/module.py(9): call", 1, 1, us + 200, 1000,
			                 "\"Python id\": 3, \"Python parent id\": 2");
			device_trace_add(&trace, "cpu_op", "aten::mul", 1, 1, us + 300, 300, "\"a\": 1");
		}
		device_trace_add(&trace, "cpu_op", "aten::mul", 1, 1, us + 2200, 2600, "\"a\": 1");
	}
	json = device_trace_advise(&trace);
	ms = finding_ms(json, "torch-in-step");
	ops_free(json);
	return ms;
}

static void finds_work_of_torch_without_operators(void **state)
{
	(void)state;
	assert_float_equal(torch_ms("torch/_dynamo/convert_frame.py", true), 1, 0.001);
	assert_true(torch_ms("torch/_dynamo/convert_frame.py", false) < 0);
	assert_true(torch_ms("torch/nn/functional.py", true) < 0);
	assert_true(torch_ms("torch/nn/modules/module.py", true) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(finds_work_of_torch_without_operators),
		cmocka_unit_test(finds_denormals),
	                                   cmocka_unit_test(does_not_take_starved_threads_for_denormals),
	                                   cmocka_unit_test(finds_products_of_integers),
	                                   cmocka_unit_test(finds_operators_that_are_slow), cmocka_unit_test(compares_fourier_transforms_with_each_other), cmocka_unit_test(finds_searches_across_memory), cmocka_unit_test(finds_powers_that_products_compute),
	                                   cmocka_unit_test(finds_emulated_types), cmocka_unit_test(finds_slow_settings), cmocka_unit_test(counts_long_steps_that_recur),
	                                   cmocka_unit_test(knows_programs_that_only_start_others),
	                                   cmocka_unit_test(knows_what_is_slow_without_denormals),
	                                   cmocka_unit_test(finds_tokens_computed_again),
	                                   cmocka_unit_test(finds_memory_near_its_limit),
	                                   cmocka_unit_test(knows_output_by_its_calls), cmocka_unit_test(knows_messages_by_their_function),
	                                   cmocka_unit_test(finds_assignments_to_slices), cmocka_unit_test(says_that_tensors_become_text), cmocka_unit_test(counts_many_short_calls_of_a_package), cmocka_unit_test(finds_products_that_are_slow_in_each_step), cmocka_unit_test(finds_idle_processors), cmocka_unit_test(finds_collections), cmocka_unit_test(doubts_one_long_collection),
	                                   cmocka_unit_test(gives_nodes_the_time_between),
	                                   cmocka_unit_test(finds_graphs_gone_through_again),
	                                   cmocka_unit_test(finds_slow_first_steps), cmocka_unit_test(subtracts_waits),
	                                   cmocka_unit_test(subtracts_waits_of_most_calls), cmocka_unit_test(subtracts_polling),
	                                   cmocka_unit_test(subtracts_waits_of_the_holder), cmocka_unit_test(leaves_out_accidents),
	                                   cmocka_unit_test(names_causes_first), cmocka_unit_test(finds_no_read_in_masks),
	                                   cmocka_unit_test(counts_functions_that_only_read),
	                                   cmocka_unit_test(finds_checks_of_distributions), cmocka_unit_test(finds_activations_computed_again),
	                                   cmocka_unit_test(finds_evaluations_in_each_step), cmocka_unit_test(finds_loops_in_loops),
	                                   cmocka_unit_test(leaves_out_arithmetic_that_remains), cmocka_unit_test(counts_all_lookups_of_a_table),
	                                   cmocka_unit_test(survives_failures)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
