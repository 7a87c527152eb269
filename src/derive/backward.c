/* SPDX-License-Identifier: Apache-2.0
 *
 * Backward nodes; see backward.h.
 */
#include "derive/backward.h"

#include <string.h>

#include "base/alloc.h"
#include "derive/modules.h"
#include "trace/derived.h"
#include "trace/names.h"

#define SCOPE_BACKWARD 1 /* at::RecordScope::BACKWARD_FUNCTION */

/* Files do not say which operators are backward nodes, but the engine runs each within an operator of the same name
 * with the engine's prefix. */
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

/* --- modules -------------------------------------------------------------------------------------------------------- */

/* Divides the events of a trace among module calls and backward nodes. Each gets the events that no inner one
 * contains. */
struct dividing {
	const struct ops_trace *trace;
	const struct ops_events *events;
	uint32_t *part;   /* by row: the innermost call or node that the row is or lies in; OPS_NONE: none */
	uint32_t *module; /* the result */
};

static bool is_backward_part(const struct dividing *d, size_t row, uint32_t outer)
{
	const struct ops_events *events = d->events;

	if (events->kind[row] != OPS_EVENT_CPU_OP || (events->flags[row] & OPS_EVENT_ASYNC))
		return false;
	if (ops_is_engine_name(ops_trace_string(d->trace, events->name[row])))
		return true;
	return events->scope[row] == SCOPE_BACKWARD && (outer == OPS_NONE || d->module[outer] == OPS_ROW_PLAIN);
}

static void divide(struct dividing *d)
{
	enum ops_module_source source = ops_module_source(d->trace);

	for (uint32_t row = 0; row < d->events->count; row++) {
		uint32_t parent = d->events->parent[row];

		d->part[row] = parent == OPS_NONE ? OPS_NONE : d->part[parent];
		d->module[row] = OPS_ROW_PLAIN;
		if (ops_is_module_call(d->trace, source, row)) {
			d->part[row] = row;
		} else if (is_backward_part(d, row, d->part[row])) {
			d->part[row] = row;
			d->module[row] = OPS_NONE;
		}
	}
}

/* The first of several links counts. Links are ordered by their forward operator, so the module of a forward operator
 * that itself runs in a backward node is already known. */
static void follow_links(struct dividing *d)
{
	size_t count;
	const struct ops_link *links = ops_trace_links(d->trace, &count);

	for (size_t i = 0; i < count; i++) {
		uint32_t from = d->part[links[i].from], to = d->part[links[i].to];

		if (links[i].kind == OPS_LINK_FORWARD_BACKWARD && from != OPS_NONE && to != OPS_NONE && d->module[to] == OPS_NONE)
			d->module[to] = d->module[from] == OPS_ROW_PLAIN ? from : d->module[from];
	}
}

/* The accumulation of a gradient has no link: it follows the node that made the gradient. */
static bool follow_accumulations(struct dividing *d)
{
	size_t tracks;
	uint32_t *before; /* by track: the module of the previous node */

	ops_trace_tracks(d->trace, &tracks);
	before = ops_alloc_none(tracks + 1);
	if (!before)
		return false;
	for (size_t row = 0; row < d->events->count; row++) {
		uint32_t *last = &before[d->events->track[row]];

		if (d->module[row] == OPS_ROW_PLAIN)
			continue;
		if (d->module[row] == OPS_NONE && ops_string_ends(ops_trace_string(d->trace, d->events->name[row]), "AccumulateGrad"))
			d->module[row] = *last;
		*last = d->module[row];
	}
	ops_free(before);
	return true;
}

static void backward_modules_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	struct dividing d = {.trace = trace, .events = ops_trace_events(trace)};
	size_t count = d.events->count + 1;
	bool done;

	d.part = ops_realloc_array(NULL, count, sizeof(*d.part));
	d.module = ops_realloc_array(NULL, count, sizeof(*d.module));
	done = d.part && d.module;
	if (done) {
		divide(&d);
		follow_links(&d);
		done = follow_accumulations(&d);
	}
	ops_free(d.part);
	if (done)
		*ret_made = (struct ops_derived_object){d.module, ops_free, count * sizeof(*d.module)};
	else
		ops_free(d.module);
}

const uint32_t *ops_backward_modules(const struct ops_trace *trace)
{
	return ops_trace_derive(trace, OPS_DERIVED_BACKWARD_MODULES, backward_modules_derive);
}
