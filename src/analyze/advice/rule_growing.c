/* SPDX-License-Identifier: Apache-2.0
 *
 * Work that grows from step to step, because hooks, callbacks or items of earlier steps are called again: a line makes as many more
 * calls in each step.
 *
 *     step   0  1  2  3  4  …      aten::clone in a hook that each step registers once more
 *     calls  1  2  3  4  5  …
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/search.h"

#define EQUAL_MIN 0.8   /* minimum share of steps that make exactly as many more calls than the step before */
#define FACTOR_MIN 2    /* minimum ratio of the calls in the last and the first step */

/* Calls of an operator at a line. */
struct growing_line {
	uint32_t last_beat;
	uint32_t now, before;   /* calls in this step and the one before */
	uint32_t first;         /* calls in the first step that has some */
	int64_t increase;       /* of the last two steps */
	uint32_t beats, equal;  /* steps with calls, and those of them with the same increase as before */
	bool grows;
};

struct growing_search {
	struct ops_map by_line;
	OPS_ARRAY(struct growing_line) lines;
};

/* --- lines ------------------------------------------------------------------------------------------------------------ */

static struct growing_line *line_of_call(struct growing_search *search, const struct advice *advice, uint32_t row)
{
	uint64_t key = (uint64_t)advice->site[row] << 32 | advice->events->name[row];

	return OPS_ARRAY_AT(&search->lines, ops_map_number(&search->by_line, key));
}

static bool can_grow(const struct advice *advice, uint32_t row)
{
	return advice_is_operator(advice, row) && advice->site[row] != OPS_NONE &&
	       !(advice->zone[row] & (ADVICE_IN_OPERATOR | ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER | ADVICE_PARALLEL));
}

static void end_beat(struct growing_line *line)
{
	int64_t increase = (int64_t)line->now - (int64_t)line->before;

	if (!line->now)
		return;
	line->first = line->beats ? line->first : line->now;
	line->equal += line->beats > 1 && increase > 0 && increase == line->increase;
	line->increase = increase;
	line->before = line->now;
	line->beats++;
}

static bool count_calls(struct growing_search *search, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		struct growing_line *line;
		uint32_t beat;

		if (!can_grow(advice, row))
			continue;
		line = line_of_call(search, advice, row);
		if (!line)
			return false;
		beat = advice_beat_of(advice, row);
		if (beat != line->last_beat) {
			end_beat(line);
			line->last_beat = beat;
			line->now = 0;
		}
		line->now++;
	}
	for (size_t i = 0; i < search->lines.count; i++) {
		struct growing_line *line = &search->lines.items[i];

		end_beat(line);
		line->grows = line->beats >= ADVICE_BEATS_MIN && (double)line->equal >= EQUAL_MIN * (line->beats - 2) && line->before >= FACTOR_MIN * line->first;
	}
	return true;
}

/* Adds the share of each call that a step with as many calls as the first would not make. */
static uint64_t add_growing(struct growing_search *search, struct advice_result *result, uint32_t *ret_most)
{
	const struct advice *advice = result->advice;
	int64_t most_ns = 0;
	uint64_t count = 0;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		struct growing_line *line = can_grow(advice, row) ? line_of_call(search, advice, row) : NULL;
		uint32_t beat;
		int64_t ns;

		if (!line || !line->grows || !advice_counts(advice, row) || advice_is_claimed(result, row))
			continue;
		beat = advice_beat_of(advice, row);
		if (beat != line->last_beat) {
			line->last_beat = beat;
			line->now = 0;
		}
		if (++line->now <= line->first)
			continue;
		ns = advice_claim(result, row);
		advice_add(result, row, ns);
		count++;
		if (ns > most_ns) {
			most_ns = ns;
			*ret_most = (uint32_t)(line - search->lines.items);
		}
	}
	return count;
}

/* What adds to the work of later steps. */
static const char *const registering[] = {"*: Module.register_forward_hook", "*: Module.register_forward_pre_hook", "*: Module.register_full_backward_hook",
                                          "*: Module.register_full_backward_pre_hook", "*: Tensor.register_hook", NULL};

static bool rule_growing_find(const struct advice *advice, struct advice_result *result)
{
	struct growing_search search = {0};
	uint32_t most = OPS_NONE;
	bool done = true;

	if (advice_beats(advice) >= ADVICE_BEATS_MIN) {
		done = count_calls(&search, advice);
		for (size_t i = 0; i < search.lines.count; i++)
			search.lines.items[i].last_beat = OPS_NONE;
		if (done && add_growing(&search, result, &most)) {
			advice_list_calls(result, registering);
			done = advice_report_costs(result, "Operators at these lines run more often in each step than in the one before, up to %u times after %u in the "
			                           "first. The additional calls take %s.",
			                           search.lines.items[most].before, search.lines.items[most].first, advice_cost(result).text);
		}
	}
	OPS_ARRAY_RELEASE(&search.lines);
	ops_map_release(&search.by_line);
	return done;
}

const struct advice_rule advice_rule_growing = {
	.id = "growing-work",
	.title = "Work grows from step to step",
	.condition = "In six steps or more, an operator of the forward pass at a line runs more often in each step than in the one before, by the same number in "
		     "four of five steps, and at least twice as often in the end.",
	.gain = "the calls beyond those of the first step, over the steps recorded; it grows with the number of steps",
	.explanation = "Something of earlier steps is called or visited again: hooks and callbacks that are registered in each step and never removed, or a "
		       "list of all earlier results that each step goes through.",
	.advice = "Register hooks once before the loop, or remove them (handle.remove()). Keep running sums in place of all results, and limit lists "
		  "(collections.deque(maxlen=n)). To check: equally many calls at the line in each step.",
	.code = "handle = layer.register_forward_hook(keep)\n"
		"try:\n"
		"    model(x)\n"
		"finally:\n"
		"    handle.remove()",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_forward_hook",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.stage = ADVICE_STAGE_MODE,
	.confidence = ADVICE_LIKELY,
	.find = rule_growing_find,
};
