/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables on a terminal; see fit.h.
 */
#include "analyze/fit.h"

#include <string.h>

#include "analyze/format.h"
#include "base/escape.h"

struct fit_column fit_texts(size_t width, unsigned rank)
{
	size_t least = rank ? 16 : 32;

	return (struct fit_column){width, width < least ? width : least, rank};
}

/* Of all columns that are there, as they are or as narrow as they can be. */
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
	for (size_t i = 0; i < count; i++) /* so that a text of any length is cut in a few rounds */
		if (columns[i].width > columns[i].least && columns[i].width > room)
			columns[i].width = columns[i].least > room ? columns[i].least : room;
	while (width_of(columns, count, gap, false) > room && (column = widest(columns, count)))
		column->width--;
}

struct ops_string fit_text(struct ops_buffer *scratch, struct ops_string text, size_t width)
{
	size_t length = ops_text_length(text), head = width / 2;
	struct ops_string begin, skipped;

	if (length <= width || !width)
		return text;
	begin = ops_text_prefix(text, head);
	skipped = ops_text_prefix(text, length - (width - 1 - head));
	scratch->size = 0;
	ops_buffer_append(scratch, begin.bytes, begin.size);
	ops_buffer_append_text(scratch, "…");
	ops_buffer_append(scratch, text.bytes + skipped.size, text.size - skipped.size);
	return scratch->failed ? begin : (struct ops_string){scratch->bytes, scratch->size};
}

/* --- what is left out ------------------------------------------------------------------------------------------------ */

void fit_note_title(struct ops_buffer *note, struct ops_string title)
{
	ops_buffer_append_text(note, note->size ? ", " : "no room for ");
	ops_plain_append(note, title.bytes, title.size);
}

void fit_wrap(struct ops_buffer *out, struct ops_string text, size_t room)
{
	const char *at = text.bytes, *end = text.bytes + text.size;

	for (size_t used = 0, size; at < end; at += size) {
		const char *blank = memchr(at + 1, ' ', (size_t)(end - at - 1));
		size_t length;

		size = blank ? (size_t)(blank - at) : (size_t)(end - at);
		length = ops_text_length((struct ops_string){at, size});
		if (room && used && used + length > room) {
			ops_buffer_append_text(out, "\n");
			ops_buffer_append(out, at + 1, size - 1);
			used = length - 1;
		} else {
			ops_buffer_append(out, at, size);
			used += length;
		}
	}
	ops_buffer_append_text(out, "\n");
}

void fit_note_end(struct ops_buffer *take_note, struct ops_buffer *out, size_t room)
{
	if (take_note->size) {
		ops_buffer_append_text(take_note, ": a wider terminal shows more, '| less -S' all");
		fit_wrap(out, (struct ops_string){take_note->bytes, take_note->size}, room);
	}
	out->failed |= take_note->failed;
	ops_buffer_release(take_note);
}
