/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the tokens of JSON text and splits objects into members. No tree is built: a member is the position of its key and value.
 * Nested values are skipped bracket by bracket, sixteen bytes at a time, and parsed only on request. Nothing is read beyond the
 * end of the text.
 *
 * All JSON readers use it: the reader of trace files, which splits objects in a moving window (window.h), the walk over small
 * values (json_walk.h), the validator (json.h), and the normalization of values (json_value.h).
 *
 * Text that is almost JSON is accepted with a diagnostic: superfluous commas, control characters and invalid UTF-8 in strings,
 * bare words such as NaN.
 */
#ifndef OPS_BASE_JSON_SCAN_H
#define OPS_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Maximum nesting of brackets in a value. */
#define OPS_JSON_DEPTH_MAX 64u

/* What a value begins with: '"', '[', '{', or one of these. */
enum ops_json_type { OPS_JSON_NUMBER = 'n', OPS_JSON_WORD = 'w' /* true, false, null, NaN, … */ };

/* Flags of a string, or of all strings in a value. */
enum ops_json_flag {
	OPS_JSON_ESCAPED = 1, /* has backslashes */
	OPS_JSON_HIGH = 2,    /* has bytes outside of ASCII */
	OPS_JSON_CONTROL = 4, /* has control characters */
};

/* --- tokens --------------------------------------------------------------------------------------------------------- */

/* Returns the end of white space. Files indent all lines alike, so the processor predicts these branches; bit masks would make it
 * wait for each. */
static inline const char *ops_json_space_end(const char *at, const char *end)
{
	while (end - at >= 4) {
		if ((uint8_t)*at > ' ')
			return at;
		if (memcmp(at, "    ", 4) == 0)
			at += 4;
		else if (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
			at++;
		else
			return at;
	}
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	return at;
}

/* Returns the quote that ends the string whose first character is at `at`, or NULL if the text ends before it. Adds the
 * properties of the string to `flags`. */
const char *ops_json_string_end(const char *at, const char *end, uint8_t *flags);

/* Returns the end of the JSON number at `at`. If it is not a complete number, `*ret_whole` is false and a digit is missing at the
 * returned position. */
const char *ops_json_number_end(const char *at, const char *end, bool *ret_whole);

/* Returns the position after the bracket that closes the one at `at`, in text that is known to be well-formed; `end` if there is
 * none. */
const char *ops_json_nested_end(const char *at, const char *end);

/* --- values and objects --------------------------------------------------------------------------------------------- */

struct ops_json_member {
	const char *key; /* raw, without its quotes */
	const char *value; /* raw; of a string, without its quotes */
	uint32_t key_size;
	uint32_t value_size;
	uint8_t type;  /* enum ops_json_type or first character */
	uint8_t flags; /* enum ops_json_flag of the value */
};

#define OPS_JSON_MEMBERS_MAX 1024u

/* An object split into members. The members of its member "args", if that is an object, are included. */
struct ops_json_object {
	struct ops_json_member members[OPS_JSON_MEMBERS_MAX];
	struct ops_json_member args[OPS_JSON_MEMBERS_MAX];
	uint32_t count;
	uint32_t arg_count;
	const char *comma;   /* the first superfluous comma, or NULL */
	uint32_t commas;
};

enum ops_json_result {
	OPS_JSON_DONE,
	OPS_JSON_MORE, /* the text ends before the value */
	OPS_JSON_BAD,
};

/* A position in the text, and the error there. */
struct ops_json_cursor {
	const char *at;
	const char *end;
	const char *failure;
};

/* Splits the object whose '{' is at the cursor, which is then after its '}'. */
enum ops_json_result ops_json_parse_object(struct ops_json_cursor *cursor, struct ops_json_object *object);
/* Parses one value of any type; its key is empty. */
enum ops_json_result ops_json_parse_value(struct ops_json_cursor *cursor, struct ops_json_member *value);

static inline void ops_json_skip_space(struct ops_json_cursor *cursor)
{
	cursor->at = ops_json_space_end(cursor->at, cursor->end);
}

/* Parses the next element of the array that the cursor is in. Returns false at its end. */
static inline bool ops_json_parse_element(struct ops_json_cursor *cursor, struct ops_json_member *value)
{
	ops_json_skip_space(cursor);
	if (cursor->at < cursor->end && *cursor->at == ',')
		cursor->at++;
	ops_json_skip_space(cursor);
	return cursor->at < cursor->end && *cursor->at != ']' && ops_json_parse_value(cursor, value) == OPS_JSON_DONE;
}

#endif
