/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a table of text fits a terminal: the columns that matter least are left out, then the widest texts are cut in the
 * middle, for names of kernels begin alike, and those of files end in what matters.
 */
#ifndef OPS_ANALYZE_FIT_H
#define OPS_ANALYZE_FIT_H

#include <stddef.h>

#include <opstrobe/trace.h>

#include "base/buffer.h"

struct fit_column {
	size_t width; /* of the longest text in it; what is left of it afterwards, 0: nothing */
	size_t least; /* cells may be cut to it; `width` where they may not */
	unsigned rank; /* the highest is left out first, of equal ones the one at the right; 0: never */
};

/* A column of texts, which may be cut: to less where it may be left out, too. */
struct fit_column fit_texts(size_t width, unsigned rank);

/* Makes the columns that have a width fit `room` characters, as far as they can be; with 0 nothing is left out or cut. */
void fit_columns(struct fit_column *columns, size_t count, size_t gap, size_t room);

/* A text of so many characters at most, the middle left out: `text` itself, or made in `scratch`. */
struct ops_string fit_text(struct ops_buffer *scratch, struct ops_string text, size_t width);

/* Appends a line of text, broken at blanks where it is longer than `room`; 0: never. */
void fit_wrap(struct ops_buffer *out, struct ops_string text, size_t room);

/* Says below a table which columns are left out: their titles, one after the other, into a buffer that is empty at first, and
 * then all of it, if there is any, in lines of `room` characters. */
void fit_note_title(struct ops_buffer *note, struct ops_string title);
void fit_note_end(struct ops_buffer *take_note, struct ops_buffer *out, size_t room);

#endif
