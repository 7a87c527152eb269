/* SPDX-License-Identifier: Apache-2.0
 *
 * Shapes of inputs; see shapes.h.
 */
#include "derive/shapes.h"

#include "base/alloc.h"
#include "trace/inputs.h"

void ops_shapes_append(struct ops_buffer *out, const struct ops_trace *trace, uint32_t inputs)
{
	if (inputs == OPS_NONE)
		ops_buffer_append_text(out, "[]");
	else
		ops_inputs_shapes_text(out, ops_trace_inputs(trace, inputs));
}

bool ops_shapes_init(struct ops_shapes *shapes, const struct ops_trace *trace)
{
	size_t lists = ops_trace_inputs_count(trace);

	*shapes = (struct ops_shapes){.trace = trace, .known = ops_alloc_none(lists + 1)};
	return shapes->known != NULL;
}

void ops_shapes_release(struct ops_shapes *shapes)
{
	ops_free(shapes->known);
	ops_intern_release(&shapes->texts);
	ops_buffer_release(&shapes->scratch);
	shapes->known = NULL;
}

uint32_t ops_shapes_number(struct ops_shapes *shapes, uint32_t inputs)
{
	uint32_t *known = &shapes->known[inputs == OPS_NONE ? 0 : inputs + 1];

	if (*known != OPS_NONE)
		return *known;
	shapes->scratch.size = 0;
	ops_shapes_append(&shapes->scratch, shapes->trace, inputs);
	if (!shapes->scratch.failed)
		*known = ops_intern_add(&shapes->texts, shapes->scratch.bytes, shapes->scratch.size);
	return *known;
}
