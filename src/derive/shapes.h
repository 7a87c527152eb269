/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes of inputs as texts, for grouping: input lists that differ only in types or strides have the same text.
 */
#ifndef OPS_DERIVE_SHAPES_H
#define OPS_DERIVE_SHAPES_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "base/buffer.h"
#include "base/intern.h"

/* Appends the shapes of an input list: "[[32, 3, 224, 224], []]", where a scalar is "[]". OPS_NONE is an empty list. */
void ops_shapes_append(struct ops_buffer *out, const struct ops_trace *trace, uint32_t inputs);

/* Numbers of the texts, each computed when first needed. */
struct ops_shapes {
	const struct ops_trace *trace;
	uint32_t *known; /* by input list, after one for events without a list; OPS_NONE: not computed yet */
	struct ops_intern texts;
	struct ops_buffer scratch;
};

/* Returns false if out of memory. The caller must release the shapes in any case. */
bool ops_shapes_init(struct ops_shapes *shapes, const struct ops_trace *trace);
void ops_shapes_release(struct ops_shapes *shapes);
/* Returns the number of a list's text in `texts`. Returns OPS_NONE if out of memory. */
uint32_t ops_shapes_number(struct ops_shapes *shapes, uint32_t inputs);

#endif
