/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that the library starts.
 */
#ifndef OPS_BASE_THREAD_H
#define OPS_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Starts a thread with all signals blocked, because they are for the program. Returns false if no thread can be created. */
static inline bool ops_thread_start(pthread_t *ret_thread, void *(*run)(void *context), void *context)
{
	sigset_t all, before;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = pthread_create(ret_thread, NULL, run, context) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return started;
}

#endif
