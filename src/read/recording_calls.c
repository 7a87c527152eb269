/* SPDX-License-Identifier: Apache-2.0
 *
 * Python calls of a recording; see recording_calls.h.
 */
#include "read/recording_calls.h"

#include "base/alloc.h"

/* --- functions ------------------------------------------------------------------------------------------------------ */

static void translate(const struct ops_function_names *names, const uint32_t *strings, struct ops_builder *builder,
                      struct ops_called_function *ret_function)
{
	struct ops_function function = {.line = names->line};

	*ret_function = (struct ops_called_function){strings[names->row_name], OPS_NONE};
	if (names->name == OPS_INTERN_NONE)
		return;
	function.name = strings[names->name];
	function.file = names->file == OPS_INTERN_NONE ? 0 : strings[names->file];
	ret_function->function = ops_builder_function(builder, &function);
}

bool ops_called_functions_init(struct ops_called_functions *called, const struct ops_recording *recording,
                               struct ops_builder *builder)
{
	const struct ops_intern *texts = &recording->texts;
	uint32_t *strings = ops_realloc_array(NULL, texts->count + 1, sizeof(*strings));

	*called = (struct ops_called_functions){.count = recording->functions.count};
	called->items = ops_realloc_array(NULL, called->count + 1, sizeof(*called->items));
	if (!strings || !called->items) {
		ops_free(strings);
		return false;
	}
	for (size_t i = 0; i < texts->count; i++)
		strings[i] = ops_builder_string(builder, texts->entries[i].bytes, texts->entries[i].size);
	for (size_t i = 0; i < called->count; i++)
		translate(&recording->functions.items[i], strings, builder, &called->items[i]);
	ops_free(strings);
	return !ops_builder_failed(builder);
}

void ops_called_functions_release(struct ops_called_functions *called)
{
	ops_free(called->items);
}

bool ops_called_functions_describe(const struct ops_called_functions *called, uint32_t number, struct ops_new_event *event)
{
	if (number - 1 >= called->count)
		return false;
	event->name = called->items[number - 1].row_name;
	event->function = called->items[number - 1].function;
	return true;
}

/* --- nesting -------------------------------------------------------------------------------------------------------- */

/* Returns the innermost call that is open at a time; NULL if none is. */
static const struct ops_open_call *recording_calls_innermost(struct ops_open_calls *calls, int64_t time_ns)
{
	while (calls->open.count && calls->open.items[calls->open.count - 1].end_ns <= time_ns)
		calls->open.count--;
	return calls->open.count ? &calls->open.items[calls->open.count - 1] : NULL;
}

bool ops_open_calls_add(struct ops_open_calls *calls, struct ops_called_functions *called, struct ops_builder *builder,
                        struct ops_new_event *event)
{
	const struct ops_open_call *caller;

	if (!OPS_ARRAY_RESERVE(&calls->open, 1))
		return false;
	caller = recording_calls_innermost(calls, event->start_ns);
	if (caller)
		event->python_parent = caller->python_id;
	event->python_id = called->last_id + 1;
	if (ops_builder_event(builder, event) == OPS_NONE)
		return false;
	called->last_id++;
	calls->open.items[calls->open.count++] = (struct ops_open_call){.end_ns = event->end_ns, .python_id = event->python_id};
	return true;
}

uint32_t ops_open_calls_line(struct ops_open_calls *calls, int64_t start_ns, uint32_t call_line)
{
	const struct ops_open_call *caller = call_line ? recording_calls_innermost(calls, start_ns) : NULL;

	return caller && caller->is_dropped ? caller->line : call_line;
}

bool ops_open_calls_add_dropped(struct ops_open_calls *calls, int64_t start_ns, int64_t end_ns, uint32_t call_line)
{
	uint32_t line = ops_open_calls_line(calls, start_ns, call_line);
	const struct ops_open_call *caller = recording_calls_innermost(calls, start_ns);
	uint32_t python_id = caller ? caller->python_id : OPS_NONE;
	struct ops_open_call *added = OPS_ARRAY_PUSH(&calls->open);

	if (added)
		*added = (struct ops_open_call){end_ns, python_id, line, true};
	return added != NULL;
}

void ops_open_calls_release(struct ops_open_calls *calls)
{
	OPS_ARRAY_RELEASE(&calls->open);
}
