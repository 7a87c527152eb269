/* SPDX-License-Identifier: Apache-2.0
 *
 * Communication by name; see collectives.h.
 */
#include "trace/collectives.h"

#include <string.h>

#include "base/text.h"

bool ops_communicates(struct ops_string name)
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

/* --- labels of operations ----------------------------------------------------------------------------------------------- */

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
