/* SPDX-License-Identifier: Apache-2.0
 *
 * Which part of the time of each row no reported finding claims.
 *
 * A claim takes time of a row and those below it, or of its backward pass. What it takes of a row it takes of all rows below in equal
 * parts, since a claim does not say which. Claims below are subtracted first.
 */
#include <math.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_rest.h"
#include "base/alloc.h"

/* --- explanations --------------------------------------------------------------------------------------------------- */

/* Returns the gain of all steady steps together. */
static double finding_ns(const struct advice *advice, const struct advice_finding *finding)
{
	return 1e6 * finding->gain_ms * (double)advice->step_count;
}

bool advice_explanations_add(struct advice_explanations *explanations, const struct advice_result *result)
{
	struct advice_explained *explained;
	double cost_ns = (double)result->outside_ns, gain_ns = 0, scale;

	if (!result->findings.count)
		return true;
	explained = OPS_ARRAY_PUSH(&explanations->items);
	if (!explained)
		return false;
	*explained = (struct advice_explained){.rule = result->rule, .outside_ns = result->outside_ns};
	for (size_t i = 0; i < result->claims.count; i++)
		if (!OPS_ARRAY_APPEND(&explained->claims, result->claims.items[i]))
			return false;
	if (result->claims.count)
		return true;
	for (size_t i = 0; i < result->findings.count; i++)
		gain_ns += finding_ns(result->advice, &result->findings.items[i]);
	for (size_t i = 0; i < result->costs.count; i++)
		cost_ns += (double)result->costs.items[i].ns;
	scale = gain_ns < cost_ns ? gain_ns / cost_ns : 1;
	explained->outside_ns = (int64_t)(scale * (double)result->outside_ns);
	for (size_t i = 0; i < result->costs.count; i++) {
		struct advice_claim claim = result->costs.items[i];

		claim.ns = (int64_t)(scale * (double)claim.ns);
		if (!OPS_ARRAY_APPEND(&explained->claims, claim))
			return false;
	}
	return true;
}

void advice_explanations_release(struct advice_explanations *explanations)
{
	for (size_t i = 0; i < explanations->items.count; i++) {
		OPS_ARRAY_RELEASE(&explanations->items.items[i].claims);
	}
	OPS_ARRAY_RELEASE(&explanations->items);
}

/* --- time of the steps ------------------------------------------------------------------------------------------------ */

static void subtract_from(double *ns, double less_ns)
{
	*ns = *ns > less_ns ? *ns - less_ns : 0;
}

/* The thread of a step waits while another one works for it, so that the time is in rows of both. */
static void subtract_other_threads(const struct advice *advice, double *self_ns)
{
	const struct ops_events *events = advice->events;
	uint32_t current = OPS_NONE; /* row of a thread of the steps that has begun last */

	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t parent = events->parent[row], waits = current;

		if (!advice_counts(advice, row) || advice_is_device_work(advice, row) || (events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC)))
			continue;
		if (advice->step_tracks[events->track[row]]) {
			current = row;
			continue;
		}
		if (parent != OPS_NONE && advice_counts(advice, parent))
			continue;
		while (waits != OPS_NONE && events->end_ns[waits] < events->end_ns[row])
			waits = events->parent[waits];
		if (waits != OPS_NONE)
			subtract_from(&self_ns[waits], (double)(advice->ns[row] - advice->device_ns[row]));
	}
}

/* The engine works for its nodes. */
static void move_engine(const struct advice *advice, double *self_ns)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];

		if (parent == OPS_NONE || !advice_is_node(advice, row) || self_ns[parent] < (double)advice->engine_ns[parent])
			continue;
		self_ns[row] += (double)advice->engine_ns[parent];
		self_ns[parent] -= (double)advice->engine_ns[parent];
	}
}

static void find_host_times(const struct advice *advice, double *self_ns)
{
	const struct ops_events *events = advice->events;

	/* Children come after their parents, so far with minus their time. The self time of an operator folded into its caller counts, too. */
	for (uint32_t row = (uint32_t)events->count; row-- > 0;) {
		bool counts = advice_counts(advice, row) && !(events->flags[row] & (OPS_EVENT_HIDDEN | OPS_EVENT_ASYNC));

		if (counts && events->parent[row] != OPS_NONE)
			self_ns[events->parent[row]] -= (double)advice->ns[row];
		self_ns[row] = counts && self_ns[row] + (double)advice->ns[row] > 0 ? self_ns[row] + (double)advice->ns[row] : 0;
		/* Less than that if the row overlaps a later one in part. */
		if (!(events->flags[row] & OPS_EVENT_FOLDED))
			self_ns[row] = fmin(self_ns[row], (double)events->self_ns[row]);
	}
	move_engine(advice, self_ns);
	subtract_other_threads(advice, self_ns);
}

/* Returns the time of work whose launch is in a steady step. If that is unknown, the part in the steady step in which it begins. `at`: result of
 * advice_next_step() for earlier work. */
static int64_t find_work_ns(const struct advice *advice, const struct view_device_event *event, size_t *at)
{
	const struct view_step *step;
	int64_t start_ns = advice->events->start_ns[event->row], ns = advice->ns[event->row], late_ns;

	if (event->launch != OPS_NONE || !advice->views->steps.count)
		return advice_counts(advice, event->row) ? ns : 0;
	*at = advice_next_step(advice, *at, start_ns);
	step = &advice->views->steps.items[*at];
	if (!advice->steady[*at] || start_ns < step->start_ns || start_ns >= step->end_ns)
		return 0;
	late_ns = ops_difference(advice->events->end_ns[event->row], step->end_ns);
	return late_ns <= 0 ? ns : late_ns < ns ? ns - late_ns : 0;
}

/* The time of the steps is that of the device: its work belongs to the rows that launch it, on any thread, and its idle times to the rows of
 * the host in them. */
static bool find_device_times(const struct advice *advice, double *self_ns)
{
	int64_t *idle_ns = ops_alloc_zeroed(advice->events->count + 1, sizeof(*idle_ns));
	bool done = idle_ns && advice_idle_divide(advice, ADVICE_IDLE_CAUSES, idle_ns);
	size_t at = 0;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		self_ns[row] = (double)idle_ns[row];
	for (size_t i = 0; done && i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];

		if (!event->communicates)
			self_ns[advice_launch_row(advice, event)] += (double)find_work_ns(advice, event, &at);
	}
	if (done)
		move_engine(advice, self_ns);
	ops_free(idle_ns);
	return done;
}

/* Computes the times of rows, and divides the time in no row. */
static bool rest_find_times(const struct advice *advice, struct rest_times *times)
{
	double all_ns = 0, left_ns;

	if (!advice->views->device_events.count)
		find_host_times(advice, times->self_ns);
	else if (!find_device_times(advice, times->self_ns))
		return false;
	for (uint32_t row = 0; row < advice->events->count; row++)
		all_ns += times->self_ns[row];
	left_ns = fmax(0, (double)advice->steps_ns - all_ns);
	times->exposed_ns = fmin((double)advice->idle.exposed_ns, left_ns);
	left_ns -= times->exposed_ns;
	times->contended_ns = fmin((double)advice->contended_ns, left_ns);
	times->outside_ns = left_ns - times->contended_ns;
	return true;
}

/* --- claims ----------------------------------------------------------------------------------------------------------- */

/* Claims of the reported findings, by row. */
struct rest_claims {
	int64_t *ns, *self_ns, *backward_ns;
	uint8_t *whole;
	int64_t outside_ns;
	const struct advice_rule *contention; /* see advice_contention_rule() */
	bool contended; /* waits for processors that the program has */
};

/* Sums up the claims of the first `count` explanations. */
static void sum_claims(const struct advice *advice, const struct advice_explanations *explanations, size_t count, struct rest_claims *claims)
{
	size_t rows = advice->events->count;

	memset(claims->ns, 0, rows * sizeof(*claims->ns));
	memset(claims->self_ns, 0, rows * sizeof(*claims->self_ns));
	memset(claims->backward_ns, 0, rows * sizeof(*claims->backward_ns));
	memset(claims->whole, 0, rows);
	claims->outside_ns = 0;
	claims->contended = false;
	for (size_t i = 0; i < count; i++) {
		const struct advice_explained *explained = &explanations->items.items[i];

		if (!explained->is_reported)
			continue;
		claims->outside_ns = ops_sum(claims->outside_ns, explained->outside_ns);
		claims->contended |= explained->rule == claims->contention;
		for (size_t n = 0; n < explained->claims.count; n++) {
			const struct advice_claim *claim = &explained->claims.items[n];
			/* A function around the steps is in none of them. */
			bool is_outside = claim->self && !advice_counts(advice, claim->row);
			int64_t *ns = is_outside ? &claims->outside_ns : claim->self ? &claims->self_ns[claim->row] : &claims->ns[claim->row];

			*ns = ops_sum(*ns, claim->ns);
			claims->backward_ns[claim->row] = ops_sum(claims->backward_ns[claim->row], claim->backward_ns);
			claims->whole[claim->row] |= claim->whole;
		}
	}
}

void advice_find_parts(const struct advice *advice, const int64_t *claimed_ns, const uint8_t *whole, double *left_ns, double *part)
{
	const uint32_t *parents = advice->events->parent;

	for (uint32_t row = (uint32_t)advice->events->count; row-- > 0;) {
		double claimed = (double)claimed_ns[row];

		part[row] = whole[row] ? 0 : claimed <= 0 ? 1 : claimed < left_ns[row] ? 1 - claimed / left_ns[row] : 0;
		if (parents[row] != OPS_NONE)
			left_ns[parents[row]] += left_ns[row] * part[row];
	}
	for (uint32_t row = 0; row < advice->events->count; row++)
		if (parents[row] != OPS_NONE)
			part[row] *= part[parents[row]];
}

/* Computes the part of the backward pass of each row that claims leave. */
static void find_backward_parts(const struct advice *advice, const struct rest_claims *claims, double *left_ns, double *part)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		left_ns[row] += (double)advice->backward_ns[row];
		if (advice->events->parent[row] != OPS_NONE)
			left_ns[advice->events->parent[row]] -= (double)advice->backward_ns[row];
	}
	advice_find_parts(advice, claims->backward_ns, claims->whole, left_ns, part);
}

/* Combines the parts of rows with that of the backward pass of their forward operators. `product`: work space by row. */
static void apply_backward(const struct advice *advice, const struct rest_claims *claims, const double *of_backward, double *product,
                           struct rest_times *times)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row], forward = advice->forward[row];
		double self_ns = times->self_ns[row], left_ns = self_ns;

		product[row] = (parent != OPS_NONE ? product[parent] : 1) * (forward != OPS_NONE ? of_backward[forward] : 1);
		subtract_from(&left_ns, (double)claims->self_ns[row]);
		times->part[row] *= self_ns > 0 ? left_ns / self_ns * product[row] : 0;
	}
}

/* Computes the parts of rows that claims leave. `left_ns`, `of_backward`: work space by row. Returns the time that claims leave of the steps. */
static double subtract_claims(const struct advice *advice, const struct rest_claims *claims, double *left_ns, double *of_backward,
                              struct rest_times *times)
{
	double all_ns = times->exposed_ns + (claims->contended ? 0 : times->contended_ns), outside_ns = times->outside_ns;

	memset(left_ns, 0, advice->events->count * sizeof(*left_ns));
	find_backward_parts(advice, claims, left_ns, of_backward);
	for (uint32_t row = 0; row < advice->events->count; row++) {
		left_ns[row] = times->self_ns[row];
		subtract_from(&left_ns[row], (double)claims->self_ns[row]);
	}
	advice_find_parts(advice, claims->ns, claims->whole, left_ns, times->part);
	apply_backward(advice, claims, of_backward, left_ns, times);
	for (uint32_t row = 0; row < advice->events->count; row++)
		all_ns += times->self_ns[row] * times->part[row];
	subtract_from(&outside_ns, (double)claims->outside_ns);
	return all_ns + outside_ns;
}

/* --- gains ------------------------------------------------------------------------------------------------------------ */

/* Returns the gain of the findings of a rule. */
static double sum_gains(const struct advice *advice, const struct advice_rule *rule, const struct advice_finding *findings, size_t count)
{
	double gain_ns = 0;

	for (size_t i = 0; i < count; i++)
		gain_ns += findings[i].rule == rule ? finding_ns(advice, &findings[i]) : 0;
	return gain_ns;
}

/* Multiplies the gains of the findings of a rule. Returns whether any of them is still reported. */
static bool scale_gains(const struct advice_rule *rule, double factor, struct advice_finding *findings, size_t count)
{
	bool reported = false;

	for (size_t i = 0; i < count; i++) {
		if (findings[i].rule != rule)
			continue;
		findings[i].gain_ms *= factor;
		findings[i].gain_pct *= factor;
		reported |= advice_is_reported(&findings[i]);
	}
	return reported;
}

/* --- times ------------------------------------------------------------------------------------------------------------ */

/* Several threads may compute at a time, and rows may have waited for a processor where it is unknown which of them did. Their times then
 * count as shares of the steps. Together with the gains and the time in no row they take no longer than these. */
static void limit_rows(const struct advice *advice, double gains_ns, struct rest_times *times)
{
	double all_ns = 0, left_ns = 0, steps_ns = (double)advice->steps_ns, part;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		all_ns += times->self_ns[row];
		left_ns += times->self_ns[row] * times->part[row];
	}
	gains_ns += times->exposed_ns + times->contended_ns + times->outside_ns;
	part = fmin(all_ns > steps_ns ? steps_ns / all_ns : 1, left_ns > 0 ? fmax(0, steps_ns - gains_ns) / left_ns : 1);
	for (uint32_t row = 0; part < 1 && row < advice->events->count; row++)
		times->part[row] *= part;
}

static void limit_gains(const struct advice *advice, struct advice_explanations *explanations, struct advice_finding *findings, size_t count,
                        struct rest_claims *claims, double *spaces[2], struct rest_times *times)
{
	double left_ns, gains_ns = 0;

	sum_claims(advice, explanations, 0, claims);
	left_ns = subtract_claims(advice, claims, spaces[0], spaces[1], times);
	for (size_t i = 0; i < explanations->items.count; i++) {
		struct advice_explained *explained = &explanations->items.items[i];
		double gain_ns = sum_gains(advice, explained->rule, findings, count), explained_ns, after_ns;

		explained->is_reported = true;
		sum_claims(advice, explanations, i + 1, claims);
		after_ns = subtract_claims(advice, claims, spaces[0], spaces[1], times);
		explained_ns = fmax(0, left_ns - after_ns); /* rounded */
		explained->is_reported = scale_gains(explained->rule, gain_ns > explained_ns ? explained_ns / gain_ns : 1, findings, count);
		if (!explained->is_reported)
			continue;
		left_ns = fmin(left_ns, after_ns);
		gains_ns += fmin(gain_ns, explained_ns);
	}
	sum_claims(advice, explanations, explanations->items.count, claims);
	subtract_claims(advice, claims, spaces[0], spaces[1], times);
	subtract_from(&times->outside_ns, (double)claims->outside_ns);
	times->contended_ns = claims->contended ? 0 : times->contended_ns;
	limit_rows(advice, gains_ns, times);
}

bool rest_times_find(const struct advice *advice, struct advice_explanations *explanations, struct advice_finding *findings, size_t count,
                     struct rest_times *times)
{
	size_t rows = advice->events->count + 1;
	struct rest_claims claims = {.ns = ops_alloc_zeroed(rows, sizeof(*claims.ns)), .self_ns = ops_alloc_zeroed(rows, sizeof(*claims.self_ns)),
	                             .backward_ns = ops_alloc_zeroed(rows, sizeof(*claims.backward_ns)), .whole = ops_alloc_zeroed(rows, 1),
	                             .contention = advice_contention_rule(advice)};
	double *spaces[2] = {ops_alloc_zeroed(rows, sizeof(**spaces)), ops_alloc_zeroed(rows, sizeof(**spaces))};
	bool done;

	*times = (struct rest_times){.self_ns = ops_alloc_zeroed(rows, sizeof(*times->self_ns)), .part = ops_alloc_zeroed(rows, sizeof(*times->part))};
	done = claims.ns && claims.self_ns && claims.backward_ns && claims.whole && times->self_ns && times->part && spaces[0] && spaces[1] &&
	       rest_find_times(advice, times);
	if (done)
		limit_gains(advice, explanations, findings, count, &claims, spaces, times);
	ops_free(claims.ns);
	ops_free(claims.self_ns);
	ops_free(claims.backward_ns);
	ops_free(claims.whole);
	ops_free(spaces[0]);
	ops_free(spaces[1]);
	return done;
}

void rest_times_release(struct rest_times *times)
{
	ops_free(times->self_ns);
	ops_free(times->part);
}
