/* SPDX-License-Identifier: Apache-2.0
 *
 * analyze/views: each view of small traces, calculated by hand, and every allocation failing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/json.h"
#include "view_scene.h"

static void nothing_at_all(void **state)
{
	char *text = scene_views("", "");

	(void)state;
	assert_int_equal(ops_json_validate(text, strlen(text), NULL), OPS_OK);
	assert_has(text, "\"steps\":{\"from\":\"none\",\"names\":[],\"rows\":[],");
	assert_has(text, "\"memory\":null,\"modules\":null,\"communication\":null,\"recommendations\":[]");
	ops_free(text);
}

/* 3.4: a late kernel lengthens its step and delays the next; a last step that lost its kernels is dropped. */
static void steps_end_with_their_kernels(void **state)
{
	char *text = scene_views(VIEW_STEP(1, 0, 100) VIEW_OP("a", 10, 20, 5) VIEW_CALL(15, 5, 5, 1) VIEW_KERNEL("k", 90, 30, 1)
	                         VIEW_STEP(2, 100, 100) VIEW_OP("a", 110, 20, 6) VIEW_CALL(115, 5, 6, 2)
	                         VIEW_KERNEL("k", 150, 10, 2) VIEW_STEP(3, 200, 100), "");

	(void)state;
	assert_has(text, "\"names\":[\"1\",\"2\"]");
	assert_has(text, "{\"name\":\"1\",\"kernel\":30,\"memcpy\":0,\"memset\":0,\"communication\":0,\"runtime\":5,"
	                 "\"dataloader\":0,\"cpu_exec\":15,\"other\":70,\"total\":120,");
	assert_has(text, "{\"name\":\"2\",\"kernel\":10,\"memcpy\":0,\"memset\":0,\"communication\":0,\"runtime\":0,"
	                 "\"dataloader\":0,\"cpu_exec\":10,\"other\":60,\"total\":80,");
	ops_free(text);
}

/* Nothing is counted twice when a kernel takes all of the time. */
static void saturated_steps_add_up(void **state)
{
	char *text = scene_views(VIEW_STEP(1, 0, 100) VIEW_OP("a", 0, 50, 5) VIEW_CALL(0, 5, 5, 1) VIEW_KERNEL("k", 0, 100, 1), "");

	(void)state;
	assert_has(text, "\"kernel\":100,\"memcpy\":0,\"memset\":0,\"communication\":0,\"runtime\":0,\"dataloader\":0,"
	                 "\"cpu_exec\":0,\"other\":0,\"total\":100}");
	ops_free(text);
}

/* 3.1: the only child of the same name takes its parent's place; 3.3: sums. */
static void folded_and_summed(void **state)
{
	char *text = scene_views(VIEW_OP("a", 0, 100, 1) VIEW_OP("a", 10, 80, 2) VIEW_OP("b", 20, 30, 3) VIEW_CALL(25, 5, 3, 9)
	                         VIEW_KERNEL("k", 30, 40, 9), "");

	(void)state;
	assert_has(text, "{\"name\":\"b\",\"calls\":1,\"host_total\":30,\"host_self\":25,\"host_min\":30,\"host_max\":30,"
	                 "\"device_total\":40,\"device_self\":40,");
	assert_has(text, "{\"name\":\"a\",\"calls\":1,\"host_total\":100,\"host_self\":70,\"host_min\":100,\"host_max\":100,"
	                 "\"device_total\":40,\"device_self\":0,");
	ops_free(text);
}

/* Of two operators that overlap none is lost. */
static void overlapping_operators_stay(void **state)
{
	char *text = scene_views(VIEW_OP("a", 0, 100, 1) VIEW_OP("b", 50, 100, 2) VIEW_OP("c", 60, 20, 3), "");

	(void)state;
	assert_has(text, "{\"name\":\"b\",\"calls\":1,\"host_total\":100,\"host_self\":80,");
	assert_has(text, "{\"name\":\"a\",\"calls\":1,\"host_total\":100,\"host_self\":100,");
	ops_free(text);
}

/* What goes on after an asynchronous operator is over is still in the operator around it: calls and allocations, too. */
static void asynchronous_operators_contain_nothing(void **state)
{
	static const char later[] = "\"cat\":\"cpu_op\",\"name\":\"later\",\"id\":1,\"pid\":1,\"tid\":1";
	char rows[2048];
	char *text;

	snprintf(rows, sizeof(rows), "%s{\"ph\":\"b\",\"ts\":10,%s},{\"ph\":\"e\",\"ts\":30,%s},%s", VIEW_OP("a", 0, 100, 1), later, later,
	         VIEW_CALL(50, 5, 0, 9) VIEW_KERNEL("k", 60, 10, 9) VIEW_MEMORY(70, 512, 7, 512, 0, -1));
	(void)state;
	text = scene_views(rows, "");
	assert_has(text, "{\"name\":\"a\",\"calls\":1,\"host_total\":100,\"host_self\":95,\"host_min\":100,\"host_max\":100,"
	                 "\"device_total\":10,\"device_self\":10,");
	assert_has(text, "{\"name\":\"a\",\"calls\":1,\"increase\":512,\"self_increase\":512,");
	ops_free(text);
}

/* Ids that are correlations name nobody; what runs at the time does. */
static void links_by_time(void **state)
{
	char *text = scene_views(VIEW_OP("a", 0, 50, 1) VIEW_CALL(10, 5, 70, 70) VIEW_KERNEL("k", 60, 10, 70)
	                         VIEW_OP("b", 100, 50, 2) VIEW_CALL(110, 5, 71, 71) VIEW_KERNEL("k", 160, 20, 71), "");

	(void)state;
	assert_has(text, "{\"name\":\"b\",\"calls\":1,\"host_total\":50,\"host_self\":45,\"host_min\":50,\"host_max\":50,"
	                 "\"device_total\":20,\"device_self\":20,");
	assert_has(text, "{\"name\":\"a\",\"calls\":1,\"host_total\":50,\"host_self\":45,\"host_min\":50,\"host_max\":50,"
	                 "\"device_total\":10,\"device_self\":10,");
	ops_free(text);
}

/* A kernel that a label launched is under the label. */
static void labels_launch(void **state)
{
	char *text = scene_views(VIEW_ROW("user_annotation", "mine", 1, 1, 0, 50, "") VIEW_CALL(10, 5, 0, 3)
	                         VIEW_KERNEL("k", 20, 10, 3) VIEW_CALL(60, 5, 0, 4) VIEW_KERNEL("k", 70, 10, 4), "");

	(void)state;
	assert_has(text, "\"operator\":\"mine\",\"grid\":\"None\"");
	assert_has(text, "\"operator\":\"(no operator)\",\"grid\":\"None\"");
	ops_free(text);
}

/* What of the CPU's time is labels, where no operator runs, is distinguished. */
static void table_has(struct ops_trace *trace, enum ops_format format, const char *part)
{
	const struct ops_rank worker = {.trace = trace, .name = "w"};
	const struct ops_query_options options = {.size = sizeof(options), .format = format};
	struct ops_error error;
	char *text;
	size_t size;

	assert_int_equal(ops_query(&(struct ops_run){.ranks = &worker, .count = 1}, "overview", &options, &text, &size, &error), OPS_OK);
	assert_has(text, part);
	ops_free(text);
}

/* Of a trace and itself. */
static void difference_has(struct ops_trace *trace, enum ops_format format, const char *part)
{
	const struct ops_diff_options options = {.format = format};
	char *text;
	size_t size;

	assert_int_equal(ops_diff(trace, trace, &options, &text, &size, NULL, NULL), OPS_OK);
	assert_has(text, part);
	ops_free(text);
}

static void labels_are_not_device_work(void **state)
{
	char *text = scene_views(VIEW_STEP(1, 0, 100) VIEW_ROW("user_annotation", "mine", 1, 1, 10, 60, "")
	                         VIEW_OP("a", 20, 15, 1), "");
	struct ops_trace *trace;
	size_t size;

	(void)state;
	assert_has(text, "\"cpu_exec\":60,\"other\":40,\"total\":100,\"cpu_exec_labels\":45,");
	assert_has(text, "\"breakdown\":{\"rows\":[{\"name\":\"1\",\"kernel\":0,");
	assert_has(text, "\"cpu_exec\":15,\"other\":85,\"total\":100}},\"phases\":null,\"median\":100,");
	ops_free(text);
	trace = scene_read(VIEW_STEP(1, 0, 100) VIEW_ROW("user_annotation", "mine", 1, 1, 10, 60, "") VIEW_OP("a", 20, 15, 1), "");
	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, 0, &text, &size, NULL), OPS_OK);
	assert_has(text, "operators     15.0 µs  15.0 %");
	assert_has(text, "other         85.0 µs  85.0 %");
	ops_free(text);
	table_has(trace, OPS_FORMAT_CSV, "average step,cpu_exec,1,15,,\naverage step,other,1,85,,\naverage step,total,1,100,,\n");
	table_has(trace, OPS_FORMAT_MARKDOWN, "| average step | cpu_exec | 1 | 15.0 µs |");
	table_has(trace, OPS_FORMAT_MARKDOWN, "| average step | other | 1 | 85.0 µs |");
	difference_has(trace, OPS_FORMAT_JSON, "\"cpu_exec\":{\"left\":15,\"right\":15},\"other\":{\"left\":85,\"right\":85}");
	ops_trace_unref(trace);
}

/* What three decimals of a millisecond would show as nothing. */
static void times_below_a_microsecond(void **state)
{
	struct ops_trace *trace = scene_read(VIEW_STEP(1, 0, 2) VIEW_OP("a", 1, 0.4, 1) VIEW_OP("b", 1.5, 0.004, 2), "");
	struct ops_trace *slower = scene_read(VIEW_STEP(1, 0, 2) VIEW_OP("a", 1, 0.4, 1) VIEW_OP("b", 1.5, 0.008, 2), "");
	const struct ops_diff_options options = {.format = OPS_FORMAT_TEXT};
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, 0, &text, &size, NULL), OPS_OK);
	assert_has(text, "operators      404 ns  20.2 %");
	assert_has(text, "b              1      4 ns    4 ns ");
	ops_free(text);
	assert_int_equal(ops_diff(trace, slower, &options, &text, &size, NULL, NULL), OPS_OK);
	assert_has(text, "  4 ns  8 ns  +100 %");
	ops_free(text);
	ops_trace_unref(trace);
	ops_trace_unref(slower);
}

/* The host's call of a collective talks to nobody while none of its kernels runs. */
static void calls_are_not_communication(void **state)
{
	static const char rows[] = VIEW_STEP(1, 0, 200) VIEW_OP("nccl:all_reduce", 10, 30, 1) VIEW_CALL(20, 5, 1, 3)
		VIEW_ROW("kernel", "ncclDevKernel", 0, 7, 35, 65, "\"device\":0,\"correlation\":3,\"External id\":1");
	char *text = scene_views(rows, "");

	(void)state;
	assert_has(text, "\"communication\":90,");
	assert_has(text, "\"communication_calls\":25}");
	assert_has(text, "\"total_latency\":65}");
	ops_free(text);
}

#define KERNEL_OF(op, kernel, at, id)                                                              \
	VIEW_OP(op, at, 10, id) VIEW_CALL(at, 5, id, id) VIEW_KERNEL(kernel, at, 10, id)

/* Names since 2021, and those that only look as if. Without kernels the operators of old count alone. */
static void test_tensor_cores(void **state)
{
	char *text = scene_views(KERNEL_OF("aten::_scaled_mm", "nvjet_qqtst_128x128_TNT", 0, 1)
	                         KERNEL_OF("AddmmBackward0", "sm90_xmma_gemm_f32f32_tf32f32_f32_nn", 20, 2)
	                         KERNEL_OF("aten::mul", "sm80_xmma_gemm_f32f32_f32f32_f32_nn", 40, 3), "");

	(void)state;
	assert_has(text, "\"used_ratio\":0.6666666666666666,\"eligible_ops_kernel_ratio\":0.6666666666666666}");
	assert_has(text, "\"tensor_core_time_ratio\":0.6666666666666666,");
	assert_has(text, "\"operator\":\"aten::_scaled_mm\",\"grid\":\"None\",\"block\":\"None\",\"registers_per_thread\":null,"
	                 "\"shared_memory\":null,\"op_tc_eligible\":true");
	ops_free(text);
	text = scene_views(VIEW_OP("AddmmBackward0", 0, 10, 1), "");
	assert_has(text, "\"tc_eligible\":false");
	ops_free(text);
}

/* Half of the time of vLLM on a B200 (the trace b200_vllm_eager has the last two) was that of kernels of none. */
static void tensor_cores_of_hopper_and_blackwell(void **state)
{
	static const char *const names[] = {
		"void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>>",
		"fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
		"bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN_transOut_sm100",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char rows[1000], *text;

		snprintf(rows, sizeof(rows), KERNEL_OF("aten::_scaled_mm", "%s", 0, 1), names[i]);
		text = scene_views(rows, "");
		assert_has(text, "\"used_ratio\":1,");
		ops_free(text);
	}
}

/* Where an operator was called from, by the Python functions around it. */
static void test_python_stacks(void **state)
{
	char *text = scene_views(VIEW_ROW("python_function", "a.py(1): f", 1, 1, 0, 50, "\"Python id\":1") VIEW_OP("a", 10, 10, 1)
	                         VIEW_OP("a", 30, 10, 2) VIEW_ROW("python_function", "a.py(5): g", 1, 1, 60, 50, "\"Python id\":2")
	                         VIEW_OP("a", 70, 10, 3), "");

	(void)state;
	assert_has(text, "\"call_stacks\":{\"operators_with_stacks\":0,");
	assert_has(text, "\"python_stacks\":{\"operators_with_stacks\":1,\"distinct_stacks\":2,\"per_operator\":{\"a\":2}}");
	ops_free(text);
}

/* Owners, statistics, and pairs by device and address. */
static void test_memory(void **state)
{
	char *text = scene_views(VIEW_OP("a", 0, 100, 1) VIEW_OP("aten::empty", 10, 20, 2) VIEW_MEMORY(15, 64, 32, 64, 0, -1)
	                         VIEW_MEMORY(50, 8, 32, 8, 1, 0) VIEW_MEMORY(200, -64, 32, 0, 0, -1), "");

	(void)state;
	assert_has(text, "\"peaks\":{\"CPU\":64,\"GPU0\":8}");
	assert_has(text, "{\"name\":\"a\",\"calls\":1,\"increase\":64,\"self_increase\":0,\"alloc_count\":1,"
	                 "\"self_alloc_count\":0,\"alloc_size\":64,\"self_alloc_size\":0}");
	assert_has(text, "{\"operator\":\"a (aten::empty)\",\"size\":64,\"alloc_ts\":15,\"free_ts\":200,\"duration\":185}");
	assert_has(text, "{\"operator\":\"a\",\"size\":8,\"alloc_ts\":50,\"free_ts\":null,\"duration\":null}");
	ops_free(text);
}

/* Devices of every type, by the names that torch gives them: HIP is 6, XPU 12, MTIA 19, a backend of one's own 20. */
static void memory_of_other_devices(void **state)
{
	static const char rows[] = VIEW_OP("a", 0, 100, 1) VIEW_MEMORY(10, 1, 32, 1, 0, -1) VIEW_MEMORY(20, 20, 32, 20, 20, 1)
		VIEW_MEMORY(30, 19, 32, 19, 19, 0) VIEW_MEMORY(40, 12, 32, 12, 12, 0) VIEW_MEMORY(50, 6, 32, 6, 6, 1)
		VIEW_MEMORY(60, 7, 32, 7, 1, -1) VIEW_MEMORY(70, -12, 32, 0, 12, 0);
	static const char near[] = "\"deviceProperties\":[{\"id\":0,\"totalGlobalMem\":13},{\"id\":1,\"totalGlobalMem\":6}],";
	struct ops_trace *trace = scene_read(rows, "");
	char *text = scene_views(rows, near);
	size_t size;

	(void)state;
	assert_has(text, "\"peaks\":{\"CPU\":1,\"GPU\":7,\"HIP1\":6,\"XPU0\":12,\"MTIA0\":19,\"PRIVATEUSEONE1\":20}");
	assert_has(text, "\"default_device\":\"GPU\"");
	assert_has(text, "\"XPU0\":{\"rows\":1,\"paired\":1,");
	assert_has(text, "\"HIP1\":{\"rows\":1,\"paired\":0,\"alloc_only\":1,");
	assert_has(text, "GPU_MEMORY_NEAR_LIMIT");
	ops_free(text);
	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, 0, &text, &size, NULL), OPS_OK);
	assert_has(text, "GPU 0             12 B  40.000 µs  a\n");
	assert_has(text, "GPU 1              6 B  50.000 µs  a\n");
	ops_free(text);
	ops_trace_unref(trace);
}

#define CALL(name, ts, dur, id, parent, module)                                                    \
	VIEW_ROW("python_function", name, 1, 1, ts, dur,                                               \
	         "\"Python id\":" #id ",\"Python parent id\":" #parent ",\"Python module id\":" #module)

/* 10: equal calls are one node; functions between modules do not count. */
static void test_modules(void **state)
{
	char *text = scene_views(CALL("nn.Module: Net_0", 0, 100, 1, null, 0)
	                         VIEW_ROW("python_function", "f", 1, 1, 5, 80, "\"Python id\":2,\"Python parent id\":1")
	                         CALL("nn.Module: Linear_0", 10, 40, 3, 2, 4) VIEW_OP("a", 20, 10, 9)
	                         CALL("nn.Module: Net_0", 200, 100, 11, null, 0) CALL("nn.Module: Linear_0", 210, 20, 13, 11, 4), "");

	(void)state;
	assert_has(text, "\"modules\":[{\"name\":\"Net_0\",\"module_id\":0,\"occurrences\":2,\"operators\":0,\"host_total\":200,"
	                 "\"host_self\":140,\"host_self_with_operators\":140,\"device_total\":0,\"device_self\":0,"
	                 "\"backward_host_total\":0,\"backward_device_total\":0,\"avg_duration\":100,\"children\":[{"
	                 "\"name\":\"Linear_0\",\"module_id\":4,\"occurrences\":2,\"operators\":1,\"host_total\":60,"
	                 "\"host_self\":50,\"host_self_with_operators\":60,\"device_total\":0,\"device_self\":0,"
	                 "\"backward_host_total\":0,\"backward_device_total\":0,\"avg_duration\":30,\"children\":[]}]}]");
	ops_free(text);
}

/* 5: exactly on a threshold nothing fires, just beyond it does. */
static void test_thresholds(void **state)
{
	char *text = scene_views(VIEW_STEP(1, 0, 1000)
	                         VIEW_ROW("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 1, 1, 0, 50, ""), "");

	(void)state;
	assert_has(text, "\"recommendations\":[]");
	ops_free(text);
	text = scene_views(VIEW_STEP(1, 0, 1000)
	                   VIEW_ROW("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 1, 1, 0, 51, ""), "");
	assert_has(text, "\"recommendations\":[{\"id\":\"DATALOADER_BOUND\",\"percent\":5.1}]");
	ops_free(text);
}

/* Only names of NVIDIA's kernels show tensor cores: capability 9 of an AMD device has another meaning. */
static void tensor_cores_of_nvidia_only(void **state)
{
	static const char mm[] = KERNEL_OF("aten::mm", "Cijk_Ailk_Bljk_BBS_BH_MT64x16x64_SE", 0, 1);
	char *text = scene_views(mm, "\"deviceProperties\":[{\"id\":0,\"computeMajor\":9,\"warpSize\":32}],");

	(void)state;
	assert_has(text, "\"id\":\"ENABLE_AMP\"");
	ops_free(text);
	text = scene_views(mm, "\"deviceProperties\":[{\"id\":0,\"computeMajor\":9,\"warpSize\":64}],");
	assert_has_not(text, "\"id\":\"ENABLE_AMP\"");
	ops_free(text);
}

/* A trace in which everything occurs. */
static const char everything[] =
	VIEW_STEP(1, 0, 400) VIEW_OP("a", 0, 100, 1) VIEW_OP("aten::mm", 10, 20, 2) VIEW_CALL(12, 5, 2, 9)
	VIEW_ROW("kernel", "k", 0, 7, 30, 40, "\"device\":0,\"correlation\":9,\"grid\":[1,2,3],\"block\":[4,5,6],"
	         "\"blocks per SM\":0.5,\"est. achieved occupancy %\":50,\"registers per thread\":8,\"shared memory\":0")
	VIEW_MEMORY(15, 64, 32, 64, 0, -1) VIEW_MEMORY(16, 64, 48, 64, 1, 0) VIEW_MEMORY(200, -64, 32, 0, 0, -1)
	CALL("nn.Module: Net_0", 110, 100, 1, null, 0) CALL("nn.Module: Linear_0", 120, 20, 3, 1, 4)
	VIEW_ROW("cpu_op", "nccl:all_reduce", 1, 2, 220, 50,
	         "\"External id\":7,\"Input Dims\":[[8]],\"Input type\":[\"float\"],\"Call stack\":\"f.py(1): f\"")
	VIEW_ROW("kernel", "ncclDevKernel", 0, 8, 230, 60, "\"device\":0,\"correlation\":11,\"External id\":7")
	VIEW_ROW("cuda_runtime", "cudaLaunchKernel", 1, 2, 225, 5, "\"External id\":7,\"correlation\":11")
	VIEW_STEP(2, 400, 400) VIEW_OP("a", 400, 100, 21) VIEW_CALL(412, 5, 21, 22) VIEW_KERNEL("k", 430, 40, 22);
static const char devices[] =
	"\"deviceProperties\":[{\"id\":0,\"name\":\"GPU\",\"totalGlobalMem\":100,\"computeMajor\":8,\"computeMinor\":0}],";

static void collectives_take_their_kernels_time(void **state)
{
	char *text = scene_views(everything, devices);

	(void)state;
	assert_has(text, "{\"name\":\"nccl:all_reduce\",\"calls\":1,\"total_bytes\":32,\"total_latency\":60}");
	assert_has(text, "\"latency_per_step\":{\"1\":70}");
	assert_has(text, "\"grid\":\"[1, 2, 3]\",\"block\":\"[4, 5, 6]\",\"registers_per_thread\":8,\"shared_memory\":0");
	assert_has(text, "\"per_operator\":{\"nccl:all_reduce\":1}");
	assert_int_equal(ops_json_validate(text, strlen(text), NULL), OPS_OK);
	ops_free(text);
}

/* A gap has the event that lasts through most of it. */
static void text_for_eyes(void **state)
{
	struct ops_trace *trace = scene_read(everything, devices);
	char *text;
	size_t size;

	(void)state;
	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, 0, &text, &size, NULL), OPS_OK);
	assert_has(text, "\ncommunication ");
	assert_has(text, "nccl:all_reduce      1  60.0 µs  32 B\n");
	assert_has(text, "\nover time  ");
	assert_has(text, "█");
	ops_free(text);
	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, OPS_VIEWS_ASCII, &text, &size, NULL), OPS_OK);
	assert_has(text, "#");
	for (size_t i = 0; i < size; i++)
		assert_true((unsigned char)text[i] < 0x80);
	ops_free(text);
	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, OPS_VIEWS_MARKDOWN, &text, &size, NULL), OPS_OK);
	assert_has(text, "| `nccl:all_reduce` | 1 | 60.0 µs | 32 B |\n");
	ops_free(text);
	ops_trace_unref(trace);
	trace = scene_read(VIEW_STEP(1, 0, 1000) VIEW_OP("a", 0, 100, 1) VIEW_OP("a", 900, 100, 2)
	                   VIEW_ROW("user_annotation", "enumerate(DataLoader)#_Iter.__next__", 1, 1, 150, 700, ""), "");
	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, 0, &text, &size, NULL), OPS_OK);
	assert_has(text, "longest gaps                          length          at\nenumerate(DataLoader)#_Iter.__next__  800 µs  100.000 µs\n");
	ops_free(text);
	ops_trace_unref(trace);
}

#define STACK(name, ts, dur, stack) VIEW_ROW("cpu_op", name, 1, 1, ts, dur, "\"Call stack\":\"" stack "\"")

static void assert_line(const struct ops_trace *trace, const char *name, const char *file, uint32_t line)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint32_t row = 0, found;
	struct ops_string text;

	while (row < events->count && strcmp(ops_trace_string(trace, events->name[row]).bytes, name) != 0)
		row++;
	assert_true(row < events->count);
	text = ops_event_line(trace, row, &found);
	assert_int_equal(text.size, strlen(file));
	assert_memory_equal(text.bytes, file, text.size);
	assert_int_equal(found, line);
}

/* torch 1.8 to 1.11 wrote an operator's stack as text, without Python functions: the innermost frame that is not torch's. */
static void lines_of_stacks_in_texts(void **state)
{
	static const char rows[] =
		STACK("a", 0, 100, "/lib/torch/nn/modules/module.py(1051): _call_impl;model.py(10): forward;train.py(9): main")
		VIEW_OP("inside a", 10, 20, 1) STACK("b", 200, 10, "train.py(12): main;") STACK("c", 300, 10, "torch/x.py(1): f")
		STACK("d", 400, 10, "") STACK("e", 500, 10, ";;no frame;a;b.py(7): x")
		VIEW_ROW("python_function", "mine.py(3): f", 1, 1, 600, 50, "\"Python id\":1")
		STACK("f", 610, 10, "other.py(4): g") STACK("nn", 620, 10, "torch/x.py(1): f");
	struct ops_trace *trace = scene_read(rows, "");
	char *text;
	size_t size;

	(void)state;
	assert_line(trace, "a", "model.py", 10);
	assert_line(trace, "inside a", "model.py", 10);
	assert_line(trace, "b", "train.py", 12);
	assert_line(trace, "c", "", 0);
	assert_line(trace, "d", "", 0);
	assert_line(trace, "e", "b.py", 7);
	assert_line(trace, "f", "mine.py", 3);
	assert_line(trace, "nn", "mine.py", 3);
	assert_int_equal(ops_views_text(trace, OPS_RULES_OPSTROBE, 0, &text, &size, NULL), OPS_OK);
	assert_has(text, "model.py:10");
	assert_has(text, "train.py:12");
	ops_free(text);
	ops_trace_unref(trace);
}

static const struct {
	const char *id, *args;
} all_tables[] = {
	{"overview", NULL}, {"kernels", NULL}, {"kernels", "{\"by_operator\": true}"},
	{"kernels", "{\"by_category\": true}"}, {"modules", NULL},
	{"modules", "{\"by_class\": true}"}, {"memory", NULL},
};

static void make_views(void *context)
{
	struct ops_error error = {0};
	char *text = NULL;
	size_t size;
	enum ops_code code = ops_views_json(context, OPS_RULES_OPSTROBE, &text, &size, &error);

	assert_true(code ? code == OPS_NO_MEMORY && !text : text != NULL);
	ops_free(text);
	text = NULL;
	for (unsigned look = OPS_VIEWS_COLOURS; look <= OPS_VIEWS_MARKDOWN; look <<= 1) {
		text = NULL;
		code = ops_views_text(context, OPS_RULES_OPSTROBE, look, &text, &size, &error);
		assert_true(code ? code == OPS_NO_MEMORY && !text : text != NULL);
		ops_free(text);
	}
	for (size_t i = 0; i < sizeof(all_tables) / sizeof(all_tables[0]); i++) {
		const struct ops_rank worker = {.trace = context, .name = "w"};
		const struct ops_query_options options = {
			.size = sizeof(options), .format = OPS_FORMAT_CSV, .args = all_tables[i].args};

		text = NULL;
		code = ops_query(&(struct ops_run){.ranks = &worker, .count = 1}, all_tables[i].id, &options, &text, &size, &error);
		assert_true(code ? code == OPS_NO_MEMORY && !text : text != NULL);
		ops_free(text);
	}
}

static void table_is(struct ops_trace *trace, const char *id, const char *args, size_t workers, const char *expected)
{
	const struct ops_rank both[2] = {{.trace = trace, .name = "w1"}, {.trace = trace, .name = "w2"}};
	const struct ops_run run = {.ranks = both, .count = workers};
	const struct ops_query_options options = {.size = sizeof(options), .format = OPS_FORMAT_CSV, .args = args};
	struct ops_error error;
	char *text;
	size_t size;

	assert_int_equal(ops_query(&run, id, &options, &text, &size, &error), OPS_OK);
	assert_string_equal(text, expected);
	ops_free(text);
}

static void tables(void **state)
{
	struct ops_trace *trace = scene_read(everything, devices);

	(void)state;
	table_is(trace, "overview", "{\"limit\": 1}", 1,
	         "view,name,calls,total_us,self_us,device_us\naverage step,kernel,1,40,,\naverage step,memcpy,1,0,,\n"
	         "average step,memset,1,0,,\naverage step,communication,1,60,,\naverage step,runtime,1,5,,\n"
	         "average step,dataloader,1,0,,\naverage step,cpu_exec,1,65,,\naverage step,other,1,230,,\n"
	         "average step,total,1,400,,\nstep,1,1,400,,40\n"
	         "steps,median,1,400,,\nsteps,p95,1,400,,\nphase,data_loading,1,0,,0\nphase,forward,1,100,,0\nphase,backward,1,0,,0\nphase,optimizer,1,0,,0\n"
	         "phase,other,1,300,,100\noperator,nccl:all_reduce,1,50,45,60\n"
	         "kernel,k,2,80,80,80\n");
	table_is(trace, "kernels", "{\"limit\": 1}", 2,
	         "worker,name,calls,total_us,percent,step_us,step_calls,mean_us,min_us,max_us,blocks_per_sm,occupancy_percent,tensor_cores\n"
	         "w1,k,2,80,57.142857,40,1,40,40,40,0.25,25,no\nw2,k,2,80,57.142857,40,1,40,40,40,0.25,25,no\n");
	table_is(trace, "kernels", "{\"limit\": 1, \"by_operator\": true}", 1,
	         "name,operator,grid,block,calls,total_us,percent,step_us,step_calls,mean_us,min_us,max_us,blocks_per_sm,occupancy_percent,"
	         "tensor_cores\nncclDevKernel,nccl:all_reduce,None,None,1,60,42.857143,30,0.5,60,60,60,0,0,no\n");
	table_is(trace, "modules", "{\"limit\": 1}", 1,
	         "path,class,depth,calls,parameters,percent,step_us,host_us,call_us,backward_us,device_us,backward_device_us,self_host_us,"
	         "self_device_us,flops,cpu_memory_bytes,device_memory_bytes,cpu_allocated_bytes,cpu_peak_bytes,"
	         "device_allocated_bytes,device_peak_bytes\nNet_0,Net,0,1,0,12.5,50,100,100,0,0,0,80,0,0,-64,0,0,0,0,0\n");
	table_is(trace, "memory", "{\"limit\": 1}", 1,
	         "device,held_by,name,line,bytes,percent,blocks\ncpu,all,,,64,100,1\n"
	         "cpu,category,UNKNOWN,,64,100,\ncpu,operator,a,,64,100,1\ncuda:0,all,,,64,100,1\n"
	         "cuda:0,category,UNKNOWN,,64,100,\ncuda:0,operator,a,,64,100,1\n");
	ops_trace_unref(trace);
}

/* Two steps of 100 us on the host. By category: products 30 + 50 + 20 = 100, communication 60, copies and fills 35 + 5,
 * pointwise 0; all work takes 200 us. */
static void categories_of_work(void **state)
{
	struct ops_trace *trace = scene_read(
		VIEW_STEP(1, 0, 100) VIEW_OP("a", 4, 20, 5) VIEW_CALL(5, 1, 5, 1) VIEW_CALL(6, 1, 5, 2) VIEW_CALL(7, 1, 5, 3)
		VIEW_KERNEL("sm90_xmma_gemm_bf16", 10, 30, 1) VIEW_KERNEL("Cijk_Ailk_Bljk", 40, 50, 2) VIEW_KERNEL("nvjet_tst_128x8", 90, 20, 3)
		VIEW_STEP(2, 100, 100) VIEW_OP("a", 104, 20, 6) VIEW_CALL(105, 1, 6, 4) VIEW_CALL(106, 1, 6, 5) VIEW_CALL(107, 1, 6, 6)
		VIEW_KERNEL("ncclDevKernel_AllReduce", 110, 60, 4) VIEW_KERNEL("vectorized_elementwise_kernel", 170, 0, 5)
		"{\"ph\":\"X\",\"cat\":\"gpu_memcpy\",\"name\":\"Memcpy HtoD\",\"pid\":0,\"tid\":7,\"ts\":170,\"dur\":35,\"args\":{\"device\":0,\"correlation\":6}},"
		"{\"ph\":\"X\",\"cat\":\"gpu_memset\",\"name\":\"Memset\",\"pid\":0,\"tid\":7,\"ts\":205,\"dur\":5,\"args\":{\"device\":0}},", "");

	(void)state;
	table_is(trace, "kernels", "{\"by_category\": true}", 1,
	         "category,calls,total_us,percent,step_us,step_calls\nmatrix_product,3,100,50,50,1.5\n"
	         "communication,1,60,30,30,0.5\nmemory,2,40,20,17.5,0.5\npointwise,1,0,0,0,0.5\n");
	table_is(trace, "kernels", "{\"by_category\": true, \"limit\": 1}", 2,
	         "worker,category,calls,total_us,percent,step_us,step_calls\nw1,matrix_product,3,100,50,50,1.5\n"
	         "w2,matrix_product,3,100,50,50,1.5\n");
	ops_trace_unref(trace);
}

static void no_steps_no_figures_per_step(void **state)
{
	struct ops_trace *trace = scene_read(VIEW_KERNEL("gemm", 10, 30, 1), "");

	(void)state;
	table_is(trace, "kernels", "{\"by_category\": true}", 1,
	         "category,calls,total_us,percent,step_us,step_calls\nmatrix_product,1,30,100,,\n");
	ops_trace_unref(trace);
}

static void survives_failures(void **state)
{
	struct ops_trace *trace = scene_read(everything, devices);

	(void)state;
	assert_true(fail_each(make_views, trace) > 40);
	ops_trace_unref(trace);
}

#define HUGE_OP(tid) VIEW_ROW("cpu_op", "a", 1, tid, -3900000000000000, 3900000000000000, "")

/* Sums stop at the ends of their type. */
static void numbers_without_sense(void **state)
{
	char *text = scene_views(HUGE_OP(1) HUGE_OP(2) HUGE_OP(3) VIEW_MEMORY(5, 9223372036854775807, 1, 1, 0, -1)
	                         VIEW_MEMORY(6, 9223372036854775807, 2, 1, 0, -1)
	                         VIEW_ROW("kernel", "k", 0, 7, 3900000000000000, 3900000000000000, "\"device\":0"), "");

	(void)state;
	assert_int_equal(ops_json_validate(text, strlen(text), NULL), OPS_OK);
	assert_has(text, "{\"name\":\"a\",\"calls\":3,\"host_total\":9223372036854775.807,");
	ops_free(text);
}

/* A tree of modules and operators as deep as it gets. */
static void any_depth_is_possible(void **state)
{
	size_t room = 40000000, size = 0;
	char *rows = malloc(room), *text;
	struct ops_trace *trace;
	struct ops_error error;

	(void)state;
	assert_non_null(rows);
	size += (size_t)snprintf(rows, room, "[");
	for (int i = 0; i < 50000; i++)
		size += (size_t)snprintf(rows + size, room - size,
		                         "{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"nn.Module: M\",\"pid\":1,\"tid\":1,"
		                         "\"ts\":%d,\"dur\":%d,\"args\":{\"Python id\":%d,\"Python parent id\":%d,"
		                         "\"Python module id\":1}},"
		                         "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"a%d\",\"pid\":1,\"tid\":2,\"ts\":%d,\"dur\":%d},",
		                         i, 200000 - 2 * i, i + 1, i, i, i, 200000 - 2 * i);
	assert_int_equal(ops_trace_read_memory(rows, size, NULL, &trace, &error), OPS_OK);
	assert_int_equal(ops_views_json(trace, OPS_RULES_OPSTROBE, &text, &size, &error), OPS_OK);
	assert_has(text, "\"operators\":{\"distinct\":50000,");
	ops_free(text);
	ops_trace_unref(trace);
	free(rows);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_at_all),
		cmocka_unit_test(steps_end_with_their_kernels),
		cmocka_unit_test(saturated_steps_add_up),
		cmocka_unit_test(folded_and_summed),
		cmocka_unit_test(overlapping_operators_stay),
		cmocka_unit_test(asynchronous_operators_contain_nothing),
		cmocka_unit_test(links_by_time),
		cmocka_unit_test(labels_launch),
		cmocka_unit_test(labels_are_not_device_work),
		cmocka_unit_test(times_below_a_microsecond),
		cmocka_unit_test(lines_of_stacks_in_texts),
		cmocka_unit_test(calls_are_not_communication),
		cmocka_unit_test(test_tensor_cores),
		cmocka_unit_test(tensor_cores_of_hopper_and_blackwell),
		cmocka_unit_test(test_python_stacks),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(memory_of_other_devices),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_thresholds),
		cmocka_unit_test(tensor_cores_of_nvidia_only),
		cmocka_unit_test(collectives_take_their_kernels_time),
		cmocka_unit_test(text_for_eyes),
		cmocka_unit_test(tables),
		cmocka_unit_test(categories_of_work),
		cmocka_unit_test(no_steps_no_figures_per_step),
		cmocka_unit_test(survives_failures),
		cmocka_unit_test(numbers_without_sense),
		cmocka_unit_test(any_depth_is_possible),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
