/* SPDX-License-Identifier: Apache-2.0
 *
 * An arena of chunks; see arena.h. Chunks double in size up to a limit; a larger allocation gets its own chunk.
 *
 *     arena->chunks ─▶ ┌──────┬─────────┬────┬─────────┬────┬─ ─ ─ ─ ─┐   ┌──────┬ ─ ─
 *                      │ head │ handed  │ rz │ handed  │ rz │  free   │   │ head │
 *                      └──────┴─────────┴────┴─────────┴────┴ ─ ─ ─ ─ ┘   └──────┴ ─ ─
 *                         └───────────────── older ──────── next      end ──▶
 *
 * Under AddressSanitizer all bytes except allocated ones are poisoned, and each allocation is followed by a red zone (rz).
 */
#include "base/arena.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sanitizer.h"

#if OPS_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#define RED_ZONE_BYTES 16
#define POISON(at, size) __asan_poison_memory_region(at, size)
#define UNPOISON(at, size) __asan_unpoison_memory_region(at, size)
#else
#define RED_ZONE_BYTES 0
#define POISON(at, size) ((void)(at), (void)(size))
#define UNPOISON(at, size) ((void)(at), (void)(size))
#endif

#define CHUNK_BYTES_MIN 4096u
#define CHUNK_BYTES_MAX (1u << 20)

struct ops_arena_chunk {
	struct ops_arena_chunk *older;
	size_t bytes; /* of the chunk, including the head */
};
_Static_assert(sizeof(struct ops_arena_chunk) % 16 == 0, "what follows the head is aligned");

/* Adds a chunk with room for `need` bytes. It becomes the current chunk unless that one has more room left. */
static struct ops_arena_chunk *arena_add_chunk(struct ops_arena *arena, size_t need)
{
	size_t bytes = arena->chunks ? arena->chunks->bytes * 2 : CHUNK_BYTES_MIN;
	struct ops_arena_chunk *chunk;

	if (bytes > CHUNK_BYTES_MAX)
		bytes = CHUNK_BYTES_MAX;
	if (need > bytes - sizeof(*chunk))
		bytes = sizeof(*chunk) + need;
	chunk = ops_alloc(bytes);
	if (!chunk)
		return NULL;
	chunk->bytes = bytes;
	chunk->older = arena->chunks;
	arena->chunks = chunk;
	POISON(chunk + 1, bytes - sizeof(*chunk));
	return chunk;
}

static char *aligned(char *at, size_t alignment)
{
	return at + (-(uintptr_t)at & (alignment - 1));
}

static void *arena_allocate(struct ops_arena *arena, size_t bytes, size_t alignment)
{
	struct ops_arena_chunk *chunk;
	size_t need;
	char *at;

	if (__builtin_add_overflow(bytes, RED_ZONE_BYTES + (size_t)16, &need) || need > SIZE_MAX / 2)
		return NULL;
	/* Rounded up so that `next` stays aligned to 8, the granularity of the sanitizer's shadow memory. */
	need = (bytes + RED_ZONE_BYTES + 7) & ~(size_t)7;
	at = arena->next ? aligned(arena->next, alignment) : NULL;
	if (at && at <= arena->end && (size_t)(arena->end - at) >= need) {
		arena->next = at + need;
	} else {
		chunk = arena_add_chunk(arena, need);
		if (!chunk)
			return NULL;
		at = (char *)(chunk + 1);
		if ((size_t)((char *)chunk + chunk->bytes - (at + need)) >= (size_t)(arena->end - arena->next)) {
			arena->next = at + need;
			arena->end = (char *)chunk + chunk->bytes;
		}
	}
	UNPOISON(at, bytes);
	return at;
}

void *ops_arena_alloc(struct ops_arena *arena, size_t bytes)
{
	return arena_allocate(arena, bytes, 16);
}

char *ops_arena_copy(struct ops_arena *arena, const void *bytes, size_t size)
{
	char *copy = size < SIZE_MAX ? arena_allocate(arena, size + 1, 8) : NULL;

	if (!copy)
		return NULL;
	if (size)
		memcpy(copy, bytes, size);
	copy[size] = '\0';
	return copy;
}

void ops_arena_release(struct ops_arena *arena)
{
	struct ops_arena_chunk *chunk = arena->chunks;

	while (chunk) {
		struct ops_arena_chunk *older = chunk->older;

		UNPOISON(chunk + 1, chunk->bytes - sizeof(*chunk));
		ops_free(chunk);
		chunk = older;
	}
	arena->chunks = NULL;
	arena->next = arena->end = NULL;
}
