/* SPDX-License-Identifier: Apache-2.0
 *
 * Walks over small JSON values; see json_walk.h.
 */
#include "base/json_walk.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_scan.h"
#include "base/text.h"

/* Returns the position after white space and commas. */
static const char *skip_gap(const char *at, const char *end)
{
	while ((at = ops_json_space_end(at, end)) < end && *at == ',')
		at++;
	return at;
}

static const char *json_walk_skip_string(const char *at, const char *end)
{
	uint8_t flags = 0;
	const char *last = ops_json_string_end(at + 1, end, &flags);

	return last ? last + 1 : end;
}

static const char *json_walk_skip_value(const char *at, const char *end)
{
	if (at < end && *at == '"')
		return json_walk_skip_string(at, end);
	if (at < end && (*at == '{' || *at == '['))
		return ops_json_nested_end(at, end);
	while (at < end && *at != ',' && *at != '}' && *at != ']')
		at++;
	return at;
}

struct ops_json_walk ops_json_walk(const char *text, size_t size)
{
	struct ops_json_walk cursor = {text, size ? text + size : text}; /* the address of an empty text may be NULL */

	cursor.at = skip_gap(cursor.at, cursor.end);
	if (cursor.at < cursor.end && (*cursor.at == '{' || *cursor.at == '['))
		cursor.at++;
	return cursor;
}

bool ops_json_next_element(struct ops_json_walk *cursor, struct ops_string *ret_value)
{
	const char *start = skip_gap(cursor->at, cursor->end);
	const char *end = json_walk_skip_value(start, cursor->end);

	cursor->at = end;
	while (end > start && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	if (end == start)
		return false;
	*ret_value = (struct ops_string){start, (size_t)(end - start)};
	return true;
}

bool ops_json_next_member(struct ops_json_walk *cursor, struct ops_string *ret_key, struct ops_string *ret_value)
{
	const char *start = skip_gap(cursor->at, cursor->end);
	const char *end;

	if (start == cursor->end || *start != '"')
		return false;
	end = json_walk_skip_string(start, cursor->end);
	cursor->at = skip_gap(end, cursor->end);
	if (cursor->at == cursor->end || *cursor->at != ':' || end < start + 2)
		return false;
	cursor->at++;
	*ret_key = (struct ops_string){start + 1, (size_t)(end - start) - 2};
	return ops_json_next_element(cursor, ret_value);
}

bool ops_json_find_member(struct ops_string object, const char *name, struct ops_string *ret_value)
{
	struct ops_json_walk members = ops_json_walk(object.bytes, object.size);
	struct ops_string key;

	while (ops_json_next_member(&members, &key, ret_value))
		if (ops_string_is(key, name))
			return true;
	return false;
}

bool ops_json_double(const char *text, size_t size, double *ret_value)
{
	char copy[512];
	char *end;

	if (size == 0 || size >= sizeof(copy))
		return false;
	memcpy(copy, text, size);
	copy[size] = '\0';
	*ret_value = strtod(copy, &end);
	/* The decimal point depends on the locale. */
	if (*end == '.') {
		*end = localeconv()->decimal_point[0];
		*ret_value = strtod(copy, &end);
	}
	return *end == '\0' && end != copy;
}

bool ops_json_parse_number(struct ops_string slice, double *ret_value)
{
	double value;

	if (slice.size >= 2 && slice.bytes[0] == '"')
		slice = (struct ops_string){slice.bytes + 1, slice.size - 2};
	/* strtod() also accepts texts that are not JSON, such as 0x10. */
	for (size_t i = 0; i < slice.size; i++)
		if (!slice.bytes[i] || !strchr("-+.0123456789eE", slice.bytes[i]))
			return false;
	if (!slice.size || !strchr("-0123456789", slice.bytes[0]) || !ops_json_double(slice.bytes, slice.size, &value))
		return false;
	*ret_value = value;
	return true;
}

/* Parses an integer of digits only, which a double might round: times in nanoseconds have nineteen digits. */
static bool json_walk_parse_digits(struct ops_string slice, int64_t *ret_value)
{
	size_t at = slice.size && slice.bytes[0] == '-';
	int64_t value = 0;

	if (at == slice.size)
		return false;
	for (bool negative = at; at < slice.size; at++) {
		int digit = slice.bytes[at] - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, negative ? -digit : digit, &value))
			return false;
	}
	*ret_value = value;
	return true;
}

bool ops_json_parse_integer(struct ops_string slice, int64_t *ret_value)
{
	double value;

	if (json_walk_parse_digits(slice, ret_value))
		return true;
	if (!ops_json_parse_number(slice, &value) || !(value > -9e15 && value < 9e15) || value != (double)(int64_t)value)
		return false;
	*ret_value = (int64_t)value;
	return true;
}

bool ops_json_find_typed(struct ops_string object, const char *name, char first, struct ops_string *ret_value)
{
	return ops_json_find_member(object, name, ret_value) && ret_value->size && ret_value->bytes[0] == first;
}

int64_t ops_json_integer_of(struct ops_string object, const char *name, int64_t default_value)
{
	struct ops_string value;
	int64_t number;

	return ops_json_find_member(object, name, &value) && ops_json_parse_integer(value, &number) ? number : default_value;
}

double ops_json_number_of(struct ops_string object, const char *name, double default_value)
{
	struct ops_string value;
	double number;

	return ops_json_find_member(object, name, &value) && ops_json_parse_number(value, &number) ? number : default_value;
}

bool ops_json_lists(struct ops_string array, const char *text)
{
	struct ops_json_walk walk = ops_json_walk(array.bytes, array.size);
	struct ops_string value;

	while (ops_json_next_element(&walk, &value))
		if (value.size >= 2 && value.bytes[0] == '"' && ops_string_is((struct ops_string){value.bytes + 1, value.size - 2}, text))
			return true;
	return false;
}

bool ops_json_is_true(struct ops_string object, const char *name)
{
	struct ops_string value;

	return ops_json_find_member(object, name, &value) && ops_string_is(value, "true");
}
