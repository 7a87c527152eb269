/* SPDX-License-Identifier: Apache-2.0
 *
 * Hardware counters of kernels.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "asking.h"

#define RANGE(name, ts, args) ROW("cuda_profiler_range", name, 0, ts, 10, args)
#define FFMA "\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\":"
#define FADD "\"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum\":"

#define PROGRAM                                                                                    \
	ROW("cpu_op", "outer", 1, 0, 50, "") "," ROW("cpu_op", "inner", 1, 10, 20, "") "," ROW(                            \
		"cuda_runtime", "cudaLaunchKernel", 1, 15, 1, "") "," ROW("cuda_runtime", "cudaLaunchKernel", 1, 40, 1, "") ","
#define COUNTED                                                                                    \
	RANGE("k", 100, FFMA "6," FADD "1,\"dram__bytes.sum\":26") "," RANGE("k", 110, FFMA "0," FADD "13")

static struct question question_of_rows(const char *id, const char *rows)
{
	struct question question = {.id = id, .count = 1};

	question.ranks[0].trace = asking_trace(rows);
	return question;
}

#define COLUMNS                                                                                    \
	"{\"table\":{\"columns\":[\"ts\",\"dur\",\"name\",\"top_level_op\",\"bottom_level_op\",\"op_stack\",\"dram__bytes.sum\","    \
	"\"smsp__sass_thread_inst_executed_op_fadd_pred_on.sum\",\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\"],"

static void test_the_nth_range_is_the_nth_launch(void **state)
{
	struct question question = question_of_rows("cupti_counters", PROGRAM COUNTED);

	(void)state;
	asking_gives(question, COLUMNS "\"rows\":[[100,10,\"k\",\"outer\",\"inner\",[\"outer\",\"inner\"],26,1,6],"
	                               "[110,10,\"k\",\"outer\",\"outer\",[\"outer\"],null,13,0]]}}");
	asking_done(&question);
}

static void test_unequal_counts_leave_launches_unknown(void **state)
{
	struct question question = question_of_rows("cupti_counters", PROGRAM RANGE("k", 100, FFMA "6"));

	(void)state;
	asking_gives(question, "{\"table\":{\"columns\":[\"ts\",\"dur\",\"name\",\"top_level_op\",\"bottom_level_op\","
	                       "\"op_stack\",\"smsp__sass_thread_inst_executed_op_ffma_pred_on.sum\"],"
	                       "\"rows\":[[100,10,\"k\",null,null,[],6]]}}");
	asking_done(&question);
}

static void test_without_counters_there_is_nothing(void **state)
{
	struct question question = question_of_rows("cupti_counters", STEP(1, 0, 10));

	(void)state;
	asking_gives(question, "{\"value\":null,\"empty\":\"no results: the traces have no such device work\"}");
	question.id = "roofline";
	asking_gives(question, "{\"value\":null,\"empty\":\"no results: the traces have no such device work\"}");
	asking_done(&question);
}

/* 2·6 + 1 operations and 26 bytes, then 13 operations and unknown bytes. */
static void test_operations_and_bytes(void **state)
{
	struct question question =
		question_of_rows("roofline", RANGE("a", 100, FFMA "6," FADD "1,\"dram__bytes.sum\":26,\"gpu__time_duration.sum\":2") "," RANGE(
			"b", 110, FADD "14"));

	(void)state;
	asking_gives(question, "{\"table\":{\"columns\":[\"name\",\"count\",\"flops\",\"dram_bytes\",\"flops_per_byte\","
	                       "\"gflops_per_second\",\"dram_gb_per_second\"],\"rows\":[[\"b\",1,14,null,null,null,null],"
	                       "[\"a\",1,13,26,0.5,6.5,13]]}}");
	asking_done(&question);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_nth_range_is_the_nth_launch),
		cmocka_unit_test(test_unequal_counts_leave_launches_unknown),
		cmocka_unit_test(test_without_counters_there_is_nothing),
		cmocka_unit_test(test_operations_and_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
