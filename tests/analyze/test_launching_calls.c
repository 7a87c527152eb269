/* SPDX-License-Identifier: Apache-2.0
 *
 * Whose work it is that has no arrow from a call, for it waits for other work of its launch; and which arrows of a file say so.
 */
#include "graph/graph_scene.h"

#include "analyze/launching_calls.h"
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
	uint32_t *calls = ops_launching_calls(trace);

	assert_int_equal(count_links(trace, OPS_LINK_DEPENDENCY), dependencies);
	for (size_t row = 0; row < e->count; row++)
		if (e->kind[row] == OPS_EVENT_KERNEL)
			assert_int_equal(calls[row] == OPS_NONE ? -1 : (e->start_ns[calls[row]] - e->start_ns[0]) / 1000, *us++);
		else
			assert_int_equal(calls[row], OPS_NONE);
	ops_free(calls);
	ops_trace_unref(trace);
}

static void what_waits_is_its_launch_s(void **state)
{
	(void)state;
	assert_calls(GRAPHS, (const int[]){-1, -1, -1, -1, -1}, 0);
	assert_calls(GRAPHS LAUNCHES(1, 1, 7, 10) LAUNCHES(2, 4, 7, 30), (const int[]){1, -1, 4, -1, -1}, 0);
	assert_calls(GRAPHS LAUNCHES(1, 1, 7, 10) LAUNCHES(2, 4, 7, 30) DEPENDENCY(1099511627776, 7, 15, 8, 20)
	                     DEPENDENCY(1099511627777, 7, 35, 8, 40),
	             (const int[]){1, 1, 4, 4, -1}, 2);
}

/* By their number, and by what they are between. */
static void arrows_of_launches_are_no_dependencies(void **state)
{
	(void)state;
	assert_calls(GRAPHS LAUNCHES(1099511627776, 1, 7, 10), (const int[]){1, -1, -1, -1, -1}, 0);
	assert_calls(GRAPHS DEPENDENCY(1099511627775, 7, 15, 8, 20), (const int[]){-1, 10, -1, -1, -1}, 0);
	assert_calls(GRAPHS DEPENDENCY(1099511627776, 7, 15, 8, 40), (const int[]){-1, -1, -1, 10, -1}, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_waits_is_its_launch_s),
		cmocka_unit_test(arrows_of_launches_are_no_dependencies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
