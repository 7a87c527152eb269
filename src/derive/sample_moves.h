/* SPDX-License-Identifier: Apache-2.0
 *
 * Time that was measured at some places, and belongs to others by sampled stacks: how the time of each place is divided.
 *
 *     self time of a module, called at line 9   ──▶  line 20: 3 of 4 samples
 *                                               └─▶  line 21: 1 of 4 samples
 */
#ifndef OPS_DERIVE_SAMPLE_MOVES_H
#define OPS_DERIVE_SAMPLE_MOVES_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/thread_states.h>

#include "base/array.h"
#include "base/map.h"

struct ops_sample_move {
	uint32_t from, to;           /* numbers of places; may be equal */
	enum ops_thread_state state; /* of the thread at `to` */
	int64_t weight_ns;
	double part;                 /* of the time of `from`; 0 before ops_sample_moves_divide */
};

/* A zero-initialised struct is empty. */
struct ops_sample_moves {
	OPS_ARRAY(struct ops_sample_move) moves;
	struct ops_map numbers;
};

/* Adds a sample. Returns false if out of memory. */
bool ops_sample_moves_add(struct ops_sample_moves *moves, uint32_t from, uint32_t to, enum ops_thread_state state, int64_t weight_ns);
/* Computes the parts, which are those of the weights. Returns false if out of memory. */
bool ops_sample_moves_divide(struct ops_sample_moves *moves);
void ops_sample_moves_release(struct ops_sample_moves *moves);

#endif
