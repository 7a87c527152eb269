/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules of a recording: the recorder of module calls adds their descriptions at the end.
 */
#include <opstrobe/internal/recording.h>
#include <opstrobe/record.h>

#include "base/fault.h"
#include "record/recording.h"

static bool modules_copy_text(struct ops_arena *arena, struct ops_text *text)
{
	return (text->bytes = ops_arena_copy(arena, text->bytes, text->size)) != NULL;
}

/* Copies the texts that the module refers to. Returns false if out of memory. */
static bool copy_texts(struct ops_arena *arena, struct ops_recorded_module *module)
{
	struct ops_text *aliases = ops_arena_alloc(arena, (module->alias_count + 1) * sizeof(*aliases));

	for (size_t i = 0; aliases && i < module->alias_count; i++) {
		aliases[i] = module->aliases[i];
		if (!modules_copy_text(arena, &aliases[i]))
			aliases = NULL;
	}
	module->aliases = aliases;
	return aliases && modules_copy_text(arena, &module->name) && modules_copy_text(arena, &module->class_name) &&
	       modules_copy_text(arena, &module->path);
}

enum ops_code ops_recording_set_modules(struct ops_recording *recording, const struct ops_recorded_module *modules,
                                        size_t count, struct ops_error *error)
{
	struct ops_arena *arena = &recording->module_arena;
	struct ops_recorded_module *copies = NULL;

	if (count < SIZE_MAX / sizeof(*copies))
		copies = ops_arena_alloc(arena, (count + 1) * sizeof(*copies));
	for (size_t i = 0; copies && i < count; i++) {
		copies[i] = modules[i];
		if (!copy_texts(arena, &copies[i]))
			copies = NULL;
	}
	if (!copies)
		return ops_fault_memory(error);
	recording->modules = copies;
	recording->module_count = count;
	return OPS_OK;
}
