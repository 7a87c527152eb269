/* SPDX-License-Identifier: Apache-2.0
 *
 * Two queues of jobs, each with its threads; see workers.h.
 */
#include "serve/workers.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/thread.h"

#define QUICK_THREADS 2
#define SLOW_THREADS_MIN 2
#define SLOW_THREADS_MAX 16

struct queue {
	struct job *first;
	struct job **last;
	pthread_cond_t filled;
	struct workers *workers;
};

struct workers {
	pthread_mutex_t lock; /* protects the following members */
	struct queue quick, slow;
	unsigned busy; /* threads that run a job, which may submit another job */
	bool stopping;
	unsigned threads;
	pthread_t thread[QUICK_THREADS + SLOW_THREADS_MAX];
};

static struct job *workers_pop(struct queue *queue)
{
	struct job *job = queue->first;

	if (job) {
		queue->first = job->next;
		if (!queue->first)
			queue->last = &queue->first;
	}
	return job;
}

/* Stopping waits for the jobs of both queues, because a job of one may submit to the other. */
static bool workers_is_over(const struct workers *workers)
{
	return workers->stopping && !workers->busy && !workers->quick.first && !workers->slow.first;
}

static void *workers_work(void *context)
{
	struct queue *queue = context;
	struct workers *workers = queue->workers;

	pthread_mutex_lock(&workers->lock);
	while (!workers_is_over(workers)) {
		struct job *job = workers_pop(queue);

		if (!job) {
			pthread_cond_wait(&queue->filled, &workers->lock);
			continue;
		}
		workers->busy++;
		pthread_mutex_unlock(&workers->lock);
		job->run(job); /* may free the job */
		pthread_mutex_lock(&workers->lock);
		workers->busy--;
	}
	pthread_cond_broadcast(&workers->quick.filled);
	pthread_cond_broadcast(&workers->slow.filled);
	pthread_mutex_unlock(&workers->lock);
	return NULL;
}

static bool workers_start(struct workers *workers, struct queue *queue, long threads)
{
	for (long i = 0; i < threads; i++)
		if (ops_thread_start(&workers->thread[workers->threads], workers_work, queue))
			workers->threads++;
		else
			threads = i; /* one thread is sufficient */
	return threads > 0;
}

struct workers *workers_new(void)
{
	struct workers *workers = ops_alloc_zeroed(1, sizeof(*workers));
	long slow = sysconf(_SC_NPROCESSORS_ONLN);

	if (!workers)
		return NULL;
	slow = slow < SLOW_THREADS_MIN ? SLOW_THREADS_MIN : slow > SLOW_THREADS_MAX ? SLOW_THREADS_MAX : slow;
	pthread_mutex_init(&workers->lock, NULL);
	workers->quick = (struct queue){.last = &workers->quick.first, .workers = workers};
	workers->slow = (struct queue){.last = &workers->slow.first, .workers = workers};
	pthread_cond_init(&workers->quick.filled, NULL);
	pthread_cond_init(&workers->slow.filled, NULL);
	if (!workers_start(workers, &workers->quick, QUICK_THREADS) || !workers_start(workers, &workers->slow, slow)) {
		workers_free(workers);
		return NULL;
	}
	return workers;
}

void workers_submit(struct workers *workers, struct job *job, bool quick)
{
	struct queue *queue = quick ? &workers->quick : &workers->slow;

	job->next = NULL;
	pthread_mutex_lock(&workers->lock);
	*queue->last = job;
	queue->last = &job->next;
	pthread_cond_signal(&queue->filled);
	pthread_mutex_unlock(&workers->lock);
}

void workers_free(struct workers *workers)
{
	if (!workers)
		return;
	pthread_mutex_lock(&workers->lock);
	workers->stopping = true;
	pthread_cond_broadcast(&workers->quick.filled);
	pthread_cond_broadcast(&workers->slow.filled);
	pthread_mutex_unlock(&workers->lock);
	while (workers->threads)
		pthread_join(workers->thread[--workers->threads], NULL);
	pthread_cond_destroy(&workers->quick.filled);
	pthread_cond_destroy(&workers->slow.filled);
	pthread_mutex_destroy(&workers->lock);
	ops_free(workers);
}
