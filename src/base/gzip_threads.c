/* SPDX-License-Identifier: Apache-2.0
 *
 * gzip on several threads; see gzip_threads.h.
 *
 *     block ─▶ job (ring) ─▶ a thread: deflate, with the end of the block before as dictionary ─▶ emitted in order
 *
 * Each compressed block ends at a byte (Z_SYNC_FLUSH), so that they can be joined. The checksums of blocks are combined.
 */
#include "base/gzip_threads.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/thread.h"

#define DICTIONARY_BYTES (32u << 10)
#define MEMORY_LEVEL 9
#define RAW_WINDOW (-15)      /* the largest window, without header and checksum */
#define FLUSH_BYTES 64u       /* what a flush adds, with a margin */
#define JOBS_PER_THREAD 2u

struct gzip_job {
	char *input; /* the dictionary, then the block */
	unsigned char *output;
	size_t dictionary_size, size, output_size;
	uint32_t crc;
	bool is_last;
	bool is_done; /* protected by the lock */
};

struct gzip_worker {
	struct ops_gzip_threads *of;
	z_stream stream;
	pthread_t thread;
};

struct ops_gzip_threads {
	int level;
	ops_gzip_emit *emit;
	void *context;
	unsigned job_count, worker_count, thread_count;
	bool is_started;
	size_t output_room;
	uint64_t emitted; /* jobs */
	uint32_t crc;
	uint32_t total; /* bytes, modulo 2^32 as in the file */

	pthread_mutex_t lock; /* protects the following members */
	pthread_cond_t added_one, done_one;
	uint64_t added, begun; /* jobs */
	bool stops;

	struct gzip_worker workers[OPS_GZIP_THREADS_MAX];
	struct gzip_job jobs[OPS_GZIP_THREADS_MAX * JOBS_PER_THREAD];
};

static void *gzip_threads_allocate(void *unused, uInt count, uInt bytes_each)
{
	(void)unused;
	return ops_realloc_array(NULL, count, bytes_each);
}

static void gzip_threads_release(void *unused, void *memory)
{
	(void)unused;
	ops_free(memory);
}

static void gzip_job_run(struct gzip_job *job, z_stream *stream, size_t room)
{
	const Bytef *block = (const Bytef *)job->input + job->dictionary_size;

	deflateReset(stream);
	if (job->dictionary_size)
		deflateSetDictionary(stream, (const Bytef *)job->input, (uInt)job->dictionary_size);
	stream->next_in = (Bytef *)block;
	stream->avail_in = (uInt)job->size;
	stream->next_out = job->output;
	stream->avail_out = (uInt)room;
	deflate(stream, job->is_last ? Z_FINISH : Z_SYNC_FLUSH);
	job->output_size = room - stream->avail_out;
	job->crc = (uint32_t)crc32(0, block, (uInt)job->size);
}

static void *gzip_worker_run(void *context)
{
	struct gzip_worker *worker = context;
	struct ops_gzip_threads *of = worker->of;

	pthread_mutex_lock(&of->lock);
	while (!of->stops) {
		struct gzip_job *job;

		if (of->begun == of->added) {
			pthread_cond_wait(&of->added_one, &of->lock);
			continue;
		}
		job = &of->jobs[of->begun++ % of->job_count];
		pthread_mutex_unlock(&of->lock);
		gzip_job_run(job, &worker->stream, of->output_room);
		pthread_mutex_lock(&of->lock);
		job->is_done = true;
		pthread_cond_signal(&of->done_one);
	}
	pthread_mutex_unlock(&of->lock);
	return NULL;
}

static bool gzip_threads_allocate_all(struct ops_gzip_threads *of)
{
	for (unsigned i = 0; i < of->worker_count; i++) {
		z_stream *stream = &of->workers[i].stream;

		of->workers[i].of = of;
		stream->zalloc = gzip_threads_allocate;
		stream->zfree = gzip_threads_release;
		if (deflateInit2(stream, of->level, Z_DEFLATED, RAW_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
			return false;
	}
	of->output_room = deflateBound(&of->workers[0].stream, OPS_GZIP_BLOCK_BYTES) + FLUSH_BYTES;
	for (unsigned i = 0; i < of->job_count; i++) {
		of->jobs[i].input = ops_alloc(DICTIONARY_BYTES + OPS_GZIP_BLOCK_BYTES);
		of->jobs[i].output = ops_alloc(of->output_room);
		if (!of->jobs[i].input || !of->jobs[i].output)
			return false;
	}
	return true;
}

struct ops_gzip_threads *ops_gzip_threads_new(int level, unsigned threads, ops_gzip_emit *emit, void *context)
{
	struct ops_gzip_threads *of = ops_alloc_zeroed(1, sizeof(*of));

	if (!of)
		return NULL;
	of->level = level;
	of->emit = emit;
	of->context = context;
	of->worker_count = threads < 1 ? 1 : threads < OPS_GZIP_THREADS_MAX ? threads : OPS_GZIP_THREADS_MAX;
	of->job_count = of->worker_count * JOBS_PER_THREAD;
	pthread_mutex_init(&of->lock, NULL);
	pthread_cond_init(&of->added_one, NULL);
	pthread_cond_init(&of->done_one, NULL);
	if (!gzip_threads_allocate_all(of)) {
		ops_gzip_threads_free(of);
		return NULL;
	}
	return of;
}

static void gzip_threads_start(struct ops_gzip_threads *of)
{
	of->is_started = true;
	for (unsigned i = 0; i < of->worker_count && of->thread_count == i; i++)
		of->thread_count += ops_thread_start(&of->workers[i].thread, gzip_worker_run, &of->workers[i]);
}

static void gzip_emit_header(const struct ops_gzip_threads *of)
{
	const char strength = of->level == 9 ? 2 : of->level == 1 ? 4 : 0;
	const char header[10] = {0x1f, (char)0x8b, Z_DEFLATED, 0, 0, 0, 0, 0, strength, 3}; /* no name, no time; Unix */

	of->emit(of->context, header, sizeof(header));
}

static void gzip_emit_trailer(const struct ops_gzip_threads *of)
{
	char trailer[8];

	for (int i = 0; i < 4; i++) {
		trailer[i] = (char)(of->crc >> 8 * i);
		trailer[4 + i] = (char)(of->total >> 8 * i);
	}
	of->emit(of->context, trailer, sizeof(trailer));
}

/* Waits for the oldest job that was not emitted, and emits it. */
static void gzip_emit_oldest(struct ops_gzip_threads *of)
{
	struct gzip_job *job = &of->jobs[of->emitted % of->job_count];

	pthread_mutex_lock(&of->lock);
	while (!job->is_done)
		pthread_cond_wait(&of->done_one, &of->lock);
	pthread_mutex_unlock(&of->lock);
	if (!of->emitted++)
		gzip_emit_header(of);
	of->emit(of->context, (const char *)job->output, job->output_size);
	of->crc = (uint32_t)crc32_combine(of->crc, job->crc, (z_off_t)job->size);
	of->total += (uint32_t)job->size;
	if (job->is_last)
		gzip_emit_trailer(of);
}

/* Copies the end of the block before, and the block. */
static void gzip_job_fill(const struct ops_gzip_threads *of, struct gzip_job *job, const char *bytes, size_t size)
{
	const struct gzip_job *before = of->added ? &of->jobs[(of->added - 1) % of->job_count] : NULL;

	job->dictionary_size = before && before->size < DICTIONARY_BYTES ? before->size : before ? DICTIONARY_BYTES : 0;
	if (before)
		memcpy(job->input, before->input + before->dictionary_size + before->size - job->dictionary_size, job->dictionary_size);
	if (size)
		memcpy(job->input + job->dictionary_size, bytes, size);
	job->size = size;
	job->is_done = false;
}

void ops_gzip_threads_add(struct ops_gzip_threads *of, const char *bytes, size_t size, bool is_last)
{
	struct gzip_job *job = &of->jobs[of->added % of->job_count];

	if (of->added == of->emitted + of->job_count)
		gzip_emit_oldest(of);
	gzip_job_fill(of, job, bytes, size);
	job->is_last = is_last;
	if (of->added && !of->is_started)
		gzip_threads_start(of);
	if (!of->thread_count) {
		gzip_job_run(job, &of->workers[0].stream, of->output_room);
		job->is_done = true;
	}
	pthread_mutex_lock(&of->lock);
	of->added++;
	if (!of->thread_count)
		of->begun++;
	pthread_cond_signal(&of->added_one);
	pthread_mutex_unlock(&of->lock);
	while (is_last && of->emitted < of->added)
		gzip_emit_oldest(of);
}

void ops_gzip_threads_free(struct ops_gzip_threads *of)
{
	if (!of)
		return;
	pthread_mutex_lock(&of->lock);
	of->stops = true;
	pthread_cond_broadcast(&of->added_one);
	pthread_mutex_unlock(&of->lock);
	for (unsigned i = 0; i < of->thread_count; i++)
		pthread_join(of->workers[i].thread, NULL);
	for (unsigned i = 0; i < of->worker_count; i++)
		if (of->workers[i].stream.state)
			deflateEnd(&of->workers[i].stream);
	for (unsigned i = 0; i < of->job_count; i++) {
		ops_free(of->jobs[i].input);
		ops_free(of->jobs[i].output);
	}
	pthread_cond_destroy(&of->added_one);
	pthread_cond_destroy(&of->done_one);
	pthread_mutex_destroy(&of->lock);
	ops_free(of);
}
