/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies of tensors that nothing requires: no operator writes to the copy, or to the original while the copy exists.
 *
 *     x ──clone──▶ copy ──relu──▶ …      relu(x) gives the same
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

#define BYTES_MIN (64 << 10) /* minimum size of the copy */

/* The values that operators write into existing blocks. */
struct writes {
	uint32_t *first; /* by block: the first such value; OPS_NONE: none */
	uint32_t *next;  /* by value: the next of the same block */
};

static bool find_writes(struct writes *writes, const struct data_flow *flow)
{
	writes->first = ops_alloc_none(flow->memory.blocks.count + 1);
	writes->next = ops_alloc_none(flow->memory.values.count + 1);
	if (!writes->first || !writes->next)
		return false;
	for (uint32_t value = (uint32_t)flow->memory.values.count; value-- > 0;) {
		const struct memory_value *of = &flow->memory.values.items[value];

		if (of->previous == OPS_NONE)
			continue;
		writes->next[value] = writes->first[of->block];
		writes->first[of->block] = value;
	}
	return true;
}

static bool is_written_between(const struct writes *writes, const struct data_flow *flow, uint32_t block, int64_t from_ns, int64_t until_ns)
{
	for (uint32_t value = writes->first[block]; value != OPS_NONE; value = writes->next[value])
		if (flow->memory.values.items[value].time_ns >= from_ns && flow->memory.values.items[value].time_ns < until_ns)
			return true;
	return false;
}

/* Returns the block that a copy reads, if it is only one; OPS_NONE otherwise. */
static uint32_t block_read(const struct data_flow *flow, uint32_t row)
{
	const struct data_use *use = flow->nodes[row].count == 1 ? &flow->uses.items[flow->nodes[row].first] : NULL;

	return use && use->kind == DATA_READS ? flow->memory.values.items[use->value].block : OPS_NONE;
}

static bool is_in_vain(const struct writes *writes, const struct advice *advice, uint32_t row)
{
	const struct data_flow *flow = advice->flow;
	const struct ops_memory_block *copy;
	uint32_t value, original = block_read(flow, row);
	struct ops_input input;

	if (flow->nodes[row].made_count != 1 || original == OPS_NONE || !advice_input(advice, row, 0, &input) || !advice_is_contiguous(&input))
		return false; /* a copy of another layout may be needed */
	value = flow->made.items[flow->nodes[row].first_made];
	copy = &flow->memory.blocks.items[flow->memory.values.items[value].block];
	return flow->values[value].complete && copy->bytes >= BYTES_MIN && flow->values[value].first != OPS_NONE &&
	       writes->first[flow->memory.values.items[value].block] == OPS_NONE && flow->memory.lives.items[original].reported &&
	       !is_written_between(writes, flow, original, advice->events->start_ns[row], copy->end_ns) &&
	       !advice_reads_pointers(advice, copy->start_ns, copy->end_ns);
}

static bool rule_clone_find(const struct advice *advice, struct advice_result *result)
{
	struct writes writes = {.first = NULL};
	bool done = find_writes(&writes, advice->flow);
	int64_t bytes = 0;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		if (!result->which[advice->events->name[row]] || !advice->flow->nodes[row].made_count || !advice_counts(advice, row) ||
		    advice_is_claimed(result, row) || (advice->zone[row] & (ADVICE_IN_BACKWARD | ADVICE_IN_LOADER | ADVICE_IN_OPTIMIZER)) ||
		    !is_in_vain(&writes, advice, row))
			continue;
		bytes = ops_sum(bytes, data_flow_made_bytes(advice->flow, row));
		advice_add(result, row, advice_claim(result, row));
	}
	done = done && advice_report_costs(result, "Each step makes %s, %s in total, and then only reads the copy and the original. Copying takes %s.",
	                                   advice_events(result, "copy", "copies").text,
	                                   advice_bytes(advice_per_step(advice, (uint64_t)bytes)).text,
	                                   advice_cost(result).text);
	ops_free(writes.first);
	ops_free(writes.next);
	return done;
}

const struct advice_rule advice_rule_clone = {
	.id = "unneeded-copy",
	.title = "Tensors are copied in vain",
	.condition = "clone() copies a contiguous tensor of at least 64 kB, no operator writes to the copy, or to the original before the copy is released, and "
		     "Python reads no tensor through a pointer meanwhile.",
	.gain = "the time of the copies, forward and backward",
	.explanation = "A copy reads and writes all elements, and takes new memory. It is only of use if one of the two tensors changes.",
	.advice = "Use the tensor itself, or detach() where only the graph has to end. To check: no clone at the line.",
	.code = "kept = x.detach()  # in place of x.detach().clone()",
	.link = "https://docs.pytorch.org/docs/stable/generated/torch.clone.html",
	.names = (const char *const[]){"aten::clone", NULL},
	.needs = ADVICE_NEEDS_OPERATORS | ADVICE_NEEDS_SHAPES | ADVICE_NEEDS_MEMORY | ADVICE_NEEDS_STORAGES,
	.stage = ADVICE_STAGE_COPIES,
	.confidence = ADVICE_LIKELY,
	.bound = ADVICE_AT_LEAST, /* memory that is not allocated causes no page faults either */
	.find = rule_clone_find,
};
