/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes JSON documents piece by piece, and adds the commas. Keys are constants of the program; values may be any bytes. If
 * memory runs out, the buffer is marked as failed.
 *
 *     struct ops_json_writer json = {.out = &buffer};
 *     ops_json_open(&json, '{');
 *     ops_json_key(&json, "count");
 *     ops_json_integer(&json, 3);
 *     ops_json_close(&json, '}');
 */
#ifndef OPS_BASE_JSON_WRITER_H
#define OPS_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>

#include "base/buffer.h"

struct ops_json_writer {
	struct ops_buffer *out;
	bool comma; /* the next value is preceded by a comma */
};

/* The bracket is '{' or '[', and '}' or ']'. */
void ops_json_open(struct ops_json_writer *json, char bracket);
void ops_json_close(struct ops_json_writer *json, char bracket);
void ops_json_key(struct ops_json_writer *json, const char *key);
void ops_json_key_of(struct ops_json_writer *json, const char *bytes, size_t size);
void ops_json_text(struct ops_json_writer *json, const char *bytes, size_t size);
void ops_json_word(struct ops_json_writer *json, const char *text); /* ends with a NUL */
void ops_json_integer(struct ops_json_writer *json, int64_t value);
/* Writes the shortest text that reads back the same; infinities and NaN become null. */
void ops_json_number(struct ops_json_writer *json, double value);
/* Writes nanoseconds as microseconds, without trailing zeros. */
void ops_json_us(struct ops_json_writer *json, int64_t ns);
void ops_json_bool(struct ops_json_writer *json, bool value);
void ops_json_null(struct ops_json_writer *json);
/* Writes a key and its value. With a bracket, the caller writes and closes the value. */
void ops_json_member_open(struct ops_json_writer *json, const char *key, char bracket);
void ops_json_member(struct ops_json_writer *json, const char *key, int64_t value);
void ops_json_member_us(struct ops_json_writer *json, const char *key, int64_t ns);
void ops_json_member_text(struct ops_json_writer *json, const char *key, const char *text);
void ops_json_member_string(struct ops_json_writer *json, const char *key, struct ops_string string);
void ops_json_member_number(struct ops_json_writer *json, const char *key, double value);
void ops_json_member_bool(struct ops_json_writer *json, const char *key, bool value);
void ops_json_member_null(struct ops_json_writer *json, const char *key);
void ops_json_member_or_null(struct ops_json_writer *json, const char *key, int64_t value); /* a negative value is written as null */
/* Write null unless the value is known; of a text unless it is not empty. */
void ops_json_member_if(struct ops_json_writer *json, const char *key, bool known, int64_t value);
void ops_json_member_us_if(struct ops_json_writer *json, const char *key, bool known, int64_t ns);
void ops_json_member_string_or_null(struct ops_json_writer *json, const char *key, struct ops_string string);
void ops_json_member_raw(struct ops_json_writer *json, const char *key, struct ops_string value); /* JSON already */
/* Adds members, given as "\"name\":value" joined by commas, to the object that is the complete text `*text`, which is
 * reallocated. A text that is not an object is not changed. */
enum ops_code ops_json_object_add(char **text, size_t *size, const struct ops_buffer *members, struct ops_error *error);
/* Writes a value that is JSON already. */
void ops_json_raw(struct ops_json_writer *json, const char *text, size_t size);

/* Writes a member that is a list: the last argument writes the element with the index `i`. */
#define OPS_JSON_LIST(json, key, i, count, ...)                                                    \
	do {                                                                                       \
		ops_json_member_open(json, key, '[');                                              \
		for (size_t i = 0; i < (count); i++)                                               \
			__VA_ARGS__;                                                               \
		ops_json_close(json, ']');                                                         \
	} while (0)

#endif
