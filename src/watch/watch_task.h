/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel reports about a thread and about the memory of this process.
 */
#ifndef OPS_WATCH_TASK_H
#define OPS_WATCH_TASK_H

#include <stdbool.h>
#include <stdint.h>

/* Sums since the start of the thread. */
struct watch_task {
	int64_t ran_ns;
	int64_t waited_ns; /* ready to run, but another thread had the processor */
	int64_t minor_faults;
	int64_t major_faults; /* pages read from a disk */
};

/* Returns zeros if the thread has ended. */
void watch_task_read(int64_t tid, struct watch_task *ret_task);
/* Returns the start time of a process, as in /proc/PID/stat; 0 if it does not exist. */
uint64_t watch_process_start(int64_t pid);

struct watch_memory {
	int64_t rss_bytes;
	int64_t limit_bytes; /* of the control group; 0: none */
	int64_t failures;    /* number of allocations that failed, or nearly, at the limit of the control group */
	int64_t oom_kills;   /* in the control group */
};
void watch_memory_read(struct watch_memory *ret_memory);

#endif
