/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops that pass over the same large tensor in each iteration, with one row or one number at a time.
 *
 *     for q in range(200):  similarity(queries[q : q + 1], passages)     reads all passages 200 times
 *     for k in range(600):  labels == k                                  reads all labels 600 times
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

#define ITERATIONS_MIN 16
#define STEPS_MIN 4            /* minimum number of steps that count as iterations: they are long */
#define BYTES_MIN (64 << 10)   /* minimum size of the tensor that all iterations read */
#define OTHERS_MAX 0.125       /* maximum size of the other inputs, as a share of it */
#define ROWS_MAX 4             /* maximum number of rows of the other factor of a product; with more, a product is efficient */
#define RESULT_MIN 0.0625      /* operators on results of at least this share of it belong to the pass */
#define ONCE_SAVES 0.5         /* gain: a pass for all rows reads the tensor once, but computes as much */

struct pass_search {
	uint32_t *iteration; /* by row in the present loop, from 1; 0: outside of it */
	uint8_t *dependent;  /* by row: needs a result of an earlier iteration */
	uint32_t *over;      /* by row: the value that it passes over, or OPS_NONE */
	uint8_t *seen;       /* by row: counted for an outer loop */
	OPS_ARRAY(uint32_t) counts; /* by value of a loop: number of reading operators */
	struct ops_map values;
};

/* Returns the number of rows of the smaller factor of a product, or 1 for other operators; 0: unknown. */
static int64_t rows_of_other(const struct advice *advice, uint32_t node)
{
	size_t first = advice_operator(advice, node)->where[0];
	struct ops_input input;
	int64_t rows = INT64_MAX;

	if (advice_kind(advice, node) != OPERATOR_PRODUCT)
		return advice_kind(advice, node) == OPERATOR_CONVOLUTION ? 0 : 1;
	for (size_t i = first; i < first + 2; i++) {
		int64_t longest = 1, of_input;

		if (!advice_input(advice, node, i, &input) || !ops_input_is_tensor(input.tag))
			return 0;
		for (size_t k = 0; k < input.n; k++)
			longest = ops_input_int(&input, k) > longest ? ops_input_int(&input, k) : longest;
		of_input = advice_input_elements(&input) / longest;
		rows = of_input < rows ? of_input : rows;
	}
	return rows;
}

static bool is_one_at_a_time(const struct advice *advice, uint32_t node)
{
	int64_t rows = rows_of_other(advice, node);

	return rows >= 1 && rows <= ROWS_MAX;
}

/* Returns the value made before the loop that a node mainly reads; OPS_NONE if it mainly reads something else. */
static uint32_t passes_over(const struct advice *advice, uint32_t node, uint32_t begin)
{
	const struct data_flow *flow = advice->flow;
	const struct data_use *most = NULL;
	int64_t others = 0;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];

		if (use->kind == DATA_UPDATES || use->kind == DATA_OVERWRITES)
			return OPS_NONE;
		if (use->kind == DATA_READS && (!most || use->bytes > most->bytes)) {
			others = ops_sum(others, most ? most->bytes : 0);
			most = use;
		} else if (use->kind >= DATA_SELECTS) {
			others = ops_sum(others, use->bytes);
		}
	}
	if (!most || most->bytes < BYTES_MIN || (double)others > OTHERS_MAX * (double)most->bytes ||
	    (flow->values[most->value].node != OPS_NONE && flow->values[most->value].node >= begin))
		return OPS_NONE;
	return is_one_at_a_time(advice, node) ? most->value : OPS_NONE;
}

/* Decides for a node of the loop whether it depends on an earlier iteration, and what it passes over. */
static void classify_node(struct pass_search *search, const struct advice *advice, const struct advice_loop *loop, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	uint32_t inherited = OPS_NONE;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];
		uint32_t maker = flow->values[use->value].node;

		/* A tensor of values from Python is new each time, and its memory may be that of an earlier one. */
		if (use->kind < DATA_SELECTS || maker == OPS_NONE || maker < loop->begin || !search->iteration[maker] ||
		    ops_string_is(advice_name(advice, maker), "aten::lift_fresh"))
			continue;
		search->dependent[node] |= search->iteration[maker] != search->iteration[node] || search->dependent[maker];
		if (search->over[maker] != OPS_NONE && (double)use->bytes >= RESULT_MIN * (double)flow->values[search->over[maker]].bytes)
			inherited = search->over[maker];
	}
	search->over[node] = search->dependent[node] ? OPS_NONE : passes_over(advice, node, loop->begin);
	if (search->over[node] == OPS_NONE && !search->dependent[node] && is_one_at_a_time(advice, node))
		search->over[node] = inherited;
}

static bool count_read(struct pass_search *search, uint32_t value)
{
	uint32_t *count = OPS_ARRAY_AT(&search->counts, ops_map_number(&search->values, value));

	if (count)
		++*count;
	return count != NULL;
}

static bool is_in_loop(const struct advice *advice, const struct advice_loop *loop, uint32_t row)
{
	return advice->events->track[row] == advice->events->track[loop->begin] && advice->flow->memory.rows.node[row] == row &&
	       advice_is_operator(advice, row) && !(advice->flow->memory.rows.context[row] & MEMORY_IN_BACKWARD);
}

/* Adds the operators from the beginning of a loop to the row `end` that pass over what half of its iterations pass over, or more. */
static void add_passes(struct pass_search *search, struct advice_result *result, const struct advice_loop *loop, uint32_t end)
{
	const struct advice *advice = result->advice;

	for (uint32_t row = loop->begin; row < end; row++) {
		uint32_t value = search->over[row];

		search->iteration[row] = 0;
		if (value == OPS_NONE || search->seen[row] || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
		    search->counts.items[ops_map_number(&search->values, value)] < loop->iterations / 2)
			continue;
		search->seen[row] = 1;
		advice_add_share(result, row, ONCE_SAVES * (1 - 1.0 / loop->iterations) * advice_work_share(advice, row));
	}
}

/* Searches the iterations of a loop. */
static bool search_loop(struct pass_search *search, struct advice_result *result, const struct advice_loop *loop)
{
	const struct advice *advice = result->advice;
	const struct ops_events *events = advice->events;
	bool of_steps = loop->parent == OPS_NONE;
	uint32_t begun = 0, end = loop->begin;
	bool done = true;

	search->counts.count = 0;
	ops_map_release(&search->values);
	for (; done && end < events->count && events->start_ns[end] < loop->end_ns; end++) {
		begun += !of_steps && advice_may_begin(advice, loop, end);
		/* A thread that runs in parallel may make the next input, which is not a result of the iteration. */
		search->iteration[end] = !advice_counts(advice, end) ? 0 : of_steps ? advice->step_of[end] + 1 : advice_iteration(loop, begun);
		search->dependent[end] = 0;
		search->over[end] = OPS_NONE;
		if (!search->iteration[end] || !is_in_loop(advice, loop, end))
			continue;
		classify_node(search, advice, loop, end);
		if (of_steps && advice_kind(advice, end) != OPERATOR_PRODUCT)
			search->over[end] = OPS_NONE;
		if (search->over[end] != OPS_NONE)
			done = count_read(search, search->over[end]);
	}
	if (done)
		add_passes(search, result, loop, end);
	return done;
}

/* The steps of a program without training are the iterations of one loop: each computes with one sample or request. Only products are
 * passes there. */
static struct advice_loop loop_of_steps(const struct advice *advice)
{
	struct advice_loop loop = {.parent = OPS_NONE, .end_ns = INT64_MAX, .iterations = (uint32_t)advice->step_count};

	while (loop.begin < advice->events->count && !(advice_counts(advice, loop.begin) && advice_is_operator(advice, loop.begin)))
		loop.begin++;
	return loop;
}

static const char batch[] = "Collect several samples or requests and compute them as one batch, if none needs the result of another. ";

static bool rule_passes_again_find(const struct advice *advice, struct advice_result *result)
{
	size_t count = advice->events->count + 1;
	struct pass_search search = {.iteration = ops_alloc_zeroed(count, sizeof(*search.iteration)), .dependent = ops_alloc_zeroed(count, 1),
	                             .over = ops_alloc_none(count), .seen = ops_alloc_zeroed(count, 1)};
	uint64_t iterations = 0;
	bool done = search.iteration && search.dependent && search.over && search.seen;

	for (size_t i = 0; done && i < advice->loops.count; i++) {
		const struct advice_loop *loop = &advice->loops.items[i];
		uint64_t events = result->tally.events;

		if (loop->small || loop->iterations < ITERATIONS_MIN || !advice_counts(advice, loop->begin))
			continue;
		done = search_loop(&search, result, loop);
		iterations += result->tally.events > events ? loop->iterations : 0;
	}
	if (done && iterations) {
		done = advice_report_costs(result, "Loops of %s in each step pass over the same large tensor in each of them, for one row or number at a "
		                                   "time, with %s. One pass for all saves about %s.",
		                           advice_counted(advice, iterations, "iteration", "iterations").text,
		                           advice_events(result, "operator", "operators").text, advice_cost(result).text);
	} else if (done && advice->real_steps && advice->step_count >= STEPS_MIN && !advice_trains(advice)) {
		struct advice_loop steps = loop_of_steps(advice);

		result->detail = batch;
		result->confidence = ADVICE_UNSURE;
		result->bound = ADVICE_AT_LEAST; /* all calls of a step are those of a batch, too */
		done = search_loop(&search, result, &steps) &&
		       advice_report_costs(result, "Each step passes over the same large tensors, such as the weights of layers, for one row: %s. One pass for several "
		                                   "steps saves about %s.", advice_events(result, "product", "products").text, advice_cost(result).text);
	}
	OPS_ARRAY_RELEASE(&search.counts);
	ops_map_release(&search.values);
	ops_free(search.iteration);
	ops_free(search.dependent);
	ops_free(search.over);
	ops_free(search.seen);
	return done;
}

const struct advice_rule advice_rule_passes_again = {
	.id = "pass-for-each-row",
	.title = "A loop passes over a large tensor for one row at a time",
	.condition = "In half of the 16 or more iterations of a loop, or in all, an operator reads the same tensor of 64 kB or more, made before the loop, and "
		     "its other inputs have at most an eighth of its size; the other factor of a product has at most four rows. Operators that need "
		     "a result of an earlier iteration do not count. In programs without such loops and without training, four steps or more count as the iterations, with "
		     "their products, and the gain is a lower bound.",
	.gain = "half of the time of these operators, and of those on their large results, for all iterations but one",
	.explanation = "Each iteration reads the complete tensor from memory, for one row, class or query. One operator for all of them reads it once.",
	.advice = "Compute for all rows at once, or for blocks of rows: a matrix product in place of products with single rows, torch.cdist, normalised rows and "
		  "a product in place of cosine_similarity, index_add_, scatter_reduce_ or bincount in place of a mask for each class. To check: fewer "
		  "operators at the line.",
	.code = "scores = F.normalize(queries) @ F.normalize(passages).T  # in place of a loop over queries",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_add_.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_PYTHON | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_ROW_LOOPS,
	.confidence = ADVICE_LIKELY,
	.severity_max = ADVICE_MEDIUM, /* the result for all rows may not fit in memory */
	.find = rule_passes_again_find,
};
