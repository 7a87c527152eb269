/* SPDX-License-Identifier: Apache-2.0
 *
 * What threads did, and what they waited for: the samples of the kernel's view that a recording has as metadata
 * "thread_states" (python/ext/thread_states.c).
 */
#ifndef OPS_DERIVE_THREAD_STATES_H
#define OPS_DERIVE_THREAD_STATES_H

#include <stdbool.h>

#include <opstrobe/internal/thread_states.h>
#include <opstrobe/trace.h>

#include "base/array.h"

struct ops_thread_span {
	int64_t start_ns, end_ns;
	enum ops_thread_state state;
};

struct ops_thread_samples {
	int64_t tid;
	int64_t ran_ns, ready_ns; /* what the kernel counted, while it was sampled */
	OPS_ARRAY(struct ops_thread_span) spans; /* in order */
};

struct ops_thread_states {
	OPS_ARRAY(struct ops_thread_samples) threads;
};

/* Empty if the trace has none. Returns false if memory is out. Released in any case. */
bool ops_thread_states_read(struct ops_thread_states *states, const struct ops_trace *trace);
void ops_thread_states_release(struct ops_thread_states *states);

/* Index of the first span that ends after a time; their number if there is none. */
size_t ops_thread_span_after(const struct ops_thread_samples *thread, int64_t time_ns);

/* Of a time in which a thread waited for another one: how long that was ready to run, but others had the processors. The other
 * one is the thread that was active longest. */
int64_t ops_thread_states_starved_ns(const struct ops_thread_states *states, uint32_t thread, int64_t start_ns, int64_t end_ns);

/* A thread was in a state during a part of the self time of a row. */
struct ops_thread_part {
	int64_t start_ns, end_ns;
	enum ops_thread_state state;
	uint32_t thread;        /* index of its samples */
	uint32_t track;
	uint32_t row;           /* innermost on the thread; OPS_NONE */
	uint32_t before, after; /* children of the row that ended before it and begin after it; OPS_NONE */
};

/* Calls `visit` for each part, those of a thread in order of time. Returns false if memory is out, or `visit` does. */
bool ops_thread_states_walk(const struct ops_thread_states *states, const struct ops_trace *trace,
                            bool (*visit)(void *context, const struct ops_thread_part *part), void *context);

#endif
