/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes JSON documents piece by piece; see json_writer.h.
 */
#include "base/json_writer.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"

#define NUMBER_ROOM 40

static void before_value(struct ops_json_writer *json)
{
	if (json->comma)
		ops_buffer_append(json->out, ",", 1);
	json->comma = true;
}

void ops_json_open(struct ops_json_writer *json, char bracket)
{
	before_value(json);
	ops_buffer_append(json->out, &bracket, 1);
	json->comma = false;
}

void ops_json_close(struct ops_json_writer *json, char bracket)
{
	ops_buffer_append(json->out, &bracket, 1);
	json->comma = true;
}

void ops_json_key_of(struct ops_json_writer *json, const char *bytes, size_t size)
{
	before_value(json);
	ops_json_string(json->out, bytes, size);
	ops_buffer_append(json->out, ":", 1);
	json->comma = false;
}

void ops_json_key(struct ops_json_writer *json, const char *key)
{
	ops_json_key_of(json, key, strlen(key));
}

void ops_json_text(struct ops_json_writer *json, const char *bytes, size_t size)
{
	before_value(json);
	ops_json_string(json->out, bytes, size);
}

void ops_json_word(struct ops_json_writer *json, const char *text)
{
	ops_json_text(json, text, strlen(text));
}

void ops_json_raw(struct ops_json_writer *json, const char *text, size_t size)
{
	before_value(json);
	ops_buffer_append(json->out, text, size);
}

void ops_json_integer(struct ops_json_writer *json, int64_t value)
{
	before_value(json);
	ops_buffer_append_int(json->out, value);
}

void ops_json_number(struct ops_json_writer *json, double value)
{
	char *room;

	before_value(json);
	room = ops_buffer_room(json->out, NUMBER_ROOM);
	if (room)
		json->out->size += (size_t)(ops_json_double_to(room, value) - room);
}

void ops_json_us(struct ops_json_writer *json, int64_t ns)
{
	char *room, *end;

	before_value(json);
	room = ops_buffer_room(json->out, NUMBER_ROOM);
	if (!room)
		return;
	end = ops_json_us_to(room, ns);
	while (end[-1] == '0')
		end--;
	if (end[-1] == '.')
		end--;
	json->out->size += (size_t)(end - room);
}

void ops_json_bool(struct ops_json_writer *json, bool value)
{
	before_value(json);
	ops_buffer_append_text(json->out, value ? "true" : "false");
}

void ops_json_null(struct ops_json_writer *json)
{
	before_value(json);
	ops_buffer_append_text(json->out, "null");
}

void ops_json_member_open(struct ops_json_writer *json, const char *key, char bracket)
{
	ops_json_key(json, key);
	ops_json_open(json, bracket);
}

void ops_json_member(struct ops_json_writer *json, const char *key, int64_t value)
{
	ops_json_key(json, key);
	ops_json_integer(json, value);
}

void ops_json_member_us(struct ops_json_writer *json, const char *key, int64_t ns)
{
	ops_json_key(json, key);
	ops_json_us(json, ns);
}

void ops_json_member_text(struct ops_json_writer *json, const char *key, const char *text)
{
	ops_json_key(json, key);
	ops_json_text(json, text, strlen(text));
}

void ops_json_member_string(struct ops_json_writer *json, const char *key, struct ops_string string)
{
	ops_json_key(json, key);
	ops_json_text(json, string.size ? string.bytes : "", string.size);
}

void ops_json_member_number(struct ops_json_writer *json, const char *key, double value)
{
	ops_json_key(json, key);
	ops_json_number(json, value);
}

void ops_json_member_bool(struct ops_json_writer *json, const char *key, bool value)
{
	ops_json_key(json, key);
	ops_json_bool(json, value);
}

void ops_json_member_null(struct ops_json_writer *json, const char *key)
{
	ops_json_key(json, key);
	ops_json_null(json);
}

void ops_json_member_or_null(struct ops_json_writer *json, const char *key, int64_t value)
{
	ops_json_member_if(json, key, value >= 0, value);
}

void ops_json_member_if(struct ops_json_writer *json, const char *key, bool known, int64_t value)
{
	ops_json_key(json, key);
	if (known)
		ops_json_integer(json, value);
	else
		ops_json_null(json);
}

void ops_json_member_us_if(struct ops_json_writer *json, const char *key, bool known, int64_t ns)
{
	ops_json_key(json, key);
	if (known)
		ops_json_us(json, ns);
	else
		ops_json_null(json);
}

void ops_json_member_string_or_null(struct ops_json_writer *json, const char *key, struct ops_string string)
{
	ops_json_key(json, key);
	if (string.size)
		ops_json_text(json, string.bytes, string.size);
	else
		ops_json_null(json);
}

void ops_json_member_raw(struct ops_json_writer *json, const char *key, struct ops_string value)
{
	ops_json_key(json, key);
	if (value.size)
		ops_json_raw(json, value.bytes, value.size);
	else
		ops_json_null(json);
}

/* --- finished objects ----------------------------------------------------------------------------------------------- */

/* Returns the position of the object's closing brace; NULL if the text is not an object. */
static const char *last_brace(const char *text, size_t size)
{
	while (size && (text[size - 1] == '\n' || text[size - 1] == ' '))
		size--;
	return size > 1 && *text == '{' && text[size - 1] == '}' ? text + size - 1 : NULL;
}

enum ops_code ops_json_object_add(char **text, size_t *size, const struct ops_buffer *members, struct ops_error *error)
{
	const char *end = last_brace(*text, *size);
	struct ops_buffer out = {0};
	char *old = *text;
	enum ops_code code;

	if (!end)
		return OPS_OK;
	ops_buffer_append(&out, old, (size_t)(end - old));
	ops_buffer_append_text(&out, end[-1] == '{' ? "" : ",");
	ops_buffer_append(&out, members->bytes, members->size);
	ops_buffer_append(&out, end, (size_t)(old + *size - end));
	out.failed |= members->failed;
	code = ops_buffer_detach(&out, OPS_OK, text, size, error);
	if (!code)
		ops_free(old);
	return code;
}
