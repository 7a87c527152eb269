/* SPDX-License-Identifier: Apache-2.0
 *
 * An idle device, with all causes. Most causes have a separate rule, which predicts the gain of its share. This rule
 * reports the rest: other work of the host.
 */
#include <stdio.h>
#include <string.h>

#include <opstrobe/internal/format.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Minimum idle share of the steps that is reported regardless of the cause. */
#define IDLE_MIN_PCT 20.0

/* A trace with little work is some test rather than a program that should keep a device busy, unless the device is idle
 * almost all the time, for longer than a test takes. */
#define EVENTS_MIN 20
#define MOSTLY_IDLE_PCT 90.0
#define MOSTLY_IDLE_NS 1000000

/* Formats "9.1 % while the host loads data, …", without shares close to zero. */
static void describe_causes(const struct advice *advice, char *text, size_t size)
{
	static const char *const causes[] = {
		[ADVICE_IDLE_LOADER] = "while the host loads data",
		[ADVICE_IDLE_SYNC] = "in and after calls that wait for the device",
		[ADVICE_IDLE_UPLOAD] = "after copies that the host waits for",
		[ADVICE_IDLE_LOAD] = "while a call loads code",
		[ADVICE_IDLE_WAIT] = "while the host waits for a lock, another thread or process, or sleeps",
		[ADVICE_IDLE_LAUNCH] = "while the host launches kernels",
		[ADVICE_IDLE_HOST] = "during other work of the host",
		[ADVICE_IDLE_DEVICE] = "between kernels launched in time",
		[ADVICE_IDLE_END] = "before work of unknown origin",
	};
	size_t used = 0;

	text[0] = '\0';
	for (int cause = 0; cause < ADVICE_IDLE_CAUSES && used < size; cause++) {
		double pct = advice_percent(advice, (double)advice->idle.ns[cause]);

		if (pct >= 0.1)
			used += (size_t)snprintf(text + used, size - used, "%s%s %s", used ? ", " : "", ops_figure_of_percent(pct).text, causes[cause]);
	}
}

struct explained {
	int64_t *ns;      /* by row: the rest of the self time that other rules claim */
	uint32_t *around; /* by row: a row around it; rows between the two have nothing left */
};

/* Returns the innermost row that is or contains a row and has something left. Shortens the way up, so that no row is passed often. */
static uint32_t explained_around(const struct explained *explained, uint32_t row)
{
	while (row != OPS_NONE && explained->ns[row] <= 0) {
		uint32_t around = explained->around[row];

		if (around != OPS_NONE && explained->ns[around] <= 0)
			explained->around[row] = explained->around[around];
		row = around;
	}
	return row;
}

/* Returns the part of a gap that no other rule claims, neither for the row that runs in it, nor for the self time of
 * the functions around it. */
static int64_t left_of(const struct advice *advice, const struct advice_gap *gap, const struct explained *explained)
{
	int64_t left_ns = gap->ns;

	if (advice->claimed[gap->row])
		return 0;
	for (uint32_t row = gap->row; left_ns > 0;) {
		int64_t ns;

		row = explained_around(explained, row);
		if (row == OPS_NONE)
			break;
		ns = explained->ns[row] < left_ns ? explained->ns[row] : left_ns;
		left_ns -= ns;
		explained->ns[row] -= ns;
	}
	return left_ns;
}

static bool rule_idle_report(const struct advice *advice, struct advice_result *result)
{
	const struct advice_idle *idle = &advice->idle;
	double idle_pct = advice_percent(advice, (double)idle->all_ns);
	bool mostly = idle_pct >= MOSTLY_IDLE_PCT && idle->all_ns >= MOSTLY_IDLE_NS;
	char causes[768];

	if (!mostly && (idle_pct < IDLE_MIN_PCT || advice->views->device_events.count < EVENTS_MIN))
		return true;
	describe_causes(advice, causes, sizeof(causes));
	result->always = true;
	result->severity = mostly ? ADVICE_MEDIUM : ADVICE_INFO;
	return advice_report_costs(result, "The device is idle for %s of the steps: %s.",
	                           ops_figure_of_percent(idle_pct).text, causes);
}

static bool rule_idle_find(const struct advice *advice, struct advice_result *result)
{
	const struct advice_idle *idle = &advice->idle;
	const size_t rows = advice->events->count;
	struct explained explained = {.ns = ops_realloc_array(NULL, rows + 1, sizeof(*explained.ns)),
	                              .around = ops_realloc_array(NULL, rows + 1, sizeof(*explained.around))};
	bool done = explained.ns && explained.around;

	if (done) {
		memcpy(explained.ns, advice->self_claimed_ns, rows * sizeof(*explained.ns));
		memcpy(explained.around, advice->events->parent, rows * sizeof(*explained.around));
	}
	for (size_t i = 0; done && i < idle->gaps.count; i++) {
		const struct advice_gap *gap = &idle->gaps.items[i];

		if (gap->cause == ADVICE_IDLE_HOST && gap->row != OPS_NONE)
			advice_add(result, gap->row, left_of(advice, gap, &explained));
		else if (gap->cause == ADVICE_IDLE_HOST)
			result->tally.ns = ops_sum(result->tally.ns, gap->ns);
	}
	done = done && rule_idle_report(advice, result);
	ops_free(explained.ns);
	ops_free(explained.around);
	return done;
}

const struct advice_rule advice_rule_idle = {
	.id = "device-idle",
	.title = "The device is idle",
	.condition = "The device is idle for 20 % of the steps or more; in a trace with fewer than 20 kernels and copies, for "
		     "90 % or more. The evidence lists all causes.",
	.gain = "the idle time during other work of the host, except for what other findings explain; the other causes have "
		"separate rules",
	.explanation = "A device computes while the host prepares the next work, as long as its queue holds some. When the "
		       "queue is empty, it waits for the host.",
	.advice = "Move the work of the host at these places out of the step, to the device, or to another process. To check: "
		  "the utilization of the device.",
	.link = "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
	.needs = ADVICE_NEEDS_DEVICE,
	.bound = ADVICE_AT_MOST,
	.stage = ADVICE_STAGE_REST,
	.find = rule_idle_find,
};
