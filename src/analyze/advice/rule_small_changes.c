/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that each step computes from all of a large tensor although few of its elements changed since the step before, such as norms of
 * a memory of samples, or the places at which its episodes end.
 *
 *     step 7: bank[at:at + 64] = z ──▶ aten::linalg_vector_norm of all 40000 rows ──▶ aten::div ──▶ …
 *     step 8: 64 other rows of the bank change, and all norms are computed again
 */
#include "analyze/advice/advice.h"

#include <opstrobe/internal/format.h>
#include "base/alloc.h"

#define BYTES_MIN (1 << 20) /* minimum size of the tensor */
#define CHANGED_MAX 0.05    /* maximum share of it that changes in two steps */
#define VERSIONS_MAX 4096   /* of a tensor in two steps */
#define STEPS_MIN 3         /* minimum number of steps with such operators */

/* What is known about a value, compared to the step before. */
enum change { CHANGE_UNKNOWN, CHANGE_NONE, CHANGE_SMALL };

struct changes {
	uint8_t *unknown;    /* by string: the result depends on more than the tensors that recordings show */
	uint8_t *of;         /* by value: enum change, of those that nodes of the same step made */
	uint32_t last_step;
	uint64_t steps, count;
	double changed, bytes; /* sums over the reads of large tensors */
	int64_t largest;
};

/* Returns the bytes of a tensor that changed since a time before its version `value`; -1: it is new, or was written completely. */
static int64_t changed_bytes(const struct data_flow *flow, uint32_t value, int64_t since_ns)
{
	const struct ops_memory_block *block = &flow->memory.blocks.items[flow->memory.values.items[value].block];
	int64_t sum = 0;

	if (block->start_ns >= since_ns)
		return -1;
	for (int versions = 0; flow->memory.values.items[value].time_ns >= since_ns; versions++) {
		uint32_t previous = flow->memory.values.items[value].previous, node = flow->values[value].node;
		int64_t written = -1;

		if (previous == OPS_NONE || node == OPS_NONE || versions == VERSIONS_MAX)
			return -1;
		for (uint32_t i = flow->nodes[node].first; i < flow->nodes[node].first + flow->nodes[node].count; i++)
			if (flow->uses.items[i].value == previous && flow->uses.items[i].kind == DATA_UPDATES)
				written = flow->uses.items[i].bytes;
		if (written < 0)
			return -1;
		sum = ops_sum(sum, written);
		value = previous;
	}
	return sum;
}

/* Returns how the value that a node reads differs from that of the step before. */
static enum change change_of_use(struct changes *changes, const struct advice *advice, const struct data_use *use, int64_t since_ns)
{
	const struct data_value *value = &advice->flow->values[use->value];
	int64_t changed;

	if (changes->of[use->value])
		return (enum change)changes->of[use->value];
	changed = changed_bytes(advice->flow, use->value, since_ns);
	if (changed < 0 || (double)changed > CHANGED_MAX * (double)value->bytes)
		return CHANGE_UNKNOWN;
	if (!changed || use->bytes < BYTES_MIN || use->bytes < value->bytes / 2)
		return changed ? CHANGE_UNKNOWN : CHANGE_NONE;
	changes->changed += (double)changed;
	changes->bytes += (double)value->bytes;
	changes->largest = value->bytes > changes->largest ? value->bytes : changes->largest;
	return CHANGE_SMALL;
}

/* Returns how the results of a node differ from those of the step before. */
static enum change change_of_node(struct changes *changes, const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	uint32_t step = advice->step_of[node];
	enum change most = CHANGE_NONE;

	if (!advice_counts(advice, node) || !step || flow->memory.rows.node[node] != node || changes->unknown[advice->events->name[node]] ||
	    !advice_is_operator(advice, node) || advice->backward_ns[node] > 0 ||
	    (advice->zone[node] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)))
		return CHANGE_UNKNOWN;
	for (uint32_t i = flow->nodes[node].first; i < flow->nodes[node].first + flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[i];
		enum change change;

		if (use->kind < DATA_SELECTS)
			continue;
		change = use->kind == DATA_UPDATES ? CHANGE_UNKNOWN : change_of_use(changes, advice, use, advice->views->steps.items[step - 1].host_start_ns);
		if (change == CHANGE_UNKNOWN)
			return CHANGE_UNKNOWN;
		most = change > most ? change : most;
	}
	return most;
}

static void add_changed_node(struct changes *changes, struct advice_result *result, uint32_t node)
{
	const struct advice *advice = result->advice;
	const struct data_flow *flow = advice->flow;
	enum change change = change_of_node(changes, advice, node);

	if (change == CHANGE_UNKNOWN)
		return;
	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++)
		changes->of[flow->made.items[flow->nodes[node].first_made + i]] = (uint8_t)change;
	if (change != CHANGE_SMALL || advice_is_claimed(result, node))
		return;
	changes->steps += changes->last_step != advice->step_of[node];
	changes->last_step = advice->step_of[node];
	changes->count++;
	advice_add_share(result, node, (1 - CHANGED_MAX) * advice_work_share(advice, node));
}

static bool rule_small_changes_find(const struct advice *advice, struct advice_result *result)
{
	static const char *const unknown[] = {"aten::index", "aten::index_put*", "aten::_index_put*", "aten::item", "aten::_local_scalar_dense", "aten::copy_",
	                                      "aten::fill_", NULL};
	struct changes changes = {.unknown = advice_random_names(advice, unknown), .of = ops_alloc_zeroed(advice->flow->memory.values.count + 1, 1),
	                          .last_step = OPS_NONE};
	bool done = changes.unknown && changes.of;

	for (uint32_t node = 0; done && node < advice->events->count; node++)
		add_changed_node(&changes, result, node);
	if (changes.steps < STEPS_MIN)
		result->claims.count = 0;
	else if (done)
		done = advice_report_costs(result, "%s a result from all of a tensor of up to %s of which %s changed since the "
		                           "step before, in %s.",
		                           advice_counted(advice, changes.count, "operator in each step computes", "operators in each step compute").text,
		                           advice_bytes((double)changes.largest).text,
		                           ops_figure_of_percent(100 * changes.changed / changes.bytes).text, advice_cost(result).text);
	ops_free(changes.unknown);
	ops_free(changes.of);
	return done;
}

const struct advice_rule advice_rule_small_changes = {
	.id = "computed-after-small-changes",
	.title = "Results are computed from all of a tensor of which little changed",
	.condition = "In three steps or more, operators read all of a tensor of at least 1 MB of which at most 5 % was written since the beginning of the step "
		     "before, and nothing else that changed. Operators that read only their results count as well. Operators with a backward pass, random numbers "
		     "and indices are left out.",
	.gain = "95 % of the time of these operators",
	.explanation = "The result of an element that did not change is the same as before: norms of a bank of features, statistics of a memory of samples, sums "
		       "of priorities, places where episodes end.",
	.advice = "Keep the result next to the tensor and update it where the tensor is written: normalise rows when they are stored, add and subtract from "
		  "sums, or compute it every N steps. To check: smaller shapes at the line.",
	.code = "bank[at:at + n] = rows\n"
		"keys[at:at + n] = F.normalize(rows, dim=1)  # in place of keys = F.normalize(bank, dim=1)",
	.link = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES | ADVICE_NEEDS_STEPS,
	.stage = ADVICE_STAGE_REPEATED,
	.severity_max = ADVICE_MEDIUM, /* keeping results up to date may not be worth the code */
	.confidence = ADVICE_LIKELY,
	.find = rule_small_changes_find,
};
