/* SPDX-License-Identifier: Apache-2.0
 *
 * Comparison of steps: median, percentile, slow steps and their causes, waiting for a CPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "view_scene.h"

#define STEPS 10

/* Ten steps of 100 us, each with an operator of 40 us; step 4 takes 300 us, and has `more` at its 100th microsecond. */
static const char *ten_steps(const char *more)
{
	static char rows[16384];
	int size = 0, at = 0;

	for (int i = 0; i < STEPS; i++) {
		int length = i == 4 ? 300 : 100 + i % 3;

		size += snprintf(rows + size, sizeof(rows) - (size_t)size,
		                 "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d},"
		                 "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":40},",
		                 i, at, length, at + 10);
		at += length;
	}
	snprintf(rows + size, sizeof(rows) - (size_t)size, "%s", more);
	return rows;
}
#define AT 501 /* the 100th microsecond of step 4 */

static char *text_of(const char *rows, const char *metadata, unsigned look)
{
	struct ops_trace *trace = scene_read(rows, metadata);
	char *text;
	size_t size;

	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, look, &text, &size, NULL), OPS_OK);
	ops_trace_unref(trace);
	return text;
}

static void steps_have_a_median(void **state)
{
	char *text = scene_views(ten_steps(""), "");

	(void)state;
	assert_has(text, "\"median\":101,\"p95\":210.");
	assert_has(text, "\"outlier_count\":1,\"outliers\":[{\"name\":\"4\",\"total\":300,\"over_median\":199,");
	ops_free(text);
	text = text_of(ten_steps(""), "", 0);
	assert_has(text, "10 steps: median 101 µs, mean 121 µs, p95 211 µs\nfrom 100 µs to 300 µs\n");
	assert_has(text, "slow step 4         more    here  usually\ntime              199 µs  300 µs   101 µs\n");
	ops_free(text);
	text = scene_views("", "");
	assert_has(text, "\"median\":null,\"p95\":null,\"outlier_count\":0,\"outliers\":[],\"waited_for_cpu\":null");
	ops_free(text);
}

static void expect_cause(const char *more, const char *cause)
{
	char *text = scene_views(ten_steps(more), "");

	assert_has(text, cause);
	ops_free(text);
}

/* What a slow step has more of, the most important first. */
static void slow_steps_are_explained(void **state)
{
	char rows[4096];
	int size = 0;

	(void)state;
	expect_cause("", "\"causes\":[{\"what\":\"other\",\"title\":\"Python and other\",\"is_count\":false,\"value\":260,\"typical\":61}]");
	expect_cause(VIEW_ROW("cpu_op", "aten::nonzero", 1, 1, 501, 150, ""),
	             "\"causes\":[{\"what\":\"cpu_exec\",\"title\":\"operators\",\"is_count\":false,\"value\":190,\"typical\":40},");
	expect_cause(VIEW_ROW("cpu_op", "aten::nonzero", 1, 1, 501, 150, ""),
	             "\"events\":[{\"name\":\"aten::nonzero\",\"self\":150,\"typical_self\":0,\"calls\":1,\"typical_calls\":0}]");
	expect_cause(VIEW_ROW("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 1, 501, 150, ""),
	             "\"causes\":[{\"what\":\"dataloader\",\"title\":\"data loading\",\"is_count\":false,\"value\":150,\"typical\":0},");
	expect_cause(VIEW_ROW("python_function", "Python GC", 1, 1, 501, 150, ""),
	             "{\"what\":\"garbage_collection\",\"title\":\"garbage collection\",\"is_count\":false,\"value\":150,\"typical\":0}");
	expect_cause(VIEW_ROW("cpu_op", "nccl:all_reduce", 1, 1, 501, 150, ""), "{\"what\":\"communication\",");
	for (int i = 0; i < 20; i++)
		size += snprintf(rows + size, sizeof(rows) - (size_t)size,
		                 "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":4},", AT + 5 * i);
	expect_cause(rows, "{\"what\":\"operator_calls\",\"title\":\"operator calls\",\"is_count\":true,\"value\":21,\"typical\":1}");
	size = 0;
	for (int i = 0; i < 12; i++)
		size += snprintf(rows + size, sizeof(rows) - (size_t)size,
		                 "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":%d,\"args\":"
		                 "{\"Bytes\":64,\"Addr\":%d,\"Total Allocated\":64,\"Total Reserved\":0,\"Device Type\":0,\"Device Id\":-1}},",
		                 AT + i, 1000 + i);
	expect_cause(rows, "{\"what\":\"allocations\",\"title\":\"allocations\",\"is_count\":true,\"value\":12,\"typical\":0}");
}

/* The three longest of five slow steps are explained, in the order of the steps; a line counts the others. */
static void three_slow_steps_are_explained(void **state)
{
	char rows[8192], *text;
	int size = 0, at = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		int length = i % 4 == 3 ? 500 - 10 * i : 100 + i % 3;

		size += snprintf(rows + size, sizeof(rows) - (size_t)size,
		                 "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#%d\",\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d},",
		                 i, at, length);
		at += length;
	}
	text = text_of(rows, "", 0);
	assert_has(text, "slow step 3 ");
	assert_has(text, "slow step 7 ");
	assert_has(text, "slow step 11 ");
	assert_null(strstr(text, "slow step 15"));
	assert_has(text, "\nand 2 more slow steps\n");
	ops_free(text);
	text = scene_views(rows, "");
	assert_has(text, "\"outlier_count\":5,");
	ops_free(text);
}

/* Steps that differ little, and few steps, have no outliers. */
static void steady_steps_are_not_slow(void **state)
{
	char *text = scene_views(VIEW_STEP(1, 0, 100) VIEW_OP("a", 0, 10, 1) VIEW_STEP(2, 100, 100) VIEW_STEP(3, 200, 300), "");

	(void)state;
	assert_has(text, "\"outlier_count\":0,");
	ops_free(text);
	text = scene_views(VIEW_STEP(1, 0, 100) VIEW_STEP(2, 100, 101) VIEW_STEP(3, 201, 100) VIEW_STEP(4, 301, 101) VIEW_STEP(5, 402, 118), "");
	assert_has(text, "\"outlier_count\":0,");
	ops_free(text);
}

#define ITERATION(name, start, length) VIEW_ROW("user_annotation", name, 1, 1, start, length, "")
#define DECODE(start, length) ITERATION("execute_context_0(0)_generation_4(4)", start, length)

/* Prefill and decode have separate figures, and steps are compared with steps of the same kind: the prefill is not slow, a long decode is. */
static void iterations_are_compared_by_kind(void **state)
{
	static const char rows[] = DECODE(0, 10) DECODE(20, 10) ITERATION("execute_context_1(99)_generation_0(0)", 40, 90) DECODE(140, 10)
		DECODE(160, 30) DECODE(200, 10);
	char *text = scene_views(rows, "");

	(void)state;
	assert_has(text, "\"steps\":{\"from\":\"iterations\",\"names\":[\"0\",\"1\",\"2\",\"3\",\"4\",\"5\"]");
	assert_has(text, "{\"name\":\"2\",\"kind\":\"prefill\",");
	assert_has(text, "\"outlier_count\":1,\"outliers\":[{\"name\":\"4\",\"kind\":\"decode\",\"total\":30,\"over_median\":20,");
	assert_has(text, "\"kinds\":[{\"kind\":\"prefill\",\"count\":1,\"median\":90,\"mean\":90,\"p95\":90},"
	                 "{\"kind\":\"decode\",\"count\":5,\"median\":10,\"mean\":14,\"p95\":2");
	ops_free(text);
	text = text_of(rows, "", 0);
	assert_has(text, "6 iterations: median 10.0 µs, mean 26.7 µs, p95 75.0 µs\n");
	assert_has(text, "\n  prefill      1: median 90.0 µs, p95 90.0 µs\n  decode       5: median 10.0 µs, p95 26.0 µs\n");
	assert_has(text, "slow iteration 4, decode     more     here  usually\ntime                      20.0 µs  30.0 µs  10.0 µs\n");
	ops_free(text);
	text = scene_views(ten_steps(""), "");
	assert_has(text, "\"kinds\":[]");
	ops_free(text);
}

#define MACHINE(steps) "\"machine\":{\"processors\":2,\"steps\":[" steps "]},"

/* The metadata have the waits of some steps, by number. */
static void steps_wait_for_a_processor(void **state)
{
	char *text = scene_views(VIEW_STEP(1, 0, 100) VIEW_STEP(2, 100, 100) VIEW_STEP(3, 200, 100),
	                         MACHINE("[1,80000,5000,0,0],[3,60000,40000,0,7]"));

	(void)state;
	assert_has(text, "\"waited_for_cpu\":{\"ratio\":0.225,\"own_ratio\":0,\"had_by\":\"other threads\",\"average\":22.5,\"much\":true,\"rows\":[5,null,40]}");
	ops_free(text);
	text = text_of(VIEW_STEP(1, 0, 100) VIEW_STEP(2, 100, 100), MACHINE("[1,80000,5000,0,0],[2,60000,40000,0,7]"), 0);
	assert_has(text, "warning: waited for a CPU: 22.5 % of the steps' time, because other threads had it; times are too long\n");
	ops_free(text);
	text = text_of(VIEW_STEP(1, 0, 100) VIEW_STEP(2, 100, 100), MACHINE("[1,80000,5000,0,0]"), OPS_VIEWS_MARKDOWN);
	assert_has(text, " waited for a CPU: 5.00 % of the steps' time.");
	assert_has_not(text, "warning");
	ops_free(text);
	/* What is not a list of numbers is left out, and negative numbers count as 0. */
	text = scene_views(VIEW_STEP(1, 0, 100), MACHINE("[1,\"x\"],7,[1,80000,-5,0,0]"));
	assert_has(text, "\"waited_for_cpu\":{\"ratio\":0,\"own_ratio\":0,\"had_by\":\"other threads\",\"average\":0,\"much\":false,\"rows\":[0]}");
	ops_free(text);
	text = scene_views(ten_steps(""), MACHINE("[4,100000,150000,0,0]"));
	assert_has(text, "{\"what\":\"waited_for_cpu\",\"title\":\"waiting for a CPU\",\"is_count\":false,\"value\":150,\"typical\":0}");
	ops_free(text);
}

/* "thread_states" of the thread of the scenes, in microseconds; 0: running, 1: ready, 6: sleeping. */
#define SAMPLES(intervals) "\"thread_states\":{\"start_ns\":0,\"threads\":[{\"tid\":1,\"intervals\":[" intervals "]}]},"

/* Steps that the recorder did not know have the waits of samples. Within a time of activity their order is unknown, so that each part of it has
 * the same share. */
static void samples_show_waits_of_steps(void **state)
{
	char *text = scene_views(VIEW_STEP(1, 0, 100) VIEW_STEP(2, 100, 100) VIEW_STEP(3, 200, 100) VIEW_STEP(4, 300, 100),
	                         SAMPLES("0,40,1,40,160,0,160,200,6,200,220,1,220,230,6"));

	(void)state;
	assert_has(text, "\"waited_for_cpu\":{\"ratio\":0.2,\"own_ratio\":0,\"had_by\":\"other threads\",\"average\":20,\"much\":true,\"rows\":[25,15,null,null]}");
	ops_free(text);
	text = scene_views(VIEW_STEP(1, 0, 100), MACHINE("[1,80000,5000,0,0]") SAMPLES("0,40,1,40,100,0"));
	assert_has(text, "\"rows\":[5]}");
	ops_free(text);
	text = text_of(VIEW_OP("aten::mm", 0, 100, 1), SAMPLES("0,40,1,40,100,0"), 0);
	assert_has(text, "warning: waited for a CPU: 40.0 % of the recording's time, because other threads had it; times are too long\n");
	ops_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_show_waits_of_steps),
		cmocka_unit_test(steps_have_a_median),
		cmocka_unit_test(slow_steps_are_explained),
		cmocka_unit_test(three_slow_steps_are_explained),
		cmocka_unit_test(steady_steps_are_not_slow),
		cmocka_unit_test(iterations_are_compared_by_kind),
		cmocka_unit_test(steps_wait_for_a_processor),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
