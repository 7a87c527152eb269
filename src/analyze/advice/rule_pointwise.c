/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementwise kernels that follow each other on a stream over as many elements: each reads from memory what the one before
 * has just written there. Fused, they take about as long as the slowest of them.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* The kernels that a stream ran last, as long as they are elementwise and of one size. */
struct chain {
	uint32_t grid;
	uint64_t length;
	int64_t ns;
	int64_t longest_ns;
	uint32_t row; /* of the launch of the last */
};

struct pointwise {
	struct chain *chains; /* by track */
	struct advice_tally tally;
	uint64_t kernels;
	int64_t ns;
};

static void end_chain(struct pointwise *pointwise, const struct advice *advice, struct chain *chain)
{
	if (chain->length > 1) {
		advice_tally_add(&pointwise->tally, advice, chain->row, chain->ns - chain->longest_ns);
		pointwise->kernels += chain->length;
		pointwise->ns = ops_sum(pointwise->ns, chain->ns);
	}
	*chain = (struct chain){0};
}

static void add(struct pointwise *pointwise, const struct advice *advice, const struct view_device_event *event,
                bool elementwise)
{
	struct chain *chain = &pointwise->chains[advice->events->track[event->row]];
	uint32_t grid = event->arguments == OPS_NONE ? OPS_NONE : advice->views.kernels.items[event->arguments].grid;
	uint32_t row = advice_launch_row(advice, event);
	int64_t ns = advice_ns(advice, event->row);

	/* Parameters of an optimizer are tensors of their own, and have a rule. */
	elementwise = elementwise && grid != OPS_NONE && advice_counts(advice, event->row) &&
	              !(advice->zone[row] & ADVICE_IN_OPTIMIZER);
	if (!elementwise || grid != chain->grid)
		end_chain(pointwise, advice, chain);
	if (!elementwise)
		return;
	chain->grid = grid;
	chain->row = row;
	chain->length++;
	chain->ns = ops_sum(chain->ns, ns);
	chain->longest_ns = ns > chain->longest_ns ? ns : chain->longest_ns;
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"*elementwise_kernel*", NULL};
	uint8_t *which = advice_names(advice, patterns);
	struct pointwise pointwise = {0};
	size_t tracks;
	bool done;

	ops_trace_tracks(advice->trace, &tracks);
	pointwise.chains = ops_alloc_zeroed(tracks + 1, sizeof(*pointwise.chains));
	done = which && pointwise.chains && advice_tally_init(&pointwise.tally, advice);
	for (size_t i = 0; done && i < advice->views.device_events.count; i++)
		add(&pointwise, advice, &advice->views.device_events.items[i],
		    which[advice->events->name[advice->views.device_events.items[i].row]]);
	for (size_t i = 0; done && i < tracks; i++)
		end_chain(&pointwise, advice, &pointwise.chains[i]);
	done = done && advice_report_add(advice, rule, &pointwise.tally,
	                                 (struct advice_gain){.ns = (double)pointwise.tally.ns * advice_busy_share(advice),
	                                                      .confidence = ADVICE_UNSURE},
	                                 "%s elementwise kernels a step, %.3f ms (%.1f %%), directly follow one of the same size. "
	                                 "Gain: all but the longest of each row of them, as far as the device is busy.",
	                                 advice_average(advice, pointwise.kernels).text,
	                                 advice_step_ms(advice, (double)pointwise.ns),
	                                 advice_percent(advice, (double)pointwise.ns));
	advice_tally_release(&pointwise.tally);
	ops_free(pointwise.chains);
	ops_free(which);
	return done;
}

const struct advice_rule advice_rule_pointwise = {
	.id = "unfused-pointwise",
	.title = "Elementwise kernels run one after the other",
	.explanation = "An elementwise kernel computes next to nothing: it takes the time to read its inputs from memory and to write "
		       "its output. Several in a row read back what has just been written.",
	.advice = "model = torch.compile(model) makes one kernel of them; so do fused operators (torch.addcmul, "
		  "nn.functional.gelu in place of its formula). Check: fewer kernels named elementwise_kernel.",
	.code = "model = torch.compile(model)",
	.link = "https://docs.pytorch.org/docs/stable/torch.compiler.html",
	.needs = ADVICE_NEEDS_DEVICE,
	.severity_max = ADVICE_HIGH,
	.check = check,
};
