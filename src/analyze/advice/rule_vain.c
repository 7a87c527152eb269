/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that are multiplied by zero, with all operators that compute nothing else.
 *
 *     model(x, label) ──▶ given ─────────────┐
 *     model(x, none)  ──▶ blank ──┬──▶ sub ──┴──▶ mul by 1 ──▶ add     blank + 1 · (given − blank) = given
 *                                 └──────────────────────────▶
 */
#include <string.h>

#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

enum vain_name { NAME_MULTIPLIES = 1, NAME_ADDS, NAME_MIXES };

struct vain_search {
	struct advice_vain vain;
	uint8_t *kind; /* by string: enum vain_name */
	uint64_t sinks;
	bool mixed;    /* a mixture of two results is one of them */
};

static uint64_t bits_of(double number)
{
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits;
}

/* Returns true if a storage denotes a Python number that is 0 or 1. */
static bool is_python_number(const struct ops_storage *storage, uint64_t number)
{
	return !storage->address && (storage->bytes == ops_number_digest(8, number, 0) || storage->bytes == ops_number_digest(8, bits_of((double)number), 0));
}

static bool input_is_number(const struct advice *advice, uint32_t row, size_t i, double number)
{
	struct ops_input input;
	double value;

	if (!advice_input(advice, row, i, &input))
		return false;
	if (input.tag == OPS_INPUT_DOUBLE)
		memcpy(&value, input.data, sizeof(value));
	else if (input.tag == OPS_INPUT_INT)
		value = (double)ops_input_int(&input, 0);
	else
		return false;
	return value == number;
}

/* Returns the use by a node of the storage at position `i` of its inputs; OPS_NONE: unknown. */
static uint32_t use_at(const struct advice *advice, uint32_t node, size_t i)
{
	const struct data_flow *flow = advice->flow;
	struct ops_storage storage;

	if (!ops_event_storage(advice->trace, node, i, &storage) || !storage.address)
		return OPS_NONE;
	for (uint32_t k = flow->nodes[node].first; k < flow->nodes[node].first + flow->nodes[node].count; k++)
		if (flow->memory.blocks.items[flow->memory.values.items[flow->uses.items[k].value].block].address == storage.address)
			return k;
	return OPS_NONE;
}

/* Returns the position of the Python number among the two factors of a product; 2: none. */
static size_t number_position(const struct advice *advice, uint32_t row, uint64_t number)
{
	struct ops_storage storage;

	for (size_t i = 0; i < 2 && ops_event_storage(advice->trace, row, i, &storage); i++)
		if (is_python_number(&storage, number))
			return i;
	return 2;
}

/* Marks the reads of a by a sum: a + 1 · (b − a). `first` is the read by the difference. */
static void mark_sum(struct vain_search *search, const struct advice *advice, uint32_t first, uint32_t sum)
{
	if (search->kind[advice->events->name[sum]] != NAME_ADDS)
		return;
	for (size_t i = 0; i < 2; i++) {
		uint32_t second = use_at(advice, sum, i);

		if (second == OPS_NONE || advice->flow->uses.items[second].value != advice->flow->uses.items[first].value)
			continue;
		search->vain.uses[first] = search->vain.uses[second] = 1;
		search->sinks++;
		search->mixed = true;
	}
}

/* Marks the reads of a in sums of it with a product by one of a difference. */
static void mark_mixture(struct vain_search *search, const struct advice *advice, uint32_t product, uint32_t use)
{
	const struct data_flow *flow = advice->flow;
	uint32_t difference = flow->values[flow->uses.items[use].value].node, first;

	if (difference == OPS_NONE || !ops_string_is(advice_name(advice, difference), "aten::sub"))
		return;
	first = use_at(advice, difference, 1);
	for (uint32_t i = 0; first != OPS_NONE && i < flow->nodes[product].made_count; i++)
		for (uint32_t k = flow->values[flow->made.items[flow->nodes[product].first_made + i]].first; k != OPS_NONE; k = flow->uses.items[k].next)
			mark_sum(search, advice, first, flow->uses.items[k].node);
}

static void mark_reads(struct vain_search *search, const struct advice *advice, uint32_t row)
{
	uint8_t kind = search->kind[advice->events->name[row]];
	uint32_t use = OPS_NONE;
	size_t number;

	if (!kind || !advice_counts(advice, row) || advice->flow->memory.rows.node[row] != row)
		return;
	if (kind == NAME_MULTIPLIES && (number = number_position(advice, row, 0)) < 2)
		use = use_at(advice, row, 1 - number);
	else if (kind == NAME_ADDS && input_is_number(advice, row, 2, 0)) /* alpha */
		use = use_at(advice, row, 1);
	else if (kind == NAME_MIXES && input_is_number(advice, row, 2, 0))
		use = use_at(advice, row, 1);
	else if (kind == NAME_MIXES && input_is_number(advice, row, 2, 1))
		use = use_at(advice, row, 0);
	if (use != OPS_NONE) {
		search->vain.uses[use] = 1;
		search->sinks++;
		return;
	}
	if (kind == NAME_MULTIPLIES && (number = number_position(advice, row, 1)) < 2 && (use = use_at(advice, row, 1 - number)) != OPS_NONE)
		mark_mixture(search, advice, row, use);
}

static bool rule_vain_find(const struct advice *advice, struct advice_result *result)
{
	static const struct advice_named names[] = {{"aten::mul", NAME_MULTIPLIES}, {"aten::mul_", NAME_MULTIPLIES}, {"aten::add", NAME_ADDS},
	                                            {"aten::add_", NAME_ADDS}, {"aten::lerp", NAME_MIXES}, {0}};
	struct vain_search search = {.kind = advice_named_kinds(advice, names)};
	double gain_ns = 0;
	uint64_t count = 0;
	bool done = search.kind && advice_vain_init(&search.vain, advice);

	for (uint32_t row = 0; done && row < advice->events->count; row++)
		mark_reads(&search, advice, row);
	if (done && search.sinks)
		advice_vain_follow(&search.vain, advice, NULL);
	for (uint32_t row = 0; done && search.sinks && row < advice->events->count; row++) {
		int64_t ns;

		if (search.vain.nodes[row] != ADVICE_IN_VAIN || !advice_counts(advice, row) || advice_is_claimed(result, row) || (advice->zone[row] & ADVICE_IN_LOADER))
			continue;
		ns = advice_claim(result, row);
		advice_add_calls(result, row, ns);
		gain_ns += (double)ns;
		count++;
	}
	if (search.mixed)
		result->detail = "A mixture a + w * (b - a) with w = 1 is b: compute a only if w differs from 1.";
	done = done && advice_report_gain(result, gain_ns, "%s results that are only multiplied by zero%s, in %s.",
	                                  advice_counted(advice, count, "operator in each step computes", "operators in each step compute").text,
	                                  search.mixed ? ", or cancel out in a + 1 * (b - a)" : "",
	                                  advice_spent(advice, gain_ns).text);
	advice_vain_release(&search.vain);
	ops_free(search.kind);
	return done;
}

const struct advice_rule advice_rule_vain = {
	.id = "multiplied-by-zero",
	.title = "Results are multiplied by zero",
	.condition = "A product has the Python number 0 as a factor, a sum alpha=0, or a mixture (lerp, a + w * (b - a)) a weight of 0 or 1, and all that "
		     "operators read of a result is read for that.",
	.gain = "the time of all operators that compute nothing else, forward and backward",
	.explanation = "The result does not change the sum that it is added to, but it is computed, and its backward pass runs. Typical are a loss with "
		       "the weight 0 and guidance with the weight 1.",
	.advice = "Skip the computation if its weight is zero: `if weight:`. To check: no operators at the line.",
	.code = "loss = task_loss\n"
		"if weight:\n"
		"    loss = loss + weight * auxiliary(hidden)",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_MODE,
	.confidence = ADVICE_SURE,
	.find = rule_vain_find,
};
