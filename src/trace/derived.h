/* SPDX-License-Identifier: Apache-2.0
 *
 * Objects that later layers derive from a finished trace. They are computed when first needed, kept with the trace, and shared by
 * all threads; they do not change.
 */
#ifndef OPS_TRACE_DERIVED_H
#define OPS_TRACE_DERIVED_H

#include <stddef.h>

#include <opstrobe/trace.h>

enum ops_derived {
	OPS_DERIVED_LINES,        /* trace/function.c */
	OPS_DERIVED_CALLS,        /* derive/calls.h */
	OPS_DERIVED_LAUNCHERS,    /* derive/launches.h */
	OPS_DERIVED_CAPTURES,     /* derive/captures.h */
	OPS_DERIVED_FORWARD_ROWS, /* derive/backward.h */
	OPS_DERIVED_BACKWARD_MODULES, /* derive/backward.h */
	OPS_DERIVED_PLACES,       /* derive/places.h */
	OPS_DERIVED_OPERATORS,    /* derive/operators.h */
	OPS_DERIVED_STEPS,        /* derive/steps.h */
	OPS_DERIVED_WRAPPERS,     /* derive/program.h */
	OPS_DERIVED_HELPER_WAITS, /* derive/helper_waits.h */
	OPS_DERIVED_VIEWS,        /* analyze/views/views.h */
	OPS_DERIVED_COUNT,
};

struct ops_derived_object {
	void *object;
	void (*free)(void *object);
	size_t bytes;
};

/* Computes the object, or leaves it NULL if out of memory. May use other derived objects of the trace. */
typedef void ops_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made);

/* Returns the object of that kind, computed by `derive` if it does not exist yet. Returns NULL if out of memory. */
const void *ops_trace_derive(const struct ops_trace *trace, enum ops_derived which, ops_derive *derive);
/* Returns NULL if the object has not been computed. */
const void *ops_trace_derived(const struct ops_trace *trace, enum ops_derived which);
/* Returns the size of all objects kept so far. */
size_t ops_trace_derived_bytes(const struct ops_trace *trace);

/* For src/trace. No other thread may use the trace meanwhile. */
void ops_trace_init_derived(struct ops_trace *trace);
/* Frees the views, after a change of the metadata on which they depend. Other objects depend only on events. */
void ops_trace_clear_views(struct ops_trace *trace);
void ops_trace_release_derived(struct ops_trace *trace);

#endif
