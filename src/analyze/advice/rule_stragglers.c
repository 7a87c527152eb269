/* SPDX-License-Identifier: Apache-2.0
 *
 * Stragglers: ranks that are late for a collective, so that the others wait, and the work that takes them longer than
 * the others.
 */
#include <stdio.h>
#include <stdlib.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/order.h"

/* A rank that is last in at least this number of steps out of ten is the cause; otherwise the work is uneven from step
 * to step. */
#define OFTEN_LAST 6

/* With fewer steps, a rank may be last by chance. */
#define STEPS_MIN 3

/* A rank that is late in two steps or more, by this share of a step, is so for a reason, even if it is not late in the median step. */
#define LATE_SHARE 0.2
#define LATE_STEPS_MIN 2

/* How often a rank was last, and what that cost. */
struct last_rank {
	size_t steps;
	int64_t gain_ns;   /* sum of the gains of these steps */
	size_t late_steps; /* those of them in which it was late by LATE_SHARE of the step or more */
	int64_t late_ns;   /* sum of their gains */
};

struct lateness {
	int64_t *gain_ns;  /* by step: mean wait minus the shortest, which is that of the last rank */
	int64_t *waits_ns; /* by step: mean wait */
	int64_t typical_gain_ns, typical_wait_ns; /* medians */
	size_t steps;
	struct last_rank *last; /* by rank */
	uint32_t worst;         /* rank whose steps cost most */
};

/* Finds the step of that name. Each rank's steps are in order, so a cursor finds most of them at once. */
static const struct rank_step *step_of(const struct rank *rank, uint32_t name, size_t hint)
{
	for (size_t i = 0; i < rank->steps.count; i++) {
		const struct rank_step *step = &rank->steps.items[(hint + i) % rank->steps.count];

		if (step->name == name)
			return step->steady ? step : NULL;
	}
	return NULL;
}

static void count_last(struct last_rank *last, int64_t gain_ns, int64_t step_ns)
{
	bool is_late = (double)gain_ns >= LATE_SHARE * (double)step_ns;

	last->steps++;
	last->gain_ns = ops_sum(last->gain_ns, gain_ns);
	last->late_steps += is_late;
	last->late_ns = ops_sum(last->late_ns, is_late ? gain_ns : 0);
}

static void rule_stragglers_add_step(struct lateness *lateness, const struct advice_ranks *ranks, size_t number)
{
	const struct rank_step *first = &ranks->ranks.items[0].steps.items[number];
	int64_t sum_ns = 0, least_ns = INT64_MAX;
	uint32_t last = 0;

	for (uint32_t r = 0; r < ranks->ranks.count; r++) {
		const struct rank_step *step = step_of(&ranks->ranks.items[r], first->name, number);

		if (!step)
			return;
		sum_ns = ops_sum(sum_ns, step->wait_ns);
		if (step->wait_ns < least_ns) {
			least_ns = step->wait_ns;
			last = r;
		}
	}
	count_last(&lateness->last[last], sum_ns / (int64_t)ranks->ranks.count - least_ns, first->ns);
	lateness->waits_ns[lateness->steps] = sum_ns / (int64_t)ranks->ranks.count;
	lateness->gain_ns[lateness->steps] = lateness->waits_ns[lateness->steps] - least_ns;
	lateness->steps++;
}

static void find_lateness(struct lateness *lateness, const struct advice_ranks *ranks)
{
	for (size_t i = 0; i < ranks->ranks.items[0].steps.count; i++)
		if (ranks->ranks.items[0].steps.items[i].steady)
			rule_stragglers_add_step(lateness, ranks, i);
	for (uint32_t r = 1; r < ranks->ranks.count; r++)
		if (lateness->last[r].gain_ns > lateness->last[lateness->worst].gain_ns)
			lateness->worst = r;
	lateness->typical_gain_ns = ops_sort_to_middle(lateness->gain_ns, lateness->steps);
	lateness->typical_wait_ns = ops_sort_to_middle(lateness->waits_ns, lateness->steps);
}

/* --- work of the late rank ------------------------------------------------------------------------------------------- */

struct excess {
	uint32_t place;
	double ms;        /* per step, beyond the mean of the others */
	double others_ms; /* that mean */
};

OPS_ORDER(most_first, struct excess, OPS_DOWN(ms))

/* Returns the differences ordered by excess. Freed with ops_free. */
static struct excess *rule_stragglers_find_excess(const struct advice_ranks *ranks, uint32_t late)
{
	struct excess *excess = ops_alloc_zeroed(ranks->places.count + 1, sizeof(*excess));

	for (size_t i = 0; excess && i < ranks->places.count; i++)
		excess[i].place = (uint32_t)i;
	for (uint32_t r = 0; excess && r < ranks->ranks.count; r++) {
		const struct rank *rank = &ranks->ranks.items[r];

		for (size_t i = 0; i < rank->times.count; i++) {
			double ms = rank_step_ms(rank, (double)rank->times.items[i].ns);

			struct excess *at = &excess[rank->times.items[i].place];

			at->ms += r == late ? ms : -ms / (double)(ranks->ranks.count - 1);
			at->others_ms += r == late ? 0 : ms / (double)(ranks->ranks.count - 1);
		}
	}
	if (excess)
		qsort(excess, ranks->places.count, sizeof(*excess), most_first);
	return excess;
}

/* Returns the share of the excess at places where the others spend almost no time: work of the late rank alone.
 * Distributing that work gains the difference to the average; removing it gains more. */
static double own_share(const struct excess *excess, size_t count)
{
	double own_ms = 0, all_ms = 0;

	for (size_t i = 0; i < count; i++) {
		all_ms += excess[i].ms;
		own_ms += excess[i].others_ms * 10 < excess[i].ms ? excess[i].ms : 0;
	}
	return all_ms > 0 ? own_ms / all_ms : 0;
}

/* Formats "1", or the name of the worker if the file has no rank. */
static void name_rank(const struct advice_ranks *ranks, const struct rank *rank, char *name, size_t size)
{
	struct ops_string worker = rank_text(ranks, rank->name);

	if (rank->number >= 0)
		snprintf(name, size, "%lld", (long long)rank->number);
	else
		snprintf(name, size, "'%.*s'", (int)worker.size, worker.bytes);
}

static bool rule_stragglers_report(const struct advice_ranks *ranks, struct advice_result *result,
                                   const struct lateness *lateness, const struct excess *excess)
{
	const struct rank *late = &ranks->ranks.items[lateness->worst];
	const struct last_rank *worst = &lateness->last[lateness->worst];
	double gain_ms = (double)lateness->typical_gain_ns / 1e6, late_ms = (double)worst->late_ns / 1e6, own;
	bool sometimes = worst->late_steps >= LATE_STEPS_MIN && late_ms > 2 * gain_ms * (double)lateness->steps;
	bool one = sometimes || worst->steps * 10 >= lateness->steps * OFTEN_LAST;
	struct advice_where where[ADVICE_WHERE_MAX];
	char name[64], detail[192] = "The late rank differs from step to step: distribute the work by its size.", more[128] = "";
	char waits[128];
	size_t count = 0, last = sometimes ? worst->late_steps : worst->steps;

	snprintf(waits, sizeof(waits), "In the median step, a rank waits %s for others", advice_time((double)lateness->typical_wait_ns / 1e6).text);
	if (sometimes) {
		gain_ms = late_ms / (double)lateness->steps;
		snprintf(waits, sizeof(waits), "In these steps, a rank waits %s for others", advice_time(late_ms / (double)last).text);
	}
	for (size_t i = 0; one && i < ranks->places.count && count < ADVICE_WHERE_MAX; i++)
		if (excess[i].ms > gain_ms / 10)
			where[count++] = advice_place(ranks, excess[i].place);
	own = own_share(excess, count);
	/* The late rank hardly waits. The rest is its share of the average wait. */
	gain_ms *= 1 + own / (double)(ranks->ranks.count - 1);
	name_rank(ranks, late, name, sizeof(name));
	if (one && count)
		snprintf(detail, sizeof(detail), "Look at what takes rank %s longer than the others, at these places.", name);
	else if (one)
		snprintf(detail, sizeof(detail), "Nothing that was recorded takes rank %s longer than the others: record stacks, or compare its machine.", name);
	if (count)
		snprintf(more, sizeof(more), ", and takes %s a step longer than the others at the first place", advice_time(excess[0].ms).text);
	result->detail = detail;
	return advice_report_of_run(result,
	                            (struct advice_finding){.gain_ms = gain_ms,
	                                                    .gain_pct = 100 * gain_ms / rank_step_ms(late, (double)late->steps_ns),
	                                                    .confidence = lateness->steps < STEPS_MIN ? ADVICE_UNSURE : ADVICE_LIKELY,
	                                                    .where_count = count},
	                            where,
	                            "Rank %s is the last of %zu in %zu of %zu steps%s. %s%s.", name, ranks->ranks.count, last, lateness->steps, more, waits,
	                            own > 0.5 ? "; only the late rank does this work" : "");
}

static bool rule_stragglers_find(const struct advice_ranks *ranks, struct advice_result *result)
{
	struct lateness lateness = {0};
	struct excess *excess = NULL;
	size_t steps;
	bool done;

	if (ranks->ranks.count < 2)
		return true;
	steps = ranks->ranks.items[0].steps.count + 1;
	lateness = (struct lateness){.last = ops_alloc_zeroed(ranks->ranks.count, sizeof(*lateness.last)),
	                             .gain_ns = ops_alloc_zeroed(steps, sizeof(*lateness.gain_ns)),
	                             .waits_ns = ops_alloc_zeroed(steps, sizeof(*lateness.waits_ns))};
	done = lateness.last && lateness.gain_ns && lateness.waits_ns;
	if (done)
		find_lateness(&lateness, ranks);
	if (lateness.steps) {
		excess = rule_stragglers_find_excess(ranks, lateness.worst);
		done = excess && rule_stragglers_report(ranks, result, &lateness, excess);
	}
	ops_free(excess);
	ops_free(lateness.last);
	ops_free(lateness.gain_ns);
	ops_free(lateness.waits_ns);
	return done;
}

const struct advice_rule advice_rule_stragglers = {
	.id = "uneven-ranks",
	.title = "Ranks wait for a late rank",
	.condition = "In collectives, ranks wait for the one that waits least: in the median step, or in two steps or more for a fifth of them. "
		     "The places are what it does longer than the others. Confidence is low with fewer than three steps.",
	.gain = "the difference between its step and that of the average rank, or of the others if it alone does this work",
	.explanation = "A collective ends after the last rank has joined it: the slowest rank determines the step of all.",
	.advice = "Give all ranks the same amount of work: batches of equal cost (sort by length, equal padding, "
		  "drop_last=True), the same hardware and threads, and no logging or evaluation on rank 0 alone. To "
		  "check: all ranks wait equally long.",
	.link = "https://docs.pytorch.org/docs/stable/distributed.algorithms.join.html",
	.needs = ADVICE_NEEDS_RANKS,
	.stage = ADVICE_STAGE_WAITS,
	.find_in_ranks = rule_stragglers_find,
};
