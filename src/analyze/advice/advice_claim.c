/* SPDX-License-Identifier: Apache-2.0
 *
 * Attribution: decides which rule gets time that several rules claim.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/order.h"

int64_t advice_left_ns(const struct advice *advice, uint32_t row)
{
	int64_t ns = ops_difference(advice_ns(advice, row), advice->claimed_ns[row]);

	return ns > 0 ? ns : 0;
}

int64_t advice_backward_left_ns(const struct advice *advice, uint32_t row)
{
	int64_t ns = ops_difference(advice->backward_ns[row], advice->backward_claimed_ns[row]);

	return ns > 0 ? ns : 0;
}

/* Does not write where nothing is claimed, so those pages take no memory. */
static void copy_times(int64_t *to, const int64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (to[i] != from[i])
			to[i] = from[i];
}

/* Adds times to those of the rows around. */
static void add_to_parents(int64_t *ns, const uint32_t *parents, size_t count)
{
	for (uint32_t row = (uint32_t)count; row-- > 0;)
		if (ns[row] && parents[row] != OPS_NONE)
			ns[parents[row]] = ops_sum(ns[parents[row]], ns[row]);
}

/* Propagates claims down, since a row comes after its parent, and sums up. */
static void advice_claim_sum_up(struct advice *advice)
{
	const uint32_t *parents = advice->events->parent;
	size_t count = advice->events->count;

	copy_times(advice->claimed_ns, advice->row_claimed_ns, count);
	copy_times(advice->backward_claimed_ns, advice->backward_row_claimed_ns, count);
	for (uint32_t row = 0; row < count; row++)
		if (parents[row] != OPS_NONE && advice->claimed[parents[row]])
			advice->claimed[row] = 1;
	add_to_parents(advice->claimed_ns, parents, count);
	add_to_parents(advice->backward_claimed_ns, parents, count);
}

/* Limits a claim to the time that other results of the stage leave. Returns the rest of it. */
static int64_t apply(struct advice *advice, struct advice_claim *claim)
{
	uint32_t row = claim->row;
	int64_t ns = 0, backward_ns = 0, lost_ns;

	if (!advice->claimed[row]) {
		ns = advice_left_ns(advice, row);
		ns = claim->self || (!claim->rest && claim->ns < ns) ? claim->ns : ns;
		backward_ns = advice_backward_left_ns(advice, row);
		backward_ns = !claim->rest && claim->backward_ns < backward_ns ? claim->backward_ns : backward_ns;
	}
	advice->row_claimed_ns[row] = ops_sum(advice->row_claimed_ns[row], ns);
	if (backward_ns)
		advice->backward_row_claimed_ns[row] = ops_sum(advice->backward_row_claimed_ns[row], backward_ns);
	if (claim->self)
		advice->self_claimed_ns[row] = ops_sum(advice->self_claimed_ns[row], ns);
	if (claim->whole)
		advice->claimed[row] = 1;
	lost_ns = claim->rest ? 0 : ops_sum(claim->ns - ns, claim->backward_ns - backward_ns);
	claim->ns = ns;
	claim->backward_ns = backward_ns;
	return lost_ns;
}

/* Returns the time that other results of the stage have already claimed. */
static int64_t advice_claim_attribute(struct advice *advice, struct advice_result *result)
{
	int64_t lost_ns = 0;
	size_t rests = 0;

	for (size_t i = 0; i < result->claims.count; i++) {
		rests += result->claims.items[i].rest;
		lost_ns = ops_sum(lost_ns, result->claims.items[i].rest ? 0 : apply(advice, &result->claims.items[i]));
	}
	if (result->claims.count)
		advice_claim_sum_up(advice);
	for (size_t i = 0; rests && i < result->claims.count; i++)
		if (result->claims.items[i].rest)
			apply(advice, &result->claims.items[i]);
	if (rests)
		advice_claim_sum_up(advice);
	return lost_ns;
}

/* A step with more than this multiple of the median is an outlier: another program had the processor, or displaced the
 * caches. */
#define ACCIDENT 3

/* Steps without claims count as well. */
static double noise_of(const int64_t *by_step, size_t used, size_t steps, double sum_ns, double most_ns)
{
	double mean_ns = steps ? sum_ns / (double)steps : 0, squares = (double)(steps - used) * mean_ns * mean_ns;

	for (size_t i = 0; i < used; i++) {
		double apart_ns = ((double)by_step[i] < most_ns ? (double)by_step[i] : most_ns) - mean_ns;

		squares += apart_ns * apart_ns;
	}
	return steps > 1 && mean_ns > 0 ? sqrt(squares / (double)(steps - 1) / (double)steps) / mean_ns : 0;
}

bool advice_find_spread(const struct advice_result *result, struct advice_spread *ret_spread)
{
	const struct advice *advice = result->advice;
	size_t steps = advice->views->steps.count, used = 0;
	int64_t *by_step = ops_alloc_zeroed(steps + 1, sizeof(*by_step));
	double all_ns = 0, usual_ns = 0, most_ns;

	if (!by_step)
		return false;
	for (size_t i = 0; i < result->claims.count; i++) {
		const struct advice_claim *claim = &result->claims.items[i];
		uint32_t step = advice->step_of[claim->row];

		if (step != OPS_NONE && !claim->rest)
			by_step[step] = ops_sum(by_step[step], ops_sum(claim->ns, claim->backward_ns));
	}
	for (size_t i = 0; i < steps; i++)
		if (by_step[i] > 0)
			by_step[used++] = by_step[i];
	most_ns = ACCIDENT * (double)ops_sort_to_middle(by_step, used);
	for (size_t i = 0; i < used; i++) {
		all_ns += (double)by_step[i];
		usual_ns += (double)by_step[i] < most_ns ? (double)by_step[i] : most_ns;
	}
	*ret_spread = (struct advice_spread){used, all_ns > 0 ? usual_ns / all_ns : 1, noise_of(by_step, used, advice->step_count, usual_ns, most_ns)};
	ops_free(by_step);
	return true;
}

static double gain_ms(const struct advice_result *result)
{
	return result->findings.count ? result->findings.items[0].gain_ms : 0;
}

OPS_ORDER(compare_results, struct advice_result, OPS_DOWN_OF(gain_ms) OPS_BY_WORD(rule->id))

void advice_attribute(struct advice *advice, struct advice_result *results, size_t count)
{
	if (count)
		qsort(results, count, sizeof(*results), compare_results);
	for (size_t i = 0; i < count; i++) {
		double lost_ns = (double)advice_claim_attribute(advice, &results[i]);
		struct advice_finding *finding = results[i].findings.count ? &results[i].findings.items[0] : NULL;

		if (!finding || lost_ns <= 0)
			continue;
		finding->gain_ms -= advice_step_ms(advice, lost_ns);
		finding->gain_pct -= 100 * lost_ns / (double)advice->steps_ns;
		if (finding->gain_ms <= 0 || finding->gain_pct <= 0)
			finding->gain_ms = finding->gain_pct = 0;
	}
}
