/* SPDX-License-Identifier: Apache-2.0
 *
 * Large intermediate results: small tensors are expanded into a large one, which passes through memory only to be
 * reduced to a small one again.
 *
 *     12 kB, 1 MB ──sub──▶ 77 MB ──pow──▶ 77 MB ──sum──▶ 1.2 MB
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"
#include "base/text.h"

#define BYTES_MIN (1 << 20)   /* minimum size of the intermediate result */
#define RATIO_MIN 4           /* minimum ratio of its size to that of its sources */
#define REDUCED_MIN 3         /* and to that of its reduction: distances of points in space have a third of the size of their differences */
#define PASSES_MAX 8          /* maximum number of operators between expansion and reduction */
#define FLOPS_MAX 8           /* maximum per byte created; operators with more arithmetic are not limited by memory */

enum intermediate_name { NAME_REDUCES = 1, NAME_MULTIPLIES, NAME_MARKS, NAME_COMPARES };

struct expansion {
	uint32_t rows[PASSES_MAX + 1]; /* from the reduction back to the operator that expands */
	size_t count;
	int64_t bytes;                 /* size of the largest result */
	int64_t moved;                 /* bytes moved by all passes over such results */
};

struct intermediates {
	uint8_t *kind;    /* by string: enum intermediate_name */
	uint8_t *counted; /* by row: 1 if its passes are counted */
	int64_t bytes;
};

/* Returns the largest value that a node reads; OPS_NONE: none. */
static uint32_t largest_input(const struct data_flow *flow, uint32_t node)
{
	uint32_t largest = OPS_NONE;

	for (uint32_t i = 0; i < flow->nodes[node].count; i++) {
		const struct data_use *use = &flow->uses.items[flow->nodes[node].first + i];

		if (use->kind >= DATA_SELECTS && (largest == OPS_NONE || flow->values[use->value].bytes > flow->values[largest].bytes))
			largest = use->value;
	}
	return largest;
}

/* Returns the bytes that a node makes and that last longer than the node: a sum of bits converts all of them first. */
static int64_t lasting_bytes(const struct data_flow *flow, uint32_t node)
{
	int64_t bytes = 0;

	for (uint32_t i = 0; i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];

		bytes = ops_sum(bytes, data_flow_is_scratch(flow, node, value) ? 0 : flow->values[value].bytes);
	}
	return bytes;
}

/* Returns true if only this node reads a value, except for the backward pass and for nodes that count the results of a comparison: a few
 * operators on sorted or binned numbers count for all of them. No operator makes other sums of the same large tensor at once. */
static bool is_only_reduced(const struct advice *advice, uint32_t value, uint32_t node)
{
	static const char *const compares[] = {"aten::ge", "aten::gt", "aten::le", "aten::lt", NULL};
	const struct data_flow *flow = advice->flow;
	bool counts = flow->values[value].node != OPS_NONE && advice_text_like(advice_name(advice, flow->values[value].node), compares);

	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next) {
		const struct data_use *use = &flow->uses.items[i];

		if (use->kind >= DATA_OVERWRITES && use->node != node && !(flow->memory.rows.context[use->node] & MEMORY_IN_BACKWARD) &&
		    (!counts || use->kind != DATA_READS || ops_product(lasting_bytes(flow, use->node), RATIO_MIN) > flow->values[value].bytes))
			return false;
	}
	return flow->values[value].complete;
}

/* A convolution is a layer, also if it has few channels. */
static bool moves_only(const struct advice *advice, uint32_t row)
{
	if (advice_kind(advice, row) == OPERATOR_CONVOLUTION || ops_string_starts(advice_name(advice, row), "aten::conv"))
		return false;
	return !advice->demands[row].bytes ||
	       (double)advice->demands[row].flops <= FLOPS_MAX * (double)data_flow_made_bytes(advice->flow, row);
}

/* Follows a reduction back. Returns false if its input is not expanded from something small. */
static bool follow_back(const struct intermediates *all, const struct advice *advice, uint32_t row, struct expansion *expansion)
{
	const struct data_flow *flow = advice->flow;
	bool marks = false;

	*expansion = (struct expansion){.rows = {row}, .count = 1};
	for (uint32_t node = row; expansion->count <= PASSES_MAX;) {
		uint32_t value = largest_input(flow, node);
		const struct data_value *of = value == OPS_NONE ? NULL : &flow->values[value];

		if (!of || of->node == OPS_NONE || of->bytes < BYTES_MIN || !is_only_reduced(advice, value, node) ||
		    !advice_counts(advice, of->node) || !moves_only(advice, of->node) ||
		    advice->step_of[of->node] != advice->step_of[row])
			return false;
		node = of->node;
		expansion->rows[expansion->count++] = node;
		expansion->bytes = of->bytes > expansion->bytes ? of->bytes : expansion->bytes;
		expansion->moved = ops_sum(expansion->moved, ops_product(2, of->bytes)); /* written and read */
		marks |= all->kind[advice->events->name[node]] == NAME_MARKS;
		if (ops_product(data_flow_read_bytes(flow, node), RATIO_MIN) <= of->bytes)
			return data_flow_read_bytes(flow, node) > 0 &&
			       (marks || all->kind[advice->events->name[row]] != NAME_MULTIPLIES);
	}
	return false;
}

/* Returns true if the first two inputs of a node are tensors of which each is repeated for the other. */
static bool broadcasts(const struct advice *advice, uint32_t row)
{
	struct ops_input inputs[2];
	bool repeated[2] = {false, false};

	if (!advice_input(advice, row, 0, &inputs[0]) || !advice_input(advice, row, 1, &inputs[1]) || !ops_input_is_tensor(inputs[0].tag) ||
	    !ops_input_is_tensor(inputs[1].tag))
		return false;
	for (size_t i = 1; i <= inputs[0].n && i <= inputs[1].n; i++) {
		int64_t sizes[2] = {ops_input_int(&inputs[0], inputs[0].n - i), ops_input_int(&inputs[1], inputs[1].n - i)};

		repeated[0] |= sizes[0] == 1 && sizes[1] > 1;
		repeated[1] |= sizes[1] == 1 && sizes[0] > 1;
	}
	return repeated[0] && repeated[1];
}

/* Sums up the results of a node that other operators read in the forward pass. The rest is temporary, or kept for the backward
 * pass: gets the largest of it, and the bytes that writing and reading it moves. */
static int64_t sum_results_read(const struct advice *advice, uint32_t row, int64_t *ret_largest, int64_t *ret_moved)
{
	const struct data_flow *flow = advice->flow;
	const struct data_node *node = &flow->nodes[row];
	int64_t results = 0;

	*ret_largest = *ret_moved = 0;
	for (uint32_t i = 0; i < node->made_count; i++) {
		uint32_t value = flow->made.items[node->first_made + i];
		int64_t bytes = flow->values[value].bytes;
		bool is_read = false;

		for (uint32_t k = flow->values[value].first; k != OPS_NONE; k = flow->uses.items[k].next)
			is_read |= flow->uses.items[k].node != row && !(flow->memory.rows.context[flow->uses.items[k].node] & MEMORY_IN_BACKWARD);
		results = ops_sum(results, is_read ? bytes : 0);
		*ret_largest = !is_read && bytes > *ret_largest ? bytes : *ret_largest;
		*ret_moved = ops_sum(*ret_moved, is_read ? 0 : ops_product(2, bytes));
	}
	return results;
}

static bool rule_intermediate_is_open(const struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;

	return advice->flow->nodes[row].made_count && advice_counts(advice, row) && !advice_is_claimed(result, row) &&
	       !(advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER));
}

/* Adds an operator that compares all pairs of rows, and makes the intermediate results itself. */
static bool add_comparison(struct intermediates *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	int64_t bytes, moved, results;

	if (all->kind[advice->events->name[row]] != NAME_COMPARES || !rule_intermediate_is_open(result, row) || !broadcasts(advice, row))
		return false;
	results = sum_results_read(advice, row, &bytes, &moved);
	if (bytes < BYTES_MIN || ops_product(data_flow_read_bytes(advice->flow, row), RATIO_MIN) > bytes ||
	    ops_product(results, REDUCED_MIN) > bytes)
		return false;
	advice_add_share(result, row, (1 - (double)bytes / (double)moved) * advice_work_share(advice, row));
	all->bytes = bytes > all->bytes ? bytes : all->bytes;
	return true;
}

static void add_expansion(struct intermediates *all, struct advice_result *result, uint32_t row)
{
	const struct advice *advice = result->advice;
	struct expansion expansion;
	int64_t largest, moved;

	if (!all->kind[advice->events->name[row]] || all->kind[advice->events->name[row]] == NAME_MARKS || !rule_intermediate_is_open(result, row) ||
	    !follow_back(all, advice, row, &expansion) ||
	    ops_product(sum_results_read(advice, row, &largest, &moved), REDUCED_MIN) > expansion.bytes)
		return;
	/* One pass over it remains, in which a fused operator computes the elements. */
	for (size_t i = 0; i < expansion.count; i++) {
		uint32_t at = expansion.rows[i];

		/* A minimum of sums follows the same passes as the sums. */
		if (all->counted[at] || advice_is_claimed(result, at))
			continue;
		all->counted[at] = 1;
		advice_add_share(result, at, (1 - (double)expansion.bytes / (double)expansion.moved) * advice_work_share(advice, at));
	}
	all->bytes = expansion.bytes > all->bytes ? expansion.bytes : all->bytes;
}

static bool rule_intermediate_find(const struct advice *advice, struct advice_result *result)
{
	enum { FIRST_COMPARISON = 4 }; /* among the rule's names */
	struct intermediates all = {.kind = ops_alloc_zeroed(ops_trace_string_count(advice->trace) + 1, 1),
	                            .counted = ops_alloc_zeroed(advice->events->count + 1, 1)};
	bool done = all.kind && all.counted;

	for (size_t id = 0; done && id < ops_trace_string_count(advice->trace); id++) {
		enum operator_kind kind = operator_rows[advice->operators[id]].kind;

		all.kind[id] = result->which[id] >= FIRST_COMPARISON ? NAME_COMPARES
		               : result->which[id]                   ? NAME_MARKS
		               : kind == OPERATOR_PRODUCT            ? NAME_MULTIPLIES
		               : kind == OPERATOR_REDUCES            ? NAME_REDUCES
		                                                     : 0;
	}
	for (uint32_t row = 0; done && row < advice->events->count; row++)
		if (!add_comparison(&all, result, row))
			add_expansion(&all, result, row);
	done = done && advice_report_costs(result, "%s results of up to %s through memory that come from a quarter of "
	                                           "that or less and are reduced to a third or less. All passes but one take %s.",
	                                   advice_events(result, "operator in each step passes", "operators in each step pass").text,
	                                   advice_bytes((double)all.bytes).text, advice_cost(result).text);
	ops_free(all.kind);
	ops_free(all.counted);
	return done;
}

const struct advice_rule advice_rule_intermediate = {
	.id = "large-intermediate",
	.title = "A large intermediate result is made only to be reduced",
	.condition = "A reduction reads a result of at least 1 MB that is at least three times as large as what it makes, that nothing else reads "
		     "forward, except to count the results of a comparison, and that operators which compute little expanded from tensors of at most a quarter of its size. A matrix "
		     "product counts as a reduction where the result comes from aten::one_hot, scatter or eq. The same within "
		     "aten::cosine_similarity and pairwise_distance, if each of their inputs is broadcast to the other.",
	.gain = "all passes over the intermediate result but one, forward and backward",
	.explanation = "Each operator writes its result to memory and the next one reads it again. An operator that computes and reduces "
		       "the elements at once needs no memory for them.",
	.advice = "Use an operator that does both: torch.cdist or a matrix product for distances and similarities of pairs, nn.EmbeddingBag for sums of "
		  "rows, an index in place of a product with one-hot rows, torch.bucketize with bincount and cumsum in place of comparisons with many "
		  "thresholds, torch.einsum for sums of products. torch.compile fuses the "
		  "rest. To check: less memory allocated at the line.",
	.code = "distances = torch.cdist(points, centers)  # in place of (points[:, None] - centers).pow(2).sum(-1)",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.cdist.html",
	.names = (const char *const[]){"aten::one_hot", "aten::scatter", "aten::eq", "aten::cosine_similarity", "aten::pairwise_distance", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_COPIES,
	.confidence = ADVICE_LIKELY,
	.bound = ADVICE_AT_LEAST, /* memory that is not allocated causes no page faults either */
	.find = rule_intermediate_find,
};
