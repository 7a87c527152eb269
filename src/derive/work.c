/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of device work by name; see work.h. The order of the tests matters: a copy is a copy whatever issues it, and
 * names of communication libraries come before words that those names could also contain.
 */
#include "derive/work.h"

#include "base/text.h"

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
	if (ops_communicates(name))
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
