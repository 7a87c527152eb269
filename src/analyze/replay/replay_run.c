/* SPDX-License-Identifier: Apache-2.0
 *
 * One replay. The end of a node is computed once all its dependencies are. Takes linear time in nodes and edges.
 */
#include <string.h>

#include "analyze/replay/replay.h"
#include "base/alloc.h"
#include "base/search.h"
#include "base/sum.h"

#define UNKNOWN INT64_MIN
#define STARTED (INT64_MIN + 1) /* its dependencies are being computed */

struct replay_pass {
	const struct replay *replay;
	const struct replay_changes *changes;
	unsigned enabled;
	int64_t *end_ns;   /* by node */
	int64_t *alone_ns; /* by track: end of work that nothing waits for */
	uint32_t *stack;
	int64_t *last_ns;  /* by step: end of the last such work that it waits for at its end */
	struct replay_loader loader;
	bool workers;
};

/* --- changes of one node ------------------------------------------------------------------------------------------------ */

struct node_change {
	double factor;
	bool alone;    /* only the end of the step waits for it */
	bool no_sync;
	bool fetches;  /* part of the fetch of a batch that workers make */
};

static struct node_change change_of(const struct replay_pass *pass, const struct replay_node *node)
{
	struct node_change change = {.factor = 1};
	unsigned bits = pass->changes && pass->changes->mask && node->row != OPS_NONE ? pass->changes->mask[node->row] & pass->enabled : 0;

	for (; bits; bits &= bits - 1) {
		const struct replay_change *item = &pass->changes->items[__builtin_ctz(bits)];

		switch (item->kind) {
		case REPLAY_SCALE:
			change.factor *= item->factor;
			break;
		case REPLAY_NO_LAUNCH_OVERHEAD:
			change.factor = 0;
			break;
		case REPLAY_OVERLAP:
			change.alone = true;
			break;
		case REPLAY_REMOVE_SYNCS:
			change.no_sync = true;
			break;
		case REPLAY_WORKERS:
			change.fetches = true;
			break;
		}
	}
	return change;
}

/* --- one node ----------------------------------------------------------------------------------------------------------- */

/* Returns when the node could start, as measured (`measured`) or replayed; UNKNOWN if nothing determines it. */
static int64_t ready_ns(const struct replay_pass *pass, const struct replay_node *node, bool measured)
{
	const struct replay *replay = pass->replay;
	bool runs = node->kind == REPLAY_RUN;
	int64_t ns = UNKNOWN;

	if (node->previous != OPS_NONE)
		ns = measured ? replay->nodes.items[node->previous].end_ns : pass->end_ns[node->previous];
	for (uint32_t e = runs ? node->edges : OPS_NONE; e != OPS_NONE; e = replay->edges.items[e].next) {
		const struct replay_edge *edge = &replay->edges.items[e];
		int64_t end_ns = measured ? replay->nodes.items[edge->source].end_ns : pass->end_ns[edge->source];

		if (end_ns > STARTED && ops_sum(end_ns, edge->lag_ns) > ns)
			ns = ops_sum(end_ns, edge->lag_ns);
	}
	return ns > STARTED ? ns : UNKNOWN;
}

/* A delay that the dependencies do not explain stays as measured. */
static int64_t replay_start_of(const struct replay_pass *pass, const struct replay_node *node, double factor)
{
	int64_t ready = ready_ns(pass, node, false), measured = ready_ns(pass, node, true);

	if (ready == UNKNOWN)
		return node->start_ns;
	return factor > 0 && measured != UNKNOWN && node->start_ns > measured ? ops_sum(ready, node->start_ns - measured) : ready;
}

/* Returns the end of a wait that begins at a time. */
static int64_t waited_until(const struct replay_pass *pass, const struct replay_node *node, int64_t start_ns, bool no_wait)
{
	int64_t end_ns = start_ns, call_ns = 0;

	for (uint32_t e = node->edges; e != OPS_NONE; e = pass->replay->edges.items[e].next) {
		const struct replay_edge *edge = &pass->replay->edges.items[e];
		int64_t done_ns = pass->end_ns[edge->source];

		call_ns = edge->lag_ns > call_ns ? edge->lag_ns : call_ns;
		if (!no_wait && done_ns > STARTED && ops_sum(done_ns, edge->lag_ns) > end_ns)
			end_ns = ops_sum(done_ns, edge->lag_ns);
	}
	call_ns = call_ns < node->end_ns - node->start_ns ? call_ns : node->end_ns - node->start_ns;
	if (node->kind == REPLAY_SYNC && ops_sum(start_ns, call_ns) > end_ns)
		end_ns = ops_sum(start_ns, call_ns);
	return end_ns;
}

static int64_t scaled(int64_t ns, double factor)
{
	return factor == 1 ? ns : (double)ns * factor < 9e18 ? (int64_t)((double)ns * factor + 0.5) : INT64_MAX / 2;
}

static void ends_in_step(struct replay_pass *pass, uint32_t step, int64_t end_ns)
{
	if (step != OPS_NONE && end_ns > pass->last_ns[step])
		pass->last_ns[step] = end_ns;
}

uint32_t replay_step_at(const struct replay *replay, int64_t time_ns)
{
	size_t low = 0;

	OPS_LOWER_BOUND(low, replay->steps.count, i, replay->steps.items[i].start_ns <= time_ns);
	return low && time_ns < replay->steps.items[low - 1].end_ns ? (uint32_t)low - 1 : OPS_NONE;
}

static void run_node(struct replay_pass *pass, uint32_t at)
{
	const struct replay_node *node = &pass->replay->nodes.items[at];
	struct node_change change = change_of(pass, node);
	int64_t start_ns = replay_start_of(pass, node, change.factor), ns = scaled(node->end_ns - node->start_ns, change.factor), end_ns;

	if (change.factor == 0)
		ns = 0;
	if (node->kind != REPLAY_RUN)
		end_ns = change.factor == 0 ? start_ns : waited_until(pass, node, start_ns, change.no_sync || change.alone);
	else
		end_ns = ops_sum(start_ns, ns);
	if (change.fetches) {
		pass->loader.making_ns = ops_sum(pass->loader.making_ns, node->kind == REPLAY_RUN ? ns : 0);
		end_ns = node->batch ? replay_loader_fetch(&pass->loader, pass->replay, start_ns) : start_ns;
	} else if (change.alone && node->kind == REPLAY_RUN) {
		int64_t free_ns = pass->alone_ns[node->track];

		pass->alone_ns[node->track] = ops_sum(free_ns > start_ns ? free_ns : start_ns, ns);
		ends_in_step(pass, replay_step_at(pass->replay, node->start_ns), pass->alone_ns[node->track]);
		end_ns = start_ns;
	}
	pass->end_ns[at] = end_ns;
}

/* --- all nodes ---------------------------------------------------------------------------------------------------------- */

/* Pushes the dependencies of a node that are not computed yet. Returns false if there are none. Circular dependencies,
 * which disagreeing clocks can cause, are ignored. */
static bool push_sources(struct replay_pass *pass, const struct replay_node *node, size_t *depth)
{
	size_t before = *depth;

	if (node->previous != OPS_NONE && pass->end_ns[node->previous] == UNKNOWN)
		pass->stack[(*depth)++] = node->previous;
	for (uint32_t e = node->edges; e != OPS_NONE && *depth == before; e = pass->replay->edges.items[e].next)
		if (pass->end_ns[pass->replay->edges.items[e].source] == UNKNOWN)
			pass->stack[(*depth)++] = pass->replay->edges.items[e].source;
	return *depth > before;
}

static void run_from(struct replay_pass *pass, uint32_t first)
{
	size_t depth = 1;

	pass->stack[0] = first;
	while (depth) {
		uint32_t at = pass->stack[depth - 1];

		pass->end_ns[at] = STARTED;
		if (push_sources(pass, &pass->replay->nodes.items[at], &depth))
			continue;
		run_node(pass, at);
		depth--;
	}
}

static int64_t moment(const struct replay_pass *pass, uint32_t node, int64_t measured_ns)
{
	return node == OPS_NONE ? measured_ns : pass->end_ns[node];
}

static void time_steps(struct replay_pass *pass, int64_t *ret_step_ns)
{
	const struct replay *replay = pass->replay;
	int64_t before_ns = INT64_MIN;

	for (size_t i = 0; i < replay->work.count; i++)
		ends_in_step(pass, replay->work_step[i], pass->end_ns[replay->work.items[i]]);
	for (size_t i = 0; i < replay->steps.count; i++) {
		const struct replay_step *step = &replay->steps.items[i];
		int64_t start_ns = moment(pass, step->start, step->start_ns), end_ns = moment(pass, step->end, step->end_ns);

		end_ns = pass->last_ns[i] > end_ns ? pass->last_ns[i] : end_ns;
		end_ns = end_ns > before_ns ? end_ns : before_ns;
		ret_step_ns[i] = ops_difference(end_ns, before_ns > start_ns ? before_ns : start_ns);
		before_ns = end_ns;
	}
}

static bool pass_init(struct replay_pass *pass)
{
	const struct replay *replay = pass->replay;
	size_t count = replay->nodes.count;
	bool done;

	pass->end_ns = ops_realloc_array(NULL, count + 1, sizeof(*pass->end_ns));
	pass->stack = ops_realloc_array(NULL, count + 1, sizeof(*pass->stack));
	pass->alone_ns = ops_realloc_array(NULL, replay->track_count + 1, sizeof(*pass->alone_ns));
	pass->last_ns = ops_realloc_array(NULL, replay->steps.count + 1, sizeof(*pass->last_ns));
	done = pass->end_ns && pass->stack && pass->alone_ns && pass->last_ns;
	for (size_t i = 0; done && i < count; i++)
		pass->end_ns[i] = UNKNOWN;
	for (size_t i = 0; done && i < replay->track_count; i++)
		pass->alone_ns[i] = INT64_MIN;
	for (size_t i = 0; done && i < replay->steps.count; i++)
		pass->last_ns[i] = INT64_MIN;
	for (size_t i = 0; done && pass->changes && i < pass->changes->count; i++)
		if (pass->enabled >> i & 1 && pass->changes->items[i].kind == REPLAY_WORKERS && !pass->workers) {
			pass->workers = true;
			done = replay_loader_init(&pass->loader, replay, pass->changes->items[i].workers);
		}
	return done;
}

bool replay_run(const struct replay *replay, const struct replay_changes *changes, unsigned enabled, int64_t *ret_step_ns)
{
	struct replay_pass pass = {.replay = replay, .changes = changes, .enabled = enabled};
	bool done = pass_init(&pass);

	for (uint32_t node = 0; done && node < replay->nodes.count; node++)
		if (pass.end_ns[node] == UNKNOWN)
			run_from(&pass, node);
	if (done)
		time_steps(&pass, ret_step_ns);
	ops_free(pass.end_ns);
	ops_free(pass.stack);
	ops_free(pass.alone_ns);
	ops_free(pass.last_ns);
	replay_loader_release(&pass.loader);
	return done;
}
