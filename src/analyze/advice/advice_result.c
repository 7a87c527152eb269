/* SPDX-License-Identifier: Apache-2.0
 *
 * Results of rules: costs by place, and claims.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/advice/advice.h"
#include "analyze/format.h"
#include "base/alloc.h"

/* --- costs by place ------------------------------------------------------------------------------------------------- */

bool advice_tally_init(struct advice_tally *tally, const struct advice *advice)
{
	*tally = (struct advice_tally){.advice = advice, .count = advice->sites.count + 1};
	tally->costs = ops_alloc_zeroed(tally->count, sizeof(*tally->costs));
	tally->through = ops_alloc_zeroed(advice->library_sites.count + 1, sizeof(*tally->through));
	return tally->costs && tally->through;
}

void advice_tally_release(struct advice_tally *tally)
{
	ops_free(tally->costs);
	ops_free(tally->through);
	*tally = (struct advice_tally){0};
}

static void add_cost(struct advice_cost *cost, uint32_t site, uint32_t row, int64_t ns)
{
	if (!cost->count || ns > cost->row_ns) {
		cost->row = row;
		cost->row_ns = ns;
	}
	cost->site = site;
	cost->count++;
	cost->ns = ops_sum(cost->ns, ns);
}

void advice_tally_add_at(struct advice_tally *tally, uint32_t site, uint32_t row, int64_t ns)
{
	uint32_t through = row == OPS_NONE ? OPS_NONE : tally->advice->through[row];

	add_cost(&tally->costs[site == OPS_NONE ? tally->count - 1 : site], site, row, ns);
	if (through != OPS_NONE)
		add_cost(&tally->through[through], site, row, ns);
	tally->ns = ops_sum(tally->ns, ns);
	tally->events++;
}

void advice_tally_add(struct advice_tally *tally, uint32_t row, int64_t ns)
{
	advice_tally_add_at(tally, tally->advice->site[row], row, ns);
}

void advice_add_cost(struct advice_result *result, uint32_t row, int64_t ns)
{
	if (!result->claims.count && row != OPS_NONE && ns > 0 && !OPS_ARRAY_APPEND(&result->costs, ((struct advice_claim){.ns = ns, .row = row})))
		result->failed = true;
}

void advice_add_at(struct advice_result *result, uint32_t site, uint32_t row, int64_t ns)
{
	advice_tally_add_at(&result->tally, site, row, ns);
	advice_add_cost(result, row, ns);
}

void advice_add(struct advice_result *result, uint32_t row, int64_t ns)
{
	advice_add_at(result, result->advice->site[row], row, ns);
}

/* Limit on the calls around a row that are considered, and the share by which each outer one counts less. */
#define CALLS_MAX 64
#define OUTER_LESS 128

void advice_add_calls(struct advice_result *result, uint32_t row, int64_t ns)
{
	const struct advice *advice = result->advice;
	uint32_t last = advice->site[row];

	advice_add(result, row, ns);
	for (int i = 0; i < CALLS_MAX; i++) {
		row = advice->caller[row];
		if (row == OPS_NONE || !advice_counts(advice, row))
			return;
		if (advice->site[row] == OPS_NONE || advice->site[row] == last)
			continue;
		last = advice->site[row];
		ns -= ns / OUTER_LESS;
		advice_tally_add(&result->tally, row, ns);
	}
}

bool advice_add_outermost(struct advice_result *result, uint32_t row, bool matches, uint8_t zones_left_out)
{
	const struct advice *advice = result->advice;
	uint32_t parent = advice->events->parent[row];

	/* Rows inside a claimed row are claimed with it. */
	result->claimed[row] |= parent != OPS_NONE && result->claimed[parent];
	if (!matches || advice_is_device_work(advice, row) || !advice_counts(advice, row) ||
	    (advice->zone[row] & zones_left_out) || advice_is_claimed(result, row))
		return false;
	advice_add(result, row, advice_left_ns(advice, row));
	advice_claim(result, row);
	return true;
}

void advice_add_names(struct advice_result *result, uint8_t zones_left_out)
{
	const struct ops_events *events = result->advice->events;

	for (uint32_t row = 0; row < events->count; row++)
		advice_add_outermost(result, row, result->which[events->name[row]], zones_left_out);
}

/* --- claims --------------------------------------------------------------------------------------------------------- */

static void add_claim(struct advice_result *result, struct advice_claim claim)
{
	struct advice_claim *added = OPS_ARRAY_PUSH(&result->claims);

	result->failed |= !added;
	if (added)
		*added = claim;
}

int64_t advice_claim_share(struct advice_result *result, uint32_t row, double share)
{
	struct advice_claim claim = {.row = row};

	claim.ns = (int64_t)((double)advice_left_ns(result->advice, row) * share);
	claim.backward_ns = (int64_t)((double)advice_backward_left_ns(result->advice, row) * share);
	add_claim(result, claim);
	return ops_sum(claim.ns, claim.backward_ns);
}

int64_t advice_claim(struct advice_result *result, uint32_t row)
{
	struct advice_claim claim = {.ns = advice_left_ns(result->advice, row), .row = row, .whole = true,
	                             .backward_ns = advice_backward_left_ns(result->advice, row)};

	result->claimed[row] = 1;
	add_claim(result, claim);
	return ops_sum(claim.ns, claim.backward_ns);
}

void advice_claim_rest(struct advice_result *result, uint32_t row)
{
	result->claimed[row] = 1;
	add_claim(result, (struct advice_claim){.row = row, .whole = true, .rest = true});
}

void advice_claim_self(struct advice_result *result, uint32_t row, int64_t ns)
{
	add_claim(result, (struct advice_claim){.ns = ns, .row = row, .self = true});
}

bool advice_spread_idle(struct advice_result *result, enum advice_idle_cause cause, double share)
{
	const struct advice *advice = result->advice;
	int64_t *ns = ops_alloc_zeroed(advice->events->count + 1, sizeof(*ns)), outside_ns = 0;
	bool done = ns && advice_idle_divide(advice, cause, ns);

	for (size_t i = 0; i < advice->idle.gaps.count; i++) {
		const struct advice_gap *gap = &advice->idle.gaps.items[i];

		if (gap->cause == cause)
			outside_ns = ops_sum(outside_ns, advice_idle_saved_ns(advice, gap));
	}
	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		outside_ns -= ns[row];
		ns[row] = (int64_t)(share * (double)ns[row]);
		done = ns[row] <= 0 || OPS_ARRAY_APPEND(&result->costs, ((struct advice_claim){.ns = ns[row], .row = row, .self = true}));
	}
	result->outside_ns = ops_sum(result->outside_ns, outside_ns > 0 ? (int64_t)(share * (double)outside_ns) : 0);
	ops_free(ns);
	return done;
}

/* --- init and release ----------------------------------------------------------------------------------------------- */

bool advice_result_init(struct advice_result *result, const struct advice_rule *rule, const struct advice *advice,
                        struct advice_report *report, uint8_t *claimed)
{
	*result = (struct advice_result){.advice = advice, .report = report, .rule = rule, .confidence = rule->confidence, .bound = rule->bound, .general = rule->general,
	                                 .claimed = claimed};
	if (claimed)
		memset(claimed, 0, advice->events->count);
	if (advice && rule->names) {
		result->which = advice_names(advice, rule->names);
		if (!result->which)
			return false;
	}
	return !advice || advice_tally_init(&result->tally, advice);
}

void advice_result_release(struct advice_result *result)
{
	advice_tally_release(&result->tally);
	ops_free(result->which);
	OPS_ARRAY_RELEASE(&result->claims);
	OPS_ARRAY_RELEASE(&result->costs);
	OPS_ARRAY_RELEASE(&result->findings);
}

/* --- numbers in texts ----------------------------------------------------------------------------------------------- */

struct ops_figure advice_time(double ms)
{
	return ops_figure_of_duration(ms * 1e6);
}

struct advice_phrase advice_phrase_of(double number, const char *one, const char *several)
{
	struct ops_figure figure = ops_figure_of_number(number);
	struct advice_phrase phrase;

	snprintf(phrase.text, sizeof(phrase.text), "%s %s", figure.text, strcmp(figure.text, "1") != 0 ? several : one);
	return phrase;
}

struct ops_figure advice_bytes(double bytes)
{
	return ops_figure_of_bytes(bytes > 0 ? (int64_t)bytes : 0);
}

struct ops_figure advice_spent(const struct advice *advice, double ns)
{
	struct ops_figure number = advice_time(advice_step_ms(advice, ns));
	struct ops_figure share = ops_figure_of_percent(advice_percent(advice, ns));
	size_t size = strlen(number.text);

	if (size + strlen(share.text) + sizeof(" ()") <= sizeof(number.text))
		sprintf(number.text + size, " (%s)", share.text);
	return number;
}
