/* SPDX-License-Identifier: Apache-2.0
 *
 * The block pool (pool.h). A chunk is in one of three lists, according to how many of its blocks are free: all, some or none.
 * Chunks of the current file with a free block are in a separate list; chunks of earlier files are in the list of those without.
 */
#include "record/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/sanitizer.h"

#if OPS_ADDRESS_SANITIZER
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
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/* Maximum number of free blocks that keep their memory while no session runs. */
#define WARM_BLOCKS 64u

_Static_assert(CHUNK_BYTES == (size_t)CHUNK_BLOCKS * OPS_BLOCK_BYTES, "a bit for each block");

struct ops_pool_file {
	int fd; /* -1 in a forked child */
	int error;
	bool stays;
	bool is_full; /* permanent: growing is not tried again */
	bool trimmed;
	uint32_t references;
	uint64_t bytes;
};

struct chunk {
	struct chunk *previous;
	struct chunk *next;
	struct chunk **list; /* the list that contains the chunk */
	char *base;
	struct ops_pool_file *file; /* file of which the chunk is a mapping; NULL: memory */
	uint64_t offset;            /* in the file */
	uint32_t free;  /* one bit for each block */
	uint32_t clean; /* free blocks without memory: never touched, or returned to the system */
};

static struct {
	pthread_mutex_t lock;
	struct chunk *empty;   /* all blocks free */
	struct chunk *partial; /* some blocks free */
	struct chunk *full;    /* no block free; listed for leak checkers, which do not search blocks */
	struct chunk *filed;   /* chunks of the current file with free blocks */
	struct ops_pool_file *file; /* source of blocks; NULL: memory */
	size_t empty_count;
	size_t empty_keep; /* number of empty chunks to keep mapped */
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

/* Moves the chunk to the list for its number of free blocks. */
static void enlist(struct chunk *chunk)
{
	struct chunk **list = chunk->free == ALL_FREE ? &pool.empty : chunk->free ? &pool.partial : &pool.full;

	if (chunk->file)
		list = chunk->free && chunk->file == pool.file ? &pool.filed : &pool.full;
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

/* Allocates the next part of the file. Returns errno; 0 on success. */
static int grow_file(struct ops_pool_file *file)
{
	struct rlimit limit;
	int error;

	/* Exceeding this limit would kill the process with a signal. */
	if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && file->bytes + CHUNK_BYTES > limit.rlim_cur)
		return EFBIG;
	do
		error = posix_fallocate(file->fd, (off_t)file->bytes, CHUNK_BYTES);
	while (error == EINTR);
	return error;
}

/* Maps the next part of the current file. Returns NULL if that fails; then the file is no longer used. */
static struct chunk *map_file_chunk(void)
{
	struct ops_pool_file *file = pool.file;
	struct chunk *chunk = file->is_full ? NULL : ops_alloc_zeroed(1, sizeof(*chunk));
	char *base = chunk ? ops_pages_map(CHUNK_BYTES) : NULL;

	if (file->is_full)
		return NULL;

	file->error = base ? grow_file(file) : ENOMEM;
	/* Replaces aligned pages. */
	if (!file->error &&
	    mmap(base, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file->fd, (off_t)file->bytes) == MAP_FAILED)
		file->error = errno;
	/* If a file system promised space that it does not have, this reports it instead of a signal. Not possible before Linux
	 * 5.14. */
	if (!file->error && madvise(base, CHUNK_BYTES, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
		file->error = errno == EFAULT ? ENOSPC : errno;
	if (file->error) {
		ops_pages_unmap(base, CHUNK_BYTES);
		ops_free(chunk);
		file->is_full = file->stays && file->bytes;
		if (file->is_full)
			file->error = 0;
		else
			pool.file = NULL;
		return NULL;
	}
	POISON(base, CHUNK_BYTES);
	chunk->base = base;
	chunk->file = file;
	chunk->offset = file->bytes;
	chunk->free = ALL_FREE;
	file->bytes += CHUNK_BYTES;
	file->references++;
	pool.chunk_count++;
	enlist(chunk);
	return chunk;
}

static void pool_unref_file(struct ops_pool_file *file)
{
	if (!file || --file->references)
		return;
	if (file->fd >= 0)
		close(file->fd);
	ops_free(file);
}

static void unmap_chunk(struct chunk *chunk)
{
	unlist(chunk);
	pool.chunk_count--;
	UNPOISON(chunk->base, CHUNK_BYTES);
	ops_pages_unmap(chunk->base, CHUNK_BYTES);
	pool_unref_file(chunk->file);
	ops_free(chunk);
}

struct ops_block *ops_pool_alloc(void)
{
	struct ops_block *block = NULL;
	struct chunk *chunk = NULL;

	pthread_mutex_lock(&pool.lock);
	if (pool.file)
		chunk = pool.filed ? pool.filed : map_file_chunk();
	if (!chunk && !pool.file)
		chunk = pool.partial ? pool.partial : pool.empty ? pool.empty : map_chunk();
	if (chunk) {
		uint32_t index = (uint32_t)__builtin_ctz(chunk->free);

		chunk->free &= ~(1u << index);
		/* The first access to a chunk may allocate all of it, as one huge page. */
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

void ops_pool_return(struct ops_block *block)
{
	struct chunk *chunk = block->home;

	if (!chunk) {
		ops_free(block);
		return;
	}
	pthread_mutex_lock(&pool.lock);
	if (chunk->file && chunk->file == pool.file)
		block->magic = block->count = 0; /* the old contents are not part of the recording */
	POISON(block, OPS_BLOCK_BYTES);
	chunk->free |= 1u << (((size_t)((char *)block - chunk->base)) / OPS_BLOCK_BYTES);
	enlist(chunk);
	if (chunk->free == ALL_FREE && (chunk->file ? chunk->file != pool.file : pool.empty_count > pool.empty_keep))
		unmap_chunk(chunk);
	pthread_mutex_unlock(&pool.lock);
}

/* Touches every page, so that recording threads cause no page faults. */
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
	while (pool.file && !pool.file->is_full && pool.file->bytes / CHUNK_BYTES < chunks)
		map_file_chunk();
	if (pool.filed)
		chunks = 0;
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

/* Returns the memory of the chunk's free blocks to the system, range by range. */
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

void ops_pool_trim(void)
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

struct ops_pool_file *ops_pool_file_new(int fd_taken, bool stays)
{
	struct ops_pool_file *file = ops_alloc_zeroed(1, sizeof(*file));

	if (!file) {
		close(fd_taken);
		return NULL;
	}
	file->fd = fd_taken;
	file->references = 1;
	file->stays = stays;
	return file;
}

void ops_pool_file_unlock(const struct ops_pool_file *file)
{
	flock(file->fd, LOCK_UN);
}

int ops_pool_file_dup(const struct ops_pool_file *file)
{
	return fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
}

void ops_pool_file_unref(struct ops_pool_file *file)
{
	pthread_mutex_lock(&pool.lock);
	pool_unref_file(file);
	pthread_mutex_unlock(&pool.lock);
}

void ops_pool_use_file(struct ops_pool_file *file)
{
	struct chunk *chunk;

	pthread_mutex_lock(&pool.lock);
	pool.file = file;
	while ((chunk = pool.filed)) { /* chunks of the previous file, unless it is the same */
		if (chunk->free == ALL_FREE)
			unmap_chunk(chunk);
		else
			enlist(chunk);
	}
	pthread_mutex_unlock(&pool.lock);
}

int ops_pool_file_error(const struct ops_pool_file *file)
{
	int error;

	pthread_mutex_lock(&pool.lock);
	error = file->error;
	pthread_mutex_unlock(&pool.lock);
	return error;
}

bool ops_pool_is_in_file(const struct ops_block *block)
{
	const struct chunk *chunk = block->home;

	return chunk && chunk->file;
}

bool ops_pool_is_current(const struct ops_block *block)
{
	const struct chunk *chunk = block->home;
	bool current;

	pthread_mutex_lock(&pool.lock);
	current = chunk && chunk->file == pool.file;
	pthread_mutex_unlock(&pool.lock);
	return current;
}

static bool is_mapped(const struct ops_pool_file *file, uint64_t offset)
{
	for (const struct chunk *chunk = pool.full; chunk; chunk = chunk->next)
		if (chunk->file == file && chunk->offset == offset)
			return true;
	return false;
}

/* The pages then read as zeros. */
static void punch(const struct ops_pool_file *file, uint64_t offset, uint64_t bytes)
{
	if (fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) != 0)
		return; /* not supported by the file system: the space is freed with the last block */
}

static void trim_file(struct ops_pool_file *file)
{
	for (uint64_t offset = 0; offset < file->bytes; offset += CHUNK_BYTES)
		if (!is_mapped(file, offset))
			punch(file, offset, CHUNK_BYTES);
	file->trimmed = true;
}

void ops_pool_trim_files(void)
{
	struct stat seen;

	pthread_mutex_lock(&pool.lock);
	for (struct chunk *chunk = pool.full; chunk; chunk = chunk->next) {
		struct ops_pool_file *file = chunk->file;

		if (!file || file == pool.file || file->fd < 0 || fstat(file->fd, &seen) != 0 || seen.st_nlink)
			continue;
		if (!file->trimmed)
			trim_file(file);
		for (uint32_t i = 0; i < CHUNK_BLOCKS; i++)
			if (chunk->free >> i & 1)
				punch(file, chunk->offset + (uint64_t)i * OPS_BLOCK_BYTES, OPS_BLOCK_BYTES);
	}
	pthread_mutex_unlock(&pool.lock);
}

static void leave_files(struct chunk *chunk)
{
	for (; chunk; chunk = chunk->next) {
		if (!chunk->file || chunk->file->fd < 0)
			continue;
		/* If the system refuses a copy, the contents of the blocks are abandoned, so that nothing is written to the
		 * parent's file. If there is not even memory for empty blocks, the child keeps the parent's. */
		if (mmap(chunk->base, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, chunk->file->fd,
		         (off_t)chunk->offset) == MAP_FAILED &&
		    mmap(chunk->base, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
			continue;
	}
}

static void close_files(struct chunk *chunk)
{
	for (; chunk; chunk = chunk->next) {
		if (chunk->file && chunk->file->fd >= 0) {
			close(chunk->file->fd);
			chunk->file->fd = -1;
		}
	}
}

void ops_pool_leave_files(void)
{
	struct chunk *chunk;

	leave_files(pool.filed);
	leave_files(pool.full);
	close_files(pool.filed);
	close_files(pool.full);
	pool.file = NULL;
	while ((chunk = pool.filed))
		enlist(chunk);
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
