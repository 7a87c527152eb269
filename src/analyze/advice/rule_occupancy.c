/* SPDX-License-Identifier: Apache-2.0
 *
 * The most expensive kernel, if it has fewer blocks than the device has multiprocessors, so that the remaining ones are
 * idle.
 */
#include <math.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Minimum share of the steps; below it, the occupancy of the kernel does not matter. */
#define SHARE_MIN_PCT 5.0

/* A kernel with fewer calls may be a test. */
#define CALLS_MIN 10

struct kernel_cost {
	int64_t ns;
	int64_t filled_ns; /* time if it filled the device */
};

static const struct view_kernel *arguments_of(const struct advice *advice, const struct view_device_event *event)
{
	if (event->part != VIEW_KERNEL || event->communicates || event->arguments == OPS_NONE ||
	    !advice_counts(advice, event->row))
		return NULL;
	return &advice->views->kernels.items[event->arguments];
}

static uint32_t costliest(const struct advice *advice, struct kernel_cost *costs)
{
	uint32_t most = OPS_NONE;

	for (size_t i = 0; i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];
		const struct view_kernel *kernel = arguments_of(advice, event);
		struct kernel_cost *cost;
		double filled;

		if (!kernel || !(kernel->blocks_per_sm > 0))
			continue;
		cost = &costs[advice->events->name[event->row]];
		filled = kernel->blocks_per_sm < 1 ? kernel->blocks_per_sm : 1;
		cost->ns = ops_sum(cost->ns, advice_ns(advice, event->row));
		cost->filled_ns = ops_sum(cost->filled_ns, (int64_t)(filled * (double)advice_ns(advice, event->row)));
		if (most == OPS_NONE || cost->ns > costs[most].ns)
			most = advice->events->name[event->row];
	}
	return most;
}

static bool rule_occupancy_report(struct advice_result *result, uint32_t name, const struct kernel_cost *cost)
{
	const struct advice *advice = result->advice;
	struct ops_string text = ops_trace_string(advice->trace, name);

	for (size_t i = 0; i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];

		if (arguments_of(advice, event) && advice->events->name[event->row] == name)
			advice_add(result, advice_launch_row(advice, event), advice_ns(advice, event->row));
	}
	return result->tally.events < CALLS_MIN ||
	       advice_report_gain(result, (double)(cost->ns - cost->filled_ns) * advice_busy_share(advice),
	                          "The most expensive kernel, %.*s%s, takes %s of a step in %s, with %s blocks for each "
	                          "multiprocessor.",
	                          (int)(text.size < 80 ? text.size : 80), text.bytes, text.size > 80 ? "…" : "",
	                          advice_spent(advice, (double)cost->ns).text,
	                          advice_events(result, "call", "calls").text,
	                          ops_figure_of_number((double)cost->filled_ns / (double)cost->ns).text);
}

static bool rule_occupancy_find(const struct advice *advice, struct advice_result *result)
{
	struct kernel_cost *costs = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, sizeof(*costs));
	bool done = costs != NULL;
	uint32_t most = done ? costliest(advice, costs) : OPS_NONE;

	if (most != OPS_NONE && advice_percent(advice, (double)costs[most].ns) >= SHARE_MIN_PCT)
		done = rule_occupancy_report(result, most, &costs[most]);
	ops_free(costs);
	return done;
}

const struct advice_rule advice_rule_occupancy = {
	.id = "low-occupancy",
	.title = "The most expensive kernel leaves multiprocessors idle",
	.condition = "The most expensive kernel takes 5 % of the steps or more, in 10 calls or more, with fewer blocks than "
		     "the device has multiprocessors.",
	.gain = "the share of the device that it leaves idle",
	.explanation = "A block runs on one multiprocessor. A kernel with fewer blocks than multiprocessors uses only a part "
		       "of the device, and takes as long as one with a block for each.",
	.advice = "Give it more work at once: larger batches, several small products as one (torch.bmm), or kernels of "
		  "independent streams at the same time. To check: at least 1 block per SM.",
	.link = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/#thread-and-block-heuristics",
	.needs = ADVICE_NEEDS_DEVICE,
	.severity_max = ADVICE_MEDIUM,
	.bound = ADVICE_AT_MOST,
	.stage = ADVICE_STAGE_DEVICE,
	.find = rule_occupancy_find,
};
