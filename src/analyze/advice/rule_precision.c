/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products and convolutions in float32 on devices with tensor cores. The name of a kernel shows which units it
 * uses.
 */
#include "analyze/advice/advice.h"

/* Tensor cores do 8 times as many operations a second as float32 units (V100: 125 to 15.7 TFLOP/s; A100 with TF32: 156
 * to 19.5; H100: 495 to 67). Memory is not faster, so products gain about half of that in practice. */
#define SPEEDUP 4.0

enum generation { NO_TENSOR_CORES, HALF_ONLY = 7, TF32 = 8 };

/* Determines the generation by compute capability if the file has it, else by the architecture in names of kernels. */
static enum generation generation_of(const struct advice *advice)
{
	static const char *const ampere[] = {"*ampere_*", "*sm80_*", "*sm90_*", "*cutlass_80_*", NULL};
	static const char *const volta[] = {"volta_*", "*_volta_*", "turing_*", NULL};
	enum generation found = NO_TENSOR_CORES;

	if (advice->views->devices.count) {
		int64_t major = advice->views->devices.items[0].major;

		if (advice->views->devices.items[0].warp_size == 64) /* AMD devices have other generations */
			return NO_TENSOR_CORES;
		return major >= 8 ? TF32 : major == 7 ? HALF_ONLY : NO_TENSOR_CORES;
	}
	for (size_t i = 0; i < ops_trace_string_count(advice->trace) && found != TF32; i++) {
		struct ops_string name = ops_trace_string(advice->trace, (uint32_t)i);

		if (advice_text_like(name, ampere))
			found = TF32;
		else if (advice_text_like(name, volta))
			found = HALF_ONLY;
	}
	return found;
}

/* "f32f32_f32f32_f32": types of A and B, of the product and the sum, and of the output. */
static const char *const names[] = {"*sgemm*", "*scudnn*", "*f32f32_f32f32_f32*", "*gemmSN*", "*fft2d_*", NULL};

static bool rule_precision_find(const struct advice *advice, struct advice_result *result)
{
	enum generation generation = generation_of(advice);

	for (size_t i = 0; generation && i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];
		uint16_t name = advice->views->names[advice->events->name[event->row]];

		if (event->part == VIEW_KERNEL && result->which[advice->events->name[event->row]] && !(name & VIEW_NAME_TENSOR_CORES) &&
		    advice_counts(advice, event->row))
			advice_add(result, advice_launch_row(advice, event), advice_ns(advice, event->row));
	}
	result->detail = generation == TF32
	                 ? "torch.set_float32_matmul_precision(\"high\") allows products to use TF32. bfloat16 is faster still: "
	                   "torch.autocast(\"cuda\", dtype=torch.bfloat16)."
	                 : "The tensor cores of this device support only float16: use torch.autocast(\"cuda\"), with a "
	                   "torch.amp.GradScaler for training.";
	return advice_report_gain(result, (double)result->tally.ns * (1 - 1 / SPEEDUP) * advice_busy_share(advice),
	                          "%s in float32 without tensor cores, in %s.",
	                          advice_events(result, "product or convolution in each step computes", "products and convolutions in each step compute").text,
	                          advice_cost(result).text);
}

const struct advice_rule advice_rule_precision = {
	.id = "float32-matmul",
	.title = "Matrix products use float32 without tensor cores",
	.condition = "Kernels of products or convolutions compute in float32 on a device with tensor cores. Reduced precision "
		     "is a choice, so this rule never reports high severity.",
	.gain = "three quarters of their time, as far as the device is busy",
	.explanation = "Tensor cores multiply matrices several times as fast as float32 units. They require lower precision: "
		       "float16, bfloat16 or TF32.",
	.advice = "Compare the loss before and after. To check: names of kernels contain tf32, tensorop, s16816 or the like.",
	.code = "torch.set_float32_matmul_precision(\"high\")\n"
		"with torch.autocast(\"cuda\", dtype=torch.bfloat16):\n"
		"    loss = model(x)",
	.link = "https://docs.pytorch.org/docs/stable/notes/cuda.html#tf32-on-ampere",
	.needs = ADVICE_NEEDS_DEVICE,
	/* Reduced precision is a choice, so this rule never reports high severity. */
	.severity_max = ADVICE_MEDIUM,
	.stage = ADVICE_STAGE_DEVICE,
	.confidence = ADVICE_LIKELY,
	.names = names,
	.find = rule_precision_find,
};
