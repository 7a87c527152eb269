/* SPDX-License-Identifier: Apache-2.0
 *
 * base/buffer: appends of all kinds, sticky failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "failing.h"

static void write_some(struct ops_buffer *buffer)
{
	for (int i = 0; i < 100; i++) {
		ops_buffer_append(buffer, "a\0b", 3);
		ops_buffer_append_text(buffer, "text");
		ops_buffer_append_int(buffer, INT64_MIN);
		ops_buffer_append(buffer, NULL, 0);
		ops_buffer_printf(buffer, "<%s:%d>", "x", i);
	}
}

static void appends(void **state)
{
	static const char first[] = "a\0btext-9223372036854775808<x:0>a\0b";
	struct ops_buffer buffer = {0};

	(void)state;
	write_some(&buffer);
	assert_false(buffer.failed);
	assert_memory_equal(buffer.bytes, first, sizeof(first) - 1);
	assert_int_equal(buffer.size, 100 * (3 + 4 + 20 + 4) + 100 + 90);
	assert_memory_equal(buffer.bytes + buffer.size - 6, "<x:99>", 6);
	ops_buffer_release(&buffer);
	assert_null(buffer.bytes);
}

static void room_is_counted_by_the_caller(void **state)
{
	struct ops_buffer buffer = {0};
	char *room = ops_buffer_room(&buffer, 1000);

	(void)state;
	memset(room, 'x', 1000);
	assert_int_equal(buffer.size, 0);
	buffer.size += 2;
	ops_buffer_append_text(&buffer, "y");
	assert_memory_equal(buffer.bytes, "xxy", 3);
	ops_buffer_release(&buffer);
}

static void long_prints_are_complete(void **state)
{
	static char text[5000];
	struct ops_buffer buffer = {0};

	(void)state;
	memset(text, 'z', sizeof(text) - 1);
	ops_buffer_printf(&buffer, "%s.", text);
	assert_int_equal(buffer.size, sizeof(text));
	assert_int_equal(buffer.bytes[sizeof(text) - 1], '.');
	ops_buffer_release(&buffer);
}

static void write_failing(void *context)
{
	struct ops_buffer buffer = {0};

	(void)context;
	write_some(&buffer);
	if (buffer.failed) {
		size_t size = buffer.size;

		/* The failure stays although memory is there again. */
		ops_buffer_append_text(&buffer, "more");
		assert_int_equal(buffer.size, size);
		assert_null(ops_buffer_room(&buffer, 1));
	}
	ops_buffer_release(&buffer);
}

static void failure_is_sticky(void **state)
{
	(void)state;
	assert_true(fail_each(write_failing, NULL) >= 3);
}

static void absurd_sizes_fail(void **state)
{
	struct ops_buffer buffer = {0};

	(void)state;
	ops_buffer_append_text(&buffer, "x");
	assert_null(ops_buffer_room(&buffer, SIZE_MAX));
	assert_true(buffer.failed);
	ops_buffer_release(&buffer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends),
		cmocka_unit_test(room_is_counted_by_the_caller),
		cmocka_unit_test(long_prints_are_complete),
		cmocka_unit_test(failure_is_sticky),
		cmocka_unit_test(absurd_sizes_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
