/* SPDX-License-Identifier: Apache-2.0
 *
 * Common parts of all tables in Arrow's C data interface: arrays that keep their trace alive, and dictionaries.
 */
#ifndef OPS_WRITE_ARROW_ARRAY_H
#define OPS_WRITE_ARROW_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/arrow.h>

#include "base/buffer.h"
#include "base/intern.h"

/* The objects that a column or dictionary keeps alive. */
struct arrow_kept {
	struct ops_trace *trace; /* NULL: no trace is needed */
	const void *buffers[3];
	void *owned[3];
};

/* The values of a dictionary. Each occurs once, even if texts become equal only by the replacement of bytes. */
struct arrow_texts {
	struct ops_intern unique;
	struct ops_buffer scratch;
};

/* Frees children, dictionary and `private_data`. */
void arrow_release_schema(struct ArrowSchema *schema);
void arrow_release_array(struct ArrowArray *array);

/* Begins an array that keeps the trace, which may be NULL. Returns NULL if out of memory; the array can be released even then. */
struct arrow_kept *arrow_begin(struct ArrowArray *array, struct ops_trace *trace, size_t length, int64_t buffers);
/* Returns zeroed memory for a buffer that the array owns. Returns NULL if out of memory. */
void *arrow_own(struct arrow_kept *kept, int i, size_t count, size_t bytes_each);

/* Appends a text; replaces each byte that is not UTF-8 by a replacement character. */
void arrow_append_utf8(struct ops_buffer *out, struct ops_string text);
/* Returns the number of a text, added if new; OPS_NONE if out of memory. */
uint32_t arrow_number_of(struct arrow_texts *texts, struct ops_string text);
/* Gives the array a dictionary of all texts. Returns false if out of memory. */
bool arrow_finish_dictionary(struct ArrowArray *array, struct ops_trace *trace, const struct arrow_texts *texts);
void arrow_texts_release(struct arrow_texts *texts);

#endif
