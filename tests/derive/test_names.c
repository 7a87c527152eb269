/* SPDX-License-Identifier: Apache-2.0
 *
 * Classification by names: calls, steps, classes of work and collectives.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "derive/calls.h"
#include "derive/modules.h"
#include "derive/steps.h"
#include "derive/work.h"

static struct ops_string text(const char *bytes)
{
	return (struct ops_string){bytes, strlen(bytes)};
}

static void calls_of_all_runtimes(void **state)
{
	static const char *const launches[] = {
		"cudaLaunchKernel", "cudaLaunchKernel_v7000", "cudaLaunchKernel_ptsz", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel",
		"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchKernel_ptsz", "hipLaunchKernel", "hipModuleLaunchKernel",
		"hipExtModuleLaunchKernel", "urEnqueueKernelLaunch", "zeCommandListAppendLaunchKernel",
		"runFunction - job_prep_and_submit_for_execution"};
	static const char *const graphs[] = {"cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch", "urEnqueueCommandBufferExp"};
	static const char *const waits[] = {"cudaDeviceSynchronize", "cudaStreamSynchronize", "cuCtxSynchronize", "hipEventSynchronize",
	                                    "urQueueFinish", "zeEventHostSynchronize", "cudaThreadSynchronize"};
	static const char *const nothing[] = {"", "cudaMalloc", "cudaLaunch_", "LaunchKernel", "cudaStreamIsCapturing", "cudaEventRecord",
	                                      "_v2", "aten::mm", "cudaGraphLaunchs"};

	(void)state;
	for (size_t i = 0; i < sizeof(launches) / sizeof(*launches); i++)
		assert_int_equal(ops_call_of(text(launches[i])), OPS_CALL_LAUNCH);
	for (size_t i = 0; i < sizeof(graphs) / sizeof(*graphs); i++)
		assert_int_equal(ops_call_of(text(graphs[i])), OPS_CALL_LAUNCH | OPS_CALL_GRAPH);
	for (size_t i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		assert_int_equal(ops_call_of(text(waits[i])), OPS_CALL_BLOCKS);
	for (size_t i = 0; i < sizeof(nothing) / sizeof(*nothing); i++)
		assert_int_equal(ops_call_of(text(nothing[i])), 0);
}

static void copies_and_fills(void **state)
{
	(void)state;
	assert_int_equal(ops_call_of(text("cudaMemcpyAsync")), OPS_CALL_COPY);
	assert_int_equal(ops_call_of(text("cuMemcpyHtoDAsync_v2_ptsz")), OPS_CALL_COPY);
	assert_int_equal(ops_call_of(text("cudaMemcpy")), OPS_CALL_COPY | OPS_CALL_BLOCKS);
	assert_int_equal(ops_call_of(text("hipMemcpyWithStream")), OPS_CALL_COPY | OPS_CALL_BLOCKS);
	assert_int_equal(ops_call_of(text("hipMemsetAsync")), OPS_CALL_SET);
	assert_int_equal(ops_call_of(text("cuMemsetD32Async_v2")), OPS_CALL_SET);
	assert_int_equal(ops_call_of(text("urEnqueueUSMMemcpy")), OPS_CALL_COPY);
}

static void steps_have_a_number(void **state)
{
	static const char *const steps[] = {"ProfilerStep#12", "ProfilerStep #12", "ProfilerStep # 12", "ProfilerStep#012"};
	static const char *const others[] = {"ProfilerStep", "ProfilerStep#", "ProfilerStep#last", "ProfilerStep#12 of 3",
	                                     "ProfilerStep12", "MyProfilerStep#12", "ProfilerStep#1234567890123456789", ""};
	int64_t number;

	(void)state;
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		number = -1;
		assert_true(ops_step_number(text(steps[i]), &number));
		assert_int_equal(number, 12);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_false(ops_step_number(text(others[i]), &number));
}

static void work_by_name_and_kind(void **state)
{
	static const char *const communication[] = {
		"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclKernel_Broadcast_RING_LL_Sum_int8_t",
		"void rcclGenericKernel<1, false>(ncclDevKernelArgsStorage<4096ul>)",
		"void vllm::cross_device_reduce_1stage<float, 2>(int)",
		"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
		"void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16*)",
		"void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8>(AllReduceParams)",
		"void quickreduce::allreduce_prototype_twoshot<quickreduce::AllReduceTwoshot<8> >()", "nvshmemi_transfer_rma"};
	static const char *const compute[] = {"gemm", "void at::native::reduce_kernel<512, 1>()", "batch_norm_backward_reduce",
	                                      "void splitKreduce_kernel<32, 16>()", "vectorized_gather_kernel", ""};

	(void)state;
	for (size_t i = 0; i < sizeof(communication) / sizeof(*communication); i++)
		assert_int_equal(ops_work_of(OPS_EVENT_KERNEL, text(communication[i])), OPS_WORK_COMMUNICATION);
	for (size_t i = 0; i < sizeof(compute) / sizeof(*compute); i++)
		assert_int_equal(ops_work_of(OPS_EVENT_KERNEL, text(compute[i])), OPS_WORK_COMPUTE);
	assert_int_equal(ops_work_of(OPS_EVENT_KERNEL, text("__amd_rocclr_copyBuffer.kd")), OPS_WORK_COPY);
	assert_int_equal(ops_work_of(OPS_EVENT_KERNEL, text("__amd_rocclr_fillBufferAligned.kd")), OPS_WORK_SET);
	assert_int_equal(ops_work_of(OPS_EVENT_GPU_MEMCPY, text("anything")), OPS_WORK_COPY);
	assert_int_equal(ops_work_of(OPS_EVENT_GPU_MEMSET, text("anything")), OPS_WORK_SET);
	assert_int_equal(ops_work_of(OPS_EVENT_SYNC, text("anything")), OPS_WORK_SYNC);
}

static void collectives_by_backend(void **state)
{
	(void)state;
	assert_int_equal(ops_collective_of(text("nccl:all_reduce")), OPS_COLLECTIVE_DEVICE);
	assert_int_equal(ops_collective_of(text("nccl:send 0->1")), OPS_COLLECTIVE_DEVICE);
	assert_int_equal(ops_collective_of(text("xccl:all_gather")), OPS_COLLECTIVE_DEVICE);
	assert_int_equal(ops_collective_of(text("gloo:all_reduce")), OPS_COLLECTIVE_HOST);
	assert_int_equal(ops_collective_of(text("nccl:end_coalescing")), OPS_COLLECTIVE_NONE);
	assert_int_equal(ops_collective_of(text("c10d::allreduce_")), OPS_COLLECTIVE_NONE); /* which calls the backend */
	assert_int_equal(ops_collective_of(text("all_reduce")), OPS_COLLECTIVE_NONE);
}

static void modules_by_path_and_class(void **state)
{
	static const struct {
		const char *name, *path, *class_name;
	} all[] = {
		{"nn.Module: Linear_0", "Linear_0", "Linear"},
		{"nn.Module: Linear", "Linear", "Linear"},
		{"nn.Module: _12", "_12", "_12"},
		{"nn.Module: ", "", ""},
		{"Conv2d_1", "Conv2d_1", "Conv2d"},
		{"[pl][module]torch.nn.modules.linear.Linear: net.0", "net.0", "Linear"},
		{"[pl][module]Net: model", "model", "Net"},
		{"[pl][module]net_3", "net_3", "net"},
		{"[pl][module]", "", ""},
		{"", "", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct ops_string path = ops_module_path(text(all[i].name)), class_name = ops_module_class(text(all[i].name));

		assert_int_equal(path.size, strlen(all[i].path));
		assert_memory_equal(path.bytes, all[i].path, path.size);
		assert_int_equal(class_name.size, strlen(all[i].class_name));
		assert_memory_equal(class_name.bytes, all[i].class_name, class_name.size);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_all_runtimes),    cmocka_unit_test(copies_and_fills),
		cmocka_unit_test(steps_have_a_number),    cmocka_unit_test(work_by_name_and_kind),
		cmocka_unit_test(collectives_by_backend), cmocka_unit_test(modules_by_path_and_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
