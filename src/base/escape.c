/* SPDX-License-Identifier: Apache-2.0
 *
 * Escapes text of traces in output for users; see escape.h.
 */
#include "base/escape.h"

#include <string.h>

#include "base/text.h"
#include "base/utf8.h"

static uint32_t escape_decode(const char *at, size_t length)
{
	const uint8_t *byte = (const uint8_t *)at;

	if (length == 2)
		return (byte[0] & 0x1fu) << 6 | (byte[1] & 0x3fu);
	return length == 3 ? (byte[0] & 0xfu) << 12 | (byte[1] & 0x3fu) << 6 | (byte[2] & 0x3fu) : 0x10000; /* no character of four bytes
	                                                                                                     * acts */
}

static bool escape_acts(uint32_t character)
{
	return character < ' ' || (character >= 0x7f && character < 0xa0) || character == 0x61c ||
	       (character >= 0x200e && character <= 0x200f) || (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069);
}

size_t ops_escape_next(const char *at, const char *end, bool *ret_shows)
{
	size_t length = ops_utf8_step(at, end);

	if (length == 1)
		*ret_shows = (uint8_t)*at < 0x80 && !escape_acts((uint8_t)*at);
	else
		*ret_shows = ops_utf8_length(at, end) && !escape_acts(escape_decode(at, length));
	return length;
}

void ops_plain_append(struct ops_buffer *out, const char *bytes, size_t size)
{
	const char *end = ops_bytes_end(bytes, size), *from = bytes;
	bool shows;

	for (const char *at = bytes, *next; at < end; at = next) {
		next = at + ops_escape_next(at, end, &shows);
		if (shows)
			continue;
		ops_buffer_append(out, from, (size_t)(at - from));
		ops_buffer_append(out, ".", 1);
		from = next;
	}
	ops_buffer_append(out, from, (size_t)(end - from));
}

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && ((*at >= '0' && *at <= '9') || *at == '.'))
		at++;
	return at;
}

/* Returns whether a text begins like a formula but is a number or a sign: "-1.5e+3", "-". */
static bool is_signed_number(const char *bytes, size_t size)
{
	const char *end = ops_bytes_end(bytes, size), *digits = bytes + 1, *at = skip_digits(digits, end);

	if ((*bytes != '-' && *bytes != '+') || (at == digits && at < end))
		return false;
	if (at < end && (*at == 'e' || *at == 'E')) {
		at++;
		at += at < end && (*at == '-' || *at == '+');
		at = skip_digits(at, end);
	}
	return at == end;
}

/* Returns whether spreadsheets may take a text for a formula. In some languages they accept the wide forms of the signs. */
static bool escape_is_formula(const char *bytes, size_t size)
{
	static const char *const wide[] = {"\357\274\235", "\357\274\213", "\357\274\215", "\357\274\240"}; /* = + - @ */

	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (size >= strlen(wide[i]) && !memcmp(bytes, wide[i], strlen(wide[i])))
			return true;
	return size && memchr("=+-@\t\r\n", *bytes, 7) && !is_signed_number(bytes, size);
}

void ops_csv_append(struct ops_buffer *out, const char *bytes, size_t size)
{
	const char *end = ops_bytes_end(bytes, size);
	bool formula = escape_is_formula(bytes, size), quoted = formula, shows;

	for (size_t i = 0; i < size && !quoted; i++)
		quoted = memchr(",\"\r\n", bytes[i], 4);
	ops_buffer_append_text(out, quoted ? "\"" : "");
	ops_buffer_append_text(out, formula ? "'" : "");
	for (const char *at = bytes, *next; at < end; at = next) {
		next = at + ops_escape_next(at, end, &shows);
		ops_buffer_append_text(out, *at == '"' ? "\"" : "");
		ops_buffer_append(out, shows || memchr("\t\r\n", *at, 3) ? at : ".", shows ? (size_t)(next - at) : 1);
	}
	ops_buffer_append_text(out, quoted ? "\"" : "");
}

/* --- Markdown ------------------------------------------------------------------------------------------------------- */

static size_t longest_run(const char *bytes, size_t size, char of)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < size; i++) {
		run = bytes[i] == of ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void append_fence(struct ops_buffer *out, size_t length)
{
	for (size_t i = 0; i < length; i++)
		ops_buffer_append(out, "`", 1);
}

void ops_code_append(struct ops_buffer *out, const char *bytes, size_t size)
{
	size_t fence = longest_run(bytes, size, '`') + 1;
	const char *end = ops_bytes_end(bytes, size);
	bool shows;

	append_fence(out, fence);
	if (fence > 1 || !size)
		ops_buffer_append(out, " ", 1); /* Markdown does not show this space, nor the one at the end */
	for (const char *at = bytes, *next; at < end; at = next) {
		next = at + ops_escape_next(at, end, &shows);
		ops_buffer_append_text(out, *at == '|' ? "\\" : "");
		ops_buffer_append(out, shows ? at : ".", shows ? (size_t)(next - at) : 1);
	}
	if (fence > 1)
		ops_buffer_append(out, " ", 1);
	append_fence(out, fence);
}

static bool escape_is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

static bool escape_is_word(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || escape_is_digit(byte);
}

void ops_markdown_append(struct ops_buffer *out, const char *bytes, size_t size)
{
	bool is_plain = true;

	/* Punctuation may be markup, or part of a link, unless a word or number precedes it. */
	for (size_t i = 0; i < size && is_plain; i++)
		is_plain = escape_is_word(bytes[i]) ||
		           (i && i + 1 < size && memchr(" _-,.", bytes[i], 5) && escape_is_word(bytes[i - 1]) &&
		            (bytes[i] != '.' || escape_is_digit(bytes[i - 1]))) ||
		           (i && bytes[i] == ' ' && bytes[i - 1] == ',');
	if (is_plain || is_signed_number(bytes, size))
		ops_buffer_append(out, bytes, size);
	else
		ops_code_append(out, bytes, size);
}
