/* SPDX-License-Identifier: Apache-2.0
 *
 * An arena: many allocations, one release. A zero-initialised arena is empty. Red zones and poisoning for AddressSanitizer.
 */
#ifndef OPS_BASE_ARENA_H
#define OPS_BASE_ARENA_H

#include <stddef.h>

struct ops_arena_chunk;
struct ops_arena {
	struct ops_arena_chunk *chunks;
	char *next;
	char *end;
};

/* Allocates `bytes` bytes, aligned to 16 and uninitialised. Returns NULL if out of memory. */
void *ops_arena_alloc(struct ops_arena *arena, size_t bytes);
/* Returns a copy of the bytes with a NUL after the last one, aligned to 8. */
char *ops_arena_copy(struct ops_arena *arena, const void *bytes, size_t size);
void ops_arena_release(struct ops_arena *arena);

#endif
