/* SPDX-License-Identifier: Apache-2.0
 *
 * Regular expressions; see pattern.h. The parser writes the program directly. Jumps are relative, so that a part of the program
 * can be moved and copied: a repetition copies the part that it repeats.
 *
 *     a*    SPLIT +1 +3, SET a, JUMP -2        a|b   SPLIT +1 +3, SET a, JUMP +2, SET b
 *     a+    SET a, SPLIT -1 +1                 a?    SPLIT +1 +2, SET a
 */
#include "base/pattern.h"

#include <ctype.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/limit.h"
#include "base/text.h"

#define DEPTH_MAX 100 /* nested groups */

enum op { SET, SPLIT, JUMP, AT_START, AT_END, AT_WORD_EDGE, NOT_AT_WORD_EDGE, MATCH };

struct byte_set {
	uint64_t bits[4];
};

struct instruction {
	enum op op;
	int32_t to, or_to;   /* SPLIT and JUMP: relative targets */
	struct byte_set set; /* SET: accepted bytes */
};

/* Instructions that wait for the next byte. */
struct threads {
	uint32_t at[OPS_PATTERN_STEPS_MAX + 1];
	uint32_t count;
};

struct ops_pattern {
	struct instruction program[OPS_PATTERN_STEPS_MAX + 1]; /* the last one is MATCH */
	uint32_t count;
	bool skips;            /* a match can only begin with a byte of `first` */
	struct byte_set first;
	/* Scratch memory of a search. */
	struct threads threads[2];
	uint32_t stack[2 * OPS_PATTERN_STEPS_MAX + 4];
	uint64_t added[OPS_PATTERN_STEPS_MAX + 1]; /* by instruction: the position, counted through all searches, at which it was
	                                            * last added */
	uint64_t position;
};

/* --- sets of bytes --------------------------------------------------------------------------------------------------- */

static bool has_byte(const struct byte_set *set, unsigned char byte)
{
	return set->bits[byte / 64] >> byte % 64 & 1;
}

static void pattern_add_bytes(struct byte_set *set, unsigned from, unsigned to)
{
	for (unsigned byte = from; byte <= to; byte++)
		set->bits[byte / 64] |= UINT64_C(1) << byte % 64;
}

static void invert(struct byte_set *set)
{
	for (int i = 0; i < 4; i++)
		set->bits[i] = ~set->bits[i];
}

static void join_sets(struct byte_set *set, const struct byte_set *other)
{
	for (int i = 0; i < 4; i++)
		set->bits[i] |= other->bits[i];
}

static bool pattern_is_word(unsigned char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

/* --- the program ----------------------------------------------------------------------------------------------------- */

struct parser {
	struct ops_pattern *pattern;
	const char *start, *at, *end;
	unsigned depth;
	struct ops_error *error;
	enum ops_code code;
};

static void parse_alternatives(struct parser *parser);

static void pattern_fail(struct parser *parser, const char *what)
{
	if (!parser->code)
		parser->code = ops_fault(parser->error, OPS_INVALID, "regular expression: %s at character %zu", what,
		                         (size_t)(parser->at - parser->start) + 1);
}

/* Makes room for `size` instructions at `at`. */
static bool insert(struct parser *parser, uint32_t at, uint32_t size)
{
	struct ops_pattern *pattern = parser->pattern;

	if (parser->code)
		return false;
	if (pattern->count + size > OPS_PATTERN_STEPS_MAX) {
		parser->code = ops_fault(parser->error, OPS_INVALID,
		                         "regular expression: too large (more than %d steps with repetitions written out)",
		                         OPS_PATTERN_STEPS_MAX);
		return false;
	}
	memmove(&pattern->program[at + size], &pattern->program[at], (pattern->count - at) * sizeof(*pattern->program));
	pattern->count += size;
	return true;
}

static void pattern_put(struct parser *parser, uint32_t at, enum op op, int32_t to, int32_t or_to)
{
	if (insert(parser, at, 1))
		parser->pattern->program[at] = (struct instruction){.op = op, .to = to, .or_to = or_to};
}

static void pattern_append(struct parser *parser, enum op op, int32_t to, int32_t or_to)
{
	pattern_put(parser, parser->pattern->count, op, to, or_to);
}

static void append_set(struct parser *parser, const struct byte_set *set)
{
	pattern_append(parser, SET, 0, 0);
	if (!parser->code)
		parser->pattern->program[parser->pattern->count - 1].set = *set;
}

/* --- atoms ----------------------------------------------------------------------------------------------------------- */

static bool has_next(const struct parser *parser, const char *text)
{
	size_t size = strlen(text);

	return (size_t)(parser->end - parser->at) >= size && !memcmp(parser->at, text, size);
}

/* Finds the set of \d, \w, \s or their complements. Returns false for other letters. */
static bool pattern_class_of(char letter, struct byte_set *ret_set)
{
	struct byte_set set = {0};

	switch (letter) {
	case 'd': case 'D':
		pattern_add_bytes(&set, '0', '9');
		break;
	case 'w': case 'W':
		for (unsigned byte = 0; byte < 128; byte++)
			if (pattern_is_word((unsigned char)byte))
				pattern_add_bytes(&set, byte, byte);
		break;
	case 's': case 'S':
		pattern_add_bytes(&set, '\t', '\r');
		pattern_add_bytes(&set, ' ', ' ');
		break;
	default:
		return false;
	}
	if (letter < 'a')
		invert(&set);
	*ret_set = set;
	return true;
}

/* Returns the byte of an escape sequence, after its backslash; -1 on failure. */
static int escaped_byte(struct parser *parser, char letter)
{
	switch (letter) {
	case 't': return '\t';
	case 'n': return '\n';
	case 'r': return '\r';
	default:
		break;
	}
	if (letter >= '0' && letter <= '9')
		pattern_fail(parser, "back-references are not supported");
	else if (pattern_is_word((unsigned char)letter) && letter != '_')
		pattern_fail(parser, "unknown escape");
	return parser->code ? -1 : (unsigned char)letter;
}

static void parse_escape(struct parser *parser)
{
	struct byte_set set = {0};
	char letter;
	int byte;

	if (parser->end - parser->at < 2) {
		pattern_fail(parser, "incomplete escape");
		return;
	}
	letter = parser->at[1];
	if (letter == 'b' || letter == 'B') {
		pattern_append(parser, letter == 'b' ? AT_WORD_EDGE : NOT_AT_WORD_EDGE, 0, 0);
	} else if (pattern_class_of(letter, &set)) {
		append_set(parser, &set);
	} else {
		byte = escaped_byte(parser, letter);
		if (byte >= 0)
			pattern_add_bytes(&set, (unsigned)byte, (unsigned)byte);
		append_set(parser, &set);
	}
	parser->at += 2;
}

/* Parses "[:alpha:]", at its '['. */
static void parse_named_class(struct parser *parser, struct byte_set *set)
{
	static const struct {
		const char *name;
		int (*has)(int byte);
	} classes[] = {{"[:alpha:]", isalpha}, {"[:digit:]", isdigit}, {"[:alnum:]", isalnum}, {"[:upper:]", isupper},
	               {"[:lower:]", islower}, {"[:space:]", isspace}, {"[:blank:]", isblank}, {"[:punct:]", ispunct},
	               {"[:print:]", isprint}, {"[:graph:]", isgraph}, {"[:cntrl:]", iscntrl}, {"[:xdigit:]", isxdigit}};

	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (!has_next(parser, classes[i].name))
			continue;
		for (int byte = 0; byte < 128; byte++)
			if (classes[i].has(byte))
				pattern_add_bytes(set, (unsigned)byte, (unsigned)byte);
		parser->at += strlen(classes[i].name);
		return;
	}
	pattern_fail(parser, "unknown character class");
}

/* Parses one byte in a bracket expression, which may be escaped. Returns -1 for a class, which is added to the set, and on
 * failure. */
static int bracket_byte(struct parser *parser, struct byte_set *set)
{
	struct byte_set class_set;
	int byte = (unsigned char)*parser->at;

	if (has_next(parser, "[:") || has_next(parser, "[.") || has_next(parser, "[=")) {
		parse_named_class(parser, set);
		return -1;
	}
	if (byte != '\\' || parser->end - parser->at < 2) {
		parser->at++;
		return byte;
	}
	if (pattern_class_of(parser->at[1], &class_set)) {
		join_sets(set, &class_set);
		byte = -1;
	} else {
		byte = escaped_byte(parser, parser->at[1]);
	}
	parser->at += 2;
	return byte;
}

static void parse_bracket(struct parser *parser)
{
	struct byte_set set = {0};
	bool opposite = has_next(parser, "[^"), is_first = true;

	for (parser->at += 1 + opposite; !parser->code; is_first = false) {
		int from, to;

		if (parser->at == parser->end) {
			pattern_fail(parser, "missing ']'");
			return;
		}
		if (*parser->at == ']' && !is_first)
			break;
		from = to = bracket_byte(parser, &set);
		if (from >= 0 && parser->end - parser->at > 1 && *parser->at == '-' && parser->at[1] != ']') {
			parser->at++;
			to = bracket_byte(parser, &set);
			if (to < from)
				pattern_fail(parser, "reversed range");
		}
		if (from >= 0 && !parser->code)
			pattern_add_bytes(&set, (unsigned)from, (unsigned)to);
	}
	parser->at++;
	if (opposite)
		invert(&set);
	append_set(parser, &set);
}

static void parse_group(struct parser *parser)
{
	if (has_next(parser, "(?") && !has_next(parser, "(?:")) {
		pattern_fail(parser, "unsupported group (only '(?:' is)");
		return;
	}
	parser->at += has_next(parser, "(?:") ? 3 : 1;
	if (++parser->depth > DEPTH_MAX) {
		pattern_fail(parser, "groups nested too deeply");
		return;
	}
	parse_alternatives(parser);
	parser->depth--;
	if (has_next(parser, ")"))
		parser->at++;
	else
		pattern_fail(parser, "missing ')'");
}

static void pattern_parse_atom(struct parser *parser)
{
	struct byte_set set = {0};

	switch (*parser->at) {
	case '(':
		parse_group(parser);
		return;
	case '[':
		parse_bracket(parser);
		return;
	case '\\':
		parse_escape(parser);
		return;
	case '^':
		pattern_append(parser, AT_START, 0, 0);
		break;
	case '$':
		pattern_append(parser, AT_END, 0, 0);
		break;
	case '*': case '+': case '?':
		pattern_fail(parser, "nothing to repeat");
		return;
	default:
		if (*parser->at == '.')
			pattern_add_bytes(&set, 0, 255);
		else
			pattern_add_bytes(&set, (unsigned char)*parser->at, (unsigned char)*parser->at);
		append_set(parser, &set);
	}
	parser->at++;
}

/* --- repetitions ----------------------------------------------------------------------------------------------------- */

#define NO_LIMIT UINT32_MAX

/* Parses digits. Returns false if there are none. */
static bool pattern_parse_number(struct parser *parser, uint32_t *ret_number)
{
	const char *from = parser->at;
	uint32_t number = 0;

	for (; parser->at < parser->end && *parser->at >= '0' && *parser->at <= '9'; parser->at++)
		number = number > OPS_PATTERN_STEPS_MAX ? number : number * 10 + (uint32_t)(*parser->at - '0');
	*ret_number = number;
	return parser->at > from;
}

/* Parses '*', '+', '?' or "{2,5}". Returns false if there is none: a '{' without a number is an ordinary character. */
static bool parse_repetition(struct parser *parser, uint32_t *ret_least, uint32_t *ret_most)
{
	if (parser->code || parser->at == parser->end)
		return false;
	if (strchr("*+?", *parser->at) && *parser->at) {
		*ret_least = *parser->at == '+';
		*ret_most = *parser->at == '?' ? 1 : NO_LIMIT;
		parser->at++;
	} else if (*parser->at == '{' && parser->end - parser->at > 1 && parser->at[1] >= '0' && parser->at[1] <= '9') {
		parser->at++;
		pattern_parse_number(parser, ret_least);
		*ret_most = *ret_least;
		if (has_next(parser, ",")) {
			parser->at++;
			*ret_most = pattern_parse_number(parser, ret_most) ? *ret_most : NO_LIMIT;
		}
		if (!has_next(parser, "}") || *ret_most < *ret_least) {
			pattern_fail(parser, "malformed repetition (use '{2}', '{2,}' or '{2,5}')");
			return false;
		}
		parser->at++;
	} else {
		return false;
	}
	parser->at += has_next(parser, "?"); /* a lazy repetition; affects what is matched, not whether there is a match */
	return true;
}

/* Removes the instructions from `from` on and inserts them as often as they are repeated. */
static void repeat(struct parser *parser, uint32_t from, uint32_t least, uint32_t most)
{
	struct ops_pattern *pattern = parser->pattern;
	uint32_t size = pattern->count - from, times = most == NO_LIMIT ? least + !least : most;
	int32_t over = (int32_t)size + 1;

	if (!size) /* repetitions of nothing are nothing */
		return;
	/* The copies follow the first one, their source. */
	for (uint32_t i = 1; i < times && insert(parser, pattern->count, size); i++)
		memcpy(&pattern->program[from + i * size], &pattern->program[from], size * sizeof(*pattern->program));
	for (uint32_t i = times; !parser->code && i-- > least;) {
		pattern_put(parser, from + i * size, SPLIT, 1, over + (most == NO_LIMIT));
		if (most == NO_LIMIT)
			pattern_append(parser, JUMP, -over, 0);
	}
	if (most == NO_LIMIT && least)
		pattern_append(parser, SPLIT, 1 - over, 1);
	if (!times)
		pattern->count = from;
}

/* --- sequences and alternatives ------------------------------------------------------------------------------------------------------- */

static void parse_sequence(struct parser *parser)
{
	uint32_t least = 0, most = 0;

	while (!parser->code && parser->at < parser->end && *parser->at != '|' && *parser->at != ')') {
		uint32_t from = parser->pattern->count;

		pattern_parse_atom(parser);
		while (parse_repetition(parser, &least, &most))
			repeat(parser, from, least, most);
	}
}

/* Each alternative ends with a jump to the end of all, which is set when the next one has been parsed. */
static void parse_alternatives(struct parser *parser)
{
	struct instruction *program = parser->pattern->program;
	uint32_t from = parser->pattern->count, jump = 0, next;
	bool has_jump = false;

	parse_sequence(parser);
	while (!parser->code && has_next(parser, "|")) {
		pattern_put(parser, from, SPLIT, 1, (int32_t)(parser->pattern->count - from) + 2);
		pattern_append(parser, JUMP, has_jump ? (int32_t)jump : -1, 0); /* jumps are linked in a list until their target
		                                                                 * is known */
		jump = parser->pattern->count - 1;
		has_jump = true;
		from = parser->pattern->count;
		parser->at++;
		parse_sequence(parser);
	}
	for (; has_jump && !parser->code; jump = next) {
		next = (uint32_t)program[jump].to;
		has_jump = program[jump].to >= 0;
		program[jump].to = (int32_t)(parser->pattern->count - jump);
	}
}

/* --- searching ------------------------------------------------------------------------------------------------------- */

struct search {
	struct ops_pattern *pattern;
	const char *bytes;
	size_t size;
	uint64_t steps;
};

static bool is_at_edge(const struct search *search, size_t at)
{
	bool before = at > 0 && pattern_is_word((unsigned char)search->bytes[at - 1]);
	bool behind = at < search->size && pattern_is_word((unsigned char)search->bytes[at]);

	return before != behind;
}

static bool pattern_holds(const struct search *search, enum op op, size_t at)
{
	switch (op) {
	case AT_START: return at == 0;
	case AT_END: return at == search->size;
	case AT_WORD_EDGE: return is_at_edge(search, at);
	default: return !is_at_edge(search, at);
	}
}

/* Adds the instructions reachable from `from` that wait for the next byte, with the text at `at`. Returns true if there is a
 * match. */
static bool pattern_add(struct search *search, struct threads *threads, uint32_t from, size_t at)
{
	struct ops_pattern *pattern = search->pattern;
	uint32_t *stack = pattern->stack, depth = 0;

	stack[depth++] = from;
	while (depth) {
		uint32_t number = stack[--depth];
		const struct instruction *instruction = &pattern->program[number];

		search->steps++;
		if (pattern->added[number] == pattern->position)
			continue;
		pattern->added[number] = pattern->position;
		if (instruction->op == MATCH)
			return true;
		if (instruction->op == SET)
			threads->at[threads->count++] = number;
		else if (instruction->op == SPLIT)
			stack[depth++] = number + (uint32_t)instruction->or_to;
		if (instruction->op == SPLIT || instruction->op == JUMP)
			stack[depth++] = number + (uint32_t)instruction->to;
		else if (instruction->op != SET && pattern_holds(search, instruction->op, at))
			stack[depth++] = number + 1;
	}
	return false;
}

/* Returns the next position at which a match can begin. */
static size_t skip(struct search *search, size_t at)
{
	const size_t from = at;

	search->pattern->position++; /* conditions that did not hold at the last position may hold here */
	while (at < search->size && !has_byte(&search->pattern->first, (unsigned char)search->bytes[at]))
		at++;
	search->steps += (at - from) / 16; /* takes as long as that many instructions */
	return at;
}

static bool pattern_find(struct search *search, bool at_start, uint64_t steps_max)
{
	struct ops_pattern *pattern = search->pattern;
	struct threads *now = &pattern->threads[0], *next = &pattern->threads[1];

	now->count = 0;
	pattern->position++;
	for (size_t at = 0;; at++) {
		if (!now->count && pattern->skips && !at_start)
			at = skip(search, at);
		if ((at == 0 || !at_start) && pattern_add(search, now, 0, at))
			return true;
		if (ops_limit_reached())
			search->steps = steps_max;
		if (at == search->size || (at_start && !now->count) || search->steps >= steps_max)
			return false;
		next->count = 0;
		pattern->position++;
		for (uint32_t i = 0; i < now->count; i++) {
			search->steps++;
			if (has_byte(&pattern->program[now->at[i]].set, (unsigned char)search->bytes[at]) &&
			    pattern_add(search, next, now->at[i] + 1, at + 1))
				return true;
		}
		now = next;
		next = now == &pattern->threads[0] ? &pattern->threads[1] : &pattern->threads[0];
	}
}

bool ops_pattern_find(struct ops_pattern *pattern, const char *bytes, size_t size, bool at_start, uint64_t *steps_left)
{
	struct search search = {.pattern = pattern, .bytes = bytes, .size = size};
	bool found = *steps_left && pattern_find(&search, at_start, *steps_left);

	*steps_left -= search.steps < *steps_left ? search.steps : *steps_left;
	return found;
}

/* --- lifetime -------------------------------------------------------------------------------------------------------- */

/* Finds the bytes with which a match can begin, ignoring conditions without a byte. */
static void find_first(struct ops_pattern *pattern)
{
	uint32_t *stack = pattern->stack, depth = 0;

	pattern->skips = true;
	pattern->position++;
	stack[depth++] = 0;
	while (depth) {
		uint32_t number = stack[--depth];
		const struct instruction *instruction = &pattern->program[number];

		if (pattern->added[number] == pattern->position)
			continue;
		pattern->added[number] = pattern->position;
		if (instruction->op == MATCH)
			pattern->skips = false; /* the pattern also matches the empty text */
		else if (instruction->op == SET)
			join_sets(&pattern->first, &instruction->set);
		else if (instruction->op == SPLIT || instruction->op == JUMP)
			stack[depth++] = number + (uint32_t)instruction->to;
		else
			stack[depth++] = number + 1;
		if (instruction->op == SPLIT)
			stack[depth++] = number + (uint32_t)instruction->or_to;
	}
}

enum ops_code ops_pattern_new(const char *bytes, size_t size, struct ops_pattern **ret_pattern, struct ops_error *error)
{
	struct parser parser = {.start = bytes, .at = bytes, .end = ops_bytes_end(bytes, size), .error = error};

	if (size > OPS_PATTERN_SIZE_MAX)
		return ops_fault(error, OPS_INVALID, "regular expression: longer than %d bytes", OPS_PATTERN_SIZE_MAX);
	parser.pattern = ops_alloc_zeroed(1, sizeof(*parser.pattern));
	if (!parser.pattern)
		return ops_fault_memory(error);
	parse_alternatives(&parser);
	if (!parser.code && parser.at < parser.end)
		pattern_fail(&parser, "unmatched ')'");
	if (parser.code) {
		ops_pattern_free(parser.pattern);
		return parser.code;
	}
	parser.pattern->program[parser.pattern->count++] = (struct instruction){.op = MATCH};
	find_first(parser.pattern);
	*ret_pattern = parser.pattern;
	return OPS_OK;
}

void ops_pattern_free(struct ops_pattern *pattern)
{
	ops_free(pattern);
}
