/* SPDX-License-Identifier: Apache-2.0
 *
 * Relations of sums that views also show: `modules` and `lines`; and `metadata`.
 */
#include "analyze/relations/relation_list.h"
#include "base/sum.h"

/* --- modules -------------------------------------------------------------------------------------------------------- */

#define MODULE (&rows->module_rows[row->at])

RELATION_GETTER(get_module_path, cell->text = MODULE->path)
RELATION_GETTER(get_module_class, relation_set_text(cell, MODULE->class_name))
RELATION_GETTER(get_module_parent, cell->is_null = MODULE->parent == OPS_NONE;
                if (!cell->is_null) cell->text = rows->module_rows[MODULE->parent].path)
RELATION_GETTER(get_module_calls, cell->integer = ops_clamped(MODULE->calls))
RELATION_GETTER(get_module_host, cell->integer = MODULE->total[OPS_MODULE_HOST])
RELATION_GETTER(get_module_host_self, cell->integer = MODULE->self[OPS_MODULE_HOST])
RELATION_GETTER(get_module_backward, cell->integer = MODULE->total[OPS_MODULE_BACKWARD])
RELATION_GETTER(get_module_device, cell->integer = MODULE->total[OPS_MODULE_DEVICE])
RELATION_GETTER(get_module_device_self, cell->integer = MODULE->self[OPS_MODULE_DEVICE])
RELATION_GETTER(get_module_backward_device, cell->integer = MODULE->total[OPS_MODULE_BACKWARD_DEVICE])
RELATION_GETTER(get_module_flops, cell->integer = MODULE->total[OPS_MODULE_FLOPS])
RELATION_GETTER(get_module_backward_flops, cell->integer = MODULE->total[OPS_MODULE_BACKWARD_FLOPS])
RELATION_GETTER(get_module_parameters, cell->integer = ops_clamped(MODULE->parameter_count))
RELATION_GETTER(get_module_parameter_bytes, cell->integer = ops_clamped(MODULE->parameter_bytes))

static const struct result_column module_columns[] = {
	{.name = "module", .type = RESULT_TEXT, .get = get_module_path, .about = "path by attributes: encoder.layers.0"},
	{.name = "class", .type = RESULT_TEXT, .nullable = true, .get = get_module_class, .about = "class of the module"},
	{.name = "parent", .type = RESULT_TEXT, .nullable = true, .get = get_module_parent, .about = "path of the module that holds it"},
	{.name = "calls", .type = RESULT_COUNT, .get = get_module_calls, .about = "number of calls"},
	{.name = "host_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_module_host, .about = "time in its calls on the host"},
	{.name = "self_host_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_module_host_self,
	 .about = "part of it in which no call of another module runs"},
	{.name = "backward_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_module_backward, .about = "time of its backward nodes on the host"},
	{.name = "device_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_module_device, .about = "work on devices that its calls launched"},
	{.name = "self_device_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_module_device_self,
	 .about = "part of it that no call of another module launched"},
	{.name = "backward_device_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_module_backward_device,
	 .about = "work on devices that its backward nodes launched"},
	{.name = "flops", .type = RESULT_COUNT, .get = get_module_flops, .about = "estimated floating-point operations of its calls"},
	{.name = "backward_flops", .type = RESULT_COUNT, .get = get_module_backward_flops, .about = "those of its backward nodes"},
	{.name = "parameters", .type = RESULT_COUNT, .get = get_module_parameters, .about = "elements of its parameters, those below it included"},
	{.name = "parameter_bytes", .type = RESULT_BYTES, .get = get_module_parameter_bytes, .about = "their size"},
};
const struct result_declaration relation_modules_declaration =
	RESULT_DECLARATION("modules", "a torch.nn.Module, as `opstrobe modules` lists it", module_columns);

bool relation_modules_open(struct relation_rows *rows)
{
	if (ops_module_tree_new(rows->trace, &rows->module_tree, NULL))
		return false;
	rows->module_rows = ops_module_tree_rows(rows->module_tree, &rows->count);
	return true;
}

/* --- lines ---------------------------------------------------------------------------------------------------------- */

#define LINE (&rows->lines.lines.items[row->at])

static struct ops_string line_file_name(const struct line_costs *costs, uint32_t file)
{
	return costs->files.items[file].name;
}

RELATION_GETTER(get_line_file, cell->text = line_file_name(&rows->lines, LINE->file))
RELATION_GETTER(get_line_number, cell->integer = LINE->line)
RELATION_GETTER(get_line_function, relation_set_text(cell, LINE->function == OPS_NONE ? (struct ops_string){0}
                                                                                      : rows->lines.functions.items[LINE->function].name))
RELATION_GETTER(get_line_calls, cell->integer = LINE->calls)
RELATION_GETTER(get_line_host, cell->integer = LINE->host_ns)
RELATION_GETTER(get_line_self, cell->integer = LINE->self_ns)
RELATION_GETTER(get_line_device, cell->integer = LINE->device_ns)
RELATION_GETTER(get_line_allocated, cell->integer = LINE->allocated_bytes)

static const struct result_column line_columns[] = {
	{.name = "file", .type = RESULT_TEXT, .get = get_line_file, .about = "file of the program"},
	{.name = "line", .type = RESULT_INTEGER, .get = get_line_number, .about = "number of the line"},
	{.name = "function", .type = RESULT_TEXT, .nullable = true, .get = get_line_function, .about = "function that it is in"},
	{.name = "calls", .type = RESULT_COUNT, .get = get_line_calls, .about = "number of calls that the line made"},
	{.name = "host_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_line_host, .about = "time on the host, that of all it called included"},
	{.name = "self_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_line_self, .about = "part of it in which no other line of the program runs"},
	{.name = "device_ns", .type = RESULT_INTEGER, .unit = "ns", .get = get_line_device, .about = "work on devices that it launched"},
	{.name = "allocated_bytes", .type = RESULT_BYTES, .get = get_line_allocated, .about = "memory that it allocated"},
};
const struct result_declaration relation_lines_declaration =
	RESULT_DECLARATION("lines", "a line of the program, as `opstrobe lines` lists it", line_columns);

bool relation_lines_open(struct relation_rows *rows)
{
	if (!line_costs_init(&rows->lines, rows->trace))
		return false;
	rows->count = rows->lines.lines.count;
	return true;
}

/* --- metadata ------------------------------------------------------------------------------------------------------- */

static struct ops_string metadata_at(const struct ops_trace *trace, size_t at, bool value)
{
	struct ops_string key, json;

	ops_trace_metadata(trace, at, &key, &json);
	return value ? json : key;
}

RELATION_GETTER(get_metadata_key, cell->text = metadata_at(rows->trace, row->at, false))
RELATION_GETTER(get_metadata_value, cell->text = metadata_at(rows->trace, row->at, true))

static const struct result_column metadata_columns[] = {
	{.name = "key", .type = RESULT_TEXT, .get = get_metadata_key, .about = "name of the entry"},
	{.name = "value", .type = RESULT_JSON, .get = get_metadata_value, .about = "value, as JSON"},
};
const struct result_declaration relation_metadata_declaration =
	RESULT_DECLARATION("metadata", "an entry of the trace's metadata", metadata_columns);

bool relation_metadata_open(struct relation_rows *rows)
{
	rows->count = ops_trace_metadata_count(rows->trace);
	return true;
}
