/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about texts that may hold any bytes.
 */
#ifndef OPS_BASE_TEXT_H
#define OPS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool ops_begins_with(const char *bytes, size_t size, const char *prefix)
{
	size_t prefix_size = strlen(prefix);

	return size >= prefix_size && memcmp(bytes, prefix, prefix_size) == 0;
}

#endif
