/* SPDX-License-Identifier: Apache-2.0
 *
 * The node, pass and region of each event.
 */
#include "analyze/memory_flow.h"

#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "trace/names.h"

#define SCOPE_BACKWARD_FUNCTION 1

/* Properties of a name. */
enum name_flag {
	NAME_OPERATOR = 1,   /* has a namespace */
	NAME_EVALUATE = 2,   /* the engine's range around a backward function */
	NAME_STEP = 4,       /* step of an optimizer */
	NAME_ACCUMULATE = 8,
};

static uint8_t flags_of(struct ops_string name)
{
	if (ops_is_engine_name(name))
		return NAME_EVALUATE;
	if (ops_string_starts(name, "Optimizer.step#"))
		return NAME_STEP;
	if (ops_string_is(name, "torch::autograd::AccumulateGrad"))
		return NAME_OPERATOR | NAME_ACCUMULATE;
	return ops_string_contains(name, "::") ? NAME_OPERATOR : 0;
}

static void memory_context_place_row(struct memory_rows *rows, const struct ops_events *e, const uint8_t *names, uint32_t row)
{
	uint32_t parent = e->parent[row];
	uint8_t name = names[e->name[row]];
	uint8_t context = parent == OPS_NONE ? 0 : rows->context[parent];
	bool op = e->kind[row] == OPS_EVENT_CPU_OP;
	bool backward = op && e->scope[row] == SCOPE_BACKWARD_FUNCTION;

	rows->node[row] = parent == OPS_NONE ? OPS_NONE : rows->node[parent];
	rows->region[row] = parent == OPS_NONE ? OPS_NONE : rows->region[parent];
	if (rows->node[row] == OPS_NONE && op && (backward || name & NAME_OPERATOR))
		rows->node[row] = row;
	if (backward || (op && name & NAME_EVALUATE))
		context |= MEMORY_IN_BACKWARD;
	if (backward && name & NAME_ACCUMULATE) {
		context = (uint8_t)((context & ~MEMORY_IN_OPTIMIZER) | MEMORY_IN_ACCUMULATE);
		rows->region[row] = row;
	}
	if (e->kind[row] == OPS_EVENT_USER_ANNOTATION && name & NAME_STEP) {
		context = MEMORY_IN_OPTIMIZER;
		rows->region[row] = row;
	}
	rows->context[row] = context;
}

bool ops_memory_rows_init(struct memory_rows *rows, const struct ops_trace *trace)
{
	const struct ops_events *events = ops_trace_events(trace);
	size_t name_count = ops_trace_string_count(trace);
	uint8_t *names = ops_alloc_zeroed(name_count + 1, sizeof(*names));

	rows->context = ops_realloc_array(NULL, events->count + 1, sizeof(*rows->context));
	rows->node = ops_realloc_array(NULL, events->count + 1, sizeof(*rows->node));
	rows->region = ops_realloc_array(NULL, events->count + 1, sizeof(*rows->region));
	if (!names || !rows->context || !rows->node || !rows->region) {
		ops_free(names);
		return false;
	}
	for (size_t id = 0; id < name_count; id++)
		names[id] = flags_of(ops_trace_string(trace, (uint32_t)id));
	for (size_t row = 0; row < events->count; row++) /* parents precede their children */
		memory_context_place_row(rows, events, names, (uint32_t)row);
	ops_free(names);
	return true;
}

void ops_memory_rows_release(struct memory_rows *rows)
{
	ops_free(rows->context);
	ops_free(rows->node);
	ops_free(rows->region);
}
