/* SPDX-License-Identifier: Apache-2.0
 *
 * Worker threads: some for tasks of milliseconds, some for tasks of seconds, so that a viewer can be moved
 * while an analysis runs. A job is embedded in its request; the queues allocate no memory.
 */
#ifndef OPS_SERVE_WORKERS_H
#define OPS_SERVE_WORKERS_H

#include <stdbool.h>

struct job {
	void (*run)(struct job *job);
	struct job *next;
};

struct workers;

/* Returns NULL if memory or threads are exhausted. The threads block all signals. */
struct workers *workers_new(void);
/* Never fails: a job waits until a thread is free. */
void workers_submit(struct workers *workers, struct job *job, bool quick);
/* Waits until all jobs are done, including those that they submit, and ends the threads. NULL is allowed. */
void workers_free(struct workers *workers);

#endif
