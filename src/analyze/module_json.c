/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of modules as JSON, for viewers.
 */
#include <opstrobe/internal/modules.h>

#include "analyze/tables.h"
#include "base/json_writer.h"

/* For rows that are an array of metrics. */
#define METRIC(index, text)                                                                                             \
	{.name = (text), .type = RESULT_INTEGER, .field = RESULT_INT64, .offset = OPS_MODULE_##index * sizeof(int64_t)},
static const struct result_column cost_columns[] = {OPS_MODULE_METRICS(METRIC)};
#undef METRIC
const struct result_declaration table_module_costs =
	RESULT_DECLARATION("ModuleCosts", "What a module takes: times in nanoseconds, FLOPs, bytes", cost_columns);

RESULT_OPTIONAL(module_json_get_parent, struct ops_module_row, row->parent == OPS_NONE, row->parent)
RESULT_OPTIONAL(module_json_get_first_call, struct ops_module_row, row->first_call == OPS_NONE, row->first_call)

#define MODULE_FIELD(member) RESULT_FIELD(struct ops_module_row, member)
static const struct result_column module_columns[] = {
	{.name = "name", .type = RESULT_TEXT, .about = "Name of its events; empty for classes", MODULE_FIELD(name)},
	{.name = "path", .type = RESULT_TEXT, .about = "Names from the root module on, joined by dots", MODULE_FIELD(path)},
	{.name = "class", .type = RESULT_TEXT, .about = "Name of the class", MODULE_FIELD(class_name)},
	{.name = "parent",
	 .type = RESULT_INTEGER,
	 .nullable = true,
	 .about = "Position of the module around it in the list",
	 .get = module_json_get_parent},
	{.name = "depth", .type = RESULT_INTEGER, .about = "0 for root modules", MODULE_FIELD(depth)},
	{.name = "modules",
	 .type = RESULT_COUNT,
	 .about = "Number of modules: more than 1 for classes alone",
	 MODULE_FIELD(modules)},
	{.name = "calls", .type = RESULT_COUNT, .about = "Number of calls", MODULE_FIELD(calls)},
	{.name = "first_call",
	 .type = RESULT_INTEGER,
	 .nullable = true,
	 .about = "Position of its first call among all calls of modules; of a module that only holds others, of the first call in it",
	 .get = module_json_get_first_call},
	{.name = "total",
	 .type = RESULT_OBJECT,
	 .about = "With the modules that it calls",
	 .object = &table_module_costs,
	 .offset = offsetof(struct ops_module_row, total)},
	{.name = "self",
	 .type = RESULT_OBJECT,
	 .about = "Without the modules that it calls",
	 .object = &table_module_costs,
	 .offset = offsetof(struct ops_module_row, self)},
	{.name = "step_ns",
	 .type = RESULT_NUMBER,
	 .nullable = true,
	 .about = "Forward and backward time per step; null without steps",
	 MODULE_FIELD(step_ns)},
	{.name = "share",
	 .type = RESULT_NUMBER,
	 .nullable = true,
	 .about = "The same as a share of the time of the steps on the host; without steps, of the complete trace",
	 MODULE_FIELD(share)},
	{.name = "cpu_peak_bytes",
	 .type = RESULT_BYTES,
	 .about = "Largest increase of memory in use during a call",
	 MODULE_FIELD(cpu_peak_bytes)},
	{.name = "device_peak_bytes",
	 .type = RESULT_BYTES,
	 .about = "Largest rise of the device memory in use during a call",
	 MODULE_FIELD(device_peak_bytes)},
	{.name = "parameter_count",
	 .type = RESULT_COUNT,
	 .about = "Number of elements of the parameters",
	 MODULE_FIELD(parameter_count)},
	{.name = "parameter_bytes", .type = RESULT_BYTES, .about = "Size of the parameters", MODULE_FIELD(parameter_bytes)},
};
const struct result_declaration table_module =
	RESULT_DECLARATION("Module", "A module that was called or contains one that was called, or a class of modules", module_columns);

static void module_json_write_rows(struct ops_json_writer *json, const char *key, const struct ops_module_row *rows,
                                   size_t count)
{
	OPS_JSON_LIST(json, key, i, count, result_object_json(&table_module, 0, &rows[i], json));
}

enum ops_code ops_module_json(const struct ops_module_tree *tree, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	const struct ops_module_row *rows;
	size_t count;

	ops_json_open(&json, '{');
	rows = ops_module_tree_rows(tree, &count);
	module_json_write_rows(&json, "modules", rows, count);
	rows = ops_module_tree_classes(tree, &count);
	module_json_write_rows(&json, "classes", rows, count);
	ops_json_close(&json, '}');
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}
