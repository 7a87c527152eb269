/* SPDX-License-Identifier: Apache-2.0
 *
 * base/utf8 compared with a decoder that works in the opposite direction: every encoded code point, and every two-byte start.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

static size_t encode(uint32_t point, char *out)
{
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		out[0] = (char)(0xc0 | point >> 6);
		out[1] = (char)(0x80 | (point & 63));
		return 2;
	}
	if (point < 0x10000) {
		out[0] = (char)(0xe0 | point >> 12);
		out[1] = (char)(0x80 | (point >> 6 & 63));
		out[2] = (char)(0x80 | (point & 63));
		return 3;
	}
	out[0] = (char)(0xf0 | point >> 18);
	out[1] = (char)(0x80 | (point >> 12 & 63));
	out[2] = (char)(0x80 | (point >> 6 & 63));
	out[3] = (char)(0x80 | (point & 63));
	return 4;
}

static void every_code_point(void **state)
{
	char text[4];

	(void)state;
	for (uint32_t point = 0; point < 0x140000; point++) {
		size_t size = encode(point, text);
		bool real = point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);

		assert_int_equal(ops_utf8_length(text, text + size), real ? size : 0);
		if (size > 1)
			assert_int_equal(ops_utf8_length(text, text + size - 1), 0);
	}
}

/* What the encoder above cannot make: overlong forms, stray bytes, broken continuations. */
static void ill_formed(void **state)
{
	static const char *const texts[] = {
		"\x80",         "\xbf",         "\xc0\x80",         "\xc1\xbf",         "\xe0\x80\x80", "\xe0\x9f\xbf",
		"\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80", "\xff",         "\xfe",         "\xc3(",
		"\xe2\x82(",    "\xe2(\xac",    "\xf0\x9f\x98(",    "\xf0\x9f(\x80",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(ops_utf8_length(texts[i], texts[i] + strlen(texts[i])), 0);
	assert_int_equal(ops_utf8_length("", ""), 0);
}

static void whole_texts(void **state)
{
	static const char text[] = "0123456789 caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 and the rest of it";
	const size_t size = sizeof(text) - 1;
	char changed[sizeof(text)];

	(void)state;
	assert_true(ops_utf8_valid("", 0));
	for (size_t start = 0; start < size; start++)
		for (size_t end = start; end <= size; end++) {
			bool whole = true;

			for (size_t at = start; at < end && whole;) {
				size_t length = ops_utf8_length(text + at, text + end);

				whole = length;
				at += length;
			}
			assert_int_equal(ops_utf8_valid(text + start, end - start), whole);
		}
	for (size_t at = 0; at < size; at++) {
		memcpy(changed, text, size);
		changed[at] = (char)0xff;
		assert_false(ops_utf8_valid(changed, size));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point),
		cmocka_unit_test(ill_formed),
		cmocka_unit_test(whole_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
