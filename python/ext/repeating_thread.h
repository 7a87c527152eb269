/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread of the extension that repeats a task until it is stopped. It does not take the GIL.
 */
#ifndef OPSTROBE_REPEATING_THREAD_H
#define OPSTROBE_REPEATING_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct repeating_thread {
	pthread_t thread;
	pthread_mutex_t lock; /* protects `stop` */
	pthread_cond_t changed;
	bool stop;
};

/* Returns 0 or an errno. The thread blocks all signals, because they are for the program's threads. */
int repeating_thread_start(struct repeating_thread *of, void *(*run)(void *context), void *context);
/* Called on the thread: sleeps until a time of the monotonic clock. Returns false as soon as it is to stop. */
bool repeating_thread_wait(struct repeating_thread *of, int64_t until_ns);
/* Waits for its end. Called once, and only after a successful start. */
void repeating_thread_stop(struct repeating_thread *of);

#endif
