/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of the autograd engine. With a device the engine runs on a separate thread, and the thread that called backward()
 * waits:
 *
 *     caller   (loss)─╮ waits                      ╭─▶(Optimizer.step …)
 *     engine          ╰─▶(MmBackward) (AddBackward)╯
 */
#ifndef OPS_ANALYZE_CRITICAL_BACKWARD_H
#define OPS_ANALYZE_CRITICAL_BACKWARD_H

#include "analyze/graph/critical_path.h"

/* Events of one thread of the engine. */
struct engine_thread {
	uint32_t track;
	uint32_t caller; /* track of the thread that waits for the engine */
	OPS_ARRAY(uint32_t) events; /* outermost events, by start */
	size_t at;       /* position of the first event that is not before the caller's current node */
};

struct critical_engines {
	OPS_ARRAY(struct engine_thread) threads;
};

/* Finds the threads of the engine whose caller is known: the thread of their process that has the steps, or else the
 * one that ran the forward operators. Returns false if out of memory. The caller must release it in any case. */
bool critical_engines_init(struct critical_engines *engines, const struct critical_path *path);
void critical_engines_release(struct critical_engines *engines);
bool critical_engines_have(const struct critical_engines *engines, uint32_t track);

/* Adds edges from and to the engine's events that lie between two consecutive nodes of a thread. OPS_NONE: before the
 * first node, or after the last. */
bool critical_engines_between(struct critical_engines *engines, struct critical_path *path, uint32_t track, uint32_t from,
                              uint32_t to);

#endif
