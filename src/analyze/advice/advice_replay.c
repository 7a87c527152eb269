/* SPDX-License-Identifier: Apache-2.0
 *
 * Gains by replay: what the steps save without some rows, or if nothing waits for them. This accounts for work that
 * runs meanwhile, and for waits with other causes.
 */
#include <math.h>

#include "analyze/advice/advice.h"
#include "analyze/replay/replay.h"
#include "base/alloc.h"

/* A replay that differs from the measured steps by more than this share is not used. */
#define ERROR_MAX 0.1

struct replayed {
	struct replay replay;
	struct replay_changes changes;
	int64_t *before_ns, *after_ns; /* by step of the replay */
	int64_t *saved_ns;             /* by step of the views */
};

static bool replayed_is_near(const struct replayed *replayed)
{
	double apart_ns = 0, all_ns = 0;

	for (size_t i = 0; i < replayed->replay.steps.count; i++) {
		apart_ns += fabs((double)(replayed->before_ns[i] - replayed->replay.steps.items[i].measured_ns));
		all_ns += (double)replayed->replay.steps.items[i].measured_ns;
	}
	return all_ns > 0 && apart_ns <= ERROR_MAX * all_ns;
}

/* Both are in order of time. */
static void add_steady_steps(const struct advice *advice, const struct replayed *replayed)
{
	size_t step = 0;

	for (size_t i = 0; i < replayed->replay.steps.count; i++) {
		step = advice_next_step(advice, step, replayed->replay.steps.items[i].start_ns);
		if (step < advice->views->steps.count && advice->steady[step])
			replayed->saved_ns[step] = ops_sum(replayed->saved_ns[step], replayed->before_ns[i] - replayed->after_ns[i]);
	}
}

static bool replayed_init(struct replayed *replayed, const struct advice *advice)
{
	size_t steps;

	if (!replay_init(&replayed->replay, advice->trace))
		return false;
	steps = replayed->replay.steps.count;
	replayed->changes.mask = ops_alloc_zeroed(advice->events->count + 1, sizeof(*replayed->changes.mask));
	replayed->before_ns = ops_alloc_zeroed(2 * steps + 1, sizeof(*replayed->before_ns));
	replayed->after_ns = replayed->before_ns ? replayed->before_ns + steps : NULL;
	replayed->saved_ns = ops_alloc_zeroed(advice->views->steps.count + 1, sizeof(*replayed->saved_ns));
	return replayed->changes.mask && replayed->before_ns && replayed->saved_ns;
}

bool advice_replay_gain(const struct advice *advice, enum advice_replayed how, const uint32_t *rows, size_t count, double *gain_ns)
{
	const struct replay_change change = {.kind = how == ADVICE_WITHOUT ? REPLAY_SCALE : REPLAY_OVERLAP, .factor = 0};
	struct replayed replayed = {.changes = {.items = {change}, .count = 1}};
	bool done = replayed_init(&replayed, advice);

	for (size_t i = 0; done && i < count; i++)
		replayed.changes.mask[rows[i]] |= 1;
	done = done && replay_select(&replayed.replay, &replayed.changes) &&
	       replay_run(&replayed.replay, &replayed.changes, 0, replayed.before_ns) &&
	       replay_run(&replayed.replay, &replayed.changes, 1, replayed.after_ns);
	if (done && replayed_is_near(&replayed)) {
		add_steady_steps(advice, &replayed);
		*gain_ns = advice_typical_ns(advice, replayed.saved_ns);
	}
	replay_release(&replayed.replay);
	replay_changes_release(&replayed.changes);
	ops_free(replayed.before_ns);
	ops_free(replayed.saved_ns);
	return done;
}
