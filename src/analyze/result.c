/* SPDX-License-Identifier: Apache-2.0
 *
 * Filling tables, and results as JSON.
 */
#include "analyze/result.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sum.h"

void result_table_release(struct result_table *table)
{
	OPS_ARRAY_RELEASE(&table->columns);
	OPS_ARRAY_RELEASE(&table->cells);
	ops_arena_release(&table->arena);
}

size_t result_table_rows(const struct result_table *table)
{
	return table->columns.count ? table->cells.count / table->columns.count : 0;
}

void result_columns(struct result_table *table, const struct result_column *columns, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct result_column *column = OPS_ARRAY_PUSH(&table->columns);

		if (column)
			*column = columns[i];
		else
			table->failed = true;
	}
}

void result_column(struct result_table *table, const char *name, enum result_type type)
{
	result_columns(table, &(struct result_column){.name = name, .type = type}, 1);
}

void result_declare(struct result_table *table, const struct result_declaration *declaration, unsigned options)
{
	for (size_t i = 0; i < declaration->count; i++)
		if (!declaration->columns[i].option || declaration->columns[i].option & options)
			result_columns(table, &declaration->columns[i], 1);
}

/* Largest share, with what rounding adds. */
#define SHARE_MOST 100.005

/* Returns false for a share above 100 % and for a negative share or time, which only unbounded columns have. */
__attribute__((unused)) static bool can_be_shown(const struct result_column *column, const struct result_cell *cell)
{
	if (cell->is_null || column->unbounded)
		return true;
	if (column->type == RESULT_PERCENT)
		return cell->number >= 0 && cell->number <= SHARE_MOST;
	return column->type != RESULT_TIME || cell->integer >= 0;
}

static void result_push(struct result_table *table, struct result_cell cell)
{
	struct result_cell *pushed = OPS_ARRAY_PUSH(&table->cells);

	/* Tables pass here in every format, and rows as JSON objects through result_members_json(). */
	assert(!table->columns.count || table->failed || table->rounded ||
	       can_be_shown(&table->columns.items[(table->cells.count - (pushed != NULL)) % table->columns.count], &cell));

	if (pushed)
		*pushed = cell;
	else
		table->failed = true;
}

void result_integer(struct result_table *table, int64_t value)
{
	result_push(table, (struct result_cell){.integer = value});
}

void result_number(struct result_table *table, double value)
{
	result_push(table, (struct result_cell){.number = value, .is_null = isnan(value)});
}

void result_time(struct result_table *table, int64_t ns)
{
	result_push(table, (struct result_cell){.integer = ns});
}

void result_text(struct result_table *table, struct ops_string text)
{
	const char *bytes = table->copies ? ops_arena_copy(&table->arena, text.size ? text.bytes : "", text.size) : text.bytes;

	if (!bytes && table->copies)
		table->failed = true;
	else
		result_push(table, (struct result_cell){.text = {bytes, text.size}});
}

void result_text_copy(struct result_table *table, const char *bytes, size_t size)
{
	const char *copy = ops_arena_copy(&table->arena, bytes, size);

	if (copy)
		result_text(table, (struct ops_string){copy, size});
	else
		table->failed = true;
}

void result_null(struct result_table *table)
{
	result_push(table, (struct result_cell){.is_null = true});
}

/* Returns the cell for a member of the row. */
static struct result_cell field_cell(const struct result_column *column, const void *row)
{
	const void *field = (const char *)row + column->offset;
	struct result_cell cell = {0};
	const char *name;

	switch (column->field) {
	case RESULT_BOOL:
		cell.integer = *(const bool *)field;
		break;
	case RESULT_INT32:
		cell.integer = *(const int32_t *)field;
		break;
	case RESULT_UINT32:
		cell.integer = *(const uint32_t *)field;
		break;
	case RESULT_UINT64:
		cell.integer = ops_clamped(*(const uint64_t *)field);
		break;
	case RESULT_DOUBLE:
		cell.number = *(const double *)field;
		cell.is_null = isnan(cell.number);
		break;
	case RESULT_STRING:
		cell.text = *(const struct ops_string *)field;
		cell.is_null = !cell.text.bytes;
		break;
	case RESULT_NAME:
		name = *(const char *const *)field;
		cell.text = (struct ops_string){name, name ? strlen(name) : 0};
		cell.is_null = !name;
		break;
	default:
		cell.integer = *(const int64_t *)field;
		cell.is_null = cell.integer == RESULT_NULL;
	}
	return cell;
}

struct result_cell result_cell_of(const struct result_column *column, const void *row)
{
	struct result_cell cell = {0};

	if (!column->get)
		return field_cell(column, row);
	column->get(row, &cell);
	cell.is_null = cell.is_null || (result_is_number(column->type) && isnan(cell.number));
	return cell;
}

void result_add(struct result_table *table, const void *row)
{
	size_t count = table->columns.count;

	for (size_t i = count ? table->cells.count % count : 0; !table->failed && i < count; i++) {
		const struct result_column *column = &table->columns.items[i];
		struct result_cell cell = result_cell_of(column, row);

		if (column->type >= RESULT_FIGURE && !cell.is_null)
			result_text(table, cell.text);
		else
			result_push(table, cell);
	}
}

static bool result_is_empty(const struct result_table *table, size_t column)
{
	enum result_type type = table->columns.items[column].type;

	for (size_t at = column; at < table->cells.count; at += table->columns.count) {
		const struct result_cell *cell = &table->cells.items[at];

		if (!cell->is_null && (type >= RESULT_FIGURE || (result_is_number(type) ? cell->number != 0 : cell->integer != 0)))
			return false;
	}
	return true;
}

static void remove_column(struct result_table *table, size_t column)
{
	struct result_column *columns = table->columns.items;
	size_t count = table->columns.count--, kept = 0;

	memmove(&columns[column], &columns[column + 1], (count - column - 1) * sizeof(*columns));
	for (size_t at = 0; at < table->cells.count; at++)
		if (at % count != column)
			table->cells.items[kept++] = table->cells.items[at];
	table->cells.count = kept;
}

void result_table_omit_empty(struct result_table *table)
{
	if (table->failed)
		return;
	for (size_t column = table->columns.count; column-- > 0;)
		if (result_is_empty(table, column))
			remove_column(table, column);
}

struct sort {
	const struct result_table *table;
	size_t column;
};

static int result_compare_rows(const void *a, const void *b, void *context)
{
	const struct sort *sort = context;
	size_t rows[2] = {*(const size_t *)a, *(const size_t *)b};
	int64_t ns[2];

	for (int i = 0; i < 2; i++) {
		const struct result_cell *cell = &sort->table->cells.items[rows[i] * sort->table->columns.count + sort->column];

		ns[i] = cell->is_null ? INT64_MIN : cell->integer;
	}
	return ns[0] != ns[1] ? (ns[0] < ns[1] ? 1 : -1) : (rows[0] > rows[1]) - (rows[0] < rows[1]);
}

void result_table_sort(struct result_table *table)
{
	size_t count = table->columns.count, rows = table->matters ? result_table_rows(table) : 0;
	struct sort sort = {.table = table};
	struct result_cell *cells;
	size_t *order;

	if (rows < 2)
		return;
	while (strcmp(table->columns.items[sort.column].name, table->matters) != 0)
		sort.column++;
	order = ops_realloc_array(NULL, rows, sizeof(*order));
	cells = ops_realloc_array(NULL, rows * count, sizeof(*cells));
	table->failed |= !order || !cells;
	for (size_t i = 0; order && i < rows; i++)
		order[i] = i;
	if (!table->failed) {
		qsort_r(order, rows, sizeof(*order), result_compare_rows, &sort);
		for (size_t i = 0; i < rows; i++)
			memcpy(&cells[i * count], &table->cells.items[order[i] * count], count * sizeof(*cells));
		memcpy(table->cells.items, cells, rows * count * sizeof(*cells));
	}
	ops_free(order);
	ops_free(cells);
}

void result_table_cut(struct result_table *table, size_t rows)
{
	size_t count = result_table_rows(table);

	if (count <= rows)
		return;
	table->total_rows = count;
	table->cells.count = rows * table->columns.count;
}

static void write_cell(const struct result_cell *cell, enum result_type type, struct ops_json_writer *json)
{
	if (cell->is_null)
		ops_json_null(json);
	else if (type == RESULT_INTEGER || type == RESULT_COUNT || type == RESULT_BYTES)
		ops_json_integer(json, cell->integer);
	else if (type == RESULT_FLAG)
		ops_json_bool(json, cell->integer);
	else if (type == RESULT_TIME || type == RESULT_MOMENT)
		ops_json_us(json, cell->integer);
	else if (result_is_number(type))
		ops_json_number(json, cell->number);
	else if (type == RESULT_JSON)
		ops_json_raw(json, cell->text.bytes, cell->text.size);
	else
		ops_json_text(json, cell->text.bytes, cell->text.size);
}

void result_table_json(const struct result_table *table, struct ops_json_writer *json)
{
	size_t width = table->columns.count;

	if (table->failed) { /* a cell may be in another column's place */
		json->out->failed = true;
		return;
	}
	ops_json_open(json, '{');
	OPS_JSON_LIST(json, "columns", i, width,
	              ops_json_word(json, table->columns.items[i].name));
	ops_json_member_open(json, "rows", '[');
	for (size_t row = 0; row < result_table_rows(table); row++) {
		ops_json_open(json, '[');
		for (size_t i = 0; i < width; i++)
			write_cell(&table->cells.items[row * width + i], table->columns.items[i].type, json);
		ops_json_close(json, ']');
	}
	ops_json_close(json, ']');
	if (table->total_rows) {
		ops_json_member(json, "total_rows", (int64_t)table->total_rows);
	}
	ops_json_close(json, '}');
}

void result_members_json(const struct result_declaration *declaration, unsigned options, const void *row,
                         struct ops_json_writer *json)
{
	for (size_t i = 0; i < declaration->count; i++) {
		const struct result_column *column = &declaration->columns[i];
		struct result_cell cell;

		if (column->option && !(column->option & options))
			continue;
		ops_json_key(json, column->name);
		if (column->type == RESULT_OBJECT) {
			result_object_json(column->object, options, (const char *)row + column->offset, json);
			continue;
		}
		if (column->type == RESULT_LIST)
			continue;
		cell = result_cell_of(column, row);
		assert(can_be_shown(column, &cell));
		write_cell(&cell, column->type, json);
	}
}

void result_object_json(const struct result_declaration *declaration, unsigned options, const void *row,
                        struct ops_json_writer *json)
{
	ops_json_open(json, '{');
	result_members_json(declaration, options, row, json);
	ops_json_close(json, '}');
}

void result_init(struct result *result)
{
	*result = (struct result){0};
	result->json.out = &result->value;
}

void result_put_table(struct result *result, struct result_table *table)
{
	size_t at = result->value.size;
	struct result_part *part = result->keeps_parts ? OPS_ARRAY_PUSH(&result->parts) : NULL;

	result_table_json(table, &result->json);
	if (part && !result->value.failed)
		*part = (struct result_part){at + (result->value.bytes[at] == ','), *table};
	else
		result_table_release(table);
	if (part && result->value.failed)
		result->parts.count--;
	result->value.failed |= result->keeps_parts && !part;
	*table = (struct result_table){0};
}

void result_release(struct result *result)
{
	for (size_t i = 0; i < result->parts.count; i++)
		result_table_release(&result->parts.items[i].table);
	OPS_ARRAY_RELEASE(&result->parts);
	result_table_release(&result->table);
	ops_buffer_release(&result->value);
}

double result_round(double value, int decimals)
{
	double scale = pow(10, decimals);

	return fabs(value) < 1e15 ? nearbyint(value * scale) / scale : value;
}
