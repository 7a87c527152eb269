/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses the target of a request; see query.h.
 */
#include "serve/query.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"

static int hexadecimal(char letter)
{
	if (letter >= '0' && letter <= '9')
		return letter - '0';
	if (letter >= 'a' && letter <= 'f')
		return letter - 'a' + 10;
	return letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

/* Decodes in place and appends a NUL, for which the separator makes room. Returns false for an invalid escape or a NUL. */
static bool query_decode(char *text, size_t size, bool plus_is_space, struct ops_string *ret_text)
{
	char *out = text;

	for (size_t i = 0; i < size; i++, out++) {
		int high, low;

		*out = plus_is_space && text[i] == '+' ? ' ' : text[i];
		if (text[i] != '%')
			continue;
		high = i + 2 < size ? hexadecimal(text[i + 1]) : -1;
		low = i + 2 < size ? hexadecimal(text[i + 2]) : -1;
		if (high < 0 || low < 0 || !(high || low))
			return false;
		*out = (char)(high << 4 | low);
		i += 2;
	}
	*out = '\0';
	*ret_text = (struct ops_string){text, (size_t)(out - text)};
	return true;
}

static bool parse_segment(struct query *query, char *text, size_t size)
{
	struct ops_string *segment = &query->segments[query->segment_count];

	if (query->segment_count == QUERY_SEGMENTS_MAX || !query_decode(text, size, false, segment))
		return false;
	query->segment_count++;
	return segment->size && strcmp(segment->bytes, ".") != 0 && strcmp(segment->bytes, "..") != 0;
}

/* A parameter may occur once. */
static bool parse_parameter(struct query *query, char *text, size_t size)
{
	char *sign = memchr(text, '=', size);
	size_t name_size = sign ? (size_t)(sign - text) : size;
	struct ops_string name, value = {"", 0};

	if (query->parameter_count == QUERY_PARAMETERS_MAX)
		return false;
	if (sign && !query_decode(sign + 1, size - name_size - 1, true, &value))
		return false;
	if (!query_decode(text, name_size, true, &name) || !name.size || query_find(query, name.bytes))
		return false;
	query->parameters[query->parameter_count].name = name;
	query->parameters[query->parameter_count++].value = value;
	return true;
}

/* Calls `take` for each piece of [text, end) between separators; an empty text has none. */
static bool query_split(struct query *query, char *text, char *end, char separator,
                        bool (*take)(struct query *query, char *text, size_t size))
{
	while (text < end) {
		char *stop = memchr(text, separator, (size_t)(end - text));

		stop = stop ? stop : end;
		if (!take(query, text, (size_t)(stop - text)))
			return false;
		text = stop + 1;
	}
	return true;
}

enum ops_code query_parse(struct query *query, const char *target, struct ops_error *error)
{
	size_t size = strnlen(target, QUERY_TARGET_MAX + 1);
	char *mark, *end;

	*query = (struct query){0};
	if (size > QUERY_TARGET_MAX)
		return ops_fault(error, OPS_INVALID, "the request is too long");
	query->text = ops_realloc_array(NULL, size + 1, 1);
	if (!query->text)
		return ops_fault_memory(error);
	memcpy(query->text, target, size + 1);
	if (target[0] != '/')
		return ops_fault(error, OPS_INVALID, "a path begins with '/'");
	mark = memchr(query->text, '?', size);
	end = mark ? mark : query->text + size;
	if (!query_split(query, query->text + 1, end, '/', parse_segment))
		return ops_fault(error, OPS_INVALID, "malformed path");
	if (mark && !query_split(query, mark + 1, query->text + size, '&', parse_parameter))
		return ops_fault(error, OPS_INVALID, "malformed or repeated parameter");
	return OPS_OK;
}

void query_release(struct query *query)
{
	ops_free(query->text);
	*query = (struct query){0};
}

const struct ops_string *query_find(const struct query *query, const char *name)
{
	for (size_t i = 0; i < query->parameter_count; i++)
		if (!strcmp(query->parameters[i].name.bytes, name))
			return &query->parameters[i].value;
	return NULL;
}

bool query_segment_is(const struct query *query, size_t segment, const char *text)
{
	return segment < query->segment_count && !strcmp(query->segments[segment].bytes, text);
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

bool query_parse_number(const char **at, uint64_t most, uint64_t *ret_number)
{
	uint64_t number = 0;
	const char *digit = *at;

	for (; *digit >= '0' && *digit <= '9'; digit++)
		if (__builtin_mul_overflow(number, UINT64_C(10), &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*digit - '0'), &number))
			return false;
	if (digit == *at || number > most)
		return false;
	*at = digit;
	*ret_number = number;
	return true;
}

enum ops_code query_integer(const struct query *query, const char *name, int64_t least, int64_t most, int64_t *ret_value,
                            struct ops_error *error)
{
	const struct ops_string *text = query_find(query, name);
	const char *at = text ? text->bytes : "";
	bool negative = *at == '-';
	uint64_t number;
	int64_t value;

	if (!text)
		return OPS_OK;
	at += negative;
	if (query_parse_number(&at, INT64_MAX, &number) && !*at) {
		value = negative ? -(int64_t)number : (int64_t)number;
		if (value >= least && value <= most) {
			*ret_value = value;
			return OPS_OK;
		}
	}
	return ops_fault(error, OPS_INVALID, "'%s' is not a valid number", name);
}

enum ops_code query_numbers(const struct query *query, const char *name, uint32_t *ret_numbers, size_t room,
                            size_t *ret_count, struct ops_error *error)
{
	const struct ops_string *text = query_find(query, name);
	const char *at = text ? text->bytes : "";
	size_t count = 0;

	if (!text)
		return OPS_OK;
	do {
		uint64_t number;

		if (count)
			at++;
		if (count == room)
			return ops_fault(error, OPS_INVALID, "'%s' has more than %zu numbers", name, room);
		if (!query_parse_number(&at, UINT32_MAX - 1, &number))
			return ops_fault(error, OPS_INVALID, "'%s' is not a list of numbers", name);
		ret_numbers[count++] = (uint32_t)number;
	} while (*at == ',');
	if (*at)
		return ops_fault(error, OPS_INVALID, "'%s' is not a list of numbers", name);
	*ret_count = count;
	return OPS_OK;
}
