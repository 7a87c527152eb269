/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice: parts of steps that are not Python code of the program to change: compiled regions, loops over a model's
 * layers, the capture of CUDA graphs.
 */
#include "device_trace.h"

static int last_id;

/* Adds a Python call below `parent`; returns its id. */
static int add_python(struct device_trace *trace, const char *name, int parent, double us, double duration_us)
{
	char args[96];

	snprintf(args, sizeof(args), "\"Python id\": %d, \"Python parent id\": %d", ++last_id, parent);
	device_trace_add(trace, "python_function", name, 1, 1, us, duration_us, args);
	return last_id;
}

/* Four calls a step of an operator with the program's forward below it, and a chain of operators in that. */
static char *advise_operator(const char *operator_name, const char *below)
{
	struct device_trace trace;
	int run;

	device_trace_open(&trace);
	run = add_python(&trace, "train.py(10): main", 0, 0, 40000);
	for (int step = 0; step < 4; step++) {
		device_trace_step(&trace, step, step * 10000 + 1, 9990);
		for (int call = 0; call < 4; call++) {
			double at = step * 10000 + call * 2400 + 10;
			int forward;

			device_trace_host(&trace, "cpu_op", operator_name, at, 2300);
			forward = add_python(&trace, "model.py(5): forward", run, at + 1, 2290);
			add_python(&trace, below, forward, at + 2, 2280);
			for (int i = 0; i < 20; i++)
				device_trace_host(&trace, "cpu_op", "aten::mm", at + 10 + i * 100, 60);
		}
	}
	return device_trace_advise(&trace);
}

static void knows_compiled_regions(void **state)
{
	static const char inductor[] = "/tmp/torchinductor_root/ab/cab.py(100): call";
	static const char *const regions[] = {"Torch-Compiled Region: 0/0", "## Call CompiledFxGraph fabc ##", "CompiledFunction"};
	char *text = advise_operator("Swish", "model.py(9): gate");

	(void)state;
	assert_true(finding_ms(text, "python-autograd-function") > 0);
	ops_free(text);
	for (size_t i = 0; i < sizeof(regions) / sizeof(*regions); i++) {
		text = advise_operator(regions[i], inductor);
		assert_true(finding_ms(text, "python-autograd-function") < 0);
		assert_true(finding_ms(text, "many-small-operators") < 0);
		ops_free(text);
	}
}

/* A function with 40 calls of an operator, and 60 us of Python after each. */
static char *advise_function(const char *name)
{
	struct device_trace trace;
	int run;

	device_trace_open(&trace);
	run = add_python(&trace, "train.py(10): main", 0, 0, 16000);
	for (int step = 0; step < 4; step++) {
		double at = step * 4000;

		device_trace_step(&trace, step, at + 1, 3990);
		add_python(&trace, name, run, at + 5, 3980);
		for (int i = 0; i < 60; i++)
			device_trace_host(&trace, "cpu_op", "aten::mm", at + 10 + i * 66, 15);
	}
	return device_trace_advise(&trace);
}

/* What Inductor writes is straight-line code, whatever folder its cache is in. */
static void knows_generated_code(void **state)
{
	static const char *const generated[] = {
		"/tmp/torchinductor_root/ab/cab.py(100): call", "/data/torch_compile_cache/7f/rank_0/inductor_cache/xy/cxy.py(8): call",
		"/cache/qw/cqwertyuiopasdfghjklzxcvbnmqwertyuiopasdfghjklzxcv.py(31): call"};
	char *text = advise_function("model.py(5): forward");

	(void)state;
	assert_true(finding_ms(text, "many-small-operators") > 0);
	ops_free(text);
	for (size_t i = 0; i < sizeof(generated) / sizeof(*generated); i++) {
		text = advise_function(generated[i]);
		assert_true(finding_ms(text, "many-small-operators") < 0);
		assert_true(finding_ms(text, "python-in-step") < 0);
		ops_free(text);
	}
}

/* A thread plays while the steps compute for half of their time and sleep for the rest, in which they may wait for it. */
static void counts_only_operators_of_a_loop_on_another_thread(void **state)
{
	struct device_trace trace;
	char *text;

	(void)state;
	device_trace_open(&trace);
	device_trace_add(&trace, "python_function", "play.py(5): play", 1, 2, 0, 16000, "\"Python id\": 1");
	for (int step = 0; step < 4; step++) {
		double at = step * 4000;

		device_trace_step(&trace, step, at + 1, 3990);
		device_trace_host(&trace, "cpu_op", "aten::mm", at + 2, 2000);
		for (int i = 0; i < 60; i++)
			device_trace_add(&trace, "cpu_op", "aten::neg", 1, 2, at + 10 + i * 66, 5, "");
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "many-small-operators") < 60 * 0.005);
	ops_free(text);
}

/* A function with 32 calls of an operator on equal inputs, of which every other one waits for another thread. */
static void knows_small_operators_on_a_busy_machine(void **state)
{
	struct device_trace trace;
	char *text;
	int run;

	(void)state;
	device_trace_open(&trace);
	run = add_python(&trace, "train.py(10): main", 0, 0, 16000);
	for (int step = 0; step < 4; step++) {
		double at = step * 4000;

		device_trace_step(&trace, step, at + 1, 3990);
		add_python(&trace, "model.py(5): forward", run, at + 5, 3980);
		for (int i = 0; i < 32; i++)
			device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, at + 10 + i * 120, i % 2 ? 110 : 5,
			                 "\"Input Dims\": [[1, 64], [64, 64]], \"Input type\": [\"float\", \"float\"]");
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "many-small-operators") > 0);
	ops_free(text);
}

/* A loop that calls a function with a loop: the loops in it take most of the time. Each iteration has a backward pass. */
static void names_the_innermost_loop(void **state)
{
	struct device_trace trace;
	char *text, args[64];
	int run, sequence = 0;

	(void)state;
	device_trace_open(&trace);
	run = add_python(&trace, "train.py(10): main", 0, 0, 16000);
	for (int step = 0; step < 4; step++) {
		double at = step * 4000;
		int forward;

		device_trace_step(&trace, step, at + 1, 3990);
		forward = add_python(&trace, "model.py(5): forward", run, at + 5, 3980);
		for (int i = 0; i < 20; i++) {
			add_python(&trace, "detect.py(3): detect", forward, at + 10 + i * 190, 180);
			for (int j = 0; j < 16; j++) {
				snprintf(args, sizeof(args), "\"Sequence number\": %d, \"Fwd thread id\": 0", ++sequence);
				device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, at + 12 + i * 190 + j * 11, 3, args);
				snprintf(args, sizeof(args), "\"Sequence number\": %d, \"Fwd thread id\": 1", sequence);
				device_trace_add(&trace, "cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, 1,
				                 at + 16 + i * 190 + j * 11, 3, args);
			}
		}
	}
	text = device_trace_advise(&trace);
	assert_true(finding_ms(text, "many-small-operators") > 0);
	assert_non_null(strstr(text, "\"where\":[{\"file\":\"detect.py\""));
	assert_null(strstr(text, "in the backward pass"));
	ops_free(text);
}

/* Steps in which a function calls one operator, and computes for the rest of the time. */
static char *advise_loop(const char *loop)
{
	struct device_trace trace;
	int main_id, loop_id;

	device_trace_open(&trace);
	main_id = add_python(&trace, "train.py(28): main", 0, 0, 40000);
	loop_id = add_python(&trace, loop, main_id, 1, 39995);
	for (int step = 0; step < 4; step++) {
		double at = step * 10000 + 2;

		device_trace_step(&trace, step, at, 9990);
		add_python(&trace, "/v/lib/python3.11/site-packages/trainer/batch.py(3): place", loop_id, at + 10, 2000);
		device_trace_host(&trace, "cpu_op", "aten::mm", at + 3000, 4000);
	}
	return device_trace_advise(&trace);
}

/* A trainer's own Python is not the program's: the line that calls the trainer is named, and whose code it is. */
static void knows_the_loop_of_a_library(void **state)
{
	char *text = advise_loop("train.py(12): loop");

	(void)state;
	assert_true(finding_ms(text, "python-in-step") > 0);
	assert_non_null(strstr(text, "Functions of the program compute in Python"));
	ops_free(text);
	text = advise_loop("/v/lib/python3.11/site-packages/trainer/loop.py(5): fit");
	assert_true(finding_ms(text, "python-in-step") > 0);
	assert_null(strstr(text, "Functions of the program compute"));
	assert_non_null(strstr(text, "Code of trainer computes in Python, outside of operators, for 5.98"));
	assert_non_null(strstr(text, "\"predicted_gain_bound\":\"at most\""));
	assert_non_null(strstr(text, "This is code of trainer, not of the program"));
	assert_non_null(strstr(text, "\"file\":\"train.py\",\"line\":28"));
	assert_non_null(strstr(text, "\"confidence\":\"low\""));
	ops_free(text);
}

/* Advises on a loop each of whose iterations calls a module: the same one, or the next layer. */
static char *advise_modules(bool layers)
{
	struct device_trace trace;
	int run;

	device_trace_open(&trace);
	run = add_python(&trace, "train.py(10): main", 0, 0, 16000);
	for (int step = 0; step < 4; step++) {
		double at = step * 4000;
		int model;

		device_trace_step(&trace, step, at + 1, 3990);
		model = add_python(&trace, "model.py(5): forward", run, at + 5, 3980);
		for (int i = 0; i < 40; i++) {
			char name[64];
			int block;

			snprintf(name, sizeof(name), "nn.Module: Block_%d", layers ? i : 0);
			block = add_python(&trace, "model.py(30): run_block", model, at + 10 + i * 99, 90);
			add_python(&trace, name, block, at + 11 + i * 99, 85);
			device_trace_host(&trace, "cpu_op", "aten::mm", at + 20 + i * 99, 25);
		}
	}
	return device_trace_advise(&trace);
}

static void leaves_loops_over_layers_alone(void **state)
{
	char *text = advise_modules(false);

	(void)state;
	assert_true(finding_ms(text, "many-small-operators") > 0);
	ops_free(text);
	text = advise_modules(true);
	assert_true(finding_ms(text, "many-small-operators") < 0);
	ops_free(text);
}

/* Advises on a server that captures graphs for 90 ms, where nothing runs, and then serves for 10 ms with a busy device. */
static char *advise_server(const char *begin, const char *end, const char *function)
{
	struct device_trace trace;

	device_trace_open(&trace);
	for (int i = 0; i < 10; i++) {
		double at = i * 9000;

		device_trace_host(&trace, "cuda_runtime", begin, at, 10);
		for (int k = 0; k < 20; k++)
			device_trace_host(&trace, "cpu_op", "aten::mm", at + 100 + k * 400, 300);
		device_trace_host(&trace, "cuda_runtime", end, at + 8900, 10);
	}
	add_python(&trace, function, 0, 0, 89990);
	for (int i = 0; i < 100; i++)
		device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", 90000 + i * 20, 100);
	return device_trace_advise(&trace);
}

static void leaves_captures_out_of_the_steps(void **state)
{
	static const char *const ways[][3] = {
		{"cudaStreamBeginCapture", "cudaStreamEndCapture", "server.py(1): start"},
		{"hipStreamBeginCapture", "hipStreamEndCapture", "server.py(1): start"},
		{"cudaFuncGetAttributes", "cudaFuncGetAttributes", "vllm/v1/worker/gpu_model_runner.py(2): capture_model"},
		{"cudaFuncGetAttributes", "cudaFuncGetAttributes", "vllm/v1/worker/gpu_worker.py(2): compile_or_warm_up_model"}};
	char *text = advise_server("cudaFuncGetAttributes", "cudaFuncGetAttributes", "server.py(1): start");

	(void)state;
	assert_non_null(strstr(text, "The device is idle for 9"));
	ops_free(text);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		text = advise_server(ways[i][0], ways[i][1], ways[i][2]);
		assert_null(strstr(text, "The device is idle for 9"));
		assert_null(strstr(text, "The device is idle for 8"));
		ops_free(text);
	}
}

/* Characters until the end of a line of UTF-8. */
static size_t line_width(const char *line)
{
	size_t width = 0;

	for (; *line && *line != '\n'; line++)
		width += ((unsigned char)*line & 0xc0) != 0x80;
	return width;
}

/* Of eight steps one takes ten times as long. What percentages are of is said, next to the average of all. */
static void names_the_base_of_percentages(void **state)
{
	struct device_trace trace;
	struct ops_trace *read;
	struct ops_rank worker;
	char *text = NULL;
	size_t size;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < 8; step++) {
		double at = step ? 10000 + step * 1000 : 0;

		device_trace_step(&trace, step, at, step ? 999 : 9990);
		for (int i = 0; i < 20; i++)
			device_trace_work(&trace, "aten::mm", "", "kernel", "gemm", "", at + i * 20, 5);
	}
	read = device_trace_read(&trace);
	worker = (struct ops_rank){.trace = read, .name = "w"};
	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_TEXT, &text, &size, NULL), OPS_OK);
	assert_non_null(strstr(text, "Percentages are shares of the average steady step"));
	assert_non_null(strstr(text, "of 8 steps are"));
	for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		assert_true(line_width(line) < 80 || !strncmp(line, "   https://", strlen("   https://")));
	ops_free(text);
	assert_int_equal(ops_advise(&worker, 1, OPS_FORMAT_JSON, &text, &size, NULL), OPS_OK);
	assert_non_null(strstr(text, "\"steady_steps\":7"));
	assert_non_null(strstr(text, "(7 of 8 steps are steady; "));
	ops_free(text);
	ops_trace_unref(read);
}

/* A program without steps that only imports a package, or that computes. */
static char *advise_without_steps(const char *called)
{
	struct device_trace trace;
	int run;

	device_trace_open(&trace);
	run = add_python(&trace, "train.py(1): <module>", 0, 0, 20000);
	add_python(&trace, called, run, 5, 19000);
	return device_trace_advise(&trace);
}

static void imports_are_not_the_program(void **state)
{
	char *text = advise_without_steps("train.py(9): compute");

	(void)state;
	assert_true(finding_ms(text, "python-in-step") > 0);
	ops_free(text);
	text = advise_without_steps("import torch");
	assert_true(finding_ms(text, "python-in-step") < 0);
	ops_free(text);
}

/* 100 functions of 70 us each: too short to matter alone. */
static void short_functions_count_for_their_caller(void **state)
{
	struct device_trace trace;
	char *text;
	int run, batch;

	(void)state;
	device_trace_open(&trace);
	run = add_python(&trace, "train.py(1): <module>", 0, 0, 20000);
	batch = add_python(&trace, "train.py(9): batch", run, 5, 15000);
	for (int i = 0; i < 100; i++)
		add_python(&trace, "train.py(12): negative", batch, 10 + 140 * i, 70);
	text = device_trace_advise(&trace);
	assert_float_equal(finding_ms(text, "python-in-step"), 20, 0.2);
	assert_non_null(strstr(text, "\"line\":12"));
	ops_free(text);
}

/* A package that imports its parts when they are first used: 6 ms of the 9 ms that the call takes. */
static void lazy_imports_are_not_the_program(void **state)
{
	struct device_trace trace;
	char *text;
	int run, lazy;

	(void)state;
	device_trace_open(&trace);
	run = add_python(&trace, "train.py(1): <module>", 0, 0, 20000);
	lazy = add_python(&trace, "/v/lib/python3.11/site-packages/lazy/__init__.py(8): __getattr__", run, 5, 9000);
	add_python(&trace, "import lazy.parts", lazy, 10, 6000);
	text = device_trace_advise(&trace);
	assert_float_equal(finding_ms(text, "python-in-step"), 14, 0.02);
	assert_non_null(strstr(text, "shares of its total time, 14.0 ms, which excludes 6.00 ms of imports."));
	ops_free(text);
}

/* A program without steps that calls a package, which computes with operators or without: 10 ms of Python, and operators of 5 ms. It may call it
 * by a wrapper of torch. */
static char *advise_package(bool operators, bool wrapped)
{
	struct device_trace trace;
	int run;

	device_trace_open(&trace);
	run = add_python(&trace, "fit.py(1): <module>", 0, 0, 20000);
	if (wrapped)
		run = add_python(&trace, "torch/utils/_contextlib.py(120): no_grad.decorate_context", run, 5, 15000);
	add_python(&trace, "/v/lib/python3.11/site-packages/optimizers/fit.py(5): minimize", run, wrapped ? 6 : 5, wrapped ? 14998 : 15000);
	device_trace_host(&trace, "cpu_op", "aten::mm", 1, 3);
	device_trace_host(&trace, "cpu_op", "aten::mm", operators ? 100 : 15100, 4800);
	device_trace_host(&trace, "cpu_op", "aten::mm", 19990, 3);
	return device_trace_advise(&trace);
}

/* A package that computes with torch is named, and its Python is nothing that the program could replace. */
static void knows_packages_that_call_operators(void **state)
{
	char *text = advise_package(false, false);

	(void)state;
	assert_non_null(strstr(text, "Functions of the program compute in Python"));
	assert_non_null(strstr(text, "\"severity\":\"high\""));
	ops_free(text);
	text = advise_package(true, false);
	assert_non_null(strstr(text, "Code of optimizers computes in Python, outside of operators, for 10."));
	assert_non_null(strstr(text, "The longest call is of minimize."));
	assert_null(strstr(text, "\"severity\":\"high\""));
	ops_free(text);
	text = advise_package(true, true);
	assert_non_null(strstr(text, "Code of optimizers computes in Python, outside of operators, for 10."));
	ops_free(text);
}

/* Python code of torch connects operators, also where files have complete paths. */
static void leaves_out_code_of_torch(void **state)
{
	struct device_trace trace;
	char *text;
	int run;

	(void)state;
	device_trace_open(&trace);
	run = add_python(&trace, "fit.py(1): <module>", 0, 0, 20000);
	for (int i = 0; i < 4; i++) {
		add_python(&trace, "/v/lib/python3.11/site-packages/torch/nn/functional.py(5): smooth_l1_loss", run, 10 + 5000 * i, 1000);
		device_trace_host(&trace, "cpu_op", "aten::smooth_l1_loss", 20 + 5000 * i, 300);
		device_trace_host(&trace, "cpu_op", "aten::mm", 1100 + 5000 * i, 3900);
	}
	text = device_trace_advise(&trace);
	assert_null(strstr(text, "\"id\":\"python-in-step\""));
	ops_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_compiled_regions), cmocka_unit_test(knows_generated_code),
		cmocka_unit_test(counts_only_operators_of_a_loop_on_another_thread),
		cmocka_unit_test(knows_small_operators_on_a_busy_machine), cmocka_unit_test(names_the_innermost_loop), cmocka_unit_test(knows_the_loop_of_a_library),
		cmocka_unit_test(leaves_loops_over_layers_alone), cmocka_unit_test(leaves_captures_out_of_the_steps),
		cmocka_unit_test(names_the_base_of_percentages), cmocka_unit_test(imports_are_not_the_program),
		cmocka_unit_test(lazy_imports_are_not_the_program),
		cmocka_unit_test(short_functions_count_for_their_caller), cmocka_unit_test(knows_packages_that_call_operators), cmocka_unit_test(leaves_out_code_of_torch)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
