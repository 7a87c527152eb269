/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of the library's own.
 */
#ifndef OPS_BASE_THREAD_H
#define OPS_BASE_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Starts one with all signals blocked: they are the program's. False when there cannot be another. */
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
