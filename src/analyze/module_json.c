/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of modules as JSON, for those who draw it.
 */
#include <opstrobe/modules.h>

#include "analyze/sum.h"
#include "base/alloc.h"
#include "base/json_writer.h"

static const char *const metrics[] = {
#define METRIC(name, text) text,
	OPS_MODULE_METRICS(METRIC)
#undef METRIC
};

static void write_text(struct ops_json_writer *json, const char *key, struct ops_string text)
{
	ops_json_key(json, key);
	ops_json_text(json, text.bytes, text.size);
}

static void write_costs(struct ops_json_writer *json, const char *key, const int64_t *values)
{
	ops_json_key(json, key);
	ops_json_open(json, '{');
	for (int metric = 0; metric < OPS_MODULE_METRIC_COUNT; metric++)
		ops_json_member(json, metrics[metric], values[metric]);
	ops_json_close(json, '}');
}

static void write_rows(struct ops_json_writer *json, const char *key, const struct ops_module_row *rows, size_t count)
{
	ops_json_key(json, key);
	ops_json_open(json, '[');
	for (size_t i = 0; i < count; i++) {
		const struct ops_module_row *row = &rows[i];

		ops_json_open(json, '{');
		write_text(json, "name", row->name);
		write_text(json, "path", row->path);
		write_text(json, "class", row->class_name);
		ops_json_member_or_null(json, "parent", row->parent == OPS_NONE ? -1 : (int64_t)row->parent);
		ops_json_member(json, "depth", row->depth);
		ops_json_member(json, "modules", row->modules);
		ops_json_member(json, "calls", ops_clamped(row->calls));
		write_costs(json, "total", row->total);
		write_costs(json, "self", row->self);
		ops_json_member(json, "cpu_peak_bytes", row->cpu_peak_bytes);
		ops_json_member(json, "device_peak_bytes", row->device_peak_bytes);
		ops_json_member(json, "parameter_count", ops_clamped(row->parameter_count));
		ops_json_member(json, "parameter_bytes", ops_clamped(row->parameter_bytes));
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

enum ops_code ops_module_json(const struct ops_module_tree *tree, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};
	const struct ops_module_row *rows;
	size_t count;

	ops_json_open(&json, '{');
	rows = ops_module_tree_rows(tree, &count);
	write_rows(&json, "modules", rows, count);
	rows = ops_module_tree_classes(tree, &count);
	write_rows(&json, "classes", rows, count);
	ops_json_close(&json, '}');
	return ops_buffer_give(&out, OPS_OK, ret_text, ret_size, error);
}
