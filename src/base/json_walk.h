/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over the members or elements of a small JSON value that is known to be well-formed (an event's arguments, a trace's
 * metadata), without copying. Invalid text ends the walk early; nothing is read beyond its end.
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

/* Returns a cursor over the members of an object or the elements of an array, with or without its brackets. Keys and values are
 * parts of the text and not NUL-terminated: values in raw form, keys without their quotes. */
struct ops_json_walk ops_json_walk(const char *text, size_t size);
bool ops_json_next_member(struct ops_json_walk *cursor, struct ops_string *ret_key, struct ops_string *ret_value);
bool ops_json_next_element(struct ops_json_walk *cursor, struct ops_string *ret_value);
/* Finds the value of an object's first member with that name. Returns false if there is none. */
bool ops_json_find_member(struct ops_string object, const char *name, struct ops_string *ret_value);
/* The same for a value that begins with this character: '{', '[' or '"'. */
bool ops_json_find_typed(struct ops_string object, const char *name, char first, struct ops_string *ret_value);
/* Return a member as a number, or the default value if the object has no such number. */
int64_t ops_json_integer_of(struct ops_string object, const char *name, int64_t default_value);
double ops_json_number_of(struct ops_string object, const char *name, double default_value);
/* Returns whether an array has a text, which needs no escapes. */
bool ops_json_lists(struct ops_string array, const char *text);
/* Returns whether a member is true. */
bool ops_json_is_true(struct ops_string object, const char *name);

/* Parses a number, with a decimal point in any locale; accepts infinities and NaN. */
bool ops_json_double(const char *text, size_t size, double *ret_value);

/* Parses a number, which may be in quotes. */
bool ops_json_parse_number(struct ops_string slice, double *ret_value);
/* Parses an integer. Returns false if it does not fit. */
bool ops_json_parse_integer(struct ops_string slice, int64_t *ret_value);

#endif
