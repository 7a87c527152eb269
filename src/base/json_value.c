/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes JSON values, and repairs almost valid ones; see json_value.h.
 */
#include "base/json_value.h"

#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "base/text.h"
#include "base/utf8.h"

/* --- strings -------------------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Returns the code unit of "\uXXXX" at `at`, or -1. */
static int escaped_unit(const char *at, const char *end)
{
	int unit = 0;

	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return -1;
	for (int i = 2; i < 6; i++) {
		int digit = hex_digit(at[i]);
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static void append_code_point(struct ops_buffer *out, unsigned code)
{
	char bytes[4];
	size_t size;

	if (code < 0x80) {
		bytes[0] = (char)code;
		size = 1;
	} else if (code < 0x800) {
		bytes[0] = (char)(0xc0 | code >> 6);
		bytes[1] = (char)(0x80 | (code & 0x3f));
		size = 2;
	} else if (code < 0x10000) {
		bytes[0] = (char)(0xe0 | code >> 12);
		bytes[1] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[2] = (char)(0x80 | (code & 0x3f));
		size = 3;
	} else {
		bytes[0] = (char)(0xf0 | code >> 18);
		bytes[1] = (char)(0x80 | (code >> 12 & 0x3f));
		bytes[2] = (char)(0x80 | (code >> 6 & 0x3f));
		bytes[3] = (char)(0x80 | (code & 0x3f));
		size = 4;
	}
	ops_buffer_append(out, bytes, size);
}

/* Decodes "\uXXXX" at `at`, with the second half of a surrogate pair. Returns its end. */
static const char *decode_unit(struct ops_buffer *out, const char *at, const char *end, int unit)
{
	if (unit >= 0xd800 && unit < 0xdc00) {
		int low = escaped_unit(at + 6, end);

		if (low >= 0xdc00 && low < 0xe000) {
			append_code_point(out, 0x10000 + ((unsigned)(unit - 0xd800) << 10) + (unsigned)(low - 0xdc00));
			return at + 12;
		}
	}
	append_code_point(out, (unsigned)unit);
	return at + 6;
}

void ops_json_decode(struct ops_buffer *out, const char *raw, size_t size)
{
	static const char short_escapes[256] = {['b'] = '\b', ['t'] = '\t', ['n'] = '\n', ['f'] = '\f', ['r'] = '\r'};
	const char *end = raw + size;

	while (raw < end) {
		const char *escape = memchr(raw, '\\', (size_t)(end - raw));
		int unit;

		if (!escape || escape + 1 == end) {
			ops_buffer_append(out, raw, (size_t)(end - raw));
			return;
		}
		ops_buffer_append(out, raw, (size_t)(escape - raw));
		unit = escaped_unit(escape, end);
		if (unit >= 0) {
			raw = decode_unit(out, escape, end, unit);
		} else {
			char meant = short_escapes[(uint8_t)escape[1]];
			ops_buffer_append(out, meant ? &meant : escape + 1, 1);
			raw = escape + 2;
		}
	}
}

/* --- numbers -------------------------------------------------------------------------------------------------------- */

struct decimal {
	unsigned __int128 digits;
	int exponent; /* power of ten */
	bool negative;
};

#define DIGITS_MAX 30
#define EXPONENT_MAX 10000

/* Parses digits; those that do not fit increase the exponent. Returns their number. */
static size_t json_value_parse_digits(const char **at, const char *end, struct decimal *number, size_t *taken, bool fraction)
{
	const char *first = *at;

	for (; *at < end && **at >= '0' && **at <= '9'; ++*at) {
		if (*taken < DIGITS_MAX) {
			number->digits = number->digits * 10 + (unsigned)(**at - '0');
			*taken += number->digits != 0;
			number->exponent -= fraction;
		} else if (!fraction && number->exponent < EXPONENT_MAX) {
			number->exponent++;
		}
	}
	return (size_t)(*at - first);
}

static bool parse_exponent(const char **at, const char *end, struct decimal *number)
{
	int exponent = 0;
	bool negative = false;

	++*at;
	if (*at < end && (**at == '+' || **at == '-'))
		negative = *(*at)++ == '-';
	if (*at == end)
		return false;
	for (; *at < end && **at >= '0' && **at <= '9'; ++*at)
		if (exponent < EXPONENT_MAX)
			exponent = exponent * 10 + (**at - '0');
	number->exponent += negative ? -exponent : exponent;
	return true;
}

static bool parse_decimal(const char *at, const char *end, struct decimal *number)
{
	size_t taken = 0;
	size_t digits;

	*number = (struct decimal){.negative = at < end && *at == '-'};
	at += number->negative;
	digits = json_value_parse_digits(&at, end, number, &taken, false);
	if (at < end && *at == '.') {
		at++;
		digits += json_value_parse_digits(&at, end, number, &taken, true);
	}
	if (digits == 0 || (at < end && (*at | 0x20) == 'e' && !parse_exponent(&at, end, number)))
		return false;
	return at == end;
}

bool ops_json_decode_value(struct ops_buffer *out, struct ops_string value)
{
	if (value.size < 2 || value.bytes[0] != '"')
		return false;
	ops_json_decode(out, value.bytes + 1, value.size - 2);
	return true;
}

bool ops_json_decimal(const char *text, size_t size, int scale, int64_t limit, int64_t *ret_value)
{
	struct decimal number;
	unsigned __int128 unit = 1;

	if (!parse_decimal(text, text + size, &number))
		return false;
	number.exponent += scale;
	for (; number.exponent > 0 && number.digits && number.digits <= (uint64_t)limit; number.exponent--)
		number.digits *= 10;
	for (; number.exponent < 0 && unit <= number.digits * 2; number.exponent++)
		unit *= 10;
	/* A unit more than twice as large as the digits rounds them to zero. */
	number.digits = (number.digits + unit / 2) / unit;
	if (number.digits > (uint64_t)limit)
		return false;
	*ret_value = number.negative ? -(int64_t)number.digits : (int64_t)number.digits;
	return true;
}

/* --- cleaning ------------------------------------------------------------------------------------------------------- */

struct cleaner {
	struct ops_buffer *out;
	const char *at;
	const char *end;
	struct ops_buffer scratch;
	bool words;
};

static void json_value_skip_space(struct cleaner *c)
{
	c->at = ops_json_space_end(c->at, c->end);
}

static const char *clean_string(struct cleaner *c)
{
	uint8_t flags = 0;
	const char *first = c->at + 1, *last = ops_json_string_end(first, c->end, &flags);

	if (!last)
		return "a string does not end";
	if (flags) {
		c->scratch.size = 0;
		ops_json_decode(&c->scratch, first, (size_t)(last - first));
		ops_json_string(c->out, c->scratch.bytes, c->scratch.size);
		c->out->failed |= c->scratch.failed;
	} else {
		ops_buffer_append(c->out, c->at, (size_t)(last + 1 - c->at));
	}
	c->at = last + 1;
	return NULL;
}

static bool json_value_is_word(const char *text, size_t size)
{
	return (size == 4 && memcmp(text, "true", 4) == 0) || (size == 5 && memcmp(text, "false", 5) == 0) ||
	       (size == 4 && memcmp(text, "null", 4) == 0);
}

static bool json_value_is_number(const char *at, const char *end)
{
	bool whole;

	return ops_json_number_end(at, end, &whole) == end && whole;
}

static const char *clean_token(struct cleaner *c)
{
	const char *first = c->at;

	while (c->at < c->end && !strchr(",:]}[{\" \n\r\t", *c->at) && *c->at)
		c->at++;
	if (c->at == first)
		return "a value is expected";
	if (json_value_is_word(first, (size_t)(c->at - first)) || json_value_is_number(first, c->at)) {
		ops_buffer_append(c->out, first, (size_t)(c->at - first));
		return NULL;
	}
	c->words = true;
	ops_json_string(c->out, first, (size_t)(c->at - first));
	return NULL;
}

static const char *clean_value(struct cleaner *c, unsigned depth);

/* Cleans members or elements up to the closing bracket or, if `close` is 0, to the end of the text. */
static const char *clean_list(struct cleaner *c, char close, bool named, unsigned depth)
{
	bool comma = true;
	size_t count = 0;

	for (;;) {
		const char *failure = NULL;

		json_value_skip_space(c);
		if (c->at == c->end || *c->at == close)
			break;
		if (*c->at == ',') {
			comma = true;
			c->at++;
			continue;
		}
		if (!comma)
			return "',' is expected";
		comma = false;
		if (count++)
			ops_buffer_append(c->out, ",", 1);
		if (named) {
			if (*c->at != '"')
				return "expected a name in quotes";
			failure = clean_string(c);
			json_value_skip_space(c);
			if (!failure && (c->at == c->end || *c->at++ != ':'))
				return "':' is expected";
			ops_buffer_append(c->out, ":", 1);
			json_value_skip_space(c);
		}
		if (!failure)
			failure = clean_value(c, depth);
		if (failure)
			return failure;
	}
	return (c->at == c->end) == (close == '\0') ? NULL : "an unclosed bracket";
}

static const char *clean_value(struct cleaner *c, unsigned depth)
{
	const char *failure;
	char close;

	if (c->at == c->end)
		return "a value is expected";
	if (*c->at == '"')
		return clean_string(c);
	if (*c->at != '[' && *c->at != '{')
		return clean_token(c);
	if (depth == OPS_JSON_DEPTH_MAX)
		return "values are nested too deep";
	close = *c->at == '[' ? ']' : '}';
	ops_buffer_append(c->out, c->at++, 1);
	failure = clean_list(c, close, close == '}', depth + 1);
	if (failure)
		return failure;
	c->at++;
	ops_buffer_append(c->out, &close, 1);
	return NULL;
}

const char *ops_json_clean(struct ops_buffer *out, const char *text, size_t size, bool members, bool *ret_words)
{
	struct cleaner cleaner = {.out = out, .at = text, .end = ops_bytes_end(text, size)};
	const char *failure;

	if (members) {
		failure = clean_list(&cleaner, '\0', true, 0);
	} else {
		json_value_skip_space(&cleaner);
		failure = clean_value(&cleaner, 0);
		json_value_skip_space(&cleaner);
		if (!failure && cleaner.at != cleaner.end)
			failure = "text behind the value";
	}
	ops_buffer_release(&cleaner.scratch);
	if (ret_words)
		*ret_words |= cleaner.words;
	return failure;
}
