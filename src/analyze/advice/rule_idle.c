/* SPDX-License-Identifier: Apache-2.0
 *
 * An accelerator that is idle, with all causes side by side. Most have a rule of their own, which predicts what their share
 * is worth; what is left for this one is the host that does something else.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"

/* An accelerator that is idle for a fifth of the steps is worth a word whatever the cause. */
#define IDLE_MIN_PCT 20.0

/* A few pieces of work are a test of something, and no program that should keep a device busy; unless the device does next to
 * nothing for longer than a test takes. */
#define EVENTS_MIN 20
#define MOSTLY_IDLE_PCT 90.0
#define MOSTLY_IDLE_NS 1000000

/* "9.1 % while the host loads data, …", without what is next to nothing. */
static void describe_causes(const struct advice *advice, char *text, size_t size)
{
	static const char *const causes[] = {
		[ADVICE_IDLE_LOADER] = "while the host loads data",
		[ADVICE_IDLE_SYNC] = "after calls that wait for the device",
		[ADVICE_IDLE_UPLOAD] = "after copies that the host waits for",
		[ADVICE_IDLE_LAUNCH] = "while the host launches",
		[ADVICE_IDLE_HOST] = "while the host does something else",
		[ADVICE_IDLE_DEVICE] = "between kernels that were launched in time",
		[ADVICE_IDLE_END] = "with nothing known behind",
	};
	size_t used = 0;

	text[0] = '\0';
	for (int cause = 0; cause < ADVICE_IDLE_CAUSES && used < size; cause++) {
		double pct = advice_percent(advice, (double)advice->idle.ns[cause]);

		if (pct >= 0.1)
			used += (size_t)snprintf(text + used, size - used, "%s%.1f %% %s", used ? ", " : "", pct, causes[cause]);
	}
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	const struct advice_idle *idle = &advice->idle;
	struct advice_tally tally;
	double idle_pct = advice_percent(advice, (double)idle->all_ns);
	bool mostly = idle_pct >= MOSTLY_IDLE_PCT && idle->all_ns >= MOSTLY_IDLE_NS;
	char causes[512];
	bool done = advice_tally_init(&tally, advice);

	for (size_t i = 0; done && i < idle->gaps.count; i++) {
		const struct advice_gap *gap = &idle->gaps.items[i];

		if (gap->cause == ADVICE_IDLE_HOST && gap->row != OPS_NONE)
			advice_tally_add(&tally, advice, gap->row, gap->ns);
	}
	if (done && (mostly || (idle_pct >= IDLE_MIN_PCT && advice->views.device_events.count >= EVENTS_MIN))) {
		describe_causes(advice, causes, sizeof(causes));
		done = advice_report_add(advice, rule, &tally,
		                         (struct advice_gain){.ns = (double)idle->ns[ADVICE_IDLE_HOST],
		                                              .confidence = ADVICE_UNSURE, .always = true,
		                                              .severity = mostly ? ADVICE_MEDIUM : ADVICE_INFO},
		                         "the device is idle for %.1f %% of the steps: %s. Gain: the time in which the host does "
		                         "something else; the other causes have rules of their own.", idle_pct, causes);
	}
	advice_tally_release(&tally);
	return done;
}

const struct advice_rule advice_rule_idle = {
	.id = "device-idle",
	.title = "The device is idle",
	.explanation = "An accelerator computes while the host prepares what comes next, as long as something is queued. Where its "
		       "queue runs dry, it waits for the host.",
	.advice = "Take what the host does at the places named out of the step, or do it on the device or in another process. "
		  "Check: the device's utilization.",
	.link = "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
	.needs = ADVICE_NEEDS_DEVICE,
	.severity_max = ADVICE_HIGH,
	.bound = ADVICE_AT_MOST,
	.check = check,
};
