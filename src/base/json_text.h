/* SPDX-License-Identifier: Apache-2.0
 *
 * JSON text as it streams by: a window on it that moves, and in the window objects taken apart into members. Nothing is
 * built: a member is where its key and its value are. What is nested deeper is passed over bracket by bracket, at the speed
 * of looking at sixteen bytes at a time, and told apart only if someone asks.
 *
 * Text that is not quite JSON is taken for what it means, and noted: commas too many, control characters and bytes that are
 * no UTF-8 in strings, bare words such as NaN.
 */
#ifndef OPS_BASE_JSON_TEXT_H
#define OPS_BASE_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#include "base/buffer.h"
#include "base/json_walk.h"
#include "base/source.h"

/* --- the window ----------------------------------------------------------------------------------------------------- */

/* Behind the text in the window there are this many NULs. */
#define OPS_JSON_PADDING 64u
/* No event and no piece of metadata is longer than this. */
#define OPS_JSON_VALUE_MAX (64u << 20)
/* How many brackets may be open at once in a value. */
#define OPS_JSON_DEPTH_MAX 64u

struct ops_json_window {
	struct ops_source *source;
	char *bytes;
	char *at;        /* what comes before is done with */
	char *end;
	size_t capacity;
	uint64_t offset; /* of `bytes` in the text */
	bool last;       /* nothing comes after `end` */
};

/* Of gzip data, which the first bytes tell and not a name, `*source` becomes the text decompressed, or NULL on failure. */
enum ops_code ops_json_window_open(struct ops_json_window *window, struct ops_source **source, struct ops_error *error);
void ops_json_window_release(struct ops_json_window *window);
/* Moves what is left to the front and adds more text behind it, unless this was the last. */
enum ops_code ops_json_window_more(struct ops_json_window *window, struct ops_error *error);

static inline uint64_t ops_json_offset(const struct ops_json_window *window, const char *at)
{
	return window->offset + (uint64_t)(at - window->bytes);
}

/* --- objects -------------------------------------------------------------------------------------------------------- */

/* What a value begins with: '"', '[', '{', or one of these. */
enum ops_json_type { OPS_JSON_NUMBER = 'n', OPS_JSON_WORD = 'w' /* true, false, null, NaN, … */ };

/* Flags of a string, or of all strings in a value. */
enum ops_json_flag {
	OPS_JSON_ESCAPED = 1, /* has backslashes */
	OPS_JSON_HIGH = 2,    /* has bytes beyond ASCII */
	OPS_JSON_CONTROL = 4, /* has control characters */
};

struct ops_json_member {
	const char *key; /* raw, without quotes */
	const char *value; /* raw; a string without its quotes */
	uint32_t key_size;
	uint32_t value_size;
	uint8_t type;  /* enum ops_json_type or first character */
	uint8_t flags; /* enum ops_json_flag, of the value */
};

#define OPS_JSON_MEMBERS_MAX 1024u

/* An object taken apart. The members of its member "args", an object, stand for themselves. */
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
	while (cursor->at < cursor->end &&
	       (*cursor->at == ' ' || *cursor->at == '\n' || *cursor->at == '\r' || *cursor->at == '\t'))
		cursor->at++;
}

/* --- values --------------------------------------------------------------------------------------------------------- */

/* Appends what a raw string stands for. A lone surrogate becomes its three-byte form, an unknown escape stands for itself. */
void ops_json_decode(struct ops_buffer *out, const char *raw, size_t size);

/* A decimal number as a whole number of 10^-scale, rounded; false when it is none or beyond ±limit. */
bool ops_json_decimal(const char *text, size_t size, int scale, int64_t limit, int64_t *ret_value);

/* Appends `size` bytes of JSON as it should be: one value, or (members) those of an object without the braces. White space
 * and commas too many go, bare words are quoted, strings become UTF-8. NULL, or what is wrong with it. The depth is
 * bounded. `ret_words`, if not NULL, is set when a bare word was met. */
const char *ops_json_clean(struct ops_buffer *out, const char *text, size_t size, bool members, bool *ret_words);

#endif
