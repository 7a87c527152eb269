/* SPDX-License-Identifier: Apache-2.0
 *
 * Which call launched which work; see launching_calls.h.
 */
#include "analyze/launching_calls.h"

#include "analyze/views/view_map.h"
#include "base/alloc.h"

/* Work that waits for other work is its launch's: that of its correlation. */
static bool follow_dependencies(const struct ops_trace *trace, const struct ops_link *links, size_t count, uint32_t *calls)
{
	const int64_t *correlation = ops_trace_events(trace)->correlation;
	struct view_map launches = {0};
	bool ok = true;

	for (size_t i = 0; ok && i < count; i++)
		if (links[i].kind == OPS_LINK_LAUNCH && correlation[links[i].to] >= 0)
			ok = view_map_add(&launches, (uint64_t)correlation[links[i].to], links[i].from);
	for (size_t i = 0; ok && i < count; i++)
		if (links[i].kind == OPS_LINK_DEPENDENCY && calls[links[i].to] == OPS_NONE && correlation[links[i].to] >= 0)
			calls[links[i].to] = view_map_find(&launches, (uint64_t)correlation[links[i].to]);
	view_map_release(&launches);
	return ok;
}

uint32_t *ops_launching_calls(const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t count;
	const struct ops_link *links = ops_trace_links(trace, &count);
	uint32_t *calls = ops_realloc_array(NULL, events->count + 1, sizeof(*calls));
	bool dependent = false;

	for (size_t row = 0; calls && row < events->count; row++)
		calls[row] = OPS_NONE;
	for (size_t i = 0; calls && i < count; i++) {
		if (links[i].kind == OPS_LINK_LAUNCH)
			calls[links[i].to] = links[i].from;
		dependent |= links[i].kind == OPS_LINK_DEPENDENCY;
	}
	if (calls && dependent && events->correlation && !follow_dependencies(trace, links, count, calls)) {
		ops_free(calls);
		return NULL;
	}
	return calls;
}
