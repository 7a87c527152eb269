/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds tokens sixteen bytes at a time, and splits objects into members; see json_scan.h.
 */
#include "base/json_scan.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* --- scanning ------------------------------------------------------------------------------------------------------- */

#if defined(__SSE2__)

#define STEP 16
/* Return the positions, one bit each, in the next STEP bytes: of quotes and backslashes, of brackets and quotes, of bytes outside
 * of ASCII, and of control characters. */
static inline unsigned find_string_marks(const char *at, unsigned *ret_high, unsigned *ret_control)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
	__m128i marks = _mm_or_si128(_mm_cmpeq_epi8(bytes, _mm_set1_epi8('"')),
	                             _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\')));

	/* As signed numbers, bytes outside of ASCII are negative and so less than control characters. */
	*ret_high = (unsigned)_mm_movemask_epi8(bytes);
	*ret_control = (unsigned)_mm_movemask_epi8(_mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20))) & ~*ret_high;
	return (unsigned)_mm_movemask_epi8(marks);
}

static inline unsigned find_brackets(const char *at)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
	/* With this bit set, [ and { are equal, and so are ] and }. */
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

const char *ops_json_string_end(const char *at, const char *end, uint8_t *flags)
{
	while (end - at >= STEP) {
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
			return at;
		*flags |= OPS_JSON_ESCAPED;
		at += 2;
	}
	for (; at < end && *at != '"'; at++) {
		if (*at == '\\') {
			*flags |= OPS_JSON_ESCAPED;
			at++;
		} else {
			*flags |= (uint8_t)*at >= 0x80 ? OPS_JSON_HIGH : (uint8_t)*at < 0x20 ? OPS_JSON_CONTROL : 0;
		}
	}
	return at < end ? at : NULL;
}

/* Like ops_json_string_end, but without a call, for short strings, as most are. */
static inline const char *short_string_end(const char *at, const char *end, uint8_t *flags)
{
	unsigned high, control, marks;

	if (end - at < STEP)
		return ops_json_string_end(at, end, flags);
	marks = find_string_marks(at, &high, &control);
	if (!marks || at[__builtin_ctz(marks)] != '"' || ((high | control) & ((marks & -marks) - 1)))
		return ops_json_string_end(at, end, flags);
	return at + __builtin_ctz(marks);
}

/* Returns the end of the digits at `at`. */
static const char *digits_end(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

const char *ops_json_number_end(const char *at, const char *end, bool *ret_whole)
{
	const char *first;

	*ret_whole = false;
	at += at < end && *at == '-';
	first = at;
	at = at < end && *at == '0' ? at + 1 : digits_end(at, end);
	if (at == first)
		return at;
	if (at < end && *at == '.') {
		first = ++at;
		at = digits_end(at, end);
		if (at == first)
			return at;
	}
	if (at < end && (*at == 'e' || *at == 'E')) {
		at++;
		at += at < end && (*at == '+' || *at == '-');
		first = at;
		at = digits_end(at, end);
		if (at == first)
			return at;
	}
	*ret_whole = true;
	return at;
}

/* Characters of numbers (1), and of words, including numbers of other languages (2). */
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

/* Returns the next character; NUL at the end of the text. */
static inline char json_scan_peek(const struct ops_json_cursor *cursor)
{
	return cursor->at < cursor->end ? *cursor->at : '\0';
}

static enum ops_json_result bad(struct ops_json_cursor *cursor, const char *failure)
{
	if (cursor->at >= cursor->end)
		return OPS_JSON_MORE;
	cursor->failure = failure;
	return OPS_JSON_BAD;
}

/* The open brackets of a value, one bit each: 1 for braces, the innermost one lowest. */
struct brackets {
	uint64_t braces;
	unsigned depth;
};

/* Returns NULL, or what is wrong with the bracket. */
static inline const char *pass_bracket(struct brackets *open, char bracket)
{
	uint64_t brace = (uint64_t)(bracket >> 5 & 1); /* set for '{' and '}', clear for '[' and ']' */
	uint64_t last = open->braces & 1;

	if (bracket & 4) { /* '}' or ']' */
		open->braces >>= 1;
		open->depth--;
		return last == brace ? NULL : "the bracket does not match";
	}
	open->braces = open->braces << 1 | brace;
	return open->depth++ < OPS_JSON_DEPTH_MAX ? NULL : "values are nested too deep";
}

/* Returns whether this character may follow a string. */
static inline bool follows_string(char c)
{
	return c == ',' || c == ':' || c == ']' || c == '}' || (uint8_t)c <= ' ';
}

/* Like find_brackets, for the last bytes of a text, fewer than STEP. */
static unsigned find_last_brackets(const char *at, const char *end)
{
	char last[STEP] = {0};

	memcpy(last, at, (size_t)(end - at));
	return find_brackets(last);
}

/* Moves to the position after the bracket that closes the one at the cursor. Only looks at brackets and strings: enough to detect
 * a missing bracket or quote at once, and not at the end of the file, when all of it would be in memory. In text that is known to
 * be well-formed (not `checked`), brackets are only counted, to any depth. */
static inline enum ops_json_result pass_nested(struct ops_json_cursor *cursor, uint8_t *flags, bool checked)
{
	const char *at = cursor->at, *end = cursor->end;
	struct brackets open = {0, 0};

	while (at < end) {
		unsigned marks = end - at >= STEP ? find_brackets(at) : find_last_brackets(at, end);
		const char *from = at;

		at += STEP;
		for (; marks; marks &= marks - 1) {
			const char *mark = from + __builtin_ctz(marks);

			cursor->at = mark;
			if (*mark == '"') {
				at = short_string_end(mark + 1, end, flags);
				if (!at)
					return OPS_JSON_MORE;
				cursor->at = ++at;
				if (checked && at < end && !follows_string(*at))
					return bad(cursor, "expected ',' or a closing bracket");
				break;
			}
			if (checked)
				cursor->failure = pass_bracket(&open, *mark);
			else
				open.depth += *mark & 4 ? -1u : 1u; /* '}' or ']' */
			if (checked && cursor->failure)
				return OPS_JSON_BAD;
			if (open.depth == 0) {
				cursor->at++;
				return OPS_JSON_DONE;
			}
		}
	}
	return OPS_JSON_MORE;
}

const char *ops_json_nested_end(const char *at, const char *end)
{
	struct ops_json_cursor cursor = {at, end, NULL};
	uint8_t flags = 0;

	return pass_nested(&cursor, &flags, false) == OPS_JSON_DONE ? cursor.at : end;
}

static enum ops_json_result parse_token(struct ops_json_cursor *cursor, struct ops_json_member *value)
{
	const char *at = cursor->at;
	uint8_t seen = 0;

	while (at < cursor->end && of_token[(uint8_t)*at] == 1)
		at++;
	for (; at < cursor->end && of_token[(uint8_t)*at]; at++)
		seen |= of_token[(uint8_t)*at];
	if (at == cursor->end)
		return OPS_JSON_MORE;
	if (at == cursor->at || ((seen & 2) && at - cursor->at > WORD_MAX))
		return bad(cursor, "a value is expected");
	value->type = seen & 2 ? OPS_JSON_WORD : OPS_JSON_NUMBER;
	value->value = cursor->at;
	value->value_size = (uint32_t)(at - cursor->at);
	cursor->at = at;
	return OPS_JSON_DONE;
}

enum ops_json_result ops_json_parse_value(struct ops_json_cursor *cursor, struct ops_json_member *value)
{
	const char *from = cursor->at, *last;

	value->flags = 0;
	value->type = (uint8_t)json_scan_peek(cursor);
	if (value->type == '[' || value->type == '{') {
		enum ops_json_result result = pass_nested(cursor, &value->flags, true);

		value->value = from;
		value->value_size = (uint32_t)(cursor->at - from);
		return result;
	}
	if (value->type != '"')
		return parse_token(cursor, value);
	last = short_string_end(from + 1, cursor->end, &value->flags);
	if (!last)
		return OPS_JSON_MORE;
	value->value = from + 1;
	value->value_size = (uint32_t)(last - value->value);
	cursor->at = last + 1;
	return OPS_JSON_DONE;
}

/* --- objects -------------------------------------------------------------------------------------------------------- */

/* Parses the key, the colon, and the white space after it. */
static enum ops_json_result json_scan_parse_key(struct ops_json_cursor *cursor, struct ops_json_member *member)
{
	uint8_t flags = 0;
	const char *last = short_string_end(cursor->at + 1, cursor->end, &flags);

	if (!last)
		return OPS_JSON_MORE;
	member->key = cursor->at + 1;
	member->key_size = (uint32_t)(last - member->key);
	cursor->at = ops_json_space_end(last + 1, cursor->end);
	if (json_scan_peek(cursor) != ':')
		return bad(cursor, "':' is expected");
	cursor->at = ops_json_space_end(cursor->at + 1, cursor->end);
	return OPS_JSON_DONE;
}

static bool is_args(const struct ops_json_member *member)
{
	return member->key_size == 4 && memcmp(member->key, "args", 4) == 0;
}

static enum ops_json_result json_scan_parse_members(struct ops_json_cursor *cursor, struct ops_json_object *object,
                                                    bool of_args)
{
	struct ops_json_member *members = of_args ? object->args : object->members;
	uint32_t count = 0;
	bool comma = true; /* whether a member may follow */

	cursor->at++;
	for (;;) {
		struct ops_json_member *member = &members[count];
		enum ops_json_result result;
		char next;

		cursor->at = ops_json_space_end(cursor->at, cursor->end);
		next = json_scan_peek(cursor);
		if (next == ',' || (next == '}' && comma && count)) {
			if (comma && object->commas++ == 0)
				object->comma = cursor->at;
			comma = true;
		}
		if (next == '}')
			break;
		if (next == ',') {
			cursor->at++;
			continue;
		}
		if (next != '"' || !comma)
			return bad(cursor, comma ? "expected a name in quotes" : "',' or '}' is expected");
		if (count == OPS_JSON_MEMBERS_MAX)
			return bad(cursor, "an object with too many members");
		result = json_scan_parse_key(cursor, member);
		if (result)
			return result;
		if (!of_args && json_scan_peek(cursor) == '{' && is_args(member)) {
			result = json_scan_parse_members(cursor, object, true);
		} else {
			result = ops_json_parse_value(cursor, member);
			count++;
		}
		if (result)
			return result;
		comma = json_scan_peek(cursor) == ',';
		cursor->at += comma;
	}
	cursor->at++;
	*(of_args ? &object->arg_count : &object->count) = count;
	return OPS_JSON_DONE;
}

enum ops_json_result ops_json_parse_object(struct ops_json_cursor *cursor, struct ops_json_object *object)
{
	object->count = object->arg_count = object->commas = 0;
	return json_scan_parse_members(cursor, object, false);
}
