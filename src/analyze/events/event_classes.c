/* SPDX-License-Identifier: Apache-2.0
 *
 * Classes of device work as the analyses name them, and names of devices.
 */
#include "analyze/events/event_table.h"

#include <string.h>

#include "base/text.h"
#include "derive/work.h"

/* A kernel that communicates is found by its id: event_table.c. */
static enum ops_work work_of_kind(uint8_t kind, struct ops_string name)
{
	return kind == OPS_EVENT_KERNEL ? OPS_WORK_COMPUTE : ops_work_of(kind, kind == OPS_EVENT_OTHER ? name : (struct ops_string){"", 0});
}

enum event_class event_class_of(enum ops_class_source source, uint8_t kind, struct ops_string name)
{
	switch (source == OPS_CLASS_BY_PREFIX       ? ops_work_of_prefix(name)
	        : source == OPS_CLASS_BY_COLLECTIVE ? work_of_kind(kind, name)
	                                            : ops_work_of(kind, name)) {
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

const char *event_device_type_name(enum event_device_type type, enum ops_rules rules)
{
	static const char *const names[] = {"NVIDIA GPU", "AMD GPU", "MTIA"};

	if (type == EVENT_UNKNOWN_DEVICE)
		return rules == OPS_RULES_HTA ? "UNKNOWN GPU" : "no known GPU";
	return names[type];
}
