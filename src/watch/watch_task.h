/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel says of a thread and of the memory of this process.
 */
#ifndef OPS_WATCH_TASK_H
#define OPS_WATCH_TASK_H

#include <stdbool.h>
#include <stdint.h>

/* Sums since the thread began. */
struct watch_task {
	int64_t ran_ns;
	int64_t waited_ns; /* ready to run, but another thread had the processor */
	int64_t minor_faults;
	int64_t major_faults; /* pages that were read from a disk */
};

/* Zeros if the thread is gone. */
void watch_task_read(int64_t tid, struct watch_task *ret_task);
/* The moment in which a process began, as its /proc/PID/stat says; 0 if it does not exist. */
uint64_t watch_process_start(int64_t pid);

struct watch_memory {
	int64_t rss_bytes;
	int64_t limit_bytes; /* of the control group, 0 none */
	int64_t limit_hits;  /* how often the control group was at its limit */
	int64_t oom_kills;   /* in the control group */
};
void watch_memory_read(struct watch_memory *ret_memory);

#endif
