/* SPDX-License-Identifier: Apache-2.0
 *
 * Tokens of JSON text: the same wherever the text ends, and nothing is read beyond its end.
 */
#include "base/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json_walk.h"
#include "base/text.h"

/* The bytes alone in memory, so that a sanitizer sees what is read behind them. */
static char *alone(const char *text, size_t size)
{
	char *bytes = malloc(size ? size : 1);

	assert_non_null(bytes);
	memcpy(bytes, text, size);
	return bytes;
}

/* Strings of every length around the step of the search, with what has a flag at every place. */
static void test_string_end(void **state)
{
	static const struct {
		const char *special;
		uint8_t flags;
	} cases[] = {{"a", 0}, {"\xc3\xa4", OPS_JSON_HIGH}, {"\t", OPS_JSON_CONTROL}, {"\\\"", OPS_JSON_ESCAPED},
	             {"\\\\", OPS_JSON_ESCAPED}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t before = 0; before < 40; before++) {
			for (size_t after = 0; after < 20; after++) {
				size_t length = strlen(cases[i].special), size = before + length + after;
				char text[80];
				char *bytes;
				uint8_t flags = 0;

				memset(text, 'x', sizeof(text));
				memcpy(text + before, cases[i].special, length);
				text[size] = '"';
				bytes = alone(text, size + 1);
				assert_ptr_equal(ops_json_string_end(bytes, bytes + size + 1, &flags), bytes + size);
				assert_int_equal(flags, cases[i].flags);
				flags = 0;
				assert_null(ops_json_string_end(bytes, bytes + size, &flags));
				free(bytes);
			}
		}
	}
}

static void test_number_end(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		bool whole;
	} cases[] = {{"0", 1, true},     {"-12.5e+3,", 8, true}, {"01", 1, true},   {"1.", 2, false}, {"-", 1, false},
	             {"2e", 2, false},   {"2E-", 3, false},      {"+1", 0, false},  {".5", 0, false}, {"", 0, false},
	             {"1.5.5", 3, true}, {"7]", 1, true}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *bytes = alone(cases[i].text, strlen(cases[i].text));
		bool whole;

		assert_ptr_equal(ops_json_number_end(bytes, bytes + strlen(cases[i].text), &whole), bytes + cases[i].size);
		assert_int_equal(whole, cases[i].whole);
		free(bytes);
	}
}

static const char object_text[] = "{\"name\" : \"aten::mm \\\" }\",\"list\":[[1,2],{\"deep\":[\"]\",{}]}], \"ts\":12.5,\n"
				  "    \"args\":{\"External id\":7,\"long string of many characters\":null},\"ph\":\"X\"}";

/* Whatever is missing at its end, an object is not taken apart; with it, it is, and the text may end there. */
static void test_object(void **state)
{
	static struct ops_json_object object;
	size_t size = sizeof(object_text) - 1;

	(void)state;
	for (size_t cut = 1; cut <= size; cut++) {
		char *bytes = alone(object_text, cut);
		struct ops_json_cursor cursor = {bytes, bytes + cut, NULL};

		assert_int_equal(ops_json_parse_object(&cursor, &object), cut < size ? OPS_JSON_MORE : OPS_JSON_DONE);
		if (cut == size) {
			assert_ptr_equal(cursor.at, cursor.end);
			assert_int_equal(object.count, 4);
			assert_int_equal(object.arg_count, 2);
			assert_memory_equal(object.members[1].value, "[[1,2],{\"deep\":[\"]\",{}]}]", 25);
			assert_int_equal(object.members[2].type, OPS_JSON_NUMBER);
			assert_int_equal(object.args[1].type, OPS_JSON_WORD);
		}
		free(bytes);
	}
}

/* The walk over a value finds the same members. */
static void test_walk(void **state)
{
	static const char *const members[][2] = {{"name", "\"aten::mm \\\" }\""},
	                                         {"list", "[[1,2],{\"deep\":[\"]\",{}]}]"},
	                                         {"ts", "12.5"},
	                                         {"args", "{\"External id\":7,\"long string of many characters\":null}"},
	                                         {"ph", "\"X\""}};
	size_t size = sizeof(object_text) - 1;

	(void)state;
	for (size_t cut = 0; cut <= size; cut++) {
		char *bytes = alone(object_text, cut);
		struct ops_json_walk cursor = ops_json_walk(bytes, cut);
		struct ops_string key, value;
		size_t count = 0;

		for (; ops_json_next_member(&cursor, &key, &value); count++) {
			assert_true(value.bytes >= bytes && value.bytes + value.size <= bytes + cut);
			assert_true(ops_string_is(key, members[count][0]));
			assert_true(cut < size || ops_string_is(value, members[count][1]));
		}
		assert_true(cut < size ? count <= 5 : count == 5);
		free(bytes);
	}
}

/* Results of analyses are nested as deep as calls are. */
static void test_deep_walk(void **state)
{
	enum { DEPTH = 1000 };
	char text[1 + 2 * DEPTH + 4];
	struct ops_json_walk cursor;
	struct ops_string value;

	(void)state;
	memset(text, '[', 1 + DEPTH);
	memset(text + 1 + DEPTH, ']', DEPTH);
	memcpy(text + 1 + 2 * DEPTH, ",23]", 4);
	cursor = ops_json_walk(text, sizeof(text));
	assert_true(ops_json_next_element(&cursor, &value));
	assert_int_equal(value.size, 2 * DEPTH);
	assert_true(ops_json_next_element(&cursor, &value));
	assert_int_equal(value.size, 2);
	assert_false(ops_json_next_element(&cursor, &value));
}

static void finds_members_by_type(void **state)
{
	struct ops_string object = ops_string_of("{\"n\": -3, \"d\": 0.5, \"s\": \"4\", \"t\": true, \"f\": false, \"o\": {\"n\": 7}, \"x\": 1e99}");
	struct ops_string inner;

	(void)state;
	assert_int_equal(ops_json_integer_of(object, "n", 5), -3);
	assert_int_equal(ops_json_integer_of(object, "absent", 5), 5);
	assert_int_equal(ops_json_integer_of(object, "x", 5), 5); /* does not fit */
	assert_int_equal(ops_json_integer_of(object, "o", 5), 5);
	assert_true(ops_json_number_of(object, "d", 5) == 0.5 && ops_json_number_of(object, "t", 5) == 5);
	assert_true(ops_json_lists((struct ops_string){"[\"a\", \"bc\"]", 11}, "bc"));
	assert_false(ops_json_lists((struct ops_string){"[\"a\", \"bc\"]", 11}, "b") || ops_json_lists((struct ops_string){"[1, abcd]", 9}, "bc"));
	assert_true(ops_json_is_true(object, "t"));
	assert_false(ops_json_is_true(object, "f") || ops_json_is_true(object, "n") || ops_json_is_true(object, "absent"));
	assert_true(ops_json_find_typed(object, "o", '{', &inner));
	assert_int_equal(ops_json_integer_of(inner, "n", 0), 7);
	assert_false(ops_json_find_typed(object, "n", '{', &inner) || ops_json_find_typed(object, "absent", '{', &inner));
	/* Values that are not objects have no members. */
	assert_int_equal(ops_json_integer_of(ops_string_of("[\"n\", 3]"), "n", 5), 5);
	assert_int_equal(ops_json_integer_of(ops_string_of("\"n\""), "n", 5), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_string_end), cmocka_unit_test(test_number_end), cmocka_unit_test(test_object),
		cmocka_unit_test(test_walk),       cmocka_unit_test(test_deep_walk), cmocka_unit_test(finds_members_by_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
