/* SPDX-License-Identifier: Apache-2.0
 *
 * base/json, the validator: what it accepts, what it rejects, and the byte of the error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static void takes(void **state)
{
	static const char *const texts[] = {
		"null", "true", "false", "0", "-0", "10", "1.5", "-1.25e10", "1E-7", "1e+7", "\"\"", "\"x\"", "[]", "{}", " [ ] ",
		"{ }", "\t\r\n 1 \n", "[1,2,3]", "[[],{},[[]]]", "{\"a\":1}", "{\"a\":{\"b\":[1,{\"c\":null}]},\"d\":\"e\"}",
		"[ 1 , 2 ]", "{ \"a\" : 1 , \"b\" : 2 }", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\"", "\"\\udc80\"",
		"\"caf\xc3\xa9 \xf0\x9f\x98\x80 \x7f\"", "{\"a\":1,\"a\":2}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct ops_error error = {0};

		if (ops_json_validate(texts[i], strlen(texts[i]), &error) != OPS_OK)
			fail_msg("'%s': %s", texts[i], error.text);
	}
}

static void refuses_and_names_the_byte(void **state)
{
	static const struct {
		const char *text;
		size_t byte;
	} cases[] = {
		{"", 0}, {"  ", 2}, {"nul", 3}, {"nulL", 3}, {"True", 0}, {"NaN", 0}, {"Infinity", 0}, {"-", 1}, {"-x", 1},
		{"01", 1}, {"1.", 2}, {"1.x", 2}, {".5", 0}, {"+1", 0}, {"1e", 2}, {"1e+", 3}, {"0x10", 1}, {"1 2", 2},
		{"[", 1}, {"[1", 2}, {"[1,", 3}, {"[1,]", 3}, {"[,1]", 1}, {"[1 2]", 3}, {"]", 0}, {"[}", 1}, {"[1}", 2},
		{"{", 1}, {"{\"a\"", 4}, {"{\"a\":", 5}, {"{\"a\":1", 6}, {"{\"a\":1,", 7}, {"{\"a\":1,}", 7}, {"{a:1}", 1},
		{"{\"a\" 1}", 5}, {"{1:2}", 1}, {"{\"a\":1]", 6}, {"{]", 1}, {"\"", 1}, {"\"abc", 4}, {"\"\\x\"", 2},
		{"\"\\u12g4\"", 5}, {"\"\\u12", 5}, {"\"\\", 2}, {"\"a\nb\"", 2}, {"\"\xff\"", 1}, {"\"a\xed\xa0\x80\"", 2},
		{"'a'", 0}, {"1 // one", 2}, {"[1]x", 3}, {"\xef\xbb\xbf[]", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ops_error error = {0};
		char expected[64];

		assert_int_equal(ops_json_validate(cases[i].text, strlen(cases[i].text), &error), OPS_INVALID);
		snprintf(expected, sizeof(expected), "invalid JSON at byte %zu: ", cases[i].byte);
		if (strncmp(error.text, expected, strlen(expected)) != 0)
			fail_msg("'%s': %s", cases[i].text, error.text);
	}
}

static void a_nul_does_not_end_a_name(void **state)
{
	struct ops_error error = {0};

	(void)state;
	assert_int_equal(ops_json_validate("1\0", 2, &error), OPS_INVALID);
	assert_int_equal(ops_json_validate("\"a\0b\"", 5, &error), OPS_INVALID);
	assert_string_equal(error.text, "invalid JSON at byte 2: a control character in a string");
	assert_int_equal(ops_json_validate("[\0]", 3, &error), OPS_INVALID);
	assert_int_equal(ops_json_validate("\"\\\0\"", 4, &error), OPS_INVALID);
	assert_int_equal(ops_json_validate("\"\\u00\0\"", 8, &error), OPS_INVALID);
}

static void depth_is_bounded(void **state)
{
	static char text[200000];

	(void)state;
	memset(text, '[', 256);
	memset(text + 256, ']', 256);
	assert_int_equal(ops_json_validate(text, 512, NULL), OPS_OK);
	memset(text, '[', 257);
	memset(text + 257, ']', 257);
	assert_int_equal(ops_json_validate(text, 514, NULL), OPS_INVALID);
	memset(text, '[', sizeof(text));
	assert_int_equal(ops_json_validate(text, sizeof(text), NULL), OPS_INVALID);
}

/* Every prefix of a document is refused, and every single-byte change ends without a step out of bounds. */
static void prefixes_and_changes(void **state)
{
	static const char text[] = "{\"a\":[1,-2.5e3,true,null,\"\\u00e9\\n\xc3\xa9\"],\"b\":{\"c\":[]}}";
	const size_t size = sizeof(text) - 1;

	(void)state;
	assert_int_equal(ops_json_validate(text, size, NULL), OPS_OK);
	for (size_t cut = 0; cut < size; cut++) {
		char *prefix = malloc(cut ? cut : 1);

		memcpy(prefix, text, cut);
		assert_int_equal(ops_json_validate(prefix, cut, NULL), OPS_INVALID);
		free(prefix);
	}
	for (size_t at = 0; at < size; at++) {
		char *changed = malloc(size);

		for (unsigned byte = 0; byte < 256; byte++) {
			memcpy(changed, text, size);
			changed[at] = (char)byte;
			ops_json_validate(changed, size, NULL);
		}
		free(changed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes),
		cmocka_unit_test(refuses_and_names_the_byte),
		cmocka_unit_test(a_nul_does_not_end_a_name),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(prefixes_and_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
