/* SPDX-License-Identifier: Apache-2.0
 *
 * Derived objects; see derived.h. An object is published by a release store and read by an acquire load, so that finding it needs
 * no lock.
 */
#include "trace/derived.h"

#include "trace/table.h"

void ops_trace_init_derived(struct ops_trace *trace)
{
	pthread_mutexattr_t attributes;

	/* Recursive, because an object may be derived from others. */
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&trace->derived_lock, &attributes);
	pthread_mutexattr_destroy(&attributes);
}

static void free_object(struct ops_derived_object *made)
{
	if (made->object)
		made->free(made->object);
	*made = (struct ops_derived_object){0};
}

void ops_trace_clear_views(struct ops_trace *trace)
{
	free_object(&trace->derived[OPS_DERIVED_VIEWS]);
}

void ops_trace_release_derived(struct ops_trace *trace)
{
	for (int i = 0; i < OPS_DERIVED_COUNT; i++)
		free_object(&trace->derived[i]);
	pthread_mutex_destroy(&trace->derived_lock);
}

const void *ops_trace_derived(const struct ops_trace *trace, enum ops_derived which)
{
	/* Pairs with the store in ops_trace_derive. */
	return __atomic_load_n(&trace->derived[which].object, __ATOMIC_ACQUIRE);
}

const void *ops_trace_derive(const struct ops_trace *trace, enum ops_derived which, ops_derive *derive)
{
	/* The contents of the trace do not change, only the objects attached to it. */
	struct ops_trace *holder = (struct ops_trace *)trace;
	struct ops_derived_object made = {0};

	if (ops_trace_derived(trace, which))
		return ops_trace_derived(trace, which);
	pthread_mutex_lock(&holder->derived_lock);
	if (!holder->derived[which].object) {
		derive(trace, &made);
		if (made.object) {
			holder->derived[which].free = made.free;
			holder->derived[which].bytes = made.bytes;
			__atomic_store_n(&holder->derived[which].object, made.object, __ATOMIC_RELEASE);
		}
	}
	pthread_mutex_unlock(&holder->derived_lock);
	return ops_trace_derived(trace, which);
}

size_t ops_trace_derived_bytes(const struct ops_trace *trace)
{
	struct ops_trace *holder = (struct ops_trace *)trace;
	size_t bytes = 0;

	pthread_mutex_lock(&holder->derived_lock);
	for (int i = 0; i < OPS_DERIVED_COUNT; i++)
		bytes += holder->derived[i].bytes;
	pthread_mutex_unlock(&holder->derived_lock);
	return bytes;
}
