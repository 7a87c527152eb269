/* SPDX-License-Identifier: Apache-2.0
 *
 * The window, and objects taken apart; see json_text.h.
 */
#include "base/json_text.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define WINDOW_BYTES (512u << 10)

/* --- the window ----------------------------------------------------------------------------------------------------- */

/* Puts a decompressor, at work in a thread of its own, before a source whose first bytes, which are in the window, are
 * those of compressed data. */
static enum ops_code decompress(struct ops_json_window *window, struct ops_source **source, struct ops_error *error)
{
	struct ops_source *inner;
	bool compressed;
	enum ops_code code = ops_source_decompress(source, window->bytes, (size_t)(window->end - window->bytes), &compressed,
	                                           error);

	if (compressed) {
		window->end = window->bytes;
		inner = *source;
		*source = NULL;
		if (!code)
			code = ops_source_open_ahead(inner, source, error);
		window->source = *source;
	}
	return code;
}

enum ops_code ops_json_window_open(struct ops_json_window *window, struct ops_source **source, struct ops_error *error)
{
	enum ops_code code = OPS_OK;
	size_t size = 0, got = 1;

	*window = (struct ops_json_window){.source = *source, .capacity = WINDOW_BYTES};
	window->bytes = window->at = window->end = ops_alloc(WINDOW_BYTES + OPS_JSON_PADDING);
	if (!window->bytes)
		return ops_fault_memory(error);
	memset(window->bytes, 0, OPS_JSON_PADDING);
	while (!code && got && size < 4) {
		code = ops_source_read(*source, window->bytes + size, 4 - size, &got, error);
		size += got;
	}
	window->end += size;
	return code ? code : decompress(window, source, error);
}

void ops_json_window_release(struct ops_json_window *window)
{
	ops_free(window->bytes);
	*window = (struct ops_json_window){0};
}

/* Makes the window twice as large when what is left fills more than half of it. */
static enum ops_code grow(struct ops_json_window *window, struct ops_error *error)
{
	size_t left = (size_t)(window->end - window->at);
	char *grown;

	if (left <= window->capacity / 2)
		return OPS_OK;
	if (window->capacity >= OPS_JSON_VALUE_MAX)
		return ops_fault(error, OPS_CORRUPT, "byte %llu: a value of more than %u MiB",
		                 (unsigned long long)ops_json_offset(window, window->at), OPS_JSON_VALUE_MAX >> 20);
	grown = ops_realloc_array(window->bytes, window->capacity * 2 + OPS_JSON_PADDING, 1);
	if (!grown)
		return ops_fault_memory(error);
	window->bytes = window->at = grown;
	window->end = grown + left;
	window->capacity *= 2;
	return OPS_OK;
}

enum ops_code ops_json_window_more(struct ops_json_window *window, struct ops_error *error)
{
	size_t left = (size_t)(window->end - window->at);
	enum ops_code code;
	size_t size = 1;

	window->offset += (uint64_t)(window->at - window->bytes);
	memmove(window->bytes, window->at, left);
	window->at = window->bytes;
	window->end = window->bytes + left;
	code = grow(window, error);
	while (!code && size && window->end < window->bytes + window->capacity) {
		code = ops_source_read(window->source, window->end,
		                       (size_t)(window->bytes + window->capacity - window->end), &size, error);
		if (!code)
			window->end += size;
	}
	if (!code) {
		window->last = size == 0;
		memset(window->end, 0, OPS_JSON_PADDING);
	}
	return code;
}

/* --- scanning ------------------------------------------------------------------------------------------------------- */

#if defined(__SSE2__)

#define STEP 16
/* Where among the next STEP bytes quotes and backslashes are, brackets and quotes, bytes beyond ASCII, and control
 * characters: a bit each. */
static inline unsigned find_string_marks(const char *at, unsigned *ret_high, unsigned *ret_control)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
	__m128i marks = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
	                             _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));

	/* As signed numbers bytes beyond ASCII are negative, and so below the control characters. */
	*ret_high = (unsigned)_mm_movemask_epi8(bytes);
	*ret_control = (unsigned)_mm_movemask_epi8(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20))) & ~*ret_high;
	return (unsigned)_mm_movemask_epi8(marks);
}

static inline unsigned find_brackets(const char *at)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
	/* With this bit set [ and { are the same, and so are ] and }. */
	__m128i folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
	__m128i marks = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
	                             _mm_or_si128(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')),
	                                          _mm_cmpeq_epi8(folded, _mm_set1_epi8('}'))));

	return (unsigned)_mm_movemask_epi8(marks);
}

#else

#define STEP 8
static inline unsigned find_string_marks(const char *at, unsigned *ret_high, unsigned *ret_control)
{
	unsigned marks = 0;

	*ret_high = *ret_control = 0;
	for (unsigned i = 0; i < STEP; i++) {
		unsigned char byte = (unsigned char)at[i];
		marks |= (unsigned)(byte == '"' || byte == '\\') << i;
		*ret_high |= (unsigned)(byte >= 0x80) << i;
		*ret_control |= (unsigned)(byte < 0x20) << i;
	}
	return marks;
}

static inline unsigned find_brackets(const char *at)
{
	unsigned marks = 0;

	for (unsigned i = 0; i < STEP; i++) {
		char folded = (char)(at[i] | 0x20);
		marks |= (unsigned)(at[i] == '"' || folded == '{' || folded == '}') << i;
	}
	return marks;
}

#endif

/* Behind white space; the NULs behind the text are none. Files indent every line alike, so that the processor foresees
 * where the branches go; bit masks would make it wait for each. */
static inline const char *skip_space(const char *at)
{
	while ((uint8_t)*at <= ' ') {
		if (memcmp(at, "    ", 4) == 0)
			at += 4;
		else if (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')
			at++;
		else
			break;
	}
	return at;
}

/* The quote that ends the string whose first character `at` is, or NULL when the text ends before. */
static const char *string_end(const char *at, const char *end, uint8_t *flags)
{
	while (at < end) {
		unsigned high, control;
		unsigned marks = find_string_marks(at, &high, &control);
		unsigned before = marks ? (marks & -marks) - 1 : ~0u;

		if (high & before)
			*flags |= OPS_JSON_HIGH;
		if (control & before)
			*flags |= OPS_JSON_CONTROL;
		if (!marks) {
			at += STEP;
			continue;
		}
		at += __builtin_ctz(marks);
		if (*at == '"')
			return at < end ? at : NULL;
		*flags |= OPS_JSON_ESCAPED;
		at += 2;
	}
	return NULL;
}

/* Characters of numbers (1) and of words, numbers of other languages among them (2). */
static const uint8_t of_token[256] = {
	['0'] = 1, ['1'] = 1, ['2'] = 1, ['3'] = 1, ['4'] = 1, ['5'] = 1, ['6'] = 1, ['7'] = 1, ['8'] = 1, ['9'] = 1,
	['-'] = 1, ['+'] = 1, ['.'] = 1, ['e'] = 1, ['E'] = 1, ['a'] = 2, ['b'] = 2, ['c'] = 2, ['d'] = 2, ['f'] = 2,
	['g'] = 2, ['h'] = 2, ['i'] = 2, ['j'] = 2, ['k'] = 2, ['l'] = 2, ['m'] = 2, ['n'] = 2, ['o'] = 2, ['p'] = 2,
	['q'] = 2, ['r'] = 2, ['s'] = 2, ['t'] = 2, ['u'] = 2, ['v'] = 2, ['w'] = 2, ['x'] = 2, ['y'] = 2, ['z'] = 2,
	['A'] = 2, ['B'] = 2, ['C'] = 2, ['D'] = 2, ['F'] = 2, ['G'] = 2, ['H'] = 2, ['I'] = 2, ['J'] = 2, ['K'] = 2,
	['L'] = 2, ['M'] = 2, ['N'] = 2, ['O'] = 2, ['P'] = 2, ['Q'] = 2, ['R'] = 2, ['S'] = 2, ['T'] = 2, ['U'] = 2,
	['V'] = 2, ['W'] = 2, ['X'] = 2, ['Y'] = 2, ['Z'] = 2, ['/'] = 2, ['#'] = 2,
};
#define WORD_MAX 16

static enum ops_json_result bad(struct ops_json_cursor *cursor, const char *failure)
{
	if (cursor->at >= cursor->end)
		return OPS_JSON_MORE;
	cursor->failure = failure;
	return OPS_JSON_BAD;
}

/* The brackets that are open in a value: a bit each, 1 for braces, the last one lowest. */
struct brackets {
	uint64_t braces;
	unsigned depth;
};

/* NULL, or what is wrong with it. */
static inline const char *pass_bracket(struct brackets *open, char bracket)
{
	uint64_t brace = (uint64_t)(bracket >> 5 & 1); /* of '{' and '}', and not of '[' and ']' */
	uint64_t last = open->braces & 1;

	if (bracket & 4) { /* of '}' and ']' */
		open->braces >>= 1;
		open->depth--;
		return last == brace ? NULL : "another bracket is open";
	}
	open->braces = open->braces << 1 | brace;
	return open->depth++ < OPS_JSON_DEPTH_MAX ? NULL : "values are nested too deep";
}

/* Whether this may stand behind a string. */
static inline bool follows_string(char c)
{
	return c == ',' || c == ':' || c == ']' || c == '}' || (uint8_t)c <= ' ';
}

/* Goes behind the bracket that closes the one at the cursor. Of what is in between, only brackets and strings are looked
 * at: enough to see at once that a bracket or a quote is missing, and not at the end of the file, by when all of it would
 * be in memory. */
static enum ops_json_result pass_nested(struct ops_json_cursor *cursor, uint8_t *flags)
{
	const char *at = cursor->at, *end = cursor->end;
	struct brackets open = {0, 0};

	while (at < end) {
		unsigned marks = find_brackets(at);
		const char *from = at;

		at += STEP;
		for (; marks; marks &= marks - 1) {
			const char *mark = from + __builtin_ctz(marks);

			if (mark >= end)
				return OPS_JSON_MORE;
			cursor->at = mark;
			if (*mark == '"') {
				at = string_end(mark + 1, end, flags);
				if (!at)
					return OPS_JSON_MORE;
				cursor->at = ++at;
				if (!follows_string(*at))
					return bad(cursor, "',' or a closing bracket is expected");
				break;
			}
			cursor->failure = pass_bracket(&open, *mark);
			if (cursor->failure)
				return OPS_JSON_BAD;
			if (open.depth == 0) {
				cursor->at++;
				return OPS_JSON_DONE;
			}
		}
	}
	return OPS_JSON_MORE;
}

static enum ops_json_result take_token(struct ops_json_cursor *cursor, struct ops_json_member *value)
{
	const char *at = cursor->at;
	uint8_t seen = 0;

	while (of_token[(uint8_t)*at] == 1)
		at++;
	for (; of_token[(uint8_t)*at]; at++)
		seen |= of_token[(uint8_t)*at];
	if (at >= cursor->end)
		return OPS_JSON_MORE;
	if (at == cursor->at || ((seen & 2) && at - cursor->at > WORD_MAX))
		return bad(cursor, "a value is expected");
	value->type = seen & 2 ? OPS_JSON_WORD : OPS_JSON_NUMBER;
	value->value = cursor->at;
	value->value_size = (uint32_t)(at - cursor->at);
	cursor->at = at;
	return OPS_JSON_DONE;
}

enum ops_json_result ops_json_take_value(struct ops_json_cursor *cursor, struct ops_json_member *value)
{
	const char *from = cursor->at, *last;

	value->flags = 0;
	value->type = (uint8_t)*from;
	if (*from == '[' || *from == '{') {
		enum ops_json_result result = pass_nested(cursor, &value->flags);

		value->value = from;
		value->value_size = (uint32_t)(cursor->at - from);
		return result;
	}
	if (*from != '"')
		return take_token(cursor, value);
	last = string_end(from + 1, cursor->end, &value->flags);
	if (!last)
		return OPS_JSON_MORE;
	value->value = from + 1;
	value->value_size = (uint32_t)(last - value->value);
	cursor->at = last + 1;
	return OPS_JSON_DONE;
}

/* --- objects -------------------------------------------------------------------------------------------------------- */

/* Key, colon, and the white space behind. */
static enum ops_json_result take_key(struct ops_json_cursor *cursor, struct ops_json_member *member)
{
	uint8_t flags = 0;
	const char *last = string_end(cursor->at + 1, cursor->end, &flags);

	if (!last)
		return OPS_JSON_MORE;
	member->key = cursor->at + 1;
	member->key_size = (uint32_t)(last - member->key);
	cursor->at = skip_space(last + 1);
	if (*cursor->at != ':')
		return bad(cursor, "':' is expected");
	cursor->at = skip_space(cursor->at + 1);
	return OPS_JSON_DONE;
}

static bool is_args(const struct ops_json_member *member)
{
	return member->key_size == 4 && memcmp(member->key, "args", 4) == 0;
}

static enum ops_json_result take_members(struct ops_json_cursor *cursor, struct ops_json_object *object, bool of_args)
{
	struct ops_json_member *members = of_args ? object->args : object->members;
	uint32_t count = 0;
	bool comma = true; /* whether a member may come */

	cursor->at++;
	for (;;) {
		struct ops_json_member *member = &members[count];
		enum ops_json_result result;

		cursor->at = skip_space(cursor->at);
		if (*cursor->at == ',' || (*cursor->at == '}' && comma && count)) {
			if (comma && object->commas++ == 0)
				object->comma = cursor->at;
			comma = true;
		}
		if (*cursor->at == '}')
			break;
		if (*cursor->at == ',') {
			cursor->at++;
			continue;
		}
		if (*cursor->at != '"' || !comma)
			return bad(cursor, comma ? "a name in quotes is expected" : "',' or '}' is expected");
		if (count == OPS_JSON_MEMBERS_MAX)
			return bad(cursor, "an object of too many members");
		result = take_key(cursor, member);
		if (result)
			return result;
		if (!of_args && *cursor->at == '{' && is_args(member)) {
			result = take_members(cursor, object, true);
		} else {
			result = ops_json_take_value(cursor, member);
			count++;
		}
		if (result)
			return result;
		comma = *cursor->at == ',';
		cursor->at += comma;
	}
	cursor->at++;
	*(of_args ? &object->arg_count : &object->count) = count;
	return OPS_JSON_DONE;
}

enum ops_json_result ops_json_take_object(struct ops_json_cursor *cursor, struct ops_json_object *object)
{
	object->count = object->arg_count = object->commas = 0;
	return take_members(cursor, object, false);
}
