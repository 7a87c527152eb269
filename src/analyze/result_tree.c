/* SPDX-License-Identifier: Apache-2.0
 *
 * See result_tree.h.
 */
#include "analyze/result_tree.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/json_walk.h"
#include "base/search.h"
#include "base/text.h"

#define NUMBER_ROOM 32
#define DEPTH_MAX 16

struct walker {
	const struct result *result;
	struct result_tree *tree;
	bool flat;
	struct ops_buffer path;
	struct ops_buffer text; /* scratch */
};

/* --- cells ----------------------------------------------------------------------------------------------------------- */

static bool result_tree_is_text(struct ops_string value)
{
	return value.size >= 2 && value.bytes[0] == '"';
}

/* Appends a number, truth value or text, without quotes. */
static void append_value(const struct walker *walker, struct ops_buffer *out, struct ops_string value)
{
	char room[NUMBER_ROOM];
	double number;

	if (result_tree_is_text(value))
		ops_json_decode(out, value.bytes + 1, value.size - 2);
	else if (!walker->flat && memchr(value.bytes, '.', value.size) && ops_json_parse_number(value, &number))
		ops_buffer_append(out, room, (size_t)(result_short_number(room, number) - room));
	else
		ops_buffer_append(out, value.bytes, value.size);
}

static void result_tree_put_value(struct walker *walker, struct result_table *table, struct ops_string value)
{
	struct ops_buffer *text = &walker->text;

	text->size = 0;
	append_value(walker, text, value);
	result_text_copy(table, ops_buffer_text(text), text->size);
	table->failed |= text->failed;
}

/* --- tables in a tree ------------------------------------------------------------------------------------------------ */

/* Returns the table that a value is; NULL if it is not a table. */
static const struct result_table *result_tree_table_of(const struct walker *walker, struct ops_string value)
{
	const struct result *result = walker->result;
	size_t low = 0, at = result->value.size ? (size_t)(value.bytes - result->value.bytes) : SIZE_MAX;

	OPS_LOWER_BOUND(low, result->parts.count, mid, result->parts.items[mid].at < at);
	return low < result->parts.count && result->parts.items[low].at == at ? &result->parts.items[low].table : NULL;
}

static bool same_columns(const struct result_table *a, const struct result_table *b)
{
	bool same = a->columns.count == b->columns.count;

	for (size_t i = 0; same && i < a->columns.count; i++)
		same = !strcmp(a->columns.items[i].name, b->columns.items[i].name);
	return same;
}

/* Adds the rows of a rank's table, with the rank as the first cell. */
static void result_tree_add_rows(struct result_table *to, int64_t rank, const struct result_table *from)
{
	size_t width = from->columns.count, rows = result_table_rows(from);

	for (size_t row = 0; row < rows && !to->failed; row++) {
		result_integer(to, rank);
		if (to->failed || !OPS_ARRAY_RESERVE(&to->cells, width)) {
			to->failed = true;
			return;
		}
		memcpy(&to->cells.items[to->cells.count], &from->cells.items[row * width], width * sizeof(struct result_cell));
		to->cells.count += width;
	}
	to->total_rows += from->total_rows ? from->total_rows : rows;
}

/* If the tree consists only of tables by rank, joins them into one table. The result still owns their texts. */
static bool join_ranks(struct walker *walker, struct ops_string tree)
{
	static const struct result_column rank_column = {.name = "rank", .type = RESULT_INTEGER, .title = "Rank"};
	struct ops_json_walk cursor = ops_json_walk(tree.bytes, tree.size);
	struct result_table *out = &walker->tree->leaves;
	const struct result_table *first = NULL, *table;
	struct ops_string rank, value;
	int64_t number;

	while (tree.size && tree.bytes[0] == '{' && ops_json_next_member(&cursor, &rank, &value)) {
		table = result_tree_table_of(walker, value);
		first = first ? first : table;
		if (!table || !same_columns(first, table) || !ops_json_parse_integer(rank, &number))
			return false;
	}
	if (!first)
		return false;
	result_columns(out, &rank_column, 1);
	result_columns(out, first->columns.items, first->columns.count);
	for (cursor = ops_json_walk(tree.bytes, tree.size); ops_json_next_member(&cursor, &rank, &value);)
		if (ops_json_parse_integer(rank, &number))
			result_tree_add_rows(out, number, result_tree_table_of(walker, value));
	return true;
}

/* --- leaves ---------------------------------------------------------------------------------------------------------- */

static void result_tree_walk(struct walker *walker, struct ops_string value, int depth);

static void put_path(struct walker *walker)
{
	result_text_copy(&walker->tree->leaves, ops_buffer_text(&walker->path), walker->path.size);
	walker->tree->leaves.failed |= walker->path.failed;
}

static void add_branch(struct walker *walker, const struct result_table *table)
{
	struct result_branch *branch = OPS_ARRAY_PUSH(&walker->tree->branches);
	const char *path = ops_arena_copy(&walker->tree->arena, ops_buffer_text(&walker->path), walker->path.size);

	walker->tree->leaves.failed |= !branch || !path || walker->path.failed;
	if (branch)
		*branch = (struct result_branch){.path = {path, walker->path.size}, .table = table};
}

static void walk_into(struct walker *walker, struct ops_string key, struct ops_string value, int depth)
{
	size_t size = walker->path.size;

	if (size)
		ops_buffer_append(&walker->path, ".", 1);
	ops_buffer_append(&walker->path, key.bytes, key.size);
	result_tree_walk(walker, value, depth + 1);
	walker->path.size = size;
}

static bool result_tree_is_leaf(struct ops_string value)
{
	return !value.size || (value.bytes[0] != '{' && value.bytes[0] != '[');
}

/* A list of leaves is shown as one leaf: "1, 2, 3". */
static bool add_list(struct walker *walker, struct ops_string value)
{
	struct ops_json_walk cursor = ops_json_walk(value.bytes, value.size);
	struct ops_string item;

	walker->text.size = 0;
	while (ops_json_next_element(&cursor, &item)) {
		if (!result_tree_is_leaf(item))
			return false;
		if (walker->text.size)
			ops_buffer_append_text(&walker->text, ", ");
		append_value(walker, &walker->text, item);
	}
	put_path(walker);
	result_text_copy(&walker->tree->leaves, ops_buffer_text(&walker->text), walker->text.size);
	walker->tree->leaves.failed |= walker->text.failed;
	return true;
}

static void result_tree_walk(struct walker *walker, struct ops_string value, int depth)
{
	struct ops_json_walk cursor = ops_json_walk(value.bytes, value.size);
	struct ops_string key, item;
	const struct result_table *table;
	char number[NUMBER_ROOM];
	int64_t count = 0;

	if (walker->tree->leaves.failed)
		return;
	if (result_tree_is_leaf(value) || depth == DEPTH_MAX) {
		put_path(walker);
		result_tree_put_value(walker, &walker->tree->leaves, value);
	} else if (!walker->flat && (table = result_tree_table_of(walker, value))) {
		add_branch(walker, table);
	} else if (value.bytes[0] == '{') {
		while (ops_json_next_member(&cursor, &key, &item))
			walk_into(walker, key, item, depth);
	} else if (walker->flat || !add_list(walker, value)) {
		while (ops_json_next_element(&cursor, &item)) {
			key = (struct ops_string){number, (size_t)(ops_json_int_to(number, count++) - number)};
			walk_into(walker, key, item, depth);
		}
	}
}

static const struct result_column leaf_columns[] = {
	{.name = "field", .type = RESULT_TEXT, .title = "Field"},
	{.name = "value", .type = RESULT_TEXT, .title = "Value"},
};

bool result_tree_make(struct result_tree *tree, const struct result *result, bool flat)
{
	struct walker walker = {.result = result, .tree = tree, .flat = flat};
	const struct ops_buffer *value = &result->value;
	struct ops_string root = {value->size ? value->bytes : "null", value->size ? value->size : 4};

	*tree = (struct result_tree){0};
	if (!join_ranks(&walker, root)) {
		RESULT_DECLARED(&tree->leaves, leaf_columns);
		result_tree_walk(&walker, root, 0);
	}
	ops_buffer_release(&walker.path);
	ops_buffer_release(&walker.text);
	return !tree->leaves.failed;
}

void result_tree_release(struct result_tree *tree)
{
	OPS_ARRAY_RELEASE(&tree->branches);
	result_table_release(&tree->leaves);
	ops_arena_release(&tree->arena);
}
