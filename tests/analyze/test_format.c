/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/format: numbers at the limits of their units, and widths of arbitrary bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/format.h"
#include "base/json_walk.h"

static const char *examples_path;

static void read_examples(struct ops_string *ret_text)
{
	static char text[16384];
	FILE *file = fopen(examples_path, "rb");

	assert_non_null(file);
	*ret_text = (struct ops_string){text, fread(text, 1, sizeof(text), file)};
	assert_true(ret_text->size > 0 && ret_text->size < sizeof(text));
	fclose(file);
}

static void assert_time(double us, enum ops_time_unit unit, const char *expected)
{
	char text[OPS_FORMAT_ROOM];

	ops_format_time(text, us, unit);
	assert_string_equal(text, expected);
}

static void times(void **state)
{
	(void)state;
	assert_time(0, OPS_TIME_BY_SIZE, "0.000us");
	assert_time(999.9994, OPS_TIME_BY_SIZE, "999.999us");
	assert_time(999.9996, OPS_TIME_BY_SIZE, "1000.000us");
	assert_time(1000, OPS_TIME_BY_SIZE, "1.000ms");
	assert_time(999999.6, OPS_TIME_BY_SIZE, "1000.000ms");
	assert_time(1e6, OPS_TIME_BY_SIZE, "1.000s");
	assert_time(-5e6, OPS_TIME_BY_SIZE, "-5000000.000us");
	assert_time(1234.5, OPS_TIME_S, "0.001s");
	assert_time(1234.5, OPS_TIME_MS, "1.234ms");
	assert_time(1234.5, OPS_TIME_US, "1234.500us");
	assert_time(-9223372036854775.808, OPS_TIME_BY_SIZE, "-9223372036854776.000us");
	assert_int_equal(ops_time_unit_of(NULL), OPS_TIME_BY_SIZE);
	assert_int_equal(ops_time_unit_of("s"), OPS_TIME_S);
	assert_int_equal(ops_time_unit_of("ms"), OPS_TIME_MS);
	assert_int_equal(ops_time_unit_of("us"), OPS_TIME_US);
	assert_int_equal(ops_time_unit_of("h"), OPS_TIME_BY_SIZE);
}

static void shares(void **state)
{
	char text[OPS_FORMAT_ROOM];

	(void)state;
	ops_format_share(text, 1, 3);
	assert_string_equal(text, "33.33%");
	ops_format_share(text, 5, 2);
	assert_string_equal(text, "250.00%");
	ops_format_share(text, 0, 0);
	assert_string_equal(text, "NaN");
	ops_format_share(text, 1, 0);
	assert_string_equal(text, "NaN");
	ops_format_share(text, -9.3e15, 0.001);
	assert_string_equal(text, "-930000000000000000000.00%");
}

static void format_moment(char *out, double ns)
{
	ops_format_moment(out, (int64_t)ns);
}

static void format_size(char *out, double bytes)
{
	ops_format_bytes(out, (int64_t)bytes);
}

/* The viewer's formatter reads the same examples (web/tests/unit/figures.test.ts). */
static void examples(void **state)
{
	static const struct {
		const char *name;
		void (*format)(char *out, double figure);
	} kinds[] = {{"duration", ops_format_duration}, {"moment", format_moment}, {"bytes", format_size}, {"percent", ops_format_percent},
	             {"change", ops_format_change}, {"number", ops_format_number}, {"count", ops_format_count}};
	struct ops_string file, list, pair, figure, text;
	struct ops_json_walk pairs, cells;
	char shown[OPS_FORMAT_ROOM];
	double number;

	(void)state;
	read_examples(&file);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		assert_true(ops_json_find_typed(file, kinds[i].name, '[', &list));
		pairs = ops_json_walk(list.bytes, list.size);
		while (ops_json_next_element(&pairs, &pair)) {
			cells = ops_json_walk(pair.bytes, pair.size);
			assert_true(ops_json_next_element(&cells, &figure) && ops_json_next_element(&cells, &text));
			assert_true(ops_json_parse_number(figure, &number));
			kinds[i].format(shown, number);
			assert_int_equal(strlen(shown), text.size - 2);
			assert_memory_equal(shown, text.bytes + 1, text.size - 2);
		}
	}
}

static void micro_is_two_bytes(void **state)
{
	char text[] = "µ 1.000 µs, 2 ms, 3 µs\xc2";

	(void)state;
	assert_int_equal(ops_field_width("1.000 µs", 10), 11);
	assert_int_equal(ops_field_width("1.000 µs", -10), -11);
	assert_int_equal(ops_field_width("1.000 ms", 10), 10);
	assert_int_equal(ops_format_ascii(text, strlen(text)), strlen(text) - 2);
	assert_memory_equal(text, "µ 1.000 us, 2 ms, 3 us\xc2", strlen("µ 1.000 us, 2 ms, 3 us\xc2"));
	assert_int_equal(ops_format_ascii(NULL, 0), 0);
}

static void assert_integer(uint64_t number, const char *expected)
{
	char text[OPS_FORMAT_ROOM];

	ops_format_integer(text, number);
	assert_string_equal(text, expected);
}

static void integers(void **state)
{
	(void)state;
	assert_integer(0, "0");
	assert_integer(999, "999");
	assert_integer(1000, "1,000");
	assert_integer(12345, "12,345");
	assert_integer(1234567, "1,234,567");
	assert_integer(UINT64_MAX, "18,446,744,073,709,551,615");
}

static void assert_memory(int64_t bytes, const char *expected)
{
	char text[OPS_FORMAT_ROOM];

	ops_format_memory(text, bytes);
	assert_string_equal(text, expected);
}

static void memory(void **state)
{
	(void)state;
	assert_memory(0, "0 B");
	assert_memory(1023, "1023 B");
	assert_memory(-1023, "-1023 B");
	assert_memory(1024, "1.00 KB");
	assert_memory(-1024, "-1.00 KB");
	assert_memory((1 << 20) - 1, "1024.00 KB");
	assert_memory(1 << 20, "1.00 MB");
	assert_memory(1 << 30, "1.00 GB");
	assert_memory(INT64_MIN, "-8589934592.00 GB");
}

static void assert_length(const char *bytes, size_t size, size_t expected)
{
	assert_int_equal(ops_text_length((struct ops_string){bytes, size}), expected);
	assert_int_equal(ops_text_prefix((struct ops_string){bytes, size}, expected).size, size);
	assert_int_equal(ops_text_prefix((struct ops_string){bytes, size}, expected + 1).size, size);
	assert_int_equal(ops_text_prefix((struct ops_string){bytes, size}, 0).size, 0);
}

static void lengths(void **state)
{
	(void)state;
	assert_length("", 0, 0);
	assert_length("a\0b\n", 4, 4);
	assert_length("\xc3\xa9\xf0\x9f\x98\x80", 6, 2);
	assert_length("\xed\xa0\x80\xed\xbf\xbf", 6, 2); /* surrogates */
	assert_length("\xff\xc3", 2, 2);
	assert_length("\xed\xa0", 2, 2);
	assert_length("\xc0\x80\xf8\x88", 4, 4);
	assert_int_equal(ops_text_prefix((struct ops_string){"a\xc3\xa9" "b", 4}, 2).size, 3);
}

int main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),
		cmocka_unit_test(examples),
		cmocka_unit_test(micro_is_two_bytes),
		cmocka_unit_test(integers),
		cmocka_unit_test(shares),
		cmocka_unit_test(memory),
		cmocka_unit_test(lengths),
	};

	if (count != 2)
		return 1;
	examples_path = arguments[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
