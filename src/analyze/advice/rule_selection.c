/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators in a row of whose results a later operator selects a small part, such as a crop after filters, or the last token after
 * several layers. The part of each result that is needed follows from the data flow (advice_need.c).
 */
#include "analyze/advice/advice.h"

#include <opstrobe/internal/format.h>
#include "base/alloc.h"
#include "base/text.h"

#define BYTES_MIN (64 << 10) /* minimum bytes of results that matter */
#define PART_MAX 0.5         /* maximum part of a result that is needed; less is the border of a convolution */
#define CHAIN_SHARE_MIN 0.25 /* minimum share of the time that is not of operators whose results are selected from: those belong to
                              * the rule on parts that are not read */

struct late_selection {
	struct advice_part_needed *needs;
	int64_t made;       /* bytes of results */
	double needed;      /* the part of them that is needed */
	int64_t before_ns;  /* time of operators whose results other operators read completely */
	int64_t longest_ns;
	uint32_t longest;   /* operator with the highest cost; OPS_NONE: none */
};

/* Returns true if the program selects from a result of the node itself. */
static bool is_selected_directly(const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;

	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++)
		if (data_flow_is_selected_from(flow, flow->made.items[flow->nodes[node].first_made + i]))
			return true;
	return false;
}

static void add_late_selection(struct late_selection *all, struct advice_result *result, uint32_t node)
{
	const struct advice *advice = result->advice;
	const struct advice_part_needed *need = &all->needs[node];
	int64_t made = data_flow_made_bytes(advice->flow, node), ns;

	if (!need->is_proportional || need->share > PART_MAX || need->selection == OPS_NONE || made < BYTES_MIN || !advice_counts(advice, node) ||
	    (advice->zone[node] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)) || !data_flow_read_bytes(advice->flow, node) ||
	    advice_is_claimed(result, node) || advice_left_ns(advice, node) < advice_ns(advice, node)) /* another rule has a part of it */
		return;
	ns = advice_claim_share(result, node, (1 - need->share) * advice_work_share(advice, node));
	advice_add_calls(result, node, ns);
	all->made = ops_sum(all->made, made);
	all->needed += need->share * (double)made;
	all->before_ns = ops_sum(all->before_ns, is_selected_directly(advice, node) ? 0 : ns);
	if (ns > all->longest_ns) {
		all->longest_ns = ns;
		all->longest = node;
	}
}

static bool report_late_selection(const struct late_selection *all, struct advice_result *result, double gain_ns)
{
	const struct advice *advice = result->advice;
	char place[256];

	if (all->longest == OPS_NONE || (double)all->before_ns < CHAIN_SHARE_MIN * gain_ns)
		return true;
	advice_format_line(advice, all->needs[all->longest].selection, place, sizeof(place));
	return advice_report_gain(result, gain_ns,
	                          "Operators in each step make results of %s, of which the selection%s%s leaves %s. The most costly is %s with a result of "
	                          "%s. What is thrown away takes %s.",
	                          advice_bytes(advice_per_step(advice, (uint64_t)all->made)).text, *place ? " at " : "", place,
	                          ops_figure_of_percent(100 * all->needed / (double)all->made).text, advice_name(advice, all->longest).bytes,
	                          advice_bytes((double)data_flow_made_bytes(advice->flow, all->longest)).text, advice_spent(advice, gain_ns).text);
}

static bool rule_selection_find(const struct advice *advice, struct advice_result *result)
{
	struct late_selection all = {.needs = advice_needs_of(advice), .longest = OPS_NONE};
	double gain_ns = 0;
	bool done = all.needs != NULL;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (advice->flow->nodes[row].made_count)
			add_late_selection(&all, result, row);
	for (size_t i = 0; done && i < result->claims.count; i++)
		gain_ns += (double)ops_sum(result->claims.items[i].ns, result->claims.items[i].backward_ns);
	if (done && (all.longest == OPS_NONE || (double)all.before_ns < CHAIN_SHARE_MIN * gain_ns))
		result->claims.count = 0;
	done = done && report_late_selection(&all, result, gain_ns);
	ops_free(all.needs);
	return done;
}

const struct advice_rule advice_rule_selection = {
	.id = "late-selection",
	.title = "Operators compute what a later one throws away",
	.condition = "Of the results of operators in a row, later ones need at most half, because a slice or an index selects a part. The part is followed "
		     "back through elementwise operators, convolutions, pooling, and through linear layers, normalisations and reductions over dimensions in "
		     "which nothing is selected.",
	.gain = "the part of their time for elements that nothing needs, forward and backward",
	.explanation = "Each operator computes all elements, and what follows reads few of them.",
	.advice = "Select first: crop, slice or index the input, and apply the operators to that part. A convolution needs a border of half its width "
		  "around it. To check: smaller shapes at the lines.",
	.code = "image = smooth(brighten(crop(image)))  # in place of crop(smooth(brighten(image)))",
	.link = "https://docs.pytorch.org/vision/stable/transforms.html#performance-considerations",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_REPEATED, /* after the rule on parts that are not read */
	.confidence = ADVICE_LIKELY,
	.find = rule_selection_find,
};
