/* SPDX-License-Identifier: Apache-2.0
 *
 * Which call launched which work, and which operator made the call: for graphs, for calls that share a correlation, and where
 * only flows show it.
 */
#include "graph/graph_scene.h"

#include "derive/launches.h"
#include "base/alloc.h"

#define DEPENDENCY(id, from_stream, from_ts, to_stream, to_ts)                                     \
	"{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":0,\"tid\":" #from_stream ",\"ts\":" #from_ts ",\"id\":" #id "}," \
	"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":0,\"tid\":" #to_stream ",\"ts\":" #to_ts ",\"id\":" #id "},"
#define LAUNCHES(id, ts, stream, to_ts)                                                            \
	"{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":9,\"tid\":9,\"ts\":" #ts ",\"id\":" #id "},"                   \
	"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":0,\"tid\":" #stream ",\"ts\":" #to_ts ",\"id\":" #id "},"

/* Two launches of a ──▶ b, and work of which nothing is known. */
#define GRAPHS                                                                                     \
	OP("op", 0, 9) CALL("cudaGraphLaunch", 1, 2, 1) CALL("cudaGraphLaunch", 4, 2, 2)               \
	KERNEL("a", 7, 10, 5, 1) KERNEL("b", 8, 20, 5, 1) KERNEL("a", 7, 30, 5, 2) KERNEL("b", 8, 40, 5, 2) KERNEL("c", 8, 50, 5, 3)

static size_t count_links(const struct ops_trace *trace, enum ops_link_kind kind)
{
	size_t count, found = 0;
	const struct ops_link *links = ops_trace_links(trace, &count);

	for (size_t i = 0; i < count; i++)
		found += links[i].kind == kind;
	return found;
}

/* When, in microseconds, each kernel's call began, -1 without one; kernels in order of time. */
static void assert_calls(const char *rows, const int *us, size_t dependencies)
{
	struct ops_trace *trace = scene_read(rows);
	const struct ops_events *e = ops_trace_events(trace);
	const uint32_t *calls = ops_launchers(trace);

	assert_int_equal(count_links(trace, OPS_LINK_DEPENDENCY), dependencies);
	for (size_t row = 0; row < e->count; row++)
		if (e->kind[row] == OPS_EVENT_KERNEL)
			assert_int_equal(calls[row] == OPS_NONE ? -1 : (e->start_ns[calls[row]] - e->start_ns[0]) / 1000, *us++);
	assert_ptr_equal(ops_launchers(trace), calls);
	ops_trace_unref(trace);
}

static void what_waits_is_its_launch_s(void **state)
{
	(void)state;
	assert_calls(GRAPHS, (const int[]){1, 1, 4, 4, -1}, 0);
	assert_calls(GRAPHS LAUNCHES(1, 1, 7, 10) LAUNCHES(2, 4, 7, 30), (const int[]){1, 1, 4, 4, -1}, 0);
	assert_calls(GRAPHS LAUNCHES(1, 1, 7, 10) LAUNCHES(2, 4, 7, 30) DEPENDENCY(1099511627776, 7, 15, 8, 20)
	                     DEPENDENCY(1099511627777, 7, 35, 8, 40),
	             (const int[]){1, 1, 4, 4, -1}, 2);
}

/* By their number, and by what they are between. */
static void flows_of_launches_are_not_dependencies(void **state)
{
	(void)state;
	assert_calls(GRAPHS LAUNCHES(1099511627776, 1, 7, 10), (const int[]){1, 1, 4, 4, -1}, 0);
	assert_calls(GRAPHS DEPENDENCY(1099511627775, 7, 15, 8, 20), (const int[]){1, 1, 4, 4, -1}, 0);
	assert_calls(GRAPHS DEPENDENCY(1099511627776, 7, 15, 8, 40), (const int[]){1, 1, 4, 4, -1}, 0);
}

/* The runtime's call and the driver's: the first that launches. A call that starts no work does not count. */
static void of_calls_that_share_a_correlation_the_first_that_launches(void **state)
{
	(void)state;
	assert_calls(OP("a", 0, 40) CALL("cudaLaunchKernel", 10, 5, 7) OP("b", 50, 40)
	             ROW("cuda_driver", "cuLaunchKernel", 9, 9, 60, 5, "\"correlation\":7") KERNEL("k", 7, 100, 60, 7),
	             (const int[]){10}, 0);
	assert_calls(OP("a", 0, 40) CALL("cudaStreamIsCapturing", 10, 5, 7) CALL("cudaLaunchKernelExC", 20, 5, 7)
	             KERNEL("k", 7, 100, 60, 7), (const int[]){20}, 0);
}

static void without_a_correlation_flows_decide(void **state)
{
	(void)state;
	assert_calls(OP("a", 0, 40) CALL("hipModuleLaunchKernel", 10, 5, 1) ROW("kernel", "k", 0, 7, 100, 60, "\"stream\":7")
	             LAUNCHES(1, 10, 7, 100), (const int[]){10}, 0);
}

/* Names of the operators that made the calls, in order of the calls; "" for none. */
static void assert_callers(const char *rows, const char *const *names)
{
	struct ops_trace *trace = scene_read(rows);
	const struct ops_events *e = ops_trace_events(trace);
	const uint32_t *operators = ops_launchers(trace);

	for (size_t row = 0; row < e->count; row++) {
		struct ops_string name = {"", 0};

		if (operators[row] != OPS_NONE)
			name = ops_trace_string(trace, e->name[operators[row]]);
		if (ops_kind_is_call(e->kind[row]))
			assert_string_equal(name.bytes, *names++);
	}
	ops_trace_unref(trace);
}

static void the_operator_is_the_one_that_the_id_names(void **state)
{
#define ID_OP(name, ts, dur, id) ROW("cpu_op", name, 9, 9, ts, dur, "\"External id\":" #id)
#define ID_CALL(ts, id) ROW("cuda_runtime", "cudaLaunchKernel", 9, 9, ts, 2, "\"External id\":" #id)
	(void)state;
	assert_callers(ID_OP("outer", 0, 40, 5) ID_OP("inner", 5, 30, 6) ID_CALL(10, 5) ID_CALL(50, 0), (const char *const[]){"outer", ""});
	/* ids that lead nowhere, as correlations in their place do */
	assert_callers(ID_OP("outer", 0, 40, 5) ID_OP("inner", 5, 30, 6) ID_CALL(10, 77) ID_CALL(20, 5) ID_CALL(36, 78),
	               (const char *const[]){"inner", "inner", "outer"});
	/* steps of old files are among the operators, and are none */
	assert_callers(ROW("cpu_op", "ProfilerStep#1", 9, 9, 0, 40, "\"a\":0") ID_CALL(10, 0), (const char *const[]){""});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_is_its_launch_s),
		cmocka_unit_test(flows_of_launches_are_not_dependencies),
		cmocka_unit_test(of_calls_that_share_a_correlation_the_first_that_launches),
		cmocka_unit_test(without_a_correlation_flows_decide),
		cmocka_unit_test(the_operator_is_the_one_that_the_id_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
