/* SPDX-License-Identifier: Apache-2.0
 *
 * Parts of Arrow's C data interface that every table is made of: arrays that keep their trace, and dictionaries.
 */
#ifndef OPS_WRITE_ARROW_ARRAY_H
#define OPS_WRITE_ARROW_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/arrow.h>

#include "base/buffer.h"
#include "base/intern.h"

/* What a column or dictionary keeps alive. */
struct arrow_kept {
	struct ops_trace *trace; /* NULL: none is needed */
	const void *buffers[3];
	void *owned[3];
};

/* The values of a dictionary: each once, also where only what replaces bytes makes them equal. */
struct arrow_texts {
	struct ops_intern unique;
	struct ops_buffer scratch;
};

/* Frees children, dictionary and `private_data`. */
void arrow_release_schema(struct ArrowSchema *schema);
void arrow_release_array(struct ArrowArray *array);

/* Begins an array that keeps the trace, which may be NULL; NULL when memory is out. It can be released in any case. */
struct arrow_kept *arrow_begin(struct ArrowArray *array, struct ops_trace *trace, size_t length, int64_t buffers);
/* Room for a buffer that the array owns, zeroed. NULL when memory is out. */
void *arrow_own(struct arrow_kept *kept, int i, size_t count, size_t bytes_each);

/* Appends a text with a replacement character for each byte that is not UTF-8. */
void arrow_append_utf8(struct ops_buffer *out, struct ops_string text);
/* The number of a text among those met; OPS_NONE when memory is out. */
uint32_t arrow_number_of(struct arrow_texts *texts, struct ops_string text);
/* Gives the array the dictionary of all texts met. False when memory is out. */
bool arrow_finish_dictionary(struct ArrowArray *array, struct ops_trace *trace, const struct arrow_texts *texts);
void arrow_texts_release(struct arrow_texts *texts);

#endif
