/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice about results that nothing needs: results that are released unread, elements that a selection leaves out, padding that a
 * mask excludes, and reads that are part of an operator. Each cause has a counterpart without a finding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "asking.h"
#include "flow_writer.h"

#define BRANCH 0x40000u

/* The results of a step may be read through pointers, which only calls of Python functions show. */
static void call_python(struct writer *w)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): train", w->now_ns, (w->now_ns / STEP_NS + 1) * STEP_NS - 10000);

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
}

/* Writes integers to elements of a row. */
static void use_row(struct writer *w, const char *name, uint64_t address, int64_t elements, int64_t bytes)
{
	struct ops_new_event event = scene_event(w->b, 0, name, w->now_ns, w->now_ns + 1000);
	const struct ops_storage storage = {.address = address, .bytes = (uint64_t)bytes, .written = 1};
	struct list list;

	list_open(&list, 1);
	put_tensor(&list, 4, 1, (const int64_t[]){elements, 1});
	event.inputs = ops_builder_inputs(w->b, list.bytes, list.size);
	event.storages = ops_builder_string(w->b, (const char *)&storage, sizeof(storage));
	event.sequence_nr = 1;
	ops_builder_event(w->b, &event);
	w->now_ns += 2000;
}

/* A layer, and a second one on its result, whose own result something reads or not; and the backward pass of the first. */
static void heads(struct writer *w, bool cause)
{
	call_python(w);
	allocate(w, LARGE, 400000);
	USE(w, "aten::linear", 300000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, BRANCH, 400000);
	USE(w, "aten::tanh", 200000, -1, {LARGE, 1000, 100, 0, false});
	allocate(w, SMALL, 4000);
	USE(w, "aten::sum", 10000, -1, {LARGE, 1000, 100, 0, false});
	if (!cause)
		USE(w, "aten::sort", 10000, -1, {BRANCH, 1000, 100, 0, false});
	allocate(w, GRADIENT, 400000);
	USE(w, "MmBackward0", 50000, -1, {SMALL, 1, 1000, 0, false}, {LARGE, 1000, 100, 0, false});
	allocate(w, GRADIENT, -400000);
	allocate(w, LARGE, -400000);
	allocate(w, BRANCH, -400000);
	allocate(w, SMALL, -4000);
}

/* A pass of which nothing reads any result is a trial. */
static void trial(struct writer *w, bool cause)
{
	allocate(w, cause ? LARGE : BRANCH, 400000);
	USE(w, "aten::linear", 300000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, cause ? LARGE : BRANCH, -400000);
	heads(w, false);
}

static void finds_results_that_nothing_reads(void **state)
{
	(void)state;
	assert_float_equal(gain_of("unused-result", heads, true), 0.2, 0.001);
	assert_true(gain_of("unused-result", heads, false) < 0);
	assert_true(gain_of("unused-result", trial, true) < 0);
}

/* A sort of which the first elements are read, or all; its backward pass reads all indices. */
static void sorted(struct writer *w, bool cause)
{
	w->sequence = 7;
	allocate(w, LARGE, 4000000);
	USE(w, "aten::sort", 400000, -1, {INPUT, 1000, 1000, 0, false});
	w->sequence = 0;
	USE(w, "aten::select", 1000, 1, {LARGE, 1000, 1000, 0, false});
	allocate(w, SMALL, 4000);
	USE(w, "aten::sum", 20000, -1, {LARGE, 1000, cause ? 1 : 1000, 4000000, false});
	w->sequence = 7;
	allocate(w, GRADIENT, 4000000);
	USE(w, "SortBackward0", 100000, -1, {SMALL, 1, 1000, 0, false}, {LARGE, 1000, 1000, 0, false});
	w->sequence = 0;
	allocate(w, GRADIENT, -4000000);
	allocate(w, LARGE, -4000000);
	allocate(w, SMALL, -4000);
}

/* A random order of which the first elements are used, or all. */
static void shuffled(struct writer *w, bool cause)
{
	allocate(w, LARGE, 8000000);
	use(w, "aten::randperm", 400000, NULL, 0, 1000000);
	USE(w, "aten::select", 1000, 9, {LARGE, 10000, 100, 8000000, TENSOR_OF(4)});
	allocate(w, SMALL, 4000);
	USE(w, "aten::index_select", 20000, -1, {INPUT, 1000, 1000, 0, false}, {LARGE, 1, cause ? 100 : 1000000, 8000000, TENSOR_OF(4)});
	allocate(w, LARGE, -8000000);
	allocate(w, SMALL, -4000);
}

/* Attention to keys and values, or a recurrent layer, for tensors of which a tenth is written: the rest is padding, or unknown. */
static void padded(struct writer *w, const char *name, bool cause)
{
	allocate(w, LARGE, 4000000);
	use(w, cause ? "aten::zeros" : "aten::rand", 1000, NULL, 0, -1);
	USE(w, "aten::copy_", 1000, -1, {LARGE, 100, 1000, 4000000, true}, {INPUT, 100, 1000, 0, false});
	allocate(w, SMALL, 400000);
	USE(w, name, 500000, -1, {INPUT, 100, 1000, 0, false}, {LARGE, 1000, 1000, 0, false}, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::sort", 1000, -1, {SMALL, 100, 1000, 0, false});
	allocate(w, SMALL, -400000);
}

static void attend(struct writer *w, bool cause)
{
	padded(w, "aten::scaled_dot_product_attention", cause);
}

static void recur(struct writer *w, bool cause)
{
	padded(w, "aten::lstm", cause);
}

/* A bank of 4 MB, of which each step writes a row, or all. Its norms are computed again, and the norms of these. */
static void bank(struct writer *w, bool cause)
{
	if (w->now_ns < STEP_NS) {
		allocate(w, LARGE, 4000000);
		USE(w, "aten::randn", 1000, -1, {INPUT, 1, 1, 0, false});
	}
	USE(w, "aten::copy_", 10000, -1, {LARGE, cause ? 1 : 1000, 1000, 4000000, true}, {INPUT, cause ? 1 : 1000, 1000, 0, false});
	allocate(w, SMALL, 4000);
	USE(w, "aten::linalg_vector_norm", 300000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, BRANCH, 4000);
	USE(w, "aten::sqrt", 100000, -1, {SMALL, 1000, 1, 0, false});
	USE(w, "aten::rand", 1000, -1, {BRANCH, 1000, 1, 0, false});
	allocate(w, SMALL, -4000);
	allocate(w, BRANCH, -4000);
}

/* Rows of indices of which a tenth is written, so that the rest is padding, and a layer on what they look up. */
static void padded_indices(struct writer *w, bool cause)
{
	allocate(w, LARGE, 80000);
	use(w, cause ? "aten::zeros" : "aten::randint", 1000, NULL, 0, -1);
	use_row(w, "aten::copy_", LARGE, 1000, 80000);
	allocate(w, BRANCH, 4000000);
	USE(w, "aten::embedding", 1000, -1, {WEIGHT, 100, 100, 0, false}, {LARGE, 10, 1000, 80000, TENSOR_OF(4)});
	allocate(w, SMALL, 4000000);
	USE(w, "aten::linear", 500000, -1, {BRANCH, 10000, 100, 0, false}, {WEIGHT, 100, 100, 0, false});
	allocate(w, LARGE, -80000);
	allocate(w, BRANCH, -4000000);
	USE(w, "aten::sort", 1000, -1, {SMALL, 10000, 100, 0, false});
	allocate(w, SMALL, -4000000);
}

/* A convolution of `channels` that is reduced, which is a layer, or an elementwise operator that expands. */
static void reduced(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, cause ? "aten::sub" : "aten::conv1d", 500000, -1, {INPUT, 1000, 1, 0, false}, {WEIGHT, 1, 1000, 0, false});
	allocate(w, SMALL, 4000);
	USE(w, "aten::sum", 100000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	allocate(w, SMALL, -4000);
}

static void leaves_out_convolutions(void **state)
{
	(void)state;
	assert_true(gain_of("large-intermediate", reduced, true) > 0.1);
	assert_true(gain_of("large-intermediate", reduced, false) < 0);
}

/* --- rules without data flow ----------------------------------------------------------------------------------------- */

/* Opens a trace of one thread on which operators run. */
static void open_trace(struct device_trace *trace)
{
	*trace = (struct device_trace){.correlation = 1};
	ops_buffer_append_text(&trace->text, "{\"machine\": {\"threads\": 1}, \"traceEvents\": [\n"
	                                     "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
}

static double ms_of(struct device_trace *trace, const char *rule)
{
	char *json = device_trace_advise(trace);
	double ms = finding_ms(json, rule);

	ops_free(json);
	return ms;
}

/* A convolution with a stride by `filters` of `taps` elements. */
static double basis_ms(int filters, int taps, int stride)
{
	struct device_trace trace;
	char arguments[512];

	snprintf(arguments, sizeof(arguments),
	         "\"Input Dims\": [[8, 1, 32000], [%d, 1, %d], [], [], [], [], []], \"Input type\": [\"float\", \"float\", \"\", \"ScalarList\", "
	         "\"ScalarList\", \"ScalarList\", \"Scalar\"], \"Concrete Inputs\": [\"\", \"\", \"\", \"[%d]\", \"[0]\", \"[1]\", \"1\"]",
	         filters, taps, stride);
	open_trace(&trace);
	for (int step = 0; step < STEPS; step++) {
		device_trace_step(&trace, step, 10 + 2000 * step, 1990);
		device_trace_add(&trace, "cpu_op", "aten::conv1d", 1, 1, 20 + 2000 * step, 1000, arguments);
	}
	return ms_of(&trace, "transform-by-convolution");
}

static void finds_transforms_by_convolution(void **state)
{
	const double share = 1 - 8 * 2.5 * 512 * 9 / (2.0 * 514 * 512);

	(void)state;
	assert_float_equal(basis_ms(514, 512, 128), share, 0.001); /* both parts of 257 frequencies */
	assert_float_equal(basis_ms(257, 512, 128), 2 * share - 1, 0.001);
	assert_true(basis_ms(514, 400, 160) > 0.5); /* a window shorter than the transform */
	assert_true(basis_ms(512, 400, 160) < 0);   /* other filters */
	assert_true(basis_ms(80, 251, 160) < 0);
	assert_true(basis_ms(514, 512, 1) < 0);
}

/* An operator that reads a value itself, and a conversion of its result at the same line; or a call that reads a value. */
static double read_ms(bool in_operator)
{
	struct device_trace trace;

	open_trace(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "python_function", "train.py(3): loss", 1, 1, us, 1900, "\"Python id\": 1");
		if (in_operator)
			device_trace_add(&trace, "cpu_op", "aten::one_hot", 1, 1, us + 10, 500, "\"CallFrom\": \"train.py:7\"");
		device_trace_add(&trace, "cpu_op", "aten::item", 1, 1, us + 20, 100, "\"CallFrom\": \"train.py:7\"");
		device_trace_add(&trace, "cpu_op", "aten::to", 1, 1, us + 600, 400, "\"CallFrom\": \"train.py:7\"");
	}
	return ms_of(&trace, "synchronising-calls");
}

/* A function that computes before an operator at one line, and not before those at another line. */
static void names_lines_before_which_python_computes(void **state)
{
	struct device_trace trace;
	char *json;

	(void)state;
	open_trace(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 5000 * step;

		device_trace_step(&trace, step, us - 10, 4990);
		device_trace_add(&trace, "python_function", "train.py(3): choose", 1, 1, us, 4900, "\"Python id\": 1");
		for (int i = 0; i < 3; i++)
			device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, us + 10 + 20 * i, 10, "\"CallFrom\": \"train.py:5\"");
		device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, us + 4000, 10, "\"CallFrom\": \"train.py:7\"");
	}
	json = device_trace_advise(&trace);
	assert_float_equal(finding_ms(json, "python-in-step"), 4.84, 0.05);
	assert_non_null(strstr(json, "\"line\":3,\"function\":\"choose\""));
	assert_non_null(strstr(json, "\"line\":7,\"function\":\"choose\""));
	assert_null(strstr(json, "\"line\":5,\"function\":\"choose\""));
	ops_free(json);
}

static void leaves_reads_to_their_operator(void **state)
{
	(void)state;
	assert_float_equal(read_ms(false), 0.5, 0.01);
	assert_true(read_ms(true) < 0);
}

/* A hook of the program that the backward pass calls, and that reads a value; or the backward pass itself reads one. */
static double hook_ms(bool in_function)
{
	struct device_trace trace;

	open_trace(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "python_function", "train.py(3): run", 1, 1, us, 1900, "\"Python id\": 1");
		device_trace_add(&trace, "cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, 1, us + 10, 1500, "\"a\": 1");
		if (in_function)
			device_trace_add(&trace, "python_function", "train.py(8): watch", 1, 1, us + 20, 1400, "\"Python id\": 2, \"Python parent id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::norm", 1, 1, us + 30, 600, "\"CallFrom\": \"train.py:9\"");
		device_trace_add(&trace, "cpu_op", "aten::item", 1, 1, us + 700, 400, "\"CallFrom\": \"train.py:9\"");
	}
	return ms_of(&trace, "synchronising-calls");
}

static void finds_reads_in_hooks(void **state)
{
	(void)state;
	assert_float_equal(hook_ms(true), 1, 0.01);
	assert_true(hook_ms(false) < 0);
}

/* A loader in the main process, of which each sample opens three files; or one with workers, which sends 40 tensors. */
static char *advise_loading(bool in_process)
{
	struct device_trace trace;

	open_trace(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 9000 * step;

		device_trace_step(&trace, step, us - 10, 8990);
		device_trace_add(&trace, "python_function", "train.py(3): run", 1, 1, us, 8900, "\"Python id\": 1");
		device_trace_add(&trace, "user_annotation", in_process ? "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
		                                                       : "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, 1, us + 10, 6000, "");
		if (in_process)
			device_trace_add(&trace, "python_function", "data.py(5): Frames.__getitem__", 1, 1, us + 20, 5000, "\"Python id\": 2, \"Python parent id\": 1");
		for (int i = 0; i < (in_process ? 3 : 40); i++)
			device_trace_add(&trace, "python_function", in_process ? "<built-in function open>" : "torch/multiprocessing/reductions.py(5): rebuild_storage_fd",
			                 1, 1, us + 30 + 100 * i, 90, in_process ? "\"Python id\": 3, \"Python parent id\": 2" : "\"Python id\": 3, \"Python parent id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, us + 6500, 2000, "\"a\": 1");
	}
	return device_trace_advise(&trace);
}

/* A loader with workers for training, and one in the main process for validation: the advice is about the one with the longer waits. */
static void tells_loaders_apart(void **state)
{
	(void)state;
	for (int in_process = 0; in_process < 2; in_process++) {
		struct device_trace trace;
		char *json;

		open_trace(&trace);
		for (int step = 0; step < STEPS; step++) {
			double us = 20 + 9000 * step;

			device_trace_step(&trace, step, us - 10, 8990);
			device_trace_add(&trace, "user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, 1, us + 10, in_process ? 1000 : 5000, "");
			device_trace_add(&trace, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 1, us + 5100, in_process ? 3000 : 1000, "");
			device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, us + 8200, 500, "\"a\": 1");
		}
		json = device_trace_advise(&trace);
		assert_non_null(strstr(json, in_process ? "Batches are made in the main process (num_workers=0)." : "The workers are too slow."));
		assert_null(strstr(json, in_process ? "The workers are too slow." : "Batches are made in the main process (num_workers=0)."));
		assert_non_null(strstr(json, in_process ? "Each step waits 3.00 ms" : "Each step waits 4.38 ms")); /* without the first, in which workers start */
		ops_free(json);
	}
}

/* Samples are lists, of which the default collate function makes 40 tensors; or samples index an archive. */
static char *advise_samples(bool lists)
{
	struct device_trace trace;

	open_trace(&trace);
	device_trace_add(&trace, "python_function", "data.py(2): Frames.__init__", 1, 1, 2, 6, "\"Python id\": 8");
	device_trace_add(&trace, "python_function", "/lib/site-packages/numpy/lib/npyio.py(5): load", 1, 1, 3, 4,
	                 "\"Python id\": 9, \"Python parent id\": 8, \"CallFrom\": \"data.py:3\"");
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 9000 * step;

		device_trace_step(&trace, step, us - 10, 8990);
		device_trace_add(&trace, "python_function", "train.py(3): run", 1, 1, us, 8900, "\"Python id\": 1");
		device_trace_add(&trace, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 1, us + 10, 6000, "");
		device_trace_add(&trace, "python_function", "data.py(5): Frames.__getitem__", 1, 1, us + 20, lists ? 400 : 5500, "\"Python id\": 2, \"Python parent id\": 1");
		if (lists)
			device_trace_add(&trace, "python_function", "/lib/site-packages/torch/utils/data/_utils/collate.py(80): collate", 1, 1, us + 500, 5400,
			                 "\"Python id\": 3, \"Python parent id\": 1");
		else
			device_trace_add(&trace, "python_function", "/lib/site-packages/numpy/lib/npyio.py(9): NpzFile.__getitem__", 1, 1, us + 30, 5400,
			                 "\"Python id\": 3, \"Python parent id\": 2");
		for (int i = 0; lists && i < 40; i++)
			device_trace_add(&trace, "cpu_op", "aten::lift_fresh", 1, 1, us + 600 + 100 * i, 10, "\"a\": 1");
		device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, us + 6500, 2000, "\"a\": 1");
	}
	return device_trace_advise(&trace);
}

/* A data set of tensors, of which 40 samples are selected one by one and collated; one of two loaders. With `computes`, each sample is also
 * normalised. */
static char *advise_rows(bool computes)
{
	struct device_trace trace;

	open_trace(&trace);
	device_trace_add(&trace, "python_function", "train.py(2): make", 1, 1, 4, 6, "\"Python id\": 20");
	for (int line = 5; line < 7; line++) {
		char args[96];

		snprintf(args, sizeof(args), "\"Python id\": %d, \"Python parent id\": 20, \"CallFrom\": \"train.py:%d\"", 20 + line, line);
		device_trace_add(&trace, "python_function", "/lib/site-packages/torch/utils/data/dataloader.py(241): DataLoader.__init__", 1, 1, line, 0.5, args);
	}
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 9000 * step;

		device_trace_step(&trace, step, us - 10, 8990);
		device_trace_add(&trace, "python_function", "train.py(3): run", 1, 1, us, 8900, "\"Python id\": 1");
		device_trace_add(&trace, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 1, us + 10, 6000, "");
		for (int i = 0; i < 40; i++) {
			device_trace_add(&trace, "python_function", "/lib/site-packages/torch/utils/data/dataset.py(205): TensorDataset.__getitem__", 1, 1, us + 20 + 50 * i, 48,
			                 "\"Python id\": 2, \"Python parent id\": 1");
			device_trace_add(&trace, "cpu_op", "aten::select", 1, 1, us + 21 + 50 * i, 20, "\"a\": 1");
			if (computes)
				device_trace_add(&trace, "cpu_op", "aten::div", 1, 1, us + 45 + 50 * i, 20, "\"a\": 1");
		}
		device_trace_add(&trace, "python_function", "/lib/site-packages/torch/utils/data/_utils/collate.py(80): collate", 1, 1, us + 2100, 3800,
		                 "\"Python id\": 3, \"Python parent id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::stack", 1, 1, us + 2200, 3000, "\"a\": 1");
		device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, us + 6500, 2000, "\"a\": 1");
	}
	return device_trace_advise(&trace);
}

static void says_that_samples_are_selected_one_by_one(void **state)
{
	char *rows = advise_rows(false), *computed = advise_rows(true);

	(void)state;
	assert_non_null(strstr(rows, "one by one: 40 selections from tensors"));
	assert_non_null(strstr(rows, "batch_size=None"));
	assert_non_null(strstr(rows, "\"line\":5"));
	assert_non_null(strstr(rows, "\"line\":6"));
	assert_null(strstr(computed, "one by one: "));
	ops_free(rows);
	ops_free(computed);
}

/* A function in the loader that searches in a list for 5000 us in each step, in `calls` calls; or calls a function in C for so long. */
static char *advise_search(int calls, bool in_c)
{
	struct device_trace trace = {.correlation = 1};

	ops_buffer_append_text(&trace.text, "{\"source\": {\"data.py\": {\"loops\": [], \"searches\": [[5, 7]]}}, \"machine\": {\"threads\": 1}, \"traceEvents\": [\n"
	                                    "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 9000 * step;

		device_trace_step(&trace, step, us - 10, 8990);
		device_trace_add(&trace, "python_function", "train.py(3): run", 1, 1, us, 8900, "\"Python id\": 1");
		device_trace_add(&trace, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 1, us + 10, 6000, "");
		for (int i = 0; i < calls; i++) {
			double at = us + 20 + 5000.0 / calls * i;

			device_trace_add(&trace, "python_function", "data.py(5): Pairs.draw", 1, 1, at, 5000.0 / calls, "\"Python id\": 2, \"Python parent id\": 1");
			if (in_c)
				device_trace_add(&trace, "python_function", "<built-in method index of list>", 1, 1, at + 1, 5000.0 / calls - 2,
				                 "\"Python id\": 3, \"Python parent id\": 2");
		}
		device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, us + 6500, 2000, "\"a\": 1");
	}
	return device_trace_advise(&trace);
}

static void says_that_samples_search(void **state)
{
	char *search = advise_search(100, false), *quick = advise_search(5000, false), *index = advise_search(100, true);

	(void)state;
	assert_non_null(strstr(search, "is in Pairs.draw itself, which searches with `in` at line 7."));
	assert_non_null(strstr(search, "\"file\":\"data.py\",\"line\":7"));
	assert_non_null(strstr(search, "keep a set or a dictionary"));
	assert_null(strstr(quick, "searches with"));
	assert_null(strstr(index, "searches with"));
	assert_non_null(strstr(index, "100 calls of list.index."));
	assert_non_null(strstr(index, "keep a dictionary of positions"));
	ops_free(search);
	ops_free(quick);
	ops_free(index);
}

/* Three of twelve steps also have Python code that takes two thirds as long as the rest, as at the begin of each epoch, or at random. */
static bool finds_python_in_steps(int second, int third)
{
	struct device_trace trace = {.correlation = 1};
	double at = 20;
	char *text;
	bool found;

	ops_buffer_append_text(&trace.text, "{\"machine\": {\"threads\": 1}, \"traceEvents\": [\n{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
	for (int step = 0; step < 12; step++) {
		double more = step == 2 || step == second || step == third ? 6000 : 0;

		device_trace_step(&trace, step, at, 9000 + more);
		device_trace_add(&trace, "python_function", "train.py(3): run", 1, 1, at + 10, 8980 + more, "\"Python id\": 1");
		if (more > 0)
			device_trace_add(&trace, "python_function", "data.py(5): shuffle", 1, 1, at + 20, more, "\"Python id\": 2, \"Python parent id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, at + 30 + more, 8900, "\"a\": 1");
		at += 9000 + more;
	}
	text = device_trace_advise(&trace);
	found = strstr(text, "\"id\":\"python-in-step\"") != NULL;
	ops_free(text);
	return found;
}

static void finds_python_code_of_each_epoch(void **state)
{
	(void)state;
	assert_true(finds_python_in_steps(6, 10));
	assert_false(finds_python_in_steps(3, 10));
	assert_false(finds_python_in_steps(2, 6)); /* twice shows no period */
}

/* The same search in a worker, another process, which then waits for what to load next; the step waits for its batch. */
static char *advise_worker(void)
{
	struct device_trace trace = {.correlation = 1};

	ops_buffer_append_text(&trace.text, "{\"source\": {\"data.py\": {\"loops\": [], \"searches\": [[5, 7]]}}, \"machine\": {\"threads\": 1}, \"traceEvents\": [\n"
	                                    "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
	device_trace_add(&trace, "python_function", "torch/utils/data/_utils/worker.py(226): _worker_loop", 2, 2, 1, 9000.0 * STEPS, "\"Python id\": 1");
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 9000 * step;

		device_trace_step(&trace, step, us - 10, 8990);
		device_trace_add(&trace, "user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, 1, us + 10, 6000, "");
		for (int i = 0; i < 100; i++)
			device_trace_add(&trace, "python_function", "data.py(5): Pairs.draw", 2, 2, us + 20 + 30 * i, 30, "\"Python id\": 2, \"Python parent id\": 1");
		device_trace_add(&trace, "python_function", "multiprocessing/queues.py(98): Queue.get", 2, 2, us + 3100, 5500, "\"Python id\": 3, \"Python parent id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, us + 6500, 2000, "\"a\": 1");
	}
	return device_trace_advise(&trace);
}

static void says_what_a_worker_does(void **state)
{
	char *json = advise_worker();
	const char *finding = strstr(json, "\"id\":\"loader-bound\"");

	(void)state;
	assert_non_null(finding);
	assert_non_null(strstr(finding, "keep a set or a dictionary"));
	assert_null(strstr(json, "waits for a lock"));
	assert_ptr_equal(strstr(finding, "\"line\""), strstr(finding, "\"line\":7"));
	ops_free(json);
}

/* A function with 60 iterations in each step at line 9, within two loops, that each select a row, call an operator, and may call a module
 * and read a value. */
static char *advise_iterations(const char *name, bool steered)
{
	static const char line[] = "\"Python parent id\": 2, \"CallFrom\": \"model.py:9\"";
	struct device_trace trace = {.correlation = 1};

	ops_buffer_append_text(&trace.text, "{\"source\": {\"model.py\": {\"loops\": [[7, 12], [8, 10]], \"searches\": []}}, \"machine\": {\"threads\": 1}, \"traceEvents\": [\n"
	                                    "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
	device_trace_add(&trace, "python_function", "train.py(3): main", 1, 1, 1, 4.0 * 4000, "\"Python id\": 1");
	for (int step = 0; step < 4; step++) {
		double us = 10 + 3990 * step;

		device_trace_step(&trace, step, us, 3980);
		device_trace_add(&trace, "python_function", "model.py(5): forward", 1, 1, us + 5, 3970, "\"Python id\": 2, \"Python parent id\": 1");
		for (int i = 0; i < 60; i++) {
			double at = us + 10 + i * 66;

			if (steered)
				device_trace_add(&trace, "python_function", "nn.Module: Net_0", 1, 1, at + 30, 10, line);
			if (steered)
				device_trace_add(&trace, "cpu_op", "aten::item", 1, 1, at + 45, 2, line);
			device_trace_add(&trace, "cpu_op", "aten::select", 1, 1, at, 5, line);
			device_trace_add(&trace, "cpu_op", name, 1, 1, at + 6, 15, line);
		}
	}
	return device_trace_advise(&trace);
}

static void names_the_statements_of_loops_and_layers_for_cells(void **state)
{
	char *usual = advise_iterations("aten::mm", false), *cells = advise_iterations("aten::gru_cell", false), *steered = advise_iterations("aten::mm", true);
	char *simple = advise_iterations("aten::rnn_tanh_cell", false);

	(void)state;
	assert_true(finding_ms(usual, "python-loop-over-rows") > 0);
	assert_non_null(strstr(usual, "\"file\":\"model.py\",\"line\":8"));
	assert_non_null(strstr(usual, "\"file\":\"model.py\",\"line\":7"));
	assert_non_null(strstr(usual, "\"severity\":\"high\""));
	assert_null(strstr(usual, "nn.GRU"));
	assert_non_null(strstr(cells, "nn.GRU"));
	assert_non_null(strstr(simple, "nn.RNN"));
	assert_true(finding_ms(steered, "python-loop-over-rows") > 0);
	assert_null(strstr(steered, "\"severity\":\"high\""));
	ops_free(usual);
	ops_free(cells);
	ops_free(simple);
	ops_free(steered);
}

static void says_what_samples_cost(void **state)
{
	char *lists = advise_samples(true), *archive = advise_samples(false);

	(void)state;
	assert_non_null(strstr(lists, "The default collate function makes 40"));
	assert_non_null(strstr(lists, "\"file\":\"data.py\""));
	assert_null(strstr(archive, "collate function"));
	assert_non_null(strstr(archive, " in 1 call of NpzFile.__getitem__."));
	assert_non_null(strstr(archive, "keep the array instead of the archive"));
	assert_non_null(strstr(archive, "\"file\":\"data.py\",\"line\":3"));
	assert_null(strstr(lists, "\"file\":\"data.py\",\"line\":3"));
	ops_free(lists);
	ops_free(archive);
}

static void says_what_makes_loading_slow(void **state)
{
	char *json = advise_loading(true);

	(void)state;
	assert_non_null(strstr(json, "Files are opened 3 times for each sample."));
	assert_non_null(strstr(json, "If a sample opens the same file, keep it open"));
	ops_free(json);
	json = advise_loading(false);
	assert_non_null(strstr(json, "Each batch arrives as 40 separate tensors."));
	assert_non_null(strstr(json, "join them in collate_fn"));
	ops_free(json);
}

/* An epoch of two steps: its iterator takes 1 ms, its first batch 3 ms, and others 0.2 ms. */
static void counts_first_batches_of_restarted_workers(void **state)
{
	struct device_trace trace;
	char *json;

	(void)state;
	open_trace(&trace);
	device_trace_add(&trace, "python_function", "train.py(30): main", 1, 1, 1, 90000, "\"Python id\": 1");
	device_trace_add(&trace, "python_function", "torch/utils/data/dataloader.py(241): DataLoader.__init__", 1, 1, 2, 5,
	                 "\"Python id\": 2, \"Python parent id\": 1, \"CallFrom\": \"train.py:33\"");
	for (int step = 0; step < STEPS; step++) {
		bool first = step % 2 == 0;
		double us = 20 + 9000 * step;

		device_trace_step(&trace, step, us - 10, 8990);
		if (first)
			device_trace_add(&trace, "python_function", "torch/utils/data/dataloader.py(1038): _MultiProcessingDataLoaderIter.__init__", 1, 1, us, 1000,
			                 "\"Python id\": 3, \"Python parent id\": 1");
		device_trace_add(&trace, "user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, 1, us + 1010, first ? 3000 : 200, "");
		for (int i = 0; i <= step; i++)
			device_trace_add(&trace, "cpu_op", "aten::mm", 1, 1, us + 4100 + 200 * i, 190, "\"a\": 1");
	}
	json = device_trace_advise(&trace);
	assert_float_equal(finding_ms(json, "loader-restarts"), (1 + 2.8) / 2, 0.02);
	assert_non_null(strstr(json, "the first batches after a start take 1.40 ms longer than others."));
	ops_free(json);
}

/* A mean of windows of 16 elements, at each position or side by side. */
static double windows_ms(int stride)
{
	struct device_trace trace;
	char arguments[256];

	snprintf(arguments, sizeof(arguments), "\"Input Dims\": [[8, 10000, 16]], \"Input Strides\": [[200000, %d, 1]], \"Input type\": [\"float\"]", stride);
	open_trace(&trace);
	for (int step = 0; step < STEPS; step++) {
		device_trace_step(&trace, step, 10 + 2000 * step, 1990);
		device_trace_add(&trace, "cpu_op", "aten::mean", 1, 1, 20 + 2000 * step, 1000, arguments);
	}
	return ms_of(&trace, "overlapping-windows");
}

static void finds_windows_that_overlap(void **state)
{
	(void)state;
	assert_float_equal(windows_ms(1), 0.5, 0.001); /* 1 - 4 / (4 + sqrt(16)) */
	assert_true(windows_ms(16) < 0);
}

/* A loop that updates 20 parameters in place, after a call that makes a dictionary of them; or one that makes new tensors. */
static double dictionary_ms(const char *rule, bool updates)
{
	struct device_trace trace;

	open_trace(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 3000 * step;

		device_trace_step(&trace, step, us - 10, 2990);
		device_trace_add(&trace, "python_function", "train.py(3): follow", 1, 1, us, 2900, "\"Python id\": 1");
		device_trace_add(&trace, "python_function", "torch/nn/modules/module.py(9): Module.state_dict", 1, 1, us + 10, 500,
		                 "\"Python id\": 2, \"Python parent id\": 1, \"CallFrom\": \"train.py:6\"");
		for (int i = 0; i < 20; i++) {
			device_trace_add(&trace, "cpu_op", updates ? "aten::mul_" : "aten::mul", 1, 1, us + 600 + 100 * i, 10, "\"CallFrom\": \"train.py:8\"");
			device_trace_add(&trace, "cpu_op", updates ? "aten::add_" : "aten::add", 1, 1, us + 650 + 100 * i, 10, "\"CallFrom\": \"train.py:8\"");
		}
	}
	return ms_of(&trace, rule);
}

static void counts_dictionaries_with_the_loop_that_updates_them(void **state)
{
	(void)state;
	assert_true(dictionary_ms("checkpoint-in-step", true) < 0);
	assert_float_equal(dictionary_ms("checkpoint-in-step", false), 0.5, 0.01);
	assert_true(dictionary_ms("many-small-operators", true) > 0.5 + 1);
}

/* Eight chains of which each iteration extends one: 64 iterations, of which eight depend on each other. Or one chain. */
static void chains(struct writer *w, bool cause)
{
	call_python(w);
	for (unsigned i = 0; i < 64; i++) {
		uint64_t row = 0x2000000u + 0x1000u * i, token = 0x3000000u + 0x1000u * i, before = cause ? 8 : 1;

		allocate(w, row, 400);
		USE(w, "aten::embedding", 4000, -1, {WEIGHT, 10, 100, 0, false}, {i < before ? INPUT + 0x10000000u + i : token - 0x1000u * before, 1, 1, 0, false});
		allocate(w, token, 4);
		USE(w, "aten::argmax", 4000, -1, {row, 1, 100, 0, false});
		USE(w, "aten::select", 1000, 0, {token, 1, 1, 0, false});
	}
	for (unsigned i = 0; i < 64; i++) {
		allocate(w, 0x2000000u + 0x1000u * i, -400);
		allocate(w, 0x3000000u + 0x1000u * i, -4);
	}
}

static void finds_chains_that_do_not_depend_on_each_other(void **state)
{
	(void)state;
	assert_true(gain_of("python-loop-over-rows", chains, true) > 0.5);
	assert_true(gain_of("python-loop-over-rows", chains, false) < 0);
}

static void test_unused_advice_finds_causes(void **state)
{
	static const struct cause causes[] = {
		{"unread-part", sorted, 0.9 * 0.5},
		{"unread-part", shuffled, 0.9 * 0.4},
		{"redundant-elements", attend, 0.9 * 0.5},
		{"redundant-elements", recur, 0.9 * 0.5},
		{"computed-after-small-changes", bank, 0.95 * 0.4 * (STEPS - 2) / STEPS},
		{"redundant-elements", padded_indices, 0.9 * 0.5},
	};

	(void)state;
	ASSERT_CAUSES(causes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unused_advice_finds_causes),
		cmocka_unit_test(finds_results_that_nothing_reads),
		cmocka_unit_test(tells_loaders_apart),
		cmocka_unit_test(leaves_out_convolutions),
		cmocka_unit_test(names_lines_before_which_python_computes),
		cmocka_unit_test(finds_transforms_by_convolution),
		cmocka_unit_test(leaves_reads_to_their_operator),
		cmocka_unit_test(finds_reads_in_hooks),
		cmocka_unit_test(finds_windows_that_overlap),
		cmocka_unit_test(says_what_makes_loading_slow),
		cmocka_unit_test(says_what_samples_cost),
		cmocka_unit_test(says_that_samples_search),
		cmocka_unit_test(finds_python_code_of_each_epoch), cmocka_unit_test(says_what_a_worker_does),
		cmocka_unit_test(says_that_samples_are_selected_one_by_one),
		cmocka_unit_test(names_the_statements_of_loops_and_layers_for_cells),
		cmocka_unit_test(counts_first_batches_of_restarted_workers),
		cmocka_unit_test(counts_dictionaries_with_the_loop_that_updates_them),
		cmocka_unit_test(finds_chains_that_do_not_depend_on_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
