/* SPDX-License-Identifier: Apache-2.0
 *
 * Analyses of files other than traces: memory timelines and execution traces.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "asking.h"

static struct question question_of_file(const char *id, const char *args, const char *text)
{
	struct question question = {.id = id, .args = args, .count = 1};

	question.ranks[0].path = asking_file(text);
	return question;
}

static void done_with_file(struct question *question, size_t which)
{
	unlink(question->ranks[which].path);
	free((char *)question->ranks[which].path);
	asking_done(question);
}

#define EIGHT(a, b)                                                                                \
	"{\"Parameter\":" #a ",\"Optimizer state\":0,\"Input\":0,\"Temporary\":0,\"Activation\":0,\"Gradient\":0,"            \
	"\"Autograd\":0,\"Unknown\":" #b "}"

/* 1696966047096061874 does not fit a double. */
static void test_a_curve_of_categories(void **state)
{
	struct question question =
		question_of_file("memory_timeline", "{\"points\": [1]}",
	                 "[[-1, 1, 100, 7], [-1,1,20,7],\n[1696966047096061874, 3, -20, 7], [1696966047096061874, 3, 20, 0],"
	                 "[1696966047096061875, 2, 50, 0], [1696966047096061999, 4, -100, 7]]");

	(void)state;
	asking_gives(question,
	             "{\"value\":{\"points\":4,\"t_min\":1696966047096061874,\"t_max\":1696966047096061999,\"peak_index\":2,"
	             "\"peak_time\":1696966047096061875,\"peak_total_bytes\":170,\"peak_by_category\":" EIGHT(70, 100)
	             ",\"final_by_category\":" EIGHT(70, 0) ",\"max_by_category\":" EIGHT(70, 120)
	             ",\"first_by_category\":" EIGHT(0, 120) ",\"point_1\":[20,0,0,0,0,0,0,100]}}");
	question.args = "{\"series\": true, \"limit\": 1}";
	asking_gives(question, "{\"table\":{\"columns\":[\"time\",\"Parameter\",\"Optimizer state\",\"Input\",\"Temporary\","
	                       "\"Activation\",\"Gradient\",\"Autograd\",\"Unknown\"],"
	                       "\"rows\":[[1696966047096061874,0,0,0,0,0,0,0,120]],\"total_rows\":4}}");
	done_with_file(&question, 0);
}

static void test_not_a_timeline(void **state)
{
	static const char *const texts[] = {"[[1, 2, 3, 8]]", "[[1, 2, 3]]", "[1]", "[[1,2,3,4]", "{\"a\": 1}", "[[1,2,3,4] 5]", ""};
	struct question question;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *text = NULL;
		struct ops_error error;

		question = question_of_file("memory_timeline", NULL, texts[i]);
		assert_int_not_equal(asking_once(&question, &text, &error), OPS_OK);
		done_with_file(&question, 0);
	}
	question = question_of_file("memory_timeline", NULL, " [ ] ");
	asking_gives(question, "{\"value\":{\"points\":0}}");
	done_with_file(&question, 0);
}

#define PROGRAM                                                                                    \
	ROW("user_annotation", "a", 1, 0, 90, "\"External id\":1") "," ROW("cpu_op", "b", 1, 10, 5, "\"External id\":2") "," ROW( \
		"cpu_op", "c", 1, 20, 5, "\"External id\":900,\"Record function id\":3")

/* Nodes of schema 1.0 and of 1.1 in one file; they need not be in order. */
static void test_operators_meet_their_nodes(void **state)
{
	struct question question =
		question_of_file("execution_trace", "{\"columns\": [\"et_node_name\", \"op_schema\", \"input_shapes\"]}",
	                 "{\"schema\": \"1.0\", \"other\": {\"nodes\": [1]}, \"nodes\": [{\"id\": 9, \"name\": \"c\", \"attrs\": ["
	                 "{\"name\": \"rf_id\", \"type\": \"uint64\", \"value\": 3}, {\"name\": \"op_schema\", \"value\": \"c(x)\"}],"
	                 "\"inputs\": {\"values\": [1], \"shapes\": [[2, 3]]}},\n{\"name\": \"a\\n\", \"id\": 5, \"rf_id\": 1},"
	                 "{\"id\": 1, \"name\": \"[pytorch|profiler|execution_trace|process]\", \"rf_id\": 0}]}");

	(void)state;
	question.count = 2;
	question.ranks[1].trace = asking_trace(PROGRAM);
	asking_gives(question, "{\"value\":{\"et_nodes\":3,\"imported\":true,\"correlated\":2,\"supported_rows\":3,\"rows\":["
	                       "[0,\"a\",1,5,\"a\\n\",null,null],[1,\"b\",2,null,null,null,null],"
	                       "[2,\"c\",900,9,\"c\",\"c(x)\",[[2,3]]]]}}");
	question.args = "{\"limit\": 0}";
	asking_gives(question, "{\"value\":{\"et_nodes\":3,\"imported\":true,\"correlated\":2,\"supported_rows\":3,\"rows\":[]}}");
	done_with_file(&question, 0);
}

static void test_traces_of_other_runs_are_not_joined(void **state)
{
	struct question question = question_of_file("execution_trace", NULL, "{\"nodes\": [{\"id\": 9, \"name\": \"c\", \"rf_id\": 77}]}");

	(void)state;
	question.count = 2;
	question.ranks[1].trace = asking_trace(PROGRAM);
	asking_gives(question, "{\"value\":{\"et_nodes\":1,\"imported\":false,\"correlated\":0,\"supported_rows\":3,\"rows\":[]}}");
	question.count = 1;
	asking_fails(question, OPS_CORRUPT, "no file contains a trace with events");
	question.count = 2;
	done_with_file(&question, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_curve_of_categories),
		cmocka_unit_test(test_not_a_timeline),
		cmocka_unit_test(test_operators_meet_their_nodes),
		cmocka_unit_test(test_traces_of_other_runs_are_not_joined),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
