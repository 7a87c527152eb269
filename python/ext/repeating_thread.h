/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread of the extension that does something again and again until it has to stop. It takes no GIL.
 */
#ifndef OPSTROBE_REPEATING_THREAD_H
#define OPSTROBE_REPEATING_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct repeating_thread {
	pthread_t thread;
	pthread_mutex_t lock; /* of `stop` */
	pthread_cond_t changed;
	bool stop;
};

/* 0 or an errno. No signal reaches the thread: they are for the program's. */
int repeating_thread_start(struct repeating_thread *of, void *(*run)(void *context), void *context);
/* On the thread: sleeps until a time of the monotonic clock. Returns false as soon as it is to stop. */
bool repeating_thread_wait(struct repeating_thread *of, int64_t until_ns);
/* Waits for its end. Once, and only after a start that succeeded. */
void repeating_thread_stop(struct repeating_thread *of);

#endif
