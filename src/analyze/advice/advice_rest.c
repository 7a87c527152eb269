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

bool advice_explanations_add(struct advice_explanations *explanations, const struct advice_result *result)
{
	struct advice_explained *explained;

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
	explained->cost_ns = (double)result->outside_ns;
	for (size_t i = 0; i < result->costs.count; i++) {
		if (!OPS_ARRAY_APPEND(&explained->claims, result->costs.items[i]))
			return false;
		explained->cost_ns += (double)result->costs.items[i].ns;
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

bool rest_is_reported(const struct advice *advice, const struct advice_rule *rule, size_t first, double *ret_gain_ns)
{
	bool reported = false;

	*ret_gain_ns = 0;
	for (size_t i = first; i < advice->report->findings.count; i++) {
		const struct advice_finding *finding = &advice->report->findings.items[i];

		if (finding->rule != rule)
			continue;
		reported = true;
		*ret_gain_ns += 1e6 * finding->gain_ms * (double)advice->step_count;
	}
	return reported;
}

/* --- time of the steps ------------------------------------------------------------------------------------------------ */

/* Device work without a known launch, in the steady step during which it runs. */
static void add_unlaunched(const struct advice *advice, double *self_ns)
{
	const struct ops_events *events = advice->events;
	size_t at = 0;

	for (size_t i = 0; i < advice->views->device_events.count; i++) {
		const struct view_device_event *event = &advice->views->device_events.items[i];

		self_ns[event->row] = 0; /* launched work belongs to its launch */
		if (event->launch != OPS_NONE || event->communicates || !advice->views->steps.count)
			continue;
		at = advice_next_step(advice, at, events->start_ns[event->row]);
		if (advice->steady[at] && events->start_ns[event->row] >= advice->views->steps.items[at].start_ns &&
		    events->start_ns[event->row] < advice->views->steps.items[at].end_ns)
			self_ns[event->row] = (double)advice->ns[event->row];
	}
}

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

static void find_self_times(const struct advice *advice, double *self_ns)
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
			self_ns[row] = fmin(self_ns[row], (double)events->self_ns[row] + (double)advice->device_ns[row]);
	}
	add_unlaunched(advice, self_ns);
	/* The engine works for its nodes. */
	for (uint32_t row = 0; row < events->count; row++) {
		uint32_t parent = events->parent[row];

		if (advice->forward[row] == OPS_NONE || parent == OPS_NONE || self_ns[parent] < (double)advice->engine_ns[parent])
			continue;
		self_ns[row] += (double)advice->engine_ns[parent];
		self_ns[parent] -= (double)advice->engine_ns[parent];
	}
	subtract_other_threads(advice, self_ns);
}

/* --- claims ----------------------------------------------------------------------------------------------------------- */

/* Claims of the reported findings, by row. */
struct rest_claims {
	int64_t *ns, *self_ns, *backward_ns;
	uint8_t *whole;
	int64_t outside_ns;
};

static void sum_claims(const struct advice *advice, const struct advice_explanations *explanations, size_t first, struct rest_claims *claims)
{
	for (size_t i = 0; i < explanations->items.count; i++) {
		const struct advice_explained *explained = &explanations->items.items[i];
		double gain_ns, scale;

		if (!rest_is_reported(advice, explained->rule, first, &gain_ns))
			continue;
		scale = gain_ns < explained->cost_ns ? gain_ns / explained->cost_ns : 1;
		claims->outside_ns = ops_sum(claims->outside_ns, (int64_t)(scale * (double)explained->outside_ns));
		for (size_t n = 0; n < explained->claims.count; n++) {
			const struct advice_claim *claim = &explained->claims.items[n];
			int64_t *ns = claim->self ? &claims->self_ns[claim->row] : &claims->ns[claim->row];

			*ns = ops_sum(*ns, (int64_t)(scale * (double)claim->ns));
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

static bool subtract_claims(const struct advice *advice, const struct rest_claims *claims, struct rest_times *times)
{
	const struct ops_events *events = advice->events;
	double *left_ns = ops_alloc_zeroed(events->count + 1, sizeof(*left_ns));
	double *of_backward = ops_alloc_zeroed(events->count + 1, sizeof(*of_backward));
	bool done = left_ns && of_backward;

	if (done) {
		find_backward_parts(advice, claims, left_ns, of_backward);
		for (uint32_t row = 0; row < events->count; row++) {
			left_ns[row] = times->self_ns[row];
			subtract_from(&left_ns[row], (double)claims->self_ns[row]);
		}
		advice_find_parts(advice, claims->ns, claims->whole, left_ns, times->part);
		apply_backward(advice, claims, of_backward, left_ns, times);
	}
	ops_free(left_ns);
	ops_free(of_backward);
	return done;
}

/* --- times ------------------------------------------------------------------------------------------------------------ */

static void scale_to_steps(const struct advice *advice, int64_t explained_outside_ns, struct rest_times *times)
{
	double steps_ns = (double)advice->steps_ns, scale, left_ns;

	for (uint32_t row = 0; row < advice->events->count; row++)
		times->all_ns += times->self_ns[row];
	scale = times->all_ns > steps_ns ? steps_ns / times->all_ns : 1;
	for (uint32_t row = 0; scale < 1 && row < advice->events->count; row++)
		times->self_ns[row] *= scale;
	times->all_ns *= scale;
	left_ns = steps_ns - times->all_ns;
	times->exposed_ns = fmin((double)advice->idle.exposed_ns, left_ns);
	left_ns -= times->exposed_ns;
	times->contended_ns = fmin((double)advice->contended_ns, left_ns);
	times->outside_ns = fmax(0, left_ns - times->contended_ns - (double)explained_outside_ns);
}

bool rest_times_find(const struct advice *advice, const struct advice_explanations *explanations, size_t first, struct rest_times *times)
{
	size_t count = advice->events->count + 1;
	double gain_ns;
	struct rest_claims claims = {.ns = ops_alloc_zeroed(count, sizeof(*claims.ns)), .self_ns = ops_alloc_zeroed(count, sizeof(*claims.self_ns)),
	                             .backward_ns = ops_alloc_zeroed(count, sizeof(*claims.backward_ns)), .whole = ops_alloc_zeroed(count, 1)};
	bool done;

	*times = (struct rest_times){.self_ns = ops_alloc_zeroed(count, sizeof(*times->self_ns)), .part = ops_alloc_zeroed(count, sizeof(*times->part))};
	done = claims.ns && claims.self_ns && claims.backward_ns && claims.whole && times->self_ns && times->part;
	if (done) {
		find_self_times(advice, times->self_ns);
		sum_claims(advice, explanations, first, &claims);
		done = subtract_claims(advice, &claims, times);
		scale_to_steps(advice, claims.outside_ns, times);
		times->contended_explained = rest_is_reported(advice, advice_contention_rule(advice), first, &gain_ns);
	}
	ops_free(claims.ns);
	ops_free(claims.self_ns);
	ops_free(claims.backward_ns);
	ops_free(claims.whole);
	return done;
}

void rest_times_release(struct rest_times *times)
{
	ops_free(times->self_ns);
	ops_free(times->part);
}
