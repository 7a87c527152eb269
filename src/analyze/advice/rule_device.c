/* SPDX-License-Identifier: Apache-2.0
 *
 * Accelerators that wait: for the host to launch, for copies from pageable memory.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* An accelerator that is idle for half of a step is bound by what feeds it. */
#define IDLE_MIN_PCT 20.0

/* Kernels shorter than their launch: the call takes a few microseconds. */
#define SHORT_KERNEL_NS 10000

static bool check_idle(struct advice *advice, const struct advice_rule *rule)
{
	struct advice_tally tally;
	uint64_t kernels = 0, small = 0;
	double idle_ns = advice->host_weight * (double)advice->steps_ns;
	bool done = advice_tally_init(&tally, advice);

	for (size_t i = 0; done && i < advice->views.device_events.count; i++) {
		const struct view_device_event *event = &advice->views.device_events.items[i];

		if (event->part != VIEW_KERNEL)
			continue;
		kernels++;
		small += advice_ns(advice, event->row) < SHORT_KERNEL_NS;
		if (event->launch != OPS_NONE)
			advice_tally_add(&tally, advice, advice->views.launches.items[event->launch].row, 1);
	}
	if (done && kernels && small * 2 > kernels && advice_percent(advice, idle_ns) >= IDLE_MIN_PCT)
		done = advice_report_add(advice, rule, &tally,
		                         (struct advice_gain){.ns = idle_ns, .device = true, .confidence = ADVICE_UNSURE},
		                         "the device is idle for %.1f %% of the steps, and %llu of %llu kernels take less than %d us. "
		                         "Gain: at most the idle time.", advice_percent(advice, idle_ns), (unsigned long long)small,
		                         (unsigned long long)kernels, SHORT_KERNEL_NS / 1000);
	advice_tally_release(&tally);
	return done;
}

static bool check_pageable(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"*Pageable*", NULL};
	uint8_t *which = advice_names(advice, patterns);
	struct advice_tally tally = {0};
	bool done = which && advice_tally_init(&tally, advice);

	for (size_t i = 0; done && i < advice->views.device_events.count; i++) {
		const struct view_device_event *event = &advice->views.device_events.items[i];
		uint32_t row = event->row;

		if (event->part == VIEW_COPY && which[advice->events->name[row]] && advice_counts(advice, row))
			advice_tally_add_at(&tally, event->launch == OPS_NONE ? OPS_NONE
			                                : advice->site[advice->views.launches.items[event->launch].row],
			                    row, advice_ns(advice, row));
	}
	done = done && advice_report_add(advice, rule, &tally,
	                                 (struct advice_gain){.ns = (double)tally.ns, .device = true, .confidence = ADVICE_LIKELY},
	                                 "%.1f copies a step from or to pageable memory take %.3f ms. Gain: their time, which pinned "
	                                 "memory lets run beside the computation.", advice_per_step(advice, tally.events),
	                                 advice_step_ms(advice, (double)tally.ns));
	advice_tally_release(&tally);
	ops_free(which);
	return done;
}

const struct advice_rule advice_rule_launch = {
	.id = "launch-bound",
	.title = "The device waits for the host to launch small kernels",
	.explanation = "A launch takes the host microseconds; kernels that are shorter leave the device idle in between.",
	.advice = "torch.compile(mode=\"reduce-overhead\") or CUDA graphs, larger batches, fused optimizers. Check: the device's "
		  "utilization.",
	.link = "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs",
	.needs = ADVICE_NEEDS_DEVICE | ADVICE_NEEDS_OPERATORS,
	.severity_max = ADVICE_HIGH,
	.check = check_idle,
};

const struct advice_rule advice_rule_pageable = {
	.id = "pageable-copies",
	.title = "Copies between host and device use pageable memory",
	.explanation = "The driver first copies to pinned memory of its own, and the call waits for it.",
	.advice = "DataLoader(pin_memory=True) and .to(device, non_blocking=True). Check: copies are named 'Pinned'.",
	.link = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
	.needs = ADVICE_NEEDS_DEVICE,
	.severity_max = ADVICE_HIGH,
	.check = check_pageable,
};
