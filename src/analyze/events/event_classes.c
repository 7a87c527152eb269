/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of device work as the analyses name them, and names of devices.
 */
#include "analyze/events/event_table.h"

#include <string.h>

#include "base/text.h"
#include "derive/work.h"

/* Classifies as HTA does: by the name alone, regardless of the kind. */
static enum event_class class_by_hta(struct ops_string name)
{
	static const char *const communication[] = {"nccl", "hip", "hccl", NULL};
	static const char *const memory[] = {"Memcpy", "Memset", "dma", NULL};
	static const char *const others[] = {"Stream Wait Event", "runFunction", "job_exe", "packet", "pe_exe", "cpum_exe_subgraph",
	                                     "collective_subgraph_execution", NULL};

	if (ops_string_starts_any(name, communication) || ops_string_contains(name, "ncclKernel"))
		return EVENT_COMMUNICATION;
	if (ops_string_starts_any(name, memory))
		return EVENT_MEMORY;
	if (ops_string_contains(name, "Memcpy") || ops_string_contains(name, "Memset") || ops_string_contains(name, "dma") ||
	    ops_string_contains(name, "Sync") || ops_string_starts_any(name, others) ||
	    (ops_string_starts(name, "cuda") && ops_string_contains(name, "LaunchKernel")))
		return EVENT_OTHER_WORK;
	return EVENT_COMPUTATION;
}

enum event_class event_class_of(enum event_rules rules, uint8_t kind, struct ops_string name)
{
	if (rules == EVENT_RULES_HTA)
		return class_by_hta(name);
	switch (ops_work_of(kind, name)) {
	case OPS_WORK_COMPUTE:
		return EVENT_COMPUTATION;
	case OPS_WORK_COMMUNICATION:
		return EVENT_COMMUNICATION;
	case OPS_WORK_COPY:
	case OPS_WORK_SET:
		return EVENT_MEMORY;
	default:
		return EVENT_OTHER_WORK;
	}
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
