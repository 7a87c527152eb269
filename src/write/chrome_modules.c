/* SPDX-License-Identifier: Apache-2.0
 *
 * See chrome_modules.h. Other tools ignore the member; the rows of module calls are in Kineto's form.
 */
#include "write/chrome_modules.h"

#include <inttypes.h>

#include "base/json.h"

static void chrome_modules_add_text(struct ops_buffer *out, const struct ops_trace *trace, uint32_t string)
{
	struct ops_string text = ops_trace_string(trace, string);

	ops_json_string(out, text.bytes, text.size);
	ops_buffer_append_text(out, ",");
}

static void chrome_modules_add_id(struct ops_buffer *out, uint32_t id)
{
	if (id == OPS_NONE)
		ops_buffer_append_text(out, "null,");
	else
		ops_buffer_printf(out, "%" PRIu32 ",", id);
}

static void chrome_modules_add_module(struct ops_buffer *out, const struct ops_trace *trace, const struct ops_module *module)
{
	ops_buffer_append_text(out, "[");
	chrome_modules_add_text(out, trace, module->name);
	chrome_modules_add_id(out, module->number);
	chrome_modules_add_text(out, trace, module->class_name);
	chrome_modules_add_text(out, trace, module->path);
	chrome_modules_add_id(out, module->parent);
	ops_buffer_printf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",[", module->address,
	                  module->parameter_count, module->parameter_bytes, module->own_parameter_count,
	                  module->own_parameter_bytes);
}

void ops_chrome_add_modules(struct ops_buffer *out, const struct ops_trace *trace)
{
	size_t count, alias_count;
	const struct ops_module *modules = ops_trace_modules(trace, &count);
	const struct ops_module_alias *aliases = ops_trace_module_aliases(trace, &alias_count);
	size_t alias = 0;

	for (size_t i = 0; i < count; i++) {
		ops_buffer_append_text(out, i ? ",\n" : ",\n\"modules\":[");
		chrome_modules_add_module(out, trace, &modules[i]);
		for (bool first = true; alias < alias_count && aliases[alias].module == i; alias++, first = false) {
			struct ops_string path = ops_trace_string(trace, aliases[alias].path);

			ops_buffer_append_text(out, first ? "" : ",");
			ops_json_string(out, path.bytes, path.size);
		}
		ops_buffer_append_text(out, "]]");
	}
	ops_buffer_append_text(out, count ? "]" : "");
}
