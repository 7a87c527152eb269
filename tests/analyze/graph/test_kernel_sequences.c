/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/graph: sequences of kernels, and the launches of operators.
 */
#include "graph_scene.h"

#define LAUNCH(ts, correlation) CALL("cudaLaunchKernel", ts, 1, correlation)
/* An operator that launches "k1" and "k2", from another operator inside. */
#define PAIR(ts, call1, call2, start1, start2, c1, c2)                                             \
	OP("aten::linear", ts, 20) OP("aten::addmm", ts, 18) LAUNCH(call1, c1) LAUNCH(call2, c2)       \
	KERNEL("k1", 7, start1, 3, c1) KERNEL("k2", 7, start2, 5, c2)

static const char rows[] = PAIR(100, 102, 104, 110, 120, 1, 2) PAIR(200, 202, 206, 211, 220, 3, 4)
	OP("aten::linear", 300, 20) LAUNCH(301, 5) KERNEL("k3", 7, 310, 4, 5);

static void test_patterns(void **state)
{
	(void)state;
	assert_answer("frequent_cuda_kernel_sequences", rows, "{\"operator_name\":\"linear\",\"min_pattern_len\":1}",
	              "\"rows\":[[\"aten::linear|k1|k2\",2,16,40],[\"aten::linear|k3\",1,4,20]]");
	assert_answer("frequent_cuda_kernel_sequences", rows, "{\"operator_name\":\"linear\",\"min_pattern_len\":2}",
	              "\"rows\":[[\"aten::linear|k1|k2\",2,16,40]]");
	assert_answer("frequent_cuda_kernel_sequences", rows, "{\"operator_name\":\"conv\"}", "\"rows\":[]");
}

/* Those inside of others are not looked at. */
static void only_the_smallest_depth(void **state)
{
	(void)state;
	assert_answer("frequent_cuda_kernel_sequences", rows, "{\"operator_name\":\"aten::\",\"min_pattern_len\":2}",
	              "\"rows\":[[\"aten::linear|k1|k2\",2,16,40]]");
}

/* "k" before "k!" by the text of the pattern, where '!' is before '|'. */
static void order_is_that_of_the_text(void **state)
{
	(void)state;
	assert_answer("frequent_cuda_kernel_sequences",
	              OP("f", 0, 10) LAUNCH(1, 1) LAUNCH(2, 2) KERNEL("k", 7, 3, 1, 1) KERNEL("z", 7, 5, 1, 2)
	              OP("f", 20, 10) LAUNCH(21, 3) LAUNCH(22, 4) KERNEL("k!", 7, 23, 1, 3) KERNEL("a", 7, 25, 1, 4),
	              "{\"operator_name\":\"f\",\"min_pattern_len\":1}", "\"rows\":[[\"f|k!|a\",1,2,10],[\"f|k|z\",1,2,10]]");
}

static void launches_are_the_innermost_operators(void **state)
{
	(void)state;
	assert_answer("aten_op_kernels_and_delay", rows, NULL,
	              "\"rows\":[[\"aten::addmm\",\"k1 -> k2\",2,2,8.5],[\"aten::linear\",\"k3\",1,1,9]]");
	assert_answer("aten_op_kernels_and_delay", rows, "{\"sort_by\":[\"avg_runtime_delay\"]}",
	              "\"rows\":[[\"aten::linear\",\"k3\",1,1,9],[\"aten::addmm\",\"k1 -> k2\",2,2,8.5]]");
}

/* The reference crashes on a launch without a kernel and takes any thread's operator. */
static void launches_without_operator(void **state)
{
	(void)state;
	assert_answer("aten_op_kernels_and_delay",
	              OP("aten::a", 0, 10) LAUNCH(2, 1)
	              ROW("cuda_runtime", "cudaLaunchKernel", 9, 8, 3, 1, "\"correlation\":2") KERNEL("k", 7, 5, 1, 2),
	              NULL, "\"rows\":[]");
}

static void survives_failures(void **state)
{
	(void)state;
	assert_survives_failures("frequent_cuda_kernel_sequences", rows, "{\"operator_name\":\"aten\"}");
	assert_survives_failures("aten_op_kernels_and_delay", rows, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(only_the_smallest_depth),
		cmocka_unit_test(order_is_that_of_the_text),
		cmocka_unit_test(launches_are_the_innermost_operators),
		cmocka_unit_test(launches_without_operator),
		cmocka_unit_test(survives_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
