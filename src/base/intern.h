/* SPDX-License-Identifier: Apache-2.0
 *
 * A table of distinct byte strings with dense ids 0, 1, 2, … Strings are owned by the table, followed by a NUL, never
 * move, and live until release. Used for names and, with any bytes, for input lists.
 */
#ifndef OPS_BASE_INTERN_H
#define OPS_BASE_INTERN_H

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
	uint32_t *slots; /* open addressing, id + 1; a power of two of them */
	size_t slot_count;
};

/* Zero-initialised is empty. The id of the string, added if new; OPS_INTERN_NONE when memory is out (table unchanged). */
uint32_t ops_intern_add(struct ops_intern *table, const void *bytes, size_t size);
/* The id or OPS_INTERN_NONE. */
uint32_t ops_intern_find(const struct ops_intern *table, const void *bytes, size_t size);
static inline struct ops_string ops_intern_text(const struct ops_intern *table, uint32_t id)
{
	return (struct ops_string){table->entries[id].bytes, table->entries[id].size};
}
void ops_intern_release(struct ops_intern *table);

/* The hash in use: fast, not for hostile collisions beyond what open addressing with full compare bears. */
uint64_t ops_hash(const void *bytes, size_t size);

#endif
