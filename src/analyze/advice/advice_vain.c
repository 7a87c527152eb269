/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators whose results do not matter: all of them are only read in vain. A rule marks reads that are in vain, such as by a
 * product with zero, and the operators before them follow.
 *
 *     aten::linear ──▶ aten::relu ──▶ aten::mul by 0      the layer is in vain, unless something else reads its result
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

bool advice_vain_init(struct advice_vain *vain, const struct advice *advice)
{
	vain->nodes = ops_alloc_zeroed(advice->events->count + 1, 1);
	vain->uses = ops_alloc_zeroed(advice->flow->uses.count + 1, 1);
	return vain->nodes && vain->uses;
}

void advice_vain_release(struct advice_vain *vain)
{
	ops_free(vain->nodes);
	ops_free(vain->uses);
	*vain = (struct advice_vain){0};
}

void advice_vain_add_reads(struct advice_vain *vain, const struct advice *advice, uint32_t node)
{
	const struct data_node *of = &advice->flow->nodes[node];

	vain->nodes[node] = ADVICE_IN_VAIN;
	for (uint32_t i = 0; i < of->count; i++)
		vain->uses[of->first + i] = 1;
}

/* Returns the node of the forward operator of a node in the backward pass; OPS_NONE: none. */
static uint32_t forward_node(const struct advice *advice, uint32_t node)
{
	uint32_t forward = advice_forward_of(advice, node);

	return forward == OPS_NONE ? OPS_NONE : advice->flow->memory.rows.node[forward];
}

/* The backward pass of an operator in vain is in vain as well. It may read what the operator itself has made. */
static bool reads_in_vain(const struct advice_vain *vain, const struct advice *advice, uint32_t use, uint32_t maker)
{
	uint32_t node = advice->flow->uses.items[use].node, forward;

	if (vain->uses[use] || vain->nodes[node] == ADVICE_IN_VAIN)
		return true;
	forward = (advice->flow->memory.rows.context[node] & MEMORY_IN_BACKWARD) ? forward_node(advice, node) : OPS_NONE;
	return forward != OPS_NONE && (forward == maker || vain->nodes[forward]);
}

/* Returns true if a value is read, and only in vain; `ret_used` is set if it is read otherwise. */
static bool is_read_in_vain(const struct advice_vain *vain, const struct advice *advice, uint32_t value, uint32_t maker, bool *ret_used)
{
	const struct data_flow *flow = advice->flow;
	const struct ops_memory_block *block = &flow->memory.blocks.items[flow->memory.values.items[value].block];
	bool read = false;

	if (!flow->values[value].complete || advice_reads_pointers(advice, block->start_ns, block->end_ns)) {
		*ret_used = true;
		return false;
	}
	for (uint32_t i = flow->values[value].first; i != OPS_NONE; i = flow->uses.items[i].next) {
		if (flow->uses.items[i].kind < DATA_SELECTS)
			continue;
		read = true;
		*ret_used |= !reads_in_vain(vain, advice, i, maker);
	}
	return read && !*ret_used;
}

static bool is_vain(const struct advice_vain *vain, const struct advice *advice, uint32_t node)
{
	const struct data_flow *flow = advice->flow;
	bool used = false, in_vain = false;

	for (uint32_t i = 0; !used && i < flow->nodes[node].made_count; i++) {
		uint32_t value = flow->made.items[flow->nodes[node].first_made + i];

		if (flow->memory.blocks.items[flow->memory.values.items[value].block].end_ns > advice->events->end_ns[node])
			in_vain |= is_read_in_vain(vain, advice, value, node, &used);
	}
	return in_vain && !used;
}

void advice_vain_follow(struct advice_vain *vain, const struct advice *advice, const uint8_t *names)
{
	/* Readers come after what they read. */
	for (uint32_t node = (uint32_t)advice->events->count; node-- > 0;)
		if (advice->flow->nodes[node].made_count && vain->nodes[node] != ADVICE_IN_VAIN && (!names || names[advice->events->name[node]]) &&
		    !(advice->flow->memory.rows.context[node] & MEMORY_IN_BACKWARD) && is_vain(vain, advice, node))
			advice_vain_add_reads(vain, advice, node);
}
