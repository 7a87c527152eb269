/* SPDX-License-Identifier: Apache-2.0
 *
 * A relation in Arrow's C data interface: its cells are read row by row and appended to one buffer for each column.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "analyze/relations/relations.h"
#include "base/alloc.h"
#include "base/fault.h"
#include "write/arrow_array.h"

enum layout { LAYOUT_INTEGER, LAYOUT_DOUBLE, LAYOUT_BOOL, LAYOUT_DICTIONARY, LAYOUT_TEXT };

static enum layout layout_of(const struct result_column *column)
{
	if (column->type == RESULT_FLAG)
		return LAYOUT_BOOL;
	if (column->type == RESULT_JSON)
		return LAYOUT_TEXT;
	if (column->type >= RESULT_FIGURE)
		return LAYOUT_DICTIONARY;
	return result_is_number(column->type) ? LAYOUT_DOUBLE : LAYOUT_INTEGER;
}

static const char *const formats[] = {
	[LAYOUT_INTEGER] = "l", [LAYOUT_DOUBLE] = "g", [LAYOUT_BOOL] = "b", [LAYOUT_DICTIONARY] = "I", [LAYOUT_TEXT] = "U",
};

/* --- schema --------------------------------------------------------------------------------------------------------- */

static void append_int32(struct ops_buffer *out, size_t value)
{
	int32_t number = value > INT32_MAX ? INT32_MAX : (int32_t)value;

	ops_buffer_append(out, (const char *)&number, sizeof(number));
}

static void append_counted(struct ops_buffer *out, const char *text)
{
	append_int32(out, strlen(text));
	ops_buffer_append_text(out, text);
}

/* In Arrow's encoding: the number of pairs, then the texts, each preceded by its length. `texts` are keys and values. */
static bool describe_metadata(const char *const *texts, size_t pairs, struct ArrowSchema *schema)
{
	struct ops_buffer out = {0};

	append_int32(&out, pairs);
	for (size_t i = 0; i < 2 * pairs; i++)
		append_counted(&out, texts[i]);
	if (out.failed) {
		ops_buffer_release(&out);
		return false;
	}
	schema->private_data = out.bytes;
	schema->metadata = out.bytes;
	return true;
}

static bool describe_column(const struct result_column *column, struct ArrowSchema *schema)
{
	*schema = (struct ArrowSchema){.format = formats[layout_of(column)], .name = column->name,
	                               .flags = column->nullable ? ARROW_FLAG_NULLABLE : 0, .release = arrow_release_schema};
	if (!describe_metadata((const char *const[]){"meaning", column->about, "unit", column->unit}, column->unit ? 2 : 1, schema))
		return false;
	if (layout_of(column) != LAYOUT_DICTIONARY)
		return true;
	schema->dictionary = ops_alloc_zeroed(1, sizeof(*schema->dictionary));
	if (schema->dictionary)
		*schema->dictionary = (struct ArrowSchema){.format = "U", .name = "", .release = arrow_release_schema};
	return schema->dictionary;
}

/* The columns that a caller selected. */
struct selection {
	const struct result_column **columns;
	size_t count;
};

static bool describe_table(const struct selection *selection, struct ArrowSchema *ret_schema)
{
	struct ArrowSchema schema = {.format = "+s", .name = "", .release = arrow_release_schema};
	char version[16];
	bool done;

	snprintf(version, sizeof(version), "%d", RELATIONS_VERSION);
	schema.children = ops_alloc_zeroed(selection->count + 1, sizeof(*schema.children));
	done = schema.children && describe_metadata((const char *const[]){"opstrobe.schema_version", version}, 1, &schema);
	for (size_t i = 0; done && i < selection->count; i++) {
		schema.children[i] = ops_alloc_zeroed(1, sizeof(**schema.children));
		schema.n_children++;
		done = schema.children[i] && describe_column(selection->columns[i], schema.children[i]);
	}
	if (done)
		*ret_schema = schema;
	else
		arrow_release_schema(&schema);
	return done;
}

/* --- columns -------------------------------------------------------------------------------------------------------- */

#define RECENT 256 /* number of texts remembered by their address, with their dictionary numbers */

/* A column that is being filled. */
struct filled {
	const struct result_column *column;
	enum layout layout;
	struct ArrowArray *array;
	struct arrow_kept *kept;
	void *values;
	uint8_t *valid;           /* for a nullable column */
	struct arrow_texts texts; /* for a dictionary */
	uint32_t *recent;
	struct ops_buffer bytes; /* for a text */
};

static bool filled_init(struct filled *filled, const struct result_column *column, struct ArrowArray *array, size_t count)
{
	enum layout layout = layout_of(column);
	size_t width = layout == LAYOUT_BOOL ? 1 : layout == LAYOUT_DICTIONARY ? sizeof(uint32_t) : sizeof(int64_t);

	*filled = (struct filled){.column = column, .layout = layout, .array = array};
	filled->kept = arrow_begin(array, NULL, count, layout == LAYOUT_TEXT ? 3 : 2);
	filled->values = filled->kept ? arrow_own(filled->kept, 1, layout == LAYOUT_BOOL ? count / 8 : count, width) : NULL;
	if (layout == LAYOUT_DICTIONARY) {
		filled->recent = ops_realloc_array(NULL, RECENT, sizeof(*filled->recent));
		if (!filled->recent)
			return false;
		memset(filled->recent, 0xff, RECENT * sizeof(*filled->recent));
	}
	if (filled->values && column->nullable)
		filled->valid = arrow_own(filled->kept, 0, count / 8, 1);
	return filled->values && (filled->valid || !column->nullable);
}

static void filled_release(struct filled *filled)
{
	arrow_texts_release(&filled->texts);
	ops_free(filled->recent);
	ops_buffer_release(&filled->bytes);
}

/* Most texts of a trace recur at the same address. Returns false if out of memory. */
static bool fill_text_number(struct filled *filled, size_t row, struct ops_string text)
{
	const struct ops_intern *unique = &filled->texts.unique;
	uint32_t *recent = &filled->recent[((uintptr_t)text.bytes >> 3 ^ (uintptr_t)text.bytes >> 11) % RECENT];
	uint32_t number = *recent;

	if (number == OPS_NONE || unique->entries[number].size != text.size ||
	    memcmp(unique->entries[number].bytes, text.bytes, text.size) != 0)
		number = arrow_number_of(&filled->texts, text);
	*recent = number;
	((uint32_t *)filled->values)[row] = number;
	return number != OPS_NONE;
}

static bool fill_cell(struct filled *filled, size_t row, struct result_cell cell)
{
	if (cell.is_null) {
		filled->array->null_count++;
	} else {
		if (filled->valid)
			filled->valid[row / 8] |= (uint8_t)(1u << row % 8);
		if (filled->layout == LAYOUT_INTEGER)
			((int64_t *)filled->values)[row] = cell.integer;
		else if (filled->layout == LAYOUT_DOUBLE)
			((double *)filled->values)[row] = cell.number;
		else if (filled->layout == LAYOUT_BOOL)
			((uint8_t *)filled->values)[row / 8] |= (uint8_t)((cell.integer != 0) << row % 8);
		else if (filled->layout == LAYOUT_DICTIONARY)
			return fill_text_number(filled, row, cell.text);
		else
			arrow_append_utf8(&filled->bytes, cell.text);
	}
	if (filled->layout == LAYOUT_TEXT)
		((int64_t *)filled->values)[row + 1] = (int64_t)filled->bytes.size;
	return !filled->bytes.failed;
}

static bool filled_finish(struct filled *filled)
{
	if (filled->layout == LAYOUT_DICTIONARY)
		return arrow_finish_dictionary(filled->array, NULL, &filled->texts);
	if (filled->layout != LAYOUT_TEXT)
		return true;
	if (!filled->bytes.bytes)
		return arrow_own(filled->kept, 2, 0, 1);
	filled->kept->owned[2] = filled->bytes.bytes;
	filled->kept->buffers[2] = filled->bytes.bytes;
	filled->bytes = (struct ops_buffer){0};
	return true;
}

/* --- table ---------------------------------------------------------------------------------------------------------- */

static bool fill_relation(struct relation_rows *rows, struct filled *filled, size_t columns)
{
	bool done = true;

	for (size_t i = 0; done && i < rows->count; i++) {
		struct relation_row row = {rows, i};

		for (size_t column = 0; done && column < columns; column++)
			done = fill_cell(&filled[column], i, result_cell_of(filled[column].column, &row)) && !rows->scratch.failed;
	}
	for (size_t column = 0; done && column < columns; column++)
		done = filled_finish(&filled[column]);
	return done;
}

static bool make_relation(struct relation_rows *rows, const struct selection *selection, struct ArrowArray *ret_array)
{
	struct filled *filled = ops_alloc_zeroed(selection->count + 1, sizeof(*filled));
	struct ArrowArray array;
	bool done = arrow_begin(&array, NULL, rows->count, 1) && filled;

	array.children = done ? ops_alloc_zeroed(selection->count + 1, sizeof(*array.children)) : NULL;
	done = array.children;
	for (size_t i = 0; done && i < selection->count; i++) {
		array.children[i] = ops_alloc_zeroed(1, sizeof(**array.children));
		array.n_children++;
		done = array.children[i] && filled_init(&filled[i], selection->columns[i], array.children[i], rows->count);
	}
	done = done && fill_relation(rows, filled, selection->count);
	for (size_t i = 0; filled && i < selection->count; i++)
		filled_release(&filled[i]);
	ops_free(filled);
	if (done)
		*ret_array = array;
	else
		arrow_release_array(&array);
	return done;
}

static const struct result_column *find_column(const struct result_declaration *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (!strcmp(table->columns[i].name, name))
			return &table->columns[i];
	return NULL;
}

static enum ops_code select_columns(const struct result_declaration *table, const char *const *names, size_t count,
                                    struct selection *ret_selection, struct ops_error *error)
{
	ret_selection->count = names ? count : table->count;
	ret_selection->columns = ops_alloc_zeroed(ret_selection->count + 1, sizeof(*ret_selection->columns));
	if (!ret_selection->columns)
		return ops_fault_memory(error);
	for (size_t i = 0; i < ret_selection->count; i++) {
		ret_selection->columns[i] = names ? find_column(table, names[i]) : &table->columns[i];
		if (!ret_selection->columns[i])
			return ops_fault(error, OPS_INVALID, "table '%s' has no column '%s'", table->id, names[i]);
	}
	return OPS_OK;
}

static enum ops_code make_selected(const struct ops_trace *trace, const struct relation *relation, const struct selection *selection,
                                   struct ArrowSchema *ret_schema, struct ArrowArray *ret_array, struct ops_error *error)
{
	struct relation_rows rows;
	unsigned needs = 0;
	bool done;

	if (!describe_table(selection, ret_schema))
		return ops_fault_memory(error);
	if (!trace)
		return OPS_OK;
	for (size_t i = 0; i < selection->count; i++)
		needs |= selection->columns[i]->option;
	done = relation_open(&rows, relation, trace, needs) && make_relation(&rows, selection, ret_array);
	relation_close(&rows);
	if (done)
		return OPS_OK;
	ret_schema->release(ret_schema);
	return ops_fault_memory(error);
}

enum ops_code ops_arrow_table(const struct ops_trace *trace, const char *table, const char *const *columns, size_t count,
                              struct ArrowSchema *ret_schema, struct ArrowArray *ret_array, struct ops_error *error)
{
	const struct relation *relation = relation_find(table);
	struct selection selection = {0};
	enum ops_code code;

	if (!relation)
		return ops_fault(error, OPS_INVALID, "unknown table '%s'", table);
	code = select_columns(relation->declaration, columns, count, &selection, error);
	if (!code)
		code = make_selected(trace, relation, &selection, ret_schema, ret_array, error);
	ops_free(selection.columns);
	return code;
}

enum ops_code ops_arrow_tables_json(char **ret_text, size_t *ret_size, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct ops_json_writer json = {.out = &out};

	ops_json_open(&json, '{');
	relations_json(&json);
	ops_json_close(&json, '}');
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}
