/* SPDX-License-Identifier: Apache-2.0
 *
 * Analyses across ranks: stragglers and collectives.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "asking.h"

/* Three steps; the last is cut off by the filter. The collective of step 0 begins at `a`, that of step 1 at 100 + `b`,
 * and both end for all at 60. */
#define RANK(a, a_dur, b, b_dur)                                                                   \
	STEP(0, 0, 100) "," STEP(1, 100, 100) "," STEP(2, 200, 100) "," LAUNCH(5, 1) "," LAUNCH(105, 2) ","               \
	KERNEL("ncclDevKernel_AllReduce", a, a_dur, 1, "") "," KERNEL("ncclDevKernel_AllReduce", b, b_dur, 2, "")

static struct question three_ranks(const char *args)
{
	struct question question = {.id = "potential_stragglers", .args = args, .count = 3};

	question.ranks[0] = (struct ops_rank){.rank = 0, .trace = asking_trace(RANK(10, 50, 110, 50))};
	question.ranks[1] = (struct ops_rank){.rank = 1, .trace = asking_trace(RANK(40, 20, 150, 10))};
	question.ranks[2] = (struct ops_rank){.rank = 2, .trace = asking_trace(RANK(50, 10, 120, 40))};
	return question;
}

static void test_the_last_to_begin_is_late(void **state)
{
	struct question question = three_ranks("{\"num_candidates\": 1, \"profiler_steps\": [0]}");

	(void)state;
	asking_gives(question, "{\"value\":[2],\"left_out_step\":2}");
	question.args = "{\"num_candidates\": 1, \"profiler_steps\": [1]}";
	asking_gives(question, "{\"value\":[1],\"left_out_step\":2}");
	question.args = "{\"num_candidates\": 1, \"profiler_steps\": 1}";
	asking_gives(question, "{\"value\":[1],\"left_out_step\":2}");
	question.args = "{\"profiler_steps\": \"one\"}";
	asking_fails(question, OPS_INVALID, "a list of whole numbers");
	question.args = "{\"num_candidates\": 2, \"profiler_steps\": [0, 1, 99]}";
	asking_gives(question, "{\"value\":[1,2],\"left_out_step\":2}");
	question.args = "{\"num_candidates\": -5, \"profiler_steps\": [1]}";
	asking_gives(question, "{\"value\":[1],\"left_out_step\":2}");
	question.args = "{\"profiler_steps\": [99]}";
	asking_fails(question, OPS_INVALID, "profiler_steps");
	asking_done(&question);
}

static void test_one_rank_has_no_waits(void **state)
{
	struct question question = three_ranks(NULL);
	size_t count = question.count;

	(void)state;
	question.count = 1;
	asking_gives(question, "{\"value\":[],\"empty\":\"no stragglers: the traces have no steps with communication between ranks\","
	                       "\"left_out_step\":2}");
	question.count = count;
	asking_done(&question);
}

#define GROUP                                                                                      \
	",\"Collective name\":\"allreduce\",\"dtype\":\"Float\",\"Group size\":2,\"In msg nelems\":8,\"Out msg nelems\":8,"    \
	"\"Process Group Name\":\"0\",\"Process Group Description\":\"default_pg\",\"Process Group Ranks\":\"[0, 1]\""
#define OTHER_GROUP                                                                                \
	",\"Collective name\":\"allgather\",\"dtype\":\"Half\",\"Group size\":4,\"In msg nelems\":2,\"Out msg nelems\":8"

static void test_equal_collectives_are_summed(void **state)
{
	struct question question = {.id = "nccl_collectives", .count = 1};

	(void)state;
	question.ranks[0].rank = 3;
	question.ranks[0].trace = asking_trace(KERNEL("a", 10, 5, 1, GROUP) "," KERNEL("b", 20, 7.5, 2, GROUP) "," KERNEL(
		"c", 30, 1, 3, OTHER_GROUP) "," KERNEL("sgemm", 40, 1, 4, "") "," ROW("cpu_op", "host", 1, 50, 1, "\"x\":1" GROUP));
	asking_gives(question,
	             "{\"value\":{\"3\":{\"columns\":[\"collective_name\",\"msg_dtype\",\"group_size\",\"process_group_name\","
	             "\"process_group_desc\",\"process_group_ranks\",\"count\",\"dur\",\"in_msg_nelems\",\"out_msg_nelems\"],"
	             "\"rows\":[[\"allgather\",\"Half\",4,\"\",\"\",\"\",1,1,2,8],"
	             "[\"allreduce\",\"Float\",2,\"0\",\"default_pg\",\"[0, 1]\",2,12.5,16,16]]}}}");
	question.args = "{\"filter\": \"stream = 3\"}";
	asking_fails(question, OPS_INVALID, "expression");
	asking_done(&question);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_to_begin_is_late),
		cmocka_unit_test(test_one_rank_has_no_waits),
		cmocka_unit_test(test_equal_collectives_are_summed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
