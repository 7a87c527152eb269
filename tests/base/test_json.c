/* SPDX-License-Identifier: Apache-2.0
 *
 * base/json, mostly writing: any input becomes valid JSON and can be recovered; numbers read back the same.
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/escape.h"
#include "base/json_walk.h"
#include "base/utf8.h"
#include "comma.h"
#include "failing.h"

static uint64_t seed = 1;
static uint64_t random_bits(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* --- strings ------------------------------------------------------------------------------------------------------- */

static unsigned read_hex(const char *at)
{
	char digits[5] = {at[0], at[1], at[2], at[3], 0};

	return (unsigned)strtoul(digits, NULL, 16);
}

/* Matches the bytes from `from` on spelled out at `at`, as \\ud800 or \\xff. Returns how many, 0: none. */
static size_t match_spelled(const char *at, const unsigned char *from, size_t left)
{
	unsigned unit;

	if (memcmp(at, "\\\\x", 3) == 0 && ops_utf8_length((const char *)from, (const char *)from + left) == 0)
		return strtoul((char[]){at[3], at[4], 0}, NULL, 16) == from[0];
	unit = memcmp(at, "\\\\u", 3) == 0 ? read_hex(at + 3) : 0;
	return left >= 3 && unit >= 0xd800 && unit <= 0xdfff && from[0] == 0xed && from[1] == (0x80 | (unit >> 6 & 63)) &&
	                       from[2] == (0x80 | (unit & 63))
	               ? 3
	               : 0;
}

/* Returns whether the bytes are the given character, on which a terminal would act. */
static bool acts_as(const unsigned char *bytes, size_t length, unsigned character)
{
	bool shows;

	ops_escape_next((const char *)bytes, (const char *)bytes + length, &shows);
	if (length == 2)
		return !shows && character == ((bytes[0] & 0x1fu) << 6 | (bytes[1] & 0x3fu));
	return !shows && length == 3 && character == ((bytes[0] & 0xfu) << 12 | (bytes[1] & 0x3fu) << 6 | (bytes[2] & 0x3fu));
}

/* Reads the JSON string and the original side by side. */
static void assert_same(const char *json, size_t json_size, const char *original, size_t size)
{
	static const char shorts[] = "\"\"\\\\b\bf\fn\nr\rt\t";
	const unsigned char *from = (const unsigned char *)original;
	const unsigned char *end = from + size;
	const char *at = json + 1;
	struct ops_error error = {0};

	if (ops_json_validate(json, json_size, &error) != OPS_OK)
		fail_msg("%s: %.*s", error.text, (int)json_size, json);
	while (at < json + json_size - 1) {
		size_t spelled;

		assert_true(from < end);
		spelled = match_spelled(at, from, (size_t)(end - from));
		if (spelled) {
			at += spelled == 1 ? 5 : 7;
			from += spelled;
		} else if (*at != '\\') {
			assert_int_equal((unsigned char)*at++, *from++);
		} else if (at[1] == 'u' && read_hex(at + 2) >= 0x80) {
			size_t length = ops_utf8_length((const char *)from, (const char *)end);

			assert_true(acts_as(from, length, read_hex(at + 2)));
			at += 6;
			from += length;
		} else if (at[1] == 'u') {
			assert_true(read_hex(at + 2) < 0x20 || (*from == '\\' && from + 1 == end));
			assert_int_equal(read_hex(at + 2), *from++);
			at += 6;
		} else {
			const char *found = NULL;

			for (size_t i = 0; shorts[i]; i += 2)
				if (shorts[i] == at[1])
					found = shorts + i + 1;
			assert_non_null(found);
			assert_int_equal(*found, *from++);
			at += 2;
		}
	}
	assert_ptr_equal(from, end);
}

/* Both forms, into memory of exactly the promised size so that a sanitizer sees any byte too much. */
static void check_string(const char *original, size_t size)
{
	char *bytes = malloc(size ? size : 1);
	char *out = malloc(size * OPS_JSON_EXPANSION + 2);
	struct ops_buffer buffer = {0};
	size_t length;

	memcpy(bytes, original, size);
	length = (size_t)(ops_json_string_to(out, bytes, size) - out);
	assert_true(length <= size * OPS_JSON_EXPANSION + 2);
	assert_int_equal(out[0], '"');
	assert_int_equal(out[length - 1], '"');
	assert_same(out, length, bytes, size);
	ops_json_string(&buffer, bytes, size);
	assert_false(buffer.failed);
	assert_int_equal(buffer.size, length);
	assert_memory_equal(buffer.bytes, out, length);
	ops_buffer_release(&buffer);
	free(out);
	free(bytes);
}

static void expect_escaped(const char *original, size_t size, const char *json)
{
	char out[256];

	*ops_json_string_to(out, original, size) = '\0';
	assert_string_equal(out, json);
}

static void known_strings(void **state)
{
	(void)state;
	expect_escaped("", 0, "\"\"");
	expect_escaped("aten::mm", 8, "\"aten::mm\"");
	expect_escaped("a\"b\\c/d", 7, "\"a\\\"b\\\\c/d\"");
	expect_escaped("\\", 1, "\"\\u005c\"");
	expect_escaped("C:\\dir\\\\", 8, "\"C:\\\\dir\\\\\\u005c\"");
	expect_escaped("\b\f\n\r\t", 5, "\"\\b\\f\\n\\r\\t\"");
	expect_escaped("\0\x01\x1f\x7f", 4, "\"\\u0000\\u0001\\u001f\x7f\"");
	expect_escaped("caf\xc3\xa9 \xf0\x9f\x98\x80", 10, "\"caf\xc3\xa9 \xf0\x9f\x98\x80\"");
	expect_escaped("\xed\xa0\xbd", 3, "\"\\\\ud83d\"");
	expect_escaped("\xed\xbf\xbf", 3, "\"\\\\udfff\"");
	expect_escaped("\xff", 1, "\"\\\\xff\"");
	expect_escaped("\xc3", 1, "\"\\\\xc3\"");
	expect_escaped("\xf0\x9f\x98", 3, "\"\\\\xf0\\\\x9f\\\\x98\"");
	expect_escaped("\xc0\x80", 2, "\"\\\\xc0\\\\x80\"");
}

/* Every byte value at every place of a text that spans the steps of the fast scan. */
static void every_byte_everywhere(void **state)
{
	char text[40];

	(void)state;
	for (unsigned byte = 0; byte < 256; byte++) {
		for (size_t size = 1; size <= sizeof(text); size++) {
			for (size_t at = 0; at < size; at++) {
				memset(text, 'x', sizeof(text));
				text[at] = (char)byte;
				check_string(text, size);
			}
		}
	}
}

static void every_surrogate(void **state)
{
	(void)state;
	for (unsigned unit = 0xd800; unit <= 0xdfff; unit++) {
		char text[] = {'a', (char)(0xe0 | unit >> 12), (char)(0x80 | (unit >> 6 & 63)), (char)(0x80 | (unit & 63)), 'b'};
		char out[64];

		check_string(text, sizeof(text));
		*ops_json_string_to(out, text, sizeof(text)) = '\0';
		assert_int_equal(strlen(out), 11);
		assert_int_equal(read_hex(out + 5), unit);
	}
}

static size_t put_piece(char *out)
{
	static const char *const pieces[] = {
		"\"", "\\", "\n", "\x01", "\x7f", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xed\xa0\x80", "\xed\xb2\x80",
		"\xff", "\xe2\x82", "\xf0\x9f", "\xf4\x90\x80\x80", "</script>", "\xe2\x80\xa8", "aten::convolution_backward",
	};
	uint64_t pick = random_bits() % (sizeof(pieces) / sizeof(pieces[0]) + 3);
	size_t size;

	if (pick >= sizeof(pieces) / sizeof(pieces[0])) {
		*out = (char)random_bits();
		return 1;
	}
	size = strlen(pieces[pick]);
	memcpy(out, pieces[pick], size);
	return size;
}

static void random_strings(void **state)
{
	static char text[20000];

	(void)state;
	for (int round = 0; round < 3000; round++) {
		size_t limit = random_bits() % (round % 100 ? 200 : sizeof(text) - 100);
		size_t size = 0;

		while (size < limit)
			size += put_piece(text + size);
		check_string(text, size);
	}
}

static void a_string_in_a_failing_buffer(void *context)
{
	struct ops_buffer buffer = {0};

	(void)context;
	for (int i = 0; i < 100; i++)
		ops_json_string(&buffer, "0123456789\"", 11);
	assert_true(buffer.failed || buffer.size == 1400);
	ops_buffer_release(&buffer);
}

static void failing_buffers(void **state)
{
	(void)state;
	assert_true(fail_each(a_string_in_a_failing_buffer, NULL) >= 2);
}

/* Short strings need little memory. */
static void short_strings_take_little_room(void **state)
{
	struct ops_buffer buffer = {0};

	(void)state;
	ops_json_string(&buffer, "abc", 3);
	assert_true(buffer.capacity <= 256);
	ops_buffer_release(&buffer);
}

/* --- numbers ------------------------------------------------------------------------------------------------------- */

static void check_integer(int64_t value)
{
	char expected[32];
	char out[32];

	snprintf(expected, sizeof(expected), "%" PRId64, value);
	*ops_json_int_to(out, value) = '\0';
	assert_string_equal(out, expected);
	snprintf(expected, sizeof(expected), "%" PRIu64, (uint64_t)value);
	*ops_json_uint_to(out, (uint64_t)value) = '\0';
	assert_string_equal(out, expected);
}

static void integers(void **state)
{
	uint64_t power = 1;

	(void)state;
	for (int64_t value = -1100; value < 11000; value++)
		check_integer(value);
	for (int i = 0; i < 20; i++, power *= 10)
		for (int64_t off = -2; off <= 2; off++)
			check_integer((int64_t)(power + (uint64_t)off)), check_integer(-(int64_t)(power + (uint64_t)off));
	check_integer(INT64_MIN);
	check_integer(INT64_MAX);
	for (int i = 0; i < 100000; i++)
		check_integer((int64_t)(random_bits() >> random_bits() % 64));
}

static void expect_us(int64_t ns, const char *text)
{
	char out[32];

	*ops_json_us_to(out, ns) = '\0';
	assert_string_equal(out, text);
}

static void microseconds(void **state)
{
	(void)state;
	expect_us(0, "0.000");
	expect_us(1, "0.001");
	expect_us(-1, "-0.001");
	expect_us(12345, "12.345");
	expect_us(1000, "1.000");
	expect_us(-1050, "-1.050");
	expect_us(4362172295567859, "4362172295567.859");
	expect_us(INT64_MAX, "9223372036854775.807");
	expect_us(INT64_MIN, "-9223372036854775.808");
}

static void check_double(double value)
{
	char out[64];
	char *end = ops_json_double_to(out, value);
	struct ops_error error = {0};
	double back;

	assert_true(end - out <= 32);
	*end = '\0';
	assert_int_equal(ops_json_validate(out, (size_t)(end - out), &error), OPS_OK);
	back = strtod(out, NULL);
	if (memcmp(&back, &value, sizeof(value)) != 0)
		fail_msg("%.17g came out as %s", value, out);
}

static void expect_double(double value, const char *text)
{
	char out[64];

	*ops_json_double_to(out, value) = '\0';
	assert_string_equal(out, text);
}

static void known_doubles(void **state)
{
	(void)state;
	expect_double(0, "0");
	expect_double(-0.0, "-0.0");
	expect_double(3, "3");
	expect_double(-17, "-17");
	expect_double(0.1, "0.1");
	expect_double(-2.5, "-2.5");
	expect_double(0.1 + 0.2, "0.30000000000000004");
	expect_double(0.000123, "0.000123");
	expect_double(123456.789, "123456.789");
	expect_double(9007199254740991, "9007199254740991");
	expect_double(1e22, "1e+22");
	expect_double(1e300, "1e+300");
	expect_double(5e-324, "5e-324");
	expect_double(INFINITY, "null");
	expect_double(-INFINITY, "null");
	expect_double(NAN, "null");
}

static void doubles_read_back(void **state)
{
	(void)state;
	check_double(DBL_MAX);
	check_double(-DBL_MAX);
	check_double(DBL_MIN);
	check_double(DBL_EPSILON);
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = random_bits();
		double value;

		memcpy(&value, &bits, sizeof(value));
		if (isfinite(value))
			check_double(value);
		check_double((double)(bits % 1000000) / 1000);
		check_double((double)(int64_t)bits / 1e9);
		check_double((double)(bits >> 11) * 0x1p-53);
	}
}

/* No digit more than needed: the text is as short as the shortest of what printf makes that reads back. */
static void doubles_are_short(void **state)
{
	(void)state;
	for (int i = 0; i < 20000; i++) {
		double value = (double)(random_bits() % 100000000) / pow(10, (double)(random_bits() % 9));
		char out[64], best[64];
		size_t digits = 0, digits_best = 0;

		for (int precision = 1; precision <= 17; precision++) {
			snprintf(best, sizeof(best), "%.*g", precision, value);
			if (strtod(best, NULL) == value)
				break;
		}
		*ops_json_double_to(out, value) = '\0';
		for (const char *at = out; *at && *at != 'e'; at++)
			digits += *at >= '0' && *at <= '9' && (digits || *at != '0');
		for (const char *at = best; *at && *at != 'e'; at++)
			digits_best += *at >= '0' && *at <= '9' && (digits_best || *at != '0');
		if (value != trunc(value))
			assert_int_equal(digits, digits_best);
	}
}

static void check_doubles(void)
{
	char out[64];
	double value;

	assert_true(ops_json_parse_number((struct ops_string){"-2.5e3", 6}, &value));
	assert_true(value == -2500);
	assert_true(ops_json_parse_number((struct ops_string){"\"0.125\"", 7}, &value));
	assert_true(value == 0.125);
	assert_false(ops_json_parse_number((struct ops_string){"1.2.5", 5}, &value));
	*ops_json_double_to(out, 0.1 + 0.2) = '\0';
	assert_string_equal(out, "0.30000000000000004");
	*ops_json_double_to(out, 1.5e300) = '\0';
	assert_string_equal(out, "1.5e+300");
}

static void doubles_ignore_the_locale(void **state)
{
	(void)state;
	check_doubles();
	with_comma(check_doubles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_strings),
		cmocka_unit_test(every_byte_everywhere),
		cmocka_unit_test(every_surrogate),
		cmocka_unit_test(random_strings),
		cmocka_unit_test(failing_buffers),
		cmocka_unit_test(short_strings_take_little_room),
		cmocka_unit_test(integers),
		cmocka_unit_test(microseconds),
		cmocka_unit_test(known_doubles),
		cmocka_unit_test(doubles_read_back),
		cmocka_unit_test(doubles_are_short),
		cmocka_unit_test(doubles_ignore_the_locale),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
