/* SPDX-License-Identifier: Apache-2.0
 *
 * FLOPs and traffic of events; the formulas are in operators.c.
 */
#include <opstrobe/internal/analyze.h>

#include "base/alloc.h"
#include "derive/flops.h"
#include "derive/operators.h"

/* Limit on the search for an outer operator that already counts. Real traces nest few operators; a hostile file may
 * nest many. */
#define ANCESTORS_MAX 256

/* Returns the table's row for an event, and gets the event's arguments. Returns NULL if there is no row, or the
 * arguments are not plausible. */
static const struct operator_row *flops_find_row(const struct ops_trace *trace, uint32_t event, const uint16_t *operators,
                                                 struct operator_call *ret_call)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_input_cursor cursor;
	struct ops_string inputs;
	uint16_t number;

	if (events->kind[event] != OPS_EVENT_CPU_OP || events->inputs[event] == OPS_NONE)
		return NULL;
	number = operators ? operators[events->name[event]] : operator_find(ops_trace_string(trace, events->name[event]));
	if (number == 0)
		return NULL;
	inputs = ops_trace_inputs(trace, events->inputs[event]);
	cursor = ops_inputs_open(inputs.bytes, inputs.size);
	ret_call->count = 0;
	while (ret_call->count < OPERATOR_ARGUMENTS_MAX && ops_inputs_next(&cursor, &ret_call->arguments[ret_call->count]))
		if (operator_has_negative_size(&ret_call->arguments[ret_call->count++]))
			return NULL;
	return &operator_rows[number];
}

static int64_t row_flops(const struct operator_row *row, const struct operator_call *call)
{
	return row->flops ? row->flops(call, row->where) : OPERATOR_UNKNOWN;
}

/* Returns the formula's value for one event, regardless of the events around it. Rows with one of the flags `omitted` have none. */
static int64_t own_flops(const struct ops_trace *trace, uint32_t event, const uint16_t *operators, unsigned omitted)
{
	struct operator_call call;
	const struct operator_row *row = flops_find_row(trace, event, operators, &call);

	return row && !(row->flags & omitted) ? row_flops(row, &call) : OPERATOR_UNKNOWN;
}

static int64_t outermost_flops(const struct ops_trace *trace, uint32_t event, const uint16_t *operators, unsigned omitted)
{
	const struct ops_events *events = ops_trace_events(trace);
	int64_t flops = own_flops(trace, event, operators, omitted);
	uint32_t ancestor = event;

	for (int i = 0; flops != OPERATOR_UNKNOWN && i < ANCESTORS_MAX; i++) {
		ancestor = events->parent[ancestor];
		if (ancestor == OPS_NONE)
			break;
		if (own_flops(trace, ancestor, operators, omitted) != OPERATOR_UNKNOWN)
			flops = OPERATOR_UNKNOWN;
	}
	return flops;
}

int64_t ops_flops_of(const struct ops_trace *trace, uint32_t event, const uint16_t *operators)
{
	return outermost_flops(trace, event, operators, 0);
}

int64_t ops_torch_flops_of(const struct ops_trace *trace, uint32_t event, const uint16_t *operators)
{
	return outermost_flops(trace, event, operators, OPERATOR_ONLY_WORK);
}

int64_t ops_event_flops(const struct ops_trace *trace, uint32_t event)
{
	return ops_torch_flops_of(trace, event, NULL);
}

bool ops_demand_of(const struct ops_trace *trace, uint32_t event, const uint16_t *operators, struct ops_demand *ret_demand)
{
	struct operator_call call;
	const struct operator_row *row = flops_find_row(trace, event, operators, &call);
	struct ops_demand demand;

	if (!row)
		return false;
	demand.flops = row_flops(row, &call);
	if (row->flops && demand.flops == OPERATOR_UNKNOWN)
		return false;
	demand.bytes = operator_traffic(&call, row, demand.flops);
	demand.dtype = operator_dtype(&call);
	if (demand.bytes == OPERATOR_UNKNOWN)
		return false;
	*ret_demand = demand;
	return true;
}

/* Children come after their parents, so a walk from the last row to the first sums up those of a row before it gets there. */
struct ops_demand *ops_demands_within(const struct ops_trace *trace, const uint16_t *operators)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_demand *demands = ops_alloc_zeroed(events->count + 1, sizeof(*demands));

	for (uint32_t row = (uint32_t)events->count; demands && row-- > 0;) {
		struct ops_demand *outer = events->parent[row] == OPS_NONE ? NULL : &demands[events->parent[row]];

		/* A linear layer without bias calls matmul, which calls mm. */
		ops_demand_of(trace, row, operators, &demands[row]);
		if (!outer || !demands[row].bytes)
			continue;
		outer->flops = ops_sum(outer->flops, demands[row].flops);
		outer->bytes = ops_sum(outer->bytes, demands[row].bytes);
		outer->dtype = demands[row].dtype; /* of the first */
	}
	return demands;
}
