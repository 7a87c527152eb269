/* SPDX-License-Identifier: Apache-2.0
 *
 * Evaluates an expression for a row.
 */
#include "analyze/events/event_query.h"
#include "base/text.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/limit.h"

struct asked {
	struct event_query *query;
	const struct event_set *set;
	const struct event_table *table;
	const struct event_row *row;
};

static struct query_value event_query_rows_value_of(const struct asked *asked, uint32_t at);

static struct query_value event_query_rows_truth(bool holds)
{
	return (struct query_value){.type = QUERY_TRUTH, .number = holds};
}

static bool is_true(struct query_value value)
{
	return value.type == QUERY_TRUTH && value.number > 0;
}

/* --- comparisons ----------------------------------------------------------------------------------------------------- */

/* A missing value, or one of another type, is only unequal. */
static bool event_query_rows_compare(enum query_op op, struct query_value a, struct query_value b)
{
	int order;

	if (a.type != b.type || a.type == QUERY_ANY)
		return op == QUERY_UNEQUAL;
	order = a.type == QUERY_TEXT ? ops_string_compare(a.text, b.text) : (a.number > b.number) - (a.number < b.number);
	switch (op) {
	case QUERY_EQUAL: return order == 0;
	case QUERY_UNEQUAL: return order != 0;
	case QUERY_LESS: return order < 0;
	case QUERY_LESS_EQUAL: return order <= 0;
	case QUERY_MORE: return order > 0;
	default: return order >= 0;
	}
}

static bool holds_text(struct ops_string text, struct ops_string part)
{
	return !part.size || (text.size && memmem(text.bytes, text.size, part.bytes, part.size));
}

static bool event_query_rows_is_in(const struct asked *asked, const struct query_node *node)
{
	struct query_value value = event_query_rows_value_of(asked, node->left), other;
	const struct query_node *list = &asked->query->nodes.items[node->right];

	if (list->type != QUERY_LIST) {
		other = event_query_rows_value_of(asked, node->right);
		return value.type == QUERY_TEXT && other.type == QUERY_TEXT && holds_text(other.text, value.text);
	}
	for (uint32_t at = list->items; at != OPS_NONE; at = asked->query->nodes.items[at].right)
		if (event_query_rows_compare(QUERY_EQUAL, value,
		                             event_query_rows_value_of(asked, asked->query->nodes.items[at].left)))
			return true;
	return false;
}

/* --- texts ----------------------------------------------------------------------------------------------------------- */

static bool event_query_rows_matches(const struct asked *asked, const struct query_node *node, struct ops_string text)
{
	return ops_pattern_find(node->pattern, text.bytes, text.size, node->op == QUERY_MATCH, asked->query->steps_left);
}

/* Each name is matched once. */
static bool name_matches(const struct asked *asked, struct query_node *node, struct ops_string name)
{
	uint8_t *known;

	if (!node->matches)
		node->matches = ops_alloc_zeroed(ops_trace_string_count(asked->table->trace) + 1, 1);
	if (!node->matches) {
		node->scratch.failed = true;
		return false;
	}
	known = &node->matches[asked->row->name];
	if (!*known)
		*known = event_query_rows_matches(asked, node, name) ? 2 : 1;
	return *known == 2;
}

static bool has_text(const struct asked *asked, struct query_node *node)
{
	const struct query_node *of = &asked->query->nodes.items[node->left];
	struct ops_string part = asked->query->nodes.items[node->right].value.text;
	struct query_value value = event_query_rows_value_of(asked, node->left);
	struct ops_string text = value.text;

	if (value.type != QUERY_TEXT)
		return false;
	if (node->op == QUERY_STARTS)
		return text.size >= part.size && !memcmp(text.bytes, part.bytes, part.size);
	if (node->op == QUERY_ENDS)
		return text.size >= part.size && !memcmp(text.bytes + text.size - part.size, part.bytes, part.size);
	if (of->op == QUERY_COLUMN && text.bytes == event_name(asked->table, asked->row).bytes)
		return name_matches(asked, node, text);
	return event_query_rows_matches(asked, node, text);
}

/* --- numbers --------------------------------------------------------------------------------------------------------- */

/* As in Python, the remainder has the sign of the divisor. */
static double calculate(enum query_op op, double a, double b)
{
	switch (op) {
	case QUERY_ADD: return a + b;
	case QUERY_SUBTRACT: return a - b;
	case QUERY_MULTIPLY: return a * b;
	case QUERY_DIVIDE: return a / b;
	case QUERY_FLOOR: return floor(a / b);
	case QUERY_NEGATE: return -a;
	default: return a - b * floor(a / b);
	}
}

static struct query_value calculated(const struct asked *asked, const struct query_node *node)
{
	struct query_value a = event_query_rows_value_of(asked, node->left), b = a;
	double number;

	if (node->right != OPS_NONE)
		b = event_query_rows_value_of(asked, node->right);
	if (a.type != QUERY_NUMBER || b.type != QUERY_NUMBER)
		return (struct query_value){0};
	number = calculate(node->op, a.number, b.number);
	return (struct query_value){.type = isnan(number) ? QUERY_ANY : QUERY_NUMBER, .number = number};
}

/* --- evaluation ------------------------------------------------------------------------------------------------------ */

static struct query_value event_query_rows_value_of(const struct asked *asked, uint32_t at)
{
	struct query_node *node = &asked->query->nodes.items[at];

	if (!*asked->query->steps_left)
		return (struct query_value){0};
	--*asked->query->steps_left;
	switch (node->op) {
	case QUERY_CONSTANT: return node->value;
	case QUERY_COLUMN: return query_column_value(node->column, asked->set, asked->table, asked->row, &node->scratch);
	case QUERY_ARGUMENT: return query_argument_value(asked->table, asked->row, node->key, &node->scratch);
	case QUERY_OR:
		return event_query_rows_truth(is_true(event_query_rows_value_of(asked, node->left)) ||
		                              is_true(event_query_rows_value_of(asked, node->right)));
	case QUERY_AND:
		return event_query_rows_truth(is_true(event_query_rows_value_of(asked, node->left)) &&
		                              is_true(event_query_rows_value_of(asked, node->right)));
	case QUERY_NOT:
		return event_query_rows_truth(!is_true(event_query_rows_value_of(asked, node->left)));
	case QUERY_IN:
		return event_query_rows_truth(event_query_rows_is_in(asked, node));
	case QUERY_NOT_IN:
		return event_query_rows_truth(!event_query_rows_is_in(asked, node));
	case QUERY_CONTAINS:
	case QUERY_MATCH:
	case QUERY_STARTS:
	case QUERY_ENDS:
		return event_query_rows_truth(has_text(asked, node));
	case QUERY_EQUAL:
	case QUERY_UNEQUAL:
	case QUERY_LESS:
	case QUERY_LESS_EQUAL:
	case QUERY_MORE:
	case QUERY_MORE_EQUAL:
		return event_query_rows_truth(event_query_rows_compare(node->op, event_query_rows_value_of(asked, node->left),
		                                                       event_query_rows_value_of(asked, node->right)));
	default: return calculated(asked, node);
	}
}

bool event_query_holds(struct event_query *query, const struct event_set *set, const struct event_table *table,
                       const struct event_row *row)
{
	if (ops_limit_reached())
		*query->steps_left = 0;
	return is_true(event_query_rows_value_of(&(struct asked){query, set, table, row}, query->root));
}

bool event_query_failed(const struct event_query *query)
{
	for (size_t i = 0; i < query->nodes.count; i++)
		if (query->nodes.items[i].scratch.failed)
			return true;
	return false;
}

enum ops_code event_query_check_steps(uint64_t steps_left, struct ops_error *error)
{
	return steps_left ? OPS_OK : ops_fault(error, OPS_INVALID,
	                                       "the filter takes too much work on this trace; use simpler expressions or fewer of them");
}
