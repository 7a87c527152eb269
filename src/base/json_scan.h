/* SPDX-License-Identifier: Apache-2.0
 *
 * The tokens of JSON text, and the split of objects into members. No tree is built: a member is the position of its key
 * and value. Nested values are skipped bracket by bracket, sixteen bytes at a time, and parsed only on request. Nothing is
 * read after the end of the text.
 *
 * All JSON readers find their tokens here: the reader of trace files, which splits objects in a moving window
 * (window.h), the walk over small values (json_walk.h), the validator (json.h), and the normalization of values
 * (json_value.h).
 *
 * Text that is almost JSON is accepted with a diagnostic: superfluous commas, control characters and invalid UTF-8 in
 * strings, bare words such as NaN.
 */
#ifndef OPS_BASE_JSON_SCAN_H
#define OPS_BASE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many brackets may be open at once in a value. */
#define OPS_JSON_DEPTH_MAX 64u

/* What a value begins with: '"', '[', '{', or one of these. */
enum ops_json_type { OPS_JSON_NUMBER = 'n', OPS_JSON_WORD = 'w' /* true, false, null, NaN, … */ };

/* Flags of a string, or of all strings in a value. */
enum ops_json_flag {
	OPS_JSON_ESCAPED = 1, /* has backslashes */
	OPS_JSON_HIGH = 2,    /* has bytes beyond ASCII */
	OPS_JSON_CONTROL = 4, /* has control characters */
};

/* --- tokens --------------------------------------------------------------------------------------------------------- */

/* Behind white space. Files indent every line alike, so that the processor foresees where the branches go; bit masks would
 * make it wait for each. */
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

/* The quote that ends the string whose first character `at` is, or NULL when the text ends before. Adds to `flags` what
 * the string has. */
const char *ops_json_string_end(const char *at, const char *end, uint8_t *flags);

/* Behind the number at `at`, by the grammar of JSON. Where it is none, `*ret_whole` is false, and a digit is missing at
 * the place that is returned. */
const char *ops_json_number_end(const char *at, const char *end, bool *ret_whole);

/* Behind the bracket that closes the one at `at`, in text that is known to be well-formed; `end` if none does. */
const char *ops_json_nested_end(const char *at, const char *end);

/* --- values and objects --------------------------------------------------------------------------------------------- */

struct ops_json_member {
	const char *key; /* raw, without quotes */
	const char *value; /* raw; a string without its quotes */
	uint32_t key_size;
	uint32_t value_size;
	uint8_t type;  /* enum ops_json_type or first character */
	uint8_t flags; /* enum ops_json_flag, of the value */
};

#define OPS_JSON_MEMBERS_MAX 1024u

/* An object split into members. Those of its member "args", an object, are listed like its own. */
struct ops_json_object {
	struct ops_json_member members[OPS_JSON_MEMBERS_MAX];
	struct ops_json_member args[OPS_JSON_MEMBERS_MAX];
	uint32_t count;
	uint32_t arg_count;
	const char *comma;   /* the first comma too many, or NULL */
	uint32_t commas;
};

enum ops_json_result {
	OPS_JSON_DONE,
	OPS_JSON_MORE, /* the text ends before the value does */
	OPS_JSON_BAD,
};

/* A place in the text, and what is wrong there. */
struct ops_json_cursor {
	const char *at;
	const char *end;
	const char *failure;
};

/* Takes the object apart at whose '{' the cursor is; afterwards it is behind its '}'. */
enum ops_json_result ops_json_take_object(struct ops_json_cursor *cursor, struct ops_json_object *object);
/* Takes one value of any kind; its key is empty. */
enum ops_json_result ops_json_take_value(struct ops_json_cursor *cursor, struct ops_json_member *value);

static inline void ops_json_skip_space(struct ops_json_cursor *cursor)
{
	cursor->at = ops_json_space_end(cursor->at, cursor->end);
}

/* The next element of the array that the cursor is in; false at its end. */
static inline bool ops_json_take_element(struct ops_json_cursor *cursor, struct ops_json_member *value)
{
	ops_json_skip_space(cursor);
	if (cursor->at < cursor->end && *cursor->at == ',')
		cursor->at++;
	ops_json_skip_space(cursor);
	return cursor->at < cursor->end && *cursor->at != ']' && ops_json_take_value(cursor, value) == OPS_JSON_DONE;
}

#endif
