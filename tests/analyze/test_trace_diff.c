/* SPDX-License-Identifier: Apache-2.0
 *
 * Differences between two traces, and short names.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/compare/short_name.h"
#include "asking.h"

static struct question two_traces(const char *id, const char *args)
{
	struct question question = {.id = id, .args = args, .count = 2};

	question.ranks[0].rank = 3;
	question.ranks[0].trace = asking_trace(STEP(7, 0, 100) "," STEP(8, 100, 100) "," ROW("cpu_op", "gone", 1, 2, 1, "") "," ROW(
		"cpu_op", "same", 1, 5, 2, "") "," ROW("cpu_op", "more", 1, 8, 1, "") "," LAUNCH(10, 1) "," KERNEL(
		"f<int>(x)", 20, 4, 1, "") "," ROW("cpu_op", "later", 1, 110, 1, "") "," KERNEL("alone", 30, 4, 9, ""));
	question.ranks[1].rank = 1;
	question.ranks[1].trace = asking_trace(STEP(7, 0, 100) "," ROW("cpu_op", "new", 1, 2, 1.5, "") "," ROW(
		"cpu_op", "same", 1, 5, 7, "") "," ROW("cpu_op", "more", 1, 20, 1, "") "," ROW("cpu_op", "more", 1, 30, 2, "") "," LAUNCH(
		10, 1) "," KERNEL("f<float>(x)", 20, 9, 1, ""));
	return question;
}

static void test_steps_of_both(void **state)
{
	struct question question = two_traces("trace_diff.iterations", NULL);

	(void)state;
	asking_gives(question, "{\"value\":{\"control\":{\"ranks\":[3],\"iterations\":[7,8]},"
	                       "\"test\":{\"ranks\":[1],\"iterations\":[7]}}}");
	asking_done(&question);
}

#define COLUMNS                                                                                    \
	"{\"columns\":[\"name\",\"control_counts\",\"control_total_duration\",\"test_counts\",\"test_total_duration\","        \
	"\"diff_counts\",\"diff_duration\",\"counts_change_categories\"],"

static void test_names_are_counted_in_the_lowest_step(void **state)
{
	struct question question =
		two_traces("trace_diff.compare", "{\"device_type\": \"CPU\", \"limit\": 2}");

	(void)state;
	asking_gives(question, "{\"value\":{\"rows\":6,\"categories\":{\"-\":1,\"=\":3,\"+\":2},\"control_counts\":5,"
	                       "\"control_total_duration\":105,\"test_counts\":6,\"test_total_duration\":112.5,"
	                       "\"top_by_abs_diff_duration\":" COLUMNS "\"rows\":[[\"same\",1,2,1,7,0,5,\"=\"],"
	                       "[\"more\",1,1,2,3,1,2,\"+\"]],\"total_rows\":6}}}");
	question.args = "{\"device_type\": \"GPU\", \"use_short_name\": true, \"whole\": true}";
	asking_gives(question, "{\"table\":" COLUMNS "\"rows\":[[\"f\",1,4,1,9,0,5,\"=\"]]}}");
	question.args = "{\"device_type\": \"CPU\", \"control_iteration\": [8], \"test_iteration\": [], \"whole\": true}";
	asking_gives(question, "{\"table\":" COLUMNS "\"rows\":[[\"ProfilerStep#8\",1,100,0,0,-1,-100,\"-\"],"
	                       "[\"later\",1,1,0,0,-1,-1,\"-\"]]}}");
	question.args = "{\"device_type\": \"TPU\"}";
	asking_fails(question, OPS_INVALID, "device_type");
	question.args = "{\"control_iteration\": \"x\"}";
	asking_fails(question, OPS_INVALID, "control_iteration");
	question.args = "{\"control_iteration\": 6}";
	asking_fails(question, OPS_INVALID, "the control has no step 6");
	question.args = "{\"control_iteration\": [8, 7], \"test_iteration\": 8}";
	asking_fails(question, OPS_INVALID, "the test has no step 8");
	question.args = "{\"limit\": -7}";
	asking_fails(question, OPS_INVALID, "must be a whole number from 0 on, not '-7'");
	asking_done(&question);
}

static void test_changes_of_each_name(void **state)
{
	struct question question = two_traces("trace_diff.ops_diff", NULL);

	(void)state;
	asking_gives(question, "{\"value\":{\"added\":{\"count\":2,\"names\":[\"f<float>(x)\",\"new\"]},"
	                       "\"deleted\":{\"count\":2,\"names\":[\"f<int>(x)\",\"gone\"]},"
	                       "\"increased\":{\"count\":1,\"names\":[\"more\"]},\"decreased\":{\"count\":0,\"names\":[]},"
	                       "\"unchanged\":{\"count\":3,\"names\":[\"ProfilerStep#7\",\"cudaLaunchKernel\",\"same\"]}}}");
	asking_done(&question);
}

static void assert_short(const char *name, const char *expected)
{
	struct ops_buffer out = {0};

	short_name((struct ops_string){name, strlen(name)}, &out);
	assert_int_equal(out.size, strlen(expected));
	assert_memory_equal(out.size ? out.bytes : "", expected, out.size);
	ops_buffer_release(&out);
}

static void test_short_names(void **state)
{
	(void)state;
	assert_short("aten::add", "aten::add");
	assert_short("void at::native::reduce<float, f<int> >(int, char)", "at::native::reduce");
	assert_short("Memcpy DtoD (Device -> Device)", "Memcpy DtoD (Device -> Device)");
	assert_short("auto f(int)->g<int>", "fg");
	assert_short("a>b(c)", "b");
	assert_short("(((", "(((");
	assert_short("", "");
	assert_short("void at::native::(anonymous namespace)::fill<int>(int)", "at::native::::fill");
}

static void assert_readable(const char *name, const char *expected)
{
	struct ops_buffer out = {0};

	readable_name((struct ops_string){name, strlen(name)}, &out);
	assert_int_equal(out.size, strlen(expected));
	assert_memory_equal(out.size ? out.bytes : "", expected, out.size);
	ops_buffer_release(&out);
}

static void test_readable_names(void **state)
{
	(void)state;
	assert_readable("void at::native::(anonymous namespace)::fill<int>(int)", "at::native::fill");
	assert_readable("void a::(anonymous namespace)::(anonymous namespace)::f(int)", "a::f");
	assert_readable("(anonymous namespace)::f()", "f");
	assert_readable("aten::add", "aten::add");
	assert_readable("f(:", "f(:");
	assert_readable("", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_of_both),
		cmocka_unit_test(test_names_are_counted_in_the_lowest_step),
		cmocka_unit_test(test_changes_of_each_name),
		cmocka_unit_test(test_short_names),
		cmocka_unit_test(test_readable_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
