/* SPDX-License-Identifier: Apache-2.0
 *
 * A device that runs out of work between kernels because the host launches the next one too late, although the host
 * only calls operators: each call takes longer than the kernel that it launches.
 */
#include "analyze/advice/advice.h"
#include "analyze/format.h"
#include "base/alloc.h"

/* With fewer gaps, they have another cause. */
#define GAPS_MIN 20

/* Time between two kernels of a CUDA graph. */
#define GRAPH_NS 1500

struct launches {
	int64_t *by_step; /* by step: time that a graph would save */
	int64_t kernel_ns;
	uint64_t kernels;
};

static void add_gaps(struct launches *launches, const struct advice *advice, struct advice_result *result)
{
	for (size_t i = 0; i < advice->idle.gaps.count; i++) {
		const struct advice_gap *gap = &advice->idle.gaps.items[i];
		const struct view_device_event *event;
		uint32_t step;

		if (gap->cause != ADVICE_IDLE_LAUNCH)
			continue;
		event = &advice->views->device_events.items[gap->event];
		step = advice->step_of[event->row];
		advice_tally_add(&result->tally, advice_launch_row(advice, event), gap->ns);
		if (step != OPS_NONE && gap->ns > GRAPH_NS)
			launches->by_step[step] = ops_sum(launches->by_step[step], gap->ns - GRAPH_NS);
	}
}

static void rule_launch_add_kernels(struct launches *launches, const struct advice *advice)
{
	for (size_t i = 0; i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];

		if (event->part != VIEW_KERNEL || event->communicates || !advice_counts(advice, event->row))
			continue;
		launches->kernels++;
		launches->kernel_ns = ops_sum(launches->kernel_ns, advice_ns(advice, event->row));
	}
}

static bool rule_launch_report(struct advice_result *result, const struct launches *launches)
{
	const struct advice *advice = result->advice;

	/* Recording Python calls slows the host down, which widens the gaps. */
	result->confidence = advice->has & ADVICE_NEEDS_PYTHON ? ADVICE_UNSURE : ADVICE_LIKELY;
	return advice_report_gain(result, advice_typical_ns(advice, launches->by_step),
	                          "%s in each step the device finishes before the host has launched the next work, and "
	                          "waits %s in total. Each step runs %s of %s on average. A CUDA graph "
	                          "reduces each gap to %s.",
	                          advice_events(result, "time", "times").text,
	                          advice_cost(result).text,
	                          advice_counted(advice, launches->kernels, "kernel", "kernels").text,
	                          advice_time(launches->kernels ? (double)launches->kernel_ns / 1e6 / (double)launches->kernels : 0).text, advice_time(GRAPH_NS / 1e6).text);
}

static bool rule_launch_find(const struct advice *advice, struct advice_result *result)
{
	struct launches launches = {.by_step = ops_alloc_zeroed(advice->views->steps.count + 1, sizeof(*launches.by_step))};
	bool done = launches.by_step != NULL;

	if (done) {
		add_gaps(&launches, advice, result);
		rule_launch_add_kernels(&launches, advice);
		done = result->tally.events < GAPS_MIN || (advice_spread_idle(result, ADVICE_IDLE_LAUNCH, 1) && rule_launch_report(result, &launches));
	}
	ops_free(launches.by_step);
	return done;
}

const struct advice_rule advice_rule_launch = {
	.id = "launch-bound",
	.title = "The device waits for the host to launch kernels",
	.condition = "The device is idle 20 times or more while the host calls operators on its way to the next launch. "
		     "Confidence is low if Python calls were recorded, which slows the host down.",
	.gain = "the gaps of the median step, less the 1.5 µs each that a CUDA graph leaves",
	.explanation = "Calling an operator and launching its kernel takes the host some ten microseconds. Shorter kernels "
		       "leave the device idle in between, however fast it is.",
	.advice = "Launch all at once: torch.compile(model, mode=\"reduce-overhead\") records CUDA graphs. Or give each kernel "
		  "more work: larger batches, torch.optim.AdamW(…, fused=True). To check: the utilization of the device.",
	.code = "model = torch.compile(model, mode=\"reduce-overhead\")",
	.link = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs",
	.needs = ADVICE_NEEDS_DEVICE | ADVICE_NEEDS_OPERATORS,
	.stage = ADVICE_STAGE_DEVICE,
	.confidence = ADVICE_LIKELY,
	.find = rule_launch_find,
};
