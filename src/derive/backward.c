/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward nodes; see backward.h.
 */
#include "derive/backward.h"

#include <string.h>

#include "base/alloc.h"
#include "trace/derived.h"
#include "trace/names.h"

#define SCOPE_BACKWARD 1 /* at::RecordScope::BACKWARD_FUNCTION */

/* Files do not say which operators are backward nodes; but each is in an operator that has its name behind the engine's prefix. */
static bool is_node_by_name(const struct ops_trace *trace, const struct ops_events *events, size_t row)
{
	uint32_t parent = events->parent[row];
	struct ops_string outer, name;

	if (events->kind[row] != OPS_EVENT_CPU_OP || parent == OPS_NONE)
		return false;
	outer = ops_trace_string(trace, events->name[parent]);
	name = ops_trace_string(trace, events->name[row]);
	return outer.size == strlen(OPS_ENGINE_PREFIX) + name.size && ops_is_engine_name(outer) &&
	       memcmp(outer.bytes + strlen(OPS_ENGINE_PREFIX), name.bytes, name.size) == 0;
}

static void backward_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t link_count;
	const struct ops_link *links = ops_trace_links(trace, &link_count);
	uint32_t *forward = ops_realloc_array(NULL, events->count + 1, sizeof(*forward));

	if (!forward)
		return;
	for (size_t row = 0; row < events->count; row++) {
		bool is_node = events->scope[row] == SCOPE_BACKWARD || is_node_by_name(trace, events, row);

		forward[row] = is_node ? OPS_NONE : OPS_ROW_PLAIN;
	}
	for (size_t i = 0; i < link_count; i++)
		if (links[i].kind == OPS_LINK_FORWARD_BACKWARD && links[i].from < links[i].to)
			forward[links[i].to] = links[i].from;
	*ret_made = (struct ops_derived_object){forward, ops_free, (events->count + 1) * sizeof(*forward)};
}

const uint32_t *ops_forward_rows(const struct ops_trace *trace)
{
	return ops_trace_derive(trace, OPS_DERIVED_FORWARD_ROWS, backward_derive);
}
