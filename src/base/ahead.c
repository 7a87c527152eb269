/* SPDX-License-Identifier: Apache-2.0
 *
 * A source that a separate thread reads ahead of the reader, through a ring of blocks:
 *
 *     file ─▶ [ thread: decompress ] ─▶ │ block │ block │ block │ block │ ─▶ reader
 */
#include "base/source.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/thread.h"

#define BLOCK_BYTES (256u << 10)
#define BLOCK_COUNT 4u

struct ahead_source {
	struct ops_source base;
	struct ops_source *inner; /* used only by the thread while it runs */
	pthread_t thread;
	bool has_thread;

	/* Shared by both threads. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	char *blocks;               /* BLOCK_COUNT blocks of BLOCK_BYTES */
	size_t sizes[BLOCK_COUNT];
	uint64_t filled;            /* blocks that the thread has finished */
	uint64_t emptied;           /* blocks that the reader has consumed */
	bool ended;                 /* no block follows the filled ones */
	bool stopped;               /* the reader needs no more blocks */
	enum ops_code code;         /* why it ended */
	struct ops_error error;

	size_t at; /* position of the reader in its block */
};

/* --- thread --------------------------------------------------------------------------------------------------------- */

/* Fills one block; less at the end of the source. */
static enum ops_code fill_block(struct ahead_source *source, char *block, size_t *ret_size, bool *ret_end)
{
	enum ops_code code = OPS_OK;
	size_t filled = 0, got = 1;

	while (!code && got && filled < BLOCK_BYTES) {
		got = 0;
		code = ops_source_read(source->inner, block + filled, BLOCK_BYTES - filled, &got, &source->error);
		filled += got;
	}
	__atomic_store_n(&source->base.done, source->inner->done, __ATOMIC_RELAXED);
	*ret_size = filled;
	*ret_end = code || !got;
	return code;
}

/* Waits for an empty block. Returns NULL if the reader has stopped. */
static char *empty_block(struct ahead_source *source)
{
	char *block;

	pthread_mutex_lock(&source->lock);
	while (!source->stopped && source->filled - source->emptied == BLOCK_COUNT)
		pthread_cond_wait(&source->changed, &source->lock);
	block = source->stopped ? NULL : source->blocks + source->filled % BLOCK_COUNT * BLOCK_BYTES;
	pthread_mutex_unlock(&source->lock);
	return block;
}

static void *ahead_work(void *context)
{
	struct ahead_source *source = context;
	bool end = false;
	char *block;

	while (!end && (block = empty_block(source))) {
		size_t size;
		enum ops_code code = fill_block(source, block, &size, &end);

		pthread_mutex_lock(&source->lock);
		source->sizes[source->filled++ % BLOCK_COUNT] = size;
		source->code = code;
		source->ended = end;
		source->base.flags = source->inner->flags;
		pthread_cond_broadcast(&source->changed);
		pthread_mutex_unlock(&source->lock);
	}
	return NULL;
}

/* --- reader --------------------------------------------------------------------------------------------------------- */

/* Waits for a block with data. Returns false at the end. */
static bool full_block(struct ahead_source *source)
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

static enum ops_code ahead_read(struct ops_source *base, char *out, size_t room, size_t *ret_size,
                               struct ops_error *error)
{
	struct ahead_source *source = (struct ahead_source *)base;
	size_t block, size;

	*ret_size = 0;
	if (!full_block(source)) {
		if (source->code && error)
			*error = source->error;
		return source->code;
	}
	/* The thread does not change a full block. */
	block = source->emptied % BLOCK_COUNT;
	size = source->sizes[block] - source->at;
	if (size > room)
		size = room;
	memcpy(out, source->blocks + block * BLOCK_BYTES + source->at, size);
	source->at += size;
	*ret_size = size;
	return OPS_OK;
}

static void ahead_close(struct ops_source *base)
{
	struct ahead_source *source = (struct ahead_source *)base;

	if (source->has_thread) {
		pthread_mutex_lock(&source->lock);
		source->stopped = true;
		pthread_cond_broadcast(&source->changed);
		pthread_mutex_unlock(&source->lock);
		pthread_join(source->thread, NULL);
	}
	pthread_cond_destroy(&source->changed);
	pthread_mutex_destroy(&source->lock);
	ops_source_close(source->inner);
	ops_free(source->blocks);
	ops_free(source);
}

static const struct ops_source_type ahead_type = {ahead_read, ahead_close};

enum ops_code ops_source_open_ahead(struct ops_source *owned_inner, struct ops_source **ret_source,
                                    struct ops_error *error)
{
	struct ahead_source *source = ops_alloc_zeroed(1, sizeof(*source));

	if (!source) {
		ops_source_close(owned_inner);
		return ops_fault_memory(error);
	}
	source->base.type = &ahead_type;
	source->base.total = owned_inner->total;
	source->inner = owned_inner;
	pthread_mutex_init(&source->lock, NULL);
	pthread_cond_init(&source->changed, NULL);
	source->blocks = ops_alloc((size_t)BLOCK_COUNT * BLOCK_BYTES);
	if (!source->blocks) {
		ahead_close(&source->base);
		return ops_fault_memory(error);
	}
	source->has_thread = ops_thread_start(&source->thread, ahead_work, source);
	if (!source->has_thread) {
		ahead_close(&source->base);
		return ops_fault(error, OPS_NO_MEMORY, "cannot start a thread");
	}
	*ret_source = &source->base;
	return OPS_OK;
}
