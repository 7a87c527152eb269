/* SPDX-License-Identifier: Apache-2.0
 *
 * Waits of helper threads, in the derived model, in flame graphs and in the self time of lines.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <opstrobe/internal/lines.h>

#include "../analyze/scene.h"
#include "../analyze/views/view_scene.h"
#include "base/bits.h"
#include "base/text.h"
#include "derive/helper_waits.h"

#define STEP(tid, ts, dur) VIEW_ROW("user_annotation", "ProfilerStep#1", 7, tid, ts, dur, "")
#define FUNCTION(name, tid, ts, dur) VIEW_ROW("python_function", name, 7, tid, ts, dur, "\"Python id\":2")
#define OPERATOR(name, tid, ts, dur) VIEW_ROW("cpu_op", name, 7, tid, ts, dur, "")

/* A thread of a data loader waits for 900 us and copies for 50. */
#define HELPER(tid)                                                                                                     \
	FUNCTION("loader.py(3): pin", tid, 0, 990) FUNCTION("queue.py(154): Queue.get", tid, 5, 900)                    \
		FUNCTION("<built-in method acquire of _thread.lock object>", tid, 6, 890) OPERATOR("aten::pin_memory", tid, 910, 50)
/* The program waits for 400 us for what that thread makes. */
#define PROGRAM(tid) FUNCTION("train.py(9): train", tid, 0, 1000) FUNCTION("queue.py(154): Queue.get", tid, 10, 400)

static bool waits(const struct ops_trace *trace, const char *name, int64_t tid)
{
	const struct ops_events *events = ops_trace_events(trace);
	const struct ops_helper_waits *found = ops_helper_waits_of(trace);
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(trace, &count);

	assert_non_null(found);
	for (size_t row = 0; row < events->count; row++)
		if (tracks[events->track[row]].tid == tid && ops_string_is(ops_trace_string(trace, events->name[row]), name))
			return ops_bit(found->rows, row);
	fail_msg("no event '%s'", name);
	return false;
}

/* The wait of the thread with the step counts, and what the helper does other than wait. */
static void threads_without_steps_are_helpers(void **state)
{
	struct ops_trace *trace = scene_read(STEP(8, 0, 1000) PROGRAM(8) HELPER(9), "");

	(void)state;
	assert_false(waits(trace, "queue.py(154): Queue.get", 8));
	assert_true(waits(trace, "queue.py(154): Queue.get", 9));
	assert_true(waits(trace, "<built-in method acquire of _thread.lock object>", 9));
	assert_false(waits(trace, "loader.py(3): pin", 9));
	assert_false(waits(trace, "aten::pin_memory", 9));
	assert_int_equal(ops_helper_waits_of(trace)->count, 2);
	assert_false(ops_is_helper(ops_helper_waits_of(trace), trace, 8));
	assert_true(ops_is_helper(ops_helper_waits_of(trace), trace, 9));
	assert_true(ops_is_helper(ops_helper_waits_of(trace), trace, 10)); /* has no events */
	assert_false(ops_is_helper(ops_helper_waits_of(trace), trace, 7)); /* the main thread, which has no events */
	ops_trace_unref(trace);
}

/* Without steps the main thread is the program's; a trace without it does not say which threads help. */
static void without_steps_the_main_thread_counts(void **state)
{
	struct ops_trace *with_main = scene_read(PROGRAM(7) HELPER(9), ""), *without = scene_read(PROGRAM(8) HELPER(9), "");

	(void)state;
	assert_false(waits(with_main, "queue.py(154): Queue.get", 7));
	assert_true(waits(with_main, "queue.py(154): Queue.get", 9));
	assert_int_equal(ops_helper_waits_of(without)->count, 0);
	ops_trace_unref(with_main);
	ops_trace_unref(without);
}

static void expect_flame(struct ops_trace *trace, bool keep, const char *total, const char *left_out)
{
	struct ops_flame_choices choices = {.keep_waits = keep};
	struct ops_event_list events = {0};
	struct ops_flame *flame;
	struct ops_rows rows;
	char *text;
	size_t size;

	assert_int_equal(ops_event_list_init(&events, trace, false, NULL), OPS_OK);
	rows = ops_rows_of_events(&events);
	assert_int_equal(ops_flame_new(trace, NULL, &rows, &choices, &flame, NULL), OPS_OK);
	assert_int_equal(ops_flame_json(flame, OPS_STACKS_SELF_CPU, 0, &text, &size, NULL), OPS_OK);
	assert_non_null(strstr(text, total));
	assert_non_null(strstr(text, left_out));
	assert_true(!strstr(text, "acquire") == !keep);
	ops_free(text);
	ops_flame_free(flame);
	ops_event_list_release(&events);
}

/* 1000 us of the step's thread, and 990 of the helper, of which it waits for 900. */
static void flame_graphs_leave_them_out(void **state)
{
	struct ops_trace *trace = scene_read(STEP(8, 0, 1000) PROGRAM(8) HELPER(9), "");

	(void)state;
	expect_flame(trace, false, "\"total_ns\":1090000", "\"waits_ns\":900000");
	expect_flame(trace, true, "\"total_ns\":1990000", "\"waits_ns\":0");
	ops_trace_unref(trace);
}

static void lines_have_no_such_self_time(void **state)
{
	struct ops_trace *trace = scene_read(STEP(8, 0, 1000) PROGRAM(8) HELPER(9), "");
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_lines(trace, OPS_FORMAT_JSON, 0, 0, &text, &size, NULL), OPS_OK);
	assert_non_null(strstr(text, "\"waits_us\":900"));
	assert_non_null(strstr(text, "\"self_us\":90,")); /* loader.py */
	ops_free(text);
	assert_int_equal(ops_lines(trace, OPS_FORMAT_TEXT, 0, 0, &text, &size, NULL), OPS_OK);
	assert_non_null(strstr(text, "Self time does not include 900"));
	assert_non_null(strstr(text, " in which helper threads wait."));
	ops_free(text);
	ops_trace_unref(trace);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_without_steps_are_helpers),
		cmocka_unit_test(without_steps_the_main_thread_counts),
		cmocka_unit_test(flame_graphs_leave_them_out),
		cmocka_unit_test(lines_have_no_such_self_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
