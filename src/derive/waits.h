/* SPDX-License-Identifier: Apache-2.0
 *
 * How the operating system scheduled each step: what a recording's metadata "machine" says about the thread that ended
 * the step (recording/host_info.py of the package).
 *
 * While that thread waits for a processor, other threads have them all. Those of the program cause the part of the waits that they
 * have of the CPU time of all other threads of the machine:
 *
 *     CPU time of other threads of the process, or of its child processes / (CPU time of everything - CPU time of the thread)
 *
 * Other programs cause the rest. Recorded while there are child processes, such as workers of a loader.
 *
 * Steps that the recorder did not know, such as iterations of a loop, are estimated from samples of the thread (thread_states.h).
 */
#ifndef OPS_DERIVE_WAITS_H
#define OPS_DERIVE_WAITS_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "base/array.h"
#include "derive/thread_states.h"

struct ops_step_wait {
	int64_t number; /* number of the step: 12 for "ProfilerStep#12" */
	int64_t ran_ns;
	int64_t waited_ns;          /* ready to run while another thread had the processor */
	int64_t children_waited_ns; /* the same for the child process that waited longest */
	int64_t faults;             /* page faults: pages of memory touched for the first time */
};

/* In order of steps, as recorded. Empty if the trace has none. */
struct ops_step_waits {
	OPS_ARRAY(struct ops_step_wait) items;
	double threads_share;  /* of the other threads of the process: 0 to 1; 0: none, or unknown */
	double children_share; /* of its child processes; the sum is at most 1 */
};

/* Returns false if out of memory. The caller must release the waits in any case. */
bool ops_step_waits_read(struct ops_step_waits *waits, const struct ops_trace *trace);
void ops_step_waits_release(struct ops_step_waits *waits);

/* Returns the next entry of that number from `*cursor` on, and moves the cursor behind it. The cursor begins at 0.
 * Returns NULL if there is no such entry. */
const struct ops_step_wait *ops_step_waits_find(const struct ops_step_waits *waits, int64_t number, size_t *cursor);

/* Estimates how a thread was scheduled during a time. The number, children and page faults are 0. Returns false, and changes
 * nothing, if most of the time was not sampled. */
bool ops_step_wait_sampled(const struct ops_thread_samples *thread, int64_t start_ns, int64_t end_ns, struct ops_step_wait *ret_wait);

#endif
