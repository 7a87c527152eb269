/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of the autograd engine. With a device the engine has a separate thread, and the thread that called backward()
 * waits:
 *
 *     caller   (loss)─╮ waits                      ╭─▶(Optimizer.step …)
 *     engine          ╰─▶(MmBackward) (AddBackward)╯
 */
#ifndef OPS_ANALYZE_CRITICAL_BACKWARD_H
#define OPS_ANALYZE_CRITICAL_BACKWARD_H

#include "analyze/graph/critical_path.h"

/* What an engine's thread does. */
struct engine_thread {
	uint32_t track;
	uint32_t caller; /* track of the thread that waits for it */
	OPS_ARRAY(uint32_t) events; /* those that are in no other, by start */
	size_t at;       /* the first that is not before where the caller is */
};

struct critical_engines {
	OPS_ARRAY(struct engine_thread) threads;
};

/* Finds the threads of the engine whose caller is known: the thread of their process that has the steps, or else the one that
 * ran the forward operators. False when memory is out; released in any case. */
bool critical_engines_init(struct critical_engines *engines, const struct critical_path *path);
void critical_engines_release(struct critical_engines *engines);
bool critical_engines_have(const struct critical_engines *engines, uint32_t track);

/* Adds edges to and from what engines do between two nodes of a thread, of which each follows the one before; OPS_NONE: before
 * the first, after the last. */
bool critical_engines_between(struct critical_engines *engines, struct critical_path *path, uint32_t track, uint32_t from,
                              uint32_t to);

#endif
