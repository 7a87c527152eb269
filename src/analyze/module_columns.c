/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of a module; see module_columns.h.
 */
#include "analyze/module_columns.h"

#include "analyze/sum.h"

RESULT_GETTER(get_calls, struct ops_module_row, integer, ops_clamped(row->calls))
RESULT_GETTER(get_parameters, struct ops_module_row, integer, ops_clamped(row->parameter_count))
RESULT_GETTER(get_host, struct ops_module_row, integer, row->total[OPS_MODULE_HOST])
RESULT_GETTER(get_backward, struct ops_module_row, integer, row->total[OPS_MODULE_BACKWARD])
RESULT_GETTER(get_device, struct ops_module_row, integer, row->total[OPS_MODULE_DEVICE])
RESULT_GETTER(get_backward_device, struct ops_module_row, integer, row->total[OPS_MODULE_BACKWARD_DEVICE])
RESULT_GETTER(get_self_host, struct ops_module_row, integer, row->self[OPS_MODULE_HOST])
RESULT_GETTER(get_self_device, struct ops_module_row, integer, row->self[OPS_MODULE_DEVICE])
RESULT_GETTER(get_flops, struct ops_module_row, integer, row->total[OPS_MODULE_FLOPS])
RESULT_GETTER(get_kept, struct ops_module_row, integer, row->total[OPS_MODULE_CPU_MEMORY])
RESULT_GETTER(get_device_kept, struct ops_module_row, integer, row->total[OPS_MODULE_DEVICE_MEMORY])
RESULT_GETTER(get_allocated, struct ops_module_row, integer, row->total[OPS_MODULE_CPU_ALLOCATED])
RESULT_GETTER(get_peak, struct ops_module_row, integer, row->cpu_peak_bytes)
RESULT_GETTER(get_device_allocated, struct ops_module_row, integer, row->total[OPS_MODULE_DEVICE_ALLOCATED])
RESULT_GETTER(get_device_peak, struct ops_module_row, integer, row->device_peak_bytes)

const struct result_column module_columns[MODULE_COLUMN_COUNT] = {
	{.name = "calls", .type = RESULT_COUNT, .title = "Calls", .get = get_calls},
	{.name = "parameters", .type = RESULT_COUNT, .title = "Parameters", .get = get_parameters},
	{.name = "host_us", .type = RESULT_TIME, .title = "Forward",
	 .about = "Time of the calls on their thread", .get = get_host},
	{.name = "backward_us", .type = RESULT_TIME, .title = "Backward",
	 .about = "Time of the backward pass of what ran in the calls", .get = get_backward},
	{.name = "device_us", .type = RESULT_TIME, .title = "Device",
	 .about = "Device work that the calls started", .get = get_device},
	{.name = "backward_device_us", .type = RESULT_TIME, .title = "Device backward",
	 .about = "Device work that the backward pass of the calls started", .get = get_backward_device},
	{.name = "self_host_us", .type = RESULT_TIME, .title = "Self forward",
	 .about = "Forward time without the calls of other modules", .get = get_self_host},
	{.name = "self_device_us", .type = RESULT_TIME, .title = "Self device",
	 .about = "Device work without that of the calls of other modules", .get = get_self_device},
	{.name = "flops", .type = RESULT_COUNT, .title = "FLOPs",
	 .about = "Floating-point operations of the forward pass, estimated from the inputs of operators", .get = get_flops},
	{.name = "cpu_memory_bytes", .type = RESULT_BYTES, .priority = RESULT_MINOR, .title = "Kept",
	 .about = "Memory of the CPU that was allocated in the calls and not freed in them", .get = get_kept},
	{.name = "device_memory_bytes", .type = RESULT_BYTES, .priority = RESULT_MINOR, .title = "Device kept",
	 .about = "Memory of devices that was allocated in the calls and not freed in them", .get = get_device_kept},
	{.name = "cpu_allocated_bytes", .type = RESULT_BYTES, .title = "Allocated",
	 .about = "Memory of the CPU that the calls allocated", .get = get_allocated},
	{.name = "cpu_peak_bytes", .type = RESULT_BYTES, .title = "Peak",
	 .about = "The largest rise of the memory in use during a call", .get = get_peak},
	{.name = "device_allocated_bytes", .type = RESULT_BYTES, .title = "Device allocated",
	 .about = "Memory of devices that the calls allocated", .get = get_device_allocated},
	{.name = "device_peak_bytes", .type = RESULT_BYTES, .title = "Device peak",
	 .about = "The largest rise of the device memory in use during a call", .get = get_device_peak},
};
