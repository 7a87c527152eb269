/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops of the user's functions around operators that are too small to pay for their call: over rows of a tensor, or
 * otherwise. A loop is what one call of a function (or one step) calls at the same line by the same name again and again.
 */
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* From so many rounds on; fewer are a model's blocks or a step's parts. */
#define ROUNDS_MIN 16
/* An operator that takes longer does real work, which no rewriting as one operator saves. Calls cost 1 to 10 µs, allocation
 * and recording included. */
#define CALL_NS_MAX 25000

struct round {
	uint32_t parent;
	uint32_t count;
	uint32_t first;
	int64_t start_ns, end_ns;
	int64_t own_ns;       /* of the calls at this line */
	int64_t backward_ns;
};

struct loop {
	uint32_t parent, rounds, row;
	int64_t start_ns, end_ns, backward_ns, row_ns;
	int64_t operators_ns, work_ns;
	uint32_t operators;
	bool slices;
};

struct loops {
	struct view_map rounds_by_key, loop_of;
	OPS_ARRAY(struct round) rounds;
	OPS_ARRAY(struct loop) loops;
	uint32_t *in;         /* by row: loop that it is in */
	int64_t *quickest_ns; /* by name */
	uint8_t *slicing;     /* by name */
};

static uint64_t key_of(const struct advice *advice, uint32_t row)
{
	uint64_t key = advice->events->parent[row];
	uint32_t line = advice->events->call_line ? advice->events->call_line[row] : 0;

	key = key * 0x9e3779b97f4a7c15u + line;
	return key * 0x9e3779b97f4a7c15u + advice->events->name[row];
}

/* Right below a function of the user's, or a range or step in one. */
static bool is_candidate(const struct advice *advice, uint32_t row)
{
	uint32_t parent = advice->events->parent[row], caller = advice->caller[row];

	return advice_counts(advice, row) && parent != OPS_NONE && caller != OPS_NONE && advice->site[row] != OPS_NONE &&
	       !(advice->zone[row] & (ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER | ADVICE_IN_OPERATOR)) &&
	       advice->views.parts[row] != VIEW_STEP &&
	       advice->events->name[advice->sites.items[advice->site[row]].frame] == advice->events->name[caller];
}

static bool find_rounds(struct loops *loops, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t *index;
		struct round *round;

		if (!is_candidate(advice, row))
			continue;
		index = view_map_slot(&loops->rounds_by_key, key_of(advice, row), (uint32_t)loops->rounds.count);
		if (!index)
			return false;
		if (*index == loops->rounds.count) {
			round = OPS_ARRAY_PUSH(&loops->rounds);
			if (!round)
				return false;
			*round = (struct round){.parent = advice->events->parent[row], .first = row,
			                        .start_ns = advice->events->start_ns[row]};
		}
		round = &loops->rounds.items[*index];
		round->count++;
		round->end_ns = advice->events->end_ns[row];
		round->own_ns = ops_sum(round->own_ns, advice_ns(advice, row));
		round->backward_ns = ops_sum(round->backward_ns, advice->backward_ns[row]);
	}
	return true;
}

/* Lines that are called as often from the same call are one loop. */
static bool find_loops(struct loops *loops)
{
	for (size_t i = 0; i < loops->rounds.count; i++) {
		const struct round *round = &loops->rounds.items[i];
		uint32_t *index;
		struct loop *loop;

		if (round->count < ROUNDS_MIN)
			continue;
		index = view_map_slot(&loops->loop_of, round->parent, (uint32_t)loops->loops.count);
		if (!index)
			return false;
		if (*index == loops->loops.count) {
			loop = OPS_ARRAY_PUSH(&loops->loops);
			if (!loop)
				return false;
			*loop = (struct loop){.parent = round->parent, .start_ns = round->start_ns};
		}
		loop = &loops->loops.items[*index];
		loop->rounds = round->count > loop->rounds ? round->count : loop->rounds;
		loop->start_ns = round->start_ns < loop->start_ns ? round->start_ns : loop->start_ns;
		loop->end_ns = round->end_ns > loop->end_ns ? round->end_ns : loop->end_ns;
		loop->backward_ns = ops_sum(loop->backward_ns, round->backward_ns);
		if (round->own_ns >= loop->row_ns) {
			loop->row_ns = round->own_ns;
			loop->row = round->first;
		}
	}
	return true;
}

/* Up to so many elements the call is all that an operator's time consists of: its arithmetic takes below a microsecond. */
#define SMALL_ELEMENTS 4096

/* What of an operator's time is more than its call: that of a large one beyond the quickest of the same name. */
static int64_t work_of(const struct loops *loops, const struct advice *advice, uint32_t row)
{
	int64_t call_ns = loops->quickest_ns[advice->events->name[row]], elements;
	uint8_t dtype;

	elements = advice_elements(advice, row, &dtype);
	if (elements <= SMALL_ELEMENTS)
		return 0;
	return advice_ns(advice, row) - (call_ns < CALL_NS_MAX ? call_ns : CALL_NS_MAX);
}

static void weigh(struct loops *loops, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row], index = OPS_NONE;
		struct loop *loop;

		if (parent != OPS_NONE) {
			index = loops->in[parent];
			if (index == OPS_NONE && advice_counts(advice, row))
				index = view_map_find(&loops->loop_of, parent);
		}
		if (index != OPS_NONE && (advice->events->start_ns[row] < loops->loops.items[index].start_ns ||
		                          advice->events->start_ns[row] >= loops->loops.items[index].end_ns))
			index = OPS_NONE;
		loops->in[row] = index;
		if (index == OPS_NONE || !advice_is_operator(advice, row) || (advice->zone[row] & ADVICE_IN_OPERATOR))
			continue;
		loop = &loops->loops.items[index];
		loop->operators++;
		loop->operators_ns = ops_sum(loop->operators_ns, advice_ns(advice, row));
		loop->work_ns = ops_sum(loop->work_ns, work_of(loops, advice, row));
		loop->slices |= loops->slicing[advice->events->name[row]] != 0;
	}
}

static void find_quickest(struct loops *loops, const struct advice *advice)
{
	for (uint32_t row = 0; row < advice->events->count; row++) {
		int64_t *quickest = &loops->quickest_ns[advice->events->name[row]];

		if (advice_is_operator(advice, row) && (!*quickest || advice_ns(advice, row) < *quickest))
			*quickest = advice_ns(advice, row);
	}
}

static bool init(struct loops *loops, const struct advice *advice)
{
	static const char *const slicing[] = {"aten::select", "aten::slice", "aten::index", "aten::index_put_", "aten::narrow",
	                                      "aten::unbind", "aten::item", "aten::copy_", NULL};

	loops->in = ops_realloc_array(NULL, advice->events->count + 1, sizeof(*loops->in));
	loops->quickest_ns = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, sizeof(*loops->quickest_ns));
	loops->slicing = advice_names(advice, slicing);
	if (!loops->in || !loops->quickest_ns || !loops->slicing || !find_rounds(loops, advice) || !find_loops(loops))
		return false;
	find_quickest(loops, advice);
	weigh(loops, advice);
	return true;
}

static bool check_loops(struct advice *advice, const struct advice_rule *rule, bool slices)
{
	struct loops loops = {0};
	struct advice_tally tally = {0};
	uint64_t operators = 0, rounds = 0;
	double spent_ns = 0;
	bool done = advice_tally_init(&tally, advice) && init(&loops, advice);

	for (size_t i = 0; done && i < loops.loops.count; i++) {
		const struct loop *loop = &loops.loops.items[i];
		int64_t span_ns = loop->end_ns - loop->start_ns, gain_ns;

		if (loop->slices != slices || !loop->operators || loop->operators_ns / loop->operators > CALL_NS_MAX ||
		    advice_is_claimed(advice, loop->row) || span_ns <= 0)
			continue;
		/* One round is left, and the work; the backward pass shrinks as much. */
		gain_ns = span_ns - loop->work_ns - span_ns / loop->rounds;
		if (gain_ns <= 0)
			continue;
		gain_ns += (int64_t)((double)loop->backward_ns * (double)gain_ns / (double)span_ns);
		advice_tally_add(&tally, advice, loop->row, gain_ns);
		spent_ns += (double)span_ns;
		operators += loop->operators;
		rounds += loop->rounds;
	}
	done = done && advice_report_add(advice, rule, &tally,
	                                 (struct advice_gain){.ns = (double)tally.ns,
	                                                      .confidence = slices ? ADVICE_SURE : ADVICE_LIKELY},
	                                 "loops of %.0f rounds a step call %.0f small operators in %.3f ms (%.1f %%). Gain: all "
	                                 "but one round and the work of large operators; with the same share "
	                                 "of their backward pass.",
	                                 advice_per_step(advice, rounds), advice_per_step(advice, operators),
	                                 advice_step_ms(advice, spent_ns), advice_percent(advice, spent_ns));
	for (size_t i = 0; done && i < loops.loops.count; i++) {
		/* Its time in Python is told of here. */
		if (loops.loops.items[i].slices == slices && loops.loops.items[i].operators)
			advice_claim(advice, loops.loops.items[i].row);
	}
	view_map_release(&loops.rounds_by_key);
	view_map_release(&loops.loop_of);
	OPS_ARRAY_RELEASE(&loops.rounds);
	OPS_ARRAY_RELEASE(&loops.loops);
	ops_free(loops.in);
	ops_free(loops.quickest_ns);
	ops_free(loops.slicing);
	advice_tally_release(&tally);
	return done;
}

static bool check_rows(struct advice *advice, const struct advice_rule *rule)
{
	return check_loops(advice, rule, true);
}

static bool check_small(struct advice *advice, const struct advice_rule *rule)
{
	return check_loops(advice, rule, false);
}

const struct advice_rule advice_rule_rows = {
	.id = "python-loop-over-rows",
	.title = "A Python loop goes over the rows of a tensor",
	.explanation = "Every round pays for Python, for the dispatch of its operators and for their outputs, and in the "
		       "backward pass for a node each, while the arithmetic of a row takes next to nothing.",
	.advice = "Say it for all rows at once: broadcasting, torch.where, gather/scatter, cumsum, bmm, torch.vmap. Check: the "
		  "operators' number in the step falls.",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.vmap.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.severity_max = ADVICE_HIGH,
	.check = check_rows,
};

const struct advice_rule advice_rule_small = {
	.id = "many-small-operators",
	.title = "Many small operators in a loop",
	.explanation = "The call of an operator costs microseconds whatever its size; these do hardly anything else.",
	.advice = "Stack the tensors and do it once, use torch._foreach_… functions, or let torch.compile fuse them. Check: the "
		  "operators' number in the step falls.",
	.link = "https://docs.pytorch.org/docs/stable/torch.compiler.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON,
	.severity_max = ADVICE_HIGH,
	.check = check_small,
};
