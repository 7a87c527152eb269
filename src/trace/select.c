/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves out some kinds of events: the others are merged as one part, which derives the tree and links again.
 */
#include <opstrobe/merge.h>

#include "base/alloc.h"
#include "base/fault.h"

_Static_assert(OPS_EVENT_KIND_COUNT < 31, "each kind and OPS_SELECT_MEMORY need a bit");

enum ops_code ops_trace_select(const struct ops_trace *trace, uint32_t left_out, struct ops_trace **ret_trace,
			       struct ops_error *error)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t memory_count;
	uint32_t *refs;
	struct ops_trace_part part = {
		.trace = trace, .with_counters = true, .with_roles = !(left_out & OPS_SELECT_MEMORY)};
	enum ops_code code;

	ops_trace_memory(trace, &memory_count);
	refs = ops_realloc_array(NULL, events->count + memory_count + 1, sizeof(*refs));
	if (!refs)
		return ops_fault_memory(error);
	for (size_t row = 0; row < events->count; row++) {
		if (!(left_out & 1u << events->kind[row]))
			refs[part.ref_count++] = (uint32_t)row;
	}
	for (size_t i = 0; !(left_out & OPS_SELECT_MEMORY) && i < memory_count; i++)
		refs[part.ref_count++] = (uint32_t)i | OPS_MEMORY_REF;
	part.refs = refs;
	code = ops_trace_merge(&part, 1, NULL, ret_trace, error);
	ops_free(refs);
	return code;
}
