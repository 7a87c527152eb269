/* SPDX-License-Identifier: Apache-2.0
 *
 * The category of each value in memory. First from facts about blocks: roles that the program named, gradients that
 * autograd accumulated, values that did not outlive their operator. Then from the data flow, node by node:
 *
 *     parameters ─┐
 *     data ───────┴▶ node ──▶ ACTIVATION ──▶ node ──▶ …        anything derived from parameters, in the forward pass
 *       ▲
 *       └── other values that such nodes read: INPUT, and also their sources
 */
#include "analyze/memory_flow.h"

#include "base/alloc.h"

bool ops_memory_edges_init(struct memory_edges *edges, const struct memory_flow *flow)
{
	size_t rows = flow->events->count;

	edges->items = ops_realloc_array(NULL, flow->edges.count + 1, sizeof(*edges->items));
	edges->start = ops_alloc_zeroed(rows + 2, sizeof(*edges->start));
	if (!edges->items || !edges->start || flow->edges.count > UINT32_MAX)
		return false;
	for (size_t i = 0; i < flow->edges.count; i++)
		edges->start[flow->edges.items[i].node + 1]++;
	for (size_t row = 0; row < rows; row++)
		edges->start[row + 1] += edges->start[row];
	/* Filling moves each start to the end of its node, which is the start of the next. So it runs backwards. */
	for (size_t i = flow->edges.count; i-- > 0;)
		edges->items[--edges->start[flow->edges.items[i].node + 1]] = flow->edges.items[i];
	for (size_t row = 0; row < rows; row++)
		edges->start[row] = edges->start[row + 1];
	edges->start[rows] = (uint32_t)flow->edges.count;
	return true;
}

void ops_memory_edges_release(struct memory_edges *edges)
{
	ops_free(edges->items);
	ops_free(edges->start);
}

const struct memory_edge *ops_memory_edges_of(const struct memory_edges *edges, size_t node, size_t *ret_count)
{
	*ret_count = edges->start[node + 1] - edges->start[node];
	return edges->items + edges->start[node];
}

static uint8_t role_of(const struct memory_flow *flow, const struct memory_value *value)
{
	return flow->lives.items[value->block].role;
}

static bool is_forward(const struct memory_flow *flow, size_t node)
{
	return !(flow->rows.context[node] & (MEMORY_IN_BACKWARD | MEMORY_IN_OPTIMIZER));
}

/* --- facts from roles and lifetimes ------------------------------------------------------------------------------ */

/* Memory that autograd created while it accumulated a gradient, and left behind, is that gradient. */
static void find_gradients(struct memory_flow *flow)
{
	for (size_t i = 0; i < flow->blocks.count; i++) {
		uint32_t row = flow->blocks.items[i].row;
		uint8_t *role = &flow->lives.items[i].role;

		if (row != OPS_NONE && (flow->rows.context[row] & MEMORY_IN_ACCUMULATE) &&
		    flow->blocks.items[i].end_ns > flow->events->end_ns[flow->rows.region[row]] &&
		    (*role == OPS_ROLE_NONE || *role == OPS_ROLE_TENSOR))
			*role = OPS_ROLE_GRADIENT;
	}
}

/* Created and freed within one operator, or within one step of an optimizer. */
static bool is_temporary(const struct memory_flow *flow, const struct ops_memory_block *block)
{
	uint32_t row = block->row, around;

	if (row == OPS_NONE)
		return false;
	around = flow->rows.context[row] & MEMORY_IN_OPTIMIZER ? flow->rows.region[row] : flow->rows.node[row];
	return around != OPS_NONE && block->end_ns <= flow->events->end_ns[around];
}

/* --- facts from the data flow -------------------------------------------------------------------------------------- */

/* The values that a node reads. */
struct sources {
	bool parameters; /* or values derived from them */
	bool gradients;  /* or values derived from them */
};

static struct sources sources_of(const struct memory_flow *flow, const struct memory_edge *edges, size_t count)
{
	struct sources sources = {0};

	for (size_t i = 0; i < count; i++) {
		const struct memory_value *value = &flow->values.items[edges[i].value];

		if (edges[i].write)
			continue;
		sources.parameters |= value->derived || role_of(flow, value) == OPS_ROLE_PARAMETER;
		sources.gradients |= value->from_gradient || role_of(flow, value) == OPS_ROLE_GRADIENT;
	}
	return sources;
}

/* Programs without modules and optimizers have parameters too: blocks that the forward pass reads, and into which a
 * gradient, or something derived from it, is then written. Such updates run without autograd, but the forward pass does
 * not. So a block that an update wrote to counts as derived from gradients only for other updates. */
enum trail {
	TRAIL_GRADIENT = 1, /* derived from a gradient */
	TRAIL_UPDATED = 2,  /* existed before, and was updated with a gradient */
};

static bool node_reads_gradients(const struct memory_flow *flow, const uint8_t *trails, const struct memory_edge *edges,
                                 size_t count)
{
	bool update = count && flow->events->sequence_nr[edges[0].node] < 0;
	bool found = false;

	for (size_t i = 0; i < count; i++)
		found |= !edges[i].write &&
		         (role_of(flow, &flow->values.items[edges[i].value]) == OPS_ROLE_GRADIENT ||
		          (trails[edges[i].value] & (TRAIL_GRADIENT | (update ? TRAIL_UPDATED : 0))));
	return found;
}

/* Follows the trails, and finds for each block whether the forward pass read it and whether it was updated. */
static void follow_trails(struct memory_flow *flow, const struct memory_edges *edges, uint8_t *trails, uint8_t *read,
                          uint8_t *updated)
{
	for (size_t node = 0; node < flow->events->count; node++) {
		size_t count;
		const struct memory_edge *own = ops_memory_edges_of(edges, node, &count);
		bool gradients = node_reads_gradients(flow, trails, own, count);

		for (size_t i = 0; i < count && is_forward(flow, node); i++) {
			const struct memory_value *value = &flow->values.items[own[i].value];

			if (!own[i].write) {
				read[value->block] |= !gradients;
			} else if (gradients) {
				trails[own[i].value] = value->previous == OPS_NONE ? TRAIL_GRADIENT : TRAIL_UPDATED;
				updated[value->block] |= value->previous != OPS_NONE;
			}
		}
	}
}

static bool find_parameters(struct memory_flow *flow, const struct memory_edges *edges)
{
	uint8_t *trails = ops_alloc_zeroed(flow->values.count + 1, sizeof(*trails));
	uint8_t *read = ops_alloc_zeroed(flow->blocks.count + 1, sizeof(*read));
	uint8_t *updated = ops_alloc_zeroed(flow->blocks.count + 1, sizeof(*updated));
	bool ok = trails && read && updated;

	if (ok)
		follow_trails(flow, edges, trails, read, updated);
	for (size_t i = 0; ok && i < flow->blocks.count; i++) {
		uint8_t *role = &flow->lives.items[i].role;

		if (read[i] && updated[i] && (*role == OPS_ROLE_NONE || *role == OPS_ROLE_TENSOR))
			*role = OPS_ROLE_PARAMETER;
	}
	ops_free(trails);
	ops_free(read);
	ops_free(updated);
	return ok;
}

/* Returns the category of a value that a node wrote, if the block has no role. */
static uint8_t written_category(const struct memory_flow *flow, size_t node, const struct memory_value *value,
                                struct sources sources)
{
	uint8_t context = flow->rows.context[node];
	uint8_t before = value->previous == OPS_NONE ? OPS_MEMORY_UNKNOWN : flow->values.items[value->previous].category;

	if (context & MEMORY_IN_OPTIMIZER)
		return value->previous == OPS_NONE ? OPS_MEMORY_OPTIMIZER_STATE : before;
	if (context & MEMORY_IN_BACKWARD)
		return before == OPS_MEMORY_UNKNOWN ? OPS_MEMORY_AUTOGRAD_DETAIL : before;
	if (sources.gradients)
		return value->previous == OPS_NONE ? OPS_MEMORY_TEMPORARY : before;
	return sources.parameters ? OPS_MEMORY_ACTIVATION : before;
}

static void flow_forward(struct memory_flow *flow, const struct memory_edges *edges)
{
	for (size_t node = 0; node < flow->events->count; node++) {
		size_t count;
		const struct memory_edge *own = ops_memory_edges_of(edges, node, &count);
		struct sources sources = sources_of(flow, own, count);
		bool derives = sources.parameters && !sources.gradients && is_forward(flow, node);

		for (size_t i = 0; i < count; i++) {
			struct memory_value *value = &flow->values.items[own[i].value];

			if (own[i].write) {
				value->category = written_category(flow, node, value, sources);
				value->derived = sources.parameters || (flow->rows.context[node] & MEMORY_IN_BACKWARD);
				value->from_gradient = sources.gradients && is_forward(flow, node) &&
				                       role_of(flow, value) != OPS_ROLE_PARAMETER;
			} else if (derives && !value->derived) {
				value->wanted = true;
			}
		}
	}
}

/* Values from which wanted values are derived are also wanted. */
static void flow_back(struct memory_flow *flow, const struct memory_edges *edges)
{
	for (size_t node = flow->events->count; node-- > 0;) {
		size_t count;
		const struct memory_edge *own = ops_memory_edges_of(edges, node, &count);
		bool wanted = false;

		for (size_t i = 0; i < count && is_forward(flow, node); i++)
			wanted |= own[i].write && flow->values.items[own[i].value].wanted;
		for (size_t i = 0; wanted && i < count; i++) {
			struct memory_value *value = &flow->values.items[own[i].value];

			value->wanted |= !value->derived && !value->from_gradient;
		}
	}
}

/* --- categorization ------------------------------------------------------------------------------------------------- */

static uint8_t memory_categories_category_of(const struct memory_flow *flow, const struct memory_value *value)
{
	switch (role_of(flow, value)) {
	case OPS_ROLE_PARAMETER:
		return OPS_MEMORY_PARAMETER;
	case OPS_ROLE_OPTIMIZER_STATE:
		return OPS_MEMORY_OPTIMIZER_STATE;
	case OPS_ROLE_GRADIENT:
		return OPS_MEMORY_GRADIENT;
	case OPS_ROLE_BUFFER:
		return OPS_MEMORY_INPUT;
	default:
		break;
	}
	if (is_temporary(flow, &flow->blocks.items[value->block]))
		return OPS_MEMORY_TEMPORARY;
	if (value->category == OPS_MEMORY_UNKNOWN && value->wanted && !value->derived && !value->from_gradient)
		return OPS_MEMORY_INPUT;
	return value->category;
}

bool ops_memory_categorize(struct memory_flow *flow)
{
	struct memory_edges edges = {0};
	bool ok = ops_memory_edges_init(&edges, flow);

	if (ok) {
		find_gradients(flow);
		ok = find_parameters(flow, &edges);
	}
	if (ok) {
		flow_forward(flow, &edges);
		flow_back(flow, &edges);
		for (size_t i = 0; i < flow->values.count; i++)
			flow->values.items[i].category = memory_categories_category_of(flow, &flow->values.items[i]);
		for (size_t i = 0; i < flow->blocks.count; i++)
			flow->blocks.items[i].category = flow->values.items[flow->lives.items[i].value].category;
	}
	ops_memory_edges_release(&edges);
	return ok;
}
