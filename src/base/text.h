/* SPDX-License-Identifier: Apache-2.0
 *
 * Predicates for texts that may contain any bytes.
 */
#ifndef OPS_BASE_TEXT_H
#define OPS_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <opstrobe/common.h>

/* Returns the end of `size` bytes, which may be NULL if there are none: C allows no addition to NULL, not even of 0. */
static inline const char *ops_bytes_end(const char *bytes, size_t size)
{
	return size ? bytes + size : bytes;
}

static inline const char *ops_string_end(struct ops_string string)
{
	return ops_bytes_end(string.bytes, string.size);
}

static inline bool ops_begins_with(const char *bytes, size_t size, const char *prefix)
{
	size_t prefix_size = strlen(prefix);

	return size >= prefix_size && memcmp(bytes, prefix, prefix_size) == 0;
}

static inline bool ops_string_is(struct ops_string string, const char *text)
{
	return string.size == strlen(text) && memcmp(string.bytes, text, string.size) == 0;
}

static inline bool ops_string_equals(struct ops_string a, struct ops_string b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.bytes, b.bytes, a.size) == 0);
}

static inline bool ops_string_starts(struct ops_string string, const char *prefix)
{
	return ops_begins_with(string.bytes, string.size, prefix);
}

static inline bool ops_string_ends(struct ops_string string, const char *suffix)
{
	size_t size = strlen(suffix);

	return string.size >= size && memcmp(string.bytes + string.size - size, suffix, size) == 0;
}

static inline bool ops_string_contains(struct ops_string string, const char *part)
{
	return string.bytes && memmem(string.bytes, string.size, part, strlen(part)) != NULL;
}

static inline bool ops_string_contains_any(struct ops_string string, const char *const *parts)
{
	for (; *parts; parts++)
		if (ops_string_contains(string, *parts))
			return true;
	return false;
}

/* Returns false for an empty part. */
static inline bool ops_string_has_part(struct ops_string string, struct ops_string part)
{
	return part.size && string.size >= part.size && memmem(string.bytes, string.size, part.bytes, part.size) != NULL;
}

static inline struct ops_string ops_string_of(const char *text)
{
	return (struct ops_string){text, strlen(text)};
}

/* Like ops_string_ends, for NUL-terminated texts such as a path and a suffix. */
static inline bool ops_ends_with(const char *text, const char *suffix)
{
	return ops_string_ends(ops_string_of(text), suffix);
}

static inline bool ops_string_starts_any(struct ops_string string, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (ops_string_starts(string, *prefixes))
			return true;
	return false;
}

/* For sorting: by bytes; a prefix precedes the longer text. */
static inline int ops_string_compare(struct ops_string a, struct ops_string b)
{
	size_t size = a.size < b.size ? a.size : b.size;
	int order = size ? memcmp(a.bytes, b.bytes, size) : 0;

	return order ? order : (a.size > b.size) - (a.size < b.size);
}

#endif
