/* SPDX-License-Identifier: Apache-2.0
 *
 * Division of time by samples; see sample_moves.h.
 */
#include "derive/sample_moves.h"

#include "base/alloc.h"
#include "base/sum.h"

bool ops_sample_moves_add(struct ops_sample_moves *moves, uint32_t from, uint32_t to, enum ops_thread_state state, int64_t weight_ns)
{
	uint64_t key = ((uint64_t)from << 32 | to) * (OPS_THREAD_STATES + 1) + state;
	struct ops_sample_move *move = OPS_ARRAY_AT(&moves->moves, ops_map_number(&moves->numbers, key));

	if (!move)
		return false;
	*move = (struct ops_sample_move){from, to, state, ops_sum(move->weight_ns, weight_ns), 0};
	return true;
}

bool ops_sample_moves_divide(struct ops_sample_moves *moves)
{
	size_t places = 0;
	int64_t *weight_ns; /* by place that time is moved from */

	for (size_t i = 0; i < moves->moves.count; i++)
		places = moves->moves.items[i].from >= places ? (size_t)moves->moves.items[i].from + 1 : places;
	weight_ns = ops_alloc_zeroed(places + 1, sizeof(*weight_ns));
	for (size_t i = 0; weight_ns && i < moves->moves.count; i++)
		weight_ns[moves->moves.items[i].from] = ops_sum(weight_ns[moves->moves.items[i].from], moves->moves.items[i].weight_ns);
	for (size_t i = 0; weight_ns && i < moves->moves.count; i++) {
		struct ops_sample_move *move = &moves->moves.items[i];

		move->part = weight_ns[move->from] > 0 ? (double)move->weight_ns / (double)weight_ns[move->from] : 0;
	}
	ops_free(weight_ns);
	return weight_ns != NULL;
}

void ops_sample_moves_release(struct ops_sample_moves *moves)
{
	OPS_ARRAY_RELEASE(&moves->moves);
	ops_map_release(&moves->numbers);
}
