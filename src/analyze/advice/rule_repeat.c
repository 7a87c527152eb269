/* SPDX-License-Identifier: Apache-2.0
 *
 * The same operator on the same values, again in the same step. Values are numbered: what an operator allocates or writes has
 * the number of that operator on those inputs, so that chains repeat as a whole; memory that changes hands gets a new one.
 * That takes shapes (with the scalars) and the storages behind tensors, hence shapes and memory recorded.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

struct numbering {
	struct view_map values;  /* storage to index into `numbers` */
	OPS_ARRAY(uint64_t) numbers;
	struct view_map seen;    /* what was computed in this step */
	uint8_t *random;
	uint8_t *makes;          /* by name: makes a tensor of numbers alone */
	int64_t *in_calls;       /* by row: time of the repeated operators in it */
	int64_t ns;
	uint64_t repeated;
	uint64_t fresh;          /* the last number given to what nobody computed */
	size_t next;             /* memory record */
};

static uint64_t mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15u;
	return a ^ a >> 29;
}

static bool set_value(struct numbering *numbering, uint64_t address, uint64_t number)
{
	uint32_t *slot = view_map_slot(&numbering->values, address, (uint32_t)numbering->numbers.count);
	uint64_t *value;

	if (!slot)
		return false;
	if (*slot < numbering->numbers.count) {
		numbering->numbers.items[*slot] = number;
		return true;
	}
	value = OPS_ARRAY_PUSH(&numbering->numbers);
	if (value)
		*value = number;
	return value != NULL;
}

static uint64_t value_of(const struct numbering *numbering, uint64_t address)
{
	uint32_t slot = view_map_find(&numbering->values, address);

	return slot == OPS_NONE ? address : numbering->numbers.items[slot];
}

/* Whether a tensor is all of its storage: of two views of one storage nobody says whether they are of the same part. */
static bool is_whole(const struct advice *advice, uint32_t row, const struct ops_input *input, size_t *i)
{
	struct ops_storage storage;

	if (input->tag != OPS_INPUT_TENSOR && input->tag != OPS_INPUT_TENSOR_PLAIN)
		return true;
	if (!advice_input_elements(input))
		return true; /* without memory */
	if (!ops_event_storage(advice->trace, row, (*i)++, &storage))
		return false;
	return ops_product(advice_input_elements(input), (int64_t)advice_dtype_bytes(input->dtype)) >= (int64_t)storage.bytes;
}

static bool are_whole(const struct advice *advice, uint32_t row)
{
	struct ops_string list = ops_trace_inputs(advice->trace, advice->events->inputs[row]);
	struct ops_input_cursor cursor = ops_inputs_open(list.bytes, list.size), items;
	struct ops_input input, item;
	bool whole = true;
	size_t i = 0;

	while (whole && ops_inputs_next(&cursor, &input)) {
		whole = is_whole(advice, row, &input, &i);
		if (input.tag == OPS_INPUT_TENSOR_LIST)
			for (items = ops_input_items(&input); whole && ops_inputs_next(&items, &item);)
				whole = is_whole(advice, row, &item, &i);
	}
	return whole;
}

/* Operator, shapes and scalars, values; 0 when that does not say all. */
static uint64_t key_of(const struct numbering *numbering, const struct advice *advice, uint32_t row, bool *ret_writes)
{
	uint64_t key = mix(advice->events->name[row] + 1, advice->events->inputs[row]);
	struct ops_storage storage;
	size_t i = 0;

	*ret_writes = false;
	if (advice->events->inputs[row] == OPS_NONE)
		return 0;
	for (; ops_event_storage(advice->trace, row, i, &storage); i++) {
		key = mix(key, value_of(numbering, storage.address));
		*ret_writes |= storage.written;
	}
	return (i || numbering->makes[advice->events->name[row]]) && are_whole(advice, row) ? key | 1 : 0;
}

/* What is allocated and freed until `time_ns`: by the operator at `row` its results, by anyone else something new. */
static bool follow_memory(struct numbering *numbering, const struct advice *advice, int64_t time_ns, uint64_t key)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);
	uint64_t nth = 0;

	for (; numbering->next < count && records[numbering->next].time_ns <= time_ns; numbering->next++) {
		uint64_t number = key && records[numbering->next].bytes > 0 ? mix(key, ++nth) : --numbering->fresh;

		if (!set_value(numbering, records[numbering->next].address, number))
			return false;
	}
	return true;
}

static bool write_values(struct numbering *numbering, const struct advice *advice, uint32_t row, uint64_t key)
{
	struct ops_storage storage;

	for (size_t i = 0; ops_event_storage(advice->trace, row, i, &storage); i++)
		if (storage.written && !set_value(numbering, storage.address, mix(key, ~i)))
			return false;
	return true;
}

/* Calls in one another from the program's function that repeats it down to the operator. */
#define DEPTH_MAX 128

/* At its line; when another call of the same function computed it before, at the lines of the calls that lead to this one,
 * too, up to the function that both come from: any of them may be the one that should not be. */
static void tell(struct numbering *numbering, struct advice *advice, uint32_t row, uint32_t before, struct advice_tally *tally)
{
	int64_t ns = advice_claim(advice, row);
	uint32_t last = advice->site[row], call = advice->caller[row];

	numbering->ns = ops_sum(numbering->ns, ns);
	numbering->in_calls[row] = advice_ns(advice, row);
	numbering->repeated++;
	advice_tally_add(tally, advice, row, ns);
	/* A row stands behind all that it is in: what began before the first time holds both. */
	for (int i = 0; i < DEPTH_MAX && call != OPS_NONE && call > before; i++, call = advice->caller[call]) {
		if (advice->site[call] == OPS_NONE || advice->site[call] == last)
			continue;
		last = advice->site[call];
		advice_tally_add(tally, advice, call, ns);
	}
}

static bool take(struct numbering *numbering, struct advice *advice, uint32_t row, struct advice_tally *tally)
{
	uint64_t key;
	uint32_t *before;
	bool writes, random = numbering->random[advice->events->name[row]] != 0;

	if (!follow_memory(numbering, advice, advice->events->start_ns[row], 0))
		return false;
	key = key_of(numbering, advice, row, &writes);
	if (random || !key)
		key = --numbering->fresh;
	if (!follow_memory(numbering, advice, advice->events->end_ns[row], key))
		return false;
	if (writes)
		return write_values(numbering, advice, row, key);
	/* What makes a tensor of numbers may make one to be written into. */
	random |= numbering->makes[advice->events->name[row]] != 0;
	if (random || !advice_counts(advice, row) || (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_ROW_LOOP)))
		return true; /* a loop over rows is told of as a whole */
	/* Once a step is no repetition. */
	before = view_map_slot(&numbering->seen, mix(key, advice->step_of[row]), row);
	if (!before)
		return false;
	if (*before != row && !advice_is_claimed(advice, row))
		tell(numbering, advice, row, *before, tally);
	return true;
}

/* A call of Python's in which nearly all operators are repeated is itself repeated: the outermost of them. */
#define WHOLE 0.9

static void claim_calls(struct numbering *numbering, struct advice *advice, struct advice_tally *tally)
{
	advice_settle(advice);
	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		int64_t rest_ns;

		advice->claimed[row] |= parent != OPS_NONE && advice->claimed[parent];
		if (advice->events->kind[row] != OPS_EVENT_PYTHON_FUNCTION || !advice_counts(advice, row) || advice->claimed[row] ||
		    !numbering->in_calls[row] || (double)numbering->in_calls[row] < WHOLE * (double)advice->operator_ns[row])
			continue;
		rest_ns = advice_left_ns(advice, row) - (advice->operator_ns[row] - numbering->in_calls[row]);
		rest_ns = rest_ns > 0 ? rest_ns : 0;
		numbering->ns = ops_sum(numbering->ns, rest_ns);
		/* That is the place to mend. */
		advice_tally_add(tally, advice, row, ops_sum(numbering->in_calls[row], rest_ns));
		advice_claim(advice, row);
	}
}

static bool check(struct advice *advice, const struct advice_rule *rule)
{
	static const char *const patterns[] = {"*rand*", "*dropout*", "*bernoulli*", "*normal_*", "*uniform*", "*multinomial*",
	                                       "*exponential*", "*item*", "*_local_scalar*", "aten::empty*", "*_set_*", NULL};
	static const char *const making[] = {"aten::arange", "aten::linspace", "aten::zeros", "aten::ones", "aten::full", "aten::eye",
	                                     "aten::tril_indices", "aten::triu_indices", "aten::scalar_tensor", NULL};
	struct numbering numbering = {.random = advice_names(advice, patterns), .makes = advice_names(advice, making)};
	struct advice_tally tally = {0};
	bool done = numbering.random && numbering.makes && advice_tally_init(&tally, advice);

	numbering.in_calls = ops_alloc_zeroed(advice->events->count + 1, sizeof(*numbering.in_calls));
	done = done && numbering.in_calls;

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR))
			done = take(&numbering, advice, row, &tally);
	for (uint32_t row = (uint32_t)advice->events->count; done && row-- > 0;)
		if (advice->events->parent[row] != OPS_NONE)
			numbering.in_calls[advice->events->parent[row]] = ops_sum(numbering.in_calls[advice->events->parent[row]],
			                                                          numbering.in_calls[row]);
	if (done)
		claim_calls(&numbering, advice, &tally);
	done = done && advice_report_add(advice, rule, &tally,
	                                 (struct advice_gain){.ns = (double)numbering.ns, .confidence = ADVICE_LIKELY},
	                                 "%s operators a step compute what the same operator has computed of the same values in "
	                                 "the same step, in %.3f ms (%.1f %%). Gain: all of that, with the backward pass and "
	                                 "the calls that do nothing else.",
	                                 advice_average(advice, numbering.repeated).text,
	                                 advice_step_ms(advice, (double)numbering.ns),
	                                 advice_percent(advice, (double)numbering.ns));
	view_map_release(&numbering.values);
	view_map_release(&numbering.seen);
	OPS_ARRAY_RELEASE(&numbering.numbers);
	ops_free(numbering.random);
	ops_free(numbering.makes);
	ops_free(numbering.in_calls);
	advice_tally_release(&tally);
	return done;
}

const struct advice_rule advice_rule_repeat = {
	.id = "repeated-work",
	.title = "The same is computed again and again",
	.explanation = "The operators get the very tensors that they got before, which nobody has changed: masks, embeddings of "
		       "positions, norms and transposed copies that each layer or sample makes anew.",
	.advice = "Compute it once before the loop and hand it on, or keep it as a buffer of the module when it is the same in all "
		  "steps. Check: fewer calls at the line.",
	.code = "weights = normalise(graph)  # once, before the loop over layers",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.severity_max = ADVICE_HIGH,
	.check = check,
};
