/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of frames that share what they have in common: each is a frame and the chain of its callers.
 *
 *     0 ─▶ 1 train.py(3): main ─▶ 2 train.py(9): step ─▶ 4 aten::mm
 *                              └▶ 3 train.py(20): save
 *
 * Chain 0 has no frames. Callers have smaller numbers than what they call, so that one walk up or down the array passes
 * every chain after (or before) those it builds on.
 */
#ifndef OPS_ANALYZE_FRAMES_H
#define OPS_ANALYZE_FRAMES_H

#include <stdbool.h>

#include <opstrobe/internal/analyze.h>

#include "base/array.h"
#include "base/intern.h"

struct ops_frames {
	const struct ops_trace *trace; /* numbers below its count of strings are names of its */
	struct ops_intern names;       /* those that follow */
	OPS_ARRAY(struct ops_frame) frames;
	uint32_t *slots; /* open addressing, 0 free; a power of two of them */
	size_t slot_count;
};

/* With chain 0. False when memory is out; ops_frames_release in every case. */
bool ops_frames_init(struct ops_frames *frames, const struct ops_trace *trace);
void ops_frames_release(struct ops_frames *frames);

/* The number of a name, which may be any bytes; OPS_NONE when memory is out. */
uint32_t ops_frames_name(struct ops_frames *frames, struct ops_string text);
struct ops_string ops_frames_text(const struct ops_frames *frames, uint32_t name);
static inline size_t ops_frames_name_count(const struct ops_frames *frames)
{
	return ops_trace_string_count(frames->trace) + frames->names.count;
}

/* The chain of `caller` and, innermost, a frame of that name; OPS_NONE when memory is out or `caller` is OPS_NONE. */
uint32_t ops_frames_add(struct ops_frames *frames, uint32_t caller, uint32_t name);

/* By row, OPS_NONE where there is none: the call of a Python function that it began in, on its own track. (The tree knows
 * only what lies in a function altogether; in torch's files ranges begin in one and end in another.) NULL when memory is
 * out; freed with ops_free. */
uint32_t *ops_python_callers(const struct ops_trace *trace);

/* By chain: a number shared by chains with the same `innermost` innermost frames. NULL when memory is out; ops_free. */
uint32_t *ops_stack_groups(const struct ops_stacks *stacks, uint32_t innermost);

/* Adds the frames of an event's `call_stack` text below the chain `caller`. */
uint32_t ops_frames_add_text(struct ops_frames *frames, uint32_t caller, struct ops_string text,
                             bool (*skip)(struct ops_string frame));

#endif
