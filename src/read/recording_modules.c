/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts the modules of a recording to those of the trace; see recording_modules.h.
 */
#include "read/recording_modules.h"

#include <string.h>

#include "base/alloc.h"

static uint32_t recording_modules_add_text(struct ops_builder *builder, struct ops_text text)
{
	return ops_builder_string(builder, text.bytes, text.size);
}

static void recording_modules_add_module(struct ops_builder *builder, const struct ops_recorded_module *recorded)
{
	const struct ops_module module = {
		.name = recording_modules_add_text(builder, recorded->name),
		.class_name = recording_modules_add_text(builder, recorded->class_name),
		.path = recording_modules_add_text(builder, recorded->path),
		.parent = recorded->parent,
		.number = recorded->number,
		.address = recorded->address,
		.parameter_count = recorded->parameter_count,
		.parameter_bytes = recorded->parameter_bytes,
		.own_parameter_count = recorded->own_parameter_count,
		.own_parameter_bytes = recorded->own_parameter_bytes,
	};

	ops_builder_module(builder, &module);
}

bool ops_called_modules_init(struct ops_called_modules *called, const struct ops_recording *recording,
                             struct ops_builder *builder)
{
	*called = (struct ops_called_modules){0};
	for (size_t i = 0; i < recording->module_count; i++)
		if (recording->modules[i].id >= 0 && (size_t)recording->modules[i].id >= called->count)
			called->count = (size_t)recording->modules[i].id + 1;
	called->by_id = ops_realloc_array(NULL, called->count + 1, sizeof(*called->by_id));
	if (!called->by_id)
		return false;
	memset(called->by_id, 0xff, called->count * sizeof(*called->by_id));
	for (size_t i = 0; i < recording->module_count; i++) {
		const struct ops_recorded_module *module = &recording->modules[i];

		recording_modules_add_module(builder, module);
		for (size_t k = 0; k < module->alias_count; k++)
			ops_builder_module_alias(builder,
			                         &(struct ops_module_alias){
							 .module = (uint32_t)i,
							 .path = recording_modules_add_text(builder, module->aliases[k]),
						 });
		if (module->id >= 0)
			called->by_id[module->id] = (struct ops_called_module){
				.module = (uint32_t)i,
				.number = module->number,
				.name = recording_modules_add_text(builder, module->name)};
	}
	return !ops_builder_failed(builder);
}

void ops_called_modules_release(struct ops_called_modules *called)
{
	ops_free(called->by_id);
	*called = (struct ops_called_modules){0};
}

bool ops_called_modules_describe(const struct ops_called_modules *called, int64_t id, struct ops_new_event *event)
{
	const struct ops_called_module *module;

	if (id < 0 || (size_t)id >= called->count || called->by_id[id].module == OPS_NONE)
		return false;
	module = &called->by_id[id];
	event->name = module->name;
	event->module = module->module;
	event->python_module = module->number;
	return true;
}
