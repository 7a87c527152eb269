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
#include "base/text.h"

#define NUMBER_ROOM 32
#define DEPTH_MAX 16

struct walker {
	struct result_tree *tree;
	bool flat;
	struct ops_buffer path;
	struct ops_buffer text; /* scratch */
};

/* --- cells ----------------------------------------------------------------------------------------------------------- */

static bool is_text(struct ops_string value)
{
	return value.size >= 2 && value.bytes[0] == '"';
}

/* Numbers, truths and texts, without the quotes. */
static void append_value(const struct walker *walker, struct ops_buffer *out, struct ops_string value)
{
	char room[NUMBER_ROOM];
	double number;

	if (is_text(value))
		ops_json_decode(out, value.bytes + 1, value.size - 2);
	else if (!walker->flat && memchr(value.bytes, '.', value.size) && ops_json_parse_number(value, &number))
		ops_buffer_append(out, room, (size_t)(result_short_number(room, number) - room));
	else
		ops_buffer_append(out, value.bytes, value.size);
}

static void put_value(struct walker *walker, struct result_table *table, struct ops_string value)
{
	struct ops_buffer *text = &walker->text;

	text->size = 0;
	append_value(walker, text, value);
	result_text_copy(table, ops_buffer_text(text), text->size);
	table->failed |= text->failed;
}

/* --- tables in a tree ------------------------------------------------------------------------------------------------ */

struct found_table {
	struct ops_string columns, rows;
};

static bool is_table(struct ops_string value, struct found_table *ret_table)
{
	struct ops_json_walk cursor = ops_json_walk(value.bytes, value.size);
	struct ops_string key, item;

	*ret_table = (struct found_table){{NULL, 0}, {NULL, 0}};
	while (value.size && value.bytes[0] == '{' && ops_json_next_member(&cursor, &key, &item)) {
		if (ops_string_is(key, "columns") && item.bytes[0] == '[')
			ret_table->columns = item;
		else if (ops_string_is(key, "rows") && item.bytes[0] == '[')
			ret_table->rows = item;
		else if (!ops_string_is(key, "total_rows"))
			return false;
	}
	return ret_table->columns.bytes && ret_table->rows.bytes;
}

/* Numbers stand at the right, as far as the first row tells. */
static void add_columns(struct walker *walker, struct result_table *table, const struct found_table *found)
{
	struct ops_json_walk names = ops_json_walk(found->columns.bytes, found->columns.size);
	struct ops_json_walk rows = ops_json_walk(found->rows.bytes, found->rows.size), cells = {NULL, NULL};
	struct ops_string name, row, cell;

	if (ops_json_next_element(&rows, &row))
		cells = ops_json_walk(row.bytes, row.size);
	while (ops_json_next_element(&names, &name)) {
		bool known = cells.at && ops_json_next_element(&cells, &cell);
		char *copy;

		walker->text.size = 0;
		append_value(walker, &walker->text, name);
		copy = walker->text.failed ? NULL : ops_arena_copy(&table->arena, walker->text.bytes, walker->text.size);
		if (!copy)
			table->failed = true;
		else
			result_column(table, copy, known && !is_text(cell) ? RESULT_FIGURE : RESULT_TEXT);
	}
}

/* With `rank` before the cells of each row, if there is one. */
static void add_rows(struct walker *walker, struct result_table *table, const struct found_table *found,
                     const struct ops_string *rank)
{
	struct ops_json_walk rows = ops_json_walk(found->rows.bytes, found->rows.size);
	struct ops_string row, cell;

	while (!table->failed && ops_json_next_element(&rows, &row)) {
		struct ops_json_walk cells = ops_json_walk(row.bytes, row.size);

		if (rank)
			put_value(walker, table, *rank);
		while (ops_json_next_element(&cells, &cell)) {
			if (ops_string_is(cell, "null"))
				result_null(table);
			else
				put_value(walker, table, cell);
		}
	}
}

/* Whether the tree has tables by rank and nothing else; makes one of them. */
static bool join_ranks(struct walker *walker, struct ops_string tree)
{
	struct ops_json_walk cursor = ops_json_walk(tree.bytes, tree.size);
	struct ops_string rank, value;
	struct found_table first = {{NULL, 0}, {NULL, 0}}, found;

	while (tree.size && tree.bytes[0] == '{' && ops_json_next_member(&cursor, &rank, &value)) {
		if (!is_table(value, &found))
			return false;
		if (!first.columns.bytes)
			first = found;
		if (first.columns.size != found.columns.size ||
		    memcmp(first.columns.bytes, found.columns.bytes, found.columns.size) != 0)
			return false;
	}
	if (!first.columns.bytes)
		return false;
	result_column(&walker->tree->leaves, "rank", RESULT_FIGURE);
	add_columns(walker, &walker->tree->leaves, &first);
	for (cursor = ops_json_walk(tree.bytes, tree.size); ops_json_next_member(&cursor, &rank, &value);)
		if (is_table(value, &found))
			add_rows(walker, &walker->tree->leaves, &found, &rank);
	return true;
}

/* --- leaves ---------------------------------------------------------------------------------------------------------- */

static void walk(struct walker *walker, struct ops_string value, int depth);

static void put_path(struct walker *walker)
{
	result_text_copy(&walker->tree->leaves, ops_buffer_text(&walker->path), walker->path.size);
	walker->tree->leaves.failed |= walker->path.failed;
}

static void add_branch(struct walker *walker, const struct found_table *found)
{
	struct result_branch *branch = OPS_ARRAY_PUSH(&walker->tree->branches);
	const char *path = ops_arena_copy(&walker->tree->arena, ops_buffer_text(&walker->path), walker->path.size);

	if (!branch || !path || walker->path.failed) {
		walker->tree->leaves.failed = true;
		if (branch)
			*branch = (struct result_branch){0};
		return;
	}
	*branch = (struct result_branch){.path = {path, walker->path.size}};
	add_columns(walker, &branch->table, found);
	add_rows(walker, &branch->table, found, NULL);
	walker->tree->leaves.failed |= branch->table.failed;
}

static void walk_into(struct walker *walker, struct ops_string key, struct ops_string value, int depth)
{
	size_t size = walker->path.size;

	if (size)
		ops_buffer_append(&walker->path, ".", 1);
	ops_buffer_append(&walker->path, key.bytes, key.size);
	walk(walker, value, depth + 1);
	walker->path.size = size;
}

static bool is_leaf(struct ops_string value)
{
	return !value.size || (value.bytes[0] != '{' && value.bytes[0] != '[');
}

/* A list of leaves is one leaf: "1, 2, 3". */
static bool add_list(struct walker *walker, struct ops_string value)
{
	struct ops_json_walk cursor = ops_json_walk(value.bytes, value.size);
	struct ops_string item;

	walker->text.size = 0;
	while (ops_json_next_element(&cursor, &item)) {
		if (!is_leaf(item))
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

static void walk(struct walker *walker, struct ops_string value, int depth)
{
	struct ops_json_walk cursor = ops_json_walk(value.bytes, value.size);
	struct ops_string key, item;
	struct found_table found;
	char number[NUMBER_ROOM];
	int64_t count = 0;

	if (walker->tree->leaves.failed)
		return;
	if (is_leaf(value) || depth == DEPTH_MAX) {
		put_path(walker);
		put_value(walker, &walker->tree->leaves, value);
	} else if (!walker->flat && is_table(value, &found)) {
		add_branch(walker, &found);
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

bool result_tree_make(struct result_tree *tree, const struct ops_buffer *value, bool flat)
{
	struct walker walker = {.tree = tree, .flat = flat};
	struct ops_string root = {value->size ? value->bytes : "null", value->size ? value->size : 4};

	*tree = (struct result_tree){0};
	if (!join_ranks(&walker, root)) {
		result_column(&tree->leaves, "field", RESULT_TEXT);
		result_column(&tree->leaves, "value", RESULT_TEXT);
		walk(&walker, root, 0);
	}
	ops_buffer_release(&walker.path);
	ops_buffer_release(&walker.text);
	return !tree->leaves.failed;
}

void result_tree_release(struct result_tree *tree)
{
	for (size_t i = 0; i < tree->branches.count; i++)
		result_table_release(&tree->branches.items[i].table);
	OPS_ARRAY_RELEASE(&tree->branches);
	result_table_release(&tree->leaves);
	ops_arena_release(&tree->arena);
}
