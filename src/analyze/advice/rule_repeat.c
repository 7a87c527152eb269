/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds an operator that runs again on the same values in the same step, or in each step, such as a mask, a table of
 * positions, or a norm of data that no step changes. Values are numbered: the outputs of an operator get a number
 * determined by the operator and its inputs, so complete chains repeat. Reused memory gets a new number. This requires
 * shapes (with scalars) and the storages of tensors, so shapes and memory must be recorded.
 */
#include <stdio.h>

#include "analyze/advice/advice.h"
#include "analyze/advice/advice_parts.h"
#include "base/alloc.h"

/* Contents of a storage. */
struct value {
	uint64_t number;
	uint32_t made_by; /* the operator that created it from constants alone, until it is reported; OPS_NONE: none */
	bool constant;    /* the result of such operators: repeating them gives the same value */
	bool lasting;     /* no other contents have the same number, also in other steps */
};

/* Nested views of a storage by the latest operators: `table[:, 0::2] = x` writes through such a chain. */
struct chain {
	uint64_t address;
	uint64_t key;
};

#define CHAINS 4 /* number of storages at once: the written one, and those read for it */

/* The passes over the rows: which keys occur in several steps, how much of the steps they take, and the findings. */
enum pass { LEARN, MEASURE, ADD };

struct numbering {
	struct ops_map slots;     /* from storage to index into `values` */
	OPS_ARRAY(struct value) values;
	struct ops_map seen;      /* values computed in this step */
	struct ops_map lasting;   /* the step in which a result was first computed, or MANY */
	struct chain chains[CHAINS];
	struct advice_parts parts;
	enum pass pass;
	bool foreign;              /* steps use memory that no allocator of torch reports, and whose contents may change */
	bool trial;                /* steps do little else than repeat: their input is that of a trial */
	int64_t lasting_ns;        /* time of operators that compute in each step what they computed in the step before */
	int64_t operators_ns;      /* time of all operators in steps */
	int64_t *loop_ns;          /* by loop: time of operators in it that repeat an earlier one of the step, with their backward pass */
	uint8_t *random;           /* by name: the result does not follow from the inputs that recordings show */
	uint8_t *makes;            /* by name: creates a tensor from numbers alone */
	uint8_t *views;            /* by name: its result is a part of its input */
	uint8_t *foreigners;       /* by name: the call makes a tensor in memory that torch did not allocate */
	uint64_t foreign_calls;    /* number of such calls so far; each may have changed the contents of such memory */
	int64_t *in_calls;         /* by row: time of the repeated operators in it */
	int64_t *claimed_in_calls; /* and the part of it that this rule claims */
	int64_t ns;
	uint64_t repeated;
	uint64_t each_step;        /* number of these that repeat one of an earlier step */
	int64_t kept_ns;           /* time of those of them that do not come from constants alone */
	uint64_t fresh;            /* last number assigned to contents of unknown origin */
	size_t next;               /* index of the next memory record */
	int64_t followed_ns;       /* time up to which memory has been followed, and the track whose operator that was for */
	uint32_t followed_track;
};

#define MANY (OPS_NONE - 1)

static uint64_t rule_repeat_mix(uint64_t a, uint64_t b)
{
	a = (a ^ b) * 0x9e3779b97f4a7c15u;
	return a ^ a >> 29;
}

static bool set_value(struct numbering *numbering, uint64_t address, struct value value)
{
	uint32_t *slot = ops_map_slot(&numbering->slots, address, (uint32_t)numbering->values.count);

	if (!slot)
		return false;
	if (*slot < numbering->values.count) {
		numbering->values.items[*slot] = value;
		return true;
	}
	return OPS_ARRAY_APPEND(&numbering->values, value);
}

static struct value rule_repeat_value_of(const struct numbering *numbering, const struct ops_storage *storage)
{
	uint32_t slot;

	/* A Python number is identified by its digest. */
	if (!storage->address)
		return (struct value){storage->bytes, OPS_NONE, true, true};
	slot = ops_map_find(&numbering->slots, storage->address);
	if (slot != OPS_NONE)
		return numbering->values.items[slot];
	/* No allocator of torch has reported it, and no operator has written to it. */
	return (struct value){rule_repeat_mix(storage->address, numbering->foreign_calls), OPS_NONE, false, !numbering->foreign};
}

/* Returns true if a tensor covers its complete storage. Whether two views of a storage cover the same part is
 * unknown. */
static bool is_whole(const struct advice *advice, uint32_t row, const struct ops_input *input, size_t *i)
{
	struct ops_storage storage;

	if (!ops_input_is_tensor(input->tag))
		return true;
	if (!advice_input_elements(input))
		return true; /* without memory */
	if (!ops_event_storage(advice->trace, row, (*i)++, &storage))
		return false;
	return !storage.address ||
	       advice_input_bytes(input) >= (int64_t)storage.bytes;
}

/* Returns true if all tensors do, except for the first `but`. */
static bool are_whole(const struct advice *advice, uint32_t row, size_t but)
{
	struct ops_string list = ops_trace_inputs(advice->trace, advice->events->inputs[row]);
	struct ops_input_cursor cursor = ops_inputs_open(list.bytes, list.size), items;
	struct ops_input input, item;
	bool whole = true;
	size_t i = 0;

	while (whole && ops_inputs_next(&cursor, &input)) {
		whole = is_whole(advice, row, &input, &i) || i <= but;
		if (input.tag == OPS_INPUT_TENSOR_LIST)
			for (items = ops_input_items(&input); whole && ops_inputs_next(&items, &item);)
				whole = is_whole(advice, row, &item, &i);
	}
	return whole;
}

/* Adds the identity of a tensor that is a part of its storage to a key. Returns false if it is unknown. */
static bool repeat_add_part(struct numbering *numbering, const struct advice *advice, uint32_t row, const struct ops_input *input, size_t i, uint64_t *key)
{
	struct ops_storage storage;
	uint64_t part;
	size_t at = i;

	if (is_whole(advice, row, input, &at))
		return true;
	if (!ops_event_storage(advice->trace, row, i, &storage))
		return false;
	part = advice_part_read(&numbering->parts, storage.address, rule_repeat_value_of(numbering, &storage).number, advice_input_elements(input));
	*key = rule_repeat_mix(*key, part);
	return part != 0;
}

/* Adds those of all tensors, except for the first `but`. Returns false if one is unknown. */
static bool repeat_add_parts(struct numbering *numbering, const struct advice *advice, uint32_t row, size_t but, uint64_t *key, uint64_t *ret_first)
{
	struct ops_string list = ops_trace_inputs(advice->trace, advice->events->inputs[row]);
	struct ops_input_cursor cursor = ops_inputs_open(list.bytes, list.size), items;
	struct ops_input input, item;
	bool known = true;
	size_t i = 0;

	*ret_first = 0;
	while (ops_inputs_next(&cursor, &input)) {
		bool is_list = input.tag == OPS_INPUT_TENSOR_LIST;

		items = ops_input_items(&input);
		item = input;
		while (is_list ? ops_inputs_next(&items, &item) : ops_input_is_tensor(input.tag)) {
			uint64_t part = 0;

			if (advice_input_elements(&item)) {
				bool found = repeat_add_part(numbering, advice, row, &item, i, &part);

				known &= found || i < but;
				*ret_first = i ? *ret_first : found ? part : UINT64_MAX;
				*key = i < but ? *key : rule_repeat_mix(*key, part);
				i++;
			}
			if (!is_list)
				break;
		}
	}
	return known;
}

/* Returns a hash of operator, shapes, scalars and values; 0 if these do not determine the result. */
static uint64_t rule_repeat_key_of(struct numbering *numbering, const struct advice *advice, uint32_t row, bool *ret_writes,
                                   struct value *ret_result, uint64_t *ret_first)
{
	uint64_t key = rule_repeat_mix(advice->events->name[row] + 1, advice->events->inputs[row]), part = 0;
	struct ops_storage storage;
	size_t i = 0;

	*ret_writes = false;
	*ret_first = UINT64_MAX;
	*ret_result = (struct value){0, OPS_NONE, true, true};
	if (advice->events->inputs[row] == OPS_NONE)
		return 0;
	for (; ops_event_storage(advice->trace, row, i, &storage); i++) {
		struct value value = rule_repeat_value_of(numbering, &storage);

		key = rule_repeat_mix(key, value.number);
		ret_result->constant &= value.constant;
		ret_result->lasting &= value.lasting;
		*ret_writes |= storage.written;
		/* The operator writes to a known part. */
		for (size_t k = 0; !i && storage.written && k < CHAINS; k++)
			if (numbering->chains[k].address == storage.address)
				part = numbering->chains[k].key;
	}
	if (!i && !numbering->makes[advice->events->name[row]])
		return 0;
	return repeat_add_parts(numbering, advice, row, part ? 1 : 0, &key, ret_first) ? rule_repeat_mix(key, part) | 1 : 0;
}

/* Follows views that an operator may create of its first input, which is the part `first`; UINT64_MAX: unknown. */
static bool follow_parts(struct numbering *numbering, const struct advice *advice, uint32_t row, uint64_t first)
{
	struct ops_storage storage;

	return first == UINT64_MAX || !ops_event_storage(advice->trace, row, 0, &storage) || !storage.address ||
	       advice_parts_follow(&numbering->parts, advice, row, storage.address, rule_repeat_value_of(numbering, &storage).number, first);
}

/* A chain ends with the first operator that is not a view. */
static void follow_views(struct numbering *numbering, const struct advice *advice, uint32_t row)
{
	uint64_t key = rule_repeat_mix(advice->events->name[row] + 1, advice->events->inputs[row]);
	struct ops_storage storage;
	struct chain *free = NULL;

	if (!numbering->views[advice->events->name[row]] || advice->events->inputs[row] == OPS_NONE ||
	    !ops_event_storage(advice->trace, row, 0, &storage) || !storage.address) {
		for (size_t k = 0; k < CHAINS; k++)
			numbering->chains[k] = (struct chain){0};
		return;
	}
	for (size_t k = 0; k < CHAINS; k++) {
		struct chain *chain = &numbering->chains[k];

		if (chain->address == storage.address) {
			chain->key = rule_repeat_mix(chain->key, key);
			return;
		}
		free = !free && !chain->address ? chain : free;
	}
	/* A view of an earlier view has unknown contents. */
	if (free && are_whole(advice, row, 0))
		*free = (struct chain){storage.address, key};
}

/* Follows allocations up to `time_ns`: those of the operator at `row` are its results, others are new. */
static bool rule_repeat_follow_memory(struct numbering *numbering, const struct advice *advice, uint32_t track, int64_t time_ns,
                                      struct value result)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);
	uint64_t nth = 0;

	if (time_ns > numbering->followed_ns) {
		numbering->followed_ns = time_ns;
		numbering->followed_track = track;
	}
	for (; numbering->next < count && records[numbering->next].time_ns <= time_ns; numbering->next++) {
		struct value value = {--numbering->fresh, OPS_NONE, false, true};

		if (result.number && records[numbering->next].bytes > 0)
			value = (struct value){rule_repeat_mix(result.number, ++nth), result.made_by, result.constant, result.lasting};
		if (!set_value(numbering, records[numbering->next].address, value))
			return false;
	}
	return true;
}

/* A constant written into a constant gives another constant, created by the same operator. */
static bool write_values(struct numbering *numbering, const struct advice *advice, uint32_t row, const struct value *result)
{
	struct ops_storage storage;

	for (size_t i = 0; ops_event_storage(advice->trace, row, i, &storage); i++) {
		struct value value = {rule_repeat_mix(result->number, ~i),
		                      result->constant ? rule_repeat_value_of(numbering, &storage).made_by : OPS_NONE, result->constant,
		                      result->lasting};

		if (storage.written && !set_value(numbering, storage.address, value))
			return false;
	}
	return true;
}

/* Maximum depth of calls from the program's function that repeats the operator down to the operator. */
#define DEPTH_MAX 128

static void rule_repeat_add(struct numbering *numbering, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	int64_t ns = advice_claim(result, row);

	numbering->ns = ops_sum(numbering->ns, ns);
	numbering->in_calls[row] = advice_ns(advice, row);
	numbering->claimed_in_calls[row] = advice_left_ns(advice, row);
	numbering->repeated++;
	advice_add(result, row, ns);
}

/* The operators that created its inputs from constants were in vain as well. */
static void add_makers(struct numbering *numbering, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct ops_storage storage;

	for (size_t i = 0; ops_event_storage(advice->trace, row, i, &storage); i++) {
		uint32_t slot = storage.address ? ops_map_find(&numbering->slots, storage.address) : OPS_NONE;
		struct value *value = slot == OPS_NONE ? NULL : &numbering->values.items[slot];

		if (value && value->made_by != OPS_NONE && advice_counts(advice, value->made_by) &&
		    !advice_is_claimed(result, value->made_by))
			rule_repeat_add(numbering, result, value->made_by);
		if (value)
			value->made_by = OPS_NONE;
	}
}

/* Adds the row at its line. If another call of the same function computed it before, also adds it at the lines of the
 * calls that lead to this one, up to the function that both come from, since any of these calls may be superfluous. */
static void add_repeat(struct numbering *numbering, struct advice_result *result, uint32_t row, uint32_t before)
{
	const struct advice *advice = result->advice;
	int64_t ns = ops_sum(advice_left_ns(advice, row), advice_backward_left_ns(advice, row));
	uint32_t last = advice->site[row], call = advice->caller[row];

	rule_repeat_add(numbering, result, row);
	add_makers(numbering, result, row);
	/* A row comes after all rows around it, so a call that began before the first computation contains both. */
	for (int i = 0; i < DEPTH_MAX && call != OPS_NONE && call > before; i++, call = advice->caller[call]) {
		if (advice->site[call] == OPS_NONE || advice->site[call] == last)
			continue;
		last = advice->site[call];
		advice_add(result, call, ns);
	}
}

/* Counts the steps in which a result is computed. Returns false if out of memory. */
static bool learn(struct numbering *numbering, const struct advice *advice, uint32_t row, uint64_t key)
{
	uint32_t *step = ops_map_slot(&numbering->lasting, key, advice->step_of[row]);

	if (step && *step != advice->step_of[row])
		*step = MANY;
	return step != NULL;
}

/* An operator on fewer elements takes no longer than its call, which keeping its result does not always save. */
#define ELEMENTS_MIN 4096

static bool is_on_many_elements(const struct advice *advice, uint32_t row)
{
	struct ops_input input;

	for (size_t i = 0; advice_input(advice, row, i, &input); i++)
		if (advice_input_elements(&input) >= ELEMENTS_MIN)
			return true;
	return false;
}

/* Returns whether an operator computes in each step what it could compute once. What is part of a graph has to be in that of each
 * step. */
static bool can_be_kept(const struct numbering *numbering, const struct advice *advice, uint32_t row, const struct value *value)
{
	return value->constant || (!numbering->trial && !advice->backward_ns[row] && is_on_many_elements(advice, row));
}

/* Minimum share of the time of a loop over rows that repeats the same work. The rest is reported by the rule for such loops. */
#define LOOP_SHARE_MIN 0.4

/* Returns true for an operator in a loop over rows that mostly does something else than repeat the same work. */
static bool is_of_row_loop(const struct numbering *numbering, const struct advice *advice, uint32_t row)
{
	uint32_t index = advice->loop_of[row];
	const struct advice_loop *loop;

	if (!(advice->zone[row] & ADVICE_IN_ROW_LOOP) || index == OPS_NONE)
		return false;
	loop = &advice->loops.items[index];
	return (double)numbering->loop_ns[index] < LOOP_SHARE_MIN * (double)ops_sum(loop->span_ns, loop->backward_ns);
}

/* Adds up what an operator takes from the steps because it repeats an earlier one. */
static bool measure(struct numbering *numbering, const struct advice *advice, uint32_t row, uint64_t key, bool each_step)
{
	int64_t ns = ops_sum(advice_ns(advice, row), advice->backward_ns[row]);
	uint32_t *before;

	if (each_step)
		numbering->lasting_ns = ops_sum(numbering->lasting_ns, ns);
	if (!(advice->zone[row] & ADVICE_IN_ROW_LOOP) || advice->loop_of[row] == OPS_NONE)
		return true;
	before = ops_map_slot(&numbering->seen, rule_repeat_mix(key, advice->step_of[row]), row);
	if (before && *before != row)
		numbering->loop_ns[advice->loop_of[row]] = ops_sum(numbering->loop_ns[advice->loop_of[row]], ns);
	return before != NULL;
}

/* Finds an operator whose results were computed before, and adds it. */
static bool find_earlier(struct numbering *numbering, struct advice_result *result, uint32_t row, uint64_t key, const struct value *value)
{
	const struct advice *advice = result->advice;
	uint32_t *before;
	bool each_step;

	if (!advice_counts(advice, row) || (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER)))
		return true;
	if (numbering->pass == LEARN)
		return !value->lasting || learn(numbering, advice, row, key);
	/* An operator that runs once per step is a repetition only if no step changes the result. */
	each_step = value->lasting && ops_map_find(&numbering->lasting, key) == MANY;
	if (numbering->pass == MEASURE)
		return measure(numbering, advice, row, key, each_step);
	if (is_of_row_loop(numbering, advice, row))
		return true;
	before = ops_map_slot(&numbering->seen, rule_repeat_mix(key, advice->step_of[row]), row);
	if (!before)
		return false;
	if (advice_is_claimed(result, row))
		return true;
	if (*before != row) {
		add_repeat(numbering, result, row, *before);
	} else if (each_step && can_be_kept(numbering, advice, row, value)) {
		numbering->each_step++;
		numbering->kept_ns = ops_sum(numbering->kept_ns, value->constant ? 0 : advice_left_ns(advice, row));
		add_repeat(numbering, result, row, row);
	}
	return true;
}

static bool rule_repeat_follow(struct numbering *numbering, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	uint64_t key, first;
	struct value value;
	bool writes, makes = numbering->makes[advice->events->name[row]] != 0;
	uint32_t track = advice->events->track[row];
	/* What another thread did to memory before an operator that overlaps with it is unknown. */
	bool random = numbering->random[advice->events->name[row]] != 0 ||
	              (advice->events->start_ns[row] < numbering->followed_ns && track != numbering->followed_track);

	if (!rule_repeat_follow_memory(numbering, advice, track, advice->events->start_ns[row], (struct value){0, OPS_NONE, false, false}))
		return false;
	key = rule_repeat_key_of(numbering, advice, row, &writes, &value, &first);
	follow_views(numbering, advice, row);
	if (!follow_parts(numbering, advice, row, first))
		return false;
	if (random || !key) {
		key = --numbering->fresh;
		value.constant = false;
		value.lasting = true;
	}
	value.number = key;
	value.made_by = makes ? row : OPS_NONE;
	if (!rule_repeat_follow_memory(numbering, advice, track, advice->events->end_ns[row], value))
		return false;
	if (writes && !write_values(numbering, advice, row, &value))
		return false;
	if (numbering->pass == MEASURE && advice_counts(advice, row))
		numbering->operators_ns = ops_sum(numbering->operators_ns, advice_ns(advice, row));
	/* A new tensor of constants may be a buffer to write into. */
	return random || makes || (writes && !value.constant) || find_earlier(numbering, result, row, key, &value);
}

static bool go_through(struct numbering *numbering, struct advice_result *result, enum pass pass)
{
	const struct advice *advice = result->advice;
	bool done = true;

	numbering->pass = pass;
	numbering->next = 0;
	numbering->followed_ns = INT64_MIN;
	numbering->values.count = 0;
	numbering->fresh = numbering->foreign_calls = 0; /* the same numbers in each pass */
	ops_map_release(&numbering->seen);
	ops_map_release(&numbering->slots);
	advice_parts_release(&numbering->parts);
	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		numbering->foreign_calls += numbering->foreigners[advice->events->name[row]] > 0;
		if (advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR))
			done = rule_repeat_follow(numbering, result, row);
	}
	return done;
}

/* A Python call in which nearly all operators are repeated is itself repeated. The outermost such call is reported. A call that takes
 * many times as long as these operators and their calls in Python computes something else. */
#define WHOLE 0.9
#define CALL_RATIO_MAX 8

static void claim_calls(struct numbering *numbering, struct advice_result *result)
{
	const struct advice *advice = result->advice;

	for (uint32_t row = 0; row < advice->events->count; row++) {
		uint32_t parent = advice->events->parent[row];
		int64_t rest_ns;

		result->claimed[row] |= parent != OPS_NONE && result->claimed[parent];
		if (advice->events->kind[row] != OPS_EVENT_PYTHON_FUNCTION || !advice_counts(advice, row) || advice_is_claimed(result, row) ||
		    !numbering->in_calls[row] || (double)numbering->in_calls[row] < WHOLE * (double)advice->operator_ns[row])
			continue;
		rest_ns = advice_left_ns(advice, row) - numbering->claimed_in_calls[row] -
		          (advice->operator_ns[row] - numbering->in_calls[row]);
		rest_ns = rest_ns > 0 ? rest_ns : 0;
		if (rest_ns > CALL_RATIO_MAX * numbering->in_calls[row])
			continue;
		numbering->ns = ops_sum(numbering->ns, rest_ns);
		/* The call is the place to change. */
		advice_add(result, row, ops_sum(numbering->in_calls[row], rest_ns));
		advice_claim_rest(result, row);
	}
}

/* Adds the times of rows to those of the calls around them. */
static void rule_repeat_sum_up(const struct advice *advice, int64_t *ns)
{
	for (uint32_t row = (uint32_t)advice->events->count; row-- > 0;) {
		uint32_t parent = advice->events->parent[row];

		if (parent != OPS_NONE)
			ns[parent] = ops_sum(ns[parent], ns[row]);
	}
}

/* Steps that repeat more than this of the time of their operators are those of a trial, as in a benchmark. */
#define TRIAL_MIN 0.9

static bool find_repeats(struct numbering *numbering, struct advice_result *result)
{
	bool done;

	numbering->foreign = advice_has_foreign_memory(result->advice, numbering->foreigners);
	done = go_through(numbering, result, LEARN) && go_through(numbering, result, MEASURE);

	numbering->trial = (double)numbering->lasting_ns > TRIAL_MIN * (double)numbering->operators_ns;
	return done && go_through(numbering, result, ADD);
}

/* Their results do not follow from the inputs that recordings show. Recordings do not show the tensors by which the last ones index. */
static const char *const unknown_names[] = {"*item*", "*_local_scalar*", "aten::empty*", "*_set_*", "aten::index", "aten::index_put*", "aten::_index_put*",
                                            "aten::_unsafe_*index*", NULL};
static const char *const making_names[] = {"aten::arange", "aten::linspace", "aten::zeros", "aten::ones", "aten::full", "aten::eye",
                                             "aten::tril_indices", "aten::triu_indices", "aten::scalar_tensor", NULL};
static const char *const view_names[] = {"aten::select", "aten::slice", "aten::narrow", "aten::unsqueeze", "aten::transpose",
                                            "aten::diagonal", NULL};

/* Minimum share of the steady steps in which something is repeated. */
#define STEPS_SHARE 4

static bool rule_repeat_find(const struct advice *advice, struct advice_result *result)
{
	struct numbering numbering = {.random = advice_random_names(advice, unknown_names), .makes = advice_names(advice, making_names),
	                              .views = advice_names(advice, view_names), .foreigners = advice_foreign_names(advice)};
	char each_step[128] = "";
	struct advice_spread spread;
	bool done = numbering.random && numbering.makes && numbering.views && numbering.foreigners;

	numbering.in_calls = ops_alloc_zeroed(advice->events->count + 1, sizeof(*numbering.in_calls));
	numbering.claimed_in_calls = ops_alloc_zeroed(advice->events->count + 1, sizeof(*numbering.claimed_in_calls));
	numbering.loop_ns = ops_alloc_zeroed(advice->loops.count + 1, sizeof(*numbering.loop_ns));
	done = done && numbering.in_calls && numbering.claimed_in_calls && numbering.loop_ns;

	done = done && find_repeats(&numbering, result);
	if (done) {
		rule_repeat_sum_up(advice, numbering.in_calls);
		rule_repeat_sum_up(advice, numbering.claimed_in_calls);
		claim_calls(&numbering, result);
	}
	if (numbering.each_step)
		snprintf(each_step, sizeof(each_step), "; %s the same in each step",
		         advice_counted(advice, numbering.each_step, "of them computes", "of them compute").text);
	done = done && advice_find_spread(result, &spread);
	/* Work that only few steps repeat belongs to these steps, such as an optimizer that creates its state. */
	if (done && spread.steps * STEPS_SHARE < advice->step_count) {
		result->claims.count = 0;
		numbering.ns = 0;
	}
	/* The input of the steps may be that of a trial. */
	if (numbering.kept_ns > numbering.ns / 2)
		result->confidence = ADVICE_UNSURE;
	done = done && advice_report_gain(result, (double)numbering.ns,
	                                  "%s an earlier one on the same values%s, in %s.",
	                                  advice_counted(advice, numbering.repeated, "operator in each step repeats", "operators in each step repeat").text,
	                                  each_step,
	                                  advice_spent(advice, (double)numbering.ns).text);
	ops_map_release(&numbering.slots);
	ops_map_release(&numbering.lasting);
	ops_map_release(&numbering.seen);
	advice_parts_release(&numbering.parts);
	ops_free(numbering.random);
	ops_free(numbering.makes);
	ops_free(numbering.views);
	ops_free(numbering.foreigners);
	OPS_ARRAY_RELEASE(&numbering.values);
	ops_free(numbering.loop_ns);
	ops_free(numbering.in_calls);
	ops_free(numbering.claimed_in_calls);
	return done;
}

const struct advice_rule advice_rule_repeat = {
	.id = "repeated-work",
	.title = "The same result is computed repeatedly",
	.condition = "In a quarter of the steps or more, an operator repeats an earlier one of the step, on the same shapes, "
		     "scalars and values; or one of an earlier step, if its inputs come from constants alone (a mask, a table of positions), or from "
		     "tensors of 4096 elements or more that no step changes and that are in memory of torch. Values are "
		     "identified by the operator that computed them; memory that torch did not allocate may have other values after each call that makes a tensor in such memory, such as torch.from_numpy(). Parts of a tensor are identified by the views that created them. Steps that repeat nearly "
		     "everything are those of a trial and do not count. The outermost call that only repeats comes first.",
	.gain = "that time, with the backward pass and the calls that do nothing else",
	.explanation = "The operators get unchanged tensors that they got before: masks, position embeddings, norms and "
		       "transposed copies that each layer, sample or step computes again.",
	.advice = "Compute the result once before the loop and pass it on, or keep it as a buffer of the module if it is the "
		  "same in all steps. To check: fewer calls at the line.",
	.code = "weights = normalise(graph)  # once, before the loop over layers",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_REPEATED,
	.confidence = ADVICE_LIKELY,
	.find = rule_repeat_find,
};
