/* SPDX-License-Identifier: Apache-2.0
 *
 * Chains of frames; see frames.h.
 */
#include "analyze/frames.h"

#include <string.h>

#include "base/alloc.h"

bool ops_frames_init(struct ops_frames *frames, const struct ops_trace *trace)
{
	*frames = (struct ops_frames){.trace = trace};
	return OPS_ARRAY_APPEND(&frames->frames, ((struct ops_frame){OPS_NONE, OPS_NONE}));
}

void ops_frames_release(struct ops_frames *frames)
{
	ops_intern_release(&frames->names);
	OPS_ARRAY_RELEASE(&frames->frames);
	ops_map_release(&frames->chains);
	*frames = (struct ops_frames){0};
}

/* --- names -------------------------------------------------------------------------------------------------------- */

uint32_t ops_frames_name(struct ops_frames *frames, struct ops_string text)
{
	uint32_t name = ops_trace_find_string(frames->trace, text.bytes, text.size);

	if (name != OPS_NONE)
		return name;
	name = ops_intern_add(&frames->names, text.bytes, text.size);
	return name == OPS_INTERN_NONE ? OPS_NONE : (uint32_t)ops_trace_string_count(frames->trace) + name;
}

struct ops_string ops_frames_text(const struct ops_frames *frames, uint32_t name)
{
	size_t string_count = ops_trace_string_count(frames->trace);

	if (name < string_count)
		return ops_trace_string(frames->trace, name);
	return ops_intern_text(&frames->names, (uint32_t)(name - string_count));
}

/* --- chains ------------------------------------------------------------------------------------------------------- */

uint32_t ops_frames_add(struct ops_frames *frames, uint32_t caller, uint32_t name)
{
	uint32_t *chain, next = (uint32_t)frames->frames.count;

	if (caller == OPS_NONE || name == OPS_NONE)
		return OPS_NONE;
	chain = ops_map_slot(&frames->chains, (uint64_t)caller << 32 | name, next);
	if (!chain || (*chain == next && !OPS_ARRAY_APPEND(&frames->frames, ((struct ops_frame){caller, name}))))
		return OPS_NONE;
	return *chain;
}

uint32_t ops_frames_add_text(struct ops_frames *frames, uint32_t caller, struct ops_string text,
                             bool (*skip)(struct ops_string frame))
{
	size_t end = text.size;

	/* The outermost frame comes last. */
	while (end > 0 && caller != OPS_NONE) {
		const char *before = memrchr(text.bytes, ';', end);
		size_t start = before ? (size_t)(before - text.bytes) + 1 : 0;
		struct ops_string frame = {text.bytes + start, end - start};

		if (frame.size > 0 && !(skip && skip(frame)))
			caller = ops_frames_add(frames, caller, ops_frames_name(frames, frame));
		end = start > 0 ? start - 1 : 0;
	}
	return caller;
}

/* --- calls around a row ------------------------------------------------------------------------------------------- */

uint32_t *ops_python_callers(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t track_count;
	uint32_t *callers, *open; /* by track: the innermost call that has not returned yet */

	ops_trace_tracks(trace, &track_count);
	callers = ops_realloc_array(NULL, events->count + 1, sizeof(*callers));
	open = ops_alloc_none(track_count + 1);
	if (!callers || !open) {
		ops_free(callers);
		ops_free(open);
		return NULL;
	}
	for (size_t row = 0; row < events->count; row++) {
		uint32_t *caller = &open[events->track[row]];

		while (*caller != OPS_NONE && events->start_ns[row] >= events->end_ns[*caller])
			*caller = callers[*caller];
		callers[row] = *caller;
		if (events->kind[row] == OPS_EVENT_PYTHON_FUNCTION)
			*caller = (uint32_t)row;
	}
	ops_free(open);
	return callers;
}
