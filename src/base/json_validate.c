/* SPDX-License-Identifier: Apache-2.0
 *
 * The JSON validator of json.h: strictly RFC 8259 (no NaN, no comments, no trailing comma, strings in UTF-8), without recursion.
 */
#include "base/json.h"

#include <stdbool.h>
#include <string.h>

#include "base/fault.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "base/utf8.h"

#define DEPTH_MAX 256

struct scan {
	const char *start;
	const char *at;
	const char *end;
	const char *wrong; /* what is wrong at `at`; NULL: nothing yet */
	char open[DEPTH_MAX]; /* '{' or '[' each */
	unsigned depth;
};

/* Returns the next byte; at the end NUL, which no rule accepts. */
static char json_validate_peek(const struct scan *scan)
{
	return scan->at < scan->end ? *scan->at : '\0';
}

static bool json_validate_refuse(struct scan *scan, const char *wrong)
{
	scan->wrong = scan->at < scan->end ? wrong : "the text is truncated";
	return false;
}

static void json_validate_skip_space(struct scan *scan)
{
	scan->at = ops_json_space_end(scan->at, scan->end);
}

static bool json_validate_parse_word(struct scan *scan, const char *word)
{
	for (; *word; word++, scan->at++)
		if (json_validate_peek(scan) != *word)
			return json_validate_refuse(scan, "no JSON value");
	return true;
}

static bool json_validate_parse_number(struct scan *scan)
{
	bool whole;

	scan->at = ops_json_number_end(scan->at, scan->end, &whole);
	return whole || json_validate_refuse(scan, "a digit is missing");
}

/* Checks the characters after a backslash. */
static bool json_validate_escape(struct scan *scan)
{
	char kind = json_validate_peek(scan);

	if (kind == '\0' || !strchr("\"\\/bfnrtu", kind))
		return json_validate_refuse(scan, "an unknown escape");
	scan->at++;
	if (kind != 'u')
		return true;
	for (int i = 0; i < 4; i++, scan->at++)
		if (json_validate_peek(scan) == '\0' || !strchr("0123456789abcdefABCDEF", json_validate_peek(scan)))
			return json_validate_refuse(scan, "a hexadecimal digit is missing");
	return true;
}

static bool parse_string(struct scan *scan)
{
	if (json_validate_peek(scan) != '"')
		return json_validate_refuse(scan, "a string is missing");
	scan->at++;
	while (json_validate_peek(scan) != '"') {
		size_t length = ops_utf8_length(scan->at, scan->end);

		if (length == 0)
			return json_validate_refuse(scan, "no UTF-8");
		if (length == 1 && (unsigned char)*scan->at < 0x20)
			return json_validate_refuse(scan, "a control character in a string");
		scan->at += length;
		if (scan->at[-1] == '\\' && length == 1 && !json_validate_escape(scan))
			return false;
	}
	scan->at++;
	return true;
}

/* Checks the "key": of a member. */
static bool json_validate_parse_key(struct scan *scan)
{
	json_validate_skip_space(scan);
	if (!parse_string(scan))
		return false;
	json_validate_skip_space(scan);
	if (json_validate_peek(scan) != ':')
		return json_validate_refuse(scan, "a colon is missing");
	scan->at++;
	return true;
}

/* Checks a scalar value, an empty container, or the opening of a container up to its first value. `*ret_whole` is whether a value
 * is complete. */
static bool json_validate_parse_value(struct scan *scan, bool *ret_whole)
{
	char first;

	json_validate_skip_space(scan);
	first = json_validate_peek(scan);
	*ret_whole = true;
	if (first == '"')
		return parse_string(scan);
	if (first == 't' || first == 'f' || first == 'n')
		return json_validate_parse_word(scan, first == 't' ? "true" : first == 'f' ? "false" : "null");
	if (first == '-' || (first >= '0' && first <= '9'))
		return json_validate_parse_number(scan);
	if (first != '{' && first != '[')
		return json_validate_refuse(scan, "no JSON value");
	if (scan->depth == DEPTH_MAX)
		return json_validate_refuse(scan, "nested too deeply");
	scan->at++;
	json_validate_skip_space(scan);
	if (json_validate_peek(scan) == (first == '{' ? '}' : ']')) {
		scan->at++;
		return true;
	}
	scan->open[scan->depth++] = first;
	*ret_whole = false;
	return first == '[' || json_validate_parse_key(scan);
}

/* After a complete value, closes containers until a comma announces another value or all are closed. */
static bool parse_close(struct scan *scan)
{
	while (scan->depth) {
		bool object = scan->open[scan->depth - 1] == '{';

		json_validate_skip_space(scan);
		if (json_validate_peek(scan) == ',') {
			scan->at++;
			return !object || json_validate_parse_key(scan);
		}
		if (json_validate_peek(scan) != (object ? '}' : ']'))
			return json_validate_refuse(scan, object ? "a comma or a closing brace is missing"
			                                         : "a comma or a closing bracket is missing");
		scan->at++;
		scan->depth--;
	}
	return true;
}

static bool json_validate_parse_document(struct scan *scan)
{
	bool whole;

	do
		if (!json_validate_parse_value(scan, &whole) || (whole && !parse_close(scan)))
			return false;
	while (scan->depth);
	json_validate_skip_space(scan);
	return scan->at == scan->end || json_validate_refuse(scan, "more than one value");
}

enum ops_code ops_json_validate(const char *text, size_t size, struct ops_error *error)
{
	struct scan scan = {.start = text, .at = text, .end = ops_bytes_end(text, size)};

	if (json_validate_parse_document(&scan))
		return OPS_OK;
	return ops_fault(error, OPS_INVALID, "invalid JSON at byte %zu: %s", (size_t)(scan.at - scan.start), scan.wrong);
}
