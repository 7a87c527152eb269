/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/module_*: the cost of modules, and the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/modules.h>

#include "../base/failing.h"
#include "../trace/lists.h"
#include "../trace/modules.h"
#include "../trace/random.h"
#include "scene.h"

static struct ops_module_tree *tree_of(const struct ops_trace *trace)
{
	struct ops_module_tree *tree = NULL;

	assert_int_equal(ops_module_tree_new(trace, &tree, NULL), OPS_OK);
	return tree;
}

static const struct ops_module_row *row_of(const struct ops_module_tree *tree, const char *path)
{
	size_t count;
	const struct ops_module_row *rows = ops_module_tree_rows(tree, &count);

	for (size_t i = 0; i < count; i++)
		if (rows[i].path.size == strlen(path) && memcmp(rows[i].path.bytes, path, strlen(path)) == 0)
			return &rows[i];
	fail_msg("no module '%s'", path);
	return NULL;
}

static void assert_metric(const struct ops_module_tree *tree, const char *path, enum ops_module_metric metric, int64_t total,
                          int64_t self)
{
	const struct ops_module_row *row = row_of(tree, path);

	if (row->total[metric] != total || row->self[metric] != self)
		fail_msg("%s, metric %d: %lld and %lld", path, metric, (long long)row->total[metric], (long long)row->self[metric]);
}

static void times(void **state)
{
	struct ops_trace *trace = scene_close(modules_builder());
	struct ops_module_tree *tree = tree_of(trace);
	const struct ops_module_call *calls;
	size_t count;

	(void)state;
	assert_metric(tree, "Net", OPS_MODULE_HOST, 100, 100 - 30 - 10 - 20);
	assert_metric(tree, "layers", OPS_MODULE_HOST, 60, 0);
	assert_metric(tree, "layers.0", OPS_MODULE_HOST, 50, 50);
	assert_metric(tree, "layers.\xc3\xa9\"", OPS_MODULE_HOST, 10, 10);
	assert_metric(tree, "spare", OPS_MODULE_HOST, 0, 0);
	assert_metric(tree, "CrossEntropyLoss", OPS_MODULE_HOST, 10, 10);
	assert_metric(tree, "Net", OPS_MODULE_BACKWARD, 30 + 50 + 10, 0);
	assert_metric(tree, "layers", OPS_MODULE_BACKWARD, 90, 0);
	assert_metric(tree, "layers.0", OPS_MODULE_BACKWARD, 60, 60); /* with the accumulation behind it */
	assert_metric(tree, "layers.\xc3\xa9\"", OPS_MODULE_BACKWARD, 30, 30);
	assert_metric(tree, "CrossEntropyLoss", OPS_MODULE_BACKWARD, 20, 20);
	assert_int_equal(row_of(tree, "layers.0")->calls, 2);
	assert_int_equal(row_of(tree, "layers")->calls, 0);
	assert_int_equal(row_of(tree, "layers.0")->depth, 2);
	assert_int_equal(row_of(tree, "layers.0")->parameter_count, 20);
	assert_int_equal(row_of(tree, "Net")->first_call, 0);
	assert_int_equal(row_of(tree, "layers")->first_call, row_of(tree, "layers.0")->first_call); /* which it holds */
	assert_true(row_of(tree, "layers.0")->first_call < row_of(tree, "CrossEntropyLoss")->first_call);
	assert_int_equal(row_of(tree, "spare")->first_call, OPS_NONE);
	calls = ops_module_tree_calls(tree, &count);
	assert_int_equal(count, 5);
	assert_int_equal(calls[0].outer, OPS_NONE);
	assert_int_equal(calls[3].row, LINEAR);
	assert_int_equal(calls[3].outer, 0);
	assert_int_equal(calls[4].outer, OPS_NONE);
	ops_module_tree_free(tree);
	ops_trace_unref(trace);
}

static void by_class(void **state)
{
	struct ops_builder *b = modules_builder();
	struct ops_module_tree *tree;
	struct ops_trace *trace;
	const struct ops_module_row *classes;
	size_t count;

	(void)state;
	modules_call(b, SPARE, 1, "nn.Module: Linear_1", 72, 78); /* a Linear that calls a Linear */
	trace = scene_close(b);
	tree = tree_of(trace);
	classes = ops_module_tree_classes(tree, &count);
	assert_int_equal(count, 4);
	assert_string_equal(classes[1].class_name.bytes, "torch.nn.modules.linear.Linear");
	assert_int_equal(classes[1].modules, 2);
	assert_int_equal(classes[1].calls, 3);
	assert_int_equal(classes[1].total[OPS_MODULE_HOST], 30 + 20);
	assert_int_equal(classes[1].self[OPS_MODULE_HOST], 30 + 20);
	assert_metric(tree, "layers.0", OPS_MODULE_HOST, 50, 44);
	ops_module_tree_free(tree);
	ops_trace_unref(trace);
}

/* A module that calls itself is counted twice and timed once. */
static void recursion(void **state)
{
	struct ops_builder *b = scene_open();
	struct ops_module_tree *tree;
	struct ops_trace *trace;

	(void)state;
	modules_add(b, "nn.Module: A_0", 0, "A", "A", OPS_NONE, 0, 0);
	modules_call(b, 0, 0, "nn.Module: A_0", 0, 100);
	modules_call(b, 0, 0, "nn.Module: A_0", 10, 60);
	modules_call(b, 0, 0, "nn.Module: A_0", 20, 30);
	trace = scene_close(b);
	tree = tree_of(trace);
	assert_metric(tree, "A", OPS_MODULE_HOST, 100, 100);
	assert_int_equal(row_of(tree, "A")->calls, 3);
	ops_module_tree_free(tree);
	ops_trace_unref(trace);
}

/* A call that a backward node makes (checkpointing) is a call, and takes its time off the node. */
static void calls_in_backward(void **state)
{
	struct ops_builder *b = modules_builder();
	struct ops_new_event again = {OPS_NEW_EVENT, .start_ns = 255, .end_ns = 275, .track = 1,
	                              .kind = OPS_EVENT_PYTHON_FUNCTION};
	struct ops_module_tree *tree;
	struct ops_trace *trace;

	(void)state;
	again.name = modules_string(b, "nn.Module: ReLU_0");
	again.module = RELU;
	again.python_module = 0;
	ops_builder_event(b, &again);
	trace = scene_close(b);
	tree = tree_of(trace);
	assert_metric(tree, "layers.0", OPS_MODULE_BACKWARD, 40, 40);
	assert_metric(tree, "layers.\xc3\xa9\"", OPS_MODULE_HOST, 30, 30);
	assert_metric(tree, "Net", OPS_MODULE_HOST, 100, 40);
	ops_module_tree_free(tree);
	ops_trace_unref(trace);
}

static void memory(void **state)
{
	struct ops_builder *b = modules_builder();
	struct ops_module_tree *tree;
	struct ops_trace *trace;

	(void)state;
	scene_memory(b, 0, -5, 10000, 0);
	scene_memory(b, 0, 5, 100, 0);    /* Net */
	scene_memory(b, 0, 20, 1000, 0);  /* the first call of layers.0 */
	scene_memory(b, 0, 30, -400, 0);
	scene_memory(b, 1, 30, 7777, 0);  /* another thread's */
	scene_memory(b, 0, 45, -100, 0);
	scene_memory(b, 0, 55, 64, 1);    /* on a device, by ReLU */
	scene_memory(b, 0, 80, 300, 0);   /* the second call */
	scene_memory(b, 0, 85, -300, 0);
	scene_out_of_memory(b, 0, 86, 1 << 20);
	scene_memory(b, 1, 260, 5000, 0); /* backward */
	trace = scene_close(b);
	tree = tree_of(trace);
	assert_metric(tree, "layers.0", OPS_MODULE_CPU_ALLOCATED, 1300, 1300);
	assert_metric(tree, "layers.0", OPS_MODULE_CPU_MEMORY, 600, 600);
	assert_metric(tree, "Net", OPS_MODULE_CPU_ALLOCATED, 1400, 100);
	assert_metric(tree, "Net", OPS_MODULE_CPU_MEMORY, 600, 0);
	assert_metric(tree, "layers.\xc3\xa9\"", OPS_MODULE_DEVICE_ALLOCATED, 64, 64);
	assert_metric(tree, "Net", OPS_MODULE_DEVICE_MEMORY, 64, 0);
	assert_int_equal(row_of(tree, "layers.0")->cpu_peak_bytes, 1000);
	assert_int_equal(row_of(tree, "Net")->cpu_peak_bytes, 1100);
	assert_int_equal(row_of(tree, "Net")->device_peak_bytes, 64);
	ops_module_tree_free(tree);
	ops_trace_unref(trace);
}

static void flops_and_device(void **state)
{
	struct ops_builder *b = modules_builder();
	struct ops_new_event event = {OPS_NEW_EVENT, .start_ns = 71, .end_ns = 75};
	struct ops_module_tree *tree;
	struct ops_trace *trace;
	struct list list;
	uint32_t stream, launch, backward_launch, kernel, other;

	(void)state;
	list_open(&list, 2);
	put_tensor(&list, 6, 2, (const int64_t[]){2, 3, 3, 1});
	put_tensor(&list, 6, 2, (const int64_t[]){3, 4, 4, 1});
	event.inputs = ops_builder_inputs(b, list.bytes, list.size);
	event.name = modules_string(b, "aten::mm");
	ops_builder_event(b, &event);
	event.start_ns = 253, event.end_ns = 254, event.track = 1;
	ops_builder_event(b, &event);
	stream = ops_builder_track(b, &(struct ops_track){.kind = OPS_TRACK_STREAM, .tid = 7});
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 76, .end_ns = 77, .kind = OPS_EVENT_RUNTIME,
	                               .name = modules_string(b, "cudaLaunchKernel")};
	launch = ops_builder_event(b, &event);
	event.start_ns = 255, event.end_ns = 256, event.track = 1;
	backward_launch = ops_builder_event(b, &event);
	event = (struct ops_new_event){OPS_NEW_EVENT, .start_ns = 80, .end_ns = 180, .kind = OPS_EVENT_KERNEL, .track = stream,
	                               .name = modules_string(b, "gemm")};
	kernel = ops_builder_event(b, &event);
	event.start_ns = 300, event.end_ns = 330;
	other = ops_builder_event(b, &event);
	ops_builder_link(b, &(struct ops_link){launch, kernel, OPS_LINK_LAUNCH, OPS_NONE});
	ops_builder_link(b, &(struct ops_link){backward_launch, other, OPS_LINK_LAUNCH, OPS_NONE});
	trace = scene_close(b);
	tree = tree_of(trace);
	assert_metric(tree, "layers.0", OPS_MODULE_FLOPS, 48, 48);
	assert_metric(tree, "layers.0", OPS_MODULE_BACKWARD_FLOPS, 48, 48);
	assert_metric(tree, "Net", OPS_MODULE_FLOPS, 48, 0);
	assert_metric(tree, "layers.0", OPS_MODULE_DEVICE, 100, 100);
	assert_metric(tree, "layers.0", OPS_MODULE_BACKWARD_DEVICE, 30, 30);
	assert_metric(tree, "Net", OPS_MODULE_DEVICE, 100, 0);
	ops_module_tree_free(tree);
	ops_trace_unref(trace);
}

/* Files of torch.profiler know names and numbers: what was called first in another module's call stands below it. */
static void of_another_file(void **state)
{
	struct ops_builder *b = scene_open();
	const struct ops_module_row *rows;
	struct ops_module_tree *tree;
	struct ops_trace *trace;
	size_t count;

	(void)state;
	modules_call(b, OPS_NONE, 0, "nn.Module: Net_0", 0, 100);
	modules_call(b, OPS_NONE, 0, "nn.Module: My_Block_0", 10, 50);
	modules_call(b, OPS_NONE, 11, "nn.Module: Linear_11", 20, 30);
	modules_call(b, OPS_NONE, 11, "nn.Module: Linear_11", 60, 70);
	modules_call(b, OPS_NONE, 3, "nn.Module: odd", 80, 90);
	trace = scene_close(b);
	tree = tree_of(trace);
	rows = ops_module_tree_rows(tree, &count);
	assert_int_equal(count, 4);
	assert_memory_equal(rows[1].path.bytes, "My_Block_0", 10);
	assert_int_equal(rows[1].class_name.size, 8);
	assert_int_equal(rows[1].parent, 0);
	assert_int_equal(rows[2].parent, 1);
	assert_int_equal(rows[2].calls, 2);
	assert_int_equal(rows[2].class_name.size, 6);
	assert_int_equal(rows[3].class_name.size, 3);
	assert_metric(tree, "Linear_11", OPS_MODULE_HOST, 20, 20);
	assert_metric(tree, "Net_0", OPS_MODULE_HOST, 100, 40);
	ops_module_tree_free(tree);
	ops_trace_unref(trace);
}

/* --- the table ------------------------------------------------------------------------------------------------------ */

static void assert_table(const struct ops_trace *trace, const struct ops_module_text_options *options, const char *expected)
{
	struct ops_module_tree *tree = tree_of(trace);
	size_t size;
	char *text;

	assert_int_equal(ops_module_text(tree, options, &text, &size, NULL), OPS_OK);
	assert_int_equal(size, strlen(text));
	assert_string_equal(text, expected);
	ops_free(text);
	ops_module_tree_free(tree);
}

static void tables(void **state)
{
	struct ops_trace *trace = scene_close(modules_builder());
	struct ops_trace *empty = scene_close(scene_open());
	struct ops_module_tree *tree = tree_of(trace);
	struct ops_error error;
	size_t size;
	char *text;

	(void)state;
	assert_table(trace, NULL,
	             "Module            Class             Calls  Parameters   Share  Forward  Per call  Backward  Self forward\n"
	             "Net               Net                   1          30  61.3 %   100 ns    100 ns     90 ns         40 ns\n"
	             "  layers          ModuleList            0          20  48.4 %    60 ns         -     90 ns             0\n"
	             "    0             Linear                2          20  35.5 %    50 ns     25 ns     60 ns         50 ns\n"
	             "    \xc3\xa9\"            ReLU                  1           0  12.9 %    10 ns     10 ns     30 ns         10 ns\n"
	             "CrossEntropyLoss  CrossEntropyLoss      1           0  9.68 %    10 ns     10 ns     20 ns         10 ns\n");
	assert_table(trace, &(struct ops_module_text_options){.sort_by = "self_host_ns", .max_depth = 1},
	             "Module            Class             Calls  Parameters   Share  Forward  Per call  Backward  Self forward\n"
	             "Net               Net                   1          30  61.3 %   100 ns    100 ns     90 ns         40 ns\n"
	             "CrossEntropyLoss  CrossEntropyLoss      1           0  9.68 %    10 ns     10 ns     20 ns         10 ns\n");
	assert_table(trace, &(struct ops_module_text_options){.sort_by = "calls", .by_class = true},
	             "Class                                   Calls   Share  Forward  Per call  Backward  Self forward\n"
	             "torch.nn.modules.linear.Linear              2  35.5 %    50 ns     25 ns     60 ns         50 ns\n"
	             "__main__.Net                                1  61.3 %   100 ns    100 ns     90 ns         40 ns\n"
	             "torch.nn.modules.activation.ReLU            1  12.9 %    10 ns     10 ns     30 ns         10 ns\n"
	             "torch.nn.modules.loss.CrossEntropyLoss      1  9.68 %    10 ns     10 ns     20 ns         10 ns\n");
	assert_table(trace, &(struct ops_module_text_options){.sort_by = "calls", .by_class = true, .rows_max = 1},
	             "Class                           Calls   Share  Forward  Per call  Backward  Self forward\n"
	             "torch.nn.modules.linear.Linear      2  35.5 %    50 ns     25 ns     60 ns         50 ns\n"
	             "and 3 more\n");
	assert_table(empty, NULL, "no calls of modules were recorded: record with opstrobe run, or with with_modules=True\n");
	assert_int_equal(ops_module_text(tree, &(struct ops_module_text_options){.sort_by = "x"}, &text, &size, &error),
	                 OPS_INVALID);
	assert_string_equal(error.text, "modules cannot be sorted by 'x'");
	ops_module_tree_free(tree);
	ops_trace_unref(empty);
	ops_trace_unref(trace);
}

/* --- whatever comes ------------------------------------------------------------------------------------------------- */

/* Rows that overlap and links that lead anywhere: no self time is negative, and none of calls without an outer one is lost. */
static void random_traces(void **state)
{
	struct random random = {7};

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct ops_builder *b = modules_builder();
		int64_t self = 0, outermost = 0;
		struct ops_module_tree *tree;
		struct ops_trace *trace;
		const struct ops_module_row *rows;
		const struct ops_module_call *calls;
		size_t count, row_count, size;
		char *text;

		for (int i = 0; i < 40; i++) {
			uint32_t what = random_below(&random, 4);
			int64_t start_ns = random_below(&random, 500), end_ns = start_ns + random_below(&random, 100);

			if (what == 0)
				scene_memory(b, random_below(&random, 2), start_ns, (int64_t)random_below(&random, 99) - 50,
				             (uint8_t)random_below(&random, 3));
			else if (what == 1)
				modules_op(b, random_below(&random, 2), "autograd::engine::evaluate_function: X", start_ns, end_ns,
				           random_below(&random, 5), false);
			else if (what == 2)
				modules_op(b, random_below(&random, 2), "X", start_ns, end_ns, random_below(&random, 5),
				           random_below(&random, 2));
			else
				modules_call(b, random_below(&random, 6), 0, "nn.Module: Y_0", start_ns, end_ns);
		}
		trace = scene_close(b);
		tree = tree_of(trace);
		rows = ops_module_tree_rows(tree, &row_count);
		for (size_t i = 0; i < row_count; i++) {
			assert_true(rows[i].self[OPS_MODULE_HOST] >= 0 && rows[i].self[OPS_MODULE_BACKWARD] >= 0);
			self += rows[i].self[OPS_MODULE_HOST];
		}
		calls = ops_module_tree_calls(tree, &count);
		for (size_t i = 0; i < count; i++)
			if (calls[i].outer == OPS_NONE)
				outermost += ops_trace_events(trace)->end_ns[calls[i].event] -
				             ops_trace_events(trace)->start_ns[calls[i].event];
		assert_true(self >= outermost);
		assert_int_equal(ops_module_text(tree, NULL, &text, &size, NULL), OPS_OK);
		ops_free(text);
		ops_module_tree_free(tree);
		ops_trace_unref(trace);
	}
}

static void make_tree_and_text(void *context)
{
	struct ops_module_tree *tree = NULL;
	size_t size;
	char *text;

	if (ops_module_tree_new(context, &tree, NULL) == OPS_OK && ops_module_text(tree, NULL, &text, &size, NULL) == OPS_OK)
		ops_free(text);
	ops_module_tree_free(tree);
}

static void without_memory(void **state)
{
	struct ops_builder *b = modules_builder();
	struct ops_trace *trace;

	(void)state;
	scene_memory(b, 0, 20, 1000, 0);
	modules_call(b, OPS_NONE, 0, "nn.Module: Other_0", 390, 395);
	trace = scene_close(b);
	assert_true(fail_each(make_tree_and_text, trace) > 20);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),
		cmocka_unit_test(by_class),
		cmocka_unit_test(recursion),
		cmocka_unit_test(calls_in_backward),
		cmocka_unit_test(memory),
		cmocka_unit_test(flops_and_device),
		cmocka_unit_test(of_another_file),
		cmocka_unit_test(tables),
		cmocka_unit_test(random_traces),
		cmocka_unit_test(without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
