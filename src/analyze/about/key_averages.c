/* SPDX-License-Identifier: Apache-2.0
 *
 * Torch's table of key averages as data: events by name, or by name and input shapes.
 */
#include <string.h>

#include <opstrobe/internal/analyze.h>

#include "analyze/analysis.h"
#include "analyze/table_sort.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "derive/shapes.h"

struct averages {
	struct ops_average *rows;
	size_t count;
	bool by_shape;
	bool with_flops;
};

struct average_row {
	struct ops_string name, shapes;
	struct ops_average figures;
};

enum { BY_SHAPE = 1, WITH_FLOPS = 2 };

#define AVERAGE_FIELD(member) RESULT_FIELD(struct average_row, figures.member)
static const struct result_column average_columns[] = {
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the events", RESULT_FIELD(struct average_row, name)},
	{.name = "input_shapes", .type = RESULT_TEXT, .title = "Input shapes", .about = "Shapes of the inputs", .option = BY_SHAPE,
	 .when = "with the option group_by_input_shape", RESULT_FIELD(struct average_row, shapes)},
	{.name = "count", .type = RESULT_COUNT, .title = "Calls", .about = "Number of events", AVERAGE_FIELD(count)},
	{.name = "self_cpu_time_total", .type = RESULT_TIME, .title = "Self CPU", .about = "CPU time without that of the events inside",
	 AVERAGE_FIELD(self_cpu_time_total_ns)},
	{.name = "cpu_time_total", .type = RESULT_TIME, .title = "CPU total", .about = "Sum of the durations on the CPU",
	 AVERAGE_FIELD(cpu_time_total_ns)},
	{.name = "self_device_time_total", .type = RESULT_TIME, .title = "Self device",
	 .about = "Time of the device work that the events launch, without that of the events inside",
	 AVERAGE_FIELD(self_device_time_total_ns)},
	{.name = "device_time_total", .type = RESULT_TIME, .title = "Device total",
	 .about = "Time of the device work that the events launch", AVERAGE_FIELD(device_time_total_ns)},
	{.name = "self_cpu_memory_usage", .type = RESULT_BYTES, .title = "Self CPU memory",
	 .about = "Memory of the CPU, allocated less freed, without that of the events inside", AVERAGE_FIELD(self_cpu_memory_usage)},
	{.name = "cpu_memory_usage", .type = RESULT_BYTES, .title = "CPU memory",
	 .about = "Memory of the CPU, allocated less freed", AVERAGE_FIELD(cpu_memory_usage)},
	{.name = "self_device_memory_usage", .type = RESULT_BYTES, .title = "Self device memory",
	 .about = "Memory of devices, allocated less freed, without that of the events inside",
	 AVERAGE_FIELD(self_device_memory_usage)},
	{.name = "device_memory_usage", .type = RESULT_BYTES, .title = "Device memory",
	 .about = "Memory of devices, allocated less freed", AVERAGE_FIELD(device_memory_usage)},
	{.name = "flops", .type = RESULT_COUNT, .title = "FLOPs", .about = "Estimated floating-point operations",
	 .option = WITH_FLOPS, .when = "with the option with_flops", AVERAGE_FIELD(flops)},
};
const struct result_declaration table_key_averages =
	RESULT_DECLARATION("key_averages", "The events of a name", average_columns);

static void key_averages_write_row(struct result_table *out, const struct ops_trace *trace, const struct ops_average *average)
{
	struct ops_buffer shapes = {0};

	if (average->inputs != OPS_NONE)
		ops_shapes_append(&shapes, trace, average->inputs);
	out->failed |= shapes.failed;
	result_add(out, &(struct average_row){ops_average_name(trace, average), {ops_buffer_text(&shapes), shapes.size}, *average});
	ops_buffer_release(&shapes);
}

static bool has_device_time(const struct averages *averages)
{
	for (size_t i = 0; i < averages->count; i++)
		if (averages->rows[i].self_device_time_total_ns > 0)
			return true;
	return false;
}

static enum ops_code write_sorted(struct analysis_run *run, const struct ops_trace *trace, const struct averages *averages,
                                  const char *sort_by)
{
	struct result_table *out = &run->result.table;
	struct ops_average_list list = {averages->rows, averages->count};
	struct ops_rows rows = ops_rows_of_averages(&list);
	uint32_t *order = NULL;
	enum ops_code code = OPS_OK;

	if (*sort_by)
		code = ops_table_sort(trace, NULL, &rows, sort_by, &order, run->error);
	if (code)
		return code;
	out->copies |= averages->by_shape;
	result_declare(out, &table_key_averages, (averages->by_shape ? BY_SHAPE : 0) | (averages->with_flops ? WITH_FLOPS : 0));
	if (!*sort_by)
		out->matters = has_device_time(averages) ? "self_device_time_total" : "self_cpu_time_total";
	for (size_t i = 0; i < averages->count; i++)
		key_averages_write_row(out, trace, &averages->rows[order ? order[i] : i]);
	ops_free(order);
	return OPS_OK;
}

enum ops_code analysis_key_averages(struct analysis_run *run)
{
	struct averages averages = {.by_shape = analysis_bool(run, "group_by_input_shape"), .with_flops = analysis_bool(run, "with_flops")};
	struct ops_averages_options options = {.by_input_shape = averages.by_shape};
	struct ops_string sort_by = analysis_text(run, "sort_by");
	const struct ops_trace *trace = NULL;
	enum ops_code code = run->code ? run->code : analysis_first_trace(run, &trace);

	if (!code)
		code = ops_key_averages(trace, averages.with_flops, &options, &averages.rows, &averages.count,
		                        run->error);
	if (!code)
		code = write_sorted(run, trace, &averages, sort_by.bytes);
	ops_free(averages.rows);
	return code;
}
