/* SPDX-License-Identifier: Apache-2.0
 *
 * Diagnostics of a trace, and the member that JSON gets of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/read.h>

#include "base/alloc.h"
#include "base/buffer.h"

static struct ops_trace *read_text(const char *text)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	assert_int_equal(ops_trace_read_memory(text, strlen(text), NULL, &trace, &error), OPS_OK);
	return trace;
}

static void assert_added(const struct ops_diagnostic *items, size_t count, const char *text, const char *expected)
{
	struct ops_buffer buffer = {0};
	size_t size;
	char *made;

	ops_buffer_append_text(&buffer, text);
	assert_int_equal(ops_buffer_give(&buffer, OPS_OK, &made, &size, NULL), OPS_OK);
	assert_int_equal(ops_diagnostics_add(items, count, &made, &size, NULL), OPS_OK);
	assert_string_equal(made, expected);
	assert_int_equal(size, strlen(expected));
	ops_free(made);
}

static void test_a_file_that_ends_early(void **state)
{
	struct ops_trace *trace = read_text("{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": 1, "
	                                    "\"dur\": 1}, {\"ph\": ");
	struct ops_diagnostic items[OPS_DIAGNOSTICS_MAX];

	(void)state;
	assert_false(ops_trace_is_complete(trace));
	assert_int_equal(ops_trace_diagnostics(trace, "x.json", items), 1);
	assert_string_equal(items[0].kind, "truncated");
	items[0].byte = 7;
	assert_added(items, 1, "{\"a\":1}\n", "{\"a\":1,\"diagnostics\":[{\"source\":\"x.json\",\"kind\":\"truncated\",\"message\":"
	                                      "\"the text ends early; what came before is read\",\"count\":1,\"byte\":7}]}\n");
	assert_added(items, 1, "{}", "{\"diagnostics\":[{\"source\":\"x.json\",\"kind\":\"truncated\",\"message\":"
	                             "\"the text ends early; what came before is read\",\"count\":1,\"byte\":7}]}");
	assert_added(items, 1, "[1]", "[1]");
	assert_added(items, 0, "{\"a\":1}", "{\"a\":1}");
	ops_trace_unref(trace);
}

static void test_lost_records(void **state)
{
	struct ops_trace *trace = read_text("{\"opstrobe\": {\"lost\": 3}, \"traceEvents\": []}");
	struct ops_diagnostic items[OPS_DIAGNOSTICS_MAX];

	(void)state;
	assert_false(ops_trace_is_complete(trace));
	assert_int_equal(ops_trace_diagnostics(trace, "x.json", items), 1);
	assert_string_equal(items[0].kind, "lost");
	assert_int_equal(items[0].count, 3);
	ops_trace_unref(trace);
}

static void test_what_is_repaired_is_no_diagnostic(void **state)
{
	struct ops_trace *trace = read_text("{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": 1, "
	                                    "\"dur\": 1},]}");
	struct ops_diagnostic items[OPS_DIAGNOSTICS_MAX];
	size_t notes;

	(void)state;
	ops_trace_notes(trace, &notes);
	assert_int_equal(notes, 1);
	assert_true(ops_trace_is_complete(trace));
	assert_int_equal(ops_trace_diagnostics(trace, "x.json", items), 0);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_ends_early),
		cmocka_unit_test(test_lost_records),
		cmocka_unit_test(test_what_is_repaired_is_no_diagnostic),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
