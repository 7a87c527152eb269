/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of frames that share common parts: each is a frame and the chain of its callers.
 *
 *     0 ─▶ 1 train.py(3): main ─▶ 2 train.py(9): step ─▶ 4 aten::mm
 *                              └▶ 3 train.py(20): save
 *
 * Chain 0 has no frames. Callers have smaller numbers than their callees, so a walk up (or down) the array visits every
 * chain after (or before) its callers.
 */
#ifndef OPS_ANALYZE_FRAMES_H
#define OPS_ANALYZE_FRAMES_H

#include <stdbool.h>

#include <opstrobe/internal/analyze.h>

#include "base/array.h"
#include "base/intern.h"
#include "base/map.h"

struct ops_frames {
	const struct ops_trace *trace; /* numbers below its count of strings are its strings */
	struct ops_intern names;       /* names with the numbers after those */
	OPS_ARRAY(struct ops_frame) frames;
	struct ops_map chains; /* from caller and name to chain */
};

/* Initializes the chains with chain 0. Returns false if out of memory. The caller must call ops_frames_release() in any
 * case. */
bool ops_frames_init(struct ops_frames *frames, const struct ops_trace *trace);
void ops_frames_release(struct ops_frames *frames);

/* Returns the number of a name, which may be any bytes; OPS_NONE if out of memory. */
uint32_t ops_frames_name(struct ops_frames *frames, struct ops_string text);
struct ops_string ops_frames_text(const struct ops_frames *frames, uint32_t name);
static inline size_t ops_frames_name_count(const struct ops_frames *frames)
{
	return ops_trace_string_count(frames->trace) + frames->names.count;
}

/* Returns the chain of `caller` with a frame of that name as the innermost; OPS_NONE if out of memory or `caller` is
 * OPS_NONE. */
uint32_t ops_frames_add(struct ops_frames *frames, uint32_t caller, uint32_t name);

/* Returns, by row, the call of a Python function on its own track in which the row began; OPS_NONE: none. (The tree
 * contains only rows that lie entirely in a function; in torch's files ranges begin in one and end in another.) Freed
 * with ops_free. Returns NULL if out of memory. */
uint32_t *ops_python_callers(const struct ops_trace *trace);

/* Returns, by chain, a number shared by chains with the same `innermost` innermost frames. Freed with ops_free. Returns
 * NULL if out of memory. */
uint32_t *ops_stack_groups(const struct ops_stacks *stacks, uint32_t innermost);

/* Adds the frames of an event's `call_stack` text below the chain `caller`. */
uint32_t ops_frames_add_text(struct ops_frames *frames, uint32_t caller, struct ops_string text,
                             bool (*skip)(struct ops_string frame));

#endif
