/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of distinct byte strings with dense ids 0, 1, 2, … The table owns the strings until its release; they are followed by a
 * NUL and never move. Used for names and, with arbitrary bytes, for input lists.
 */
#ifndef OPS_BASE_INTERN_H
#define OPS_BASE_INTERN_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>

#include "base/arena.h"

#define OPS_INTERN_NONE UINT32_MAX

struct ops_intern_entry {
	const char *bytes;
	size_t size;
	uint64_t hash;
};

struct ops_intern {
	struct ops_arena arena; /* the strings */
	struct ops_intern_entry *entries;
	size_t count;
	size_t capacity;
	uint32_t *slots; /* open addressing, id + 1; their number is a power of two */
	size_t slot_count;
};

/* Returns the id of the string, added if new. Returns OPS_INTERN_NONE if out of memory (table unchanged). A zero-initialised
 * table is empty. */
uint32_t ops_intern_add(struct ops_intern *table, const void *bytes, size_t size);
/* Returns the id or OPS_INTERN_NONE. */
uint32_t ops_intern_find(const struct ops_intern *table, const void *bytes, size_t size);
static inline struct ops_string ops_intern_text(const struct ops_intern *table, uint32_t id)
{
	assert(id < table->count);
	return (struct ops_string){table->entries[id].bytes, table->entries[id].size};
}
void ops_intern_release(struct ops_intern *table);

/* Returns the hash that the table uses. It is fast and not collision-resistant; open addressing with full comparison tolerates
 * collisions. */
uint64_t ops_hash(const void *bytes, size_t size);

#endif
