/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/graph/critical_path: each kind of edge separately, and the longest path compared with all paths.
 */
#include "graph_scene.h"

#include <stdlib.h>

#include "analyze/graph/critical_path.h"
#include "base/alloc.h"

#define ID "critical_path"

/* op 0–100 with a launch at 10; the kernel runs 30–90; the call that waits for it 40–95. */
#define ONE_KERNEL                                                                                 \
	OP("aten::mm", 0, 100) CALL("cudaLaunchKernel", 10, 5, 1) KERNEL("k", 7, 30, 60, 1)            \
	CALL("cudaDeviceSynchronize", 40, 55, 2)                                                       \
	ROW("cuda_sync", "Context Sync", 0, 0, 40, 52, "\"stream\":0,\"correlation\":2")

static void launch_kernel_and_sync(void **state)
{
	(void)state;
	/* 0–10 op, 20 from launch to kernel, 60 kernel, then the sync, which is no time, and 5 of the op */
	assert_answer(ID, ONE_KERNEL, NULL, "\"clipped_events\":5,\"nodes\":10,");
	assert_answer(ID, ONE_KERNEL, NULL, "\"path_weight\":95,");
	assert_answer(ID, ONE_KERNEL, NULL,
	              "\"path_duration_by_bound\":{\"\":[0,1],\"cpu_bound\":[15,2],\"gpu_compute_bound\":[60,1],"
	              "\"gpu_kernel_launch_overhead\":[20,1]},\"path_start_ts\":0,\"path_end_ts\":100");
	assert_answer(ID, ONE_KERNEL, NULL,
	              "\"edges_by_type\":{\"critical_path_operator\":6,\"critical_path_kernel_launch_delay\":1,"
	              "\"critical_path_sync_dependency\":1}");
}

static void test_what_if(void **state)
{
	(void)state;
	/* with the kernel at a tenth: 10 + 20 + 6 + 5 is less than the op's own way, 10 + 5 + 25 + 0 + 5 */
	assert_answer(ID, ONE_KERNEL, "{\"what_if\":{\"k\":0.5}}", "\"what_if\":{\"path_weight\":65,\"saved\":30,");
	assert_answer(ID, ONE_KERNEL, "{\"what_if\":{\"gpu_compute_bound\":0.1}}",
	              "\"what_if\":{\"path_weight\":45,\"saved\":50,");
	assert_answer(ID, ONE_KERNEL, "{\"what_if\":{}}", "\"what_if\":{\"path_weight\":95,\"saved\":0,");
}

static void test_edges(void **state)
{
	(void)state;
	assert_answer(ID, ONE_KERNEL, "{\"edges\":true}",
	              "[2,60,\"critical_path_operator\",\"k\",\"kernel\",0,7,7,\"gpu_compute_bound\"]");
}

/* The second kernel queues behind the first; a gap above 1.5 ms has another reason. */
static void kernels_of_a_stream(void **state)
{
#define TWO(start) OP("op", 0, 9) CALL("cudaLaunchKernel", 1, 2, 1) CALL("cudaLaunchKernel", 4, 2, 2)                 \
	KERNEL("k1", 7, 10, 100, 1) KERNEL("k2", 7, start, 10, 2)
	(void)state;
	assert_answer(ID, TWO(115), NULL, "\"critical_path_kernel_kernel_delay\":1");
	assert_answer(ID, TWO(115), NULL, "\"gpu_kernel_kernel_overhead\":[5,1]");
	assert_answer(ID, TWO(1700), NULL, "\"edges_by_type\":{\"critical_path_operator\":7}");
	assert_answer(ID, TWO(1700), "{\"add_zero_weight_launch_edges\":true}", "\"critical_path_kernel_launch_delay\":2");
}

/* A kernel on stream 20 waits for the one that was launched onto stream 7 before the record, and for another. */
static void test_events(void **state)
{
#define WAIT(ts, correlation, record, stream)                                                      \
	CALL("cudaStreamWaitEvent", ts, 1, correlation)                                                \
	ROW("cuda_sync", "Stream Wait Event", 0, 20, ts, 1,                                            \
	    "\"stream\":20,\"correlation\":" #correlation ",\"wait_on_stream\":" #stream                                     \
	    ",\"wait_on_cuda_event_record_corr_id\":" #record)
	static const char rows[] = OP("op", 0, 60) CALL("cudaLaunchKernel", 1, 2, 1) KERNEL("a", 7, 10, 100, 1)
		CALL("cudaEventRecord", 4, 1, 2) CALL("cudaLaunchKernel", 6, 2, 3) KERNEL("b", 8, 12, 80, 3)
		CALL("cudaEventRecord", 9, 1, 4) WAIT(11, 5, 2, 7) WAIT(13, 6, 4, 8) CALL("cudaLaunchKernel", 15, 2, 7)
		KERNEL("c", 20, 111, 10, 7);

	(void)state;
	assert_answer(ID, rows, NULL, "\"critical_path_sync_dependency\":2");
	assert_answer(ID, rows, NULL, "\"gpu_compute_bound\":[110,2]");
}

/* Two kernels of one launch of a CUDA graph, on two streams: the second waits for the first. */
static void nodes_of_graphs_wait_for_each_other(void **state)
{
#define GRAPH                                                                                      \
	OP("op", 0, 9) CALL("cudaGraphLaunch", 1, 2, 1) KERNEL("a", 7, 10, 100, 1) KERNEL("b", 8, 112, 10, 1)
#define ARROW(phase, stream, ts)                                                                   \
	"{\"ph\":\"" phase "\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":0,\"tid\":" #stream ",\"ts\":" #ts        \
	",\"id\":1099511627776},"
	(void)state;
	/* all of a call's work belongs to its region, with or without arrows between */
	assert_answer(ID, GRAPH, NULL, "\"gpu_compute_bound\":[10,1]");
	assert_answer(ID, GRAPH ARROW("s", 7, 110) ARROW("f", 8, 112), NULL, "\"critical_path_sync_dependency\":1}");
	assert_answer(ID, GRAPH ARROW("s", 7, 110) ARROW("f", 8, 112), NULL, "\"gpu_compute_bound\":[110,2]");
	/* one that the other overlaps is not waited for */
	assert_answer(ID, OP("op", 0, 9) CALL("cudaGraphLaunch", 1, 2, 1) KERNEL("a", 7, 10, 100, 1) KERNEL("b", 8, 90, 10, 1)
	                      ARROW("s", 7, 110) ARROW("f", 8, 90),
	              NULL, "\"path_edges_by_type\":{\"critical_path_operator\":2,\"critical_path_kernel_launch_delay\":1},"
	                    "\"path_duration_by_bound\":{\"cpu_bound\":[1,1],\"gpu_compute_bound\":[100,1],");
}

/* Streams of two devices have the same number, and a call only waits for its own device. Through a: 10 op, 20 launch, 60 kernel,
 * 105 op after the call. The late end of b, on the other device, is not on the path. */
/* Three kernels of one launch, back to back on one stream: the path goes through all of them. */
static void all_kernels_of_a_graph_are_on_the_path(void **state)
{
	(void)state;
	assert_answer(ID, OP("op", 0, 30) CALL("cudaGraphLaunch", 15, 10, 7) KERNEL("k0", 7, 50, 990, 7) KERNEL("k1", 7, 1050, 990, 7)
	                  KERNEL("k2", 7, 2050, 990, 7) CALL("cudaStreamSynchronize", 60, 3000, 8)
	                  ROW("cuda_sync", "Stream Sync", 0, 7, 60, 2990, "\"stream\":7,\"correlation\":8") OP("last", 3100, 20),
	              NULL, "\"gpu_compute_bound\":[2970,3],\"gpu_kernel_kernel_overhead\":[20,2],\"gpu_kernel_launch_overhead\":[35,1]}");
}

/* The engine has a thread; who calls backward() waits for it. */
#define ENGINE(name, tid, ts, dur) ROW("cpu_op", "autograd::engine::evaluate_function: " name, 9, tid, ts, dur, "")
#define STEP(ts, dur) ROW("user_annotation", "ProfilerStep#1", 9, 9, ts, dur, "")
#define LINK(ts, to_tid, to_ts)                                                                    \
	"{\"ph\":\"s\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":1,\"pid\":9,\"tid\":9,\"ts\":" #ts "},"                    \
	"{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":1,\"pid\":9,\"tid\":" #to_tid ",\"ts\":" #to_ts "},"

static void backward_runs_between_forward_and_optimizer(void **state)
{
#define PASS OP("aten::loss", 0, 100) ENGINE("MmBackward0", 10, 110, 200) ROW("cpu_op", "aten::mm", 9, 10, 120, 180, "")               \
	ENGINE("torch::autograd::AccumulateGrad", 10, 320, 30) OP("aten::add_", 360, 40)
	(void)state;
	/* 100 forward, 200 and 30 of the engine, 40 of the optimizer; to the reference, two threads that do not wait */
	assert_answer(ID, PASS STEP(0, 410), NULL, "\"path_weight\":370,");
	assert_answer(ID, PASS STEP(0, 410), NULL, "\"path_start_ts\":0,\"path_end_ts\":400");
	assert_answer(ID, PASS STEP(0, 410), "{\"rules\":\"hta\"}", "\"path_weight\":230,");
	/* the thread of the forward operator is the caller where there are no steps */
	assert_answer(ID, PASS LINK(0, 10, 110), NULL, "\"path_weight\":370,");
	assert_answer(ID, PASS, NULL, "\"path_weight\":230,");
	/* what the engine runs across an operator of the caller is not waited for: 100 and 250 of the engine */
	assert_answer(ID, OP("aten::loss", 0, 100) ENGINE("MmBackward0", 10, 110, 250) OP("aten::add_", 340, 40) STEP(0, 410), NULL,
	              "\"path_weight\":350,");
}

/* Two devices have two engines, of which the slower counts; what is around the caller meanwhile takes no time. */
static void engines_of_two_devices_run_at_once(void **state)
{
	(void)state;
	assert_answer(ID, STEP(0, 400) OP("outer", 0, 400) OP("aten::loss", 10, 90) ENGINE("A", 10, 110, 100) ENGINE("B", 11, 110, 150)
	                      OP("aten::add_", 300, 50),
	              NULL, "\"path_weight\":350,"); /* 10 + 90, 150, then 50 + 50 */
}

static void test_devices(void **state)
{
	static const char rows[] = OP("op", 0, 200) CALL("cudaLaunchKernel", 10, 5, 1) CALL("cudaLaunchKernel", 20, 5, 3)
		KERNEL("a", 7, 30, 60, 1)
		ROW("kernel", "b", 1, 7, 35, 155, "\"stream\":7,\"device\":1,\"correlation\":3")
		CALL("cudaDeviceSynchronize", 40, 55, 2)
		ROW("cuda_sync", "Context Sync", 0, 0, 40, 52, "\"stream\":0,\"correlation\":2");

	(void)state;
	assert_answer(ID, rows, NULL, "\"critical_path_kernel_launch_delay\":2,\"critical_path_sync_dependency\":1}");
	assert_answer(ID, rows, NULL, "\"path_weight\":195,");
}

static void test_regions(void **state)
{
	static const char rows[] = ROW("user_annotation", "part 1", 9, 9, 0, 10, "") OP("a", 1, 5)
		ROW("user_annotation", "part 2", 9, 9, 20, 10, "") OP("b", 21, 6) OP("c", 27, 1);

	(void)state;
	assert_answer(ID, rows, "{\"annotation\":\"part\"}", "\"clipped_events\":2,\"nodes\":2,");
	assert_answer(ID, rows, "{\"annotation\":\"part\",\"instance_id\":1}", "\"clipped_events\":3,\"nodes\":4,");
	assert_answer(ID, rows, "{\"annotation\":\"part\",\"instance_id\":[0,1]}", "\"clipped_events\":5,\"nodes\":6,");
	assert_refused(ID, rows, "{\"annotation\":\"part\",\"instance_id\":2}",
	               "invalid instance_id 2: 2 ranges match 'part' (choose from 0 to 1)");
	assert_refused(ID, rows, "{\"annotation\":\"part\",\"instance_id\":[1,0]}",
	               "option 'instance_id' must be FIRST,LAST with FIRST <= LAST");
	assert_refused(ID, rows, "{\"annotation\":\"else\"}",
	               "no event's name contains 'else'; the annotations are: 'part 1', 'part 2'");
	assert_refused(ID, rows, "{\"instance_id\":1}", "option 'instance_id' requires option 'annotation'");
	assert_answer(ID, rows, "{\"data_load_events\":[\"b\"]}", "\"data_loading\":[6,1]");
	assert_answer(ID, "", NULL, "\"clipped_events\":0,\"nodes\":0,\"edges\":0");
}

/* Two threads in calls that exclude each other: the one that ends last waited for the other. */
static void test_lock(void **state)
{
	static const char rows[] = CALL("cudaLaunchKernel", 0, 10, 1)
		ROW("cuda_runtime", "cudaLaunchKernel", 9, 8, 5, 15, "\"correlation\":2");

	(void)state;
	assert_answer(ID, rows, NULL, "\"edges\":3,\"edges_by_type\":{\"critical_path_operator\":1,\"critical_path_dependency\":2}");
	assert_answer(ID, rows, NULL, "\"path_weight\":10,");
}

/* --- the search ------------------------------------------------------------------------------------------------------ */

static int64_t longest_from(const struct critical_path *path, uint32_t node)
{
	int64_t longest = 0;

	for (size_t e = 0; e < path->edges.count; e++) {
		const struct critical_edge *edge = &path->edges.items[e];
		int64_t far_ns;

		if (edge->from != node)
			continue;
		far_ns = (edge->weight_ns > 0 ? edge->weight_ns : 0) + longest_from(path, edge->to);
		if (far_ns > longest)
			longest = far_ns;
	}
	return longest;
}

static void longest_of_all_paths(void **state)
{
	(void)state;
	srand(11);
	for (int round = 0; round < 200; round++) {
		struct critical_path path = {0};
		int64_t longest = 0, sum = 0;

		for (uint32_t event = 0; event < 6; event++)
			*OPS_ARRAY_PUSH(&path.events) = event;
		for (int e = 0; e < 18; e++) {
			uint32_t from = (uint32_t)rand() % 11, to = from + 1 + (uint32_t)rand() % (11 - from);

			assert_true(critical_add_edge(&path, from, to, CRITICAL_OPERATOR, rand() % 20 - 5, OPS_NONE));
		}
		assert_true(critical_path_search(&path, NULL));
		for (uint32_t node = 0; node < 12; node++) {
			int64_t far_ns = longest_from(&path, node);

			longest = far_ns > longest ? far_ns : longest;
		}
		for (size_t i = 0; i < path.path.count; i++) {
			const struct critical_edge *edge = &path.edges.items[path.path.items[i]];

			sum += edge->weight_ns > 0 ? edge->weight_ns : 0;
			assert_int_equal(edge->from, i ? path.edges.items[path.path.items[i - 1]].to : path.path_start);
		}
		assert_true(path.acyclic);
		assert_int_equal(path.path_weight_ns, longest);
		assert_int_equal(sum, longest);
		critical_path_release(&path);
	}
}

static void a_cycle_is_reported(void **state)
{
	struct critical_path path = {.path_start = OPS_NONE, .path_end = OPS_NONE};

	(void)state;
	*OPS_ARRAY_PUSH(&path.events) = 0;
	assert_true(critical_add_edge(&path, 0, 1, CRITICAL_OPERATOR, 5, OPS_NONE));
	assert_true(critical_add_edge(&path, 1, 0, CRITICAL_SYNC, 0, OPS_NONE));
	assert_true(critical_path_search(&path, NULL));
	assert_false(path.acyclic);
	assert_int_equal(path.path.count, 0);
	critical_path_release(&path);
}

static void survives_failures(void **state)
{
	(void)state;
	assert_survives_failures(ID, ONE_KERNEL, "{\"what_if\":{\"k\":0.5},\"data_load_events\":[\"x\"],\"annotation\":\"aten\"}");
	assert_survives_failures(ID, ONE_KERNEL, "{\"edges\":true}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launch_kernel_and_sync),
		cmocka_unit_test(test_what_if),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(kernels_of_a_stream),
		cmocka_unit_test(test_events),
		cmocka_unit_test(nodes_of_graphs_wait_for_each_other),
		cmocka_unit_test(backward_runs_between_forward_and_optimizer),
		cmocka_unit_test(engines_of_two_devices_run_at_once),
		cmocka_unit_test(all_kernels_of_a_graph_are_on_the_path),
		cmocka_unit_test(test_devices),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(longest_of_all_paths),
		cmocka_unit_test(a_cycle_is_reported),
		cmocka_unit_test(survives_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
