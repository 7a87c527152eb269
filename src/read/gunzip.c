/* SPDX-License-Identifier: Apache-2.0
 *
 * gzip data decompressed by a thread that works ahead of the reader, through a ring of blocks:
 *
 *     file ─▶ [ thread: inflate ] ─▶ │ block │ block │ block │ block │ ─▶ reader
 */
#include "read/source.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/fault.h"

#define BLOCK_BYTES (256u << 10)
#define BLOCK_COUNT 4u
#define INPUT_BYTES (64u << 10)

/* Window size of inflateInit2: the largest, gzip only. */
#define GZIP_WINDOW (15 + 16)

struct gzip_source {
	struct ops_source base;
	struct ops_source *inner;
	pthread_t thread;
	bool has_thread;

	/* The thread's own. */
	z_stream stream;
	unsigned char *input;
	bool inner_ended;

	/* Shared. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *blocks;               /* BLOCK_COUNT of BLOCK_BYTES */
	size_t sizes[BLOCK_COUNT];
	uint64_t filled;            /* blocks that the thread has finished */
	uint64_t emptied;           /* blocks that the reader has done with */
	bool ended;                 /* no block comes after those filled */
	bool stopped;               /* the reader has had enough */
	enum ops_code code;         /* why it ended */
	struct ops_error error;

	size_t at; /* the reader's place in its block */
};

static void *allocate_for_zlib(void *unused, unsigned count, unsigned bytes_each)
{
	(void)unused;
	return ops_realloc_array(NULL, count, bytes_each);
}

static void free_for_zlib(void *unused, void *memory)
{
	(void)unused;
	ops_free(memory);
}

/* --- the thread ----------------------------------------------------------------------------------------------------- */

static enum ops_code fill_input(struct gzip_source *source)
{
	size_t size = 0;
	enum ops_code code = ops_source_read(source->inner, (char *)source->input, INPUT_BYTES, &size, &source->error);

	if (code)
		return code;
	source->inner_ended = size == 0;
	source->stream.next_in = source->input;
	source->stream.avail_in = (unsigned)size;
	__atomic_store_n(&source->base.done, source->inner->done, __ATOMIC_RELAXED);
	return OPS_OK;
}

/* At the end of a member: whether another one follows. Anything else behind is told and left alone. */
static enum ops_code next_member(struct gzip_source *source, bool *ret_end)
{
	z_stream *stream = &source->stream;

	if (stream->avail_in == 0) {
		enum ops_code code = fill_input(source);
		if (code)
			return code;
	}
	*ret_end = stream->avail_in == 0;
	if (stream->avail_in && stream->next_in[0] == 0x1f && (stream->avail_in < 2 || stream->next_in[1] == 0x8b)) {
		inflateReset(stream);
	} else if (stream->avail_in) {
		source->base.flags |= OPS_SOURCE_TRAILING;
		*ret_end = true;
	}
	return OPS_OK;
}

static enum ops_code refuse(struct gzip_source *source, int result)
{
	uint64_t byte = source->inner->done - source->stream.avail_in;

	if (result == Z_MEM_ERROR)
		return ops_fault_memory(&source->error);
	return ops_fault(&source->error, OPS_CORRUPT, "compressed byte %llu: %s", (unsigned long long)byte,
	                 source->stream.msg ? source->stream.msg : "damaged gzip data");
}

/* Fills one block, less at the end. */
static enum ops_code fill_block(struct gzip_source *source, char *block, size_t *ret_size, bool *ret_end)
{
	z_stream *stream = &source->stream;
	enum ops_code code = OPS_OK;

	stream->next_out = (unsigned char *)block;
	stream->avail_out = BLOCK_BYTES;
	*ret_end = false;
	while (!code && !*ret_end && stream->avail_out) {
		int result;

		if (stream->avail_in == 0 && !source->inner_ended) {
			code = fill_input(source);
			continue;
		}
		result = inflate(stream, Z_NO_FLUSH);
		if (result == Z_STREAM_END) {
			code = next_member(source, ret_end);
		} else if (result == Z_BUF_ERROR && source->inner_ended) {
			source->base.flags |= OPS_SOURCE_TRUNCATED;
			*ret_end = true;
		} else if (result != Z_OK && result != Z_BUF_ERROR) {
			code = refuse(source, result);
		}
	}
	*ret_size = BLOCK_BYTES - stream->avail_out;
	return code;
}

/* Waits for an empty block; NULL when nobody wants one any more. */
static char *empty_block(struct gzip_source *source)
{
	char *block;

	pthread_mutex_lock(&source->lock);
	while (!source->stopped && source->filled - source->emptied == BLOCK_COUNT)
		pthread_cond_wait(&source->changed, &source->lock);
	block = source->stopped ? NULL : source->blocks + source->filled % BLOCK_COUNT * BLOCK_BYTES;
	pthread_mutex_unlock(&source->lock);
	return block;
}

static void *work(void *context)
{
	struct gzip_source *source = context;
	bool end = false;
	char *block;

	while (!end && (block = empty_block(source))) {
		size_t size;
		enum ops_code code = fill_block(source, block, &size, &end);

		end |= code != OPS_OK;
		pthread_mutex_lock(&source->lock);
		source->sizes[source->filled++ % BLOCK_COUNT] = size;
		source->code = code;
		source->ended = end;
		pthread_cond_broadcast(&source->changed);
		pthread_mutex_unlock(&source->lock);
	}
	return NULL;
}

/* --- the reader's side ---------------------------------------------------------------------------------------------- */

/* Waits until there is a block with something in it; false at the end. */
static bool full_block(struct gzip_source *source)
{
	bool full;

	pthread_mutex_lock(&source->lock);
	for (;;) {
		full = source->filled > source->emptied;
		if (full && source->at == source->sizes[source->emptied % BLOCK_COUNT]) {
			source->emptied++;
			source->at = 0;
			pthread_cond_broadcast(&source->changed);
		} else if (full || source->ended) {
			break;
		} else {
			pthread_cond_wait(&source->changed, &source->lock);
		}
	}
	pthread_mutex_unlock(&source->lock);
	return full;
}

static enum ops_code gzip_read(struct ops_source *base, char *out, size_t room, size_t *ret_size,
                               struct ops_error *error)
{
	struct gzip_source *source = (struct gzip_source *)base;
	size_t block, size;

	*ret_size = 0;
	if (!full_block(source)) {
		if (source->code && error)
			*error = source->error;
		return source->code;
	}
	/* The thread leaves a full block alone. */
	block = source->emptied % BLOCK_COUNT;
	size = source->sizes[block] - source->at;
	if (size > room)
		size = room;
	memcpy(out, source->blocks + block * BLOCK_BYTES + source->at, size);
	source->at += size;
	*ret_size = size;
	return OPS_OK;
}

static void gzip_close(struct ops_source *base)
{
	struct gzip_source *source = (struct gzip_source *)base;

	if (source->has_thread) {
		pthread_mutex_lock(&source->lock);
		source->stopped = true;
		pthread_cond_broadcast(&source->changed);
		pthread_mutex_unlock(&source->lock);
		pthread_join(source->thread, NULL);
	}
	pthread_cond_destroy(&source->changed);
	pthread_mutex_destroy(&source->lock);
	inflateEnd(&source->stream);
	ops_source_close(source->inner);
	ops_free(source->input);
	ops_free(source->blocks);
	ops_free(source);
}

static const struct ops_source_type gzip_type = {gzip_read, gzip_close};

/* With all signals blocked: they are the program's. */
static bool start_thread(struct gzip_source *source)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	source->has_thread = pthread_create(&source->thread, NULL, work, source) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return source->has_thread;
}

enum ops_code ops_source_open_gzip(struct ops_source *take_inner, const char *head, size_t head_size,
                                   struct ops_source **ret_source, struct ops_error *error)
{
	struct gzip_source *source = ops_alloc_zeroed(1, sizeof(*source));

	if (!source) {
		ops_source_close(take_inner);
		return ops_fault_memory(error);
	}
	source->base.type = &gzip_type;
	source->base.total = take_inner->total;
	source->inner = take_inner;
	pthread_mutex_init(&source->lock, NULL);
	pthread_cond_init(&source->changed, NULL);
	source->input = ops_alloc(head_size > INPUT_BYTES ? head_size : INPUT_BYTES);
	source->blocks = ops_alloc((size_t)BLOCK_COUNT * BLOCK_BYTES);
	source->stream.zalloc = allocate_for_zlib;
	source->stream.zfree = free_for_zlib;
	if (!source->input || !source->blocks || inflateInit2(&source->stream, GZIP_WINDOW) != Z_OK) {
		gzip_close(&source->base);
		return ops_fault_memory(error);
	}
	memcpy(source->input, head, head_size);
	source->stream.next_in = source->input;
	source->stream.avail_in = (unsigned)head_size;
	if (!start_thread(source)) {
		gzip_close(&source->base);
		return ops_fault(error, OPS_NO_MEMORY, "cannot start a thread");
	}
	*ret_source = &source->base;
	return OPS_OK;
}
