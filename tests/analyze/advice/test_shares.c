/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice: what counts as part of a step. No share exceeds the whole, and neither does the sum of all savings.
 */
#include "device_trace.h"

#define POINTWISE "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
#define FULL "\"blocks per SM\": 4.0, \"grid\": [432, 1, 1], \"block\": [256, 1, 1]"
#define LAUNCHED FULL ", \"device\": 0, \"stream\": 7"

/* Returns the sum of all gains in percent. */
static double all_gains(const char *json)
{
	static const char key[] = "\"predicted_gain_percent\":";
	double sum = 0;

	for (const char *at = json; (at = strstr(at, key));) {
		at += strlen(key);
		sum += strtod(at, NULL);
	}
	return sum;
}

/* Returns the largest percentage in a text: "12.000 ms (171.4 %)". */
static double largest_percentage(const char *text)
{
	double largest = 0;

	for (const char *at = text; (at = strstr(at, " %")); at++) {
		const char *begin = at;
		double value;

		while (begin > text && strchr("0123456789.", begin[-1]))
			begin--;
		value = strtod(begin, NULL);
		largest = value > largest ? value : largest;
	}
	return largest;
}

/* A step of 6 ms with 60 kernels of 100 us, and as many in the same time on another stream that nothing has launched. */
static void leaves_out_kernels_without_launch(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	device_trace_step(&trace, 1, 0, 6200);
	for (int i = 0; i < 60; i++) {
		device_trace_work(&trace, "aten::mul", "", "kernel", POINTWISE, FULL, 100 + i * 11, 100);
		device_trace_add(&trace, "kernel", POINTWISE, 0, 9, 108 + i * 100, 100, LAUNCHED);
	}
	text = device_trace_advise(&trace);
	assert_non_null(strstr(text, "60 elementwise kernels in each step"));
	assert_true(largest_percentage(text) <= 100);
	assert_true(all_gains(text) <= 100);
	ops_free(text);
}

/* Two streams that are busy at the same time are one busy device. */
static void counts_time_once_for_streams(void **state)
{
	struct device_trace trace;
	char *text, args[160];

	(void)state;
	device_trace_open(&trace);
	device_trace_step(&trace, 1, 0, 6200);
	for (int i = 0; i < 60; i++) {
		device_trace_work(&trace, "aten::mul", "", "kernel", POINTWISE, FULL, 100 + i * 11, 100);
		snprintf(args, sizeof(args), LAUNCHED ", \"correlation\": %d", trace.correlation - 1);
		device_trace_add(&trace, "kernel", POINTWISE, 0, 9, 108 + i * 100, 100, args);
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "unfused-pointwise") > 0);
	assert_true(largest_percentage(text) <= 100);
	assert_true(all_gains(text) <= 100);
	ops_free(text);
}

/* A copy of 500 us in the time between two steps, and none within. */
static void leaves_out_copies_between_steps(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < 3; step++) {
		double at = step * 1000;

		device_trace_step(&trace, step, at, 150);
		device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 10, 100);
		device_trace_work(&trace, "aten::copy_", "", "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", "\"bytes\": 4000000",
		                  at + 300, 500);
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "copies-not-overlapped") < 0);
	assert_true(largest_percentage(text) <= 100);
	ops_free(text);
}

static void add_python(struct device_trace *trace, const char *name, int tid, int id, int parent, double us, double duration_us)
{
	char args[96];

	snprintf(args, sizeof(args), "\"Python id\": %d, \"Python parent id\": %d", id, parent);
	device_trace_add(trace, "python_function", name, 1, tid, us, duration_us, args);
}

/* Advises on a step of 1 ms whose thread computes; eight others read values of tensors all the time. */
static char *advise_threads(double operator_us)
{
	struct device_trace trace;

	device_trace_open(&trace);
	for (int step = 0; step < 4; step++) {
		device_trace_step(&trace, step, step * 1000, 999);
		device_trace_host(&trace, "cpu_op", "aten::mm", step * 1000 + 1, operator_us);
		for (int thread = 2; thread < 10; thread++)
			device_trace_add(&trace, "cpu_op", "aten::item", 1, thread, step * 1000 + 2, 990, "");
	}
	return device_trace_advise(&trace);
}

static void leaves_out_threads_without_steps(void **state)
{
	char *text = advise_threads(995);

	(void)state;
	assert_true(finding_ms(text, "synchronising-calls") < 0);
	ops_free(text);
	/* A step that runs no operator meanwhile waits for one of them, and no longer than it lasts. */
	text = advise_threads(1);
	assert_true(finding_ms(text, "synchronising-calls") > 0.9 && finding_ms(text, "synchronising-calls") < 1);
	assert_true(largest_percentage(text) <= 100 && all_gains(text) <= 100);
	ops_free(text);
}

/* A file that breaks off: of what it lacks nothing is known, and so of no gain. */
static void predicts_nothing_of_half_a_file(void **state)
{
	struct device_trace trace;
	struct ops_rank worker = {.name = "w"};
	struct ops_error error;
	char *text = NULL;
	size_t size;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < 4; step++) {
		device_trace_step(&trace, step, step * 1200, 1199);
		for (int i = 0; i < 40; i++)
			device_trace_work(&trace, "aten::add", "", "kernel", "add_kernel", "", step * 1200 + i * 30, 3);
	}
	ops_buffer_append_text(&trace.text, ",\n{\"ph\": \"X\", \"cat\": \"cpu");
	assert_int_equal(ops_trace_read_memory(trace.text.bytes, trace.text.size, NULL, (struct ops_trace **)&worker.trace, &error),
	                 OPS_OK);
	ops_buffer_release(&trace.text);
	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_TEXT, &text, &size, NULL), OPS_OK);
	assert_non_null(strstr(text, "The trace ends early"));
	assert_null(strstr(text, "saves"));
	ops_free(text);
	ops_trace_unref((struct ops_trace *)worker.trace);
}

/* A step whose function runs for 900 us, while a thread of the same process is in a function or in a wait. */
static char *advise_interpreter(const char *other)
{
	struct device_trace trace;

	device_trace_open(&trace);
	add_python(&trace, "train.py(1): main", 1, 1, 0, 0, 4000);
	for (int step = 0; step < 4; step++) {
		double at = step * 1000;

		device_trace_step(&trace, step, at + 1, 998);
		device_trace_host(&trace, "cpu_op", "aten::mm", at + 5, 20);
		add_python(&trace, "train.py(20): decode", 1, 2 + step, 1, at + 50, 900);
		add_python(&trace, other, 2, 10 + step, 0, at + 50, 900);
	}
	return device_trace_advise(&trace);
}

static void names_waits_for_the_interpreter(void **state)
{
	char *text = advise_interpreter("log.py(5): write_all");

	(void)state;
	assert_non_null(strstr(text, "For about 450 µs of that the thread waits for the global interpreter lock"));
	ops_free(text);
	text = advise_interpreter("threading.py(355): wait");
	assert_true(finding_ms(text, "python-in-step") > 0.8);
	assert_null(strstr(text, "interpreter lock"));
	ops_free(text);
}

/* What waits for a lock does not compute, whatever the class is that the method belongs to. */
static void separates_waiting_from_computing(void **state)
{
	static const char *const waits[][2] = {
		{"<built-in method acquire of _thread.lock object at 0x7f12>", "Waiting for a lock"},
		{"threading.py(355): Condition.wait", "Waiting for another thread"},
		{"/usr/lib/python3.12/threading.py(655): Event.wait", "Waiting for another thread"},
		{"queue.py(180): get", "Waiting for a queue"},
		{"concurrent/futures/_base.py(428): Future.result", "Waiting for another thread"}};

	(void)state;
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++) {
		struct device_trace trace;
		char *text;

		device_trace_open(&trace);
		add_python(&trace, "train.py(1): main", 1, 1, 0, 0, 4000);
		for (int step = 0; step < 4; step++) {
			double at = step * 1000;

			device_trace_step(&trace, step, at + 1, 998);
			device_trace_host(&trace, "cpu_op", "aten::mm", at + 5, 20);
			add_python(&trace, waits[i][0], 1, 2 + step, 1, at + 50, 900);
		}
		text = device_trace_advise(&trace);
		assert_true(finding_ms(text, "lock-in-step") > 0.8);
		assert_true(finding_ms(text, "python-in-step") < 0);
		assert_non_null(strstr(text, waits[i][1]));
		ops_free(text);
	}
}

/* The device waits for a function of 500 us in each step. That is one cause, and its time is counted once. */
static void reports_idle_time_once(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	add_python(&trace, "train.py(1): main", 1, 1, 0, 0, 4000);
	for (int step = 0; step < 4; step++) {
		double at = step * 1000;

		device_trace_step(&trace, step, at + 1, 998);
		add_python(&trace, "train.py(20): decode", 1, 2 + step, 1, at + 10, 480);
		for (int i = 0; i < 20; i++)
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + 500 + i * 11, 24);
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "python-in-step") > 0.4);
	assert_true(finding_ms(text, "device-idle") < 0.1);
	assert_true(all_gains(text) <= 100);
	ops_free(text);
}

/* --- gains and the rest ----------------------------------------------------------------------------------------------- */

static void share_python(struct device_trace *trace, const char *name, int id, int parent, double us, double duration_us)
{
	char args[96];

	snprintf(args, sizeof(args), "\"Python id\": %d, \"Python parent id\": %d", id, parent);
	device_trace_add(trace, "python_function", name, 1, 1, us, duration_us, args);
}

/* 100 functions of 70 us count for the one that calls them. */
static void add_short_functions(struct device_trace *trace)
{
	share_python(trace, "train.py(1): <module>", 1, 0, 0, 20000);
	share_python(trace, "train.py(9): batch", 2, 1, 5, 15000);
	for (int i = 0; i < 100; i++)
		share_python(trace, "train.py(12): negative", 3 + i, 2, 10 + 140 * i, 70);
}

/* In each step, main() of 9 ms waits for an operator of 5 ms on the thread of the backward pass, during which the device is idle. */
static void add_backward_thread(struct device_trace *trace)
{
	for (int step = 0; step < 4; step++) {
		double us = 10000 * step;

		device_trace_step(trace, step, us, 9000);
		share_python(trace, "train.py(1): main", step + 1, 0, us + 1, 8990);
		device_trace_work(trace, "aten::linear", "", "kernel", "gemm", "", us + 150, 100);
		device_trace_add(trace, "cpu_op", "autograd::engine::evaluate_function: ReluBackward0", 1, 2, us + 2000, 5000, "");
		device_trace_work(trace, "aten::add_", "", "kernel", "add", "", us + 8000, 50);
	}
}

/* The host reads a value in each step, waits for the device, and computes for 600 us before it launches the next work. */
static void add_reads(struct device_trace *trace)
{
	for (int step = 0; step < 4; step++) {
		double us = 2000 * step, done_us = 0;

		device_trace_step(trace, step, us, 1999);
		for (int i = 0; i < 10; i++)
			done_us = device_trace_work(trace, "aten::mm", "", "kernel", "gemm", "", us + i * 11, 100);
		device_trace_host(trace, "cuda_runtime", "cudaStreamSynchronize", us + 115, done_us + 1 - us - 115);
		device_trace_host(trace, "user_annotation", "evaluate", done_us + 100, 600);
	}
}

/* The device is idle during the loop of an optimizer, which is half of the step. */
static void add_optimizer(struct device_trace *trace)
{
	for (int step = 0; step < 4; step++) {
		double us = 4000 * step;

		device_trace_step(trace, step, us, 3990);
		device_trace_host(trace, "user_annotation", "Optimizer.step#Adam.step", us + 10, 1890);
		for (int i = 0; i < 60; i++)
			device_trace_work(trace, "aten::mul_", "", "kernel", "mul", "", us + 20 + i * 30, 5);
		device_trace_work(trace, "aten::mm", "", "kernel", "gemm", "", us + 1950, 2000);
	}
}

/* Calls of collectives during which no kernel with a known launch runs, and a kernel that is longer than the recording of the host. */
static void add_collectives(struct device_trace *trace)
{
	static const char nccl[] = "\"device\": 0, \"stream\": 16, \"correlation\": 900";

	device_trace_add(trace, "cpu_op", "nccl:broadcast", 1, 1, 0, 75, "");
	device_trace_add(trace, "kernel", "ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", 0, 16, 16, 16, nccl);
	device_trace_add(trace, "cpu_op", "aten::add_", 1, 1, 100, 20, "");
	device_trace_add(trace, "kernel", POINTWISE, 0, 7, 130, 161, "\"device\": 0, \"stream\": 7, \"correlation\": 901");
	device_trace_add(trace, "cpu_op", "nccl:all_reduce", 1, 2, 160, 75, "");
}

/* Returns the percentage that no finding explains; 0 if it is not shown. */
static double rest_share(const char *json)
{
	static const char key[] = "\"percent\":";
	const char *at = strstr(json, "\"not_explained\":{");

	at = at ? strstr(at, key) : NULL;
	return at ? strtod(at + strlen(key), NULL) : 0;
}

/* No nanosecond of a step is in two findings, or in a finding and in what none explains. */
static void counts_no_time_twice(void **state)
{
	static void (*const add[])(struct device_trace *) = {add_short_functions, add_backward_thread, add_reads, add_optimizer, add_collectives};

	(void)state;
	for (size_t i = 0; i < sizeof(add) / sizeof(*add); i++) {
		struct device_trace trace;
		char *text;

		device_trace_open(&trace);
		add[i](&trace);
		text = device_trace_advise(&trace);
		assert_true(all_gains(text) > 5);
		assert_true(all_gains(text) + rest_share(text) <= 100.01);
		ops_free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_out_kernels_without_launch), cmocka_unit_test(counts_time_once_for_streams),
		cmocka_unit_test(leaves_out_copies_between_steps), cmocka_unit_test(leaves_out_threads_without_steps),
		cmocka_unit_test(predicts_nothing_of_half_a_file), cmocka_unit_test(reports_idle_time_once),
		cmocka_unit_test(names_waits_for_the_interpreter), cmocka_unit_test(separates_waiting_from_computing), cmocka_unit_test(counts_no_time_twice)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
