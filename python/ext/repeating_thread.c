/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads that the extension starts; see repeating_thread.h.
 */
#include "repeating_thread.h"

#include <errno.h>
#include <signal.h>

#include <opstrobe/internal/clock.h>

static void destroy_lock(struct repeating_thread *of)
{
	pthread_cond_destroy(&of->changed);
	pthread_mutex_destroy(&of->lock);
}

int repeating_thread_start(struct repeating_thread *of, void *(*run)(void *context), void *context)
{
	pthread_condattr_t attributes;
	sigset_t all, before;
	int failure;

	of->stop = false;
	pthread_mutex_init(&of->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&of->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failure = pthread_create(&of->thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failure)
		destroy_lock(of);
	return failure;
}

bool repeating_thread_wait(struct repeating_thread *of, int64_t until_ns)
{
	struct timespec until = ops_clock_timespec(until_ns);
	bool stop;

	pthread_mutex_lock(&of->lock);
	while (!of->stop && pthread_cond_timedwait(&of->changed, &of->lock, &until) != ETIMEDOUT)
		;
	stop = of->stop;
	pthread_mutex_unlock(&of->lock);
	return !stop;
}

void repeating_thread_stop(struct repeating_thread *of)
{
	pthread_mutex_lock(&of->lock);
	of->stop = true;
	pthread_cond_signal(&of->changed);
	pthread_mutex_unlock(&of->lock);
	pthread_join(of->thread, NULL);
	destroy_lock(of);
}
