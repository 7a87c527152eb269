/* SPDX-License-Identifier: Apache-2.0
 *
 * Buffers of which the oldest rows are dropped and new ones appended by copying all the others.
 *
 *     rows [100000, 8] ──[32:]──┐
 *     new  [32, 8] ─────────────┴──cat──▶ rows [100000, 8], again in the next step
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define BYTES_MIN (64 << 10) /* minimum bytes of a buffer that matters */
#define KEPT_MIN 0.75        /* minimum part that is only moved */
#define LINKS_MIN 4          /* minimum number of calls that counts as a loop */

/* Returns the node that made the memory of a value, before others wrote to it; OPS_NONE: no operator. */
static uint32_t first_maker(const struct data_flow *flow, uint32_t value)
{
	while (flow->memory.values.items[value].previous != OPS_NONE)
		value = flow->memory.values.items[value].previous;
	return flow->values[value].node;
}

/* Returns the part of its result that a node moves from the result of an earlier call at its line; 0: none. */
static double moved_part(const struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	const struct data_flow *flow = advice->flow;
	const struct data_node *node = &flow->nodes[row];
	int64_t made;

	if (!result->which[advice->events->name[row]] || !node->made_count || advice->site[row] == OPS_NONE ||
	    (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)))
		return 0;
	made = data_flow_made_bytes(flow, row);
	for (uint32_t i = 0; made >= BYTES_MIN && i < node->count; i++) {
		const struct data_use *use = &flow->uses.items[node->first + i];
		uint32_t maker = use->kind == DATA_READS ? first_maker(flow, use->value) : OPS_NONE;

		if (maker != OPS_NONE && maker != row && advice->events->name[maker] == advice->events->name[row] && advice->site[maker] == advice->site[row] &&
		    data_flow_made_bytes(flow, maker) == made && (double)use->bytes >= KEPT_MIN * (double)made)
			return (double)use->bytes / (double)made;
	}
	return 0;
}

static bool rule_shifted_find(const struct advice *advice, struct advice_result *result)
{
	double *parts = ops_alloc_zeroed(advice->events->count + 1, sizeof(*parts)); /* by row */
	uint32_t *links = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*links));
	bool done = parts && links;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		parts[row] = moved_part(result, row);
		if (parts[row] > 0)
			links[advice->site[row]]++;
	}
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (parts[row] > 0 && links[advice->site[row]] >= LINKS_MIN && advice_counts(advice, row) && !advice_is_claimed(result, row))
			advice_add_share(result, row, parts[row] * advice_work_share(advice, row));
	ops_free(parts);
	ops_free(links);
	return done &&
	       advice_report_costs(result, "%s a buffer to drop its oldest rows and append others. Moving the rest takes %s.",
	                           advice_events(result, "operator in each step copies", "operators in each step copy").text, advice_cost(result).text);
}

const struct advice_rule advice_rule_shifted = {
	.id = "shifted-buffer",
	.title = "A buffer is copied to replace its oldest rows",
	.condition = "At one line, aten::cat or roll makes a tensor of at least 64 kB of which at least 75 % come from the result of its previous call, of the "
		     "same size, four times or more.",
	.gain = "the share of the rows that only move",
	.explanation = "Each call copies all rows to add a few: the time grows with the size of the buffer.",
	.advice = "Write the new rows over the oldest ones, at an index that starts again at the end, as replay buffers and caches do. Random samples need no "
		  "order. Where the order matters, keep a buffer of twice the size, and copy the rows to its beginning when it is full. To check: no aten::cat at the line.",
	.code = "buffer[at : at + n] = rows  # in place of buffer = torch.cat((buffer[n:], rows))\n"
		"at = (at + n) % len(buffer)",
	.link = "https://docs.pytorch.org/tutorials/intermediate/reinforcement_q_learning.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_COPIES,
	.confidence = ADVICE_LIKELY,
	.names = (const char *const[]){"aten::cat", "aten::roll", NULL},
	.find = rule_shifted_find,
};
