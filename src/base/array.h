/* SPDX-License-Identifier: Apache-2.0
 *
 * Growable arrays: `struct { T *items; size_t count, capacity; }`, zero-initialised, grown with overflow checks.
 *
 *     OPS_ARRAY(struct ops_link) links = {0};
 *     struct ops_link *link = OPS_ARRAY_PUSH(&links);   // NULL if out of memory
 *     bool done = OPS_ARRAY_APPEND(&links, (struct ops_link){from, to});
 *     OPS_ARRAY_RELEASE(&links);
 */
#ifndef OPS_BASE_ARRAY_H
#define OPS_BASE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define OPS_ARRAY(T)                                                                               \
	struct {                                                                                   \
		T *items;                                                                          \
		size_t count;                                                                      \
		size_t capacity;                                                                   \
	}

/* Makes room for `extra` more items. Returns false if out of memory or the size would overflow; then the array is unchanged. */
bool ops_array_reserve(void *items_field, size_t *capacity, size_t count, size_t extra, size_t bytes_each);

#define OPS_ARRAY_RESERVE(array, extra)                                                            \
	((extra) <= (array)->capacity - (array)->count ||                                          \
	 ops_array_reserve(&(array)->items, &(array)->capacity, (array)->count, (extra), sizeof(*(array)->items)))
#define OPS_ARRAY_PUSH(array)                                                                      \
	(OPS_ARRAY_RESERVE(array, 1) ? &(array)->items[(array)->count++] : NULL)
/* Appends a value. Returns false if out of memory. The expression of the value must not change the array. */
#define OPS_ARRAY_APPEND(array, ...)                                                               \
	(OPS_ARRAY_RESERVE(array, 1) &&                                                            \
	 ((array)->items[(array)->count] = (__VA_ARGS__), (array)->count++, true))
/* Returns item `at` of the array; appends a zeroed item if `at` is the count. Returns NULL if `at` is greater, or if out of
 * memory. For items that a map or an interning table numbers in order of their first appearance. */
#define OPS_ARRAY_AT(array, at)                                                                    \
	ops_array_at(&(array)->items, &(array)->count, &(array)->capacity, (at), sizeof(*(array)->items))
void *ops_array_at(void *items_field, size_t *count, size_t *capacity, size_t at, size_t bytes_each);
/* Sorts with qsort or qsort_r, which do not allow NULL. */
#define OPS_ARRAY_SORT(array, compare)                                                             \
	((array)->count ? qsort((array)->items, (array)->count, sizeof(*(array)->items), (compare)) : (void)0)
#define OPS_ARRAY_SORT_BY(array, compare, context)                                                 \
	((array)->count ? qsort_r((array)->items, (array)->count, sizeof(*(array)->items), (compare), (context)) : (void)0)
#define OPS_ARRAY_RELEASE(array)                                                                   \
	(ops_free((array)->items), (array)->items = NULL, (array)->count = (array)->capacity = 0)

#endif
