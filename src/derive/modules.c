/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of modules; see modules.h.
 */
#include "derive/modules.h"

#include <string.h>

#include "base/text.h"
#include "trace/names.h"

static bool is_lightning(struct ops_string name)
{
	return ops_string_starts(name, OPS_LIGHTNING_PREFIX);
}

enum ops_module_source ops_module_source(const struct ops_trace *trace)
{
	enum ops_module_source python = ops_trace_events(trace)->python_module ? OPS_MODULES_PYTHON : OPS_MODULES_NONE;
	uint32_t strings = ops_trace_string_count(trace);
	size_t recorded;

	/* Both sources identify modules by path, but only a recording knows the parameters. */
	ops_trace_modules(trace, &recorded);
	if (recorded)
		return python;
	for (uint32_t i = 0; i < strings; i++)
		if (is_lightning(ops_trace_string(trace, i)))
			return OPS_MODULES_LIGHTNING;
	return python;
}

bool ops_is_module_call(const struct ops_trace *trace, enum ops_module_source source, size_t row)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint8_t kind = events->kind[row];

	if (events->flags[row] & OPS_EVENT_ASYNC)
		return false;
	if (source == OPS_MODULES_PYTHON)
		return kind == OPS_EVENT_PYTHON_FUNCTION && events->python_module[row] != OPS_NONE;
	return source == OPS_MODULES_LIGHTNING && (kind == OPS_EVENT_CPU_OP || kind == OPS_EVENT_USER_ANNOTATION) &&
	       is_lightning(ops_trace_string(trace, events->name[row]));
}

static struct ops_string from(struct ops_string text, size_t start)
{
	return (struct ops_string){text.bytes + start, text.size - start};
}

/* Returns the position of the path in a name written by Lightning, after "Class: ". */
static size_t path_start(struct ops_string name)
{
	size_t start = strlen(OPS_LIGHTNING_PREFIX);
	const char *colon = memmem(name.bytes + start, name.size - start, ": ", 2);

	return colon ? (size_t)(colon + 2 - name.bytes) : start;
}

struct ops_string ops_module_path(struct ops_string name)
{
	if (is_lightning(name))
		return from(name, path_start(name));
	return ops_is_module_name(name) ? from(name, strlen(OPS_MODULE_PREFIX)) : name;
}

bool ops_has_module_paths(const struct ops_trace *trace)
{
	size_t count;

	ops_trace_modules(trace, &count);
	return count;
}

struct ops_string ops_module_of_call(const struct ops_trace *trace, size_t row)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count;
	const struct ops_module *modules = ops_trace_modules(trace, &count);

	if (events->module && events->module[row] < count)
		return ops_trace_string(trace, modules[events->module[row]].unique_path);
	return ops_module_path(ops_trace_string(trace, events->name[row]));
}

struct ops_string ops_shown_name(const struct ops_trace *trace, uint32_t name)
{
	struct ops_string text = ops_trace_string(trace, name);
	size_t count;
	const struct ops_module *modules = ops_trace_modules(trace, &count);

	for (size_t i = 0; i < count && ops_is_module_name(text); i++)
		if (modules[i].name == name)
			return ops_trace_string(trace, modules[i].unique_path);
	return ops_is_module_name(text) ? ops_module_path(text) : text;
}

struct ops_string ops_module_class(struct ops_string name)
{
	struct ops_string class = ops_module_path(name);
	size_t size = class.size;

	if (is_lightning(name) && path_start(name) > strlen(OPS_LIGHTNING_PREFIX)) {
		const char *dot;

		class = (struct ops_string){name.bytes, path_start(name) - 2};
		class = from(class, strlen(OPS_LIGHTNING_PREFIX));
		dot = memrchr(class.bytes, '.', class.size);
		return dot ? from(class, (size_t)(dot + 1 - class.bytes)) : class;
	}
	while (size && class.bytes[size - 1] >= '0' && class.bytes[size - 1] <= '9')
		size--;
	if (size > 1 && size < class.size && class.bytes[size - 1] == '_')
		class.size = size - 1;
	return class;
}
