/* SPDX-License-Identifier: Apache-2.0
 *
 * Assignments to slices of a tensor that needs gradients. In the backward pass, each copies the gradient of the whole tensor, to set
 * the slice to zero.
 *
 *     states[:, t] = state   for 100 values of t: 100 copies of the gradient of states, and 100 small ones of that of state
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

#define ASSIGNMENTS_MIN 4 /* minimum number in a step; a few are cheaper than a loop that collects parts */

/* The engine's range of such a node. */
static const char *const names[] = {"*evaluate_function: *CopySlices", NULL};

/* Returns true for an outermost operator of the forward pass that changes a tensor in place. */
static bool assigns(const struct advice *advice, uint32_t row)
{
	return advice_is_operator(advice, row) && advice_counts(advice, row) && ops_string_ends(advice_name(advice, row), "_") &&
	       !(advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD | ADVICE_IN_OPTIMIZER | ADVICE_IN_LOADER));
}

/* Nodes of the backward pass do not show which assignment made them, so the place is the line with the most assignments, if not more
 * than there are nodes. Returns a row there, or OPS_NONE. Returns false if out of memory. */
static bool find_assignment(const struct advice *advice, uint64_t nodes, uint32_t *ret_row)
{
	uint64_t *counts = ops_alloc_zeroed(advice->sites.count + 1, sizeof(*counts)), most = 0;

	*ret_row = OPS_NONE;
	for (uint32_t row = 0; counts && row < advice->events->count; row++)
		counts[advice->site[row] == OPS_NONE ? advice->sites.count : advice->site[row]] += assigns(advice, row);
	for (uint32_t row = 0; counts && row < advice->events->count; row++) {
		uint64_t count = advice->site[row] == OPS_NONE ? 0 : counts[advice->site[row]];

		if (count <= nodes && count > most && assigns(advice, row)) {
			most = count;
			*ret_row = row;
		}
	}
	ops_free(counts);
	return counts != NULL;
}

static bool rule_slices_find(const struct advice *advice, struct advice_result *result)
{
	struct advice_tally places = {0};
	uint32_t assignment;
	bool done;

	for (uint32_t row = 0; row < advice->events->count; row++)
		if (result->which[advice->events->name[row]] && advice_counts(advice, row) && !advice_is_claimed(result, row))
			advice_add(result, row, advice_claim(result, row));
	if (advice_per_step(advice, result->tally.events) < ASSIGNMENTS_MIN) {
		result->claims.count = 0;
		return true;
	}
	done = find_assignment(advice, result->tally.events, &assignment) && advice_tally_init(&places, advice);
	if (done && assignment != OPS_NONE)
		advice_tally_add(&places, assignment, result->tally.ns);
	done = done && advice_report_at(result, assignment == OPS_NONE ? &result->tally : &places, (double)result->tally.ns,
	                                "%s in autograd's graph. The backward pass copies the gradient of "
	                                "the whole tensor for each, which takes %s.", advice_events(result, "assignment to slices of tensors in each step is", "assignments to slices of tensors in each step are").text,
	                                advice_cost(result).text);
	advice_tally_release(&places);
	return done;
}

const struct advice_rule advice_rule_slices = {
	.id = "slice-assignments",
	.title = "Each assignment to a slice copies the gradient of the whole tensor",
	.condition = "The backward pass of a step runs CopySlices four times or more.",
	.gain = "the time of CopySlices",
	.explanation = "An assignment to a slice changes a tensor in place. Its backward pass copies the gradient of the tensor, sets the part of the slice to zero, and "
		       "passes that part on. In a loop over all slices, this takes time with the square of their number.",
	.advice = "Collect the parts in a list, and join them once with torch.stack or torch.cat, whose backward pass only makes views. To check: no CopySlices in a "
		  "step.",
	.code = "states = []\n"
		"for x in inputs.unbind(1):\n"
		"    states.append(cell(x))\n"
		"states = torch.stack(states, dim=1)",
	.link = "https://docs.pytorch.org/docs/stable/notes/autograd.html#in-place-operations-with-autograd",
	.needs = ADVICE_NEEDS_OPERATORS,
	.stage = ADVICE_STAGE_CALLS,
	.confidence = ADVICE_SURE,
	.names = names,
	.find = rule_slices_find,
};
