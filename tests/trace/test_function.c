/* SPDX-License-Identifier: Apache-2.0
 *
 * Python calls in a trace: their functions, callers and lines, after packing and merging as well.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <opstrobe/internal/pack.h>
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>

#include "../read/compare.h"
#include "base/alloc.h"
#include "calls.h"
#include "trace/table.h"

static struct ops_trace *calls_trace(void)
{
	struct ops_trace *trace = NULL;

	assert_int_equal(ops_builder_finish(calls_builder(), &trace, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(trace, NULL), OPS_OK);
	return trace;
}

static void assert_text(struct ops_string text, const char *expected)
{
	assert_int_equal(text.size, strlen(expected));
	assert_memory_equal(text.bytes, expected, text.size);
}

/* --- names ---------------------------------------------------------------------------------------------------------- */

static void assert_parsed(const char *name, const char *file, uint32_t line, const char *function)
{
	struct ops_function_text text;

	assert_true(ops_function_parse((struct ops_string){name, strlen(name)}, &text));
	assert_text(text.file, file);
	assert_text(text.name, function);
	assert_int_equal(text.line, line);
}

static void names_are_taken_apart(void **state)
{
	static const char *const others[] = {
		"", "f", "): ", "a(): f", "a(b): f", "a3): f", "nn.Module: Linear_0", "Python GC",
		"<built-in function len>", "a(1234567890): f",
	};
	struct ops_function_text text;

	(void)state;
	assert_parsed("a.py(3): f", "a.py", 3, "f");
	assert_parsed("<string>(0): <module>", "<string>", 0, "<module>");
	assert_parsed("dir(1): x/a.py(12): Outer.<locals>.f", "dir(1): x/a.py", 12, "Outer.<locals>.f");
	assert_parsed("(3)(4): f", "(3)", 4, "f");
	assert_parsed("a(3): ", "a", 3, "");
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_false(ops_function_parse((struct ops_string){others[i], strlen(others[i])}, &text));
}

/* Inside of the range of line 5, line 6 was reached. */
static void lines_are_not_those_of_ranges(void **state)
{
	static const uint32_t lines[] = {3, 5, 6, 6};
	struct ops_trace *trace = calls_trace();

	(void)state;
	for (uint32_t row = 0; row < 4; row++) {
		uint32_t line;

		assert_text(ops_event_line(trace, row, &line), "/src/a \"b\"(1).py");
		assert_int_equal(line, lines[row]);
	}
	ops_trace_unref(trace);
}

static void rows_have_function_and_caller(void **state)
{
	static const uint32_t callers[] = {OPS_NONE, 0, 0, 0, 0, 4};
	struct ops_trace *trace = calls_trace();
	struct ops_function_text text;

	(void)state;
	assert_true(ops_event_function(trace, 0, &text));
	assert_text(text.name, "main");
	assert_text(text.file, "/src/a \"b\"(1).py");
	assert_int_equal(text.line, 3);
	assert_false(ops_event_function(trace, 3, &text));
	assert_false(ops_event_function(trace, 5, &text));
	for (uint32_t row = 0; row < 6; row++)
		assert_int_equal(ops_event_caller(trace, row), callers[row]);
	trace->events.function = NULL; /* then the names decide */
	assert_true(ops_event_function(trace, 0, &text));
	assert_text(text.file, "a \"b\"(1).py");
	assert_false(ops_event_function(trace, 2, &text));
	ops_trace_unref(trace);
}

/* --- the table ------------------------------------------------------------------------------------------------------ */

static void equal_functions_are_one(void **state)
{
	struct ops_builder *b = calls_builder();
	struct ops_trace *trace;
	size_t count;

	(void)state;
	assert_int_equal(ops_builder_function(b, &(struct ops_function){calls_string(b, "<built-in function len>"), 0, 0}), 1);
	assert_int_equal(ops_builder_function(b, &(struct ops_function){calls_string(b, "<built-in function len>"), 0, 1}), 3);
	assert_int_equal(ops_builder_finish(b, &trace, NULL), OPS_OK);
	ops_trace_functions(trace, &count);
	assert_int_equal(count, 4);
	ops_trace_unref(trace);
}

static void check_finds_bad_functions(void **state)
{
	struct ops_trace *trace = calls_trace();
	struct ops_error error;

	(void)state;
	trace->columns.function[0] = 3;
	assert_int_equal(ops_trace_check(trace, &error), OPS_CORRUPT);
	assert_string_equal(error.text, "event 0: function is not one of the trace");
	trace->columns.function[0] = 0;
	trace->columns.function[1] = 0;
	assert_int_equal(ops_trace_check(trace, &error), OPS_CORRUPT);
	assert_string_equal(error.text, "event 1: has a function but is not a Python call");
	trace->columns.function[1] = OPS_NONE;
	trace->functions.items[1].file = OPS_NONE;
	assert_int_equal(ops_trace_check(trace, &error), OPS_CORRUPT);
	assert_string_equal(error.text, "function 1: name or file is not a string of the trace");
	ops_trace_unref(trace);
}

/* --- packing and merging -------------------------------------------------------------------------------------------- */

static void packed_and_back(void **state)
{
	struct ops_trace *trace = calls_trace(), *again = NULL;
	char *bytes;
	size_t size;

	(void)state;
	assert_int_equal(ops_trace_pack(trace, &bytes, &size, NULL), OPS_OK);
	assert_int_equal(ops_trace_unpack(bytes, size, &again, NULL), OPS_OK);
	assert_same_trace(trace, again);
	ops_free(bytes);
	ops_trace_unref(again);
	ops_trace_unref(trace);
}

static void merged_ids_stay_apart(void **state)
{
	struct ops_trace *trace = calls_trace(), *merged = NULL;
	struct ops_trace_part parts[] = {{.trace = trace, .whole = true}, {.trace = trace, .whole = true}};
	const struct ops_events *e;
	bool seen[9] = {false};
	size_t count;

	(void)state;
	assert_int_equal(ops_trace_merge(parts, 2, NULL, &merged, NULL), OPS_OK);
	assert_int_equal(ops_trace_check(merged, NULL), OPS_OK);
	ops_trace_functions(merged, &count);
	assert_int_equal(count, 3);
	e = ops_trace_events(merged);
	for (uint32_t row = 0; row < e->count; row++) {
		uint32_t id = e->python_id[row];

		if (id == OPS_NONE)
			continue;
		assert_in_range(id, 1, 8);
		assert_false(seen[id]);
		seen[id] = true;
		if (e->python_parent[row] != OPS_NONE)
			assert_int_equal((e->python_parent[row] - 1) / 4, (id - 1) / 4);
	}
	ops_trace_unref(merged);
	ops_trace_unref(trace);
}

static void out_of_memory(void **state)
{
	bool done = false;

	(void)state;
	for (uint64_t nth = 1; !done; nth++) {
		struct ops_builder *b;
		struct ops_trace *trace = NULL;
		enum ops_code code = OPS_NO_MEMORY;

		ops_alloc_fail_at(nth, false);
		b = calls_builder();
		if (b)
			code = ops_builder_finish(b, &trace, NULL);
		done = ops_alloc_count() < nth;
		ops_alloc_fail_at(0, false);
		assert_true(code == OPS_OK || (code == OPS_NO_MEMORY && !trace && !done));
		ops_trace_unref(trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_taken_apart),
		cmocka_unit_test(lines_are_not_those_of_ranges),
		cmocka_unit_test(rows_have_function_and_caller),
		cmocka_unit_test(equal_functions_are_one),
		cmocka_unit_test(check_finds_bad_functions),
		cmocka_unit_test(packed_and_back),
		cmocka_unit_test(merged_ids_stay_apart),
		cmocka_unit_test(out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
