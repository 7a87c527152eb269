/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops in which each iteration requires the result of the previous one, such as a recurrent cell, a sampler or a
 * decoder. Their iterations cannot be computed all at once. An operator depends on an earlier iteration if it reads
 * memory that an operator of the loop created or wrote in it, or that a dependent operator of the same iteration created
 * or wrote. A sum over iterations has one such operator among many; a recurrent loop spends most of its time in them. If all chains of
 * such iterations are short, as those of eight beams that are extended in turn, the iterations of different chains can be computed at once.
 */
#include "analyze/advice/advice.h"
#include "base/alloc.h"

/* Maximum nesting of operators. */
#define DEPTH_MAX 64
#define CHAIN_MIN 0.25 /* minimum share of the iterations of a loop in its longest chain */
#define RECURRENT_AMONG 4 /* a quarter of the loops at a line decides, since single operators may be slow */

struct tracing {
	struct ops_map makers; /* from memory to the outermost operator that created or wrote it last */
	uint32_t *memory_rows;
	uint32_t *seen;         /* by loop: number of rows so far of the kind that starts its iterations */
	uint32_t *iteration_of;     /* by row */
	uint8_t *dependent;     /* by row */
	uint32_t *chain;        /* by row: number of earlier iterations that it requires, one through another */
	size_t next;            /* index of the next memory record */
};

static uint32_t outermost(const struct advice *advice, uint32_t row)
{
	for (int i = 0; i < DEPTH_MAX && row != OPS_NONE && (advice->zone[row] & ADVICE_IN_OPERATOR); i++)
		row = advice->events->parent[row];
	return row;
}

static bool set_maker(struct tracing *tracing, uint64_t address, uint32_t row)
{
	uint32_t *slot = ops_map_slot(&tracing->makers, address, row);

	if (slot)
		*slot = row;
	return slot != NULL;
}

static bool advice_recurrent_follow_memory(struct tracing *tracing, const struct advice *advice, int64_t time_ns)
{
	size_t count;
	const struct ops_memory_record *records = ops_trace_memory(advice->trace, &count);

	for (; tracing->next < count && records[tracing->next].time_ns <= time_ns; tracing->next++)
		if (records[tracing->next].bytes > 0 &&
		    !set_maker(tracing, records[tracing->next].address, outermost(advice, tracing->memory_rows[tracing->next])))
			return false;
	return true;
}

/* Returns whether a row depends on an earlier iteration, and sets its chain. */
static bool depends(struct tracing *tracing, const struct advice *advice, uint32_t row)
{
	struct ops_storage storage;
	bool found = false;

	for (size_t i = 0; ops_event_storage(advice->trace, row, i, &storage); i++) {
		uint32_t maker = ops_map_find(&tracing->makers, storage.address), chain;

		if (maker == OPS_NONE || maker >= row || advice->loop_of[maker] != advice->loop_of[row])
			continue;
		if (storage.written && tracing->iteration_of[maker] < tracing->iteration_of[row])
			continue; /* a sum over iterations */
		if (tracing->iteration_of[maker] >= tracing->iteration_of[row] && !tracing->dependent[maker])
			continue;
		found = true;
		chain = tracing->chain[maker] + (tracing->iteration_of[maker] < tracing->iteration_of[row]);
		tracing->chain[row] = chain > tracing->chain[row] ? chain : tracing->chain[row];
	}
	return found;
}

static bool advice_recurrent_add(struct tracing *tracing, struct advice *advice, uint32_t row)
{
	uint32_t index = advice->loop_of[row];
	struct ops_storage storage;

	if (!advice_recurrent_follow_memory(tracing, advice, advice->events->start_ns[row]))
		return false;
	if (index != OPS_NONE && depends(tracing, advice, row)) {
		tracing->dependent[row] = 1;
		advice->loops.items[index].dependent_ns = ops_sum(advice->loops.items[index].dependent_ns, advice_ns(advice, row));
		if (tracing->chain[row] > advice->loops.items[index].chain)
			advice->loops.items[index].chain = tracing->chain[row];
	}
	for (size_t i = 0; ops_event_storage(advice->trace, row, i, &storage); i++)
		if (storage.written && !set_maker(tracing, storage.address, row))
			return false;
	return true;
}

static bool advice_recurrent_walk(struct tracing *tracing, struct advice *advice)
{
	bool done = true;

	for (uint32_t row = 0; done && row < advice->events->count; row++) {
		uint32_t index = advice->loop_of[row];

		if (index != OPS_NONE) {
			const struct advice_loop *loop = &advice->loops.items[index];

			tracing->seen[index] += advice_may_begin(advice, loop, row);
			tracing->iteration_of[row] = advice_iteration(loop, tracing->seen[index]);
		}
		if (advice_is_operator(advice, row) && !(advice->zone[row] & ADVICE_IN_OPERATOR))
			done = advice_recurrent_add(tracing, advice, row);
	}
	return done;
}

bool advice_find_recurrent(struct advice *advice)
{
	size_t count = advice->events->count + 1;
	struct tracing tracing = {.makers = {0}};
	uint8_t *recurrent;
	bool done;

	if (!advice->loops.count)
		return true;
	recurrent = ops_alloc_zeroed(advice->loops.count, 1);
	tracing.memory_rows = advice_memory_rows(advice);
	tracing.seen = ops_alloc_zeroed(advice->loops.count, sizeof(*tracing.seen));
	tracing.iteration_of = ops_alloc_zeroed(count, sizeof(*tracing.iteration_of));
	tracing.dependent = ops_alloc_zeroed(count, 1);
	tracing.chain = ops_alloc_zeroed(count, sizeof(*tracing.chain));
	done = recurrent && tracing.memory_rows && tracing.seen && tracing.iteration_of && tracing.dependent && tracing.chain &&
	       advice_recurrent_walk(&tracing, advice);
	for (size_t i = 0; done && i < advice->loops.count; i++) {
		struct advice_loop *loop = &advice->loops.items[i];

		if (loop->dependent_ns <= loop->operators_ns / 2)
			loop->chain = 0;
		recurrent[i] = loop->chain > 0 && loop->chain >= CHAIN_MIN * advice_iteration(loop, tracing.seen[i]);
	}
	done = done && advice_loops_agree(advice, recurrent, RECURRENT_AMONG);
	for (size_t i = 0; done && i < advice->loops.count; i++)
		advice->loops.items[i].recurrent = recurrent[i];
	ops_free(recurrent);
	ops_map_release(&tracing.makers);
	ops_free(tracing.memory_rows);
	ops_free(tracing.seen);
	ops_free(tracing.iteration_of);
	ops_free(tracing.dependent);
	ops_free(tracing.chain);
	return done;
}
