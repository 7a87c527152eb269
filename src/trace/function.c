/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of Python rows. A recording has them in a table; other files only have them in the names of rows, "path(line):
 * name".
 */
#include <string.h>

#include <opstrobe/internal/trace.h>

#include "base/text.h"
#include "trace/table.h"

/* Parses the digits that end at `end`; `*ret_start` is where they begin. Returns false if there are none, or too many. */
static bool digits_before(const char *start, const char *end, const char **ret_start, uint32_t *ret_number)
{
	uint32_t number = 0, scale = 1;
	const char *at = end;

	for (; at > start && at[-1] >= '0' && at[-1] <= '9' && end - at < 9; at--) {
		number += (uint32_t)(at[-1] - '0') * scale;
		scale *= 10;
	}
	*ret_start = at;
	*ret_number = number;
	return at < end;
}

/* The last "(line): " separates path and name, because a path may contain anything. */
bool ops_function_parse(struct ops_string text, struct ops_function_text *ret_function)
{
	const char *start = text.bytes, *end = ops_string_end(text);

	for (const char *at = end - 3; text.size > 3 && at > start; at--) {
		const char *open;
		uint32_t line;

		if (memcmp(at, "): ", 3) != 0 || !digits_before(start, at, &open, &line) || open == start || open[-1] != '(')
			continue;
		*ret_function = (struct ops_function_text){
			.name = {at + 3, (size_t)(end - at - 3)},
			.file = {start, (size_t)(open - 1 - start)},
			.line = line,
		};
		return true;
	}
	return false;
}

bool ops_event_function(const struct ops_trace *trace, uint32_t row, struct ops_function_text *ret_function)
{
	const struct ops_events *e = &trace->events;

	if (e->kind[row] != OPS_EVENT_PYTHON_FUNCTION)
		return false;
	if (e->function && e->function[row] != OPS_NONE) {
		const struct ops_function *function = &trace->functions.items[e->function[row]];

		*ret_function = (struct ops_function_text){
			.name = ops_trace_string(trace, function->name),
			.file = ops_trace_string(trace, function->file),
			.line = function->line,
		};
		return true;
	}
	return ops_function_parse(ops_trace_string(trace, e->name[row]), ret_function);
}

uint32_t ops_event_caller(const struct ops_trace *trace, uint32_t row)
{
	const struct ops_events *e = &trace->events;
	struct ops_function_text function;

	do
		row = e->parent[row];
	while (row != OPS_NONE && !(ops_event_function(trace, row, &function) && function.file.size));
	return row;
}

struct ops_string ops_path_in_torch(struct ops_string file)
{
	const char *found = ops_string_starts(file, "torch/") ? file.bytes : memmem(file.bytes, file.size, "/torch/", 7);
	const char *path = found ? found + (*found == '/' ? 7 : 6) : NULL;

	return (struct ops_string){path, path ? (size_t)(ops_string_end(file) - path) : 0};
}

bool ops_file_is_torch(struct ops_string file)
{
	return ops_path_in_torch(file).bytes || (file.size && file.bytes[0] == '<');
}

bool ops_stack_function(struct ops_string stack, struct ops_function_text *ret_function)
{
	const char *end = ops_string_end(stack);

	for (const char *at = stack.bytes, *next; at < end; at = next < end ? next + 1 : end) {
		next = memchr(at, ';', (size_t)(end - at));
		next = next ? next : end;
		if (ops_function_parse((struct ops_string){at, (size_t)(next - at)}, ret_function) && ret_function->file.size &&
		    !ops_file_is_torch(ret_function->file))
			return true;
	}
	return false;
}

struct ops_string ops_stack_line(struct ops_string stack, uint32_t *ret_line)
{
	struct ops_function_text function;
	bool found = ops_stack_function(stack, &function);

	*ret_line = found ? function.line : 0;
	return found ? function.file : (struct ops_string){"", 0};
}

struct ops_string ops_event_line(const struct ops_trace *trace, uint32_t row, uint32_t *ret_line)
{
	const struct ops_events *e = &trace->events;
	struct ops_function_text function;
	uint32_t line = 0, stack = OPS_NONE, first = row;

	*ret_line = 0;
	for (; row != OPS_NONE; row = e->parent[row]) {
		if (e->kind[row] == OPS_EVENT_PYTHON_FUNCTION && ops_event_function(trace, row, &function) &&
		    function.file.size && !ops_file_is_torch(function.file)) {
			*ret_line = line ? line : function.line;
			return function.file;
		}
		/* The line that opened a range is not the line of a call inside it, because the function continues after opening
		 * it. */
		if (e->call_line && e->call_line[row] && (row == first || e->kind[row] != OPS_EVENT_USER_ANNOTATION))
			line = e->call_line[row];
		if (e->call_stack && stack == OPS_NONE)
			stack = e->call_stack[row];
	}
	return stack == OPS_NONE ? (struct ops_string){"", 0} : ops_stack_line(ops_trace_string(trace, stack), ret_line);
}
