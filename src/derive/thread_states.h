/* SPDX-License-Identifier: Apache-2.0
 *
 * What threads did, and what they waited for: samples of the operating system's scheduling that a recording has as
 * metadata "thread_states" (python/ext/thread_states.c).
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
	int64_t ran_ns, ready_ns; /* CPU time and ready time counted by the kernel while the thread was sampled */
	OPS_ARRAY(struct ops_thread_span) spans; /* in order of time */
};

struct ops_thread_states {
	OPS_ARRAY(struct ops_thread_samples) threads;
};

/* Reads the states; empty if the trace has none. Returns false if out of memory. The caller must release them in any
 * case. */
bool ops_thread_states_read(struct ops_thread_states *states, const struct ops_trace *trace);
void ops_thread_states_release(struct ops_thread_states *states);

/* Returns the index of the samples of a track's thread; OPS_NONE: it was not sampled. */
uint32_t ops_thread_samples_of(const struct ops_thread_states *states, const struct ops_track *track);
/* Returns the index of the first span that ends after a time, or their number if there is none. */
size_t ops_thread_span_after(const struct ops_thread_samples *thread, int64_t time_ns);

/* For a time in which a thread waited for another one: returns how long the other thread was ready to run while others
 * occupied the processors. The other thread is the one that was active longest. */
int64_t ops_thread_states_starved_ns(const struct ops_thread_states *states, uint32_t thread, int64_t start_ns, int64_t end_ns);

/* A part of the self time of a row, during which a thread was in one state. */
struct ops_thread_part {
	int64_t start_ns, end_ns;
	enum ops_thread_state state;
	uint32_t thread;        /* index of its samples */
	uint32_t track;
	uint32_t row;           /* innermost row on the thread; OPS_NONE: none */
	uint32_t before, after; /* the row's child that ended before the part, and the child that begins after it;
	                         * OPS_NONE: none */
};

/* Calls `visit` for each part, those of a thread in order of time. Returns false if out of memory, or if `visit`
 * does. */
bool ops_thread_states_walk(const struct ops_thread_states *states, const struct ops_trace *trace,
                            bool (*visit)(void *context, const struct ops_thread_part *part), void *context);

#endif
