/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables on a terminal; see fit.h.
 */
#include "analyze/fit.h"

#include <stdio.h>
#include <string.h>

#include "analyze/format.h"
#include "base/alloc.h"
#include "base/array.h"
#include "base/escape.h"
#include "base/text.h"

#define PIECE_MIN 16 /* a name truncated to less than this has no room for a part of its middle */
#define PIECES_MAX 8 /* number of parts that are tried for one name */

struct fit_column fit_texts(size_t width, unsigned rank)
{
	size_t least = rank ? 16 : 32;

	return (struct fit_column){width, width < least ? width : least, rank};
}

/* Returns the width of all columns that are shown, at their natural or their minimum width. */
static size_t width_of(const struct fit_column *columns, size_t count, size_t gap, bool narrow)
{
	size_t width = 0;

	for (size_t i = 0; i < count; i++)
		if (columns[i].width)
			width += (width ? gap : 0) + (narrow ? columns[i].least : columns[i].width);
	return width;
}

static struct fit_column *least_important(struct fit_column *columns, size_t count)
{
	struct fit_column *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (columns[i].width && columns[i].rank && (!found || columns[i].rank >= found->rank))
			found = &columns[i];
	return found;
}

static struct fit_column *widest(struct fit_column *columns, size_t count)
{
	struct fit_column *found = NULL;

	for (size_t i = 0; i < count; i++)
		if (columns[i].width > columns[i].least && (!found || columns[i].width > found->width))
			found = &columns[i];
	return found;
}

void fit_columns(struct fit_column *columns, size_t count, size_t gap, size_t room)
{
	struct fit_column *column;

	if (!room)
		return;
	while (width_of(columns, count, gap, true) > room && (column = least_important(columns, count)))
		column->width = 0;
	for (size_t i = 0; i < count; i++) /* so that a text of any length is truncated in a few passes */
		if (columns[i].width > columns[i].least && columns[i].width > room)
			columns[i].width = columns[i].least > room ? columns[i].least : room;
	while (width_of(columns, count, gap, false) > room && (column = widest(columns, count)))
		column->width--;
}

/* --- names ----------------------------------------------------------------------------------------------------------- */

/* Truncates a text by omitting its middle. */
static void fit_cut(struct ops_buffer *out, struct ops_string text, size_t length, size_t width, const char *mark)
{
	size_t head = width / 2;
	struct ops_string begin = ops_text_prefix(text, head), skipped = ops_text_prefix(text, length - (width - 1 - head));

	out->size = 0;
	ops_buffer_append(out, begin.bytes, begin.size);
	ops_buffer_append_text(out, mark);
	ops_buffer_append(out, text.bytes + skipped.size, text.size - skipped.size);
}

struct fit_name {
	size_t differs; /* the first character that differs from another text truncated to the same form; 0: none */
	size_t width; /* width that `shown` was computed for; 0: not computed yet */
	uint32_t shown;
};

/* Keeps the start, a part around character `at`, and the end. */
static void cut_around(struct ops_buffer *out, struct ops_string text, size_t length, size_t width, size_t at, const char *mark)
{
	size_t head = width * 3 / 8, tail = width / 8, size = width - 2 - head - tail, from = at - size / 4;
	struct ops_string begin = ops_text_prefix(text, head), skipped, piece;

	out->size = 0;
	ops_buffer_append(out, begin.bytes, begin.size);
	ops_buffer_append_text(out, mark);
	if (from + size + tail + 1 >= length) { /* the part touches the end */
		skipped = ops_text_prefix(text, length - (width - 1 - head));
	} else {
		skipped = ops_text_prefix(text, from);
		piece = ops_text_prefix((struct ops_string){text.bytes + skipped.size, text.size - skipped.size}, size);
		ops_buffer_append(out, piece.bytes, piece.size);
		ops_buffer_append_text(out, mark);
		skipped = ops_text_prefix(text, length - tail);
	}
	ops_buffer_append(out, text.bytes + skipped.size, text.size - skipped.size);
}

/* Returns the length of the common prefix of two texts. */
static size_t same_begin(struct ops_string a, struct ops_string b)
{
	size_t size = 0;

	while (size < a.size && size < b.size && a.bytes[size] == b.bytes[size])
		size++;
	while (size && size < a.size && ((unsigned char)a.bytes[size] & 0xc0) == 0x80) /* within a UTF-8 sequence */
		size--;
	return ops_text_length((struct ops_string){a.bytes, size});
}

/* Returns where two texts differ; 0, as for "none", unless the middle has room for a part there. */
static size_t differs_at(struct ops_string a, struct ops_string b, size_t width)
{
	size_t at = same_begin(a, b);

	return width >= PIECE_MIN && at >= width / 2 ? at : 0;
}

static struct ops_string fit_string_of(const struct ops_intern *table, uint32_t id)
{
	return ops_intern_text(table, id);
}

static uint32_t fit_add_text(struct fit_names *names, struct ops_string text)
{
	size_t known = names->texts.count;
	uint32_t id = OPS_INTERN_NONE;

	if (ops_array_reserve(&names->items, &names->capacity, known, 1, sizeof(*names->items)))
		id = ops_intern_add(&names->texts, text.bytes, text.size);
	if (id == known)
		names->items[id] = (struct fit_name){0};
	names->failed |= id == OPS_INTERN_NONE;
	return id;
}

/* Returns the text that is already shown as this truncated text, or `id` if there is none. */
static uint32_t owner_of(struct fit_names *names, const struct ops_buffer *shown, uint32_t id, uint32_t *ret_shown)
{
	size_t known = names->shown.count;

	*ret_shown = OPS_INTERN_NONE;
	if (!shown->failed && ops_array_reserve(&names->owners, &names->owner_capacity, known, 1, sizeof(*names->owners)))
		*ret_shown = ops_intern_add(&names->shown, shown->bytes, shown->size);
	names->failed |= *ret_shown == OPS_INTERN_NONE;
	if (*ret_shown == known)
		names->owners[known] = id;
	return names->failed ? id : names->owners[*ret_shown];
}

static const char *fit_mark_of(const struct fit_names *names)
{
	return names->ascii ? "~" : "…";
}

static void set_difference(struct fit_name *name, size_t at)
{
	if (at && (!name->differs || at < name->differs))
		name->differs = at;
}

void fit_names_expect(struct fit_names *names, struct ops_string text, size_t width)
{
	size_t length = ops_text_length(text), at;
	struct ops_buffer scratch = {0};
	uint32_t id, owner, shown;

	if (length <= width || !width)
		return;
	id = fit_add_text(names, text);
	fit_cut(&scratch, text, length, width, fit_mark_of(names));
	owner = names->failed ? id : owner_of(names, &scratch, id, &shown);
	if (owner != id) {
		at = differs_at(text, fit_string_of(&names->texts, owner), width);
		set_difference(&names->items[id], at);
		set_difference(&names->items[owner], at);
	}
	ops_buffer_release(&scratch);
}

static uint32_t fit_find_shown(struct fit_names *names, struct ops_buffer *scratch, uint32_t id, size_t length, size_t width)
{
	struct ops_string text = fit_string_of(&names->texts, id);
	size_t differs = names->items[id].differs, at = width >= PIECE_MIN && differs >= width / 2 ? differs : 0;
	uint32_t owner, shown;

	for (int i = 0; i < PIECES_MAX; i++) {
		if (at)
			cut_around(scratch, text, length, width, at, fit_mark_of(names));
		else
			fit_cut(scratch, text, length, width, fit_mark_of(names));
		owner = owner_of(names, scratch, id, &shown);
		if (owner == id)
			return shown;
		at = differs_at(text, fit_string_of(&names->texts, owner), width);
		if (!at)
			break;
	}
	do {
		char number[24];
		size_t size = (size_t)snprintf(number, sizeof(number), "#%zu", ++names->numbered + 1);

		fit_cut(scratch, text, length, size < width ? width - size : 1, fit_mark_of(names));
		ops_buffer_append(scratch, number, size);
	} while (owner_of(names, scratch, id, &shown) != id);
	return shown;
}

struct ops_string fit_name(struct fit_names *names, struct ops_string text, size_t width)
{
	size_t length = ops_text_length(text);
	struct ops_buffer scratch = {0};
	struct fit_name *name;
	uint32_t id, shown;

	if (length <= width || !width)
		return text;
	id = fit_add_text(names, text);
	if (names->failed)
		return text;
	name = &names->items[id];
	shown = name->shown;
	if (name->width != width)
		shown = fit_find_shown(names, &scratch, id, length, width);
	ops_buffer_release(&scratch);
	if (names->failed)
		return text;
	name->width = width;
	name->shown = shown;
	return fit_string_of(&names->shown, shown);
}

void fit_names_release(struct fit_names *names)
{
	ops_intern_release(&names->texts);
	ops_intern_release(&names->shown);
	ops_free(names->items);
	ops_free(names->owners);
	*names = (struct fit_names){.ascii = names->ascii, .failed = names->failed};
}

/* --- omitted columns -------------------------------------------------------------------------------------------------- */

void fit_note_title(struct ops_buffer *note, struct ops_string title)
{
	ops_buffer_append_text(note, note->size ? ", " : "no room for ");
	ops_plain_append(note, title.bytes, title.size);
}

void fit_wrap(struct ops_buffer *out, struct ops_string text, size_t room, size_t indent)
{
	const char *at = text.bytes, *end = ops_string_end(text);

	for (size_t used = 0, size; at < end; at += size) {
		size_t length;

		for (size = 1; at + size < end && (at[size] != ' ' || (at + size + 1 < end && at[size + 1] == '%'));)
			size++;
		length = ops_text_length((struct ops_string){at, size});
		if (!used || (room && used + length > room)) {
			size_t blank = used > 0; /* before the word */

			ops_buffer_printf(out, "%s%*s", used ? "\n" : "", (int)indent, "");
			ops_buffer_append(out, at + blank, size - blank);
			used = indent + length - blank;
		} else {
			ops_buffer_append(out, at, size);
			used += length;
		}
	}
	ops_buffer_append_text(out, "\n");
}

void fit_note_end(struct ops_buffer *owned_note, struct ops_buffer *out, size_t room)
{
	if (owned_note->size) {
		ops_buffer_append_text(owned_note, ": a wider terminal shows more, '| less -S' all");
		fit_wrap(out, (struct ops_string){owned_note->bytes, owned_note->size}, room, 0);
	}
	out->failed |= owned_note->failed;
	ops_buffer_release(owned_note);
}
