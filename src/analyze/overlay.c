/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a trace file value by value.
 */
#include "analyze/overlay.h"

#include <string.h>

#include "base/fault.h"
#include "base/json_scan.h"
#include "base/json_walk.h"
#include "base/window.h"
#include "base/sink.h"
#include "base/source.h"
#include "base/text.h"

struct copy {
	struct ops_source *source;
	struct ops_window window;
	struct ops_sink *sink;
	const struct overlay *overlay;
	struct ops_buffer text; /* marks, or the text of an added event */
	struct ops_error *error;
	uint32_t index;  /* index of the next event */
	bool comma;      /* an event was written */
};

/* The text of a value as it is in the file. */
struct value {
	const char *bytes;
	size_t size;
	struct ops_json_member member;
};

static enum ops_code overlay_fail(struct copy *copy, const char *what)
{
	return ops_fault(copy->error, OPS_CORRUPT, "byte %llu: %s",
	                 (unsigned long long)ops_window_offset(&copy->window, copy->window.at), what);
}

/* Returns the next non-whitespace character, NUL at the end of the text. */
static enum ops_code overlay_peek(struct copy *copy, char *ret_character)
{
	enum ops_code code = OPS_OK;

	for (;;) {
		struct ops_json_cursor cursor = {.at = copy->window.at, .end = copy->window.end};

		ops_json_skip_space(&cursor);
		copy->window.at = (char *)(uintptr_t)cursor.at;
		if (cursor.at < cursor.end || copy->window.last || code)
			break;
		code = ops_window_more(&copy->window, copy->error);
	}
	*ret_character = copy->window.at < copy->window.end ? *copy->window.at : '\0';
	return code;
}

/* Consumes the character that the syntax requires here. */
static enum ops_code overlay_expect(struct copy *copy, char character)
{
	char found;
	enum ops_code code = overlay_peek(copy, &found);

	if (!code && found != character)
		return overlay_fail(copy, "this is not a trace");
	if (!code)
		copy->window.at++;
	return code;
}

/* Reads a value, which is valid until the next call. */
static enum ops_code overlay_read(struct copy *copy, struct value *ret_value)
{
	for (;;) {
		struct ops_json_cursor cursor = {.at = copy->window.at, .end = copy->window.end};
		enum ops_json_result result = ops_json_parse_value(&cursor, &ret_value->member);
		enum ops_code code;

		/* A number may continue beyond the window. */
		if (result == OPS_JSON_DONE && (cursor.at < copy->window.end || copy->window.last)) {
			ret_value->bytes = copy->window.at;
			ret_value->size = (size_t)(cursor.at - copy->window.at);
			copy->window.at = (char *)(uintptr_t)cursor.at;
			return OPS_OK;
		}
		if (result == OPS_JSON_BAD)
			return overlay_fail(copy, "this is not JSON");
		if (copy->window.last)
			return overlay_fail(copy, "the text ends early");
		code = ops_window_more(&copy->window, copy->error);
		if (code)
			return code;
	}
}

static void overlay_put(struct copy *copy, const char *bytes, size_t size)
{
	ops_sink_write(copy->sink, bytes, size);
}

/* Copies an object up to its closing brace, then appends `before` and the text, after a comma if the object has
 * members. */
static void put_into(struct copy *copy, const char *start, const char *brace, const char *before)
{
	const char *last = brace;

	while (last > start && strchr(" \t\r\n", last[-1]))
		last--;
	overlay_put(copy, start, (size_t)(brace - start));
	if (last > start && last[-1] != '{' && last[-1] != ',')
		overlay_put(copy, ",", 1);
	overlay_put(copy, before, strlen(before));
	overlay_put(copy, copy->text.bytes, copy->text.size);
}

/* Writes the event with the marks as its last arguments. */
static void put_marked(struct copy *copy, const struct value *event)
{
	struct ops_json_walk walk = ops_json_walk(event->bytes, event->size);
	struct ops_string key, value, args = {NULL, 0};
	const char *end = event->bytes + event->size;

	while (ops_json_next_member(&walk, &key, &value))
		if (ops_string_is(key, "args") && value.size >= 2 && value.bytes[0] == '{')
			args = value;
	if (args.bytes) {
		const char *brace = args.bytes + args.size - 1;

		put_into(copy, event->bytes, brace, "");
		overlay_put(copy, brace, (size_t)(end - brace));
	} else {
		put_into(copy, event->bytes, end - 1, "\"args\":{");
		overlay_put(copy, "}}", 2);
	}
}

/* Writes the event with another name and without its arguments. */
static void put_renamed(struct copy *copy, const struct value *event)
{
	struct ops_json_walk walk = ops_json_walk(event->bytes, event->size);
	struct ops_string key, value;

	overlay_put(copy, "{\"name\":", 8);
	overlay_put(copy, copy->text.bytes, copy->text.size);
	while (ops_json_next_member(&walk, &key, &value)) {
		if (ops_string_is(key, "args") || ops_string_is(key, "name"))
			continue;
		overlay_put(copy, ",\"", 2);
		overlay_put(copy, key.bytes, key.size);
		overlay_put(copy, "\":", 2);
		overlay_put(copy, value.bytes, value.size);
	}
	overlay_put(copy, "}", 1);
}

static enum ops_code overlay_copy_event(struct copy *copy)
{
	struct value event;
	enum overlay_action action = OVERLAY_KEEP;
	enum ops_code code = overlay_read(copy, &event);

	if (code)
		return code;
	copy->text.size = 0;
	if (event.bytes[0] == '{' && copy->overlay->event)
		action = copy->overlay->event(copy->overlay->context, copy->index, &copy->text);
	copy->index++;
	if (action == OVERLAY_LEAVE_OUT)
		return OPS_OK;
	overlay_put(copy, ",\n", copy->comma ? 2 : 0);
	copy->comma = true;
	if (action == OVERLAY_MARK)
		put_marked(copy, &event);
	else if (action == OVERLAY_RENAME)
		put_renamed(copy, &event);
	else
		overlay_put(copy, event.bytes, event.size);
	return OPS_OK;
}

static void add_events(struct copy *copy)
{
	for (size_t i = 0; !copy->text.failed; i++) {
		copy->text.size = 0;
		if (!copy->overlay->add(copy->overlay->context, i, &copy->text))
			break;
		overlay_put(copy, ",\n", copy->comma ? 2 : 0);
		copy->comma = true;
		overlay_put(copy, copy->text.bytes, copy->text.size);
	}
}

static enum ops_code copy_events(struct copy *copy)
{
	enum ops_code code = overlay_expect(copy, '[');
	char next = '\0';

	overlay_put(copy, "[\n", 2);
	while (!code && !(code = overlay_peek(copy, &next)) && next != ']') {
		if (next == ',')
			copy->window.at++;
		else
			code = overlay_copy_event(copy);
	}
	if (!code)
		code = overlay_expect(copy, ']');
	if (!code)
		add_events(copy);
	overlay_put(copy, "]", 1);
	return code;
}

static enum ops_code copy_member(struct copy *copy)
{
	struct value value;
	enum ops_code code = overlay_read(copy, &value);
	bool events;
	char next = '\0';

	if (code)
		return code;
	if (value.member.type != '"')
		return overlay_fail(copy, "this is not a trace");
	events = value.size == strlen("\"traceEvents\"") && !memcmp(value.bytes, "\"traceEvents\"", value.size);
	overlay_put(copy, value.bytes, value.size);
	overlay_put(copy, ":", 1);
	code = overlay_expect(copy, ':');
	if (!code)
		code = overlay_peek(copy, &next);
	if (!code && events && next == '[')
		return copy_events(copy);
	if (!code)
		code = overlay_read(copy, &value);
	if (!code)
		overlay_put(copy, value.bytes, value.size);
	return code;
}

static enum ops_code copy_document(struct copy *copy)
{
	char next;
	enum ops_code code = overlay_peek(copy, &next);
	bool comma = false;

	if (!code && next == '[')
		return copy_events(copy);
	if (!code)
		code = overlay_expect(copy, '{');
	overlay_put(copy, "{", 1);
	while (!code && !(code = overlay_peek(copy, &next)) && next != '}') {
		if (next == ',') {
			copy->window.at++;
			continue;
		}
		overlay_put(copy, ",\n", comma ? 2 : 0);
		comma = true;
		code = copy_member(copy);
	}
	overlay_put(copy, "}\n", 2);
	return code;
}

/* "dir/run.json.gz" becomes "directory/PREFIXrun.json.gz", or "directory/runSUFFIX.gz" if there is a suffix. Without a directory,
 * the copy is next to the file. */
static void name_target(const struct overlay *overlay, const char *path, const char *directory, struct ops_buffer *out)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t size = strlen(name);

	size -= size > 3 && !strcmp(name + size - 3, ".gz") ? 3 : 0;
	size -= size > 4 && !strcmp(name + size - 4, ".zst") ? 4 : 0;
	size -= overlay->suffix && size > 5 && !strncmp(name + size - 5, ".json", 5) ? 5 : 0;
	if (*directory)
		ops_buffer_printf(out, "%s/", directory);
	else
		ops_buffer_append(out, path, (size_t)(name - path));
	ops_buffer_printf(out, "%s%.*s%s.gz", overlay->prefix ? overlay->prefix : "", (int)size, name,
	                  overlay->suffix ? overlay->suffix : "");
	ops_buffer_append(out, "", 1);
}

size_t overlay_positions(const struct event_table *table)
{
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++)
		if (table->rows[i].index != OPS_NONE && table->rows[i].index >= count)
			count = (size_t)table->rows[i].index + 1;
	return count;
}

enum ops_code overlay_write(const struct ops_rank *rank, const char *directory, const struct overlay *overlay, struct ops_buffer *ret_path,
                            struct ops_error *error)
{
	struct copy copy = {.overlay = overlay, .error = error};
	enum ops_code code;

	if (!rank->path)
		return ops_fault(error, OPS_INVALID, "option 'output_dir' requires a trace that was read from a file");
	name_target(overlay, rank->path, directory, ret_path);
	if (ret_path->failed)
		return ops_fault_memory(error);
	code = ops_source_open_file(rank->path, &copy.source, error);
	if (!code)
		code = ops_window_open(&copy.window, &copy.source, error);
	if (!code)
		code = ops_sink_open_file(ret_path->bytes, 4, &copy.sink, error);
	if (!code)
		code = copy_document(&copy);
	if (!code && copy.text.failed)
		code = ops_fault_memory(error);
	if (!code)
		code = ops_sink_close(copy.sink, error);
	else
		ops_sink_abandon(copy.sink);
	ops_window_release(&copy.window);
	ops_source_close(copy.source);
	ops_buffer_release(&copy.text);
	return code;
}
