/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists in JSON files; see json_list.h.
 */
#include "base/json_list.h"

#include <inttypes.h>
#include <string.h>

#include "base/fault.h"
#include "base/window.h"

struct list_reader {
	struct ops_source *source;
	struct ops_window window;
	struct ops_error *error;
};

static enum ops_code json_list_fail(struct list_reader *reader, const char *at, const char *failure)
{
	return ops_fault(reader->error, OPS_CORRUPT, "byte %" PRIu64 ": %s", ops_window_offset(&reader->window, at), failure);
}

/* Finds the next non-whitespace character; 0 at the end of the text. */
static enum ops_code json_list_peek(struct list_reader *reader, char *ret_first)
{
	struct ops_window *window = &reader->window;
	enum ops_code code = OPS_OK;

	for (;;) {
		struct ops_json_cursor cursor = {window->at, window->end, NULL};

		ops_json_skip_space(&cursor);
		window->at = (char *)cursor.at;
		*ret_first = cursor.at < cursor.end ? *cursor.at : 0;
		if (cursor.at < cursor.end || window->last || code)
			return code;
		code = ops_window_more(window, reader->error);
	}
}

/* Parses a value, which is valid until more text is read. */
static enum ops_code json_list_parse_value(struct list_reader *reader, struct ops_json_member *ret_value)
{
	struct ops_window *window = &reader->window;

	for (;;) {
		struct ops_json_cursor cursor = {window->at, window->end, NULL};
		enum ops_json_result result = ops_json_parse_value(&cursor, ret_value);
		enum ops_code code;

		if (result == OPS_JSON_DONE) {
			window->at = (char *)cursor.at;
			return OPS_OK;
		}
		if (result == OPS_JSON_BAD)
			return json_list_fail(reader, cursor.at, cursor.failure);
		if (window->last)
			return json_list_fail(reader, window->end, "the text ends early");
		code = ops_window_more(window, reader->error);
		if (code)
			return code;
	}
}

/* Skips a comma or the closing bracket. `*ret_more` is whether an element follows. */
static enum ops_code pass_comma(struct list_reader *reader, char bracket, bool first, bool *ret_more)
{
	char next;
	enum ops_code code = json_list_peek(reader, &next);

	*ret_more = false;
	if (code)
		return code;
	if (next == bracket) {
		reader->window.at++;
		return OPS_OK;
	}
	if (!first && next != ',')
		return json_list_fail(reader, reader->window.at,
		                      next ? "expected ',' or the end of a list" : "the text ends early");
	if (!first) {
		reader->window.at++;
		code = json_list_peek(reader, &next);
	}
	*ret_more = true;
	return code;
}

static enum ops_code parse_elements(struct list_reader *reader, ops_json_list_add *add, void *context)
{
	struct ops_json_member element;
	enum ops_code code;
	bool first = true, more;

	reader->window.at++;
	while (!(code = pass_comma(reader, ']', first, &more)) && more) {
		first = false;
		code = json_list_parse_value(reader, &element);
		if (!code)
			code = add(context, &element, reader->error);
		if (code)
			break;
	}
	return code;
}

/* Moves to the value of the member `key`. */
static enum ops_code json_list_find_member(struct list_reader *reader, const char *key)
{
	struct ops_json_member member;
	enum ops_code code;
	bool first = true, more;
	char next;

	reader->window.at++;
	while (!(code = pass_comma(reader, '}', first, &more)) && more) {
		bool found;

		first = false;
		code = json_list_parse_value(reader, &member);
		if (code)
			return code;
		found = member.type == '"' && member.value_size == strlen(key) &&
		        memcmp(member.value, key, member.value_size) == 0;
		code = json_list_peek(reader, &next);
		if (code)
			return code;
		if (member.type != '"' || next != ':')
			return json_list_fail(reader, reader->window.at, "expected a name in quotes and ':'");
		reader->window.at++;
		code = json_list_peek(reader, &next);
		if (code || found)
			return code;
		code = json_list_parse_value(reader, &member);
		if (code)
			return code;
	}
	return code ? code : ops_fault(reader->error, OPS_CORRUPT, "there is no '%s'", key);
}

static enum ops_code read_list(struct list_reader *reader, const char *key, ops_json_list_add *add, void *context)
{
	char next;
	enum ops_code code = json_list_peek(reader, &next);

	if (!code && key) {
		if (next != '{')
			return json_list_fail(reader, reader->window.at, "not an object");
		code = json_list_find_member(reader, key);
		next = *reader->window.at; /* the text is followed by padding */
	}
	if (!code && next != '[')
		code = json_list_fail(reader, reader->window.at, "not a list");
	return code ? code : parse_elements(reader, add, context);
}

enum ops_code ops_json_list_read(const char *path, const char *key, ops_json_list_add *add, void *context,
                                 struct ops_error *error)
{
	struct list_reader reader = {.error = error};
	enum ops_code code = ops_source_open_file(path, &reader.source, error);

	if (!code)
		code = ops_window_open(&reader.window, &reader.source, error);
	if (!code)
		code = read_list(&reader, key, add, context);
	ops_window_release(&reader.window);
	ops_source_close(reader.source);
	return code ? ops_fault_context(error, code, "cannot read '%s'", path) : OPS_OK;
}
