/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing JSON strings and numbers; see json.h. Only ops_json_string allocates memory, in its buffer.
 */
#include "base/json.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/text.h"
#include "base/utf8.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* --- strings ------------------------------------------------------------------------------------------------------- */

/* Most bytes of most names need no escape: printable ASCII except the quote and the backslash. They are copied in steps
 * of STEP bytes; each step stores STEP bytes and returns how many of them were plain. */
#if defined(__SSE2__)

#define STEP 16
static unsigned copy_plain(char *out, const char *from)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)from);
	/* As signed numbers, bytes from 0x80 on are negative, so one comparison finds them and the control characters. */
	__m128i special = _mm_or_si128(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20)),
	                               _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
	                                            _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'))));
	unsigned mask = (unsigned)_mm_movemask_epi8(special);

	_mm_storeu_si128((__m128i *)out, bytes);
	return mask ? (unsigned)__builtin_ctz(mask) : STEP;
}

#else

#define STEP 8
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
/* The top bit of each byte of `word` that is below `n`; above the lowest such byte there may be false positives. */
#define BELOW(word, n) (((word) - EACH(n)) & ~(word) & EACH(0x80))
static unsigned copy_plain(char *out, const char *from)
{
	uint64_t word;
	uint64_t special;

	memcpy(&word, from, STEP);
	memcpy(out, &word, STEP);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	special = (word & EACH(0x80)) | BELOW(word, 0x20) | BELOW(word ^ EACH('"'), 1) | BELOW(word ^ EACH('\\'), 1);
	return special ? (unsigned)__builtin_ctzll(special) / 8 : STEP;
}

#endif

/* Copies the tail, which is shorter than a step. */
static unsigned copy_plain_tail(char *out, const char *from, const char *end)
{
	unsigned count = 0;

	for (; from + count < end; count++) {
		uint8_t byte = (uint8_t)from[count];

		if (byte < 0x20 || byte > 0x7f || byte == '"' || byte == '\\')
			break;
		out[count] = (char)byte;
	}
	return count;
}

static char *put_hex(char *out, unsigned value, unsigned digits)
{
	while (digits--)
		*out++ = "0123456789abcdef"[value >> digits * 4 & 15];
	return out;
}

static char *put_ascii(char *out, uint8_t byte)
{
	static const char short_escapes[] = {['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

	if (byte == '"' || byte == '\\') {
		*out++ = '\\';
		*out++ = (char)byte;
	} else if (byte >= 0x20) {
		*out++ = (char)byte;
	} else if (byte < sizeof(short_escapes) && short_escapes[byte]) {
		*out++ = '\\';
		*out++ = short_escapes[byte];
	} else {
		memcpy(out, "\\u", 2);
		out = put_hex(out + 2, byte, 4);
	}
	return out;
}

/* Returns the surrogate whose three-byte encoding (Python's "surrogatepass") starts at `at`, else 0. */
static unsigned encoded_surrogate(const uint8_t *at, size_t left)
{
	if (left < 3 || at[0] != 0xed || at[1] < 0xa0 || at[1] > 0xbf || at[2] < 0x80 || at[2] > 0xbf)
		return 0;
	return 0xd000u | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
}

/* Returns whether a terminal or reader acts on the character, since JSON is also printed. All such characters have two or three
 * bytes. */
static bool json_acts(const char *at, const char *end)
{
	bool shows;

	ops_escape_next(at, end, &shows);
	return !shows;
}

/* Writes one character of any kind and moves `*at` past it. */
static char *put_character(char *out, const char **at, const char *end)
{
	const uint8_t *byte = (const uint8_t *)*at;
	size_t length = ops_utf8_length(*at, end);
	unsigned surrogate;

	if (length == 1) {
		*at += 1;
		return put_ascii(out, *byte);
	}
	if (length > 1 && !json_acts(*at, end)) {
		memcpy(out, *at, length);
		*at += length;
		return out + length;
	}
	if (length > 1) {
		memcpy(out, "\\u", 2);
		out = put_hex(out + 2, length == 2 ? (byte[0] & 0x1fu) << 6 | (byte[1] & 0x3fu) :
		                                     (byte[0] & 0xfu) << 12 | (byte[1] & 0x3fu) << 6 | (byte[2] & 0x3fu), 4);
		*at += length;
		return out;
	}
	surrogate = encoded_surrogate(byte, (size_t)(end - *at));
	if (surrogate) {
		*at += 3;
		memcpy(out, "\\\\u", 3);
		return put_hex(out + 3, surrogate, 4);
	}
	*at += 1;
	memcpy(out, "\\\\x", 3);
	return put_hex(out + 3, *byte, 2);
}

/* Rewrites a backslash at the very end, just written as \\, as \u005c: Perfetto's reader takes the quote after \\ for an escaped
 * one and rejects the file. */
static char *spell_last(char *out, const char *bytes, size_t size)
{
	if (size == 0 || bytes[size - 1] != '\\')
		return out;
	memcpy(out - 2, "\\u005c", 6);
	return out + 4;
}

char *ops_json_string_to(char *out, const char *bytes, size_t size)
{
	const char *at = bytes;
	const char *end = ops_bytes_end(bytes, size);

	*out++ = '"';
	while (end - at >= STEP) {
		unsigned plain = copy_plain(out, at);

		out += plain;
		at += plain;
		if (plain < STEP)
			out = put_character(out, &at, end);
	}
	while (at < end) {
		unsigned plain = copy_plain_tail(out, at, end);

		out += plain;
		at += plain;
		if (at < end)
			out = put_character(out, &at, end);
	}
	out = spell_last(out, bytes, size);
	*out++ = '"';
	return out;
}

void ops_json_string(struct ops_buffer *buffer, const char *bytes, size_t size)
{
	/* Writes long strings in pieces, so that not much more space is requested than needed. A piece never ends inside a
	 * character: one that begins before the end of a piece is written completely, which adds at most three bytes. */
	const size_t piece = 4096;
	const char *at = bytes;
	const char *end = ops_bytes_end(bytes, size);

	ops_buffer_append(buffer, "\"", 1);
	while (at < end) {
		const char *stop = (size_t)(end - at) > piece ? at + piece : end;
		char *out = ops_buffer_room(buffer, ((size_t)(stop - at) + 3) * OPS_JSON_EXPANSION);

		if (!out)
			return;
		while (at < stop) {
			unsigned plain = stop - at >= STEP ? copy_plain(out, at) : copy_plain_tail(out, at, stop);

			out += plain;
			at += plain;
			if (plain < STEP && at < stop)
				out = put_character(out, &at, end);
		}
		if (at == end)
			out = spell_last(out, bytes, size);
		buffer->size = (size_t)(out - buffer->bytes);
	}
	ops_buffer_append(buffer, "\"", 1);
}

/* --- numbers ------------------------------------------------------------------------------------------------------- */

static const char digit_pairs[] = "00010203040506070809"
				  "10111213141516171819"
				  "20212223242526272829"
				  "30313233343536373839"
				  "40414243444546474849"
				  "50515253545556575859"
				  "60616263646566676869"
				  "70717273747576777879"
				  "80818283848586878889"
				  "90919293949596979899";

static void put_pair(char *out, uint32_t pair)
{
	memcpy(out, digit_pairs + pair * 2, 2);
}

/* Writes exactly eight digits; the four divisions are independent of each other. */
static void put_eight(char *out, uint32_t value)
{
	uint32_t high = value / 10000;
	uint32_t low = value % 10000;

	put_pair(out, high / 100);
	put_pair(out + 2, high % 100);
	put_pair(out + 4, low / 100);
	put_pair(out + 6, low % 100);
}

static char *put_small(char *out, uint32_t value)
{
	unsigned digits = 1 + (value >= 10) + (value >= 100) + (value >= 1000) + (value >= 10000) + (value >= 100000) +
	                  (value >= 1000000) + (value >= 10000000);
	char *at = out + digits;

	for (; value >= 100; value /= 100)
		put_pair(at -= 2, value % 100);
	if (value >= 10)
		put_pair(at - 2, value);
	else
		at[-1] = (char)('0' + value);
	return out + digits;
}

char *ops_json_uint_to(char *out, uint64_t value)
{
	const uint64_t eight = 100000000;

	if (value < eight)
		return put_small(out, (uint32_t)value);
	out = ops_json_uint_to(out, value / eight);
	put_eight(out, (uint32_t)(value % eight));
	return out + 8;
}

char *ops_json_int_to(char *out, int64_t value)
{
	if (value >= 0)
		return ops_json_uint_to(out, (uint64_t)value);
	*out = '-';
	return ops_json_uint_to(out + 1, -(uint64_t)value);
}

char *ops_json_us_to(char *out, int64_t ns)
{
	uint64_t magnitude = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	unsigned below = (unsigned)(magnitude % 1000);

	if (ns < 0)
		*out++ = '-';
	out = ops_json_uint_to(out, magnitude / 1000);
	out[0] = '.';
	out[1] = (char)('0' + below / 100);
	put_pair(out + 2, below % 100);
	return out + 4;
}

/* Writes an integer in units of 10^-decimals. */
static char *put_decimal(char *out, uint64_t units, unsigned decimals)
{
	char digits[24];
	size_t count = (size_t)(ops_json_uint_to(digits, units) - digits);
	size_t whole = count > decimals ? count - decimals : 0;

	if (whole == 0)
		*out++ = '0';
	memcpy(out, digits, whole);
	out += whole;
	*out++ = '.';
	for (size_t zeros = decimals - (count - whole); zeros; zeros--)
		*out++ = '0';
	memcpy(out, digits + whole, count - whole);
	return out + (count - whole);
}

/* Writes the fewest significant digits that read back the same. Up to 15 digits never have superfluous zeros, but subnormal
 * numbers have fewer. The C library's decimal point may be another character, so anything that is not part of a number becomes a
 * point. */
static char *put_double_slow(char *out, double value)
{
	char text[64];
	bool in_point = false;

	for (int precision = fabs(value) < DBL_MIN ? 1 : 15; precision <= 17; precision++) {
		snprintf(text, sizeof(text), "%.*g", precision, value);
		if (strtod(text, NULL) == value)
			break;
	}
	for (const char *at = text; *at; at++) {
		bool of_number = (*at >= '0' && *at <= '9') || *at == '-' || *at == '+' || *at == 'e';

		if (of_number)
			*out++ = *at;
		else if (!in_point)
			*out++ = '.';
		in_point = !of_number;
	}
	return out;
}

char *ops_json_double_to(char *out, double value)
{
	double magnitude = fabs(value);
	double power = 1;

	if (!isfinite(value)) {
		memcpy(out, "null", 4);
		return out + 4;
	}
	if (magnitude < 0x1p53 && magnitude == trunc(magnitude) && (magnitude != 0 || !signbit(value)))
		return ops_json_int_to(out, (int64_t)value);
	if (magnitude == 0) {
		memcpy(out, "-0.0", 4);
		return out + 4;
	}
	/* A quotient of two integers that doubles represent exactly is rounded once, like the same digits in a reader: if it
	 * equals the value, so does the text. The first such number of decimals is the shortest. */
	for (unsigned decimals = 1; decimals <= 15; decimals++) {
		double units;

		power *= 10;
		units = rint(magnitude * power);
		if (units >= 0x1p51)
			break;
		if (units / power == magnitude) {
			if (value < 0)
				*out++ = '-';
			return put_decimal(out, (uint64_t)units, decimals);
		}
	}
	return put_double_slow(out, value);
}
