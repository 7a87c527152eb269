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

#include <opstrobe/common.h>

struct ops_json_walk {
	const char *at;
	const char *end;
};

/* Over the members of an object or the elements of an array, with its brackets or without. What is found is part of the
 * text, with no NUL behind: values as they are, of keys what is between the quotes. */
struct ops_json_walk ops_json_walk(const char *text, size_t size);
bool ops_json_next_member(struct ops_json_walk *cursor, struct ops_string *ret_key, struct ops_string *ret_value);
bool ops_json_next_element(struct ops_json_walk *cursor, struct ops_string *ret_value);
/* The value of an object's first member of that name; false if it has none. */
bool ops_json_find_member(struct ops_string object, const char *name, struct ops_string *ret_value);

/* A number, with a point whatever the locale has; infinities and NaN, too. */
bool ops_json_double(const char *text, size_t size, double *ret_value);

/* A number, also one in quotes. */
bool ops_json_parse_number(struct ops_string slice, double *ret_value);
/* A whole number that fits. */
bool ops_json_parse_integer(struct ops_string slice, int64_t *ret_value);

#endif
