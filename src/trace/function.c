/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of Python rows. A recording has them in a table; other files only have them in the names of rows, "path(line):
 * name".
 */
#include <string.h>

#include <opstrobe/internal/trace.h>

#include "base/alloc.h"
#include "base/text.h"
#include "trace/derived.h"
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

/* --- lines of events ------------------------------------------------------------------------------------------------- */

/* Where the program called a row. */
struct event_line {
	uint32_t function; /* innermost function outside of torch that contains the row, or is the row; OPS_NONE: none */
	/* With a function, the line of the outermost call between it and the row, 0 if unknown; else the innermost call stack,
	 * which may be OPS_NONE. */
	uint32_t line;
};

/* Returns whether a row is a function outside of torch. `known`, by function and then by string, is 0 for those that no row has had
 * before, 1 for false and 2 for true. */
static bool is_function_outside(const struct ops_trace *trace, uint32_t row, uint8_t *known)
{
	const struct ops_events *e = &trace->events;
	struct ops_function_text function;

	if (e->kind[row] != OPS_EVENT_PYTHON_FUNCTION)
		return false;
	known += e->function && e->function[row] != OPS_NONE ? e->function[row] : trace->functions.count + e->name[row];
	if (!*known)
		*known = ops_event_function(trace, row, &function) && function.file.size && !ops_file_is_torch(function.file) ? 2 : 1;
	return *known == 2;
}

static struct event_line line_of_row(const struct ops_trace *trace, const struct event_line *lines, uint32_t row, uint8_t *known)
{
	const struct ops_events *e = &trace->events;
	uint32_t parent = e->parent[row];
	struct event_line line = parent == OPS_NONE ? (struct event_line){OPS_NONE, OPS_NONE} : lines[parent];

	if (is_function_outside(trace, row, known))
		return (struct event_line){row, 0};
	if (line.function == OPS_NONE && e->call_stack && e->call_stack[row] != OPS_NONE)
		line.line = e->call_stack[row];
	/* The line that opened a range is not the line of a call inside it, because the function continues after opening it. */
	if (line.function != OPS_NONE && !line.line && e->call_line && e->kind[row] != OPS_EVENT_USER_ANNOTATION)
		line.line = e->call_line[row];
	return line;
}

static void lines_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	size_t count = trace->events.count + 1;
	struct event_line *lines = ops_realloc_array(NULL, count, sizeof(*lines));
	uint8_t *known = ops_alloc_zeroed(trace->functions.count + ops_trace_string_count(trace) + 1, sizeof(*known));

	if (lines && known) {
		for (uint32_t row = 0; row < trace->events.count; row++)
			lines[row] = line_of_row(trace, lines, row, known);
		*ret_made = (struct ops_derived_object){lines, ops_free, count * sizeof(*lines)};
	} else {
		ops_free(lines);
	}
	ops_free(known);
}

struct ops_string ops_event_line(const struct ops_trace *trace, uint32_t row, uint32_t *ret_line)
{
	const struct event_line *lines = ops_trace_derive(trace, OPS_DERIVED_LINES, lines_derive);
	struct ops_function_text function;

	*ret_line = 0;
	if (!lines || (lines[row].function == OPS_NONE && lines[row].line == OPS_NONE))
		return (struct ops_string){"", 0};
	if (lines[row].function == OPS_NONE)
		return ops_stack_line(ops_trace_string(trace, lines[row].line), ret_line);
	ops_event_function(trace, lines[row].function, &function);
	*ret_line = lines[row].line;
	if (!*ret_line && lines[row].function != row && trace->events.call_line)
		*ret_line = trace->events.call_line[row]; /* of a range itself */
	if (!*ret_line)
		*ret_line = function.line;
	return function.file;
}
