/* SPDX-License-Identifier: Apache-2.0
 *
 * The columns of the operator table: which are present, their titles and their numbers.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/table.h"

bool ops_table_has_column(const struct ops_table *t, enum ops_table_column column)
{
	if (t->left_out & 1u << column)
		return false;
	switch (column) {
	case OPS_COLUMN_OVERLOAD:
		return t->has_overloads;
	case OPS_COLUMN_SELF_DEVICE:
	case OPS_COLUMN_SELF_DEVICE_SHARE:
	case OPS_COLUMN_DEVICE:
	case OPS_COLUMN_DEVICE_MEAN:
		return t->has_device_time;
	case OPS_COLUMN_CPU_MEMORY:
	case OPS_COLUMN_SELF_CPU_MEMORY:
		return t->options->profile_memory;
	case OPS_COLUMN_DEVICE_MEMORY:
	case OPS_COLUMN_SELF_DEVICE_MEMORY:
		return t->has_device_memory;
	case OPS_COLUMN_SHAPES:
		return t->has_shapes;
	case OPS_COLUMN_SOURCE:
		return t->has_stacks;
	case OPS_COLUMN_FLOPS:
		return t->flops_unit != NULL;
	default:
		return true;
	}
}

void ops_table_title(struct ops_table *t, enum ops_table_column column)
{
	/* The device, or the unit of FLOPs, is inserted between the two parts. */
	static const struct {
		const char *before, *after;
	} titles[] = {
		[OPS_COLUMN_NAME] = {"Name", NULL},
		[OPS_COLUMN_OVERLOAD] = {"Overload Name", NULL},
		[OPS_COLUMN_SELF_CPU_SHARE] = {"Self CPU %", NULL},
		[OPS_COLUMN_SELF_CPU] = {"Self CPU", NULL},
		[OPS_COLUMN_CPU_SHARE] = {"CPU total %", NULL},
		[OPS_COLUMN_CPU] = {"CPU total", NULL},
		[OPS_COLUMN_CPU_MEAN] = {"CPU time avg", NULL},
		[OPS_COLUMN_SELF_DEVICE] = {"Self ", ""},
		[OPS_COLUMN_SELF_DEVICE_SHARE] = {"Self ", " %"},
		[OPS_COLUMN_DEVICE] = {"", " total"},
		[OPS_COLUMN_DEVICE_MEAN] = {"", " time avg"},
		[OPS_COLUMN_CPU_MEMORY] = {"CPU Mem", NULL},
		[OPS_COLUMN_SELF_CPU_MEMORY] = {"Self CPU Mem", NULL},
		[OPS_COLUMN_DEVICE_MEMORY] = {"", " Mem"},
		[OPS_COLUMN_SELF_DEVICE_MEMORY] = {"Self ", " Mem"},
		[OPS_COLUMN_COUNT] = {"# of Calls", NULL},
		[OPS_COLUMN_SHAPES] = {"Input Shapes", NULL},
		[OPS_COLUMN_SOURCE] = {"Source Location", NULL},
		[OPS_COLUMN_FLOPS] = {"Total ", ""},
	};

	t->scratch.size = 0;
	ops_buffer_append_text(&t->scratch, titles[column].before);
	if (titles[column].after) {
		ops_buffer_append_text(&t->scratch, column == OPS_COLUMN_FLOPS ? t->flops_unit : t->device);
		ops_buffer_append_text(&t->scratch, titles[column].after);
	}
}

double ops_table_us(int64_t ns)
{
	return (double)ns / 1000.0;
}

double ops_table_mean_us(int64_t ns, uint64_t count)
{
	return count > 0 ? ops_table_us(ns) / (double)count : 0;
}

void ops_table_number(const struct ops_table *t, enum ops_table_column column, const struct ops_average *row, char *cell)
{
	switch (column) {
	case OPS_COLUMN_SELF_CPU_SHARE:
		ops_format_share(cell, ops_table_us(row->self_cpu_time_total_ns), t->self_cpu_us);
		break;
	case OPS_COLUMN_SELF_CPU:
		ops_format_time(cell, ops_table_us(row->self_cpu_time_total_ns), t->unit);
		break;
	case OPS_COLUMN_CPU_SHARE:
		if (row->is_async)
			strcpy(cell, "0");
		else
			ops_format_share(cell, ops_table_us(row->cpu_time_total_ns), t->self_cpu_us);
		break;
	case OPS_COLUMN_CPU:
		ops_format_time(cell, ops_table_us(row->cpu_time_total_ns), t->unit);
		break;
	case OPS_COLUMN_CPU_MEAN:
		ops_format_time(cell, ops_table_mean_us(row->cpu_time_total_ns, row->count), t->unit);
		break;
	case OPS_COLUMN_SELF_DEVICE:
		ops_format_time(cell, ops_table_us(row->self_device_time_total_ns), t->unit);
		break;
	case OPS_COLUMN_SELF_DEVICE_SHARE:
		ops_format_share(cell, ops_table_us(row->self_device_time_total_ns), t->self_device_us);
		break;
	case OPS_COLUMN_DEVICE:
		ops_format_time(cell, ops_table_us(row->device_time_total_ns), t->unit);
		break;
	case OPS_COLUMN_DEVICE_MEAN:
		ops_format_time(cell, ops_table_mean_us(row->device_time_total_ns, row->count), t->unit);
		break;
	case OPS_COLUMN_CPU_MEMORY:
		ops_format_memory(cell, row->cpu_memory_usage);
		break;
	case OPS_COLUMN_SELF_CPU_MEMORY:
		ops_format_memory(cell, row->self_cpu_memory_usage);
		break;
	case OPS_COLUMN_DEVICE_MEMORY:
		ops_format_memory(cell, row->device_memory_usage);
		break;
	case OPS_COLUMN_SELF_DEVICE_MEMORY:
		ops_format_memory(cell, row->self_device_memory_usage);
		break;
	case OPS_COLUMN_FLOPS:
		if (row->flops > 0)
			snprintf(cell, OPS_FORMAT_ROOM, "%8.3f", (double)row->flops * t->flops_scale);
		else
			strcpy(cell, "--");
		break;
	default: /* OPS_COLUMN_COUNT */
		snprintf(cell, OPS_FORMAT_ROOM, "%llu", (unsigned long long)row->count);
	}
}
