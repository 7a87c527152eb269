/* SPDX-License-Identifier: Apache-2.0
 *
 * What the names of device work and devices tell (0.7, 0.8).
 *
 * Flaw 8 put right: a copy is memory work whoever makes it, a kernel of a synchronised batch norm computes, and the
 * collectives of RCCL, oneCCL, NVSHMEM, HCCL and vLLM communicate.
 */
#include "analyze/events/event_table.h"

#include <string.h>
#include <strings.h>

bool ops_string_is(struct ops_string string, const char *text)
{
	return string.size == strlen(text) && memcmp(string.bytes, text, string.size) == 0;
}

bool ops_string_starts(struct ops_string string, const char *text)
{
	size_t size = strlen(text);

	return string.size >= size && memcmp(string.bytes, text, size) == 0;
}

bool ops_string_contains(struct ops_string string, const char *text)
{
	return memmem(string.bytes, string.size, text, strlen(text));
}

static bool starts_with_any(struct ops_string name, const char *const *words)
{
	for (; *words; words++)
		if (ops_string_starts(name, *words))
			return true;
	return false;
}

static bool contains_any(struct ops_string name, const char *const *words)
{
	for (; *words; words++)
		if (ops_string_contains(name, *words))
			return true;
	return false;
}

enum event_class event_class_of(struct ops_string name)
{
	static const char *const memory[] = {"Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma", "CopyHostToDevice",
	                                     "CopyDeviceToHost", "CopyDeviceToDevice", "FillBuffer", "fillBuffer", NULL};
	static const char *const fills[] = {"__amd_rocclr_copyBuffer", "__amd_rocclr_fillBuffer", NULL};
	static const char *const communication[] = {"nccl", "hccl", "rccl", "oneccl", "nvshmem", NULL};
	static const char *const collectives[] = {"ncclKernel", "ncclDevKernel", "rcclGenericKernel", "cross_device_reduce",
	                                          "nvshmemi_", "nvshmem_", "allreduce_fusion_kernel", NULL};
	static const char *const host[] = {"hip", "Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe",
	                                   "cpum_exe_subgraph", "collective_subgraph_execution", NULL};
	static const char *const waits[] = {"Event Sync", "Stream Sync", "Context Sync", "Device Sync", "Synchronize", NULL};

	if (starts_with_any(name, memory) || starts_with_any(name, fills))
		return EVENT_MEMORY;
	if (starts_with_any(name, communication) || contains_any(name, collectives))
		return EVENT_COMMUNICATION;
	if (starts_with_any(name, host) || contains_any(name, waits) || ops_string_contains(name, "Memcpy") ||
	    ops_string_contains(name, "Memset") || ops_string_contains(name, "dma") ||
	    (ops_string_starts(name, "cuda") && ops_string_contains(name, "LaunchKernel")))
		return EVENT_OTHER_WORK;
	return EVENT_COMPUTATION;
}

struct ops_string event_memory_kind(struct ops_string name)
{
	if (ops_string_starts(name, "Memset"))
		return (struct ops_string){"Memset", 6};
	if (ops_string_starts(name, "Memcpy"))
		return (struct ops_string){name.bytes, name.size < 11 ? name.size : 11};
	return (struct ops_string){"Memcpy Unknown", 14};
}

const char *event_class_name(enum event_class class_)
{
	static const char *const names[] = {"COMPUTATION", "COMMUNICATION", "MEMORY", "OTHER"};

	return names[class_];
}

const char *event_device_type_name(enum event_device_type type)
{
	static const char *const names[] = {"NVIDIA GPU", "AMD GPU", "MTIA", "UNKNOWN GPU"};

	return names[type];
}
