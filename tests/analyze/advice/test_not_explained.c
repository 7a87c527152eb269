/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice: the time that no finding explains. Claimed time and the rest are the step, and each line has its share.
 */
#include "device_trace.h"


static void rest_python(struct device_trace *trace, const char *name, int id, int parent, double us, double duration_us)
{
	char args[96];

	snprintf(args, sizeof(args), "\"Python id\": %d, \"Python parent id\": %d", id, parent);
	device_trace_add(trace, "python_function", name, 1, 1, us, duration_us, args);
}

/* Four steps of 1 ms: attend() calls an operator of 600 us, update() one of 200 us, and 100 us are in no function. A finding explains these, and
 * the 50 us outside of operators of each function. */
static void add_steps(struct device_trace *trace, const char *operator_name)
{
	for (int step = 0; step < 4; step++) {
		double at = 1000 * step;

		device_trace_step(trace, step, at, 1000);
		rest_python(trace, "train.py(10): attend", 10 + 2 * step, 0, at + 10, 650);
		device_trace_host(trace, "cpu_op", operator_name, at + 20, 600);
		rest_python(trace, "train.py(30): update", 11 + 2 * step, 0, at + 680, 250);
		device_trace_host(trace, "cpu_op", "aten::lerp", at + 700, 200);
	}
}

/* Returns a number member after the first occurrence of a text in the section; -1 if there is none. */
static double number_after(const char *json, const char *text, const char *member)
{
	char key[64];
	const char *at = strstr(strstr(json, "\"not_explained\":"), text);

	snprintf(key, sizeof(key), "\"%s\":", member);
	at = at ? strstr(at, key) : NULL;
	return at ? strtod(at + strlen(key), NULL) : -1;
}

static double rest_percent(const char *json)
{
	return number_after(json, "\"not_explained\":", "percent");
}

static void splits_a_step_by_line(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	add_steps(&trace, "aten::bmm");
	text = device_trace_advise(&trace);
	assert_float_equal(rest_percent(text) + number_after(text, "\"not_explained\":", "explained_percent"), 100, 1e-6);
	assert_float_equal(number_after(text, "\"function\":\"attend\"", "percent"), 60, 0.5);
	assert_float_equal(number_after(text, "\"function\":\"attend\"", "operators_percent"), 60, 0.1);
	assert_float_equal(number_after(text, "\"function\":\"attend\"", "python_percent"), 0, 0.5);
	assert_float_equal(number_after(text, "\"function\":\"attend\"", "calls_per_step"), 1, 1e-6);
	assert_float_equal(number_after(text, "\"function\":\"update\"", "percent"), 20, 0.5);
	assert_non_null(strstr(text, "60.3 % of a step: operators; aten::bmm 60.0 %; 1 call."));
	ops_free(text);
}

/* Four steps of 1 ms. fit() calls functions of two libraries, which call operators: torch's own function is not named. A finding
 * about Python code explains what they compute themselves. */
static char *advise_calls_of_libraries(const char *operator_name, enum ops_format format)
{
	struct device_trace trace;

	device_trace_open(&trace);
	for (int step = 0; step < 4; step++) {
		double at = 1000 * step;
		int id = 10 * step + 10;

		device_trace_step(&trace, step, at, 1000);
		rest_python(&trace, "train.py(30): fit", id, 0, at + 10, 900);
		rest_python(&trace, "/v/site-packages/lightning/loop.py(12): run", id + 1, id, at + 20, 860);
		rest_python(&trace, "/v/site-packages/torch/nn/linear.py(5): forward", id + 2, id + 1, at + 30, 620);
		device_trace_host(&trace, "cpu_op", operator_name, at + 40, 600);
		rest_python(&trace, "/v/site-packages/metrics/mean.py(7): update", id + 3, id + 1, at + 660, 210);
		device_trace_host(&trace, "cpu_op", "aten::lerp", at + 665, 200);
	}
	return device_trace_advise_as(&trace, format);
}

static void names_the_lines_of_libraries(void **state)
{
	char *text = advise_calls_of_libraries("aten::bmm", OPS_FORMAT_JSON);

	(void)state;
	assert_non_null(strstr(text, "Through lightning/loop.py:12 in run 60.0 %, metrics/mean.py:7 in update 20.0 %."));
	ops_free(text);
	text = advise_calls_of_libraries("aten::_local_scalar_dense", OPS_FORMAT_JSON);
	assert_true(finding_ms(text, "synchronising-calls") > 0.5);
	assert_non_null(strstr(text, "\"file\":\"train.py\",\"line\":30"));
	assert_non_null(strstr(text, "\"through\":[{\"file\":\"/v/site-packages/lightning/loop.py\",\"path\":\"lightning/loop.py\",\"line\":12,\"function\":\"run\"}]"));
	ops_free(text);
	text = advise_calls_of_libraries("aten::_local_scalar_dense", OPS_FORMAT_TEXT);
	assert_non_null(strstr(text, "\n      through lightning/loop.py:12 in run\n"));
	ops_free(text);
	text = advise_calls_of_libraries("aten::_local_scalar_dense", OPS_FORMAT_MARKDOWN);
	assert_non_null(strstr(text, "\n  - through lightning/loop.py:12 in run\n"));
	ops_free(text);
}

/* Without calls: each step of 1 ms has an operator of 400 us, called at line 6, and samples of the rest, of which one in three waits for
 * a file at line 9. */
static void splits_python_code_by_samples(void **state)
{
	struct device_trace trace = {.correlation = 1};
	char *text;

	(void)state;
	ops_buffer_append_text(&trace.text, "{\"python_samples\": {\"version\": 1, \"start_ns\": 0, \"functions\": [[\"train.py\", \"load\"]], "
	                                    "\"stacks\": [-1, 0, 8, -1, 0, 9, -1, 0, 6], \"threads\": [{\"tid\": 1, \"samples\": [");
	for (int step = 0; step < 4; step++)
		ops_buffer_printf(&trace.text, "%s%d, 200, 2, 0, %d, 200, 0, 0, %d, 200, 0, 0, %d, 200, 1, 4", step ? ", " : "", 1000 * step + 200, 1000 * step + 500,
		                  1000 * step + 700, 1000 * step + 900);
	ops_buffer_append_text(&trace.text, "]}]}, \"traceEvents\": [{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
	for (int step = 0; step < 4; step++) {
		device_trace_step(&trace, step, 1000 * step, 1000);
		device_trace_add(&trace, "cpu_op", "aten::bmm", 1, 1, 1000 * step, 400, "\"Call stack\": \"train.py(6): load;\"");
	}
	text = device_trace_advise(&trace);
	assert_float_equal(number_after(text, "\"line\":6", "operators_percent"), 40, 0.1);
	assert_float_equal(number_after(text, "\"line\":8", "python_percent"), 40, 0.1);
	assert_float_equal(number_after(text, "\"line\":9", "waiting_percent"), 20, 0.1);
	assert_non_null(strstr(text, "20.0 % of a step: waiting for a file or the network."));
	assert_float_equal(rest_percent(text), 100, 1e-6);
	ops_free(text);
}

/* A sample at the line of operators leaves their place as it is: the rule reads the call from which they come. */
static void keeps_lines_of_operators_that_samples_have(void **state)
{
	struct device_trace trace = {.correlation = 1};
	char *text;

	(void)state;
	ops_buffer_append_text(&trace.text, "{\"python_samples\": {\"version\": 1, \"start_ns\": 0, \"functions\": [[\"train.py\", \"load\"]], "
	                                    "\"stacks\": [-1, 0, 6], \"threads\": [{\"tid\": 1, \"samples\": [900, 200, 0, 0]}]}, "
	                                    "\"traceEvents\": [{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
	for (int step = 0; step < 4; step++) {
		device_trace_step(&trace, step, 1000 * step, 1000);
		device_trace_add(&trace, "cpu_op", "aten::mean", 1, 1, 1000 * step, 300, "\"Call stack\": \"train.py(6): load;\"");
		device_trace_add(&trace, "cpu_op", "aten::item", 1, 1, 1000 * step + 300, 400, "\"Call stack\": \"train.py(6): load;\"");
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "synchronising-calls") >= 0.4);
	assert_non_null(strstr(text, "\"file\":\"train.py\",\"line\":6"));
	ops_free(text);
}

/* Without calls: each step of 1 ms waits 500 us for a batch at line 9, and samples find the program at line 20 of the data set in that time. */
static void names_lines_of_the_loader_by_samples(void **state)
{
	struct device_trace trace = {.correlation = 1};
	char *text, *finding, *line;

	(void)state;
	ops_buffer_append_text(&trace.text, "{\"python_samples\": {\"version\": 1, \"start_ns\": 0, \"functions\": [[\"train.py\", \"fit\"], [\"data.py\", \"read\"]], "
	                                    "\"stacks\": [-1, 0, 9, 0, 1, 20, 0, 1, 21], \"threads\": [{\"tid\": 1, \"samples\": [");
	for (int step = 0; step < 4; step++)
		ops_buffer_printf(&trace.text, "%s%d, 200, 1, 0, %d, 100, 2, 0", step ? ", " : "", 1000 * step + 200, 1000 * step + 400);
	ops_buffer_append_text(&trace.text, "]}]}, \"traceEvents\": [{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
	for (int step = 0; step < 4; step++) {
		device_trace_step(&trace, step, 1000 * step, 1000);
		device_trace_add(&trace, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 1, 1000 * step, 500,
		                 "\"Call stack\": \"train.py(9): fit;\"");
		device_trace_add(&trace, "cpu_op", "aten::bmm", 1, 1, 1000 * step + 500, 500, "\"Call stack\": \"train.py(10): fit;\"");
	}
	text = device_trace_advise(&trace);
	finding = strstr(text, "loader-bound");
	assert_non_null(finding);
	finding = strstr(finding, "\"where\":");
	assert_non_null(finding);
	line = strstr(finding, "\"line\":20,\"function\":\"read\"");
	assert_non_null(line);
	assert_true(strstr(finding, "\"line\":") == line);
	assert_non_null(strstr(finding, "\"line\":21"));
	ops_free(text);
}

/* One line calls three modules, which launch work of 300, 200 and 60 us. */
static void names_the_modules_of_a_line(void **state)
{
	static const struct {
		const char *name, *operator_name;
		double us;
	} modules[] = {{"nn.Module: Linear_0", "aten::bmm", 200}, {"nn.Module: Conv2d_0", "aten::lerp", 300}, {"nn.Module: ReLU_0", "aten::cos", 60}};
	struct device_trace trace;
	char *text, args[96];

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < 4; step++) {
		double at = 1000 * step;

		device_trace_step(&trace, step, at, 1000);
		rest_python(&trace, "train.py(30): fit", 10 * step + 10, 0, at + 5, 900);
		for (int i = 0; i < 3; i++) {
			snprintf(args, sizeof(args), "\"Python id\": %d, \"Python parent id\": %d, \"Python module id\": %d", 10 * step + 11 + i, 10 * step + 10, i);
			device_trace_add(&trace, "python_function", modules[i].name, 1, 1, at + 10 + 20 * i, 15, args);
			device_trace_work(&trace, modules[i].operator_name, "", "kernel", "kernel", "", at + 12 + 20 * i, modules[i].us);
		}
	}
	text = device_trace_advise(&trace);
	assert_non_null(strstr(text, "\"line\":30"));
	assert_non_null(strstr(text, "\"module\":null"));
	assert_non_null(strstr(text, "\"modules\":\"Conv2d_0 30"));
	assert_non_null(strstr(text, "In Conv2d_0 30"));
	ops_free(text);
}

/* A finding claims attend(), which reads a value, and another one the time in Python: the operator of update() is left. */
static void leaves_out_what_findings_claim(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	add_steps(&trace, "aten::_local_scalar_dense");
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "synchronising-calls") > 0.5);
	assert_float_equal(rest_percent(text), 20, 1);
	assert_null(strstr(strstr(text, "\"not_explained\""), "attend"));
	assert_float_equal(rest_percent(text) + number_after(text, "\"not_explained\":", "explained_percent"), 100, 1e-6);
	assert_float_equal(number_after(text, "\"function\":\"update\"", "percent"), 20, 1);
	ops_free(text);
}

/* The forward operator has sequence number 7, and its backward node runs on another thread while the first one waits. */
static void adds_the_backward_pass_to_its_line(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < 4; step++) {
		double at = 1000 * step;

		device_trace_step(&trace, step, at, 1000);
		rest_python(&trace, "train.py(10): attend", 10 + 2 * step, 0, at + 10, 310);
		device_trace_add(&trace, "cpu_op", "aten::softmax", 1, 1, at + 10, 300, "\"Sequence number\": 7, \"Fwd thread id\": 0");
		rest_python(&trace, "train.py(20): train", 11 + 2 * step, 0, at + 330, 610);
		device_trace_add(&trace, "cpu_op", "SoftmaxBackward0", 1, 2, at + 335, 600,
		                 "\"Sequence number\": 7, \"Fwd thread id\": 1");
	}
	text = device_trace_advise(&trace);
	assert_float_equal(number_after(text, "\"function\":\"attend\"", "percent"), 91, 0.5);
	assert_true(number_after(text, "\"function\":\"train\"", "percent") < 5);
	assert_float_equal(rest_percent(text) + number_after(text, "\"not_explained\":", "explained_percent"), 100, 1e-6);
	ops_free(text);
}

/* A device works for 700 of 1000 us. Without Python calls, time is by operator. */
static void names_operators_without_lines(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < 4; step++) {
		device_trace_step(&trace, step, 1000 * step, 1000);
		device_trace_work(&trace, "aten::bmm", "", "kernel", "bmm_kernel", "", 1000 * step + 10, 700);
	}
	text = device_trace_advise(&trace);
	assert_float_equal(number_after(text, "\"operator\":\"aten::bmm\"", "device_percent"), 70, 0.1);
	assert_non_null(strstr(text, "would show the lines"));
	assert_true(rest_percent(text) <= 100);
	ops_free(text);
}

/* Without calls: of each step of 1 ms an operator has 200 us, and the thread waits 600 us for a lock, at lines 8 and 9. With and without
 * marks of steps. */
static void names_the_lines_of_waits_by_samples(void **state)
{
	(void)state;
	for (int marked = 0; marked < 2; marked++) {
		struct device_trace trace = {.correlation = 1};
		char *text;

		ops_buffer_append_text(&trace.text, "{\"python_samples\": {\"version\": 1, \"start_ns\": 0, \"functions\": [[\"train.py\", \"save\"]], "
		                                    "\"stacks\": [-1, 0, 8, -1, 0, 9], \"threads\": [{\"tid\": 1, \"samples\": [");
		for (int step = 0; step < 4; step++)
			ops_buffer_printf(&trace.text, "%s%d, 200, 0, 3, %d, 200, 0, 3, %d, 200, 1, 3", step ? ", " : "", 1000 * step + 500, 1000 * step + 700,
			                  1000 * step + 900);
		ops_buffer_append_text(&trace.text, "]}]}, \"thread_states\": {\"start_ns\": 0, \"threads\": [{\"tid\": 1, \"intervals\": [");
		for (int step = 0; step < 4; step++)
			ops_buffer_printf(&trace.text, "%s%d, %d, 3", step ? ", " : "", 1000 * step + 300, 1000 * step + 900);
		ops_buffer_append_text(&trace.text, "]}]}, \"traceEvents\": [{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
		for (int step = 0; step < 4; step++) {
			if (marked)
				device_trace_step(&trace, step, 1000 * step, 1000);
			device_trace_add(&trace, "cpu_op", "aten::bmm", 1, 1, 1000 * step, 200, "\"Call stack\": \"train.py(6): train;\"");
		}
		device_trace_add(&trace, "cpu_op", "aten::bmm", 1, 1, 4000, 1, "\"Call stack\": \"train.py(6): train;\"");
		text = device_trace_advise(&trace);
		/* Without marks, all of the rest is at the lines of the samples. */
		assert_float_equal(number_after(text, "\"line\":8", "waiting_percent"), marked ? 40 : 160.0 / 3, 0.1);
		assert_float_equal(number_after(text, "\"line\":9", "waiting_percent"), marked ? 20 : 80.0 / 3, 0.1);
		assert_float_equal(number_after(text, "\"line\":6", "operators_percent"), 20, 0.1);
		ops_free(text);
	}
}

/* Each step of 1 ms computes for 300 us, and waits 600 us for a thread of Gloo, which reduces: that is communication, and a finding says so. */
static void counts_waits_for_collectives_as_communication(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < 4; step++) {
		device_trace_step(&trace, step, 1000 * step, 999);
		device_trace_host(&trace, "cpu_op", "aten::mm", 1000 * step + 10, 300);
		device_trace_host(&trace, "cpu_op", "c10d::allreduce_", 1000 * step + 320, 10);
		device_trace_add(&trace, "cpu_op", "gloo:all_reduce", 1, 2, 1000 * step + 330, 600, "");
	}
	text = device_trace_advise(&trace);
	assert_non_null(strstr(text, "\"communication-bound\""));
	assert_float_equal(rest_percent(text), 40, 1);
	ops_free(text);
}

/* A step of 2 ms waits 1 ms for a CPU, half of it outside of operators. Its length excludes both halves. */
static void excludes_waits_outside_of_operators(void **state)
{
	struct device_trace trace = {.correlation = 1};
	char *text;

	(void)state;
	ops_buffer_append_text(&trace.text, "{\"machine\": {\"threads\": 1, \"steps\": [[0, 1000000, 1000000, 0, 0], [1, 1000000, 1000000, 0, 0], "
	                                    "[2, 1000000, 1000000, 0, 0], [3, 1000000, 1000000, 0, 0]]}, \"traceEvents\": [\n"
	                                    "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
	for (int step = 0; step < 4; step++) {
		device_trace_step(&trace, step, 2000 * step, 2000);
		device_trace_host(&trace, "cpu_op", "aten::mm", 2000 * step + 500, 1000);
	}
	text = device_trace_advise(&trace);
	assert_non_null(strstr(text, "shares of the average step, 1.00 ms, which excludes 1.00 ms of waiting for a CPU"));
	assert_float_equal(number_after(text, "\"operator\":\"aten::mm\"", "percent"), 50, 0.1);
	ops_free(text);
}

/* Without lines, idle time is spread over all operators during which the device is idle. One finding explains the launches of four
 * operators, another one the 3 ms of work in each of two others; nothing of that is left. */
static void spreads_idle_time_over_operators(void **state)
{
	static const char *const launching[] = {"aten::add", "aten::mul", "aten::relu", "aten::sub"};
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < 4; step++) {
		double at = 10000 * step;

		device_trace_step(&trace, step, at, 9999);
		for (int i = 0; i < 100; i++)
			device_trace_work(&trace, launching[i % 4], "", "kernel", "small_kernel", "", at + 30 * i, 3);
		device_trace_host(&trace, "cpu_op", "aten::sort", at + 3000, 3000);
		device_trace_host(&trace, "cpu_op", "aten::unique", at + 6000, 3000);
		device_trace_work(&trace, "aten::bmm", "", "kernel", "bmm_kernel", "", at + 9010, 900);
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "launch-bound") > 2.2);
	assert_true(finding_ms(text, "device-idle") > 5.8);
	/* The 900 us of the device, its 300 us of small kernels, and what a graph leaves of each gap. */
	assert_true(rest_percent(text) > 9 && rest_percent(text) < 16);
	assert_true(number_after(text, "\"operator\":\"aten::bmm\"", "device_percent") > 8.9);
	ops_free(text);
}

/* The thread that launches records nothing before; meanwhile the step waits in an operator of its thread. */
static void finds_idle_time_on_the_thread_of_the_step(void **state)
{
	struct device_trace trace;
	char *text, args[96];

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < 4; step++) {
		double at = 10000 * step;

		device_trace_step(&trace, step, at, 9999);
		device_trace_host(&trace, "cpu_op", "wait_for_backward", at + 10, 9900);
		for (int i = 0; i < 20; i++) {
			snprintf(args, sizeof(args), "\"correlation\": %d, \"device\": 0, \"stream\": 7", 100 * step + i + 1);
			device_trace_add(&trace, "cpu_op", "MmBackward0", 1, 2, at + 8000 + 95 * i, 20, "\"Fwd thread id\": 1, \"Sequence number\": 1");
			device_trace_add(&trace, "cuda_runtime", "cudaLaunchKernel", 1, 2, at + 8005 + 95 * i, 10, args);
			device_trace_add(&trace, "kernel", "gemm", 0, 7, at + 8010 + 95 * i, 94, args);
		}
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "device-idle") > 7.5);
	assert_true(rest_percent(text) < 25);
	ops_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_the_lines_of_waits_by_samples), cmocka_unit_test(counts_waits_for_collectives_as_communication),
		cmocka_unit_test(excludes_waits_outside_of_operators),
		cmocka_unit_test(spreads_idle_time_over_operators), cmocka_unit_test(finds_idle_time_on_the_thread_of_the_step),
		cmocka_unit_test(splits_a_step_by_line), cmocka_unit_test(splits_python_code_by_samples),
		cmocka_unit_test(names_the_lines_of_libraries), cmocka_unit_test(leaves_out_what_findings_claim),
		cmocka_unit_test(adds_the_backward_pass_to_its_line), cmocka_unit_test(names_operators_without_lines),
		cmocka_unit_test(names_the_modules_of_a_line), cmocka_unit_test(keeps_lines_of_operators_that_samples_have), cmocka_unit_test(names_lines_of_the_loader_by_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
