/* SPDX-License-Identifier: Apache-2.0
 *
 * Torch's table of key averages as data: events by name, or by name and input shapes.
 */
#include <string.h>

#include <opstrobe/analyze.h>

#include "analyze/analysis.h"
#include "analyze/table_sort.h"
#include "analyze/views/view_shapes.h"
#include "base/alloc.h"
#include "base/fault.h"

struct averages {
	struct ops_average *rows;
	size_t count;
	bool by_shape;
	bool with_flops;
};

static void write_columns(struct result_table *out, const struct averages *averages)
{
	result_column(out, "name", RESULT_TEXT);
	if (averages->by_shape)
		result_column(out, "input_shapes", RESULT_TEXT);
	RESULT_COLUMNS(out, RESULT_COLUMN("count", COUNT), RESULT_COLUMN("self_cpu_time_total", TIME),
	               RESULT_COLUMN("cpu_time_total", TIME), RESULT_COLUMN("self_device_time_total", TIME),
	               RESULT_COLUMN("device_time_total", TIME), RESULT_COLUMN("self_cpu_memory_usage", BYTES),
	               RESULT_COLUMN("cpu_memory_usage", BYTES), RESULT_COLUMN("self_device_memory_usage", BYTES),
	               RESULT_COLUMN("device_memory_usage", BYTES));
	if (averages->with_flops)
		result_column(out, "flops", RESULT_COUNT);
}

static void write_shapes(struct result_table *out, const struct ops_trace *trace, uint32_t inputs)
{
	struct ops_buffer text = {0};

	if (inputs != OPS_NONE)
		view_shapes_text(trace, inputs, &text);
	if (text.failed)
		out->failed = true;
	else
		result_text_copy(out, ops_buffer_text(&text), text.size);
	ops_buffer_release(&text);
}

static void write_row(struct result_table *out, const struct averages *averages, const struct ops_trace *trace,
                      const struct ops_average *row)
{
	result_text(out, ops_average_name(trace, row));
	if (averages->by_shape)
		write_shapes(out, trace, row->inputs);
	result_integer(out, (int64_t)row->count);
	result_time(out, row->self_cpu_time_total_ns);
	result_time(out, row->cpu_time_total_ns);
	result_time(out, row->self_device_time_total_ns);
	result_time(out, row->device_time_total_ns);
	result_integer(out, row->self_cpu_memory_usage);
	result_integer(out, row->cpu_memory_usage);
	result_integer(out, row->self_device_memory_usage);
	result_integer(out, row->device_memory_usage);
	if (averages->with_flops)
		result_integer(out, row->flops);
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
	write_columns(out, averages);
	if (!*sort_by)
		out->matters = has_device_time(averages) ? "self_device_time_total" : "self_cpu_time_total";
	for (size_t i = 0; i < averages->count; i++)
		write_row(out, averages, trace, &averages->rows[order ? order[i] : i]);
	ops_free(order);
	return OPS_OK;
}

enum ops_code analysis_key_averages(struct analysis_run *run)
{
	struct averages averages = {0};
	struct ops_averages_options options = {0};
	struct ops_buffer sort_by = {0};
	const struct ops_trace *trace = NULL;
	enum ops_code code = analysis_text(run, "sort_by", &sort_by);

	ops_buffer_append(&sort_by, "", 1);
	if (!code && sort_by.failed)
		code = ops_fault_memory(run->error);
	if (!code)
		code = analysis_bool(run, "group_by_input_shape", &averages.by_shape);
	if (!code)
		code = analysis_bool(run, "with_flops", &averages.with_flops);
	if (!code)
		code = analysis_first_trace(run, &trace);
	options.by_input_shape = averages.by_shape;
	if (!code)
		code = ops_key_averages(trace, averages.with_flops, &options, &averages.rows, &averages.count,
		                        run->error);
	if (!code)
		code = write_sorted(run, trace, &averages, sort_by.bytes);
	ops_free(averages.rows);
	ops_buffer_release(&sort_by);
	return code;
}
