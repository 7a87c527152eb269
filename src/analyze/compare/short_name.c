/* SPDX-License-Identifier: Apache-2.0
 *
 * Short names; see short_name.h.
 */
#include "analyze/compare/short_name.h"

#include <assert.h>
#include <string.h>

#include "analyze/events/event_table.h"
#include "analyze/result.h"
#include "base/alloc.h"
#include "base/intern.h"
#include "base/text.h"

static bool is_template(struct ops_string name)
{
	static const char *const copies[] = {"Memcpy", "Memset", "hipMemcpy", "hipMemset", "dma"};

	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
		if (ops_string_starts(name, copies[i]))
			return false;
	return ops_string_contains(name, "<") || ops_string_contains(name, "(");
}

/* A closing bracket removes everything back to its opening bracket, or everything if there is none. */
static void drop_brackets(struct ops_string name, struct ops_buffer *out)
{
	for (size_t i = 0; i < name.size; i++) {
		char c = name.bytes[i];

		if (c == '-' && i + 1 < name.size && name.bytes[i + 1] == '>')
			i++;
		else if (c == '>' || c == ')')
			while (out->size && out->bytes[--out->size] != (c == '>' ? '<' : '('))
				continue;
		else
			ops_buffer_append(out, &c, 1);
	}
}

void short_name(struct ops_string name, struct ops_buffer *out)
{
	const char *space;

	out->size = 0;
	if (!is_template(name)) {
		ops_buffer_append(out, name.bytes, name.size);
		return;
	}
	drop_brackets(name, out);
	space = out->size ? memrchr(out->bytes, ' ', out->size) : NULL;
	if (space) {
		size_t left = (size_t)(out->bytes + out->size - (space + 1));

		memmove(out->bytes, space + 1, left);
		out->size = left;
	}
}

void readable_name(struct ops_string name, struct ops_buffer *out)
{
	size_t left = 0;

	short_name(name, out);
	for (size_t i = 0; i < out->size; i++) {
		bool scope = out->size - i >= 2 && !memcmp(out->bytes + i, "::", 2);

		if (scope && (!left || (left >= 2 && !memcmp(out->bytes + left - 2, "::", 2))))
			i++;
		else
			out->bytes[left++] = out->bytes[i];
	}
	out->size = left;
}

/* A readable form, and the names that have it. */
struct form {
	struct ops_string name; /* the first one */
	bool is_shared;
};

/* Finds the form of each name. */
static bool find_forms(const struct ops_string *names, size_t count, struct ops_intern *texts, struct form *forms, uint32_t *of)
{
	struct ops_buffer text = {0};
	bool done = true;

	for (size_t i = 0; done && i < count; i++) {
		readable_name(names[i], &text);
		of[i] = ops_intern_add(texts, ops_buffer_text(&text), text.size);
		done = !text.failed && of[i] != OPS_INTERN_NONE;
		if (!done)
			break;
		if (!forms[of[i]].name.bytes)
			forms[of[i]].name = names[i];
		forms[of[i]].is_shared |= !ops_string_equals(forms[of[i]].name, names[i]);
	}
	ops_buffer_release(&text);
	return done;
}

bool readable_names(struct ops_string *names, size_t count, struct ops_arena *arena)
{
	struct ops_intern texts = {0};
	struct form *forms = ops_alloc_zeroed(count + 1, sizeof(*forms));
	uint32_t *of = ops_alloc_zeroed(count + 1, sizeof(*of));
	bool done = forms && of && find_forms(names, count, &texts, forms, of);

	for (size_t i = 0; done && i < count; i++) {
		struct ops_string text = ops_intern_text(&texts, of[i]);

		if (forms[of[i]].is_shared || !text.size) {
			size_t skipped = ops_string_starts(names[i], "void ") ? strlen("void ") : 0;

			names[i] = (struct ops_string){names[i].bytes + skipped, names[i].size - skipped};
		} else {
			names[i].bytes = ops_arena_copy(arena, text.bytes, text.size);
			names[i].size = text.size;
			done = names[i].bytes;
		}
	}
	ops_free(forms);
	ops_free(of);
	ops_intern_release(&texts);
	return done;
}

bool readable_name_column(struct result_table *table)
{
	size_t width = table->columns.count, rows = result_table_rows(table), column = 0;
	struct ops_string *names = ops_alloc_zeroed(rows + 1, sizeof(*names));
	bool done = names;

	while (column < width && strcmp(table->columns.items[column].name, "name") != 0)
		column++;
	assert(column < width);
	for (size_t i = 0; done && i < rows; i++)
		names[i] = table->cells.items[i * width + column].text;
	done = done && readable_names(names, rows, &table->arena);
	for (size_t i = 0; done && i < rows; i++)
		table->cells.items[i * width + column].text = names[i];
	ops_free(names);
	return done;
}
