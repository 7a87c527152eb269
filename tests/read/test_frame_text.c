/* SPDX-License-Identifier: Apache-2.0
 *
 * Stack frames as text, and which of them is a line of the program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/trace.h>

#include "base/text.h"
#include "read/frame_text.h"

static void frames_are_written(void **state)
{
	static const struct {
		const char *file;
		uint32_t line;
		const char *name;
		const char *expected;
	} frames[] = {
		{"model.py", 12, "forward", "model.py(12): forward"},
		{"<frozen runpy>", 198, "_run", "<frozen runpy>(198): _run"},
		{"allocator.cpp", 7, "malloc(int; x)", "malloc(int, x) [allocator.cpp:7]"},
		{"??", 0, "c10d::all_reduce", "c10d::all_reduce"},
		{"", 0, "_start", "_start"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
		struct ops_buffer text = {0};

		ops_put_frame(&text, ops_string_of(frames[i].file), frames[i].line, ops_string_of(frames[i].name));
		assert_int_equal(text.size, strlen(frames[i].expected));
		assert_memory_equal(text.bytes, frames[i].expected, text.size);
		ops_buffer_release(&text);
	}
}

/* The first line of the program is that of the first Python frame, whatever native ones are inside it. */
static void native_frames_are_not_lines(void **state)
{
	struct ops_buffer text = {0};
	struct ops_string file;
	uint32_t line;

	(void)state;
	ops_put_frame(&text, ops_string_of("??"), 0, ops_string_of("c10d::all_reduce"));
	ops_buffer_append_text(&text, ";");
	ops_put_frame(&text, ops_string_of("ProcessGroup.cpp"), 90, ops_string_of("launch"));
	ops_buffer_append_text(&text, ";");
	ops_put_frame(&text, ops_string_of("train.py"), 8, ops_string_of("step"));
	file = ops_stack_line((struct ops_string){text.bytes, text.size}, &line);
	assert_true(ops_string_is(file, "train.py"));
	assert_int_equal(line, 8);
	ops_buffer_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_written),
		cmocka_unit_test(native_frames_are_not_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
