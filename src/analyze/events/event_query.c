/* SPDX-License-Identifier: Apache-2.0
 *
 * Parses an expression into nodes, by recursive descent. Nodes have the type of their value where the columns determine
 * it, so type errors are reported before the first row.
 */
#include "analyze/events/event_query.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/json_walk.h"
#include "base/text.h"

#define NODES_MAX 1000 /* limits the recursion depth of the evaluation */
#define DEPTH_MAX 100  /* nesting of brackets */
#define PATTERNS_MAX 32

struct parser {
	struct event_query *query;
	const char *start, *at, *end;
	unsigned depth;
	struct ops_error *error;
	enum ops_code code;
};

/* Operators of one level of precedence. */
struct sign {
	const char *text;
	enum query_op op;
};
#define COUNT(signs) (sizeof(signs) / sizeof((signs)[0]))

static uint32_t parse_or(struct parser *parser);
static uint32_t parse_sum(struct parser *parser);

/* --- errors and nodes ------------------------------------------------------------------------------------------------ */

static uint32_t event_query_fail(struct parser *parser, const char *what)
{
	size_t left = (size_t)(parser->end - parser->at);

	if (!parser->code)
		parser->code = ops_fault(parser->error, OPS_INVALID, "expression: %s at character %zu%s%.*s%s", what,
		                         (size_t)(parser->at - parser->start) + 1, left ? ": '" : ", its end",
		                         (int)(left < 20 ? left : 20), parser->at, left ? "'" : "");
	return OPS_NONE;
}

static uint32_t event_query_fail_memory(struct parser *parser)
{
	if (!parser->code)
		parser->code = ops_fault_memory(parser->error);
	return OPS_NONE;
}

static struct query_node *node_at(const struct parser *parser, uint32_t node)
{
	return &parser->query->nodes.items[node];
}

static uint32_t event_query_add_node(struct parser *parser, enum query_op op, enum query_type type, uint32_t left,
                                     uint32_t right)
{
	if (parser->code)
		return OPS_NONE;
	if (parser->query->nodes.count == NODES_MAX)
		return event_query_fail(parser, "it is too long");
	if (!OPS_ARRAY_APPEND(&parser->query->nodes, (struct query_node){.op = op, .type = type, .left = left, .right = right,
	                                                                 .items = OPS_NONE}))
		return event_query_fail_memory(parser);
	return (uint32_t)(parser->query->nodes.count - 1);
}

static uint32_t add_constant(struct parser *parser, struct query_value value)
{
	uint32_t node = event_query_add_node(parser, QUERY_CONSTANT, value.type, OPS_NONE, OPS_NONE);

	if (!parser->code)
		node_at(parser, node)->value = value;
	return node;
}

/* Rejects a node whose type is known to differ. */
static bool is_of_type(struct parser *parser, uint32_t node, enum query_type type, const char *message)
{
	if (parser->code)
		return false;
	if (node_at(parser, node)->type == type || node_at(parser, node)->type == QUERY_ANY)
		return true;
	event_query_fail(parser, message);
	return false;
}

/* --- words ----------------------------------------------------------------------------------------------------------- */

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool event_query_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void event_query_skip_space(struct parser *parser)
{
	while (parser->at < parser->end && strchr(" \t\r\n", *parser->at) && *parser->at)
		parser->at++;
}

/* Consumes a sign, or a word that is not followed by a letter. */
static bool event_query_accept(struct parser *parser, const char *text)
{
	size_t size = strlen(text);

	event_query_skip_space(parser);
	if (parser->code || (size_t)(parser->end - parser->at) < size || memcmp(parser->at, text, size) != 0)
		return false;
	if (is_letter(*text) && parser->at + size < parser->end &&
	    (is_letter(parser->at[size]) || event_query_is_digit(parser->at[size])))
		return false;
	parser->at += size;
	return true;
}

static const struct sign *parse_sign(struct parser *parser, const struct sign *signs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (event_query_accept(parser, signs[i].text))
			return &signs[i];
	return NULL;
}

static void event_query_expect(struct parser *parser, const char *text, const char *message)
{
	if (!event_query_accept(parser, text))
		event_query_fail(parser, message);
}

static struct ops_string event_query_parse_word(struct parser *parser)
{
	struct ops_string word = {parser->at, 0};

	while (parser->at < parser->end && (is_letter(*parser->at) || event_query_is_digit(*parser->at)))
		parser->at++;
	word.size = (size_t)(parser->at - word.bytes);
	return word;
}

/* Parses the text between two `quote` characters. A backslash escapes the next character. Returns NULL on failure. */
static const char *parse_quoted(struct parser *parser, char quote, size_t *ret_size)
{
	const char *from = ++parser->at;
	char *copy;
	size_t size = 0;

	while (parser->at < parser->end && *parser->at != quote)
		parser->at += *parser->at == '\\' && parser->end - parser->at > 1 ? 2 : 1;
	if (parser->at >= parser->end) {
		event_query_fail(parser, "a quote is not closed");
		return NULL;
	}
	copy = ops_arena_copy(&parser->query->arena, from, (size_t)(parser->at - from));
	if (!copy) {
		event_query_fail_memory(parser);
		return NULL;
	}
	for (const char *c = from; c < parser->at; c++) {
		if (*c == '\\' && (c[1] == quote || c[1] == '\\')) /* other escapes belong to regular expressions */
			c++;
		copy[size++] = *c;
	}
	copy[size] = '\0';
	parser->at++;
	*ret_size = size;
	return copy;
}

/* --- atoms ----------------------------------------------------------------------------------------------------------- */

static uint32_t parse_text(struct parser *parser)
{
	struct query_value value = {.type = QUERY_TEXT};

	value.text.bytes = parse_quoted(parser, *parser->at, &value.text.size);
	return add_constant(parser, value);
}

static uint32_t parse_number(struct parser *parser)
{
	struct query_value value = {.type = QUERY_NUMBER};
	size_t size = 0;

	for (; parser->at + size < parser->end; size++) {
		char c = parser->at[size], before = size ? parser->at[size - 1] : ' ';

		if (!event_query_is_digit(c) && c != '.' && c != 'e' && c != 'E' &&
		    !((c == '+' || c == '-') && (before == 'e' || before == 'E')))
			break;
	}
	if (!ops_json_double(parser->at, size, &value.number) || !isfinite(value.number))
		return event_query_fail(parser, "not a number");
	parser->at += size;
	return add_constant(parser, value);
}

static uint32_t parse_argument(struct parser *parser)
{
	size_t size;
	const char *key = parse_quoted(parser, '`', &size);
	uint32_t node = event_query_add_node(parser, QUERY_ARGUMENT, QUERY_ANY, OPS_NONE, OPS_NONE);

	if (!parser->code)
		node_at(parser, node)->key = key;
	return node;
}

static uint32_t parse_column(struct parser *parser)
{
	const char *from = parser->at;
	struct ops_string word = event_query_parse_word(parser);
	const struct query_column *column = query_column_find(word);
	uint32_t node;

	if (!column) {
		parser->at = from;
		return event_query_fail(parser, "there is no column of this name (write `arguments` in backticks)");
	}
	node = event_query_add_node(parser, QUERY_COLUMN, column->type, OPS_NONE, OPS_NONE);
	if (!parser->code)
		node_at(parser, node)->column = column;
	return node;
}

/* Parses a list after its opening bracket. */
static uint32_t parse_list(struct parser *parser)
{
	uint32_t list = event_query_add_node(parser, QUERY_CONSTANT, QUERY_LIST, OPS_NONE, OPS_NONE), last = OPS_NONE;

	while (!parser->code && !event_query_accept(parser, "]")) {
		uint32_t item = parse_sum(parser), link;

		if (!parser->code && node_at(parser, item)->type == QUERY_LIST)
			event_query_fail(parser, "a list within a list before this");
		link = event_query_add_node(parser, QUERY_CONSTANT, QUERY_ANY, item, OPS_NONE);
		if (parser->code)
			break;
		if (last == OPS_NONE)
			node_at(parser, list)->items = link;
		else
			node_at(parser, last)->right = link;
		last = link;
		if (!event_query_accept(parser, ",")) {
			event_query_expect(parser, "]", "a comma or ']' is missing");
			break;
		}
	}
	return list;
}

static uint32_t event_query_parse_atom(struct parser *parser)
{
	uint32_t node;

	event_query_skip_space(parser);
	if (parser->code || parser->at == parser->end)
		return event_query_fail(parser, "a value is missing");
	if (parser->depth++ == DEPTH_MAX)
		return event_query_fail(parser, "there are too many brackets");
	if (event_query_accept(parser, "(")) {
		node = parse_or(parser);
		event_query_expect(parser, ")", "a ')' is missing");
	} else if (event_query_accept(parser, "[")) {
		node = parse_list(parser);
	} else if (event_query_accept(parser, "true") || event_query_accept(parser, "True")) {
		node = add_constant(parser, (struct query_value){.type = QUERY_TRUTH, .number = 1});
	} else if (event_query_accept(parser, "false") || event_query_accept(parser, "False")) {
		node = add_constant(parser, (struct query_value){.type = QUERY_TRUTH});
	} else if (*parser->at == '"' || *parser->at == '\'') {
		node = parse_text(parser);
	} else if (*parser->at == '`') {
		node = parse_argument(parser);
	} else if (event_query_is_digit(*parser->at) || *parser->at == '.') {
		node = parse_number(parser);
	} else if (is_letter(*parser->at)) {
		node = parse_column(parser);
	} else {
		node = event_query_fail(parser, "this is not a value");
	}
	parser->depth--;
	return node;
}

/* --- methods --------------------------------------------------------------------------------------------------------- */

static void compile(struct parser *parser, uint32_t node, struct ops_string pattern)
{
	if (parser->query->pattern_count++ == PATTERNS_MAX)
		event_query_fail(parser, "too many regular expressions");
	else
		parser->code = ops_pattern_new(pattern.bytes, pattern.size, &node_at(parser, node)->pattern, parser->error);
}

static uint32_t parse_method(struct parser *parser, uint32_t of)
{
	static const struct sign methods[] = {{"contains", QUERY_CONTAINS}, {"match", QUERY_MATCH}, {"startswith", QUERY_STARTS},
	                                      {"endswith", QUERY_ENDS},     {"isin", QUERY_IN}};
	const struct sign *method;
	uint32_t argument, node;

	if (event_query_accept(parser, "str"))
		event_query_expect(parser, ".", "a '.' is missing");
	method = parse_sign(parser, methods, COUNT(methods));
	if (!method)
		return event_query_fail(parser, "there are only contains, match, startswith, endswith and isin");
	event_query_expect(parser, "(", "a '(' is missing");
	argument = event_query_parse_atom(parser);
	event_query_expect(parser, ")", "a ')' is missing");
	if (method->op == QUERY_IN) {
		is_of_type(parser, argument, QUERY_LIST, "isin takes a list");
		return event_query_add_node(parser, QUERY_IN, QUERY_TRUTH, of, argument);
	}
	if (!is_of_type(parser, of, QUERY_TEXT, "only a text has this"))
		return OPS_NONE;
	if (node_at(parser, argument)->op != QUERY_CONSTANT || node_at(parser, argument)->type != QUERY_TEXT)
		return event_query_fail(parser, "a text in quotes is missing");
	node = event_query_add_node(parser, method->op, QUERY_TRUTH, of, argument);
	if (!parser->code && (method->op == QUERY_CONTAINS || method->op == QUERY_MATCH))
		compile(parser, node, node_at(parser, argument)->value.text);
	return node;
}

static uint32_t parse_postfix(struct parser *parser)
{
	uint32_t node = event_query_parse_atom(parser);

	while (event_query_accept(parser, "."))
		node = parse_method(parser, node);
	return node;
}

/* --- arithmetic ------------------------------------------------------------------------------------------------------- */

static uint32_t add_sum(struct parser *parser, enum query_op op, uint32_t left, uint32_t right)
{
	if (!is_of_type(parser, left, QUERY_NUMBER, "arithmetic requires numbers; before this") ||
	    !is_of_type(parser, right, QUERY_NUMBER, "arithmetic requires numbers; before this"))
		return OPS_NONE;
	return event_query_add_node(parser, op, QUERY_NUMBER, left, right);
}

/* Parses the operand of a sign, which can have a sign too. Operand and result have the same type. */
static uint32_t parse_signed(struct parser *parser, uint32_t (*parse)(struct parser *parser), enum query_op op,
                             enum query_type type, const char *message)
{
	uint32_t node;

	if (parser->depth++ == DEPTH_MAX)
		return event_query_fail(parser, "there are too many signs");
	node = parse(parser);
	parser->depth--;
	return is_of_type(parser, node, type, message) ? event_query_add_node(parser, op, type, node, OPS_NONE) : OPS_NONE;
}

static uint32_t parse_unary(struct parser *parser)
{
	return event_query_accept(parser, "-")
		       ? parse_signed(parser, parse_unary, QUERY_NEGATE, QUERY_NUMBER, "only numbers have a sign")
		       : parse_postfix(parser);
}

/* Parses operands separated by operators of one precedence. */
static uint32_t parse_level(struct parser *parser, const struct sign *signs, size_t count,
                            uint32_t (*parse)(struct parser *parser))
{
	const struct sign *sign;
	uint32_t node = parse(parser);

	while (!parser->code && (sign = parse_sign(parser, signs, count)))
		node = add_sum(parser, sign->op, node, parse(parser));
	return node;
}

static uint32_t parse_product(struct parser *parser)
{
	static const struct sign signs[] = {
		{"*", QUERY_MULTIPLY}, {"//", QUERY_FLOOR}, {"/", QUERY_DIVIDE}, {"%", QUERY_REMAINDER}};

	return parse_level(parser, signs, COUNT(signs), parse_unary);
}

static uint32_t parse_sum(struct parser *parser)
{
	static const struct sign signs[] = {{"+", QUERY_ADD}, {"-", QUERY_SUBTRACT}};

	return parse_level(parser, signs, COUNT(signs), parse_product);
}

/* --- comparisons ----------------------------------------------------------------------------------------------------- */

static bool parse_not_in(struct parser *parser)
{
	const char *at = parser->at;

	if (event_query_accept(parser, "not") && event_query_accept(parser, "in"))
		return true;
	parser->at = at;
	return false;
}

static void check_comparison(struct parser *parser, enum query_op op, uint32_t left, uint32_t right)
{
	enum query_type a, b;

	if (parser->code)
		return;
	a = node_at(parser, left)->type;
	b = node_at(parser, right)->type;
	if (op == QUERY_IN || op == QUERY_NOT_IN) {
		if (a == QUERY_LIST || (b != QUERY_LIST && b != QUERY_TEXT && b != QUERY_ANY) || (b == QUERY_TEXT && a != QUERY_TEXT && a != QUERY_ANY))
			event_query_fail(parser, "'in' takes a list, or two texts; before this");
	} else if (a == QUERY_LIST || b == QUERY_LIST || (a != b && a != QUERY_ANY && b != QUERY_ANY)) {
		event_query_fail(parser, "two values of different types are compared before this");
	}
}

static uint32_t parse_comparison(struct parser *parser)
{
	static const struct sign signs[] = {{"==", QUERY_EQUAL},      {"!=", QUERY_UNEQUAL}, {"<=", QUERY_LESS_EQUAL},
	                                    {">=", QUERY_MORE_EQUAL}, {"<", QUERY_LESS},     {">", QUERY_MORE},
	                                    {"in", QUERY_IN}};
	uint32_t left = parse_sum(parser), chain = OPS_NONE;

	while (!parser->code) {
		bool not_in = parse_not_in(parser);
		const struct sign *sign = not_in ? NULL : parse_sign(parser, signs, COUNT(signs));
		enum query_op op = not_in ? QUERY_NOT_IN : sign ? sign->op : QUERY_CONSTANT;
		uint32_t right, node;

		if (op == QUERY_CONSTANT)
			return chain == OPS_NONE ? left : chain;
		if (chain != OPS_NONE && node_at(parser, left)->type == QUERY_TRUTH) /* the comparison, and everything in it,
		                                                                      * would be evaluated twice */
			return event_query_fail(parser, "a chained comparison requires brackets before this");
		right = parse_sum(parser);
		check_comparison(parser, op, left, right);
		node = event_query_add_node(parser, op, QUERY_TRUTH, left, right);
		chain = chain == OPS_NONE ? node : event_query_add_node(parser, QUERY_AND, QUERY_TRUTH, chain, node);
		left = right;
	}
	return OPS_NONE;
}

/* --- logic ----------------------------------------------------------------------------------------------------------- */

static uint32_t parse_not(struct parser *parser)
{
	return event_query_accept(parser, "not") || event_query_accept(parser, "~")
		       ? parse_signed(parser, parse_not, QUERY_NOT, QUERY_TRUTH,
		                      "'not' takes what is true or false; before this")
		       : parse_comparison(parser);
}

static uint32_t event_query_join(struct parser *parser, enum query_op op, uint32_t left, uint32_t right)
{
	static const char wrong[] = "'and' and 'or' join what is true or false; before this";

	if (!is_of_type(parser, left, QUERY_TRUTH, wrong) || !is_of_type(parser, right, QUERY_TRUTH, wrong))
		return OPS_NONE;
	return event_query_add_node(parser, op, QUERY_TRUTH, left, right);
}

static uint32_t parse_and(struct parser *parser)
{
	uint32_t node = parse_not(parser);

	while (event_query_accept(parser, "and") || event_query_accept(parser, "&"))
		node = event_query_join(parser, QUERY_AND, node, parse_not(parser));
	return node;
}

static uint32_t parse_or(struct parser *parser)
{
	uint32_t node = parse_and(parser);

	while (event_query_accept(parser, "or") || event_query_accept(parser, "|"))
		node = event_query_join(parser, QUERY_OR, node, parse_and(parser));
	return node;
}

/* --- analysis -------------------------------------------------------------------------------------------------------- */

enum ops_code event_query_parse(struct event_query *query, struct ops_string text, struct ops_error *error)
{
	struct parser parser = {.query = query, .start = text.bytes, .at = text.bytes, .end = ops_string_end(text),
	                        .error = error};

	*query = (struct event_query){.root = OPS_NONE};
	query->root = parse_or(&parser);
	event_query_skip_space(&parser);
	if (!parser.code && parser.at < parser.end)
		event_query_fail(&parser, "this is too much");
	is_of_type(&parser, query->root, QUERY_TRUTH, "it is neither true nor false: a comparison is missing");
	return parser.code;
}

void event_query_release(struct event_query *query)
{
	for (size_t i = 0; i < query->nodes.count; i++) {
		struct query_node *node = &query->nodes.items[i];

		ops_pattern_free(node->pattern);
		ops_free(node->matches);
		ops_buffer_release(&node->scratch);
	}
	OPS_ARRAY_RELEASE(&query->nodes);
	ops_arena_release(&query->arena);
}
