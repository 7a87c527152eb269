/* SPDX-License-Identifier: Apache-2.0
 *
 * An accelerator that runs dry between two kernels because the host comes too late with the next, and yet does nothing but
 * call operators: each call takes longer than the kernel that it launches.
 */
#include "analyze/advice/advice.h"

/* A gap or two of this kind are at the edge of something else. */
#define GAPS_MIN 20

/* Kernels of a graph start one after the other in about this time. */
#define GRAPH_NS 1500

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	const struct ops_views *views = &advice->views;
	struct advice_tally tally;
	int64_t gain_ns = 0, kernel_ns = 0;
	uint64_t kernels = 0;
	bool done = advice_tally_init(&tally, advice);

	for (size_t i = 0; done && i < advice->idle.gaps.count; i++) {
		const struct advice_gap *gap = &advice->idle.gaps.items[i];

		if (gap->cause != ADVICE_IDLE_LAUNCH)
			continue;
		advice_tally_add(&tally, advice, advice_launch_row(advice, &views->device_events.items[gap->event]), gap->ns);
		gain_ns = ops_sum(gain_ns, gap->ns > GRAPH_NS ? gap->ns - GRAPH_NS : 0);
	}
	for (size_t i = 0; i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];

		if (event->part != VIEW_KERNEL || event->communicates || !advice_counts(advice, event->row))
			continue;
		kernels++;
		kernel_ns = ops_sum(kernel_ns, advice_ns(advice, event->row));
	}
	if (done && tally.events >= GAPS_MIN)
		/* To record Python calls slows the host down, and so widens the gaps. */
		done = advice_report_add(advice, rule, &tally,
		                         (struct advice_gain){.ns = (double)gain_ns, .device = true,
		                                              .confidence = advice->has & ADVICE_NEEDS_PYTHON ? ADVICE_UNSURE
		                                                                                            : ADVICE_LIKELY},
		                         "%.0f times a step the device is done before the host has launched what comes next, and "
		                         "waits %.3f ms (%.1f %%) for that in all. A kernel takes %.1f us on the average of %.0f a "
		                         "step. Gain: the gaps, less %.1f us each that a CUDA graph leaves.",
		                         advice_per_step(advice, tally.events), advice_step_ms(advice, (double)tally.ns),
		                         advice_percent(advice, (double)tally.ns),
		                         kernels ? (double)kernel_ns / 1000 / (double)kernels : 0,
		                         advice_per_step(advice, kernels), GRAPH_NS / 1000.0);
	advice_tally_release(&tally);
	return done;
}

const struct advice_rule advice_rule_launch = {
	.id = "launch-bound",
	.title = "The device waits for the host to launch kernels",
	.explanation = "To call an operator and launch its kernel takes the host some ten microseconds. Kernels that are shorter "
		       "leave the device idle in between, whatever its speed.",
	.advice = "Launch all at once: torch.compile(model, mode=\"reduce-overhead\") records CUDA graphs. Or give each kernel "
		  "more to do: larger batches, torch.optim.AdamW(…, fused=True). Check: the device's utilization.",
	.link = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs",
	.needs = ADVICE_NEEDS_DEVICE | ADVICE_NEEDS_OPERATORS,
	.severity_max = ADVICE_HIGH,
	.check = check,
};
