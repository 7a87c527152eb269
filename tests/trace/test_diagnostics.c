/* SPDX-License-Identifier: Apache-2.0
 *
 * Diagnostics of a trace, and their member in JSON.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>
#include <opstrobe/read.h>
#include <opstrobe/write.h>

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
	assert_int_equal(ops_buffer_detach(&buffer, OPS_OK, &made, &size, NULL), OPS_OK);
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

static void test_repairs_are_not_diagnostics(void **state)
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

/* Writes the trace to a file and reads it back. */
static struct ops_trace *write_and_read(const struct ops_trace *trace)
{
	char path[] = "/tmp/opstrobe-diagnostics-XXXXXX";
	int file = mkstemp(path);
	struct ops_trace *again = NULL;
	struct ops_error error;

	assert_true(file >= 0);
	close(file);
	assert_int_equal(ops_write_chrome_json(trace, path, NULL, &error), OPS_OK);
	assert_int_equal(ops_trace_read(path, NULL, &again, &error), OPS_OK);
	unlink(path);
	return again;
}

static void assert_ends_early(const struct ops_trace *trace, uint64_t count, uint64_t byte)
{
	struct ops_diagnostic items[OPS_DIAGNOSTICS_MAX];
	size_t notes;

	ops_trace_notes(trace, &notes);
	assert_int_equal(notes, 2);
	assert_false(ops_trace_is_complete(trace));
	assert_int_equal(ops_trace_diagnostics(trace, "x.json", items), 2);
	assert_string_equal(items[0].kind, "truncated");
	assert_int_equal(items[0].count, count);
	assert_int_equal(items[0].byte, byte);
	assert_string_equal(items[1].kind, "unmatched_begin");
	assert_int_equal(items[1].count, count);
}

/* A part of it, a copy, and a whole with it are as wrong; the comma too many is in none of them. */
static void test_what_is_made_of_a_trace_has_its_diagnostics(void **state)
{
	static const char damaged[] =
		"{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 1},, "
		"{\"ph\": \"B\", \"name\": \"b\", \"pid\": 1, \"tid\": 1, \"ts\": 3}, {\"ph\": ";
	struct ops_trace *trace = read_text(damaged), *copy = write_and_read(trace), *part, *pair, *again;
	const struct ops_trace_part parts[] = {{.trace = copy, .whole = true}, {.trace = trace, .whole = true}};

	(void)state;
	assert_ends_early(copy, 1, sizeof(damaged) - 1);
	assert_int_equal(ops_trace_select(trace, 0, &part, NULL), OPS_OK);
	assert_ends_early(part, 1, sizeof(damaged) - 1);
	assert_int_equal(ops_trace_merge(parts, 2, NULL, &pair, NULL), OPS_OK);
	again = write_and_read(pair);
	assert_ends_early(again, 2, sizeof(damaged) - 1);
	ops_trace_unref(again);
	ops_trace_unref(pair);
	ops_trace_unref(part);
	ops_trace_unref(copy);
	ops_trace_unref(trace);
}

static void test_notes_that_say_nothing(void **state)
{
	static const char *const lists[] = {"[[]]", "[[\"truncated\"]]", "[[\"truncated\",0,1]]", "[[\"truncated\",1,-1]]", "[3]",
	                                    "[[\"comma\",1,1]]", "[[\"\",1,1]]"};

	(void)state;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		struct ops_diagnostic items[OPS_DIAGNOSTICS_MAX];
		struct ops_trace *trace;
		char text[128];
		size_t notes;

		snprintf(text, sizeof(text), "{\"opstrobe\": {\"notes\": %s}, \"traceEvents\": []}", lists[i]);
		trace = read_text(text);
		assert_int_equal(ops_trace_notes(trace, &notes)->kind, OPS_NOTE_BAD_METADATA);
		assert_int_equal(notes, 1);
		assert_int_equal(ops_trace_diagnostics(trace, "x.json", items), 0);
		ops_trace_unref(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_file_that_ends_early),
		cmocka_unit_test(test_lost_records),
		cmocka_unit_test(test_repairs_are_not_diagnostics),
		cmocka_unit_test(test_what_is_made_of_a_trace_has_its_diagnostics),
		cmocka_unit_test(test_notes_that_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
