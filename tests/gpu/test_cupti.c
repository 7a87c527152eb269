/* SPDX-License-Identifier: Apache-2.0
 *
 * The collector for CUDA with a library that has CUPTI's entry points and no GPU (fake_cupti/): loading, buffers, the drain
 * thread, decoding and errors are those of a real run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "asking.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "fake_cupti/fake_cuda.h"
#include "fake_cupti/fake_cupti.h"
#include "gpu/cupti.h"
#include "gpu/cupti_buffers.h"

static __typeof__(&fake_cupti_fail) fail_function;
static __typeof__(&fake_cupti_launch) launch;
static __typeof__(&fake_cupti_copy) copy;
static __typeof__(&fake_cupti_emit) emit;
static __typeof__(&fake_cupti_capture) capture;
static __typeof__(&fake_cupti_launch_long) launch_long;
static __typeof__(&fake_cupti_is_quiet) is_quiet;
static __typeof__(&fake_cupti_instantiate) instantiate;
static __typeof__(&fake_cupti_end_context) end_context;
static __typeof__(&fake_cupti_reader_takes) reader_takes;
static __typeof__(&fake_cuda_add_edge) add_edge;
static __typeof__(&fake_cuda_add_node) add_node;
static __typeof__(&fake_cuda_fail_edges) fail_edges;
static __typeof__(&cuptiSubscribe) subscribe;
static __typeof__(&cuptiUnsubscribe) unsubscribe;

static int load_fake(void **state)
{
	void *handle = dlopen(getenv("OPSTROBE_CUPTI"), RTLD_NOW), *driver = dlopen("libcuda.so.1", RTLD_NOW);

	(void)state;
	if (!handle || !driver)
		return -1;
	add_edge = (__typeof__(add_edge))(uintptr_t)dlsym(driver, "fake_cuda_add_edge");
	add_node = (__typeof__(add_node))(uintptr_t)dlsym(driver, "fake_cuda_add_node");
	fail_edges = (__typeof__(fail_edges))(uintptr_t)dlsym(driver, "fake_cuda_fail_edges");
	instantiate = (__typeof__(instantiate))(uintptr_t)dlsym(handle, "fake_cupti_instantiate");
	fail_function = (__typeof__(fail_function))(uintptr_t)dlsym(handle, "fake_cupti_fail");
	launch = (__typeof__(launch))(uintptr_t)dlsym(handle, "fake_cupti_launch");
	copy = (__typeof__(copy))(uintptr_t)dlsym(handle, "fake_cupti_copy");
	emit = (__typeof__(emit))(uintptr_t)dlsym(handle, "fake_cupti_emit");
	capture = (__typeof__(capture))(uintptr_t)dlsym(handle, "fake_cupti_capture");
	end_context = (__typeof__(end_context))(uintptr_t)dlsym(handle, "fake_cupti_end_context");
	reader_takes = (__typeof__(reader_takes))(uintptr_t)dlsym(handle, "fake_cupti_reader_takes");
	launch_long = (__typeof__(launch_long))(uintptr_t)dlsym(handle, "fake_cupti_launch_long");
	is_quiet = (__typeof__(is_quiet))(uintptr_t)dlsym(handle, "fake_cupti_is_quiet");
	subscribe = (__typeof__(subscribe))(uintptr_t)dlsym(handle, "cuptiSubscribe");
	unsubscribe = (__typeof__(unsubscribe))(uintptr_t)dlsym(handle, "cuptiUnsubscribe");
	return fail_function && launch && copy && emit && capture && instantiate && end_context && reader_takes && add_edge && add_node &&
	                       fail_edges
	               ? 0
	               : -1;
}

/* --- tests ---------------------------------------------------------------------------------------------------------- */

static void assert_metadata(const struct ops_trace *trace, const char *wanted, const char *value)
{
	struct ops_string key, found;

	for (size_t i = 0; i < ops_trace_metadata_count(trace); i++) {
		ops_trace_metadata(trace, i, &key, &found);
		if (strcmp(key.bytes, wanted) == 0) {
			assert_string_equal(found.bytes, value);
			return;
		}
	}
	fail_msg("no %s", wanted);
}

static void kernels_are_tied_to_operators(void **state)
{
	struct run run;
	struct ops_slot *slot;
	struct ops_range step;
	struct ops_trace *trace;
	const struct ops_events *e;
	struct ops_string properties, key;
	uint32_t kernel, moved;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	step = ops_range_begin("step", 4);
	slot = open_operator("aten::mm");
	launch("_Z4gemmPKfS0_Pf", 264, 256, 5000, 20000);
	close_operator(slot);
	slot = open_operator("aten::copy_");
	copy(1 << 20, 1000, 50000);
	close_operator(slot);
	ops_range_end(step);
	trace = checked_trace(stop_run(&run));
	e = ops_trace_events(trace);

	kernel = find_row(trace, OPS_EVENT_KERNEL, "gemm(float const*, float const*, float*)");
	assert_int_equal(e->id[kernel], e->id[find_row(trace, OPS_EVENT_CPU_OP, "aten::mm")]);
	assert_int_equal(launch_of(trace, kernel), find_row(trace, OPS_EVENT_RUNTIME, "cudaLaunchKernel"));
	assert_int_equal(e->parent[launch_of(trace, kernel)], find_row(trace, OPS_EVENT_CPU_OP, "aten::mm"));
	assert_in_range(e->end_ns[kernel] - e->start_ns[kernel], 19900, 20100); /* two clocks, a short session */
	assert_arg(trace, kernel, "grid", "[264,1,1]");
	assert_arg(trace, kernel, "block", "[256,1,1]");
	assert_arg(trace, kernel, "registers per thread", "32");
	assert_arg(trace, kernel, "blocks per SM", "2");
	assert_arg(trace, kernel, "est. achieved occupancy %", "25");
	assert_arg(trace, kernel, "stream", "7");

	moved = find_row(trace, OPS_EVENT_GPU_MEMCPY, "Memcpy HtoD (Pageable -> Device)");
	assert_int_equal(launch_of(trace, moved), find_row(trace, OPS_EVENT_RUNTIME, "cudaMemcpyAsync"));
	assert_arg(trace, moved, "bytes", "1048576");
	find_row(trace, OPS_EVENT_GPU_USER_ANNOTATION, "step");

	ops_trace_metadata(trace, 0, &key, &properties);
	assert_non_null(strstr(properties.bytes, "\"name\":\"NVIDIA H100 80GB HBM3\""));
	assert_non_null(strstr(properties.bytes, "\"numSms\":132"));
	assert_metadata(trace, "cupti_version", "130500");
	assert_metadata(trace, "cuda_driver_version", "13050");
	ops_trace_unref(trace);
}

#define LAUNCHES 30000
#define THREADS 4

static void *launch_many(void *unused)
{
	for (int i = 0; i < LAUNCHES; i++) {
		struct ops_slot *slot = open_operator("op");

		launch("kernel", 1, 32, 100, 100);
		close_operator(slot);
	}
	return unused;
}

/* More than fits a buffer many times over, from several threads; every kernel has its own operator. */
static void many_threads_fill_many_buffers(void **state)
{
	struct run run;
	pthread_t threads[THREADS];
	struct ops_trace *trace;
	const struct ops_events *e;
	size_t links;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_many, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	trace = checked_trace(stop_run(&run));
	e = ops_trace_events(trace);
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL) + ops_trace_info(trace)->lost / 2, LAUNCHES * THREADS);
	ops_trace_links(trace, &links);
	assert_int_equal(links, count_kind(trace, OPS_EVENT_KERNEL));
	for (uint32_t row = 0; row < e->count; row++)
		if (e->kind[row] == OPS_EVENT_RUNTIME)
			assert_int_equal(e->kind[e->parent[row]], OPS_EVENT_CPU_OP);
	ops_trace_unref(trace);
}

/* A graph is captured, instantiated and launched: its kernels are under the launch, and say what they were captured from. */
static void kernels_of_graphs_know_what_was_captured(void **state)
{
	CUpti_ActivityKernel13 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .streamId = 7, .graphId = 2,
	                                 .graphNodeId = 61, .start = 1, .end = 2};
	struct run run;
	struct ops_slot *slot;
	struct ops_trace *trace;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	slot = open_operator("aten::mm");
	capture(51, 0);
	close_operator(slot);
	capture(52, 0);
	capture(61, 51);
	capture(62, 52);
	kernel.name = "in an operator";
	emit(&kernel, sizeof(kernel));
	kernel.name = "in none";
	kernel.graphNodeId = 62;
	emit(&kernel, sizeof(kernel));
	kernel.name = "not captured here";
	kernel.graphNodeId = 99;
	emit(&kernel, sizeof(kernel));
	trace = checked_trace(stop_run(&run));
	assert_arg(trace, find_row(trace, OPS_EVENT_KERNEL, "in an operator"), "captured from", "\"aten::mm\"");
	assert_arg(trace, find_row(trace, OPS_EVENT_KERNEL, "in an operator"), "graph node id", "61");
	assert_false(ops_event_arg(trace, find_row(trace, OPS_EVENT_KERNEL, "in none"), "captured from", &(struct ops_string){0}));
	assert_false(ops_event_arg(trace, find_row(trace, OPS_EVENT_KERNEL, "not captured here"), "captured from",
	                           &(struct ops_string){0}));
	ops_trace_unref(trace);
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_BIT(OPS_ACTIVITY_KERNEL));
	capture(51, 0);
	trace = checked_trace(stop_run(&run));
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	ops_trace_unref(trace);
}

#define GRAPH 7
#define LAUNCH 1000000 /* correlation of the first launch of a graph */

static void emit_node(uint32_t node, uint32_t launched_by, uint32_t start)
{
	CUpti_ActivityKernel13 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .streamId = 7, .graphId = 2,
	                                 .graphNodeId = node, .start = start, .end = start + 5, .correlationId = launched_by};
	static char names[32][16]; /* read on another thread, any time until the stop */

	snprintf(names[node], sizeof(names[node]), "node %u", node);
	kernel.name = names[node];
	emit(&kernel, sizeof(kernel));
}

static void emit_launch(uint32_t correlation)
{
	CUpti_ActivityAPI call = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME, .cbid = CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000,
	                          .start = 1, .end = 2, .correlationId = correlation};

	emit(&call, sizeof(call));
}

/* The names of what a row waits for, in order of rows, as "node 1 node 2". */
static void assert_waits(const struct ops_trace *trace, uint32_t row, const char *names)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(trace, &count);
	struct ops_buffer found = {0};

	for (size_t i = 0; i < count; i++)
		if (links[i].to == row && links[i].kind == OPS_LINK_DEPENDENCY) {
			struct ops_string name = ops_trace_string(trace, ops_trace_events(trace)->name[links[i].from]);

			assert_int_equal(ops_trace_events(trace)->correlation[links[i].from], ops_trace_events(trace)->correlation[row]);
			ops_buffer_printf(&found, "%s%.*s", found.size ? " " : "", (int)name.size, name.bytes);
		}
	ops_buffer_append(&found, "", 1);
	assert_string_equal(found.bytes, names);
	ops_buffer_release(&found);
}

/*     1 ──▶ 2 ─────────▶ 4        5 has no row
 *     1 ──▶ 3 ──▶ 5 ──▶ 4         of each launch only 1, and what waits for nothing that ran, has the arrow of the call */
static void nodes_of_graphs_wait_for_each_other(void **state)
{
	static const uint32_t edges[][2] = {{1, 2}, {1, 3}, {2, 4}, {3, 5}, {5, 4}};
	struct run run;
	struct ops_trace *trace;

	(void)state;
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		add_edge(GRAPH, edges[i][0], edges[i][1]);
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	for (uint64_t node = 1; node <= 5; node++)
		capture(node, 0);
	for (uint64_t node = 1; node <= 5; node++)
		capture(node + 10, node);
	instantiate(GRAPH, CUDA_SUCCESS);
	for (uint32_t i = 0; i < 2; i++) {
		emit_launch(LAUNCH + i);
		for (uint32_t node = 11; node <= 14; node++)
			if (i == 0 || node != 12) /* of which, the second time, the record is missing */
				emit_node(node, LAUNCH + i, 10 * node + 100 * i);
	}
	trace = checked_trace(stop_run(&run));
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	for (uint32_t row = 0; row < ops_trace_events(trace)->count; row++) {
		static const char *const waits[2][4] = {{"", "node 11", "node 11", "node 12 node 13"}, {"", "", "node 11", "node 13"}};
		struct ops_string name = ops_trace_string(trace, ops_trace_events(trace)->name[row]);
		size_t again;
		int node;

		if (ops_trace_events(trace)->kind[row] != OPS_EVENT_KERNEL)
			continue;
		node = atoi(name.bytes + strlen("node "));
		again = (size_t)(ops_trace_events(trace)->correlation[row] - LAUNCH);
		assert_waits(trace, row, waits[again][node - 11]);
		assert_int_equal(launch_of(trace, row) != OPS_NONE, node == 11);
	}
	ops_trace_unref(trace);
}

#define HOST_GRAPH 9

static void emit_host_node(uint64_t node, uint32_t start)
{
	CUpti_ActivityGraphHostNode ran = {.kind = CUPTI_ACTIVITY_KIND_GRAPH_HOST_NODE, .streamId = 7, .graphId = 2,
	                                   .graphNodeId = node, .start = start, .end = start + 5, .correlationId = LAUNCH};

	emit(&ran, sizeof(ran));
}

/* Returns the row of the work of a node. */
static uint32_t row_of_node(const struct ops_trace *trace, const char *node)
{
	struct ops_string found;

	for (uint32_t row = 0; row < ops_trace_events(trace)->count; row++)
		if (ops_event_arg(trace, row, "graph node id", &found) && found.size == strlen(node) &&
		    memcmp(found.bytes, node, found.size) == 0)
			return row;
	fail_msg("no node %s", node);
	return OPS_NONE;
}

static void assert_name(const struct ops_trace *trace, uint32_t row, const char *name)
{
	assert_string_equal(ops_trace_string(trace, ops_trace_events(trace)->name[row]).bytes, name);
}

/* Three nodes on the host: of a function that a library exports, of an address in the middle of it, and of a graph that was
 * instantiated before. */
static void nodes_on_the_host_are_called_after_their_functions(void **state)
{
	char *function = (char *)(uintptr_t)end_context, address[32];
	struct ops_string found;
	struct run run;
	struct ops_trace *trace;

	(void)state;
	add_node(HOST_GRAPH, 1, function);
	add_node(HOST_GRAPH, 2, NULL);
	add_node(HOST_GRAPH, 3, function + 1);
	for (int i = 0; i < 2; i++) {
		uint32_t kinds = i ? OPS_ACTIVITY_ALL & ~OPS_ACTIVITY_BIT(OPS_ACTIVITY_GRAPH_DEPENDENCY) : OPS_ACTIVITY_ALL;

		start_run(&run, ops_cupti_collector(), kinds);
		for (uint64_t node = 1; node <= 3; node++)
			capture(node, 0);
		for (uint64_t node = 1; node <= 3; node++)
			capture(node + 10, node);
		instantiate(HOST_GRAPH, CUDA_SUCCESS);
		emit_launch(LAUNCH);
		emit_host_node(11, 10);
		emit_host_node(13, 20);
		emit_host_node(99, 30);
		trace = checked_trace(stop_run(&run));
		assert_int_equal(ops_trace_info(trace)->lost, 0);
		snprintf(address, sizeof(address), "\"0x%llx\"", (unsigned long long)(uintptr_t)function);
		assert_name(trace, row_of_node(trace, "11"), i ? "HostNode" : "HostNode: fake_cupti_end_context");
		assert_int_equal(ops_event_arg(trace, row_of_node(trace, "11"), "host fn addr", &found), !i);
		if (i == 0) {
			assert_arg(trace, row_of_node(trace, "11"), "host fn addr", address);
			assert_arg(trace, row_of_node(trace, "11"), "host fn", "\"fake_cupti_end_context\"");
			snprintf(address, sizeof(address), "\"0x%llx\"", (unsigned long long)(uintptr_t)function + 1);
			assert_arg(trace, row_of_node(trace, "13"), "host fn addr", address);
		}
		assert_false(ops_event_arg(trace, row_of_node(trace, "13"), "host fn", &found));
		assert_name(trace, row_of_node(trace, "13"), "HostNode");
		assert_false(ops_event_arg(trace, row_of_node(trace, "99"), "host fn addr", &found));
		assert_int_not_equal(launch_of(trace, row_of_node(trace, "11")), OPS_NONE);
		assert_int_not_equal(launch_of(trace, row_of_node(trace, "99")), OPS_NONE);
		ops_trace_unref(trace);
	}
}

static void unknown_edges_leave_launches_unchanged(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		uint32_t kinds = i ? OPS_ACTIVITY_ALL : OPS_ACTIVITY_ALL & ~OPS_ACTIVITY_BIT(OPS_ACTIVITY_GRAPH_DEPENDENCY);
		struct run run;
		struct ops_trace *trace;

		start_run(&run, ops_cupti_collector(), kinds);
		capture(11, 1);
		capture(12, 2);
		fail_edges(i == 1 ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS);
		instantiate(GRAPH, i == 2 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
		fail_edges(CUDA_SUCCESS);
		emit_launch(LAUNCH);
		emit_node(11, LAUNCH, 10);
		emit_node(12, LAUNCH, 20);
		trace = checked_trace(stop_run(&run));
		for (uint32_t row = 0; row < ops_trace_events(trace)->count; row++)
			if (ops_trace_events(trace)->kind[row] == OPS_EVENT_KERNEL)
				assert_int_not_equal(launch_of(trace, row), OPS_NONE);
		assert_int_equal(ops_trace_info(trace)->lost, i == 1 ? 2 : 0); /* the driver's call and the runtime's around it */
		ops_trace_unref(trace);
	}
}

/* A program resets its device in the middle of a recording: what it did before is in it as what it does then. */
static void a_context_that_ends_takes_no_records_along(void **state)
{
	struct run run;
	struct ops_trace *trace;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	launch("before", 1, 32, 100, 100);
	end_context();
	end_context();
	launch("behind", 1, 32, 100, 100);
	trace = checked_trace(stop_run(&run));
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 2);
	find_row(trace, OPS_EVENT_KERNEL, "before");
	find_row(trace, OPS_EVENT_KERNEL, "behind");
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	ops_trace_unref(trace);
	end_context();
}

static void sessions_follow_each_other(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct run run;
		struct ops_trace *trace;

		start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
		launch("kernel", 1, 32, 100, 100);
		trace = checked_trace(stop_run(&run));
		assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 1);
		ops_trace_unref(trace);
		launch("between sessions", 1, 32, 100, 100);
	}
}

/* What still runs at the stop is waited for, on devices that the process works on. */
static void work_under_way_is_waited_for(void **state)
{
	struct run run;
	struct ops_trace *trace;
	const struct ops_events *e;
	uint32_t kernel;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	launch_long("long", 0);
	trace = checked_trace(stop_run(&run));
	e = ops_trace_events(trace);
	kernel = find_row(trace, OPS_EVENT_KERNEL, "long");
	assert_true(e->end_ns[kernel] > e->start_ns[kernel]);
	assert_int_equal(launch_of(trace, kernel), find_row(trace, OPS_EVENT_RUNTIME, "cudaLaunchKernel"));
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	ops_trace_unref(trace);

	setenv("FAKE_CUDA_CONTEXTS", "0", 1); /* the fake driver aborts when a context is created */
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	launch_long("of nobody", 0);
	trace = checked_trace(stop_run(&run));
	unsetenv("FAKE_CUDA_CONTEXTS");
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 0);
	assert_int_equal(ops_trace_info(trace)->lost, 1);
	ops_trace_unref(trace);
}

/* Ends a run whose devices cannot be finished; the recording is there all the same. */
static struct ops_recording *stop_amiss(struct run *run, struct ops_error *ret_error)
{
	struct ops_recording *recording = NULL;

	assert_int_equal(ops_session_stop(run->session, &recording, NULL), OPS_OK);
	assert_int_equal(ops_device_stop(run->devices, recording, ret_error), OPS_STATE);
	return recording;
}

static void a_lost_device_is_reported(void **state)
{
	struct run run;
	struct ops_recording *recording;
	struct ops_error error;
	struct ops_trace *trace;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	launch("kernel", 1, 32, 100, 100);
	launch_long("long", 0);
	setenv("FAKE_CUDA_LOST", "1", 1);
	recording = stop_amiss(&run, &error);
	unsetenv("FAKE_CUDA_LOST");
	assert_string_equal(error.text, "CUPTI could not finish recording devices: device 0 could not be waited for: "
	                                "CUDA_ERROR_LAUNCH_FAILED (719)");
	trace = checked_trace(recording);
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 1);
	assert_int_equal(ops_trace_info(trace)->lost, 1);
	ops_trace_unref(trace);
}

static void emit_call(CUpti_ActivityKind kind, uint32_t callback)
{
	const CUpti_ActivityAPI call = {.kind = kind, .cbid = callback, .start = 1, .end = 2};

	emit(&call, sizeof(call));
}

/* Calls that torch makes many times an operator have no rows, and CUPTI does not record them; nor those of the driver but for
 * launches and memory. An older library, which has no such setting, records them. */
static void calls_that_say_nothing_have_no_rows(void **state)
{
	struct run run;
	struct ops_trace *trace;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	for (int resumed = 0; resumed < 2; resumed++) {
		assert_true(is_quiet(true, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020));
		assert_true(is_quiet(true, CUPTI_RUNTIME_TRACE_CBID_cudaEventDestroy_v3020));
		assert_true(is_quiet(false, CUPTI_DRIVER_TRACE_CBID_cuPointerGetAttribute));
		assert_false(is_quiet(true, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
		assert_false(is_quiet(false, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
		assert_int_equal(ops_device_toggle(run.devices, false, NULL), OPS_OK);
		assert_int_equal(ops_device_toggle(run.devices, true, NULL), OPS_OK);
	}
	emit_call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaGetLastError_v3020);
	emit_call(CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020);
	emit_call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuCtxGetCurrent);
	emit_call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuStreamQuery);
	emit_call(CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_DRIVER_TRACE_CBID_cuMemMap);
	trace = checked_trace(stop_run(&run));
	assert_int_equal(count_kind(trace, OPS_EVENT_RUNTIME), 1);
	assert_int_equal(count_kind(trace, OPS_EVENT_DRIVER), 1);
	find_row(trace, OPS_EVENT_RUNTIME, "cudaStreamSynchronize");
	assert_int_equal(ops_trace_info(trace)->lost, 0);
	ops_trace_unref(trace);
}

#define SESSIONS 100

/* A session, if no other thread has one; the sessions that were had. */
static void *start_and_stop(void *ret_had)
{
	for (int i = 0; i < SESSIONS; i++) {
		struct ops_device_session *devices = NULL;
		struct ops_error error;
		enum ops_code code = ops_device_start(ops_cupti_collector(), OPS_ACTIVITY_ALL, &devices, &error);

		if (code) {
			assert_int_equal(code, OPS_BUSY);
			assert_non_null(strstr(error.text, "another session records CUDA's devices"));
			continue;
		}
		launch("kernel", 1, 32, 100, 100);
		assert_int_equal(ops_device_stop(devices, NULL, &error), OPS_OK);
		++*(int *)ret_had;
	}
	return NULL;
}

/* One of them has the device at a time, up to its last session; the others get an error. */
static void sessions_of_many_threads_keep_apart(void **state)
{
	pthread_t threads[THREADS];
	int had[THREADS] = {0};

	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, start_and_stop, &had[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_true(had[0] + had[1] + had[2] + had[3] > 0);
	sessions_follow_each_other(state);
}

static void assert_refused(enum ops_code code, const char *text)
{
	struct ops_device_session *session = NULL;
	struct ops_error error;

	assert_int_equal(ops_device_start(ops_cupti_collector(), OPS_ACTIVITY_ALL, &session, &error), code);
	assert_string_equal(error.text, text);
}

static void refusals_say_why(void **state)
{
	CUpti_SubscriberHandle other;

	(void)state;
	assert_int_equal(subscribe(&other, NULL, NULL), CUPTI_SUCCESS);
	assert_refused(OPS_STATE, "cannot record devices with CUPTI: CUPTI does not start: another profiler of CUDA is active in "
	                          "this process");
	unsubscribe(other);
	fail_function("cuptiActivityEnable", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
	assert_refused(OPS_STATE, "cannot record devices with CUPTI: CUPTI does not collect activity: the driver lets only "
	                          "administrators profile (ERR_NVGPUCTRPERM)");
	fail_function("cuptiActivityRegisterCallbacks", CUPTI_ERROR_NOT_INITIALIZED);
	assert_refused(OPS_STATE, "cannot record devices with CUPTI: CUPTI cannot be set up: CUPTI_ERROR_NOT_INITIALIZED (15)");
	fail_function("", 0);
	sessions_follow_each_other(state); /* nothing is left behind */
}

static void a_failing_flush_is_reported_and_keeps_records(void **state)
{
	struct run run;
	struct ops_recording *recording;
	struct ops_error error;
	struct ops_trace *trace;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	launch("kernel", 1, 32, 100, 100);
	fail_function("cuptiActivityFlushAll", CUPTI_ERROR_NOT_INITIALIZED);
	recording = stop_amiss(&run, &error);
	fail_function("", 0);
	assert_non_null(strstr(error.text, "did not deliver all its records"));
	trace = checked_trace(recording);
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 1);
	ops_trace_unref(trace);
}

/* A device that is lost, a context that is gone, buffers that cannot be read: one message, what the host did, and a count. */
static void failures_at_the_end_are_reported_once(void **state)
{
	static const struct {
		const char *function;
		int result;
		const char *text;
	} faults[] = {
		{"cuptiActivityFlushAll", CUPTI_ERROR_INVALID_CONTEXT,
	         "CUPTI could not finish recording devices: CUPTI did not deliver all its records: CUPTI_ERROR (3)"},
		{"cuptiActivityFlushAll", CUPTI_ERROR_UNKNOWN,
	         "CUPTI could not finish recording devices: CUPTI did not deliver all its records: CUPTI_ERROR (999)"},
		{"cuptiActivityGetNextRecord", CUPTI_ERROR_INVALID_KIND,
	         "CUPTI could not finish recording devices: CUPTI could not read 1 of its buffers"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		struct run run;
		struct ops_recording *recording = NULL;
		struct ops_error error;
		struct ops_trace *trace;

		start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
		close_operator(open_operator("aten::mm"));
		launch("kernel", 1, 32, 100, 100);
		fail_function(faults[i].function, faults[i].result);
		assert_int_equal(ops_session_stop(run.session, &recording, NULL), OPS_OK);
		assert_true(ops_device_stop(run.devices, recording, &error) != OPS_OK);
		fail_function("", 0);
		assert_string_equal(error.text, faults[i].text);
		trace = checked_trace(recording);
		find_row(trace, OPS_EVENT_CPU_OP, "aten::mm");
		assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL) + ops_trace_info(trace)->lost, 1);
		ops_trace_unref(trace);
	}
}

static void signals_are_the_programs(void **state)
{
	struct run run;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	launch("kernel", 1, 32, 100, 100);
	ops_trace_unref(checked_trace(stop_run(&run)));
	assert_false(reader_takes(SIGINT));
	assert_false(reader_takes(SIGUSR1));
}

/* CUPTI drops what it has no buffer for; the trace shows how many. */
static void without_buffers_records_are_counted(void **state)
{
	struct run run;
	struct ops_trace *trace;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	ops_alloc_fail_at(1, true);
	for (int i = 0; i < 10; i++)
		launch("kernel", 1, 32, 100, 100);
	ops_alloc_fail_at(0, false);
	launch("kernel", 1, 32, 100, 100);
	trace = checked_trace(stop_run(&run));
	assert_int_equal(ops_trace_info(trace)->lost, 20);
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 1);
	ops_trace_unref(trace);
}

static void what_is_interrupted_is_not_recorded(void **state)
{
	struct run run;
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	launch("before", 1, 32, 100, 100);
	assert_int_equal(ops_device_toggle(run.devices, false, &error), OPS_OK);
	launch("between", 1, 32, 100, 100);
	assert_int_equal(ops_device_toggle(run.devices, true, &error), OPS_OK);
	launch("behind", 1, 32, 100, 100);
	fail_function("cuptiActivityEnable", CUPTI_ERROR_NOT_INITIALIZED);
	assert_int_equal(ops_device_toggle(run.devices, true, &error), OPS_STATE);
	assert_string_equal(error.text, "cannot resume recording devices: CUPTI does not collect activity: "
	                                "CUPTI_ERROR_NOT_INITIALIZED (15)");
	fail_function("", 0);
	trace = checked_trace(stop_run(&run));
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 2);
	find_row(trace, OPS_EVENT_KERNEL, "before");
	find_row(trace, OPS_EVENT_KERNEL, "behind");
	ops_trace_unref(trace);
}

/* A child has no CUDA and no thread that drains: it gets an error, and the parent's recording is complete. */
static void a_forked_process_is_refused(void **state)
{
	struct run run;
	struct ops_trace *trace;
	int status;
	pid_t child;

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	launch("kernel", 1, 32, 100, 100);
	child = fork();
	if (child == 0) {
		struct ops_device_session *session;
		struct ops_error error;
		uint32_t devices = 0;
		bool refused = ops_device_start(ops_cupti_collector(), OPS_ACTIVITY_ALL, &session, &error) == OPS_STATE &&
		            strstr(error.text, "the process was forked from one that records");

		refused = refused && ops_cuda_check(&devices, &error) == OPS_UNSUPPORTED && devices == 1 &&
		       strstr(error.text, "the process was forked from one that has initialised CUDA");
		_exit(!refused);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	trace = checked_trace(stop_run(&run));
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 1);
	ops_trace_unref(trace);
}

static void a_driver_that_is_too_old_is_named(void **state)
{
	char text[600];

	(void)state;
	setenv("FAKE_CUDA_VERSION", "12020", 1);
	fail_function("cuptiSubscribe", CUPTI_ERROR_NOT_INITIALIZED);
	snprintf(text, sizeof(text),
	         "cannot record devices with CUPTI: CUPTI does not start: the driver is made for CUDA 12.2, and '%s' for CUDA 13.5 (15)",
	         getenv("OPSTROBE_CUPTI"));
	assert_refused(OPS_STATE, text);
	fail_function("", 0);
	unsetenv("FAKE_CUDA_VERSION");
}

/* Records as no GPU would send them. */
static void odd_records_do_no_harm(void **state)
{
	struct run run;
	struct ops_trace *trace;
	CUpti_ActivityKernel9 kernel = {.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, .deviceId = 99, .gridX = -1,
	                                .start = UINT64_MAX / 4, .end = 5, .correlationId = UINT32_MAX};
	CUpti_ActivityMemcpy6 moved = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, .copyKind = 200, .srcKind = 99, .dstKind = 77,
	                              .start = 9, .end = 3};
	CUpti_ActivityMemcpy6 untimed = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY, .start = 9};
	CUpti_ActivityAPI call = {.kind = CUPTI_ACTIVITY_KIND_RUNTIME, .cbid = UINT32_MAX, .start = 9, .end = 3};
	CUpti_ActivitySynchronization2 sync = {.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, .type = 77,
	                                       .streamId = CUPTI_SYNCHRONIZATION_INVALID_VALUE, .start = 1, .end = 2};
	uint8_t unknown[64] = {0xff, 0xff, 0, 0};

	(void)state;
	start_run(&run, ops_cupti_collector(), OPS_ACTIVITY_ALL);
	emit(&kernel, sizeof(kernel));
	emit(&kernel, sizeof(kernel));
	emit(&moved, sizeof(moved));
	emit(&untimed, sizeof(untimed));
	emit(&call, sizeof(call));
	emit(&sync, sizeof(sync));
	emit(unknown, sizeof(unknown));
	trace = checked_trace(stop_run(&run));
	assert_int_equal(count_kind(trace, OPS_EVENT_KERNEL), 2);
	find_row(trace, OPS_EVENT_GPU_MEMCPY, "Memcpy <unknown> (Unrecognized -> Unrecognized)");
	find_row(trace, OPS_EVENT_RUNTIME, "INVALID");
	assert_arg(trace, find_row(trace, OPS_EVENT_SYNC, "Unknown Sync"), "stream", "-1");
	assert_int_equal(ops_trace_info(trace)->lost, 1);
	ops_trace_unref(trace);
}

static void without_a_device_it_says_so(void **state)
{
	(void)state;
	setenv("FAKE_CUDA_DEVICES", "0", 1);
	assert_refused(OPS_UNSUPPORTED, "cannot record devices with CUPTI: the driver reports no device");
	assert_int_equal(ops_cuda_check(NULL, NULL), OPS_UNSUPPORTED);
	unsetenv("FAKE_CUDA_DEVICES");
	assert_int_equal(ops_cuda_check(NULL, NULL), OPS_OK);
	assert_non_null(strstr(ops_cuda_describe(), "fake-cupti.so, version 130500"));
}

/* --- buffers -------------------------------------------------------------------------------------------------------- */

static void no_buffer_is_left_if_all_are_used(void **state)
{
	static struct ops_cupti_buffers buffers;
	uint8_t *taken[OPS_CUPTI_BUFFERS];
	size_t drained = 0;

	(void)state;
	for (size_t i = 0; i < OPS_CUPTI_BUFFERS; i++)
		assert_non_null(taken[i] = ops_cupti_buffers_claim(&buffers));
	assert_null(ops_cupti_buffers_claim(&buffers));
	for (size_t i = 0; i < OPS_CUPTI_BUFFERS; i++)
		ops_cupti_buffers_fill(&buffers, taken[i], i ? 100 : 0);
	for (struct ops_cupti_buffer *next, *full = ops_cupti_buffers_drain(&buffers); full; full = next) {
		assert_ptr_equal(full->bytes, taken[++drained]);
		next = full->next;
		ops_cupti_buffers_return(full);
	}
	assert_int_equal(drained, OPS_CUPTI_BUFFERS - 1);
	ops_cupti_buffers_release(&buffers);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_are_tied_to_operators),
		cmocka_unit_test(many_threads_fill_many_buffers),
		cmocka_unit_test(kernels_of_graphs_know_what_was_captured),
		cmocka_unit_test(nodes_of_graphs_wait_for_each_other),
		cmocka_unit_test(nodes_on_the_host_are_called_after_their_functions),
		cmocka_unit_test(unknown_edges_leave_launches_unchanged),
		cmocka_unit_test(a_context_that_ends_takes_no_records_along),
		cmocka_unit_test(sessions_follow_each_other),
		cmocka_unit_test(sessions_of_many_threads_keep_apart),
		cmocka_unit_test(work_under_way_is_waited_for),
		cmocka_unit_test(a_lost_device_is_reported),
		cmocka_unit_test(calls_that_say_nothing_have_no_rows),
		cmocka_unit_test(refusals_say_why),
		cmocka_unit_test(a_failing_flush_is_reported_and_keeps_records),
		cmocka_unit_test(failures_at_the_end_are_reported_once),
		cmocka_unit_test(signals_are_the_programs),
		cmocka_unit_test(without_buffers_records_are_counted),
		cmocka_unit_test(what_is_interrupted_is_not_recorded),
		cmocka_unit_test(a_forked_process_is_refused),
		cmocka_unit_test(a_driver_that_is_too_old_is_named),
		cmocka_unit_test(odd_records_do_no_harm),
		cmocka_unit_test(without_a_device_it_says_so),
		cmocka_unit_test(no_buffer_is_left_if_all_are_used),
	};

	return cmocka_run_group_tests(tests, load_fake, NULL);
}
