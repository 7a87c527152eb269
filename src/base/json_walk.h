/* SPDX-License-Identifier: Apache-2.0
 *
 * Looking into a small JSON value that is known to be well-formed (an event's arguments, a trace's metadata): member by
 * member, element by element, without a copy. Text that is none ends the walk early; nothing is read behind its end.
 *
 *     struct ops_json_walk cursor = ops_json_walk(text, size);
 *     while (ops_json_next_member(&cursor, &key, &value))
 *             …
 */
#ifndef OPS_BASE_JSON_WALK_H
#define OPS_BASE_JSON_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ops_json_walk {
	const char *at;
	const char *end;
};

/* A stretch of the text: a value as it stands, or what is between the quotes of a key. */
struct ops_json_slice {
	const char *bytes;
	size_t size;
};

/* Over the members of an object or the elements of an array, with its brackets or without. */
struct ops_json_walk ops_json_walk(const char *text, size_t size);
bool ops_json_next_member(struct ops_json_walk *cursor, struct ops_json_slice *ret_key, struct ops_json_slice *ret_value);
bool ops_json_next_element(struct ops_json_walk *cursor, struct ops_json_slice *ret_value);

/* A number, with a point whatever the locale has; infinities and NaN, too. */
bool ops_json_double(const char *text, size_t size, double *ret_value);

bool ops_json_slice_is(struct ops_json_slice slice, const char *text);
/* A number, also one in quotes. */
bool ops_json_slice_number(struct ops_json_slice slice, double *ret_value);
/* A whole number that fits. */
bool ops_json_slice_integer(struct ops_json_slice slice, int64_t *ret_value);

#endif
