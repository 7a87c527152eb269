/* SPDX-License-Identifier: Apache-2.0
 *
 * An idle device, with all causes. Most causes have a separate rule, which predicts the gain of its share. This rule
 * reports the rest: other work of the host.
 */
#include <math.h>
#include <stdio.h>

#include <opstrobe/internal/format.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_rest.h"
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

/* Claims what other rules leave of the idle time in each row. */
static void claim_host_work(const struct advice *advice, struct advice_result *result, const double *part)
{
	for (size_t i = 0; i < result->costs.count; i++) {
		uint32_t row = result->costs.items[i].row;
		int64_t own_ns = advice->self_ns[row] - advice->self_claimed_ns[row];
		int64_t ns = (int64_t)(part[row] * (double)(result->costs.items[i].ns < own_ns ? result->costs.items[i].ns : own_ns));

		if (ns <= 0)
			continue;
		advice_claim_self(result, row, ns);
		advice_add_at(result, advice_self_site(advice, row), row, ns);
	}
}

/* Finds the part of each row that other rules leave. */
static void find_left(const struct advice *advice, int64_t *claimed_ns, double *left_ns, double *part)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		claimed_ns[row] = advice->row_claimed_ns[row] - advice->self_claimed_ns[row];
		left_ns[row] = fmax(0, (double)(advice->self_ns[row] - advice->self_claimed_ns[row]));
	}
	advice_find_parts(advice, claimed_ns, advice->claimed, left_ns, part);
}

static bool rule_idle_find(const struct advice *advice, struct advice_result *result)
{
	size_t count = advice->events->count + 1;
	int64_t *claimed_ns = ops_alloc_zeroed(count, sizeof(*claimed_ns));
	double *left_ns = ops_alloc_zeroed(count, sizeof(*left_ns)), *part = ops_alloc_zeroed(count, sizeof(*part));
	bool done = claimed_ns && left_ns && part && advice_spread_idle(result, ADVICE_IDLE_HOST, 1);

	if (done) {
		find_left(advice, claimed_ns, left_ns, part);
		claim_host_work(advice, result, part);
		result->tally.ns = ops_sum(result->tally.ns, result->outside_ns);
		done = rule_idle_report(advice, result);
	}
	ops_free(claimed_ns);
	ops_free(left_ns);
	ops_free(part);
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
