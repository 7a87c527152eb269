/* SPDX-License-Identifier: Apache-2.0
 *
 * What later layers derive from a finished trace. It is made when it is first needed, kept with the trace, and shared by all
 * threads: nobody changes it.
 */
#ifndef OPS_TRACE_DERIVED_H
#define OPS_TRACE_DERIVED_H

#include <stddef.h>

#include <opstrobe/trace.h>

enum ops_derived {
	OPS_DERIVED_LAUNCHERS,    /* derive/launches.h */
	OPS_DERIVED_FORWARD_ROWS, /* derive/backward.h */
	OPS_DERIVED_BACKWARD_MODULES, /* derive/backward.h */
	OPS_DERIVED_STEPS,        /* derive/steps.h */
	OPS_DERIVED_WRAPPERS,     /* derive/program.h */
	OPS_DERIVED_VIEWS,        /* analyze/views/views.h */
	OPS_DERIVED_COUNT,
};

struct ops_derived_object {
	void *object;
	void (*free)(void *object);
	size_t bytes;
};

/* Fills the object, or leaves it NULL when memory is out. May use other derived objects of the trace. */
typedef void ops_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made);

/* The object of that kind, made by `derive` if there is none yet; NULL when memory is out. */
const void *ops_trace_derive(const struct ops_trace *trace, enum ops_derived which, ops_derive *derive);
/* NULL if it has not been made. */
const void *ops_trace_derived(const struct ops_trace *trace, enum ops_derived which);
/* Bytes of all that is kept so far. */
size_t ops_trace_derived_bytes(const struct ops_trace *trace);

/* For src/trace. Nobody else uses the trace meanwhile. */
void ops_trace_init_derived(struct ops_trace *trace);
/* Frees the views, after a change of the metadata of which they are made. Columns depend on events alone. */
void ops_trace_clear_views(struct ops_trace *trace);
void ops_trace_release_derived(struct ops_trace *trace);

#endif
