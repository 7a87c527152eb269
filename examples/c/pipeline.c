/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in C (or C++) that records itself, without Python or torch: frames go from a source through three workers to
 * a sink, over queues. The trace shows what each thread does, where a frame waits, and how full the queues are.
 *
 *     cc pipeline.c $(pkg-config --cflags --libs opstrobe) -pthread -o pipeline
 *     ./pipeline pipeline.pt.trace.json.gz     # open it in https://ui.perfetto.dev
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/read.h>
#include <opstrobe/record.h>
#include <opstrobe/write.h>

#define FRAMES 200
#define WORKERS 3
#define PIXELS 16384
#define QUEUE_ROOM 8

struct frame {
	int number;
	struct ops_range journey; /* opened by the source, closed by the sink */
	float pixels[PIXELS];
};

/* --- a queue whose depth is a counter in the trace --------------------------------------------------------------- */

struct queue {
	const char *name;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct frame *frames[QUEUE_ROOM];
	int count;
};

static void queue_init(struct queue *queue, const char *name)
{
	memset(queue, 0, sizeof(*queue));
	queue->name = name;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->changed, NULL);
}

static void queue_put(struct queue *queue, struct frame *frame)
{
	pthread_mutex_lock(&queue->lock);
	while (queue->count == QUEUE_ROOM)
		pthread_cond_wait(&queue->changed, &queue->lock);
	queue->frames[queue->count++] = frame;
	ops_counter(queue->name, strlen(queue->name), queue->count);
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
}

static struct frame *queue_pop(struct queue *queue)
{
	struct ops_range waiting = ops_range_begin("wait", 4);
	struct frame *frame;

	pthread_mutex_lock(&queue->lock);
	while (queue->count == 0)
		pthread_cond_wait(&queue->changed, &queue->lock);
	frame = queue->frames[0];
	memmove(queue->frames, queue->frames + 1, (size_t)--queue->count * sizeof(*queue->frames));
	ops_counter(queue->name, strlen(queue->name), queue->count);
	pthread_cond_broadcast(&queue->changed);
	pthread_mutex_unlock(&queue->lock);
	ops_range_end(waiting);
	return frame;
}

/* --- the threads ------------------------------------------------------------------------------------------------- */

static struct queue raw, done;

/* Makes the frames, and at the end one NULL for each worker. */
static void *run_source(void *unused)
{
	ops_thread_name(0, "source", 6);
	for (int i = 0; i < FRAMES; i++) {
		struct frame *frame = (struct frame *)malloc(sizeof(*frame));
		struct ops_range loading = ops_range_begin("load", 4);

		if (!frame)
			abort();
		frame->number = i;
		frame->journey = ops_range_begin("frame", 5);
		for (int p = 0; p < PIXELS; p++)
			frame->pixels[p] = (float)((p * 31 + i * 17) % 255);
		ops_range_end(loading);
		queue_put(&raw, frame);
	}
	for (int i = 0; i < WORKERS; i++)
		queue_put(&raw, NULL);
	return unused;
}

/* Blurs frames, the more often the higher their number. */
static void *run_worker(void *name)
{
	struct frame *frame;

	ops_thread_name(0, (const char *)name, strlen((const char *)name));
	while ((frame = queue_pop(&raw))) {
		int rounds = 1 + frame->number / 20;
		char args[32];
		int size = snprintf(args, sizeof(args), "{\"rounds\": %d}", rounds);
		struct ops_range blurring = ops_range_begin_args("blur", 4, args, (size_t)size);

		for (int round = 0; round < rounds; round++) {
			for (int p = 1; p + 1 < PIXELS; p++)
				frame->pixels[p] = (frame->pixels[p - 1] + frame->pixels[p] + frame->pixels[p + 1]) / 3;
		}
		ops_range_end(blurring);
		queue_put(&done, frame);
	}
	return NULL;
}

static double sink(void)
{
	double sum = 0;

	for (int i = 0; i < FRAMES; i++) {
		struct frame *frame = queue_pop(&done);
		struct ops_range storing = ops_range_begin("store", 5);

		sum += frame->pixels[PIXELS / 2];
		ops_range_end(storing);
		ops_range_end(frame->journey);
		free(frame);
		if (i + 1 == FRAMES / 2)
			ops_instant("half of the frames", 18);
	}
	return sum;
}

static double run_pipeline(void)
{
	static char names[WORKERS][16];
	pthread_t threads[WORKERS + 1];
	double sum;

	queue_init(&raw, "queue: raw");
	queue_init(&done, "queue: done");
	pthread_create(&threads[0], NULL, run_source, NULL);
	for (int i = 0; i < WORKERS; i++) {
		snprintf(names[i], sizeof(names[i]), "worker %d", i + 1);
		pthread_create(&threads[i + 1], NULL, run_worker, names[i]);
	}
	sum = sink();
	for (int i = 0; i < WORKERS + 1; i++)
		pthread_join(threads[i], NULL);
	return sum;
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "pipeline.pt.trace.json";
	struct ops_session *session = NULL;
	struct ops_recording *recording = NULL;
	struct ops_trace *trace = NULL;
	struct ops_error error;
	double sum;

	if (ops_session_start(NULL, &session, &error) != OPS_OK)
		goto failed;
	ops_thread_name(0, "sink", 4);
	sum = run_pipeline();
	if (ops_session_stop(session, &recording, &error) != OPS_OK)
		goto failed;
	if (ops_trace_from_recording(recording, &trace, &error) != OPS_OK) {
		ops_recording_free(recording);
		goto failed;
	}
	if (ops_write_chrome_json(trace, path, NULL, &error) != OPS_OK)
		goto failed;
	printf("%d frames (sum %.0f), %zu events, %llu lost: %s\n", FRAMES, sum, ops_trace_events(trace)->count,
	       (unsigned long long)ops_trace_info(trace)->lost, path);
	ops_trace_unref(trace);
	return EXIT_SUCCESS;

failed:
	fprintf(stderr, "pipeline: %s\n", error.text);
	ops_trace_unref(trace);
	return EXIT_FAILURE;
}
