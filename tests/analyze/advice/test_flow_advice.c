/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/advice by data flow: results of which only a part is read, gradients that nothing reads, large intermediate results.
 * Each cause has a counterpart that only differs in what is read and has no finding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <opstrobe/internal/advice.h>

#include "flow_writer.h"

/* 1000 × 256 logits, of which one row of 16 is read, or all. */
static void logits(struct writer *w, bool cause)
{
	allocate(w, LARGE, 1024000);
	USE(w, "aten::mm", 500000, -1, {INPUT, 1000, 64, 0, false}, {WEIGHT, 64, 256, 0, false});
	if (cause)
		USE(w, "aten::select", 1000, 9, {LARGE, 1000, 256, 0, false});
	allocate(w, SMALL, 8);
	USE(w, "aten::argmax", 20000, -1, {LARGE, cause ? 100 : 1000, 256, 1024000, false});
	allocate(w, LARGE, -1024000);
	allocate(w, SMALL, -8);
}

/* The same, with a list that Python makes of another tensor, or that is long enough to be that of the logits. */
static void logits_and_list(struct writer *w, bool cause)
{
	struct ops_new_event list = scene_event(w->b, 0, "<built-in method tolist of Tensor object at 0x7f12>", 0, 0);

	allocate(w, LARGE, 1024000);
	USE(w, "aten::mm", 500000, -1, {INPUT, 1000, 64, 0, false}, {WEIGHT, 64, 256, 0, false});
	list.kind = OPS_EVENT_PYTHON_FUNCTION;
	list.start_ns = w->now_ns;
	list.end_ns = w->now_ns += cause ? 3000 : 300000;
	ops_builder_event(w->b, &list);
	USE(w, "aten::select", 1000, 9, {LARGE, 1000, 256, 0, false});
	allocate(w, SMALL, 8);
	USE(w, "aten::argmax", 20000, -1, {LARGE, 100, 256, 1024000, false});
	allocate(w, LARGE, -1024000);
	allocate(w, SMALL, -8);
}

/* A layer without bias: linear calls matmul, which calls mm, and only that has a formula. */
static void logits_without_bias(struct writer *w, bool cause)
{
	struct writer inner;

	allocate(w, LARGE, 1024000);
	inner = *w;
	inner.now_ns += 1000;
	USE(w, cause ? "custom::linear" : "aten::softmax", 500000, -1, {INPUT, 1000, 64, 0, false}, {WEIGHT, 256, 64, 0, false});
	USE(&inner, "custom::matmul", 480000, -1, {INPUT, 1000, 64, 0, false}, {WEIGHT, 64, 256, 0, false});
	inner.now_ns -= 480000;
	USE(&inner, "aten::mm", 450000, -1, {INPUT, 1000, 64, 0, false}, {WEIGHT, 64, 256, 0, false});
	USE(w, "aten::select", 1000, 9, {LARGE, 1000, 256, 0, false});
	allocate(w, SMALL, 8);
	USE(w, "aten::argmax", 20000, -1, {LARGE, 100, 256, 1024000, false});
	allocate(w, LARGE, -1024000);
	allocate(w, SMALL, -8);
}

#define ACTIVATED 0x70000u

/* A function between the layer and the selection, which works on each element. */
static void activated_logits(struct writer *w, bool cause)
{
	allocate(w, LARGE, 1024000);
	USE(w, "aten::mm", 500000, -1, {INPUT, 1000, 64, 0, false}, {WEIGHT, 64, 256, 0, false});
	allocate(w, ACTIVATED, 1024000);
	USE(w, cause ? "aten::gelu" : "custom::mix", 10000, -1, {LARGE, 1000, 256, 0, false});
	allocate(w, LARGE, -1024000);
	USE(w, "aten::select", 1000, 9, {ACTIVATED, 1000, 256, 0, false});
	allocate(w, SMALL, 8);
	USE(w, "aten::argmax", 20000, -1, {ACTIVATED, 100, 256, 1024000, false});
	allocate(w, ACTIVATED, -1024000);
	allocate(w, SMALL, -8);
}

/* A softmax needs all elements for any of them. */
static void probabilities(struct writer *w, bool cause)
{
	allocate(w, LARGE, 1024000);
	USE(w, cause ? "aten::relu" : "aten::softmax", 500000, -1, {INPUT, 1000, 256, 0, false});
	USE(w, "aten::select", 1000, 9, {LARGE, 1000, 256, 0, false});
	allocate(w, SMALL, 8);
	USE(w, "aten::argmax", 20000, -1, {LARGE, 100, 256, 1024000, false});
	allocate(w, LARGE, -1024000);
	allocate(w, SMALL, -8);
}

/* A backward pass makes a gradient, and an optimizer steps: on this gradient, or on another tensor. */
static void train(struct writer *w, bool cause)
{
	bool first = w->now_ns < STEP_NS;

	allocate(w, first ? GRADIENT : LARGE, 400000);
	USE(w, "MmBackward0", 500000, -1, {INPUT, 100, 1000, 0, false});
	if (first) { /* taken over */
		USE(w, "torch::autograd::AccumulateGrad", 20000, -1, {GRADIENT, 100, 1000, 0, false});
	} else {
		int64_t at_ns = w->now_ns;

		USE(w, "torch::autograd::AccumulateGrad", 20000, -1, {LARGE, 100, 1000, 0, false});
		w->now_ns = at_ns + 1000;
		USE(w, "aten::add_", 15000, -1, {GRADIENT, 100, 1000, 0, true}, {LARGE, 100, 1000, 0, false});
		w->now_ns += 10000;
		allocate(w, LARGE, -400000);
	}
	scene_range(w->b, 0, "Optimizer.step#SGD.step", w->now_ns, w->now_ns + 50000);
	w->now_ns += 1000;
	USE(w, "aten::add_", 10000, -1, {WEIGHT, 100, 1000, 0, true}, {cause ? INPUT : GRADIENT, 100, 1000, 0, false});
}

/* The same, with an optimizer that a function of the program makes before. */
static void train_with_optimizer(struct writer *w, bool cause)
{
	static const char *const calls[] = {"train.py(4): setup", "torch/optim/optimizer.py(377): Optimizer.__init__"};

	for (int i = 0; i < 2 && w->now_ns < STEP_NS / 4; i++) {
		struct ops_new_event call = scene_event(w->b, 0, calls[i], w->now_ns + 10 * i, w->now_ns + 100 - 10 * i);

		call.kind = OPS_EVENT_PYTHON_FUNCTION;
		ops_builder_event(w->b, &call);
	}
	w->now_ns += 1000;
	train(w, cause);
}

static void names_the_line_of_the_optimizer(void **state)
{
	char *json = advice_of(train_with_optimizer, true);

	(void)state;
	assert_true(finding_ms(json, "unread-gradient") > 0);
	assert_non_null(strstr(json, "\"file\":\"train.py\",\"line\":4"));
	ops_free(json);
}

/* A gradient that only another one follows from, which an optimizer reads or not. A view of the latter may lie between: of a transposed weight. */
static void pass_on_by(struct writer *w, bool cause, bool transposed)
{
	bool first = w->now_ns < STEP_NS;
	int64_t at_ns;

	allocate(w, SMALL, 400000);
	USE(w, "ReluBackward0", 300000, -1, {INPUT, 100, 1000, 0, false});
	allocate(w, first ? GRADIENT : LARGE, 400000);
	USE(w, "MmBackward0", 200000, -1, {SMALL, 100, 1000, 0, false});
	allocate(w, SMALL, -400000);
	if (transposed)
		USE(w, "TBackward0", 1000, -1, {first ? GRADIENT : LARGE, 100, 1000, 0, false});
	at_ns = w->now_ns;
	USE(w, "torch::autograd::AccumulateGrad", 20000, -1, {first ? GRADIENT : LARGE, 100, 1000, 0, false});
	if (!first) {
		w->now_ns = at_ns + 1000;
		USE(w, "aten::add_", 15000, -1, {GRADIENT, 100, 1000, 0, true}, {LARGE, 100, 1000, 0, false});
		w->now_ns += 10000;
		allocate(w, LARGE, -400000);
	}
	scene_range(w->b, 0, "Optimizer.step#SGD.step", w->now_ns, w->now_ns + 50000);
	w->now_ns += 1000;
	USE(w, "aten::add_", 10000, -1, {WEIGHT, 100, 1000, 0, true}, {cause ? INPUT : GRADIENT, 100, 1000, 0, false});
}

static void pass_on(struct writer *w, bool cause)
{
	pass_on_by(w, cause, false);
}

static void pass_on_transposed(struct writer *w, bool cause)
{
	pass_on_by(w, cause, true);
}

/* Differences of all pairs, squared and summed; or the squares of what is as large already. */
static void reduce_distances(struct writer *w, bool cause, int64_t bytes)
{
	allocate(w, LARGE, 4000000);
	USE(w, "aten::sub", 300000, -1, {INPUT, cause ? 10 : 1000, 1000, 0, false}, {WEIGHT, 10, 1000, 0, false});
	allocate(w, GRADIENT, 4000000);
	USE(w, "aten::pow", 200000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	allocate(w, SMALL, bytes);
	USE(w, "aten::sum", 100000, -1, {GRADIENT, 1000, 1000, 0, false});
	allocate(w, GRADIENT, -4000000);
	allocate(w, SMALL, -bytes);
}

static void distances(struct writer *w, bool cause)
{
	reduce_distances(w, cause, 4000);
}

/* Of points with three coordinates. */
static void distances_in_space(struct writer *w, bool cause)
{
	reduce_distances(w, cause, 4000000 / 3);
}

/* The nearest of points: a minimum of sums of differences, whose passes count once. */
static void nearest(struct writer *w, bool cause)
{
	allocate(w, LARGE, 16000000);
	USE(w, "aten::sub", 300000, -1, {INPUT, cause ? 10 : 4000, 1000, 0, false}, {WEIGHT, 10, 1000, 0, false});
	allocate(w, GRADIENT, 4000000);
	USE(w, "aten::sum", 200000, -1, {LARGE, 4000, 1000, 0, false});
	allocate(w, LARGE, -16000000);
	allocate(w, SMALL, 8000);
	USE(w, "aten::argmin", 100000, -1, {GRADIENT, 1000, 1000, 0, false});
	allocate(w, GRADIENT, -4000000);
	allocate(w, SMALL, -8000);
}

/* Comparisons that are counted twice, where the first count needs scratch memory, or differences that are summed up twice. */
static void reduced_twice(struct writer *w, bool cause)
{
	const uint64_t other = 0x40000, scratch = 0x50000;

	allocate(w, LARGE, 4000000);
	USE(w, cause ? "aten::ge" : "aten::sub", 300000, -1, {INPUT, 10, 1000, 0, false}, {WEIGHT, 10, 1000, 0, false});
	allocate(w, other, 4000);
	ops_builder_memory(w->b, &(struct ops_memory_record){.time_ns = w->now_ns + 200, .address = scratch, .bytes = 4000000, .device_index = -1});
	ops_builder_memory(w->b, &(struct ops_memory_record){.time_ns = w->now_ns + 300, .address = scratch, .bytes = -4000000, .device_index = -1});
	USE(w, "aten::sum", 50000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, GRADIENT, 4000000);
	USE(w, cause ? "aten::logical_and" : "aten::pow", 200000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	allocate(w, SMALL, 4000);
	USE(w, "aten::sum", 100000, -1, {GRADIENT, 1000, 1000, 0, false});
	allocate(w, GRADIENT, -4000000);
	allocate(w, SMALL, -4000);
	allocate(w, other, -4000);
}

static void finds_comparisons_that_are_counted_twice(void **state)
{
	(void)state;
	assert_true(gain_of("large-intermediate", reduced_twice, true) > 0.6 * 0.75 - 0.001);
	assert_true(gain_of("large-intermediate", reduced_twice, false) < 0);
}

/* A table of zeros, into which few rows are copied or most, and a product. */
static void padding(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	use(w, "aten::zeros", 1000, NULL, 0, -1);
	USE(w, "aten::copy_", 1000, -1, {LARGE, cause ? 200 : 800, 1000, 4000000, true}, {INPUT, cause ? 200 : 800, 1000, 0, false});
	allocate(w, SMALL, 40000);
	USE(w, "aten::mm", 500000, -1, {LARGE, 1000, 1000, 0, false}, {WEIGHT, 1000, 10, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::relu", 1000, -1, {SMALL, 1000, 10, 0, false});
	allocate(w, SMALL, -40000);
}

/* A matrix with zeros but on its diagonal, or with unknown elements. */
static void filled_diagonal(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	use(w, "aten::zeros", 1000, NULL, 0, -1);
	USE(w, cause ? "aten::fill_diagonal_" : "aten::normal_", 1000, -1, {LARGE, 1000, 1000, 0, true});
	allocate(w, SMALL, 40000);
	USE(w, "aten::mm", 500000, -1, {LARGE, 1000, 1000, 0, false}, {WEIGHT, 1000, 10, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::relu", 1000, -1, {SMALL, 1000, 10, 0, false});
	allocate(w, SMALL, -40000);
}

/* Padding of 800 positions, and two layers with an activation or an unknown operator in between. */
static void padding_in_layers(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	use(w, "aten::zeros", 1000, NULL, 0, -1);
	USE(w, "aten::copy_", 1000, -1, {LARGE, 200, 1000, 4000000, true}, {INPUT, 200, 1000, 0, false});
	allocate(w, SMALL, 400000);
	USE(w, "aten::linear", 200000, -1, {LARGE, 1000, 1000, 0, false}, {WEIGHT, 100, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	allocate(w, GRADIENT, 400000);
	USE(w, cause ? "aten::gelu" : "aten::sort", 1000, -1, {SMALL, 1000, 100, 0, false});
	allocate(w, SMALL, -400000);
	allocate(w, LARGE, 40000);
	USE(w, "aten::linear", 400000, -1, {GRADIENT, 1000, 100, 0, false}, {WEIGHT, 10, 100, 4000, false});
	allocate(w, GRADIENT, -400000);
	USE(w, "aten::sort", 1000, -1, {LARGE, 1000, 10, 0, false});
	allocate(w, LARGE, -40000);
}

static void follows_padding_through_layers(void **state)
{
	(void)state;
	assert_float_equal(gain_of("redundant-elements", padding_in_layers, true), 0.8 * (0.2 + 0.4), 0.001);
	assert_float_equal(gain_of("redundant-elements", padding_in_layers, false), 0.8 * 0.2, 0.001);
}

/* A product with a triangle of ones, or of other numbers. */
static void triangle(struct writer *w, bool cause)
{
	allocate(w, GRADIENT, 4000000);
	USE(w, cause ? "aten::ones" : "aten::sort", 1000, -1, {INPUT, 1, 1, 0, false});
	allocate(w, LARGE, 4000000);
	USE(w, "aten::tril", 1000, 0, {GRADIENT, 1000, 1000, 0, false});
	allocate(w, GRADIENT, -4000000);
	allocate(w, SMALL, 40000);
	USE(w, "aten::mm", 500000, -1, {LARGE, 1000, 1000, 0, false}, {WEIGHT, 1000, 10, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::sort", 1000, -1, {SMALL, 1000, 10, 0, false});
	allocate(w, SMALL, -40000);
}

/* Rows that are repeated for a layer, which has the same weight for all; or to be added to a product. */
static void repeated_rows(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, "aten::repeat", 1000, -1, {INPUT, 10, 1000, 0, false});
	allocate(w, SMALL, 40000);
	USE(w, cause ? "aten::linear" : "aten::addmm", 500000, -1, {LARGE, 1000, 1000, 0, false}, {WEIGHT, 10, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::relu", 1000, -1, {SMALL, 1000, 10, 0, false});
	allocate(w, SMALL, -40000);
}

/* A product of thin matrices meets few rows, or all of them. */
static void products(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, "aten::mm", 300000, -1, {INPUT, 1000, 10, 0, false}, {WEIGHT, 10, 1000, 0, false});
	allocate(w, SMALL, 400000);
	if (cause)
		USE(w, "aten::mm", 200000, -1, {GRADIENT, 100, 1000, 0, false}, {LARGE, 1000, 1000, 0, false});
	else
		USE(w, "aten::add", 200000, -1, {GRADIENT, 100, 1000, 0, false}, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::relu", 1000, -1, {SMALL, 100, 1000, 0, false});
	allocate(w, SMALL, -400000);
}

/* A matrix of rank 10 is scaled and added to a weight for a layer of few rows or, without the cause, of as many as the matrix has. */
static void update(struct writer *w, bool cause)
{
	int64_t rows = cause ? 100 : 1000;

	allocate(w, LARGE, 4000000);
	USE(w, "aten::mm", 300000, -1, {INPUT, 1000, 10, 0, false}, {WEIGHT, 10, 1000, 0, false});
	allocate(w, 0x40000u, 4000000);
	USE(w, "aten::mul", 100000, 2, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	allocate(w, 0x50000u, 4000000);
	USE(w, "aten::add", 100000, -1, {WEIGHT + 1, 1000, 1000, 0, false}, {0x40000u, 1000, 1000, 0, false});
	allocate(w, 0x40000u, -4000000);
	allocate(w, SMALL, rows * 4000);
	USE(w, "aten::linear", 200000, -1, {GRADIENT, rows, 1000, 0, false}, {0x50000u, 1000, 1000, 0, false});
	allocate(w, 0x50000u, -4000000);
	USE(w, "aten::relu", 1000, -1, {SMALL, rows, 1000, 0, false});
	allocate(w, SMALL, -rows * 4000);
}

static void finds_expensive_orders_of_products(void **state)
{
	(void)state;
	/* 100 · 1000 · 10 twice, in place of 1000 · 10 · 1000 and 100 · 1000 · 1000 */
	assert_float_equal(gain_of("product-order", products, true), 0.5 * (1 - 2.0 / 110), 0.001);
	assert_true(gain_of("product-order", products, false) < 0);
}

/* Three tensors, contracted from left to right; without the cause, two products of another function. */
static void contraction(struct writer *w, bool cause)
{
	struct writer inner = *w;

	allocate(w, SMALL, 40000);
	USE(w, cause ? "aten::einsum" : "custom::function", 500000, -1, {INPUT, 1000, 10, 0, false}, {WEIGHT, 10, 1000, 0, false}, {GRADIENT, 1000, 10, 0, false});
	inner.now_ns += 1000;
	USE(&inner, "aten::mm", 200000, -1, {INPUT, 1000, 10, 0, false}, {WEIGHT, 10, 1000, 0, false});
	USE(&inner, "aten::mm", 200000, -1, {LARGE, 1000, 1000, 0, false}, {GRADIENT, 1000, 10, 0, false});
	USE(w, "aten::relu", 1000, -1, {SMALL, 1000, 10, 0, false});
	allocate(w, SMALL, -40000);
}

/* Two layers: the products have to be made in this order. */
static void layers(struct writer *w, bool cause)
{
	allocate(w, LARGE, 400000);
	USE(w, "aten::mm", 300000, -1, {INPUT, 100, 1000, 0, false}, {WEIGHT, 1000, 1000, 0, false});
	allocate(w, SMALL, 400000);
	USE(w, "aten::mm", 200000, -1, {LARGE, 100, 1000, 0, false}, {GRADIENT, 1000, cause ? 1 : 1000, 0, false});
	allocate(w, LARGE, -400000);
	USE(w, "aten::relu", 1000, -1, {SMALL, 100, 1000, 0, false});
	allocate(w, SMALL, -400000);
}

/* An index for each row is repeated for all columns, or without the cause read from elsewhere, to add rows. */
static void scatter(struct writer *w, bool cause)
{
	allocate(w, LARGE, 800000);
	USE(w, cause ? "aten::repeat" : "aten::clone", 1000, -1, {INPUT, 1000, cause ? 1 : 100, cause ? 8000 : 800000, TENSOR_OF(4)});
	allocate(w, SMALL, 4000);
	USE(w, "aten::scatter_add", 500000, -1, {WEIGHT, 10, 100, 0, false}, {WEIGHT, 1, 1, 0, TENSOR_NUMBER}, {LARGE, 1000, 100, 800000, TENSOR_OF(4)});
	USE(w, "aten::relu", 1000, -1, {SMALL, 10, 100, 0, false});
	allocate(w, LARGE, -800000);
	allocate(w, SMALL, -4000);
}

/* A small diagonal matrix, or without the cause a copy of a matrix, is factored. */
static void factor_diagonal(struct writer *w, bool cause)
{
	allocate(w, LARGE, 64);
	USE(w, cause ? "aten::diag" : "aten::clone", 1000, -1, {INPUT, 1, cause ? 4 : 16, 0, false});
	allocate(w, SMALL, 64);
	USE(w, "aten::linalg_cholesky", 500000, -1, {LARGE, 4, 4, 0, false});
	USE(w, "aten::relu", 1000, -1, {SMALL, 4, 4, 0, false});
	allocate(w, LARGE, -64);
	allocate(w, SMALL, -64);
}

/* An inverse that a product reads, and a function. */
static void inverses(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, "aten::linalg_inv", 500000, -1, {INPUT, 1000, 1000, 0, false});
	allocate(w, SMALL, 40000);
	USE(w, "aten::matmul", 1000, -1, {LARGE, 1000, 1000, 0, false}, {WEIGHT, 1000, 10, 0, false});
	if (!cause)
		USE(w, "aten::trace", 1000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::relu", 1000, -1, {SMALL, 1000, 10, 0, false});
	allocate(w, SMALL, -40000);
}

/* A gradient that is set to zero before it is added to, or kept from an earlier pass. */
static void accumulate(struct writer *w, bool cause)
{
	int64_t at_ns;

	if (w->now_ns < STEP_NS)
		allocate(w, GRADIENT, 400000);
	if (cause)
		USE(w, "aten::zero_", 50000, -1, {GRADIENT, 100, 1000, 0, true});
	allocate(w, LARGE, 400000);
	USE(w, "MmBackward0", 300000, -1, {INPUT, 100, 1000, 0, false});
	at_ns = w->now_ns;
	USE(w, "torch::autograd::AccumulateGrad", 100000, -1, {LARGE, 100, 1000, 0, false});
	w->now_ns = at_ns + 1000;
	USE(w, "aten::add_", 95000, -1, {GRADIENT, 100, 1000, 0, true}, {LARGE, 100, 1000, 0, false});
	w->now_ns += 10000;
	allocate(w, LARGE, -400000);
}

/* Three passes over 4 MB take 0.12 ms at the roof. */
static void sums(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, "aten::add", 400000, -1, {INPUT, 1000, 1000, 0, false}, {WEIGHT, 1000, 1000, 0, false});
	if (!cause)
		USE(w, "aten::sort", 1000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
}

/* Five operators on 4 MB in a row, the longest of which takes as long as one that does the work of all would. The
 * counterpart sorts in between. */
static void chain(struct writer *w, bool cause)
{
	static const char *const names[] = {"aten::neg", "aten::exp", "aten::sqrt", "aten::tanh", "aten::abs"};

	for (uint32_t i = 0; i < 5; i++) {
		allocate(w, LARGE + i * 0x1000000u, 4000000);
		USE(w, cause || i != 2 ? names[i] : "aten::sort", i == 2 ? 200000 : 100000, -1,
		    {i ? LARGE + (i - 1) * 0x1000000u : INPUT, 1000, 1000, 0, false});
		if (i)
			allocate(w, LARGE + (i - 1) * 0x1000000u, -4000000);
	}
	USE(w, "aten::argsort", 1000, -1, {LARGE + 4 * 0x1000000u, 1000, 1000, 0, false});
	allocate(w, LARGE + 4 * 0x1000000u, -4000000);
}

/* 500 columns of a matrix of 1000 rows, or 500 rows of it. 2 MB are read and written, which takes 0.04 ms at the roof. */
static void selection(struct writer *w, bool cause)
{
	allocate(w, LARGE, cause ? 1000 * 500 * 4 : 500 * 1001 * 4);
	USE(w, "aten::index", 500000, -1, {INPUT, 1000, 1001, 0, false});
	USE(w, "aten::sort", 1000, -1, {LARGE, cause ? 1000 : 500, cause ? 500 : 1001, 0, false});
	allocate(w, LARGE, cause ? -1000 * 500 * 4 : -500 * 1001 * 4);
}

/* No more is left to be avoided where another rule has the cause. */
static void leaves_explained_time_alone(void **state)
{
	(void)state;
	assert_true(gain_of("unread-part", logits, true) > 0);
	assert_true(gain_of("avoidable-time", logits, true) < 0);
}

/* An operator that allocates 40 MB, whose arithmetic is known or not. */
static void scratch(struct writer *w, bool cause)
{
	allocate(w, LARGE, 40000000);
	USE(w, cause ? "aten::add" : "aten::sort", 900000, -1, {INPUT, 1000, 16, 0, false}, {WEIGHT, 1000, 16, 0, false});
	allocate(w, LARGE, -40000000);
}

/* 9766 pages, each of which takes 10 ns, and the return of the memory. Half of the operator would be 0.45 ms. */
static void estimates_new_memory_by_its_pages(void **state)
{
	(void)state;
	assert_float_equal(gain_of("allocation-churn", scratch, false), 0.0977 + 0.0013, 0.0001);
}

/* Cosines of all pairs, or of pairs of rows: the elements that are multiplied are temporary. */
static void cosines(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	allocate(w, SMALL, 4000);
	USE(w, "aten::cosine_similarity", 500000, -1, {INPUT, 1, 1000, 0, false}, {WEIGHT, cause ? 1000 : 1, cause ? 1 : 1000, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::relu", 1000, -1, {SMALL, 1, 1000, 0, false});
	allocate(w, SMALL, -4000);
}

/* The first step makes a tensor that stays. */
static void make_first(struct writer *w, uint64_t address, int64_t bytes)
{
	if (w->now_ns > STEP_NS)
		return;
	allocate(w, address, bytes);
	use(w, "aten::randn", 1000, NULL, 0, -1);
}

/* A table that no step changes, or that each step changes, and a layer of other values. */
static void derived(struct writer *w, bool cause)
{
	make_first(w, LARGE, 400000);
	if (!cause)
		USE(w, "aten::add_", 1000, -1, {LARGE, 100, 1000, 0, true});
	allocate(w, SMALL, 400000);
	USE(w, "aten::exp", 300000, -1, {LARGE, 100, 1000, 0, false});
	USE(w, "aten::add_", 1000, -1, {INPUT, 100, 1000, 0, true});
	USE(w, "aten::mm", 500000, -1, {INPUT, 100, 1000, 0, false}, {SMALL, 1000, 100, 0, false});
	allocate(w, SMALL, -400000);
}

/* A function whose only operator computes the same in each step. It does little else, or computes in Python for most of its time. */
static void called(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): batch", w->now_ns, w->now_ns + (cause ? 60000 : 500000));

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	make_first(w, LARGE, 400000);
	allocate(w, SMALL, 400000);
	USE(w, "aten::exp", 30000, -1, {LARGE, 100, 1000, 0, false});
	w->now_ns = call.end_ns + 1000;
	USE(w, "aten::add_", 1000, -1, {INPUT, 100, 1000, 0, true});
	USE(w, "aten::mm", 400000, -1, {INPUT, 100, 1000, 0, false}, {SMALL, 1000, 100, 0, false});
	allocate(w, SMALL, -400000);
}

static void counts_calls_that_do_nothing_else(void **state)
{
	(void)state;
	assert_float_equal(gain_of("repeated-work", called, true), 0.06, 0.002);
	assert_float_equal(gain_of("repeated-work", called, false), 0.03, 0.002);
}

/* Only the layer, so that all that a step does is the same: a trial. */
static void trial(struct writer *w, bool cause)
{
	make_first(w, LARGE, 400000);
	allocate(w, SMALL, 400000);
	USE(w, "aten::exp", 300000, -1, {LARGE, 100, 1000, 0, false});
	if (cause)
		USE(w, "aten::bernoulli_", 100000, -1, {INPUT, 100, 1000, 0, true});
	allocate(w, SMALL, -400000);
}

/* Recordings do not show by which tensor an operator indexes. */
static void indexed(struct writer *w, bool cause)
{
	(void)cause;
	allocate(w, SMALL, 4000);
	USE(w, "aten::index", 300000, -1, {INPUT, 100, 1000, 0, false});
	allocate(w, LARGE, 4000);
	USE(w, "aten::index", 300000, -1, {INPUT, 100, 1000, 0, false});
	allocate(w, LARGE, -4000);
	allocate(w, SMALL, -4000);
}

static void does_not_compare_unknown_indices(void **state)
{
	(void)state;
	assert_true(gain_of("repeated-work", indexed, true) < 0);
}

/* The same matrix in all steps, or one that each step changes. */
static void systems(struct writer *w, bool cause)
{
	make_first(w, LARGE, 4000000);
	if (!cause)
		USE(w, "aten::add_", 1000, -1, {LARGE, 1000, 1000, 0, true});
	allocate(w, SMALL, 4000000);
	USE(w, "aten::linalg_solve", 200000, -1, {LARGE, 1000, 1000, 0, false}, {INPUT, 1000, 1000, 0, false});
	USE(w, "aten::linalg_slogdet", 100000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, SMALL, -4000000);
}

static void finds_matrices_that_are_factored_again(void **state)
{
	double ms;

	(void)state;
	/* A quarter of the solution with 1000 sides, but for the first, and each determinant. */
	ms = gain_of("repeated-factorization", systems, true);
	assert_true(ms > 0.1 + 0.05 * 0.7 && ms <= 0.1 + 0.05 + 1e-6);
	/* The determinant of the matrix that has just been solved with. */
	assert_float_equal(gain_of("repeated-factorization", systems, false), 0.1, 0.001);
}

/* A matrix, or a part of a larger tensor, which may be another one in each step. */
static void windows_of_one(struct writer *w, bool cause)
{
	make_first(w, LARGE, cause ? 40000 : 400000);
	allocate(w, SMALL, 40000);
	USE(w, "aten::linalg_svd", 500000, -1, {LARGE, 100, 100, cause ? 40000 : 400000, false});
	allocate(w, SMALL, -40000);
}

static void leaves_out_parts_that_may_differ(void **state)
{
	(void)state;
	assert_true(gain_of("repeated-factorization", windows_of_one, true) > 0.4);
	assert_true(gain_of("repeated-factorization", windows_of_one, false) < 0);
}

/* A tall matrix, of whose 1000 vectors something reads 100 or all. */
static void tall_matrix(struct writer *w, bool cause)
{
	allocate(w, SMALL, 400000);
	USE(w, "aten::rand", 1000, -1, {INPUT, 1, 1, 0, false});
	allocate(w, LARGE, 4000000);
	USE(w, "aten::linalg_svd", 500000, -1, {SMALL, 1000, 100, 0, false});
	allocate(w, SMALL, -400000);
	USE(w, "aten::slice", 1000, 900, {LARGE, 1000, 1000, 0, false});
	USE(w, "aten::sort", 1000, -1, {LARGE, cause ? 100 : 1000, 1000, 4000000, false});
	allocate(w, LARGE, -4000000);
}

/* Complex eigenvectors, of which something reads the real parts or all. */
static void eigenvectors(struct writer *w, bool cause)
{
	allocate(w, SMALL, 160000);
	USE(w, "aten::rand", 1000, -1, {INPUT, 1, 1, 0, false});
	allocate(w, LARGE, 320000);
	USE(w, "aten::linalg_eig", 500000, -1, {SMALL, 200, 200, 0, false});
	allocate(w, SMALL, -160000);
	USE(w, "aten::view_as_real", 1000, -1, {LARGE, 200, 200, 320000, TENSOR_OF(9)});
	USE(w, "aten::select", 1000, 0, {LARGE, 200, 400, 320000, false});
	USE(w, "aten::sort", 1000, -1, {LARGE, 200, cause ? 200 : 400, 320000, false});
	allocate(w, LARGE, -320000);
}

/* Six times a buffer of 1000 rows, of which all but ten come from the previous one, or from another tensor. */
static void buffers(struct writer *w, bool cause)
{
	struct ops_new_event call = scene_event(w->b, 0, "train.py(9): add", w->now_ns, w->now_ns + 900000);

	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	for (unsigned i = 0; i < 6; i++) {
		uint64_t before = i % 2 ? SMALL : LARGE, next = i % 2 ? LARGE : SMALL;

		allocate(w, next, 4000000);
		USE(w, "aten::cat", 100000, -1, {cause && i ? before : INPUT, 990, 1000, 4000000, false}, {WEIGHT, 10, 1000, 0, false});
		if (i)
			allocate(w, before, -4000000);
	}
	allocate(w, LARGE, -4000000);
	w->now_ns = call.end_ns + 1000;
}

static void singular_values(struct writer *w, bool cause)
{
	allocate(w, SMALL, 4000);
	USE(w, "aten::linalg_svdvals", 500000, -1, {INPUT, 1000, 1000, 0, false});
	USE(w, cause ? "aten::amax" : "aten::sum", 1000, -1, {SMALL, 1, 1000, 0, false});
	allocate(w, SMALL, -4000);
}

/* The squares of a parameter, summed for the loss, or as the norm by which the parameter is divided. */
static void penalize(struct writer *w, uint64_t parameter, bool cause)
{
	int64_t number = w->now_ns;

	w->sequence = number;
	allocate(w, GRADIENT, 400000);
	USE(w, "aten::pow", 50000, -1, {parameter, 100, 1000, 0, false});
	w->sequence = number + 1;
	allocate(w, SMALL, 4);
	USE(w, "aten::sum", 40000, -1, {GRADIENT, 100, 1000, 0, false});
	w->sequence = number + 2;
	if (cause)
		USE(w, "aten::add", 1000, -1, {SMALL, 1, 1, 0, false});
	else
		USE(w, "aten::div", 1000, -1, {SMALL, 1, 1, 0, false}, {INPUT, 100, 1000, 0, false});
	w->sequence = number + 1;
	USE(w, "SumBackward0", 10000, -1, {SMALL, 1, 1, 0, false});
	w->sequence = number;
	USE(w, "PowBackward0", 60000, -1, {GRADIENT, 100, 1000, 0, false});
	w->sequence = 0;
	allocate(w, GRADIENT, -400000);
	allocate(w, SMALL, -4);
}

/* An encoder without a backward pass, called on samples in a step that trains a layer on its result. */
static void encode(struct writer *w, const char *samples, uint64_t written)
{
	struct ops_new_event call;

	USE(w, "aten::add_", 1000, -1, {INPUT, 100, 1000, 0, true}); /* not what the last step had */
	allocate(w, ACTIVATED, 400000);
	USE(w, samples, 1000, -1, {INPUT, 100, 1000, 0, false});
	call = scene_event(w->b, 0, "nn.Module: Encoder_0", w->now_ns, w->now_ns + 500000);
	call.kind = OPS_EVENT_PYTHON_FUNCTION;
	ops_builder_event(w->b, &call);
	w->now_ns += 1000;
	allocate(w, LARGE, 400000);
	USE(w, "aten::mm", 480000, -1, {ACTIVATED, 100, 1000, 0, false}, {WEIGHT, 1000, 1000, 0, false});
	w->now_ns = call.end_ns + 1000;
	w->sequence = w->now_ns;
	allocate(w, SMALL, 400000);
	USE(w, "aten::mm", 50000, -1, {LARGE, 100, 1000, 0, false}, {GRADIENT, 1000, 1000, 0, false});
	USE(w, "MmBackward0", 50000, -1, {SMALL, 100, 1000, 0, false});
	w->sequence = 0;
	USE(w, "aten::add_", 1000, -1, {written, 1000, 1000, 0, true});
	if (w->now_ns > (STEPS - 1) * STEP_NS)
		allocate(w, WEIGHT, -4000000); /* when the program ends */
	allocate(w, ACTIVATED, -400000);
	allocate(w, LARGE, -400000);
	allocate(w, SMALL, -400000);
}

/* Without the cause, the step changes the parameter of the encoder. */
static void encode_with_same_parameter(struct writer *w, bool cause)
{
	encode(w, "aten::clone", cause ? GRADIENT : WEIGHT);
}

/* Without the cause, the samples are noise. */
static void encode_same_samples(struct writer *w, bool cause)
{
	encode(w, cause ? "aten::clone" : "aten::rand_like", GRADIENT);
}

static void regularize(struct writer *w, bool cause)
{
	int64_t from_ns;

	make_first(w, LARGE, 400000);
	make_first(w, LARGE + 0x8000, 400000);
	penalize(w, LARGE, cause);
	penalize(w, LARGE + 0x8000, cause);
	from_ns = w->now_ns;
	scene_range(w->b, 0, "Optimizer.step#SGD.step", from_ns, from_ns + 50000);
	w->now_ns += 1000;
	USE(w, "aten::add_", 10000, -1, {LARGE, 100, 1000, 0, true});
	USE(w, "aten::add_", 10000, -1, {LARGE + 0x8000, 100, 1000, 0, true});
}

/* Rows that are divided by the root of the mean of their squares, or by something else. */
static void normalize(struct writer *w, bool cause)
{
	enum { SQUARES = 0x40000, MEAN = 0x50000, ROOT = 0x60000 };

	allocate(w, LARGE, 1024000);
	USE(w, "aten::mm", 100000, -1, {INPUT, 1000, 64, 0, false}, {WEIGHT, 64, 256, 0, false});
	allocate(w, SQUARES, 1024000);
	USE(w, "aten::pow", 100000, -1, {LARGE, 1000, 256, 0, false});
	allocate(w, MEAN, 4000);
	USE(w, cause ? "aten::mean" : "aten::argmax", 50000, -1, {SQUARES, 1000, 256, 0, false});
	allocate(w, ROOT, 4000);
	USE(w, "aten::rsqrt", 10000, -1, {MEAN, 1000, 1, 0, false});
	allocate(w, SMALL, 1024000);
	USE(w, "aten::mul", 100000, -1, {LARGE, 1000, 256, 0, false}, {ROOT, 1000, 1, 0, false});
	USE(w, "aten::argmax", 10000, -1, {SMALL, 1000, 256, 0, false});
	allocate(w, SQUARES, -1024000);
	allocate(w, MEAN, -4000);
	allocate(w, ROOT, -4000);
	allocate(w, LARGE, -1024000);
	allocate(w, SMALL, -1024000);
}

static void finds_normalisations_in_single_operators(void **state)
{
	(void)state;
	/* Five passes, and those over the statistics. */
	assert_float_equal(gain_of("formula-by-hand", normalize, true), 0.26 * 0.4, 0.01);
	assert_true(gain_of("formula-by-hand", normalize, false) < 0);
}

/* 128 of 12000 columns of 2000 rows, or 128 rows. */
static void batches(struct writer *w, bool cause)
{
	int64_t bytes = cause ? 2000 * 128 * 4 : 128 * 12000 * 4;

	allocate(w, SMALL, bytes);
	USE(w, "aten::index", 400000, -1, {INPUT, 2000, 12000, 0, false});
	USE(w, "aten::argmax", 10000, -1, {SMALL, 128, bytes / 512, 0, false});
	allocate(w, SMALL, -bytes);
}

/* A copy that is only read, or that an operator changes. */
static void copies(struct writer *w, bool cause)
{
	allocate(w, LARGE, 400000);
	USE(w, "aten::mm", 100000, -1, {INPUT, 100, 1000, 0, false}, {WEIGHT, 1000, 1000, 0, false});
	allocate(w, GRADIENT, 400000);
	USE(w, "aten::clone", 200000, -1, {LARGE, 100, 1000, 0, false});
	USE(w, cause ? "aten::argmax" : "aten::relu_", 1000, -1, {GRADIENT, 100, 1000, 0, !cause});
	USE(w, "aten::argmax", 1000, -1, {GRADIENT, 100, 1000, 0, false});
	allocate(w, GRADIENT, -400000);
	allocate(w, LARGE, -400000);
}

/* A copy that keeps a tensor as it was before an operator changes it. */
static void copies_kept(struct writer *w, bool cause)
{
	allocate(w, LARGE, 400000);
	USE(w, "aten::mm", 100000, -1, {INPUT, 100, 1000, 0, false}, {WEIGHT, 1000, 1000, 0, false});
	allocate(w, GRADIENT, 400000);
	USE(w, "aten::clone", 200000, -1, {LARGE, 100, 1000, 0, false});
	if (!cause)
		USE(w, "aten::relu_", 1000, -1, {LARGE, 100, 1000, 0, true});
	USE(w, "aten::argmax", 1000, -1, {GRADIENT, 100, 1000, 0, false});
	allocate(w, GRADIENT, -400000);
	if (cause)
		USE(w, "aten::relu_", 1000, -1, {LARGE, 100, 1000, 0, true});
	allocate(w, LARGE, -400000);
}

/* The diagonal of a product of matrices. */
static void diagonal(struct writer *w, bool cause)
{
	allocate(w, LARGE, 4000000);
	USE(w, "aten::mm", 500000, -1, {INPUT, 1000, 64, 0, false}, {WEIGHT, 64, 1000, 0, false});
	allocate(w, SMALL, 4000);
	USE(w, cause ? "aten::diag" : "aten::argmax", 1000, -1, {LARGE, 1000, 1000, 0, false});
	allocate(w, LARGE, -4000000);
	USE(w, "aten::relu", 1000, -1, {SMALL, 1, 1000, 0, false});
	allocate(w, SMALL, -4000);
}

/* Targets of which some are set to the number that the loss ignores, or to another; or those that count are selected. */
static void ignore(struct writer *w, bool cause, bool selects)
{
	const struct tensor loss[] = {{LARGE, 1000, 1000, 0, false}, {selects ? SMALL + 0x8000 : SMALL, 1, 1000, 0, false}, {WEIGHT, 1, 1000, 0, false}};

	allocate(w, SMALL, 4000);
	use(w, "aten::masked_fill", 1000, (const struct tensor[]){{INPUT, 1, 1000, 0, false}, {GRADIENT, 1, 1000, 0, false}}, 2, cause ? 1 : 7);
	if (selects) {
		allocate(w, SMALL + 0x8000, 4000);
		USE(w, "aten::index", 1000, -1, {SMALL, 1, 1000, 0, false});
	}
	allocate(w, LARGE, 4000000);
	USE(w, "aten::linear", 400000, -1, {INPUT, 1000, 64, 0, false}, {WEIGHT, 1000, 64, 0, false});
	use(w, "aten::cross_entropy_loss", 200000, loss, 3, 1);
	allocate(w, LARGE, -4000000);
	allocate(w, SMALL, -4000);
	if (selects)
		allocate(w, SMALL + 0x8000, -4000);
}

static void ignore_some(struct writer *w, bool cause)
{
	ignore(w, cause, false);
}

static void select_some(struct writer *w, bool cause)
{
	ignore(w, cause, true);
}

static void finds_samples_that_the_loss_ignores(void **state)
{
	(void)state;
	assert_float_equal(gain_of("ignored-samples", ignore_some, true), 0.6, 0.001);
	assert_true(gain_of("ignored-samples", ignore_some, false) < 0);
	assert_true(gain_of("ignored-samples", select_some, true) < 0);
}

static void test_flow_advice_finds_causes(void **state)
{
	static const struct cause causes[] = {
		{"unread-part", activated_logits, 0.51 * 0.9},
		{"unread-part", logits, 0.5 * 0.9},
		{"unread-part", logits_and_list, 0.5 * 0.9},
		{"unread-part", logits_without_bias, 0.5 * 0.9},
		{"unread-part", probabilities, 0.5 * 0.9},
		{"unread-gradient", train, 0.5 + 0.02 * 7 / STEPS},
		{"unread-gradient", pass_on, 0.3 + 0.2 + 0.02 * 7 / STEPS},
		{"unread-gradient", pass_on_transposed, 0.3 + 0.2 + 0.02 * 7 / STEPS},
		{"large-intermediate", distances, 0.6 * 0.75},
		{"large-intermediate", distances_in_space, 0.6 * 0.75},
		{"large-intermediate", nearest, 0.5 * 0.5 + 0.1 * 0.6},
		{"redundant-elements", padding, 0.5 * 0.8},
		{"redundant-elements", filled_diagonal, 0.5 * 0.999},
		{"redundant-elements", triangle, 0.5},
		{"redundant-elements", repeated_rows, 0.5 * 0.99},
		{"redundant-elements", factor_diagonal, 0.5},
		{"redundant-elements", scatter, 0.5 * 0.6},
		{"product-order", update, 0.3 + 0.1 + 0.1},
		{"product-order", contraction, 0.5 * 0.99},
		{"product-order", layers, 0},
		{"explicit-inverse", inverses, 0.5 * 0.6},
		{"zero-filled-gradients", accumulate, 0.05 + 0.1},
		{"avoidable-time", sums, 0.4 - 0.12},
		{"avoidable-time", chain, 0.6 - 0.2},
		{"avoidable-time", selection, 0.5 - 0.04},
		{"large-intermediate", cosines, 0.5 * 0.5},
		{"repeated-work", derived, 0.3},
		{"repeated-work", trial, 0},
		{"decomposition-for-few-values", singular_values, 0.5 * 0.9},
		{"full-matrices", tall_matrix, 0.5 * 0.9},
		{"general-eigenvalues", eigenvectors, 0.5 * 16 / 25},
		{"shifted-buffer", buffers, 5 * 0.1 * 0.99},
		{"penalty-in-loss", regularize, 0.7 * 2 * (0.05 + 0.04 + 0.01 + 0.06)},
		{"frozen-part", encode_with_same_parameter, 0.5},
		{"frozen-part", encode_same_samples, 0.5},
		{"columns-picked", batches, 0.4 * 0.75},
		{"unneeded-copy", copies, 0.2},
		{"unneeded-copy", copies_kept, 0.2},
		{"unread-part", diagonal, 0.5 * 0.999},
	};

	(void)state;
	ASSERT_CAUSES(causes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flow_advice_finds_causes),
		cmocka_unit_test(finds_comparisons_that_are_counted_twice),
		cmocka_unit_test(follows_padding_through_layers),
		cmocka_unit_test(finds_expensive_orders_of_products),
		cmocka_unit_test(leaves_explained_time_alone),
		cmocka_unit_test(estimates_new_memory_by_its_pages),
		cmocka_unit_test(counts_calls_that_do_nothing_else),
		cmocka_unit_test(does_not_compare_unknown_indices),
		cmocka_unit_test(finds_matrices_that_are_factored_again), cmocka_unit_test(leaves_out_parts_that_may_differ),
		cmocka_unit_test(finds_normalisations_in_single_operators),
		cmocka_unit_test(names_the_line_of_the_optimizer),
		cmocka_unit_test(finds_samples_that_the_loss_ignores),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
