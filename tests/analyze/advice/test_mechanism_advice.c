/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice by mechanisms of the data flow: rows that are computed once for each of their copies, results that are multiplied by
 * zero or only read to get a value, transforms of real signals, and work that grows. Each cause has a counterpart without a finding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/storage.h>

#include "asking.h"
#include "flow_writer.h"

#define COMPLEX64 9

/* A layer of rows that are selected ten times each, or of rows that are sorted. */
static void edges(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, cause ? "aten::index_select" : "aten::sort", 1000, 0, {INPUT, 100, 1000, 0, false});
	allocate(w, SMALL, 400000);
	USE(w, "aten::linear", 300000, -1, {LARGE, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	allocate(w, GRADIENT, 400000);
	USE(w, "aten::relu", 100000, -1, {SMALL, 1000, 100, 0, false});
	allocate(w, SMALL, -400000);
	USE(w, "aten::index_add", 1000, -1, {GRADIENT, 1000, 100, 0, false});
	allocate(w, GRADIENT, -400000);
}

static void finds_layers_of_selected_rows(void **state)
{
	(void)state;
	/* Nine tenths of the layer and of its activation, and of the selection, which comes after the layer. */
	assert_float_equal(gain_of("redundant-elements", edges, true), 0.9 * 0.4 + 0.9 * 0.001, 0.001);
	assert_true(gain_of("redundant-elements", edges, false) < 0);
}

/* Dropout treats equal rows differently, so that a layer after it is not redundant. */
static void dropped_edges(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, "aten::index_select", 1000, 0, {INPUT, 100, 1000, 0, false});
	allocate(w, GRADIENT, 4000000);
	USE(w, cause ? "aten::dropout" : "aten::tanh", 1000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	allocate(w, SMALL, 400000);
	USE(w, "aten::linear", 300000, -1, {GRADIENT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, GRADIENT, -4000000);
	USE(w, "aten::sort", 1000, -1, {SMALL, 1000, 100, 0, false});
	allocate(w, SMALL, -400000);
}

static void leaves_rows_that_differ_alone(void **state)
{
	(void)state;
	assert_true(gain_of("redundant-elements", dropped_edges, true) < 0);
	assert_true(gain_of("redundant-elements", dropped_edges, false) > 0.25);
}

static struct tensor python_number(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return (struct tensor){.rows = 1, .columns = 1, .bytes = (int64_t)ops_number_digest(8, bits, 0), .kind = TENSOR_NUMBER | TENSOR_OF(7)};
}

/* A layer and its activation, multiplied by zero or by two. */
static void weighted(struct writer *w, bool cause)
{
	allocate(w, LARGE, 400000);
	USE(w, "aten::linear", 300000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, SMALL, 400000);
	USE(w, "aten::relu", 100000, -1, {LARGE, 1000, 100, 0, false});
	allocate(w, LARGE, -400000);
	allocate(w, GRADIENT, 400000);
	USE(w, "aten::mul", 1000, -1, {SMALL, 1000, 100, 0, false}, python_number(cause ? 0 : 2));
	allocate(w, SMALL, -400000);
	USE(w, "aten::sort", 50000, -1, {GRADIENT, 1000, 100, 0, false});
	allocate(w, GRADIENT, -400000);
}

/* blank + w * (given - blank), where w is 1 or 2. */
static void mixture(struct writer *w, bool cause)
{
	allocate(w, LARGE, 400000);
	USE(w, "aten::linear", 300000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, SMALL, 400000);
	USE(w, "aten::sub", 1000, -1, {INPUT, 1000, 100, 4000000, false}, {LARGE, 1000, 100, 0, false});
	allocate(w, GRADIENT, 400000);
	USE(w, "aten::mul", 1000, -1, {SMALL, 1000, 100, 0, false}, python_number(cause ? 1 : 2));
	allocate(w, 0x40000u, 400000);
	USE(w, "aten::add", 1000, -1, {LARGE, 1000, 100, 0, false}, {GRADIENT, 1000, 100, 0, false});
	allocate(w, LARGE, -400000);
	allocate(w, SMALL, -400000);
	allocate(w, GRADIENT, -400000);
	USE(w, "aten::sort", 50000, -1, {0x40000u, 1000, 100, 0, false});
	allocate(w, 0x40000u, -400000);
}

/* Layers for 1000 rows, whose results are multiplied by a mask that is zero but for a tenth, or has unknown values. */
static void masked(struct writer *w, bool cause)
{
	allocate(w, GRADIENT, 400000);
	use(w, cause ? "aten::zeros" : "aten::rand", 1000, NULL, 0, -1);
	USE(w, "aten::copy_", 1000, -1, {GRADIENT, 100, 100, 400000, true}, {INPUT, 100, 100, 0, false});
	allocate(w, LARGE, 400000);
	USE(w, "aten::linear", 300000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, SMALL, 400000);
	USE(w, "aten::mul", 10000, -1, {LARGE, 1000, 100, 0, false}, {GRADIENT, 1000, 100, 0, false});
	allocate(w, LARGE, -400000);
	allocate(w, GRADIENT, -400000);
	USE(w, "aten::sort", 50000, -1, {SMALL, 1000, 100, 0, false});
	allocate(w, SMALL, -400000);
}

/* Two layers, of which torch.where keeps one for each row, or one of which is also read otherwise. */
static void chosen(struct writer *w, bool cause)
{
	allocate(w, LARGE, 400000);
	USE(w, "aten::linear", 300000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, SMALL, 400000);
	USE(w, "aten::linear", 200000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, GRADIENT, 400000);
	USE(w, "aten::where", 10000, -1, {INPUT, 1000, 1, 4000000, TENSOR_OF(11)}, {LARGE, 1000, 100, 0, false}, {SMALL, 1000, 100, 0, false});
	if (!cause)
		USE(w, "aten::sort", 1000, -1, {LARGE, 1000, 100, 0, false});
	allocate(w, LARGE, -400000);
	allocate(w, SMALL, -400000);
	USE(w, "aten::sort", 50000, -1, {GRADIENT, 1000, 100, 0, false});
	allocate(w, GRADIENT, -400000);
}

#define CHOICES 0x50000u
#define MASK 0x60000u

/* Layers for all of 1000 rows, each multiplied by where the choice of the row is equal to its number. Two numbers may share the rows evenly. */
static void experts(struct writer *w, bool cause)
{
	allocate(w, CHOICES, 8000);
	USE(w, "aten::argmax", 1000, -1, {INPUT, 1000, 1000, 0, false});
	for (int expert = 0; expert < (cause ? 4 : 2); expert++) {
		allocate(w, MASK, 1000);
		USE(w, "aten::eq", 1000, expert, {CHOICES, 1000, 1, 8000, TENSOR_OF(4)});
		allocate(w, LARGE, 400000);
		USE(w, "aten::linear", 100000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
		allocate(w, SMALL, 400000);
		USE(w, "aten::mul", 1000, -1, {LARGE, 1000, 100, 0, false}, {MASK, 1000, 1, 1000, TENSOR_OF(11)});
		allocate(w, LARGE, -400000);
		allocate(w, MASK, -1000);
		USE(w, "aten::sort", 1000, -1, {SMALL, 1000, 100, 0, false});
		allocate(w, SMALL, -400000);
	}
	allocate(w, CHOICES, -8000);
}

/* Two layers whose results are stacked, and of which indices pick a tenth or nearly all. */
static void picked(struct writer *w, bool cause)
{
	int64_t bytes = cause ? 80000 : 700000, columns = cause ? 20 : 175;

	allocate(w, LARGE, 400000);
	USE(w, "aten::linear", 100000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, GRADIENT, 400000);
	USE(w, "aten::linear", 100000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, MASK, 800000);
	USE(w, "aten::stack", 1000, -1, {LARGE, 1000, 100, 0, false}, {GRADIENT, 1000, 100, 0, false});
	allocate(w, SMALL, bytes);
	USE(w, "aten::gather", 1000, -1, {MASK, 1000, 200, 0, false});
	allocate(w, LARGE, -400000);
	allocate(w, GRADIENT, -400000);
	allocate(w, MASK, -800000);
	USE(w, "aten::sort", 1000, -1, {SMALL, 1000, columns, 0, false});
	allocate(w, SMALL, -bytes);
}

/* Ten or five rows of a tensor, each with its node in the backward pass. */
static void rows_with_gradients(struct writer *w, bool cause)
{
	int count = cause ? 10 : 5;

	allocate(w, LARGE, 400000);
	USE(w, "aten::linear", 100000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	for (int i = 0; i < count; i++) {
		w->sequence = 10 + i;
		USE(w, "aten::select", 1000, i, {LARGE, 1000, 100, 0, false});
	}
	for (int i = count; i-- > 0;) {
		w->sequence = 10 + i;
		allocate(w, GRADIENT, 400000);
		USE(w, "SelectBackward0", 20000, -1, {SMALL, 1, 100, 0, false});
		allocate(w, GRADIENT, -400000);
	}
	w->sequence = 0;
	allocate(w, LARGE, -400000);
}

/* Writes a range around what is written next. */
static void add_range(struct writer *w, const char *name, int64_t from_ns, int64_t until_ns)
{
	struct ops_new_event event = scene_event(w->b, 0, name, from_ns, until_ns);

	event.scope = strstr(name, "evaluate_function") ? 0 : 1;
	event.sequence_nr = 1;
	ops_builder_event(w->b, &event);
}

/* The backward pass of a Python function, which returns a gradient that autograd releases at once, or keeps. */
static void returned_gradient(struct writer *w, bool cause)
{
	int64_t start_ns = w->now_ns;

	add_range(w, "autograd::engine::evaluate_function: ScaleBackward", start_ns, start_ns + 100000);
	add_range(w, "ScaleBackward", start_ns + 1000, start_ns + 80000);
	w->now_ns = start_ns + 2000;
	allocate(w, GRADIENT, 400000);
	USE(w, "aten::mm", 50000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	w->now_ns = start_ns + (cause ? 90000 : 110000);
	allocate(w, GRADIENT, -400000);
	w->now_ns = start_ns + 120000;
}

static void finds_results_that_are_chosen_by_a_mask(void **state)
{
	(void)state;
	assert_float_equal(gain_of("masked-results", chosen, true), 0.25, 0.001);
	assert_float_equal(gain_of("masked-results", chosen, false), 0.1, 0.001);
}

/* A test of convergence, whose value is read, and whose differences another operator reads or not. */
static void convergence(struct writer *w, bool cause)
{
	allocate(w, LARGE, 400000);
	USE(w, "aten::mul", 300000, -1, {INPUT, 1000, 100, 0, false}, {WEIGHT, 1000, 100, 0, false});
	allocate(w, SMALL, 4);
	USE(w, "aten::sum", 100000, -1, {LARGE, 1000, 100, 0, false});
	if (!cause)
		USE(w, "aten::sort", 1000, -1, {LARGE, 1000, 100, 0, false});
	USE(w, "aten::item", 10000, -1, {SMALL, 1, 1, 0, false});
	allocate(w, LARGE, -400000);
	allocate(w, SMALL, -4);
	USE(w, "aten::mm", 300000, -1, {INPUT, 1000, 100, 0, false}, {WEIGHT, 100, 1000, 0, false});
}

static void counts_what_is_only_computed_to_be_read(void **state)
{
	(void)state;
	assert_float_equal(gain_of("synchronising-calls", convergence, true), 0.41, 0.001);
	assert_float_equal(gain_of("synchronising-calls", convergence, false), 0.11, 0.001);
}

/* A real or a complex signal. Of the result only the real part is read. */
static void signals(struct writer *w, bool cause)
{
	allocate(w, LARGE, 800000);
	USE(w, "aten::fft_fft", 300000, -1, {INPUT, 100, 1000, 800000, cause ? 0 : TENSOR_OF(COMPLEX64)});
	allocate(w, SMALL, 800000);
	USE(w, "aten::fft_ifft", 200000, -1, {LARGE, 100, 1000, 800000, TENSOR_OF(COMPLEX64)});
	allocate(w, LARGE, -800000);
	USE(w, "aten::real", 1000, -1, {SMALL, 100, 1000, 800000, TENSOR_OF(COMPLEX64)});
	USE(w, "aten::sum", 1000, -1, {SMALL, 100, 1000, 800000, false});
	allocate(w, SMALL, -800000);
}

/* Twenty iterations over rows, each of which computes the same, for most of its time or hardly any of it. */
static void invariant(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): forward", w->now_ns, w->now_ns + 900000);

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	USE(w, "aten::add_", 1000, -1, {LARGE, 100, 1000, 0, true});
	for (int i = 0; i < 20; i++) {
		USE(w, "aten::select", 1000, i, {INPUT, 100, 1000, 0, false});
		allocate(w, SMALL, 400000);
		USE(w, "aten::exp", cause ? 30000 : 1000, -1, {LARGE, 100, 1000, 0, false});
		USE(w, "aten::add_", cause ? 1000 : 30000, -1, {INPUT, 100, 1000, 0, true});
		allocate(w, SMALL, -400000);
	}
	w->now_ns = call.end_ns + 1000;
}

static void finds_what_all_iterations_of_a_loop_compute(void **state)
{
	(void)state;
	assert_float_equal(gain_of("repeated-work", invariant, true), 0.57, 0.01);
	assert_true(gain_of("repeated-work", invariant, false) < 0);
}

/* Writes a call of a function from now on, made at a line; 0: unknown. */
static void add_function(struct writer *w, const char *name, uint32_t call_line, int64_t end_ns)
{
	struct ops_new_event call = scene_event(w->b, 0, name, w->now_ns, end_ns);

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	call.call_line = call_line;
	ops_builder_event(w->b, &call);
}

/* Sixteen queries, one row or thirty-two rows of them at a time, against the same tensor. */
static void queries(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): evaluate", w->now_ns, w->now_ns + 990000);
	int64_t rows = cause ? 1 : 32;

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	USE(w, "aten::add_", 1000, -1, {LARGE, 1000, 1000, 0, true});
	for (unsigned i = 0; i < 16; i++) {
		allocate(w, SMALL, 4000 * rows);
		USE(w, "aten::mm", 58000, -1, {0x1000000u + 0x100000u * i, rows, 1000, 0, false}, {LARGE, 1000, 1000, 0, false});
		allocate(w, SMALL, -4000 * rows);
	}
	w->now_ns = call.end_ns + 1000;
}

/* The same queries, each made in parallel by another thread during the iteration before, or by the iteration before itself. */
static void fetched_queries(struct writer *w, bool cause)
{
	const int64_t end_ns = w->now_ns + 990000;

	add_function(w, "train.py(9): evaluate", 0, end_ns);
	w->now_ns += 1000;
	USE(w, "aten::add_", 1000, -1, {LARGE, 1000, 1000, 0, true});
	for (unsigned i = 0; i < 16; i++) {
		uint64_t query = 0x1000000u + 0x100000u * i;
		int64_t now_ns = w->now_ns;

		allocate(w, SMALL, 4000);
		USE(w, "aten::mm", 50000, -1, {query, 1, 1000, 0, false}, {LARGE, 1000, 1000, 0, false});
		allocate(w, SMALL, -4000);
		w->track = cause;
		w->now_ns = cause ? now_ns + 10000 : w->now_ns;
		USE(w, "aten::normal_", 1000, -1, {query + 0x100000u, 1, 1000, 0, true});
		w->track = 0;
		w->now_ns = now_ns + 55000;
	}
	w->now_ns = end_ns + 1000;
}

static void finds_passes_for_single_rows(void **state)
{
	(void)state;
	assert_float_equal(gain_of("pass-for-each-row", fetched_queries, true), 16 * 0.05 * 0.5 * 15 / 16, 0.01);
	assert_true(gain_of("pass-for-each-row", fetched_queries, false) < 0);
	assert_float_equal(gain_of("pass-for-each-row", queries, true), 16 * 0.058 * 0.5 * 15 / 16, 0.01);
	assert_true(gain_of("pass-for-each-row", queries, false) < 0);
}

/* Sixteen iterations, each of which calls a function twice at one line. The second call takes the result of the first, or, without the
 * cause, the first call takes that of the iteration before. */
static void queries_in_two_calls(struct writer *w, bool cause)
{
	const int64_t end_ns = w->now_ns + 1990000;

	add_function(w, "train.py(9): evaluate", 0, end_ns);
	w->now_ns += 1000;
	USE(w, "aten::add_", 1000, -1, {LARGE, 1000, 1000, 0, true});
	for (unsigned i = 0; i < 32; i++) {
		uint64_t result = 0x1000000u + 0x100000u * i;
		bool reads_result = i > 0 && (!cause || i % 2);

		add_function(w, "train.py(2): project", 11, w->now_ns + 58500);
		allocate(w, result, 4000);
		USE(w, "aten::mm", 58000, -1, {reads_result ? result - 0x100000u : 0x5000000u + 0x100000u * i, 1, 1000, 0, false}, {LARGE, 1000, 1000, 0, false});
		if (i % 2)
			add_function(w, "train.py(5): count", 12, w->now_ns + 500);
		w->now_ns += 1000;
	}
	for (unsigned i = 0; i < 32; i++)
		allocate(w, 0x1000000u + 0x100000u * i, -4000);
	w->now_ns = end_ns + 1000;
}

static void counts_all_calls_of_an_iteration_as_one_pass(void **state)
{
	char *twice = advice_of_long_steps(queries_in_two_calls, true, STEPS, 2 * STEP_NS);
	char *chain = advice_of_long_steps(queries_in_two_calls, false, STEPS, 2 * STEP_NS);

	(void)state;
	assert_float_equal(finding_ms(twice, "pass-for-each-row"), 32 * 0.058 * 0.5 * 15 / 16, 0.01);
	assert_true(finding_ms(chain, "pass-for-each-row") < 0);
	ops_free(twice);
	ops_free(chain);
}

/* A request of one row or, without the cause, of thirty-two, for each step of a server. */
static void request(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "serve.py(9): answer", w->now_ns, w->now_ns + 700000);
	int64_t rows = cause ? 1 : 32;

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	if (w->now_ns < STEP_NS)
		allocate(w, WEIGHT, 4000000);
	w->now_ns += 1000;
	allocate(w, SMALL, 4000 * rows);
	USE(w, "aten::linear", 500000, -1, {INPUT, rows, 1000, 0, false}, {WEIGHT, 1000, 1000, 0, false});
	allocate(w, LARGE, 4000 * rows);
	USE(w, "aten::relu", 100000, -1, {SMALL, rows, 1000, 0, false});
	allocate(w, SMALL, -4000 * rows);
	allocate(w, LARGE, -4000 * rows);
}

static void finds_requests_that_are_served_one_by_one(void **state)
{
	char *one = advice_of_steps(request, true, 40), *many = advice_of_steps(request, false, 40);

	(void)state;
	assert_float_equal(finding_ms(one, "pass-for-each-row"), 0.5 * 0.5 * 19 / 20, 0.01);
	assert_non_null(strstr(one, "Collect several samples or requests"));
	assert_non_null(strstr(one, "\"predicted_gain_bound\":\"at least\""));
	assert_true(finding_ms(many, "pass-for-each-row") < 0);
	ops_free(one);
	ops_free(many);
}

/* --- rules without data flow ----------------------------------------------------------------------------------------- */

static void open_steps(struct device_trace *trace)
{
	*trace = (struct device_trace){.correlation = 1};
	ops_buffer_append_text(&trace->text, "{\"machine\": {\"threads\": 1}, \"traceEvents\": [\n"
	                                     "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}");
}

static double rule_ms(struct device_trace *trace, const char *rule)
{
	char *json = device_trace_advise(trace);
	double ms = finding_ms(json, rule);

	ops_free(json);
	return ms;
}

/* A convolution by a filter of `taps` elements for each of `channels`. */
static double filter_ms(int taps, int channels)
{
	struct device_trace trace;
	char arguments[512];

	snprintf(arguments, sizeof(arguments),
	         "\"Input Dims\": [[2, %d, 8000], [%d, 1, %d], [], [], [], [], []], \"Input type\": [\"float\", \"float\", \"\", \"ScalarList\", "
	         "\"ScalarList\", \"ScalarList\", \"Scalar\"], \"Concrete Inputs\": [\"\", \"\", \"\", \"[1]\", \"[%d]\", \"[1]\", \"%d\"]",
	         channels, channels, taps, taps - 1, channels);
	open_steps(&trace);
	for (int step = 0; step < STEPS; step++) {
		device_trace_step(&trace, step, 10 + 2000 * step, 1990);
		device_trace_add(&trace, "cpu_op", "aten::conv1d", 1, 1, 20 + 2000 * step, 1000, arguments);
	}
	return rule_ms(&trace, "long-convolution");
}

static void finds_long_filters(void **state)
{
	double ms;

	(void)state;
	ms = filter_ms(4000, 1);
	assert_true(ms > 0.8 && ms < 1);
	assert_true(filter_ms(4000, 8) > 0.8);
	assert_true(filter_ms(31, 1) < 0);
}

/* How a weight differs from a constant filter. */
enum weight { CONSTANT, WITH_GRADIENT, OF_PARAMETER, OF_LAYER, WITH_BIAS };

/* A convolution of images by a filter of `taps` by `taps` elements for each of `channels`, with its backward pass. */
static double square_filter_ms(int taps, int channels, int side, enum weight weight)
{
	struct device_trace trace;
	char arguments[768], backward[768];

	snprintf(arguments, sizeof(arguments),
	         "\"Sequence number\": 1, \"Fwd thread id\": 0, \"Storages\": [1, 2], \"Input Dims\": [[8, %d, %d, %d], [%d, 1, %d, %d], [%s], [], [], [], []], "
	         "\"Input type\": [\"float\", \"float\", \"%s\", \"ScalarList\", \"ScalarList\", \"ScalarList\", \"Scalar\"], "
	         "\"Concrete Inputs\": [\"\", \"\", \"\", \"[1, 1]\", \"[0, 0]\", \"[1, 1]\", \"%d\"]",
	         channels, side, side, channels, taps, taps, weight == WITH_BIAS ? "1" : "", weight == WITH_BIAS ? "float" : "", channels);
	snprintf(backward, sizeof(backward),
	         "\"Storages\": [3, 1, 2], \"Input Dims\": [[8, %d, %d, %d], [8, %d, %d, %d], [%d, 1, %d, %d], [], [], [], [], [], [], [], []], "
	         "\"Input type\": [\"float\", \"float\", \"float\", \"ScalarList\", \"ScalarList\", \"ScalarList\", \"ScalarList\", \"Scalar\", "
	         "\"ScalarList\", \"Scalar\", \"ScalarList\"], \"Concrete Inputs\": [\"\", \"\", \"\", \"[0]\", \"[1, 1]\", \"[0, 0]\", \"[1, 1]\", \"False\", "
	         "\"[0, 0]\", \"%d\", \"[True, %s, False]\"]",
	         channels, side - taps + 1, side - taps + 1, channels, side, side, channels, taps, taps, channels, weight == WITH_GRADIENT ? "True" : "False");
	trace = (struct device_trace){.correlation = 1};
	ops_buffer_printf(&trace.text,
	                  "{\"machine\": {\"threads\": 1}, \"opstrobe\": {\"tracks\": [[0, 1, 1, 1, 1, \"\"]], \"storages\": [[4096, 100000], [200000, 484], "
	                  "[300000, 100000]], \"roles\": [[1, %d, 1, \"w\", 0]]}, \"traceEvents\": [\n"
	                  "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}",
	                  weight == OF_PARAMETER ? 2 : 3);
	for (int step = 0; step < STEPS; step++) {
		double us = 10 + 2000 * step;

		device_trace_step(&trace, step, us, 1990);
		device_trace_add(&trace, "python_function", weight == OF_LAYER ? "torch/nn/modules/conv.py(534): _conv_forward" : "train.py(3): smooth", 1, 1,
		                 us + 5, 1010, "\"Python id\": 1");
		device_trace_add(&trace, "cpu_op", "aten::conv2d", 1, 1, us + 10, 1000, arguments);
		device_trace_add(&trace, "cpu_op", "aten::convolution_backward", 1, 1, us + 1100, 500, backward);
	}
	return rule_ms(&trace, "long-convolution");
}

static void finds_filters_that_may_be_separable(void **state)
{
	(void)state;
	assert_float_equal(square_filter_ms(11, 1, 64, CONSTANT), 1 - 3.6 / 11, 0.01);
	assert_float_equal(square_filter_ms(11, 3, 64, CONSTANT), 1 - 7.0 / 11, 0.01);
	assert_true(square_filter_ms(11, 1, 1024, CONSTANT) < 0); /* new memory for the result of another pass */
	assert_true(square_filter_ms(7, 3, 64, CONSTANT) < 0);
	assert_true(square_filter_ms(5, 1, 64, CONSTANT) < 0);
	assert_true(square_filter_ms(11, 1, 64, WITH_GRADIENT) < 0);
	assert_true(square_filter_ms(11, 1, 64, OF_PARAMETER) < 0);
	assert_true(square_filter_ms(11, 1, 64, OF_LAYER) < 0);
	assert_true(square_filter_ms(11, 1, 64, WITH_BIAS) < 0);
}

/* Products with a sparse matrix, of which the operator reads coordinates or compressed rows. */
static double sparse_ms(const char *inner)
{
	static const char tensors[] = "\"Input Dims\": [[1000, 1000], [1000, 16]], \"Input type\": [\"float\", \"float\"]";
	struct device_trace trace;

	open_steps(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "cpu_op", "aten::_sparse_mm", 1, 1, us, 1000, tensors);
		device_trace_add(&trace, "cpu_op", inner, 1, 1, us + 1, 10, "\"Input Dims\": [[1000, 1000]], \"Input type\": [\"float\"]");
	}
	return rule_ms(&trace, "sparse-coordinates");
}

static void finds_sparse_products_with_coordinates(void **state)
{
	(void)state;
	assert_float_equal(sparse_ms("aten::_indices"), 0.6, 0.001);
	assert_true(sparse_ms("aten::crow_indices") < 0);
}

/* A hook at one line that copies once more in each step, or as often as a number that varies. */
static double hooks_ms(bool grows)
{
	static const int varies[STEPS] = {1, 5, 2, 7, 3, 8, 4, 6};
	struct device_trace trace;

	open_steps(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, us, 1900, "\"Python id\": 1");
		for (int i = 0; i < (grows ? step + 1 : varies[step]); i++) {
			device_trace_add(&trace, "python_function", "train.py(9): keep", 1, 1, us + 10 + 100 * i, 90, "\"Python id\": 2, \"Python parent id\": 1");
			device_trace_add(&trace, "cpu_op", "aten::clone", 1, 1, us + 20 + 100 * i, 50, "\"Input Dims\": [[1000, 16]], \"Input type\": [\"float\"]");
		}
	}
	return rule_ms(&trace, "growing-work");
}

static void finds_work_that_grows(void **state)
{
	(void)state;
	/* 0, 1, … 7 additional calls of 50 us, on average; of steps with more than three times the median none counts. */
	assert_true(hooks_ms(true) > 0.1 && hooks_ms(true) <= 0.175 + 1e-6);
	assert_true(hooks_ms(false) < 0);
}

/* Each step makes a module with another in it, or only the first step. */
static double setup_ms(bool each_step)
{
	struct device_trace trace;

	open_steps(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, us, 1900, "\"Python id\": 1");
		if (step && !each_step)
			continue;
		device_trace_add(&trace, "python_function", "loss.py(9): Perceptual.__init__", 1, 1, us + 10, 500, "\"Python id\": 2, \"Python parent id\": 1");
		device_trace_add(&trace, "python_function", "torch/nn/modules/module.py(482): Module.__init__", 1, 1, us + 20, 10,
		                 "\"Python id\": 3, \"Python parent id\": 2");
		device_trace_add(&trace, "python_function", "torch/nn/modules/module.py(482): Module.__init__", 1, 1, us + 40, 10,
		                 "\"Python id\": 4, \"Python parent id\": 2");
	}
	return rule_ms(&trace, "setup-in-step");
}

/* A server loads its model for each request, or only for the first one. */
static double loading_ms(bool each_request)
{
	struct device_trace trace;

	open_steps(&trace);
	device_trace_add(&trace, "python_function", "serve.py(3): serve", 1, 1, 10, 20000, "\"Python id\": 1");
	for (int request = 0; request < STEPS; request++) {
		double us = 20 + 2000 * request;
		char ids[96];

		snprintf(ids, sizeof(ids), "\"Python id\": %d, \"Python parent id\": 1", 10 * request + 2);
		device_trace_add(&trace, "python_function", "serve.py(9): predict", 1, 1, us, 1900, ids);
		snprintf(ids, sizeof(ids), "\"Python id\": %d, \"Python parent id\": %d", 10 * request + 3, 10 * request + 2);
		if (!request || each_request)
			device_trace_add(&trace, "python_function", "torch/serialization.py(1300): load", 1, 1, us + 10, 600, ids);
		device_trace_host(&trace, "cpu_op", "aten::mm", us + 700, 1000);
	}
	return rule_ms(&trace, "setup-in-step");
}

static void finds_modules_that_each_step_makes(void **state)
{
	(void)state;
	assert_float_equal(setup_ms(true), 0.5, 0.001);
	assert_true(setup_ms(false) < 0);
	assert_float_equal(loading_ms(true), 0.6, 0.001);
	assert_true(loading_ms(false) < 0);
}

/* The steps are iterations of a loop in serve(), which also calls 20 small operators in each: 20 us each with what is between them. */
static void loops_end_with_their_step(void **state)
{
	struct device_trace trace;
	double ms;

	(void)state;
	open_steps(&trace);
	device_trace_add(&trace, "python_function", "serve.py(3): serve", 1, 1, 10, 20000, "\"Python id\": 1");
	for (int request = 0; request < STEPS; request++) {
		double us = 20 + 2000 * request;

		device_trace_add(&trace, "python_function", "serve.py(9): predict", 1, 1, us, 900, "\"Python id\": 2, \"Python parent id\": 1");
		device_trace_host(&trace, "cpu_op", "aten::mm", us + 10, 800);
		for (int i = 0; i < 20; i++)
			device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, us + 1000 + 20 * i, 10, "\"CallFrom\": \"serve.py:12\"");
	}
	ms = rule_ms(&trace, "many-small-operators");
	assert_true(ms > 0.2 && ms < 0.4);
}

/* After the steps, an operator takes as long as `outside_us`. */
static char *advise_with_work_after(double outside_us)
{
	struct device_trace trace;

	open_steps(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 1, us, 900, "");
		device_trace_host(&trace, "cpu_op", "aten::mm", us + 1000, 900);
	}
	device_trace_host(&trace, "cpu_op", "aten::mm", 30000, outside_us);
	return device_trace_advise(&trace);
}

static void says_what_is_in_no_step(void **state)
{
	char *much = advise_with_work_after(3 * 900.0 * STEPS), *little = advise_with_work_after(900.0 * STEPS / 3);

	(void)state;
	assert_non_null(strstr(much, " 75.0 % of the time of operators is not in a step, and was not examined."));
	assert_non_null(strstr(much, "\"outside_of_steps_ratio\":0.75"));
	assert_null(strstr(little, "is not in a step"));
	ops_free(much);
	ops_free(little);
}

/* An optimizer that calls many operators, and one that computes gradients in a closure. */
static double closure_ms(bool closure)
{
	struct device_trace trace;

	open_steps(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "user_annotation", "Optimizer.step#LBFGS.step", 1, 1, us, 1900, "");
		if (closure)
			device_trace_host(&trace, "cpu_op", "autograd::engine::evaluate_function: MmBackward0", us + 10, 500);
		for (int i = 0; i < 20; i++)
			device_trace_host(&trace, "cpu_op", "aten::mul", us + 600 + 20 * i, 15);
	}
	return rule_ms(&trace, "optimizer-loop");
}

static void leaves_out_optimizers_with_closures(void **state)
{
	(void)state;
	assert_true(closure_ms(false) > 0.1);
	assert_true(closure_ms(true) < 0);
}

/* Two tensors grow at one line, in turns. */
static void finds_two_tensors_that_grow_at_a_line(void **state)
{
	struct device_trace trace;

	(void)state;
	open_steps(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "python_function", "train.py(3): gather", 1, 1, us, 1900, "\"Python id\": 1");
		for (int i = 0; i < 2; i++) {
			char lists[256];

			snprintf(lists, sizeof(lists), "\"Input Dims\": [[[%d, %d], [10, %d]], []], \"Input type\": [\"TensorList\", \"Scalar\"]",
			         10 * (step + 1), i ? 7 : 400, i ? 7 : 400);
			device_trace_add(&trace, "cpu_op", "aten::cat", 1, 1, us + 10 + 500 * i, 400, lists);
		}
	}
	/* Of 20 + 30 + … 90 rows, 90 have to be copied. */
	assert_float_equal(rule_ms(&trace, "quadratic-concatenation"), 0.8 * (1 - 90.0 / 440), 0.01);
}

/* Twenty operators on equal tensors in a program without steps, half of which take a hundred times as long: on two threads, one of them
 * waited for a processor. */
static double starved_ms(int threads)
{
	struct device_trace trace = {.correlation = 1};

	ops_buffer_printf(&trace.text, "{\"machine\": {\"threads\": %d, \"processors\": 2}, \"traceEvents\": [\n"
	                               "{\"ph\": \"i\", \"cat\": \"x\", \"name\": \"begin\", \"pid\": 1, \"tid\": 1, \"ts\": 0}", threads);
	for (int i = 0; i < 20; i++)
		device_trace_add(&trace, "cpu_op", "aten::add", 1, 1, 10 + 12 * i + 1000 * ((i + 1) / 2), i % 2 ? 10 : 1000,
		                 "\"Input Dims\": [[100, 100]], \"Input type\": [\"double\"]");
	return rule_ms(&trace, "float64");
}

static void subtracts_waits_without_steps(void **state)
{
	(void)state;
	assert_float_equal(starved_ms(1), 5.05, 0.01);
	assert_float_equal(starved_ms(2), 0.1, 0.01);
}

static void test_mechanism_advice_finds_causes(void **state)
{
	static const struct cause causes[] = {
		{"multiplied-by-zero", weighted, 0.4},
		{"multiplied-by-zero", mixture, 0.3},
		{"masked-results", masked, 0.9 * 0.3},
		{"masked-results", experts, 0.75 * 0.4},
		{"masked-results", picked, 0},
		{"gradient-not-needed", returned_gradient, 0.05},
		{"gradients-of-parts", rows_with_gradients, 0},
		{"complex-transform", signals, 0.25},
	};

	(void)state;
	ASSERT_CAUSES(causes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mechanism_advice_finds_causes),
		cmocka_unit_test(finds_layers_of_selected_rows),
		cmocka_unit_test(leaves_rows_that_differ_alone),
		cmocka_unit_test(finds_results_that_are_chosen_by_a_mask),
		cmocka_unit_test(counts_what_is_only_computed_to_be_read),
		cmocka_unit_test(finds_what_all_iterations_of_a_loop_compute),
		cmocka_unit_test(finds_passes_for_single_rows), cmocka_unit_test(counts_all_calls_of_an_iteration_as_one_pass),
		cmocka_unit_test(finds_requests_that_are_served_one_by_one),
		cmocka_unit_test(finds_long_filters),
		cmocka_unit_test(finds_filters_that_may_be_separable),
		cmocka_unit_test(finds_sparse_products_with_coordinates),
		cmocka_unit_test(finds_work_that_grows),
		cmocka_unit_test(finds_modules_that_each_step_makes),
		cmocka_unit_test(loops_end_with_their_step), cmocka_unit_test(says_what_is_in_no_step), cmocka_unit_test(leaves_out_optimizers_with_closures),
		cmocka_unit_test(finds_two_tensors_that_grow_at_a_line),
		cmocka_unit_test(subtracts_waits_without_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
