/* SPDX-License-Identifier: Apache-2.0
 *
 * The description of a trace, its problems, and its averages.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "asking.h"

static struct question question_of_rows(const char *id, const char *args, const char *rows)
{
	struct question question = {.id = id, .args = args, .count = 1};

	question.ranks[0].trace = asking_trace(rows);
	return question;
}

static void test_what_a_trace_has(void **state)
{
	struct question question = question_of_rows("info", "{\"metadata\": false}",
	                                  STEP(7, 1, 100) "," LAUNCH(5, 1) "," KERNEL("sgemm", 20, 100.5, 1, ""));

	(void)state;
	asking_gives(question,
	             "{\"value\":{\"rank\":null,\"start_ns\":1000,\"duration_us\":119.5,\"steps\":1,\"steps_from\":\"marks\",\"steps_source\":\"marks of the recording\",\"first_step\":7,\"last_step\":7,"
	             "\"events\":3,\"events_by_kind\":{\"user_annotation\":1,\"kernel\":1,\"cuda_runtime\":1},\"threads\":1,"
	             "\"streams\":1,\"arrows\":0,\"memory_records\":0,\"counter_values\":0,\"modules\":0,\"module_calls\":0,\"call_stacks\":0,\"input_shapes\":0,"
	             "\"lost_records\":0,\"notes\":0}}");
	asking_done(&question);
}

static void test_types_and_unknown_arguments(void **state)
{
	struct question question =
		question_of_rows("validate", NULL, KERNEL("a", 1, 2, 1, ",\"grid\":3,\"block\":[1,1,1],\"zzz\":1,\"Group size\":\"2\"") "," KERNEL(
						 "b", 5, 2, 2, ",\"grid\":3,\"block\":[1,1,1],\"zzz\":1,\"Group size\":\"2\"") ",");

	(void)state;
	asking_gives(question, "{\"table\":{\"columns\":[\"kind\",\"what\",\"count\",\"first_byte\"],\"rows\":["
	                       "[\"file\",\"a comma too many\",1,346],[\"type\",\"grid\",2,null],[\"unknown\",\"zzz\",2,null]]}}");
	asking_done(&question);
}

static void test_averages_as_data(void **state)
{
	struct question question =
		question_of_rows("key_averages", "{\"sort_by\": \"count\"}",
	               ROW("cpu_op", "a", 1, 0, 50, "") "," ROW("cpu_op", "b", 1, 10, 20.5, "") "," ROW("cpu_op", "b", 1, 60, 1, ""));

	(void)state;
	asking_gives(question, "{\"table\":{\"columns\":[\"name\",\"count\",\"self_cpu_time_total\",\"cpu_time_total\","
	                       "\"self_device_time_total\",\"device_time_total\","
	                       "\"self_cpu_memory_usage\",\"cpu_memory_usage\",\"self_device_memory_usage\","
	                       "\"device_memory_usage\"],\"rows\":[[\"b\",2,21.5,21.5,0,0,0,0,0,0],[\"a\",1,29.5,50,0,0,0,0,0,0]]}}");
	question.args = "{\"sort_by\": \"height\"}";
	asking_fails(question, OPS_UNSUPPORTED, "height");
	asking_done(&question);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_a_trace_has),
		cmocka_unit_test(test_types_and_unknown_arguments),
		cmocka_unit_test(test_averages_as_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
