/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of a module as columns of tables. The columns that name the module differ from table to table and precede them.
 */
#ifndef OPS_ANALYZE_MODULE_COLUMNS_H
#define OPS_ANALYZE_MODULE_COLUMNS_H

#include <math.h>

#include <opstrobe/internal/modules.h>

#include "analyze/result.h"

RESULT_OPTIONAL(module_get_call, struct ops_module_row, !row->calls, llround((double)row->total[OPS_MODULE_HOST] / (double)row->calls))
RESULT_OPTIONAL(module_get_step, struct ops_module_row, isnan(row->step_ns), llround(row->step_ns))
RESULT_GETTER(module_get_percent, struct ops_module_row, number, result_round(100 * row->share, PERCENT_DECIMALS))

/* For rows that are struct ops_module_row. */
#define MODULE_FIGURES \
	{.name = "calls", .type = RESULT_COUNT, .title = "Calls", \
	 .about = "Number of calls", RESULT_FIELD(struct ops_module_row, calls)}, \
	{.name = "parameters", .type = RESULT_COUNT, .title = "Parameters", \
	 .about = "Number of elements of the parameters", RESULT_FIELD(struct ops_module_row, parameter_count)}, \
	{.name = "percent", .type = RESULT_PERCENT, .title = "Share", .nullable = true, \
	 .about = "Forward and backward time of the calls on the threads of the steps, of the time of the steps; without steps, of the complete trace", .get = module_get_percent}, \
	{.name = "step_us", .type = RESULT_TIME, .title = "Per step", .nullable = true, \
	 .about = "Mean over the steps of the forward and backward time of the calls in them; null without steps", .get = module_get_step}, \
	{.name = "host_us", .type = RESULT_TIME, .title = "Forward", \
	 .about = "Time of the calls on their thread", RESULT_FIELD(struct ops_module_row, total[OPS_MODULE_HOST])}, \
	{.name = "call_us", .type = RESULT_TIME, .title = "Per call", .nullable = true, \
	 .about = "Forward time of one call, on average", .get = module_get_call}, \
	{.name = "backward_us", .type = RESULT_TIME, .title = "Backward", \
	 .about = "Time of the backward pass of what ran in the calls", RESULT_FIELD(struct ops_module_row, total[OPS_MODULE_BACKWARD])}, \
	{.name = "device_us", .type = RESULT_TIME, .title = "Device", \
	 .about = "Device work that the calls started", RESULT_FIELD(struct ops_module_row, total[OPS_MODULE_DEVICE])}, \
	{.name = "backward_device_us", .type = RESULT_TIME, .title = "Device backward", \
	 .about = "Device work that the backward pass of the calls started", RESULT_FIELD(struct ops_module_row, total[OPS_MODULE_BACKWARD_DEVICE])}, \
	{.name = "self_host_us", .type = RESULT_TIME, .title = "Self forward", \
	 .about = "Forward time without the calls of other modules", RESULT_FIELD(struct ops_module_row, self[OPS_MODULE_HOST])}, \
	{.name = "self_device_us", .type = RESULT_TIME, .title = "Self device", \
	 .about = "Device work without that of the calls of other modules", RESULT_FIELD(struct ops_module_row, self[OPS_MODULE_DEVICE])}, \
	{.name = "flops", .type = RESULT_COUNT, .title = "FLOPs", \
	 .about = "Floating-point operations of the forward pass, estimated from the inputs of operators", RESULT_FIELD(struct ops_module_row, total[OPS_MODULE_FLOPS])}, \
	{.name = "cpu_memory_bytes", .type = RESULT_BYTES, .priority = RESULT_MINOR, .title = "Kept", \
	 .about = "Memory of the CPU that was allocated in the calls and not freed in them", RESULT_FIELD(struct ops_module_row, total[OPS_MODULE_CPU_MEMORY])}, \
	{.name = "device_memory_bytes", .type = RESULT_BYTES, .priority = RESULT_MINOR, .title = "Device kept", \
	 .about = "Memory of devices that was allocated in the calls and not freed in them", RESULT_FIELD(struct ops_module_row, total[OPS_MODULE_DEVICE_MEMORY])}, \
	{.name = "cpu_allocated_bytes", .type = RESULT_BYTES, .title = "Allocated", \
	 .about = "Memory of the CPU that the calls allocated", RESULT_FIELD(struct ops_module_row, total[OPS_MODULE_CPU_ALLOCATED])}, \
	{.name = "cpu_peak_bytes", .type = RESULT_BYTES, .title = "Peak", \
	 .about = "The largest rise of the memory in use during a call", RESULT_FIELD(struct ops_module_row, cpu_peak_bytes)}, \
	{.name = "device_allocated_bytes", .type = RESULT_BYTES, .title = "Device allocated", \
	 .about = "Memory of devices that the calls allocated", RESULT_FIELD(struct ops_module_row, total[OPS_MODULE_DEVICE_ALLOCATED])}, \
	{.name = "device_peak_bytes", .type = RESULT_BYTES, .title = "Device peak", \
	 .about = "The largest rise of the device memory in use during a call", RESULT_FIELD(struct ops_module_row, device_peak_bytes)}

#endif
