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

/* NULL when memory or threads are out. They take no signals. */
struct workers *workers_new(void);
/* Never fails: a job waits until a thread is free. */
void workers_submit(struct workers *workers, struct job *job, bool quick);
/* Waits until all jobs are done, those that they submit included, and ends the threads. NULL is allowed. */
void workers_free(struct workers *workers);

#endif
