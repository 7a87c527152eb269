/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice about what a program does again or for nothing: the same part of a tensor computed twice, pictures that are cropped
 * late, modules that could be joined, graphs of gradients, and compilation. Each cause has a counterpart without a finding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/storage.h>

#include "flow_writer.h"

static void layer_of_row(struct writer *w)
{
	allocate(w, SMALL, 400);
	USE(w, "aten::linear", 200000, -1, {INPUT, 1, 1000, 400000, false}, {WEIGHT, 100, 1000, 0, false});
	USE(w, "aten::sort", 1000, -1, {SMALL, 1, 100, 0, false});
	allocate(w, SMALL, -400);
}

/* A layer of the same row twice, or of two rows, which are selected one after another. */
static void rows_in_turn(struct writer *w, bool cause)
{
	USE(w, "aten::add_", 1000, -1, {INPUT, 100, 1000, 0, true});
	for (int i = 0; i < 2; i++) {
		USE(w, "aten::select", 1000, cause ? 0 : i, {INPUT, 100, 1000, 0, false});
		layer_of_row(w);
	}
}

/* The same rows are selected twice, and a layer gets each of them or, after other views, only the first two. */
static void rows_at_once(struct writer *w, bool cause)
{
	USE(w, "aten::add_", 1000, -1, {INPUT, 100, 1000, 0, true});
	for (int i = 0; i < (cause ? 2 : 1); i++) {
		USE(w, "aten::select", 1000, 0, {INPUT, 100, 1000, 0, false});
		USE(w, "aten::select", 1000, 1, {INPUT, 100, 1000, 0, false});
		layer_of_row(w);
		layer_of_row(w);
	}
}

static void finds_work_on_the_same_part(void **state)
{
	(void)state;
	assert_float_equal(gain_of("repeated-work", rows_in_turn, true), 0.202, 0.002);
	assert_true(gain_of("repeated-work", rows_in_turn, false) < 0);
	assert_float_equal(gain_of("repeated-work", rows_at_once, true), 0.404, 0.004);
	assert_true(gain_of("repeated-work", rows_at_once, false) < 0);
}

/* A layer of a picture in memory of NumPy, twice. In between, NumPy puts another picture there. */
static void pictures(struct writer *w, bool cause)
{
	for (int i = 0; i < 2; i++) {
		if (!cause) {
			struct ops_new_event call = scene_event(w->b, 0, "<built-in function from_numpy>", w->now_ns, w->now_ns + 500);

			call.kind = OPS_EVENT_PYTHON_FUNCTION;
			ops_builder_event(w->b, &call);
			w->now_ns += 1000;
		}
		allocate(w, SMALL, 400);
		USE(w, "aten::linear", 200000, -1, {INPUT, 1, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
		USE(w, "aten::sort", 1000, -1, {SMALL, 1, 100, 0, false});
		allocate(w, SMALL, -400);
	}
}

static void knows_memory_of_other_libraries(void **state)
{
	(void)state;
	assert_float_equal(gain_of("repeated-work", pictures, true), 0.202, 0.002);
	assert_true(gain_of("repeated-work", pictures, false) < 0);
}

/* A layer of two values that get the same memory, one after another. Meanwhile, another thread runs an operator. */
static void layers_next_to_a_thread(struct writer *w, bool cause)
{
	if (cause)
		scene_op(w->b, 1, "aten::sort", w->now_ns, w->now_ns + 900000);
	w->now_ns += 1000;
	for (int i = 0; i < 2; i++) {
		allocate(w, LARGE, 400000);
		USE(w, "aten::rand", 1000, -1, {INPUT, 1, 1, 0, false});
		allocate(w, SMALL, 400000);
		USE(w, "aten::linear", 200000, -1, {LARGE, 100, 1000, 0, false}, {WEIGHT, 1000, 1000, 0, false});
		allocate(w, LARGE, -400000);
		USE(w, "aten::sort", 1000, -1, {SMALL, 100, 1000, 0, false});
		allocate(w, SMALL, -400000);
	}
}

static void knows_that_threads_reuse_memory(void **state)
{
	(void)state;
	assert_true(gain_of("repeated-work", layers_next_to_a_thread, true) < 0);
	assert_true(gain_of("repeated-work", layers_next_to_a_thread, false) < 0);
}

/* Operators on 1000 rows, of which two slices keep 400 and of these 100. Another operator reads all or none of the first result. */
static void cropped(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, "aten::mul", 200000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 1000, 1000, 0, false});
	allocate(w, SMALL, 4000000);
	USE(w, "aten::conv2d", 300000, -1, {LARGE, 1000, 1000, 0, false}, {WEIGHT + 1, 1, 9, 0, false});
	if (!cause)
		USE(w, "aten::sort", 1000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::slice", 1000, 600, {SMALL, 1000, 1000, 0, false});
	USE(w, "aten::slice", 1000, 300, {SMALL, 400, 1000, 4000000, false});
	USE(w, "aten::sort", 50000, -1, {SMALL, 100, 1000, 4000000, false});
	allocate(w, SMALL, -4000000);
}

static void follows_parts_through_local_operators(void **state)
{
	(void)state;
	assert_float_equal(gain_of("unread-part", cropped, true), 0.9 * 0.5, 0.001);
	assert_float_equal(gain_of("unread-part", cropped, false), 0.9 * 0.3, 0.001);
}

/* aten::split_with_sizes of a row. */
static void split(struct writer *w, uint64_t address, const int64_t *sizes, uint16_t count)
{
	struct ops_new_event event = scene_event(w->b, 0, "aten::split_with_sizes", w->now_ns, w->now_ns + 1000);
	struct ops_storage storage = {.address = address};
	int64_t shape[4] = {1, 0, 1, 1};
	struct list list;

	for (size_t i = 0; i < count; i++)
		shape[1] += sizes[i];
	storage.bytes = 4 * (uint64_t)shape[1];
	list_open(&list, 3);
	put_tensor(&list, 6, 2, shape);
	put_int_list(&list, count, sizes);
	put_int(&list, 1);
	event.inputs = ops_builder_inputs(w->b, list.bytes, list.size);
	event.storages = ops_builder_string(w->b, (const char *)&storage, sizeof(storage));
	ops_builder_event(w->b, &event);
	w->now_ns += 2000;
}

/* Two evaluations at a point, which is split in parts of which two have equal sizes, or at two points. */
static void evaluations(struct writer *w, bool cause)
{
	static const int64_t sizes[] = {500, 300, 100, 100};

	for (uint64_t i = 0; i < 2; i++) {
		uint64_t point = cause ? INPUT : INPUT + 0x1000 * i;

		split(w, point, sizes, 4);
		for (unsigned k = 0; k < 4; k++) {
			allocate(w, LARGE + 0x1000 * k, 4000);
			USE(w, "aten::exp", 50000, -1, {point, 1, sizes[k], 4000, false});
		}
		for (unsigned k = 0; k < 4; k++)
			allocate(w, LARGE + 0x1000 * k, -4000);
	}
}

static void follows_parts_of_a_split(void **state)
{
	(void)state;
	assert_true(gain_of("repeated-work", evaluations, true) > 0.15);
	assert_true(gain_of("repeated-work", evaluations, false) < 0);
}

/* Twenty lookups of one row each in separate tables, or in a table that is the previous result. */
static void lookups(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): forward", w->now_ns, w->now_ns + 900000);

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t table = cause || !i ? 0x1000000u + 0x1000u * i : 0x2000000u + 0x1000u * (i - 1), found = 0x2000000u + 0x1000u * i;
		struct ops_new_event module;
		char name[64];

		USE(w, "aten::select", 1000, i, {INPUT, 100, 100, 0, false});
		snprintf(name, sizeof(name), "nn.Module: Embedding_%u", i);
		module = scene_event(w->b, 0, name, w->now_ns, w->now_ns + 32000);
		module.kind = OPS_EVENT_PYTHON_FUNCTION;
		ops_builder_event(w->b, &module);
		w->now_ns += 1000;
		allocate(w, found, 4000);
		USE(w, "aten::embedding", 20000, -1, {table, 10, 100, 0, false}, {INPUT, 1, 100, 40000, false});
		w->now_ns = module.end_ns + 1000;
	}
	for (unsigned i = 0; i < 20; i++)
		allocate(w, 0x2000000u + 0x1000u * i, -4000);
	w->now_ns = call.end_ns + 1000;
}

static void finds_modules_that_can_be_joined(void **state)
{
	(void)state;
	assert_true(gain_of("python-loop-over-rows", lookups, true) > 0.4);
	assert_true(gain_of("python-loop-over-rows", lookups, false) < 0);
}

/* Ten products with one matrix in a call of a function, of which the first is quick. The results are read behind them, or by the next
 * iteration. */
static void write_words(struct writer *w, bool cause, int64_t first_ns)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): forward", w->now_ns, w->now_ns + 900000);

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	for (unsigned i = 0; i < 10; i++) {
		uint64_t result = 0x2000000u + 0x10000u * i;

		if (!cause && i)
			USE(w, "aten::tanh", 1000, -1, {result - 0x10000u, 16, 100, 0, false});
		allocate(w, result, 6400);
		USE(w, "aten::mm", i ? 50000 : first_ns, -1, {INPUT, 16, 1000, 0, false}, {WEIGHT, 1000, 100, 0, false});
		USE(w, "aten::add_", 1000, -1, {INPUT, 16, 1000, 0, true});
	}
	USE(w, "aten::stack", 5000, -1, {0x2000000u, 16, 100, 0, false}, {0x2010000u, 16, 100, 0, false});
	for (unsigned i = 0; i < 10; i++)
		allocate(w, 0x2000000u + 0x10000u * i, -6400);
	w->now_ns = call.end_ns + 1000;
}

static void words(struct writer *w, bool cause)
{
	write_words(w, cause, 20000);
}

/* The quickest product is not one of the loop. */
static void words_and_product(struct writer *w, bool cause)
{
	write_words(w, cause, 50000);
	USE(w, "aten::mm", 20000, -1, {GRADIENT, 16, 1000, 0, false}, {WEIGHT, 1000, 100, 0, false});
}

static void finds_layers_that_can_run_behind_their_loop(void **state)
{
	(void)state;
	assert_float_equal(gain_of("layer-in-loop", words, true), 9 * 0.03, 0.01);
	assert_float_equal(gain_of("layer-in-loop", words_and_product, true), 10 * 0.03, 0.01);
	assert_true(gain_of("layer-in-loop", words, false) < 0);
}

/* Twenty iterations that each look up a row by the result of the previous one: an index that was chosen, or a number. */
static void generated(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): generate", w->now_ns, w->now_ns + 900000);

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t row = 0x2000000u + 0x1000u * i, token = 0x3000000u + 0x1000u * i;

		allocate(w, row, 400);
		USE(w, "aten::embedding", 20000, -1, {WEIGHT, 10, 100, 0, false}, {i ? token - 0x1000u : INPUT, 1, 1, 0, false});
		allocate(w, token, 4);
		USE(w, cause ? "aten::amax" : "aten::argmax", 20000, -1, {row, 1, 100, 0, false});
		USE(w, "aten::select", 1000, 0, {token, 1, 1, 0, false});
	}
	for (unsigned i = 0; i < 20; i++) {
		allocate(w, 0x2000000u + 0x1000u * i, -400);
		allocate(w, 0x3000000u + 0x1000u * i, -4);
	}
	w->now_ns = call.end_ns + 1000;
}

static void leaves_out_generators(void **state)
{
	(void)state;
	assert_true(gain_of("python-loop-over-rows", generated, true) > 0.4);
	assert_true(gain_of("python-loop-over-rows", generated, false) < 0);
}

/* A diagonal or another matrix, which is factored and solved with. */
static void covariance(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, cause ? "aten::diag_embed" : "aten::sort", 1000, -1, {INPUT, 1, 1000, 0, false});
	allocate(w, SMALL, 4000000);
	USE(w, "aten::linalg_cholesky", 300000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, GRADIENT, 4000);
	USE(w, "aten::linalg_solve_triangular", 200000, -1, {SMALL, 1000, 1000, 0, false}, {WEIGHT, 1000, 1, 0, false});
	allocate(w, LARGE, -4000000);
	allocate(w, SMALL, -4000000);
	USE(w, "aten::sort", 1000, -1, {GRADIENT, 1000, 1, 0, false});
	allocate(w, GRADIENT, -4000);
}

/* How a loop over selected rows differs from one that computes the same function of them again. */
enum selected { OF_ONE_TABLE, OF_CHANGING_TABLE, WITH_CHANGING_TENSOR, SUM_OF_ROWS, OF_TWO_SELECTIONS };

#define ROWS_TABLE 0x2000000u
#define SELECTED 0x3000000u
#define OTHERS 0x4000000u
#define COMPUTED 0x5000000u
#define SUMS 0x6000000u

/* Twenty iterations that each select half of 100 rows, and compute a function of them. */
static void selections(struct writer *w, enum selected kind)
{
	struct ops_new_event call;

	allocate(w, ROWS_TABLE, 40000);
	USE(w, "aten::sort", 1000, -1, {INPUT, 100, 100, 0, false});
	call = scene_event(w->b, 0, "train.py(9): permute", w->now_ns, w->now_ns + 900000);
	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	for (unsigned i = 0; i < 20; i++) {
		if (kind == OF_CHANGING_TABLE)
			USE(w, "aten::add_", 1000, -1, {ROWS_TABLE, 100, 100, 0, true});
		if (kind == WITH_CHANGING_TENSOR)
			USE(w, "aten::add_", 1000, -1, {WEIGHT, 1, 100, 0, true});
		allocate(w, SELECTED, 20000);
		USE(w, "aten::index", 1000, -1, {ROWS_TABLE, 100, 100, 0, false});
		allocate(w, OTHERS, 20000);
		USE(w, "aten::index", 1000, -1, {ROWS_TABLE, 100, 100, 0, false});
		allocate(w, COMPUTED, kind == SUM_OF_ROWS ? 40000 : 20000);
		if (kind == SUM_OF_ROWS)
			USE(w, "aten::mm", 20000, -1, {SELECTED, 100, 50, 0, false}, {OTHERS, 50, 100, 0, false});
		else
			USE(w, "aten::mul", 20000, -1, {SELECTED, 50, 100, 0, false}, {kind == OF_TWO_SELECTIONS ? OTHERS : WEIGHT, kind == OF_TWO_SELECTIONS ? 50 : 1, 100, 0, false});
		allocate(w, SUMS, 400);
		USE(w, "aten::argmax", 1000, 0, {COMPUTED, 50, 100, kind == SUM_OF_ROWS ? 40000 : 20000, false});
		allocate(w, SELECTED, -20000);
		allocate(w, OTHERS, -20000);
		allocate(w, COMPUTED, kind == SUM_OF_ROWS ? -40000 : -20000);
		allocate(w, SUMS, -400);
	}
	allocate(w, ROWS_TABLE, -40000);
	w->now_ns = call.end_ns + 1000;
}

static enum selected selected_kind;

static void selected_rows(struct writer *w, bool cause)
{
	selections(w, cause ? OF_ONE_TABLE : selected_kind);
}

/* Pairs of selected rows: a product, and an operator in place. */
static void selected_pairs(struct writer *w, bool cause)
{
	struct ops_new_event call;

	allocate(w, ROWS_TABLE, 40000);
	USE(w, "aten::sort", 1000, -1, {INPUT, 100, 100, 0, false});
	call = scene_event(w->b, 0, "train.py(9): permute", w->now_ns, w->now_ns + 980000);
	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	for (unsigned i = 0; i < 20; i++) {
		allocate(w, SELECTED, 32000);
		USE(w, "aten::index", 1000, -1, {ROWS_TABLE, 100, 100, 0, false});
		allocate(w, COMPUTED, 25600);
		if (cause)
			USE(w, "aten::mm", 20000, -1, {SELECTED, 80, 100, 0, false}, {SELECTED, 100, 80, 0, TENSOR_BY_COLUMNS});
		else
			USE(w, "aten::cumsum", 20000, -1, {SELECTED, 80, 100, 0, false});
		USE(w, "aten::exp_", 10000, -1, {COMPUTED, 80, 80, 0, true});
		USE(w, "aten::argmax", 1000, 0, {COMPUTED, 80, 80, 0, false});
		allocate(w, SELECTED, -32000);
		allocate(w, COMPUTED, -25600);
	}
	allocate(w, ROWS_TABLE, -40000);
	w->now_ns = call.end_ns + 1000;
}

static void finds_functions_of_selected_rows(void **state)
{
	(void)state;
	/* Each row is computed ten times, each pair 12.8 times. */
	assert_float_equal(gain_of("function-of-selected-rows", selected_rows, true), 20 * 0.02 * 0.9, 0.001);
	for (selected_kind = OF_CHANGING_TABLE; selected_kind <= OF_TWO_SELECTIONS; selected_kind++)
		assert_true(gain_of("function-of-selected-rows", selected_rows, false) < 0);
	assert_float_equal(gain_of("function-of-selected-rows", selected_pairs, true), 20 * 0.03 * (1 - 1 / 12.8), 0.001);
	assert_true(gain_of("function-of-selected-rows", selected_pairs, false) < 0);
}

/* Twenty iterations of small operators on the previous result, or on different tensors. */
static void iterations(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): solve", w->now_ns, w->now_ns + 900000);
	uint64_t before = INPUT;

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t next = 0x1000000u + 0x1000u * i;

		allocate(w, next, 400);
		USE(w, "aten::mv", 20000, -1, {WEIGHT, 10, 10, 0, false}, {cause ? before : 0x3000000u + 0x1000u * i, 1, 10, 0, false});
		before = next;
	}
	for (unsigned i = 0; i < 20; i++)
		allocate(w, 0x1000000u + 0x1000u * i, -400);
	w->now_ns = call.end_ns + 1000;
}

/* The same, where each iteration also changes its result in place. */
static void iterations_in_place(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): solve", w->now_ns, w->now_ns + 900000);
	uint64_t before = INPUT;

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t next = 0x1000000u + 0x1000u * i;

		allocate(w, next, 400);
		USE(w, "aten::mv", 10000, -1, {WEIGHT, 10, 10, 0, false}, {cause ? before : 0x3000000u + 0x1000u * i, 1, 10, 0, false});
		USE(w, "aten::relu_", 1000, -1, {next, 1, 10, 0, true});
		allocate(w, next + 0x800u, 400);
		USE(w, "aten::mv", 10000, -1, {WEIGHT, 10, 10, 0, false}, {next, 1, 10, 0, false});
		before = next + 0x800u;
	}
	for (unsigned i = 0; i < 40; i++)
		allocate(w, 0x1000000u + 0x800u * i, -400);
	w->now_ns = call.end_ns + 1000;
}

/* Twenty iterations which call a function four times, at different lines, each time on the previous result. Or with other tensors. */
static void iterations_of_four_calls(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): solve", w->now_ns, w->now_ns + 900000);
	uint64_t before = INPUT;

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	for (unsigned i = 0; i < 80; i++) {
		uint64_t next = 0x1000000u + 0x1000u * i;
		struct ops_new_event slope = scene_event(w->b, 0, "train.py(2): slope", w->now_ns, w->now_ns + 9000);

		slope.kind = OPS_EVENT_PYTHON_FUNCTION;
		slope.call_line = 11 + i % 4;
		ops_builder_event(w->b, &slope);
		w->now_ns += 500;
		allocate(w, next, 400);
		USE(w, "aten::mv", 7000, -1, {WEIGHT, 10, 10, 0, false}, {cause ? before : 0x3000000u + 0x1000u * i, 1, 10, 0, false});
		w->now_ns = slope.end_ns + 100;
		before = next;
	}
	for (unsigned i = 0; i < 80; i++)
		allocate(w, 0x1000000u + 0x1000u * i, -400);
	w->now_ns = call.end_ns + 1000;
}

static void doubts_loops_whose_iterations_depend_on_each_other(void **state)
{
	(void)state;
	assert_string_equal(severity_of("many-small-operators", iterations_in_place, false), "high");
	assert_string_equal(severity_of("many-small-operators", iterations_in_place, true), "medium");
	assert_string_equal(severity_of("many-small-operators", iterations_of_four_calls, false), "high");
	assert_string_equal(severity_of("many-small-operators", iterations_of_four_calls, true), "medium");
	assert_string_equal(severity_of("many-small-operators", iterations, false), "high");
	assert_string_equal(severity_of("many-small-operators", iterations, true), "medium");
}

/* Pads four samples to the size of the largest. */
static void pad(struct writer *w, const int64_t sizes[4])
{
	struct ops_new_event event = scene_event(w->b, 0, "aten::pad_sequence", w->now_ns, w->now_ns + 1000);
	struct ops_storage storage = {.address = INPUT, .bytes = 8000};
	struct list list;

	list_open(&list, 1);
	put_head(&list, OPS_INPUT_TENSOR_LIST, 0, 4);
	for (int i = 0; i < 4; i++)
		put_tensor(&list, 4, 1, (const int64_t[]){sizes[i], 1});
	event.inputs = ops_builder_inputs(w->b, list.bytes, list.size);
	event.storages = ops_builder_string(w->b, (const char *)&storage, sizeof(storage));
	ops_builder_event(w->b, &event);
	w->now_ns += 2000;
}

/* Four sentences, of which one or all are long, so that 30 % are padding, that an encoder of words gets as one batch. */
static void sentences(struct writer *w, bool cause)
{
	uint32_t whole = TENSOR_OF(4); /* int64 */

	allocate(w, SMALL, 32000);
	pad(w, cause ? (const int64_t[]){1000, 600, 600, 600} : (const int64_t[]){1000, 1000, 1000, 1000});
	allocate(w, LARGE, 1600000);
	USE(w, "aten::embedding", 1000, -1, {WEIGHT, 5000, 100, 0, false}, {SMALL, 4, 1000, 32000, whole});
	allocate(w, GRADIENT, 1600000);
	USE(w, "aten::add", 1000, -1, {LARGE, 4000, 100, 0, false}, {WEIGHT + 1, 1000, 100, 0, false});
	allocate(w, LARGE, -1600000);
	allocate(w, LARGE, 1600000);
	USE(w, "aten::scaled_dot_product_attention", 1000, -1, {GRADIENT, 4000, 100, 0, false});
	allocate(w, 0x60000u, 1600000); /* and embeddings of the types of words */
	USE(w, "aten::add", 1000, -1, {LARGE, 4000, 100, 0, false}, {WEIGHT + 3, 4000, 100, 0, false});
	allocate(w, 0x40000u, 1600000);
	USE(w, "aten::add", 1000, -1, {GRADIENT, 4000, 100, 0, false}, {0x60000u, 4000, 100, 0, false});
	allocate(w, 0x50000u, 1600000);
	USE(w, "aten::linear", 500000, -1, {0x40000u, 4000, 100, 0, false}, {WEIGHT + 2, 100, 100, 0, false});
	USE(w, "aten::sort", 1000, -1, {0x50000u, 4000, 100, 0, false});
	allocate(w, SMALL, -32000);
	allocate(w, LARGE, -1600000);
	allocate(w, GRADIENT, -1600000);
	allocate(w, 0x40000u, -1600000);
	allocate(w, 0x50000u, -1600000);
	allocate(w, 0x60000u, -1600000);
}

/* --- traces in Kineto's format ---------------------------------------------------------------------------------------- */

static double gain_in(struct device_trace *trace, const char *rule)
{
	char *text = device_trace_advise(trace);
	double ms = finding_ms(text, rule);

	ops_free(text);
	return ms;
}

/* Three tensors of equal size grow at one line, in turns. */
static void finds_tensors_of_equal_size_that_grow(void **state)
{
	struct device_trace trace;

	(void)state;
	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "python_function", "train.py(3): remember", 1, 1, us, 1900, "\"Python id\": 1");
		for (int i = 0; i < 3; i++) {
			char lists[256];

			snprintf(lists, sizeof(lists), "\"Input Dims\": [[[%d, 400], [10, 400]], []], \"Input type\": [\"TensorList\", \"Scalar\"]",
			         10 * (step + 1));
			device_trace_add(&trace, "cpu_op", "aten::cat", 1, 1, us + 10 + 500 * i, 400, lists);
		}
	}
	/* Of 20 + 30 + … 90 rows, 90 have to be copied. */
	assert_float_equal(gain_in(&trace, "quadratic-concatenation"), 1.2 * (1 - 90.0 / 440), 0.01);
}

/* An operator of a backward pass, with the number of the next node. */
static void add_operator(struct device_trace *trace, const char *name, double us, double duration_us, int number)
{
	char args[128];

	snprintf(args, sizeof(args), "\"Sequence number\": %d, \"Fwd thread id\": 0, \"Python parent id\": 3", number);
	device_trace_add(trace, "cpu_op", name, 1, 1, us, duration_us, args);
}

/* Each step computes a gradient with a graph of it, by six operators in place of one, and may compute a second derivative. */
static double second_order_ms(bool used)
{
	struct device_trace trace;

	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;
		int first = 100 * step + 10;

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "python_function", "run.py(3): forces", 1, 1, us, 1000, "\"Python id\": 1");
		device_trace_add(&trace, "python_function", "torch/autograd/__init__.py(300): grad", 1, 1, us + 10, 900,
		                 "\"Python id\": 3, \"Python parent id\": 1");
		add_operator(&trace, "autograd::engine::evaluate_function: SiluBackward0", us + 20, 800, first - 5);
		add_operator(&trace, "SiluBackward0", us + 21, 790, first - 5);
		for (int i = 0; i < 6; i++)
			add_operator(&trace, i ? "aten::mul" : "aten::sigmoid", us + 30 + 100 * i, 90, first + i);
		device_trace_add(&trace, "python_function", "torch/autograd/__init__.py(300): backward", 1, 1, us + 1100, 200, "\"Python id\": 4");
		add_operator(&trace, "autograd::engine::evaluate_function: MulBackward0", us + 1110, 100, used ? first + 2 : first - 3);
	}
	return gain_in(&trace, "unused-second-order-graph");
}

static void finds_graphs_of_gradients_that_are_not_used(void **state)
{
	(void)state;
	assert_float_equal(second_order_ms(false), 0.45, 0.001);
	assert_true(second_order_ms(true) < 0);
}

/* Each step, or only the first one, compiles a function in half of its time. */
static double compiling_ms(bool each_step)
{
	struct device_trace trace;

	device_trace_open(&trace);
	for (int step = 0; step < STEPS; step++) {
		double us = 20 + 2000 * step;
		char region[64];

		device_trace_step(&trace, step, us - 10, 1990);
		device_trace_add(&trace, "python_function", "train.py(3): train", 1, 1, us, 1900, "\"Python id\": 1");
		if (!step || each_step) {
			device_trace_add(&trace, "python_function", "torch/_dynamo/convert_frame.py(2522): CatchErrorsWrapper.__call__", 1, 1, us + 10, 995,
			                 "\"Python id\": 2, \"Python parent id\": 1");
			device_trace_add(&trace, "python_function", "torch/_dynamo/convert_frame.py(1633): _compile", 1, 1, us + 20, 900,
			                 "\"Python id\": 3, \"Python parent id\": 2");
		}
		snprintf(region, sizeof(region), "Torch-Compiled Region: 0/%d", each_step ? step : 0);
		device_trace_add(&trace, "cpu_op", region, 1, 1, us + 1100, 500, "");
	}
	return gain_in(&trace, "recompilations");
}

static void finds_functions_that_are_compiled_again(void **state)
{
	(void)state;
	assert_float_equal(compiling_ms(true), 0.995 * (STEPS - 1) / STEPS, 0.01);
	assert_true(compiling_ms(false) < 0);
}

static void test_repeated_advice_finds_causes(void **state)
{
	static const struct cause causes[] = {
		{"redundant-elements", covariance, 0.5 * 0.999},
		{"redundant-elements", sentences, 0.5 * 1200 / 4000},
	};

	(void)state;
	ASSERT_CAUSES(causes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_repeated_advice_finds_causes),
		cmocka_unit_test(finds_work_on_the_same_part),
		cmocka_unit_test(knows_memory_of_other_libraries),
		cmocka_unit_test(knows_that_threads_reuse_memory),
		cmocka_unit_test(follows_parts_through_local_operators),
		cmocka_unit_test(follows_parts_of_a_split),
		cmocka_unit_test(finds_layers_that_can_run_behind_their_loop),
		cmocka_unit_test(finds_modules_that_can_be_joined), cmocka_unit_test(leaves_out_generators),
		cmocka_unit_test(finds_functions_of_selected_rows),
		cmocka_unit_test(doubts_loops_whose_iterations_depend_on_each_other),
		cmocka_unit_test(finds_tensors_of_equal_size_that_grow),
		cmocka_unit_test(finds_graphs_of_gradients_that_are_not_used),
		cmocka_unit_test(finds_functions_that_are_compiled_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
