/* SPDX-License-Identifier: Apache-2.0
 *
 * Fourier transforms: complex transforms of real signals, large filters that are applied tap by tap, and transforms that are written as
 * convolutions with sines and cosines.
 *
 *     float32 [32, 4096] ──fft──▶ complex64 [32, 4096] ──ifft──▶ real part      rfft and irfft do half of the work
 *     conv1d of [2, 1, 8000] by [1, 1, 4000]: 2 · 8000 · 4000 multiplications    a product of spectra takes a fraction
 *     conv2d of [8, 1, 112, 112] by [1, 1, 11, 11]: 121 multiplications a pixel  a row and a column take 22, if it is their product
 */
#include <math.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"
#include "trace/inputs.h"

/* --- complex transforms of real signals ----------------------------------------------------------------------------- */

#define ELEMENTS_MIN 4096 /* minimum number of elements of a transform */
#define HALF_SAVED 0.5    /* the spectrum of a real signal repeats its first half, conjugated */

enum transform { TRANSFORMS = 1, TRANSFORMS_BACK, READS_REAL_PART, COMPUTES };

struct transforms {
	uint8_t *kind;        /* by string: enum transform */
	bool of_real;         /* real signals are transformed */
	uint64_t count;
	struct ops_input largest;
};

static bool rule_fourier_is_forward(const struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;

	return advice_counts(advice, row) && !advice_is_claimed(result, row) &&
	       !(advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPERATOR));
}

static void add_half(struct transforms *all, struct advice_result *result, uint32_t row, const struct ops_input *input)
{
	result->claimed[row] = 1;
	all->count++;
	if (!all->largest.tag || advice_input_elements(input) > advice_input_elements(&all->largest))
		all->largest = *input;
	advice_add_share(result, row, HALF_SAVED * advice_work_share(result->advice, row));
}

/* Returns the inverse transform whose result a node reads; OPS_NONE: it reads something else. */
static uint32_t transform_before(const struct transforms *all, const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		uint32_t maker = flow->values[flow->uses.items[flow->nodes[node].first + i].value].node;

		if (maker != OPS_NONE && all->kind[advice->events->name[maker]] == TRANSFORMS_BACK)
			return maker;
	}
	return OPS_NONE;
}

static void add_transform(struct transforms *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	uint8_t kind = all->kind[advice->events->name[row]];
	struct ops_input input;
	bool is_real, is_complex;
	uint32_t before;

	if (!kind || !rule_fourier_is_forward(result, row) || !advice_input(advice, row, 0, &input) || advice_input_elements(&input) < ELEMENTS_MIN)
		return;
	is_real = input.dtype == OPS_DTYPE_FLOAT || input.dtype == OPS_DTYPE_DOUBLE;
	is_complex = input.dtype == OPS_DTYPE_COMPLEX_FLOAT || input.dtype == OPS_DTYPE_COMPLEX_DOUBLE;
	all->of_real |= kind == TRANSFORMS && is_real;
	if (kind == TRANSFORMS && is_real)
		add_half(all, result, row, &input);
	else if (kind == COMPUTES && is_complex && all->of_real) /* on the spectra */
		add_half(all, result, row, &input);
	before = kind == READS_REAL_PART && is_complex ? transform_before(all, advice, row) : OPS_NONE;
	if (before != OPS_NONE && rule_fourier_is_forward(result, before))
		add_half(all, result, before, &input);
}

static bool rule_fourier_find_complex(const struct advice *advice, struct advice_result *result)
{
	static const struct advice_named names[] = {
		{"aten::fft_fft", TRANSFORMS}, {"aten::fft_fft2", TRANSFORMS}, {"aten::fft_fftn", TRANSFORMS}, {"aten::fft_ifft", TRANSFORMS_BACK},
		{"aten::fft_ifft2", TRANSFORMS_BACK}, {"aten::fft_ifftn", TRANSFORMS_BACK}, {"aten::real", READS_REAL_PART},
		{"aten::mul", COMPUTES}, {"aten::mul_", COMPUTES}, {"aten::div", COMPUTES}, {0}};
	struct transforms all = {.kind = advice_named_kinds(advice, names)};
	bool done = all.kind != NULL;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_transform(&all, result, row);
	/* Complex signals have no real part to return to, and their transforms nothing to save. */
	done = done && (!all.of_real ||
	                advice_report_costs(result, "%s both halves of the spectra of real signals, of which one follows from "
	                                    "the other. The largest tensor is %s. One half takes %s.",
	                                    advice_counted(advice, all.count, "operator in each step computes", "operators in each step compute").text,
	                                    advice_describe_tensor(&all.largest).text, advice_cost(result).text));
	if (!all.of_real)
		result->claims.count = 0;
	ops_free(all.kind);
	return done;
}

const struct advice_rule advice_rule_complex = {
	.id = "complex-transform",
	.title = "Real signals go through complex Fourier transforms",
	.condition = "torch.fft.fft, fft2 or fftn gets a real tensor of 4096 elements or more. Complex operators after it, and inverse transforms of which only "
		     "the real part is read, count as well.",
	.gain = "half of the time of these operators, forward and backward",
	.explanation = "The spectrum of a real signal is symmetric: one half follows from the other. A complex transform computes, keeps and multiplies both.",
	.advice = "Use torch.fft.rfft and torch.fft.irfft (rfft2, rfftn), which transform and return real signals and keep one half of the spectrum. Pass "
		  "n= to irfft if the length is odd. To check: the last size of spectra is half as large.",
	.code = "spectrum = torch.fft.rfft(signal, n=2 * length)\n"
		"filtered = torch.fft.irfft(spectrum * response, n=2 * length)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.fft.rfft.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_LIKELY,
	.find = rule_fourier_find_complex,
};

/* --- large filters --------------------------------------------------------------------------------------------------- */

#define TAPS_MIN 128      /* minimum number of elements of a filter in space or time */
#define SLOWER 4.0        /* a transform reaches a fraction of the FLOPs per second of a convolution */
#define SAVED_MIN 0.3     /* minimum part that the transforms save */

/* Two passes, with a row and a column, take this over the size of the filter as a share of one pass. Multiplications alone would be 2. A
 * pass of a few taps is slower for each tap: measured in torch 2.13 on one thread of a CPU, with filters of 7 to 31 taps a side and images of
 * 48 to 512 pixels a side. The result of another pass also requires memory, which is mapped page by page if it is large. */
#define PASSES_OF_CHANNEL 3.6
#define PASSES_OF_CHANNELS 7.0
#define PASSES_OF_LARGE 9.0
#define LARGE_BYTES (4 << 20)

struct filters {
	struct ops_map learned; /* storages of parameters, and of weights whose gradient is computed */
	uint8_t *layers;        /* by string: a function of a layer of torch, whose weight is a parameter */
	uint64_t separable;     /* number of filters for which two passes would save more than Fourier transforms */
	uint64_t unsure;        /* number of those for which Fourier transforms save too little */
	double taps;
	uint64_t count;
};

/* Returns the FLOPs of the same convolution by Fourier transforms of real signals: of each input channel, each filter and each output
 * channel, and products of the spectra; 0: unknown. */
static double flops_of_transforms(const struct ops_input *input, const struct ops_input *weight)
{
	size_t dimensions = weight->n - 2u, first = input->n - dimensions;
	double points = 1, batch = input->n == weight->n ? (double)ops_input_int(input, 0) : 1;
	double inputs = (double)ops_input_int(input, first - 1), outputs = (double)ops_input_int(weight, 0), filters;

	for (size_t i = 0; i < dimensions; i++)
		points *= (double)ops_input_int(input, first + i) + (double)ops_input_int(weight, 2 + i);
	filters = outputs * (double)ops_input_int(weight, 1);
	if (!(points > 1) || !(inputs > 0) || !(filters > 0) || !(batch > 0))
		return 0;
	return 2.5 * points * log2(points) * (batch * (inputs + outputs) + filters) + 4 * points * batch * filters;
}

/* Returns the part of a convolution that Fourier transforms save; 0: none, or unknown. */
static double saved_by_transforms(const struct advice *advice, uint32_t row, const struct ops_input *input, const struct ops_input *weight, double taps)
{
	double transforms = flops_of_transforms(input, weight);

	if (taps < TAPS_MIN || transforms <= 0 || advice->demands[row].flops <= 0)
		return 0;
	return 1 - SLOWER * transforms / (double)advice->demands[row].flops;
}

/* Returns whether a backward pass of a convolution computes the gradient of its weight. Its output mask has one item for each of input,
 * weight and bias. */
static bool computes_gradient_of_weight(const struct advice *advice, uint32_t row)
{
	enum { OUTPUT_MASK = 10, WEIGHT = 1 };
	struct ops_input mask, item;

	if (!advice_input(advice, row, OUTPUT_MASK, &mask) || mask.tag != OPS_INPUT_SCALAR_LIST)
		return true;
	return !ops_inputs_at(ops_input_items(&mask), WEIGHT, &item) || item.tag != OPS_INPUT_BOOL || item.n;
}

static bool find_learned(struct filters *all, const struct advice *advice)
{
	enum { WEIGHT = 2 };
	static const char *const backward_names[] = {"aten::convolution_backward", NULL};
	uint8_t *backward = advice_names(advice, backward_names);
	size_t count;
	const struct ops_role_record *roles = ops_trace_roles(advice->trace, &count);
	struct ops_storage storage;
	bool done = backward != NULL;

	for (size_t i = 0; done && i < count; i++)
		done = roles[i].storage.role != OPS_ROLE_PARAMETER || ops_map_add(&all->learned, roles[i].storage.address, 1);
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (backward[advice->events->name[row]] && computes_gradient_of_weight(advice, row) && ops_event_storage(advice->trace, row, WEIGHT, &storage))
			done = ops_map_add(&all->learned, storage.address, 1);
	ops_free(backward);
	return done;
}

/* Returns whether the weight of a convolution without a bias is known not to be learned. */
static bool is_constant_filter(const struct filters *all, const struct advice *advice, uint32_t row)
{
	struct ops_storage storage;
	struct ops_input bias;

	if (!(advice->has & ADVICE_NEEDS_PYTHON) || !advice_input(advice, row, 2, &bias) || ops_input_is_tensor(bias.tag) ||
	    !ops_event_storage(advice->trace, row, 1, &storage) || ops_map_find(&all->learned, storage.address) != OPS_NONE)
		return false;
	for (uint32_t around = advice->events->parent[row]; around != OPS_NONE; around = advice->events->parent[around])
		if (all->layers[advice->events->name[around]])
			return false;
	return true;
}

/* Returns the part of a convolution that two passes would save if its filter were the product of a row and a column; 0: none, unknown, or
 * the weight may be learned. */
static double saved_by_passes(const struct filters *all, const struct advice *advice, uint32_t row, const struct ops_input *input,
                              const struct ops_input *weight)
{
	int64_t channels = ops_input_int(weight, 0);
	struct ops_input dilation;
	double inverse = 0, passes;

	/* Each channel has one filter. What a device saves was not measured. */
	if (weight->n != 4 || ops_input_int(weight, 1) != 1 || ops_input_int(input, input->n - 3u) != channels || advice->device_ns[row] > 0 ||
	    !advice_input(advice, row, 5, &dilation) || dilation.tag != OPS_INPUT_INT_LIST)
		return 0;
	for (size_t i = 2; i < 4; i++)
		inverse += ops_input_int(weight, i) > 0 ? 0.5 / (double)ops_input_int(weight, i) : 1;
	for (size_t i = 0; i < dilation.n; i++)
		if (ops_input_int(&dilation, i) != 1)
			return 0;
	passes = advice_input_bytes(input) >= LARGE_BYTES ? PASSES_OF_LARGE : channels > 1 ? PASSES_OF_CHANNELS : PASSES_OF_CHANNEL;
	return passes * inverse < 1 - SAVED_MIN && is_constant_filter(all, advice, row) ? 1 - passes * inverse : 0;
}

static void add_filter(struct filters *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct ops_input input, weight, stride;
	double taps = 1, by_transforms, by_passes, share;

	if (!result->which[advice->events->name[row]] || !rule_fourier_is_forward(result, row) || !advice_input(advice, row, 0, &input) ||
	    !advice_input(advice, row, 1, &weight) || !ops_input_is_tensor(input.tag) || !ops_input_is_tensor(weight.tag) || weight.n < 3 ||
	    (input.n != weight.n && input.n + 1 != weight.n) || !advice_input(advice, row, 3, &stride))
		return;
	for (size_t i = 2; i < weight.n; i++)
		taps *= (double)ops_input_int(&weight, i);
	for (size_t i = 0; stride.tag == OPS_INPUT_INT_LIST && i < stride.n; i++)
		if (ops_input_int(&stride, i) != 1)
			return; /* computes only some of the positions */
	by_transforms = saved_by_transforms(advice, row, &input, &weight, taps);
	by_passes = saved_by_passes(all, advice, row, &input, &weight);
	share = by_passes > by_transforms ? by_passes : by_transforms;
	if (share < SAVED_MIN)
		return;
	result->claimed[row] = 1;
	all->count++;
	all->separable += by_passes > by_transforms;
	all->unsure += by_transforms < SAVED_MIN;
	all->taps = taps > all->taps ? taps : all->taps;
	advice_add_share(result, row, share * advice_work_share(advice, row));
}

static bool rule_fourier_find_filters(const struct advice *advice, struct advice_result *result)
{
	static const char *const layers[] = {"*torch/nn/modules/conv.py(*", NULL};
	struct filters all = {.layers = advice_names(advice, layers)};
	bool done = all.layers && find_learned(&all, advice);

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		add_filter(&all, result, row);
	/* The values of the filters are unknown. */
	if (all.separable)
		result->bound = ADVICE_AT_MOST;
	if (all.unsure && all.unsure == all.count)
		result->confidence = ADVICE_UNSURE;
	done = done && advice_report_costs(result, "%s filters of up to %s elements, each of which is multiplied at each position. %s %s.",
	                                   advice_counted(advice, all.count, "convolution in each step has", "convolutions in each step have").text,
	                                   ops_figure_of_number(round(all.taps)).text,
	                                   !all.separable              ? "A product of Fourier transforms saves"
	                                   : all.separable < all.count ? "Products of Fourier transforms, and two passes by filters that are outer products, save"
	                                                               : "If they are outer products, two passes with a column and a row save",
	                                   advice_cost(result).text);
	ops_map_release(&all.learned);
	ops_free(all.layers);
	return done;
}

const struct advice_rule advice_rule_filters = {
	.id = "long-convolution",
	.title = "Large filters are applied tap by tap",
	.condition = "A convolution with stride 1 has filters of 128 elements or more for each channel, and Fourier transforms would take at most two thirds of "
		     "its time, if they reach a quarter of its FLOPs per second. Or conv2d on the CPU has one filter for each channel, no bias, and a weight that "
		     "is not learned, and two passes with a column and a row would take at most seven tenths: no gradient of the weight is computed, it is not a "
		     "parameter, and no layer of torch makes the call. Whether the filter is an outer product is not recorded.",
	.gain = "the time beyond four times the FLOPs of Fourier transforms, by the shapes, or that beyond two passes, forward and backward. Two passes with filters of "
		"n by n elements take 3.6 / n of the time with one channel, 7 / n with several, and 9 / n with inputs of 4 MiB or more",
	.explanation = "The work of a convolution grows with the length of the signal times the length of the filter. By Fourier transforms it grows with "
		       "the logarithm of the length. A filter of n by n elements takes n * n multiplications for each pixel, its column and its row 2 * n.",
	.advice = "If a filter in two dimensions is an outer product, such as a Gaussian, a box or a bicubic kernel, convolve with its row and then with its "
		  "column. Otherwise multiply the "
		  "spectra (torch.fft.rfft, a product, torch.fft.irfft), or use torchaudio.functional.fftconvolve. conv1d does not flip its "
		  "filter: use the conjugate of its spectrum. Results differ by rounding. To check: the time at the line.",
	.code = "blurred = F.conv2d(F.conv2d(images, row[None, None, None]), row[None, None, :, None])  # an outer product\n"
		"n = signal.shape[-1] + taps.shape[-1] - 1\n"
		"filtered = torch.fft.irfft(torch.fft.rfft(signal, n=n) * torch.fft.rfft(taps, n=n), n=n)",
	.link = "https://docs.pytorch.org/audio/stable/generated/torchaudio.functional.fftconvolve.html",
	.names = (const char *const[]){"aten::conv1d", "aten::conv2d", "aten::conv3d", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_LIKELY,
	.find = rule_fourier_find_filters,
};

/* --- transforms as convolutions -------------------------------------------------------------------------------------- */

struct bases {
	int64_t length, filters; /* of the largest basis */
	uint64_t count;
};

/* Returns the length of the transform whose sines and cosines a weight may be; 0: it is another filter. A window may be shorter than
 * the transform, whose length is a power of two then. */
static int64_t length_of_transform(const struct ops_input *weight)
{
	int64_t filters = ops_input_int(weight, 0), taps = ops_input_int(weight, 2);

	if (taps < TAPS_MIN || ops_input_int(weight, 1) != 1)
		return 0;
	/* n / 2 + 1 frequencies, with real and imaginary parts in two weights or in one */
	for (int64_t parts = 1; parts <= 2; parts++) {
		int64_t length = 2 * (filters / parts - 1);

		if (filters % parts == 0 && (length == taps || (length > taps && length < 2 * taps && (length & (length - 1)) == 0)))
			return length;
	}
	return 0;
}

static void add_basis(struct bases *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct ops_input input, weight, stride;
	int64_t length;
	double direct, share;

	if (!result->which[advice->events->name[row]] || !rule_fourier_is_forward(result, row) || !advice_input(advice, row, 0, &input) ||
	    !advice_input(advice, row, 1, &weight) || !ops_input_is_tensor(input.tag) || !ops_input_is_tensor(weight.tag) || weight.n != 3 ||
	    !advice_input(advice, row, 3, &stride))
		return;
	if (stride.tag != OPS_INPUT_INT_LIST || stride.n != 1 || ops_input_int(&stride, 0) < 2)
		return; /* frames overlap, but do not start at each sample */
	length = length_of_transform(&weight);
	if (!length)
		return;
	direct = 2 * (double)ops_input_int(&weight, 0) * (double)ops_input_int(&weight, 2);
	share = 1 - 2 * SLOWER * 2.5 * (double)length * log2((double)length) / direct;
	if (share < SAVED_MIN)
		return;
	result->claimed[row] = 1;
	all->count++;
	if (length > all->length) {
		all->length = length;
		all->filters = ops_input_int(&weight, 0);
	}
	advice_add_share(result, row, share * advice_work_share(advice, row));
}

static bool rule_fourier_find_bases(const struct advice *advice, struct advice_result *result)
{
	struct bases all = {.count = 0};

	for (uint32_t row = 0; row < advice->events->count; row++)
		add_basis(&all, result, row);
	return advice_report_costs(result, "%s frames by the sines and cosines of Fourier transforms of length %lld: %lld filters. Fast "
	                                   "transforms of the frames save %s.",
	                           advice_counted(advice, all.count, "convolution in each step multiplies", "convolutions in each step multiply").text,
	                           (long long)all.length, (long long)all.filters, advice_cost(result).text);
}

const struct advice_rule advice_rule_bases = {
	.id = "transform-by-convolution",
	.title = "A Fourier transform is computed by a convolution",
	.condition = "A convolution in one dimension with a stride has one input channel and n / 2 + 1 filters, or twice as many, of n elements (128 or more): "
		     "the sines and cosines of a transform of length n. Filters may be shorter than n if n is a power of two.",
	.gain = "the time beyond eight times the FLOPs of fast Fourier transforms of the frames, by the shapes, forward and backward",
	.explanation = "A convolution multiplies each frame by each sine and cosine: n * n multiplications. A fast Fourier transform takes n * log(n).",
	.advice = "Use torch.stft with the same window, hop_length and center=False, or frames.unfold(-1, n, hop) and torch.fft.rfft. If the filters are "
		  "learned, ignore this. Results differ by rounding. To check: the time at the line.",
	.code = "spectrum = torch.stft(signal, n, hop, window=window, center=False, return_complex=True)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.stft.html",
	.names = (const char *const[]){"aten::conv1d", "aten::conv_transpose1d", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES,
	.stage = ADVICE_STAGE_FORMULAS,
	.confidence = ADVICE_LIKELY,
	.find = rule_fourier_find_bases,
};
