/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces that nobody would write: they are read, or rejected with a reason, and inspected, in time nearly linear in their size; a
 * limit on CPU time checks this.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <cmocka.h>

#include <opstrobe/read.h>

#include "base/buffer.h"
#include "look_at.h"

#define TIMES 100000

static struct ops_trace *read_rows(struct ops_buffer *rows)
{
	struct ops_trace *trace = NULL;
	struct ops_error error = {0};

	assert_false(rows->failed);
	if (ops_trace_read_memory(rows->bytes, rows->size, NULL, &trace, &error))
		fail_msg("%s", error.text);
	assert_int_equal(ops_trace_check(trace, &error), OPS_OK);
	ops_buffer_release(rows);
	return trace;
}

static void expect(int holds, const char *what)
{
	if (!holds)
		fail_msg("%s", what);
}

static void look_at_and_free(struct ops_trace *trace)
{
	read_everything(trace, expect);
	ops_trace_unref(trace);
}

#define ROW "{\"ph\":\"X\",\"cat\":\"%s\",\"name\":\"n\",\"pid\":%d,\"tid\":%d,\"ts\":%d,\"dur\":5,\"args\":{%s}},\n"

static void many_threads(void **state)
{
	struct ops_buffer rows = {0};
	struct ops_trace *trace;
	size_t count;

	(void)state;
	ops_buffer_append_text(&rows, "[");
	for (int i = 0; i < TIMES; i++)
		ops_buffer_printf(&rows, ROW, "cpu_op", 1, i, i % 7, "");
	trace = read_rows(&rows);
	ops_trace_tracks(trace, &count);
	assert_int_equal(count, TIMES);
	look_at_and_free(trace);
}

static void many_devices(void **state)
{
	struct ops_buffer rows = {0};
	struct ops_trace *trace;

	(void)state;
	ops_buffer_append_text(&rows, "[");
	for (int i = 0; i < 1000; i++) {
		char args[64];

		snprintf(args, sizeof(args), "\"device\":%d,\"correlation\":%d", i, i);
		ops_buffer_printf(&rows, ROW, "kernel", i, 7, i, args);
	}
	trace = read_rows(&rows);
	assert_int_equal(ops_trace_events(trace)->count, 1000);
	look_at_and_free(trace);
}

/* Ids that all events share name nobody in particular. */
static void ids_of_everybody(void **state)
{
	struct ops_buffer rows = {0};
	struct ops_trace *trace;

	(void)state;
	ops_buffer_append_text(&rows, "[");
	for (int i = 0; i < TIMES; i++) {
		ops_buffer_printf(&rows, ROW, "cpu_op", 1, 1, 10 * i, "\"External id\":7,\"Sequence number\":3");
		ops_buffer_printf(&rows, ROW, "cuda_runtime", 1, 1, 10 * i + 1, "\"External id\":7,\"correlation\":7");
		ops_buffer_printf(&rows, ROW, "kernel", 0, 7, 10 * i + 2, "\"External id\":7,\"correlation\":7");
		ops_buffer_printf(&rows, ROW, "python_function", 1, 1, 10 * i + 6, "\"Python id\":1,\"Python parent id\":1,"
		                                                                  "\"Python module id\":0");
	}
	trace = read_rows(&rows);
	assert_int_equal(ops_trace_events(trace)->count, 4 * TIMES);
	look_at_and_free(trace);
}

/* Arrows in a ring, from later to earlier, and onto themselves. */
static void arrows_in_rings(void **state)
{
	struct ops_buffer rows = {0};

	(void)state;
	ops_buffer_append_text(&rows, "[");
	for (int i = 0; i < TIMES; i++) {
		ops_buffer_printf(&rows, ROW, "cpu_op", 1, 1 + i % 3, 10 * i, "");
		ops_buffer_printf(&rows, "{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"a\",\"id\":%d,\"pid\":1,\"tid\":%d,\"ts\":%d},\n",
		                  i % 100, 1 + i % 3, 10 * i);
		ops_buffer_printf(&rows, "{\"ph\":\"f\",\"cat\":\"fwdbwd\",\"name\":\"a\",\"id\":%d,\"pid\":1,\"tid\":%d,\"ts\":%d,"
		                         "\"bp\":\"e\"},\n",
		                  (i + 1) % 100, 1 + (i + 1) % 3, 10 * (TIMES - i));
	}
	look_at_and_free(read_rows(&rows));
}

static void numbers_beyond_all_bounds(void **state)
{
	static const char *const numbers[] = {"1e308", "-1e308", "1e999", "9223372036854775807", "-9223372036854775808",
	                                      "99999999999999999999999999", "0.0000000000000000000001", "NaN", "-Infinity",
	                                      "null", "\"1\"", "\"x\"", "[1]", "{}", "true", "-0", "1e-400"};
	size_t count = sizeof(numbers) / sizeof(numbers[0]);
	struct ops_buffer rows = {0};

	(void)state;
	ops_buffer_append_text(&rows, "{\"baseTimeNanoseconds\":9223372036854775807,\"traceEvents\":[");
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < count; k++)
			ops_buffer_printf(&rows,
			                  "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"n\",\"pid\":%s,\"tid\":%s,\"ts\":%s,\"dur\":%s,"
			                  "\"args\":{\"External id\":%s,\"correlation\":%s,\"Sequence number\":%s,\"stream\":%s}},\n"
			                  "{\"ph\":\"i\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%s,\"args\":{\"Bytes\":%s,"
			                  "\"Addr\":%s,\"Device Type\":%s,\"Device Id\":%s,\"Total Allocated\":%s}},\n"
			                  "{\"ph\":\"C\",\"name\":\"c\",\"pid\":1,\"ts\":%s,\"args\":{\"value\":%s}},\n",
			                  numbers[k], numbers[i], numbers[i], numbers[k], numbers[k], numbers[i], numbers[k],
			                  numbers[i], numbers[i], numbers[k], numbers[k], numbers[i], numbers[k], numbers[i],
			                  numbers[k], numbers[i]);
	ops_buffer_append_text(&rows, "]}");
	look_at_and_free(read_rows(&rows));
}

/* A million brackets are refused, or skipped, and never climbed into. */
static void nesting_without_end(void **state)
{
	static const char *const begins[] = {"", "[", "{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"n\",\"ts\":1,\"dur\":1,\"args\":"};
	static const char *const brackets[] = {"[", "{\"a\":"};

	(void)state;
	for (size_t b = 0; b < 3; b++)
		for (size_t k = 0; k < 2; k++) {
			struct ops_buffer text = {0};
			struct ops_trace *trace = NULL;
			struct ops_error error;

			ops_buffer_append_text(&text, begins[b]);
			for (int i = 0; i < 1000000; i++)
				ops_buffer_append_text(&text, brackets[k]);
			assert_false(text.failed);
			if (ops_trace_read_memory(text.bytes, text.size, NULL, &trace, &error) == OPS_OK)
				look_at_and_free(trace);
			else
				assert_int_equal(error.code, OPS_CORRUPT);
			ops_buffer_release(&text);
		}
}

static void assert_refused(struct ops_buffer *text, const char *message)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;

	assert_false(text->failed);
	assert_int_equal(ops_trace_read_memory(text->bytes, text->size, NULL, &trace, &error), OPS_CORRUPT);
	assert_string_equal(error.text, message);
	ops_buffer_release(text);
}

/* A million counters, and as many strings: theirs. */
static void a_million_counters(void **state)
{
	struct ops_buffer rows = {0};
	struct ops_trace *trace;
	size_t count;

	(void)state;
	ops_buffer_append_text(&rows, "[");
	for (int i = 0; i < 1000000; i++)
		ops_buffer_printf(&rows, "{\"ph\":\"C\",\"name\":\"counter %d\",\"pid\":1,\"ts\":%d,\"args\":{\"value\":%d}},\n", i, i, i);
	trace = read_rows(&rows);
	ops_trace_counters(trace, &count);
	assert_int_equal(count, 1000000);
	look_at_and_free(trace);
}

/* Every event has a different name, category and arguments. */
static void texts_of_nobody_else(void **state)
{
	struct ops_buffer rows = {0};
	struct ops_trace *trace;

	(void)state;
	ops_buffer_append_text(&rows, "[");
	for (int i = 0; i < 300000; i++)
		ops_buffer_printf(&rows,
		                  "{\"ph\":\"X\",\"cat\":\"cat %d\",\"name\":\"name %d\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":1,"
		                  "\"args\":{\"key %d\":\"value %d\",\"Input Dims\":[[%d]],\"Input type\":[\"type %d\"]}},\n",
		                  i, i, i, i, i, i, i);
	trace = read_rows(&rows);
	assert_int_equal(ops_trace_events(trace)->count, 300000);
	look_at_and_free(trace);
}

static void a_million_arguments(void **state)
{
	struct ops_buffer text = {0};

	(void)state;
	ops_buffer_append_text(&text, "[{\"ph\":\"X\",\"name\":\"n\",\"ts\":1,\"dur\":1,\"args\":{");
	for (int i = 0; i < 1000000; i++)
		ops_buffer_printf(&text, "\"%d\":%d,", i, i);
	ops_buffer_append_text(&text, "\"z\":0}}]");
	assert_refused(&text, "cannot read trace: byte 10113: an object with too many members");

	/* As many in one argument are read. */
	ops_buffer_append_text(&text, "[{\"ph\":\"X\",\"name\":\"n\",\"ts\":1,\"dur\":1,\"args\":{\"Input Dims\":[");
	for (int i = 0; i < 1000000; i++)
		ops_buffer_printf(&text, "[%d],", i);
	ops_buffer_append_text(&text, "[0]]}}]");
	look_at_and_free(read_rows(&text));
}

/* A bracket or a quote that is missing is seen where it is missing, and not at the end of the file. */
static void what_is_missing_in_a_value(void **state)
{
	static const struct {
		const char *value;
		size_t at;
		const char *message;
	} damaged[] = {
		{"[[8,8],[8,8]", 12, "the bracket does not match"},
		{"[8,8],[8,8]]", 6, "expected a name in quotes"},
		{"[{8,8],[8,8]]", 5, "the bracket does not match"},
		{"[[8,8],[\"8,8]]", 20, "expected ',' or a closing bracket"},
		{"[[8,8],[8\",8]]", 20, "expected ',' or a closing bracket"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(damaged) / sizeof(damaged[0]); i++) {
		struct ops_buffer text = {0};
		char message[100];

		ops_buffer_append_text(&text, "[{\"ph\":\"X\",\"name\":\"n\",\"ts\":1,\"dur\":1,\"args\":{\"Input Dims\":");
		snprintf(message, sizeof(message), "cannot read trace: byte %zu: %s", text.size + damaged[i].at, damaged[i].message);
		ops_buffer_printf(&text, "%s}},\n", damaged[i].value);
		for (int k = 0; k < 1000; k++)
			ops_buffer_printf(&text, ROW, "cpu_op", 1, 1, k, "\"Input Dims\":[[8,8]],\"Input type\":[\"float\"]");
		ops_buffer_append_text(&text, "]");
		assert_refused(&text, message);
	}
}

/* Where the list's name is damaged, it is known by its first event, and not kept as metadata. */
static void events_by_another_name(void **state)
{
	struct ops_buffer text = {0};
	struct ops_trace *trace;
	const struct ops_note *notes;
	size_t count, noted = 0;

	(void)state;
	ops_buffer_append_text(&text, "{\"schemaVersion\":1,\"traceEventz\": [\n  ");
	for (int i = 0; i < 10000; i++)
		ops_buffer_printf(&text, ROW, "cpu_op", 1, 1, i, "");
	ops_buffer_append_text(&text, "{\"ph\":\"?\"}], \"other\":[{\"ph\":1}]}");
	trace = read_rows(&text);
	assert_int_equal(ops_trace_events(trace)->count, 10000);
	notes = ops_trace_notes(trace, &count);
	for (size_t i = 0; i < count; i++)
		noted += notes[i].kind == OPS_NOTE_BAD_METADATA;
	assert_int_equal(noted, 1);
	ops_trace_unref(trace);
	ops_buffer_append_text(&text, "{\"traceEvents\":{{\"ph\":\"X\"}]}");
	assert_refused(&text, "cannot read trace: byte 15: traceEvents is not a list");
}

/* Steps by names that are none. */
static void steps_with_odd_names(void **state)
{
	static const char *const names[] = {"ProfilerStep#", "ProfilerStep#-1", "ProfilerStep#99999999999999999999999",
	                                    "ProfilerStep#1x", "ProfilerStep# 1", "ProfilerStep*", "ProfilerStep#1"};
	struct ops_buffer rows = {0};

	(void)state;
	ops_buffer_append_text(&rows, "[");
	for (int i = 0; i < 700; i++)
		ops_buffer_printf(&rows, "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"%s\",\"pid\":1,\"tid\":1,\"ts\":%d,"
		                         "\"dur\":%d},\n", names[i % 7], i * 10, i % 3 ? 10 : 25);
	look_at_and_free(read_rows(&rows));
}

int main(void)
{
	/* What grows with the square of a size takes more than this of the processor's time, by far; the whole takes seconds. */
	const struct itimerval limit = {.it_value.tv_sec = 300};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads),
		cmocka_unit_test(many_devices),
		cmocka_unit_test(ids_of_everybody),
		cmocka_unit_test(arrows_in_rings),
		cmocka_unit_test(numbers_beyond_all_bounds),
		cmocka_unit_test(nesting_without_end),
		cmocka_unit_test(a_million_counters),
		cmocka_unit_test(texts_of_nobody_else),
		cmocka_unit_test(a_million_arguments),
		cmocka_unit_test(what_is_missing_in_a_value),
		cmocka_unit_test(events_by_another_name),
		cmocka_unit_test(steps_with_odd_names),
	};

	setitimer(ITIMER_PROF, &limit, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
