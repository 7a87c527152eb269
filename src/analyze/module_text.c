/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of modules as text: one row per module, its name indented below that of the module that contains it.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/module_columns.h"
#include "analyze/module_tree.h"
#include "base/alloc.h"
#include "base/buffer.h"
#include "base/fault.h"

#define INDENT 2
#define DEPTH_MAX 64 /* deeper modules are not indented further */

/* --- selection and order of rows ------------------------------------------------------------------------------------ */

/* Keys by which rows can be sorted. */
static const struct sort_key {
	const char *name;
	size_t offset; /* offset in struct ops_module_row, of a 64-bit member */
} sort_keys[] = {
#define FIGURE(field) offsetof(struct ops_module_row, field)
	{"calls", FIGURE(calls)},
	{"parameters", FIGURE(parameter_count)},
	{"cpu_peak_bytes", FIGURE(cpu_peak_bytes)},
	{"device_peak_bytes", FIGURE(device_peak_bytes)},
#define METRIC(name, text) {text, FIGURE(total[OPS_MODULE_##name])}, {"self_" text, FIGURE(self[OPS_MODULE_##name])},
	OPS_MODULE_METRICS(METRIC)
#undef METRIC
};

static int64_t figure_of(const struct ops_module_row *row, size_t offset)
{
	int64_t value;

	memcpy(&value, (const char *)row + offset, sizeof(value));
	return value;
}

#undef FIGURE

struct sheet {
	const struct ops_module_row *rows;
	size_t row_count;
	bool by_class;
	size_t sort_offset;
	bool sorted;
	uint32_t *lines; /* rows in display order */
	size_t line_count;
};

static int module_text_compare_rows(const void *a, const void *b, void *context)
{
	const struct sheet *sheet = context;
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
	uint32_t left_parent = sheet->rows[left].parent + 1, right_parent = sheet->rows[right].parent + 1;
	int64_t left_value, right_value;

	if (left_parent != right_parent)
		return left_parent < right_parent ? -1 : 1;
	if (sheet->sorted) {
		left_value = figure_of(&sheet->rows[left], sheet->sort_offset);
		right_value = figure_of(&sheet->rows[right], sheet->sort_offset);
		if (left_value != right_value)
			return left_value > right_value ? -1 : 1;
	}
	return left < right ? -1 : 1;
}

/* Walks down the tree and collects the rows that are called or contain such rows. Roots are the children of row
 * `count`. */
static void module_text_walk(struct sheet *sheet, const uint32_t *first, const uint32_t *next, const uint8_t *called,
                             uint32_t max_depth)
{
	uint32_t at = first[sheet->row_count];

	while (at != OPS_NONE) {
		const struct ops_module_row *row = &sheet->rows[at];
		bool shown = called[at] && (!max_depth || row->depth < max_depth);

		if (shown)
			sheet->lines[sheet->line_count++] = at;
		if (shown && first[at] != OPS_NONE) {
			at = first[at];
			continue;
		}
		while (next[at] == OPS_NONE && sheet->rows[at].parent != OPS_NONE)
			at = sheet->rows[at].parent;
		at = next[at];
	}
}

/* Returns false if out of memory. */
static bool module_text_find_lines(struct sheet *sheet, uint32_t max_depth)
{
	size_t count = sheet->row_count;
	uint32_t *order = ops_realloc_array(NULL, count + 1, sizeof(*order));
	uint32_t *first = ops_realloc_array(NULL, count + 1, sizeof(*first));
	uint32_t *next = ops_realloc_array(NULL, count + 1, sizeof(*next));
	uint8_t *called = ops_alloc_zeroed(count + 1, 1);
	bool ok = order && first && next && called;

	sheet->lines = ops_realloc_array(NULL, count + 1, sizeof(*sheet->lines));
	ok = ok && sheet->lines;
	for (uint32_t i = 0; ok && i <= count; i++) {
		order[i] = i;
		first[i] = next[i] = OPS_NONE;
	}
	for (size_t i = count; ok && i-- > 0;) {
		called[i] |= sheet->rows[i].calls > 0;
		if (called[i] && sheet->rows[i].parent != OPS_NONE)
			called[sheet->rows[i].parent] = 1;
	}
	if (ok) {
		qsort_r(order, count, sizeof(*order), module_text_compare_rows, sheet);
		for (size_t i = count; i-- > 0;) {
			uint32_t parent = sheet->rows[order[i]].parent;

			next[order[i]] = first[parent == OPS_NONE ? count : parent];
			first[parent == OPS_NONE ? count : parent] = order[i];
		}
		module_text_walk(sheet, first, next, called, max_depth);
	}
	ops_free(order);
	ops_free(first);
	ops_free(next);
	ops_free(called);
	return ok;
}

/* --- cells ---------------------------------------------------------------------------------------------------------- */

/* "torch.nn.modules.linear.Linear" is shown as "Linear". */
static struct ops_string short_class(struct ops_string name)
{
	const char *dot = memrchr(name.bytes, '.', name.size);
	size_t skipped = dot ? (size_t)(dot + 1 - name.bytes) : 0;

	return (struct ops_string){name.bytes + skipped, name.size - skipped};
}

/* Returns what a path adds to that of the row above: "1.attn" below "layers". A module with the same path is wrapped by
 * it. */
static struct ops_string module_text_label_of(const struct sheet *sheet, const struct ops_module_row *row)
{
	const struct ops_module_row *parent = row->parent == OPS_NONE ? NULL : &sheet->rows[row->parent];
	struct ops_string path = row->path;

	if (!parent || parent->path.size > path.size || memcmp(parent->path.bytes, path.bytes, parent->path.size) != 0)
		return path;
	if (parent->path.size == path.size)
		return short_class(row->class_name);
	if (path.bytes[parent->path.size] != '.')
		return path;
	return (struct ops_string){path.bytes + parent->path.size + 1, path.size - parent->path.size - 1};
}

static const struct result_column printed_columns[] = {
	{.name = "name", .type = RESULT_TEXT, .title = "Module"},
	{.name = "class", .type = RESULT_TEXT, .title = "Class"},
	MODULE_FIGURES,
};

/* Returns false if out of memory. */
static bool fill_table(const struct sheet *sheet, struct result_table *table)
{
	struct ops_buffer label = {0};

	result_columns(table, sheet->by_class ? &printed_columns[1] : printed_columns,
	               sizeof(printed_columns) / sizeof(printed_columns[0]) - sheet->by_class);
	for (size_t i = 0; i < sheet->line_count; i++) {
		const struct ops_module_row *row = &sheet->rows[sheet->lines[i]];
		struct ops_string text = module_text_label_of(sheet, row);

		if (!sheet->by_class) {
			label.size = 0;
			ops_buffer_printf(&label, "%*s", (int)(row->depth < DEPTH_MAX ? row->depth : DEPTH_MAX) * INDENT, "");
			ops_buffer_append(&label, text.bytes, text.size);
			table->failed |= label.failed;
			result_text(table, (struct ops_string){label.bytes, label.size});
		}
		result_text(table, sheet->by_class ? row->class_name : short_class(row->class_name));
		result_add(table, row);
	}
	ops_buffer_release(&label);
	return !table->failed;
}

/* Returns false if out of memory. */
static bool module_text_write_text(const struct sheet *sheet, const struct ops_module_text_options *options,
                                   struct ops_buffer *out)
{
	struct result_table table = {.copies = true};
	bool done;

	if (!sheet->line_count) {
		ops_buffer_append_text(out, OPS_MODULES_EMPTY "\n");
		return true;
	}
	done = fill_table(sheet, &table);
	if (options->rows_max)
		result_table_cut(&table, options->rows_max);
	result_table_omit_empty(&table);
	done = done && result_table_write(&table, OPS_FORMAT_TEXT, options->columns, out);
	result_table_release(&table);
	return done;
}

/* Returns false if the key is unknown. */
static bool find_sort(struct sheet *sheet, const char *key)
{
	for (size_t i = 0; i < sizeof(sort_keys) / sizeof(sort_keys[0]); i++) {
		if (strcmp(sort_keys[i].name, key) != 0)
			continue;
		sheet->sort_offset = sort_keys[i].offset;
		return sheet->sorted = true;
	}
	return false;
}

enum ops_code ops_module_text(const struct ops_module_tree *tree, const struct ops_module_text_options *options,
                              char **ret_text, size_t *ret_size, struct ops_error *error)
{
	static const struct ops_module_text_options defaults = {0};
	struct ops_buffer out = {0};
	struct sheet sheet = {0};

	options = options ? options : &defaults;
	sheet.by_class = options->by_class;
	sheet.rows = sheet.by_class ? tree->classes.items : tree->rows.items;
	sheet.row_count = sheet.by_class ? tree->classes.count : tree->rows.count;
	if (options->sort_by && !find_sort(&sheet, options->sort_by))
		return ops_fault(error, OPS_INVALID, "modules cannot be sorted by '%s'", options->sort_by);
	if (!module_text_find_lines(&sheet, options->max_depth) || !module_text_write_text(&sheet, options, &out))
		out.failed = true;
	ops_free(sheet.lines);
	return ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
}
