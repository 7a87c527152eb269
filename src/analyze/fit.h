/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a table of text fits a terminal: the columns that matter least are left out, then the widest texts are cut in the
 * middle, for names of kernels begin alike, and those of files end in what matters.
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
	size_t width; /* of the longest text in it; afterwards the remaining width, 0: none */
	size_t least; /* cells may be cut to it; `width` where they may not */
	unsigned rank; /* the highest is left out first, of equal ones the one at the right; 0: never */
};

/* A column of texts, which may be cut: to less where it may be left out, too. */
struct fit_column fit_texts(size_t width, unsigned rank);

/* Makes the columns that have a width fit `room` characters, as far as they can be; with 0 nothing is left out or cut. */
void fit_columns(struct fit_column *columns, size_t count, size_t gap, size_t room);

/* Names of a table, which stay different when they are cut: where two of them differ in the middle alone, a piece of it is
 * kept, and where that is not enough they are numbered. Zero-initialised is empty. */
struct fit_names {
	struct ops_intern texts; /* all of them */
	struct ops_intern shown; /* what they are cut to */
	struct fit_name *items; /* by id of `texts` */
	size_t capacity;
	uint32_t *owners; /* by id of `shown`: the text that is shown so */
	size_t owner_capacity;
	size_t numbered;
	bool ascii; /* "~" where something is left out */
	bool failed;
};

/* A name that will be shown, so that those above it keep the piece in which they differ from it. */
void fit_names_expect(struct fit_names *names, struct ops_string text, size_t width);
/* A name of at most `width` characters: `text` itself, or what `names` holds until it is released. */
struct ops_string fit_name(struct fit_names *names, struct ops_string text, size_t width);
void fit_names_release(struct fit_names *names);

/* Appends a line of text, broken at blanks where it is longer than `room`; 0: never. */
void fit_wrap(struct ops_buffer *out, struct ops_string text, size_t room);

/* Says below a table which columns are left out: their titles, one after the other, into a buffer that is empty at first, and
 * then all of it, if there is any, in lines of `room` characters. */
void fit_note_title(struct ops_buffer *note, struct ops_string title);
void fit_note_end(struct ops_buffer *owned_note, struct ops_buffer *out, size_t room);

#endif
