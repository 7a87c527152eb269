/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies between host and device that do not overlap with kernels. For copies from pageable memory the host waits, for
 * copies from pinned memory the stream does.
 */
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* The driver sends smaller copies with the call, from any memory. Reads of values have a separate rule. */
#define BYTES_MIN 65536

struct copies {
	struct ops_intervals compute;
	int64_t exposed_ns;
	int64_t stalled_ns; /* idle time after the host's wait for a copy */
	int64_t bytes;
	OPS_ARRAY(uint32_t) rows; /* rows of the copies and their calls */
};

static bool collect_compute(struct copies *copies, const struct advice *advice)
{
	for (size_t i = 0; i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];

		if (event->part == VIEW_KERNEL && !event->communicates &&
		    !ops_intervals_merge(&copies->compute, advice->events->start_ns[event->row], advice->events->end_ns[event->row]))
			return false;
	}
	return true;
}

/* Returns -1 if unknown. */
static int64_t rule_copies_bytes_of(const struct advice *advice, uint32_t row)
{
	struct ops_string json;

	return ops_event_arg(advice->trace, row, "bytes", &json) ? strtoll(json.bytes, NULL, 10) : -1;
}

/* Adds the time of copies in the steps in which no kernel and no earlier copy runs. */
static void add_copies(struct copies *copies, const struct advice *advice, struct advice_result *result)
{
	size_t cursor = 0;
	int64_t copied_ns = INT64_MIN; /* end of the copies so far */

	for (size_t i = 0; i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];
		uint32_t row = event->row;
		int64_t start_ns = advice->events->start_ns[row], end_ns = advice->events->end_ns[row], bytes, step_ns, alone_ns;

		if (event->part != VIEW_COPY || !result->which[advice->events->name[row]] || !advice_counts(advice, row))
			continue;
		bytes = rule_copies_bytes_of(advice, row);
		if (bytes >= 0 && bytes < BYTES_MIN)
			continue;
		step_ns = advice->views->steps.items[advice->step_of[row]].start_ns;
		start_ns = start_ns < copied_ns ? copied_ns : start_ns;
		start_ns = start_ns < step_ns ? step_ns : start_ns;
		alone_ns = start_ns < end_ns ? ops_difference(end_ns, start_ns) - ops_intervals_within(&copies->compute, start_ns, end_ns,
		                                                                                    &cursor) : 0;
		copied_ns = end_ns > copied_ns ? end_ns : copied_ns;
		copies->exposed_ns = ops_sum(copies->exposed_ns, alone_ns);
		copies->bytes = ops_sum(copies->bytes, bytes > 0 ? bytes : 0);
		advice_add(result, advice_launch_row(advice, event), alone_ns);
		if (alone_ns <= 0)
			continue;
		copies->rows.items[copies->rows.count++] = row;
		copies->rows.items[copies->rows.count++] = advice_launch_row(advice, event);
	}
}

static bool add_stalls(struct copies *copies, const struct advice *advice, struct advice_result *result)
{
	for (size_t i = 0; i < advice->idle.gaps.count; i++) {
		const struct advice_gap *gap = &advice->idle.gaps.items[i];

		if (gap->cause == ADVICE_IDLE_UPLOAD) {
			copies->stalled_ns = ops_sum(copies->stalled_ns, advice_idle_saved_ns(advice, gap));
			advice_tally_add(&result->tally, gap->row, advice_idle_saved_ns(advice, gap));
		}
	}
	return advice_spread_idle(result, ADVICE_IDLE_UPLOAD, 1);
}

static bool rule_copies_find(const struct advice *advice, struct advice_result *result, bool pageable)
{
	struct copies copies = {0};
	double gain_ns;
	uint64_t count;
	bool done = collect_compute(&copies, advice) && OPS_ARRAY_RESERVE(&copies.rows, 2 * advice->views->device_events.count + 1);

	if (done) {
		add_copies(&copies, advice, result);
		count = result->tally.events;
		if (count && pageable)
			done = add_stalls(&copies, advice, result);
		gain_ns = (double)result->tally.ns;
		done = done && (!count || advice_replay_gain(advice, ADVICE_OVERLAPPED, copies.rows.items, copies.rows.count, &gain_ns));
		done = done && advice_report_gain(result, gain_ns,
		                           "%s between the device and memory of the host that is %s, %s in total, of which "
		                           "%s without a kernel. The device is idle for %s because the host waits for copies.",
		                           advice_counted(advice, count, "copy in each step", "copies in each step").text,
		                           pageable ? "pageable" : "pinned",
		                           advice_bytes(advice_per_step(advice, (uint64_t)copies.bytes)).text,
		                           advice_spent(advice, (double)copies.exposed_ns).text,
		                           advice_time(advice_step_ms(advice, (double)copies.stalled_ns)).text);
	}
	ops_intervals_release(&copies.compute);
	OPS_ARRAY_RELEASE(&copies.rows);
	return done;
}

static bool find_pageable(const struct advice *advice, struct advice_result *result)
{
	return rule_copies_find(advice, result, true);
}

static bool find_pinned(const struct advice *advice, struct advice_result *result)
{
	return rule_copies_find(advice, result, false);
}

const struct advice_rule advice_rule_pageable = {
	.id = "pageable-copies",
	.title = "Copies between host and device use pageable memory",
	.condition = "Copies of 64 kB or more between pageable memory and the device run while no kernel does.",
	.gain = "what a replay of the steps saves if nothing waits for the copies",
	.explanation = "The driver first copies to its own pinned memory, and the call returns afterwards. The host launches "
		       "nothing meanwhile, and the queue of the device runs empty.",
	.advice = "Use DataLoader(…, pin_memory=True), and batch = batch.to(device, non_blocking=True). To check: copies are "
		       "named 'Pinned', and overlap with kernels.",
	.code = "loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)\n"
		"batch = batch.to(device, non_blocking=True)",
	.link = "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
	.needs = ADVICE_NEEDS_DEVICE,
	.stage = ADVICE_STAGE_DEVICE,
	.confidence = ADVICE_LIKELY,
	.names = (const char *const[]){"*Pageable*", NULL},
	.find = find_pageable,
};

const struct advice_rule advice_rule_copies = {
	.id = "copies-not-overlapped",
	.title = "Copies between host and device do not overlap with kernels",
	.condition = "Copies of 64 kB or more between pinned memory and the device run while no kernel does.",
	.gain = "what a replay of the steps saves if nothing waits for the copies",
	.explanation = "A stream runs one task at a time. A copy on the compute stream delays the kernels, although the device "
		       "has separate engines for copies.",
	.advice = "Copy the next batch ahead of time, on a separate stream. To check: copies overlap with kernels.",
	.code = "with torch.cuda.stream(copying):\n"
		"    following = batch.to(device, non_blocking=True)\n"
		"torch.cuda.current_stream().wait_stream(copying)  # before it is used",
	.link = "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers",
	.needs = ADVICE_NEEDS_DEVICE,
	.bound = ADVICE_AT_MOST,
	.stage = ADVICE_STAGE_DEVICE,
	.names = (const char *const[]){"*Pinned -> Device*", "*Device -> Pinned*", NULL},
	.find = find_pinned,
};
