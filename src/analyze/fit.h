/* SPDX-License-Identifier: Apache-2.0
 *
 * Fits a table of text to a terminal. The least important columns are omitted first. Then the widest texts are
 * truncated in the middle, since names of kernels begin alike and names of files end in what matters.
 */
#ifndef OPS_ANALYZE_FIT_H
#define OPS_ANALYZE_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/buffer.h"
#include "base/intern.h"

struct fit_column {
	size_t width; /* width of the longest text in it; afterwards the remaining width, 0: none */
	size_t least; /* minimum width of truncated cells; equal to `width` if cells must not be truncated */
	unsigned rank; /* the column with the highest rank is omitted first, of equal ranks the rightmost; 0: never */
};

/* A column of texts, which may be truncated; if the column may be omitted, to a smaller width. */
struct fit_column fit_texts(size_t width, unsigned rank);

/* Fits the columns that have a width into `room` characters, as far as possible. With 0, nothing is omitted or
 * truncated. */
void fit_columns(struct fit_column *columns, size_t count, size_t gap, size_t room);

/* Names of a table that stay distinct when they are truncated. If two of them differ only in the middle, a part of it
 * is kept; if that is not enough, they are numbered. Zero-initialised is empty. */
struct fit_names {
	struct ops_intern texts; /* all names */
	struct ops_intern shown; /* the truncated names */
	struct fit_name *items; /* by id of `texts` */
	size_t capacity;
	uint32_t *owners; /* by id of `shown`: the name that it represents */
	size_t owner_capacity;
	size_t numbered;
	bool ascii; /* "~" marks omissions */
	bool failed;
};

/* Announces a name that will be shown, so that earlier names keep the part in which they differ from it. */
void fit_names_expect(struct fit_names *names, struct ops_string text, size_t width);
/* Returns a name of at most `width` characters: `text` itself, or a text that `names` owns. */
struct ops_string fit_name(struct fit_names *names, struct ops_string text, size_t width);
void fit_names_release(struct fit_names *names);

/* Appends a line of text, wrapped at blanks if it is longer than `room` (0: never), with `indent` blanks before each line. A percent
 * sign stays with its figure. */
void fit_wrap(struct ops_buffer *out, struct ops_string text, size_t room, size_t indent);

/* Writes a note below a table about the omitted columns. fit_note_title() collects their titles in a buffer that is
 * empty at first. The second function writes the note, if there are any, in lines of `room` characters. */
void fit_note_title(struct ops_buffer *note, struct ops_string title);
void fit_note_end(struct ops_buffer *owned_note, struct ops_buffer *out, size_t room);

#endif
