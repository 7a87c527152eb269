/* SPDX-License-Identifier: Apache-2.0
 *
 * CUDA graphs in a recording; see device_graphs.h.
 */
#include "read/device_graphs.h"

#include "base/alloc.h"

void device_graphs_release(struct device_graphs *graphs)
{
	ops_intern_release(&graphs->ids);
	OPS_ARRAY_RELEASE(&graphs->nodes);
	OPS_ARRAY_RELEASE(&graphs->edges);
	OPS_ARRAY_RELEASE(&graphs->waits);
	OPS_ARRAY_RELEASE(&graphs->launched);
	ops_free(graphs->of_text);
}

/* --- nodes and edges ------------------------------------------------------------------------------------------------ */

/* Returns the number of a node, added if new; OPS_NONE if out of memory. */
static uint32_t device_graphs_number_of(struct device_graphs *graphs, uint64_t id)
{
	uint32_t number = ops_intern_add(&graphs->ids, &id, sizeof(id));
	struct graph_node *node;

	if (number < graphs->nodes.count)
		return number;
	node = number == OPS_INTERN_NONE ? NULL : OPS_ARRAY_PUSH(&graphs->nodes);
	if (!node)
		return OPS_NONE;
	*node = (struct graph_node){.copy = OPS_NONE, .waits = OPS_NONE, .original = OPS_NONE, .function = OPS_NONE};
	return number;
}

bool device_graphs_add_node(struct device_graphs *graphs, uint64_t id, uint64_t original, uint32_t operator_name)
{
	uint32_t number = device_graphs_number_of(graphs, id);
	uint32_t from = original ? device_graphs_number_of(graphs, original) : OPS_NONE;

	if (number == OPS_NONE || (original && from == OPS_NONE))
		return false;
	if (original) {
		graphs->nodes.items[from].copy = number;
		graphs->nodes.items[number].original = from;
		operator_name = graphs->nodes.items[from].operator_name;
	}
	graphs->nodes.items[number].operator_name = operator_name;
	return true;
}

static uint32_t latest_copy(const struct device_graphs *graphs, uint32_t node)
{
	uint32_t copy = graphs->nodes.items[node].copy;

	return copy == OPS_NONE ? node : copy;
}

bool device_graphs_add_edge(struct device_graphs *graphs, uint64_t from, uint64_t to)
{
	uint32_t first = device_graphs_number_of(graphs, from), second = device_graphs_number_of(graphs, to);
	struct graph_edge *edge = first == OPS_NONE || second == OPS_NONE ? NULL : OPS_ARRAY_PUSH(&graphs->edges);

	if (edge)
		*edge = (struct graph_edge){latest_copy(graphs, first), latest_copy(graphs, second)};
	return edge != NULL;
}

/* --- dependencies --------------------------------------------------------------------------------------------------- */

static bool device_graphs_add_wait(struct device_graphs *graphs, uint32_t node, uint32_t waited_for)
{
	struct graph_node *waiting = &graphs->nodes.items[node];
	struct graph_wait *wait;

	for (uint32_t w = waiting->waits; w != OPS_NONE; w = graphs->waits.items[w].next)
		if (graphs->waits.items[w].node == waited_for)
			return true;
	if (waiting->wait_count == GRAPH_WAITS_MAX)
		return true;
	wait = OPS_ARRAY_PUSH(&graphs->waits);
	if (!wait)
		return false;
	*wait = (struct graph_wait){waited_for, waiting->waits};
	waiting->waits = (uint32_t)graphs->waits.count - 1;
	waiting->wait_count++;
	return true;
}

/* Processes an edge: a node after one without rows waits for everything that one waits for. */
static bool pass_on(struct device_graphs *graphs, uint32_t from, uint32_t to)
{
	bool ok = true;

	if (graphs->nodes.items[from].runs)
		return device_graphs_add_wait(graphs, to, from);
	for (uint32_t w = graphs->nodes.items[from].waits; ok && w != OPS_NONE; w = graphs->waits.items[w].next)
		ok = device_graphs_add_wait(graphs, to, graphs->waits.items[w].node);
	return ok;
}

/* The edges sorted by their start. */
struct edge_order {
	uint32_t *first;  /* by node, and one more: index of its first edge in `to` */
	uint32_t *to;
	uint32_t *before; /* by node: number of edges to it that were not processed yet */
	uint32_t *ready;  /* nodes without such edges */
};

static void order_edges(const struct device_graphs *graphs, struct edge_order *order)
{
	/* Counted one position later, so that filling moves each start to its final position. */
	for (size_t i = 0; i < graphs->edges.count; i++)
		order->first[graphs->edges.items[i].from + 2]++;
	for (size_t i = 2; i < graphs->nodes.count + 2; i++)
		order->first[i] += order->first[i - 1];
	for (size_t i = 0; i < graphs->edges.count; i++) {
		const struct graph_edge *edge = &graphs->edges.items[i];

		order->to[order->first[edge->from + 1]++] = edge->to;
		order->before[edge->to]++;
	}
}

/* Processes each edge once, those to a node before those from it. */
static bool follow_edges(struct device_graphs *graphs, struct edge_order *order)
{
	size_t ready = 0;
	bool ok = true;

	for (uint32_t node = 0; node < graphs->nodes.count; node++)
		if (!order->before[node])
			order->ready[ready++] = node;
	for (size_t i = 0; ok && i < ready; i++) {
		uint32_t node = order->ready[i];

		for (uint32_t e = order->first[node]; ok && e < order->first[node + 1]; e++) {
			ok = pass_on(graphs, node, order->to[e]);
			if (--order->before[order->to[e]] == 0)
				order->ready[ready++] = order->to[e];
		}
	}
	return ok;
}

static bool device_graphs_find_waits(struct device_graphs *graphs)
{
	size_t nodes = graphs->nodes.count;
	struct edge_order order = {
		.first = ops_alloc_zeroed(nodes + 2, sizeof(*order.first)),
		.to = ops_realloc_array(NULL, graphs->edges.count + 1, sizeof(*order.to)),
		.before = ops_alloc_zeroed(nodes + 1, sizeof(*order.before)),
		.ready = ops_realloc_array(NULL, nodes + 1, sizeof(*order.ready)),
	};
	bool ok = order.first && order.to && order.before && order.ready;

	if (ok) {
		order_edges(graphs, &order);
		ok = follow_edges(graphs, &order);
	}
	ops_free(order.first);
	ops_free(order.to);
	ops_free(order.before);
	ops_free(order.ready);
	return ok;
}

bool device_graphs_finish(struct device_graphs *graphs, const struct ops_activities *activities)
{
	if (!graphs->nodes.count || !activities->nodes.count)
		return true;
	for (size_t i = 0; i < activities->host_functions.count; i++) {
		uint64_t node = activities->host_functions.items[i].node;
		uint32_t number = ops_intern_find(&graphs->ids, &node, sizeof(node));

		if (number != OPS_INTERN_NONE)
			graphs->nodes.items[number].function = (uint32_t)i;
	}
	ops_free(graphs->of_text); /* from a failed attempt, whose other results are found again */
	graphs->launched.count = 0;
	graphs->of_text = ops_realloc_array(NULL, activities->texts.count, sizeof(*graphs->of_text));
	for (size_t i = 0; graphs->of_text && i < activities->texts.count; i++)
		graphs->of_text[i] = OPS_NONE;
	for (size_t i = 0; graphs->of_text && i < activities->nodes.count; i++) {
		const struct ops_activity_node *of = &activities->nodes.items[i];
		uint32_t number = ops_intern_find(&graphs->ids, &of->node, sizeof(of->node));

		graphs->of_text[of->details] = number == OPS_INTERN_NONE ? OPS_NONE : number;
		if (number != OPS_INTERN_NONE)
			graphs->nodes.items[number].runs = true;
	}
	return graphs->of_text && (!graphs->edges.count || device_graphs_find_waits(graphs));
}

uint32_t device_graphs_function(const struct device_graphs *graphs, uint32_t node)
{
	const struct graph_node *items = graphs->nodes.items;

	return items[node].function == OPS_NONE && items[node].original != OPS_NONE ? items[items[node].original].function
	                                                                              : items[node].function;
}

/* --- launches ------------------------------------------------------------------------------------------------------- */

bool device_graphs_ran(struct device_graphs *graphs, uint32_t node, uint64_t launch, uint32_t row, uint32_t call)
{
	struct graph_work *work = OPS_ARRAY_PUSH(&graphs->launched);

	if (!work)
		return false;
	*work = (struct graph_work){node, row, call};
	graphs->nodes.items[node].launch = launch;
	graphs->nodes.items[node].row = row;
	return true;
}

/* Adds the links for the dependencies of a work item. Returns whether it waits for anything that ran in its launch. */
static bool draw_waits(const struct device_graphs *graphs, const struct graph_work *work, struct ops_builder *builder)
{
	const struct graph_node *node = &graphs->nodes.items[work->node];
	bool waits = false;

	for (uint32_t w = node->waits; w != OPS_NONE; w = graphs->waits.items[w].next) {
		const struct graph_node *before = &graphs->nodes.items[graphs->waits.items[w].node];

		if (before->launch != node->launch)
			continue;
		waits = true;
		ops_builder_link(builder, &(struct ops_link){before->row, work->row, OPS_LINK_DEPENDENCY, OPS_NONE});
	}
	return waits;
}

void device_graphs_launched(struct device_graphs *graphs, struct ops_builder *builder)
{
	for (size_t i = 0; i < graphs->launched.count; i++) {
		const struct graph_work *work = &graphs->launched.items[i];

		if (!draw_waits(graphs, work, builder) && work->call != OPS_NONE)
			ops_builder_link(builder, &(struct ops_link){work->call, work->row, OPS_LINK_LAUNCH, OPS_NONE});
	}
	graphs->launched.count = 0;
}
