/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of device work by name; see work.h. The order of the tests matters: a copy is a copy whatever issues it, and
 * names of communication libraries come before words that those names could also contain.
 */
#include "derive/work.h"

#include "base/text.h"

static bool communicates(struct ops_string name)
{
	static const char *const libraries[] = {"nccl", "hccl", "rccl", "oneccl", "nvshmem", "mscclpp", "deep_ep::", NULL};
	static const char *const kernels[] = {
		"ncclKernel", "ncclDevKernel", "rcclGenericKernel", "nvshmemi_", "nvshmem_",
		/* Custom all-reduce kernels of vLLM, SGLang, aiter and TensorRT-LLM; torch's symmetric memory; Triton
		 * kernels of the same names. */
		"cross_device_reduce", "allreduce_fusion_kernel", "allreduce_prototype_", "quickreduce::", "deep_ep::",
		"multimem_all_reduce", "multimem_one_shot_", "multimem_all_gather", "multimem_reduce_scatter",
		"one_shot_all_reduce", "two_shot_all_reduce", "one_shot_allreduce", "two_shot_allreduce",
		"oneShotAllReduce", "twoShotAllReduce", "oneshotAllreduce", "twoshotAllreduce",
		"all_reduce_kernel", "allreduce_kernel", "allReduceKernel", "AllReduceKernel",
		"all_gather_kernel", "allgather_kernel", "AllGatherKernel", "reduce_scatter_kernel", "ReduceScatterKernel",
		"all_to_all_kernel", "AllToAllKernel", "userbuffers_fp16_sum", "userbuffers_bf16_sum", NULL};

	return ops_string_starts_any(name, libraries) || ops_string_contains_any(name, kernels);
}

enum ops_work ops_work_of_name(struct ops_string name)
{
	static const char *const copies[] = {"Memcpy", "hipMemcpy", "dma", "CopyHostToDevice", "CopyDeviceToHost",
	                                     "CopyDeviceToDevice", "__amd_rocclr_copyBuffer", NULL};
	static const char *const fills[] = {"Memset", "hipMemset", "FillBuffer", "fillBuffer", "__amd_rocclr_fillBuffer", NULL};
	static const char *const host[] = {"hip", "Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe",
	                                   "cpum_exe_subgraph", "collective_subgraph_execution", NULL};
	static const char *const others[] = {"Event Sync", "Stream Sync", "Context Sync", "Device Sync", "Synchronize",
	                                     "Memcpy", "Memset", "dma", NULL};

	if (ops_string_starts_any(name, copies))
		return OPS_WORK_COPY;
	if (ops_string_starts_any(name, fills))
		return OPS_WORK_SET;
	if (communicates(name))
		return OPS_WORK_COMMUNICATION;
	if (ops_string_starts_any(name, host) || ops_string_contains_any(name, others) ||
	    (ops_string_starts(name, "cuda") && ops_string_contains(name, "LaunchKernel")))
		return OPS_WORK_OTHER;
	return OPS_WORK_COMPUTE;
}

enum ops_work ops_work_of(uint8_t kind, struct ops_string name)
{
	if (kind == OPS_EVENT_GPU_MEMCPY)
		return OPS_WORK_COPY;
	if (kind == OPS_EVENT_GPU_MEMSET)
		return OPS_WORK_SET;
	return kind == OPS_EVENT_SYNC ? OPS_WORK_SYNC : ops_work_of_name(name);
}

enum ops_work ops_work_of_prefix(struct ops_string name)
{
	static const char *const communication[] = {"nccl", "hip", "hccl", NULL};
	static const char *const copies[] = {"Memcpy", "dma", NULL};
	static const char *const others[] = {"Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe", "cpum_exe_subgraph",
	                                     "collective_subgraph_execution", NULL};
	static const char *const parts[] = {"Memcpy", "Memset", "dma", "Sync", NULL};

	if (ops_string_starts_any(name, communication) || ops_string_contains(name, "ncclKernel"))
		return OPS_WORK_COMMUNICATION;
	if (ops_string_starts_any(name, copies))
		return OPS_WORK_COPY;
	if (ops_string_starts(name, "Memset"))
		return OPS_WORK_SET;
	if (ops_string_contains_any(name, parts) || ops_string_starts_any(name, others) ||
	    (ops_string_starts(name, "cuda") && ops_string_contains(name, "LaunchKernel")))
		return OPS_WORK_OTHER;
	return OPS_WORK_COMPUTE;
}

/* --- labels of collectives -------------------------------------------------------------------------------------------- */

static bool is_operation(struct ops_string name)
{
	static const char *const operations[] = {
		"broadcast", "reduce", "all_reduce", "all_gather", "reduce_scatter",
		"_all_gather_base", "_reduce_scatter_base", "all_gather_into_tensor_coalesced", "reduce_scatter_tensor_coalesced",
		"all_reduce_coalesced", "allreduce_coalesced", "all_gather_coalesced", "all_to_all", "all_to_allv", "all_reduce_sparse",
		"allreduce_sparse", "_all_reduce_sparse", "_broadcast_oop", "_reduce_oop", "coalesced", "gather", "scatter", "send",
		"recv", "recv_any_source", "barrier", "all_reduce_barrier", "alltoall", "alltoall_base", "allgather", "allreduce",
	};

	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
		if (name.size == strlen(operations[i]) && memcmp(name.bytes, operations[i], name.size) == 0)
			return true;
	/* Point-to-point operations: "send 0->1", "recv 1<-0". */
	return ops_string_starts(name, "send ") || ops_string_starts(name, "recv ");
}

enum ops_collective ops_collective_of(struct ops_string name)
{
	static const struct {
		const char *prefix;
		enum ops_collective what;
	} backends[] = {
		{"nccl:", OPS_COLLECTIVE_DEVICE}, {"rccl:", OPS_COLLECTIVE_DEVICE}, {"hccl:", OPS_COLLECTIVE_DEVICE},
		{"xccl:", OPS_COLLECTIVE_DEVICE}, {"gloo:", OPS_COLLECTIVE_HOST},   {"mpi:", OPS_COLLECTIVE_HOST},
		{"ucc:", OPS_COLLECTIVE_HOST},
	};

	for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
		size_t size = strlen(backends[i].prefix);

		if (ops_string_starts(name, backends[i].prefix))
			return is_operation((struct ops_string){name.bytes + size, name.size - size}) ? backends[i].what
			                                                                              : OPS_COLLECTIVE_NONE;
	}
	return OPS_COLLECTIVE_NONE;
}
