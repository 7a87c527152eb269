/* SPDX-License-Identifier: Apache-2.0
 *
 * The block pool (pool.h). A chunk stands in one of three lists, by how many of its blocks are free: all, some, none.
 */
#include "record/pool.h"

#include <pthread.h>
#include <sys/mman.h>

#include "base/alloc.h"

#if defined(__SANITIZE_ADDRESS__)
#define POOL_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_ASAN 1
#endif
#endif
#ifdef POOL_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(address, bytes) ASAN_POISON_MEMORY_REGION(address, bytes)
#define UNPOISON(address, bytes) ASAN_UNPOISON_MEMORY_REGION(address, bytes)
#else
#define POISON(address, bytes) ((void)0)
#define UNPOISON(address, bytes) ((void)0)
#endif

#define CHUNK_BYTES ((size_t)2 << 20)
#define CHUNK_BLOCKS 32u
#define ALL_FREE UINT32_MAX
#define PAGE_BYTES 4096u

/* Free blocks that may stay in memory while no session runs. */
#define WARM_BLOCKS 64u

_Static_assert(CHUNK_BYTES == (size_t)CHUNK_BLOCKS * OPS_BLOCK_BYTES, "a bit for each block");

struct chunk {
	struct chunk *previous;
	struct chunk *next;
	struct chunk **list; /* where it stands now */
	char *base;
	uint32_t free;  /* one bit a block */
	uint32_t clean; /* free blocks that hold no memory: never touched, or given back to the system */
};

static struct {
	pthread_mutex_t lock;
	struct chunk *empty;   /* all blocks free */
	struct chunk *partial; /* some */
	struct chunk *full;    /* none; listed for leak checkers, which do not look into blocks */
	size_t empty_count;
	size_t empty_keep; /* as many empty chunks stay mapped */
	size_t chunk_count;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .empty_keep = 1};

static void unlist(struct chunk *chunk)
{
	if (!chunk->list)
		return;
	if (chunk->previous)
		chunk->previous->next = chunk->next;
	else
		*chunk->list = chunk->next;
	if (chunk->next)
		chunk->next->previous = chunk->previous;
	if (chunk->list == &pool.empty)
		pool.empty_count--;
	chunk->list = NULL;
}

/* Puts the chunk in the list that its free blocks say. */
static void enlist(struct chunk *chunk)
{
	struct chunk **list = chunk->free == ALL_FREE ? &pool.empty : chunk->free ? &pool.partial : &pool.full;

	if (chunk->list == list)
		return;
	unlist(chunk);
	chunk->list = list;
	chunk->previous = NULL;
	chunk->next = *list;
	if (chunk->next)
		chunk->next->previous = chunk;
	*list = chunk;
	if (list == &pool.empty)
		pool.empty_count++;
}

static struct chunk *map_chunk(void)
{
	struct chunk *chunk = ops_alloc_zeroed(1, sizeof(*chunk));

	if (!chunk)
		return NULL;
	chunk->base = ops_pages_map(CHUNK_BYTES);
	if (!chunk->base) {
		ops_free(chunk);
		return NULL;
	}
	ops_pages_large(chunk->base, CHUNK_BYTES);
	POISON(chunk->base, CHUNK_BYTES);
	chunk->free = chunk->clean = ALL_FREE;
	pool.chunk_count++;
	enlist(chunk);
	return chunk;
}

static void unmap_chunk(struct chunk *chunk)
{
	unlist(chunk);
	pool.chunk_count--;
	UNPOISON(chunk->base, CHUNK_BYTES);
	ops_pages_unmap(chunk->base, CHUNK_BYTES);
	ops_free(chunk);
}

struct ops_block *ops_pool_take(void)
{
	struct ops_block *block = NULL;
	struct chunk *chunk;

	pthread_mutex_lock(&pool.lock);
	chunk = pool.partial ? pool.partial : pool.empty ? pool.empty : map_chunk();
	if (chunk) {
		uint32_t index = (uint32_t)__builtin_ctz(chunk->free);

		chunk->free &= ~(1u << index);
		/* The first touch of a chunk may bring all of it into memory, as one huge page. */
		chunk->clean = chunk->clean == ALL_FREE ? 0 : chunk->clean & ~(1u << index);
		enlist(chunk);
		block = (struct ops_block *)(void *)(chunk->base + (size_t)index * OPS_BLOCK_BYTES);
	}
	pthread_mutex_unlock(&pool.lock);
	if (block) {
		UNPOISON(block, OPS_BLOCK_BYTES);
		block->home = chunk;
	}
	return block;
}

void ops_pool_give(struct ops_block *block)
{
	struct chunk *chunk = block->home;

	if (!chunk) {
		ops_free(block);
		return;
	}
	POISON(block, OPS_BLOCK_BYTES);
	pthread_mutex_lock(&pool.lock);
	chunk->free |= 1u << (((size_t)((char *)block - chunk->base)) / OPS_BLOCK_BYTES);
	enlist(chunk);
	if (chunk->free == ALL_FREE && pool.empty_count > pool.empty_keep)
		unmap_chunk(chunk);
	pthread_mutex_unlock(&pool.lock);
}

/* First touch of every page, so that the threads that record find them there. */
static void pool_touch(struct chunk *chunk)
{
	UNPOISON(chunk->base, CHUNK_BYTES);
	for (size_t i = 0; i < CHUNK_BYTES; i += PAGE_BYTES)
		*(volatile char *)(chunk->base + i) = 0;
	POISON(chunk->base, CHUNK_BYTES);
	chunk->clean = 0;
}

bool ops_pool_prefault(uint64_t bytes)
{
	uint64_t chunks = bytes / CHUNK_BYTES + (bytes % CHUNK_BYTES != 0);
	bool done = true;

	pthread_mutex_lock(&pool.lock);
	while (done && pool.empty_count < chunks)
		done = map_chunk() != NULL;
	for (struct chunk *chunk = pool.empty; chunk; chunk = chunk->next) {
		if (chunk->clean)
			pool_touch(chunk);
	}
	if (pool.empty_keep < chunks)
		pool.empty_keep = chunks;
	pthread_mutex_unlock(&pool.lock);
	return done;
}

/* Gives the memory of the chunk's free blocks back to the system, run by run. */
static void cool(struct chunk *chunk)
{
	uint32_t warm = chunk->free & ~chunk->clean;

	while (warm) {
		uint32_t first = (uint32_t)__builtin_ctz(warm);
		uint32_t rest = ~(warm >> first);
		uint32_t run = rest ? (uint32_t)__builtin_ctz(rest) : CHUNK_BLOCKS - first;
		uint32_t bits = (run == CHUNK_BLOCKS ? UINT32_MAX : (1u << run) - 1) << first;

		if (madvise(chunk->base + (size_t)first * OPS_BLOCK_BYTES, (size_t)run * OPS_BLOCK_BYTES, MADV_DONTNEED) == 0)
			chunk->clean |= bits;
		warm &= ~bits;
	}
}

void ops_pool_settle(void)
{
	struct chunk *next;
	uint32_t warm_left = WARM_BLOCKS;

	pthread_mutex_lock(&pool.lock);
	pool.empty_keep = 1;
	for (struct chunk *chunk = pool.partial; chunk; chunk = chunk->next) {
		uint32_t warm = (uint32_t)__builtin_popcount(chunk->free & ~chunk->clean);

		if (warm <= warm_left)
			warm_left -= warm;
		else
			cool(chunk);
	}
	for (struct chunk *chunk = pool.empty; chunk && pool.empty_count > pool.empty_keep; chunk = next) {
		next = chunk->next;
		unmap_chunk(chunk);
	}
	pthread_mutex_unlock(&pool.lock);
}

void ops_pool_lock(void)
{
	pthread_mutex_lock(&pool.lock);
}

void ops_pool_unlock(void)
{
	pthread_mutex_unlock(&pool.lock);
}

uint64_t ops_pool_mapped_bytes(void)
{
	uint64_t bytes;

	pthread_mutex_lock(&pool.lock);
	bytes = (uint64_t)pool.chunk_count * CHUNK_BYTES;
	pthread_mutex_unlock(&pool.lock);
	return bytes;
}
