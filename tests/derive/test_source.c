/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of loops and searches in the source of a program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/read.h>

#include "base/text.h"
#include "derive/source.h"

static struct ops_source read_source(const char *json, struct ops_trace **ret_trace)
{
	struct ops_source source;

	assert_int_equal(ops_trace_read_memory(json, strlen(json), NULL, ret_trace, NULL), OPS_OK);
	assert_true(ops_source_read(&source, *ret_trace));
	return source;
}

static void finds_lines(void **state)
{
	static const char json[] = "{\"source\": {\"/a.py\": {\"loops\": [[3, 20], [5, 9], [12, 12]], \"searches\": [[1, 7], [30, 31], [30, 33]]}}, "
				   "\"traceEvents\": []}";
	struct ops_string file = ops_string_of("/a.py");
	struct ops_trace *trace;
	struct ops_source source = read_source(json, &trace);

	(void)state;
	assert_int_equal(ops_source_loop(&source, file, 7), 5);
	assert_int_equal(ops_source_loop(&source, file, 5), 3);
	assert_int_equal(ops_source_loop(&source, file, 10), 3);
	assert_int_equal(ops_source_loop(&source, file, 21), 0);
	assert_int_equal(ops_source_loop(&source, ops_string_of("/b.py"), 7), 0);
	assert_int_equal(ops_source_search(&source, file, 1), 7);
	assert_int_equal(ops_source_search(&source, file, 2), 0);
	assert_int_equal(ops_source_search(&source, file, 30), 0); /* several */
	ops_source_release(&source);
	ops_trace_unref(trace);
}

static void leaves_out_what_is_no_pair_of_lines(void **state)
{
	static const char *const texts[] = {"1", "[]", "{\"/a.py\": 3}", "{\"/a.py\": {\"loops\": [[1], [0, 2], [\"x\", 2], 7, [1, 99999999999]]}}"};
	char json[256];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct ops_trace *trace;
		struct ops_source source;

		snprintf(json, sizeof(json), "{\"source\": %s, \"traceEvents\": []}", texts[i]);
		source = read_source(json, &trace);
		assert_int_equal(source.list.count, 0);
		ops_source_release(&source);
		ops_trace_unref(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_lines),
		cmocka_unit_test(leaves_out_what_is_no_pair_of_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
