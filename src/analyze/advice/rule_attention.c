/* SPDX-License-Identifier: Apache-2.0
 *
 * Attention written as separate operators: a product, softmax over its last dimension, and a second product. Everything
 * between the products passes through memory several times, over a matrix of the squared sequence length.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

/* Maximum number of operators between softmax and a product: scale, mask, dropout, casts, and views. */
#define REACH 16

/* A multiprocessor computes 16 exponentials per clock (compute capability 7.0 to 10.0; compute units of CDNA at least
 * as many), and runs at 1.5 GHz or more under load. */
#define EXPONENTIALS_PER_NS (16 * 1.5)
/* Upper bound on the exponentials' share of a softmax kernel if sizes or the device are unknown. The rest reads and
 * writes the scores (a quarter on an H100 with 2-byte scores, less where memory is slower or the scores are larger). */
#define EXPONENTIALS_MAX 0.25

struct attention {
	OPS_ARRAY(uint32_t) rows; /* outermost operators of a forward pass, in order */
	uint8_t *product, *softmax;
	uint64_t found;
	uint64_t by_formula; /* number of those in scaled_dot_product_attention */
	double kept_ns; /* time of the operators between the products */
	double bytes;   /* bytes of scores that the products write */
};

/* Matches scaled_dot_product_attention without a fused kernel on an accelerator, which calls the separate operators of
 * attention. */
static bool is_formula(const struct advice *advice, uint32_t row)
{
	return row != OPS_NONE && advice->device_ns[row] > 0 &&
	       ops_string_is(advice_name(advice, row), "aten::_scaled_dot_product_attention_math");
}

static bool rule_attention_gather(struct attention *attention, const struct advice *advice)
{
	static const char *const products[] = {"aten::matmul", "aten::bmm", "aten::einsum", "aten::baddbmm", NULL};
	static const char *const softmaxes[] = {"aten::softmax", "aten::_softmax", NULL};

	attention->product = advice_names(advice, products);
	attention->softmax = advice_names(advice, softmaxes);
	if (!attention->product || !attention->softmax)
		return false;
	for (uint32_t row = 0; row < advice->events->count; row++) {
		if (!advice_is_operator(advice, row) || !advice_counts(advice, row) ||
		    (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_OPTIMIZER)) ||
		    ((advice->zone[row] & ADVICE_IN_OPERATOR) && !is_formula(advice, advice->events->parent[row])))
			continue;
		if (!OPS_ARRAY_APPEND(&attention->rows, row))
			return false;
	}
	return true;
}

/* Returns the position of the nearest product in a direction, or `at` itself. */
static size_t product_near(const struct attention *attention, const struct advice *advice, size_t at, int direction)
{
	size_t place = at;

	for (int i = 0; i < REACH && place + (size_t)direction < attention->rows.count; i++) {
		place += (size_t)direction;
		if (attention->product[advice->events->name[attention->rows.items[place]]])
			return place;
	}
	return at;
}

/* Returns true if the input of softmax has the shape of the first input of the second product. */
static bool rule_attention_fits(const struct advice *advice, uint32_t softmax, uint32_t second)
{
	struct ops_input scores, weights;

	if (!advice_input(advice, softmax, 0, &scores) || !advice_input(advice, second, 0, &weights))
		return true; /* no shapes: this order of operators is attention */
	if (weights.tag != OPS_INPUT_TENSOR || scores.tag != OPS_INPUT_TENSOR || scores.n < 3)
		return weights.tag != OPS_INPUT_TENSOR; /* the inputs of einsum do not show the shapes */
	return advice_input_elements(&scores) == advice_input_elements(&weights) &&
	       ops_input_int(&scores, (size_t)scores.n - 1) == ops_input_int(&weights, (size_t)weights.n - 1);
}

/* Returns the bytes that the first product writes, and in the backward pass the second one. The fused operator keeps
 * neither in memory. */
static double score_bytes(const struct advice *advice, uint32_t softmax)
{
	uint8_t dtype = 0;
	int64_t elements = advice_elements(advice, softmax, &dtype);

	return elements > 0 ? (double)elements * (double)advice_dtype_bytes(dtype) * (advice->backward_ns[softmax] > 0 ? 2 : 1) : 0;
}

static int64_t sm_count(const struct advice *advice)
{
	int64_t most = 0;

	for (size_t i = 0; i < advice->views->devices.count; i++)
		most = advice->views->devices.items[i].sm_count > most ? advice->views->devices.items[i].sm_count : most;
	return most;
}

/* Returns the minimum time of the fused operator beyond the two products, which it also computes: exponentials and
 * their sums. On the CPU this is the time of softmax. On a device the softmax kernel is limited by memory; if
 * everything is one kernel, memory holds no scores and only arithmetic remains. The backward pass computes the
 * exponentials again. On a device it also computes the scores again. On the CPU the products save as much, since they
 * neither write nor read back data of that size. */
static double kept_ns(const struct advice *advice, uint32_t softmax, uint32_t first)
{
	double passes = advice->backward_ns[softmax] > 0 ? 2 : 1, left_ns = (double)advice_left_ns(advice, softmax);
	double device_ns = (double)advice->device_ns[softmax], ns;
	int64_t sms = sm_count(advice), elements;
	uint8_t dtype;

	if (device_ns <= 0)
		return left_ns;
	elements = advice_elements(advice, softmax, &dtype);
	ns = sms > 0 && elements > 0 ? (double)elements / (EXPONENTIALS_PER_NS * (double)sms) : EXPONENTIALS_MAX * device_ns;
	ns = ns < device_ns ? ns : device_ns;
	ns = (ns < left_ns ? ns : left_ns) * passes;
	return passes > 1 ? ns + (double)advice->device_ns[first] : ns;
}

static void select_rows(struct attention *attention, const struct advice *advice, struct advice_result *result)
{
	for (size_t i = 0; i < attention->rows.count; i++) {
		uint32_t row = attention->rows.items[i];
		size_t first, second;
		double kept;

		if (!attention->softmax[advice->events->name[row]])
			continue;
		first = product_near(attention, advice, i, -1);
		second = product_near(attention, advice, i, 1);
		if (first == i || second == i || !rule_attention_fits(advice, row, attention->rows.items[second]))
			continue;
		kept = kept_ns(advice, row, attention->rows.items[first]);
		attention->by_formula += is_formula(advice, advice->events->parent[row]);
		attention->bytes += score_bytes(advice, row);
		attention->found++;
		for (size_t k = first + 1; k < second; k++) {
			uint32_t between = attention->rows.items[k];

			if (!advice_is_claimed(result, between))
				advice_add(result, between, advice_claim(result, between));
		}
		attention->kept_ns += kept;
	}
}

static bool rule_attention_find(const struct advice *advice, struct advice_result *result)
{
	struct attention attention = {0};
	double faults_ns = 0, between_ns;
	char faults[96] = "";
	bool done = rule_attention_gather(&attention, advice);

	if (done)
		select_rows(&attention, advice, result);
	between_ns = (double)result->tally.ns;
	faults_ns = attention.bytes * advice->fault_ns;
	if (faults_ns > 0)
		snprintf(faults, sizeof(faults), "; page faults on the scores take %s", advice_time(advice_step_ms(advice, faults_ns)).text);
	if (attention.by_formula)
		result->detail = "No fused kernel supports this call of scaled_dot_product_attention. Pass float16 or bfloat16, "
		                 "a mask without gradient (or is_causal=True), and tensors with equal head sizes; "
		                 "torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION) warns why a kernel cannot be used.";
	done = done && advice_report_gain(result, between_ns - attention.kept_ns + faults_ns,
	                                  "Each step computes a softmax between two matrix products %s. Scaling, masking, "
	                                  "softmax and dropout in between take %s, of which the fused operator also requires "
	                                  "%s%s.",
	                                  advice_counted(advice, attention.found, "time", "times").text,
	                                  advice_spent(advice, between_ns).text,
	                                  advice_time(advice_step_ms(advice, attention.kept_ns)).text, faults);
	OPS_ARRAY_RELEASE(&attention.rows);
	ops_free(attention.product);
	ops_free(attention.softmax);
	return done;
}

const struct advice_rule advice_rule_attention = {
	.id = "unfused-attention",
	.title = "Attention is not fused",
	.condition = "A softmax lies between two matrix products. On a device, scaled_dot_product_attention without a fused "
		     "kernel counts as well. The fused operator requires softmax itself on the CPU. On a GPU it requires the "
		     "exponentials, 16 a clock and multiprocessor (a quarter of softmax if sizes or the device are unknown), "
		     "twice with a backward pass, which also computes the scores again.",
	.gain = "that time, forward and backward, and page faults on the scores, less what the fused operator requires",
	.explanation = "Scores, scaled scores, masked scores, weights and dropped-out weights are matrices of the sequence "
		       "length squared. Each is written to memory and kept for the backward pass.",
	.advice = "Use torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=…, dropout_p=…). To check: no "
		  "aten::softmax between two aten::matmul.",
	.code = "out = torch.nn.functional.scaled_dot_product_attention(\n"
		"    q, k, v, attn_mask=mask)  # True: attend; a causal mask: is_causal=True",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
	.needs = ADVICE_NEEDS_OPERATORS,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_LIKELY,
	.find = rule_attention_find,
};
