/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of loops and searches; see source.h.
 */
#include "derive/source.h"

#include <stddef.h>
#include <string.h>

#include "base/json_walk.h"
#include "base/text.h"

static bool source_is_line(struct ops_string text, uint32_t *ret_line)
{
	int64_t line;

	if (!ops_json_parse_integer(text, &line) || line <= 0 || line > INT32_MAX)
		return false;
	*ret_line = (uint32_t)line;
	return true;
}

/* Adds a list of pairs of lines. Skips what is not a pair. */
static bool source_add_pairs(struct ops_source *source, struct ops_string file, struct ops_string pairs, bool is_search)
{
	struct ops_json_walk walk = ops_json_walk(pairs.bytes, pairs.size);
	struct ops_string pair, first, last;

	while (ops_json_next_element(&walk, &pair)) {
		struct ops_json_walk of = ops_json_walk(pair.bytes, pair.size);
		struct ops_source_lines lines = {.file = file, .is_search = is_search};

		if (!ops_json_next_element(&of, &first) || !ops_json_next_element(&of, &last) || !source_is_line(first, &lines.first) || !source_is_line(last, &lines.last))
			continue;
		if (!OPS_ARRAY_APPEND(&source->list, lines))
			return false;
	}
	return true;
}

/* Returns a cursor on the files of the metadata "source", which has no members if the trace has none. */
static struct ops_json_walk source_files(const struct ops_trace *trace)
{
	struct ops_string json;

	if (!ops_trace_find_metadata(trace, "source", &json) || json.bytes[0] != '{')
		return ops_json_walk("{}", 2);
	return ops_json_walk(json.bytes, json.size);
}

bool ops_source_find_path(const struct ops_trace *trace, struct ops_string file, struct ops_string *ret_path)
{
	struct ops_json_walk files = source_files(trace);
	struct ops_string path, facts;
	bool found = false;

	while (ops_json_next_member(&files, &path, &facts)) {
		const char *end = ops_string_end(path);

		if (path.size <= file.size + 1 || path.bytes[0] != '/' || end[-(ptrdiff_t)file.size - 1] != '/' ||
		    memcmp(end - file.size, file.bytes, file.size) != 0 || (found && path.size >= ret_path->size))
			continue;
		*ret_path = path;
		found = true;
	}
	return found;
}

bool ops_source_read(struct ops_source *source, const struct ops_trace *trace)
{
	struct ops_json_walk files = source_files(trace);
	struct ops_string file, facts, pairs;
	bool done = true;

	*source = (struct ops_source){0};
	while (done && ops_json_next_member(&files, &file, &facts)) {
		if (ops_json_find_typed(facts, "loops", '[', &pairs))
			done = source_add_pairs(source, file, pairs, false);
		if (done && ops_json_find_typed(facts, "searches", '[', &pairs))
			done = source_add_pairs(source, file, pairs, true);
	}
	return done;
}

void ops_source_release(struct ops_source *source)
{
	OPS_ARRAY_RELEASE(&source->list);
}

static bool source_is_in_file(const struct ops_source_lines *lines, struct ops_string file, bool is_search)
{
	return lines->is_search == is_search && lines->file.size == file.size && !memcmp(lines->file.bytes, file.bytes, file.size);
}

uint32_t ops_source_loop(const struct ops_source *source, struct ops_string file, uint32_t line)
{
	uint32_t innermost = 0;

	for (size_t i = 0; i < source->list.count; i++) {
		const struct ops_source_lines *lines = &source->list.items[i];

		if (source_is_in_file(lines, file, false) && lines->first < line && line <= lines->last && lines->first > innermost)
			innermost = lines->first;
	}
	return innermost;
}

uint32_t ops_source_search(const struct ops_source *source, struct ops_string file, uint32_t function_line)
{
	uint32_t found = 0;

	for (size_t i = 0; i < source->list.count; i++) {
		const struct ops_source_lines *lines = &source->list.items[i];

		if (!source_is_in_file(lines, file, true) || lines->first != function_line)
			continue;
		if (found && found != lines->last)
			return 0;
		found = lines->last;
	}
	return found;
}
