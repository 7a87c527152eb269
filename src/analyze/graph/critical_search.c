/* SPDX-License-Identifier: Apache-2.0
 *
 * The longest path by weight from any node to any other, in linear time. Visits nodes in topological order, the
 * earliest found first. Among equal paths the first edge wins.
 */
#include "analyze/graph/critical_path.h"
#include "base/alloc.h"
#include "base/order.h"
#include "base/sum.h"

struct search {
	struct critical_path *path;
	const int64_t *weights_ns;
	size_t nodes;
	struct ops_groups out; /* by node: its edges, in order of creation */
	uint32_t *before; /* by node: number of edges into it that are not visited yet */
	uint32_t *best;   /* by node: last edge of the longest path to it; OPS_NONE: none */
	int64_t *far_ns;  /* by node: length of that path */
	uint32_t *queue;
	size_t queued;
};

static void search_release(struct search *s)
{
	ops_groups_release(&s->out);
	ops_free(s->before);
	ops_free(s->best);
	ops_free(s->far_ns);
	ops_free(s->queue);
}

static uint32_t first_node(const void *edges, uint32_t edge)
{
	return ((const struct critical_edge *)edges)[edge].from;
}

static bool search_init(struct search *s)
{
	const struct critical_edge *edges = s->path->edges.items;

	s->before = ops_alloc_zeroed(s->nodes + 1, sizeof(*s->before));
	s->best = ops_alloc_none(s->nodes + 1);
	s->far_ns = ops_alloc_zeroed(s->nodes + 1, sizeof(*s->far_ns));
	s->queue = ops_realloc_array(NULL, s->nodes + 1, sizeof(*s->queue));
	for (size_t e = 0; s->before && e < s->path->edges.count; e++)
		s->before[edges[e].to]++;
	return s->before && s->best && s->far_ns && s->queue &&
	       ops_groups_init(&s->out, s->path->edges.count, s->nodes, first_node, edges);
}

static int64_t weight(const struct search *s, uint32_t edge)
{
	int64_t ns = s->weights_ns ? s->weights_ns[edge] : s->path->edges.items[edge].weight_ns;

	return ns > 0 ? ns : 0;
}

/* Returns true if the path over this edge is longer than the best so far. Among equals the edge created first wins. */
static bool better(const struct search *s, uint32_t edge, uint32_t to, int64_t far_ns)
{
	if (s->best[to] == OPS_NONE || far_ns != s->far_ns[to])
		return s->best[to] == OPS_NONE || far_ns > s->far_ns[to];
	return edge < s->best[to];
}

static void critical_search_relax(struct search *s, uint32_t node)
{
	for (uint32_t i = s->out.first[node]; i < s->out.first[node + 1]; i++) {
		uint32_t edge = s->out.order[i], to = s->path->edges.items[edge].to;
		int64_t far_ns = ops_sum(s->far_ns[node], weight(s, edge));

		if (better(s, edge, to, far_ns)) {
			s->best[to] = edge;
			s->far_ns[to] = far_ns;
		}
		if (--s->before[to] == 0)
			s->queue[s->queued++] = to;
	}
}

/* Collects the path backwards from its end, then reverses it. */
static bool critical_search_collect(struct search *s, uint32_t end)
{
	struct critical_path *path = s->path;
	uint32_t node = end;

	path->path.count = 0;
	path->path_end = end;
	path->path_weight_ns = s->far_ns[end];
	while (s->best[node] != OPS_NONE) {
		uint32_t *edge = OPS_ARRAY_PUSH(&path->path);

		if (!edge)
			return false;
		*edge = s->best[node];
		node = path->edges.items[*edge].from;
	}
	path->path_start = node;
	for (size_t i = 0, j = path->path.count; i + 1 < j--; i++) {
		uint32_t edge = path->path.items[i];

		path->path.items[i] = path->path.items[j];
		path->path.items[j] = edge;
	}
	return true;
}

bool critical_path_search(struct critical_path *path, const int64_t *weights_ns)
{
	struct search s = {.path = path, .weights_ns = weights_ns, .nodes = path->events.count * 2};
	uint32_t end = OPS_NONE;
	bool done = search_init(&s);

	path->acyclic = true;
	if (done) {
		for (uint32_t node = 0; node < s.nodes; node++)
			if (s.before[node] == 0)
				s.queue[s.queued++] = node;
		for (size_t i = 0; i < s.queued; i++) {
			critical_search_relax(&s, s.queue[i]);
			if (end == OPS_NONE || s.far_ns[s.queue[i]] > s.far_ns[end])
				end = s.queue[i];
		}
		path->acyclic = s.queued == s.nodes;
	}
	if (done && path->acyclic && end != OPS_NONE)
		done = critical_search_collect(&s, end);
	search_release(&s);
	return done;
}
