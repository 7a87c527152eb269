/* SPDX-License-Identifier: Apache-2.0
 *
 * Growth of arrays; see array.h.
 */
#include "base/array.h"

#include <stdint.h>
#include <string.h>

#include "base/alloc.h"

#define CAPACITY_MIN 16u

bool ops_array_reserve(void *items_field, size_t *capacity, size_t count, size_t extra, size_t bytes_each)
{
	size_t need;
	size_t grown;
	void *items;

	if (extra <= *capacity - count)
		return true;
	if (__builtin_add_overflow(count, extra, &need))
		return false;
	grown = *capacity + *capacity / 2;
	if (grown < need)
		grown = need;
	if (grown < CAPACITY_MIN)
		grown = CAPACITY_MIN;
	/* The field is a pointer of unknown type, so it is read and written as bytes. */
	memcpy(&items, items_field, sizeof(items));
	items = ops_realloc_array(items, grown, bytes_each);
	if (!items)
		return false;
	memcpy(items_field, &items, sizeof(items));
	*capacity = grown;
	return true;
}

void *ops_array_at(void *items_field, size_t *count, size_t *capacity, size_t at, size_t bytes_each)
{
	char *items;

	if (at > *count || (at == *count && !ops_array_reserve(items_field, capacity, *count, 1, bytes_each)))
		return NULL;
	memcpy(&items, items_field, sizeof(items));
	if (at == *count)
		memset(items + (*count)++ * bytes_each, 0, bytes_each);
	return items + at * bytes_each;
}
