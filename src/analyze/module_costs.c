/* SPDX-License-Identifier: Apache-2.0
 *
 * See module_costs.h.
 *
 *     thread 1   ├ Net ─────────────────────────────────┤      units: 0 Net, 1 Linear
 *                  ├ Linear ───┤   ├ aten::relu ┤
 *                   ├ addmm ┤╌╌╌╌╌╌╌╌╌╌╌┊╌╌╌╌╌╌╌╌╌╌╌╌╌┐ link
 *     thread 2                          └╌╌┐          ┊           2 (for Net), 3 and 4 (for Linear)
 *                                 ├ evaluate: Relu ┤├ evaluate: Addmm ┤├ evaluate: AccumulateGrad ┤
 */
#include "analyze/module_costs.h"

#include "base/alloc.h"
#include "base/sum.h"
#include "derive/backward.h"
#include "derive/captures.h"
#include "derive/flops.h"
#include "derive/operators.h"
#include "derive/modules.h"
#include "derive/steps.h"
#include "trace/kinds.h"

/* --- units ---------------------------------------------------------------------------------------------------------- */

static bool add_unit(struct module_costs *costs, size_t event, uint32_t outer, bool backward)
{
	struct module_unit *unit = OPS_ARRAY_PUSH(&costs->units);
	struct ops_module_call *call;

	if (!unit)
		return false;
	*unit = (struct module_unit){.event = (uint32_t)event, .outer = outer, .call = OPS_NONE, .backward = backward};
	if (backward)
		return true;
	unit->call = (uint32_t)costs->calls.count;
	call = OPS_ARRAY_PUSH(&costs->calls);
	if (!call)
		return false;
	*call = (struct ops_module_call){.event = (uint32_t)event, .row = OPS_NONE, .outer = OPS_NONE};
	while (outer != OPS_NONE && costs->units.items[outer].backward)
		outer = costs->units.items[outer].outer;
	if (outer != OPS_NONE)
		call->outer = costs->units.items[outer].call;
	return true;
}

/* Divides the events among units. An event's parent precedes it, so the parent's unit is known. */
static bool find_units(struct module_costs *costs, const uint32_t *modules)
{
	const struct ops_events *events = costs->events;
	enum ops_module_source source = ops_module_source(costs->trace);

	for (size_t event = 0; event < events->count; event++) {
		uint32_t parent = events->parent[event];
		uint32_t unit = parent == OPS_NONE ? OPS_NONE : costs->unit_of[parent];
		bool backward = modules[event] != OPS_ROW_PLAIN;

		if (backward || ops_is_module_call(costs->trace, source, event)) {
			if (!add_unit(costs, event, unit, backward))
				return false;
			unit = (uint32_t)costs->units.count - 1;
		}
		costs->unit_of[event] = unit;
	}
	/* In malformed files a node may precede the call that it works for. */
	for (size_t i = 0; i < costs->units.count; i++) {
		struct module_unit *unit = &costs->units.items[i];

		if (unit->backward && modules[unit->event] != OPS_NONE)
			unit->call = costs->units.items[costs->unit_of[modules[unit->event]]].call;
	}
	return true;
}

/* --- costs ---------------------------------------------------------------------------------------------------------- */

static void module_costs_add(struct module_costs *costs, uint32_t unit, enum ops_module_metric forward,
                             enum ops_module_metric backward, int64_t value)
{
	const struct module_unit *to = unit == OPS_NONE ? NULL : &costs->units.items[unit];
	int64_t *sum;

	if (!to || to->call == OPS_NONE)
		return;
	sum = &costs->costs[to->call].self[to->backward ? backward : forward];
	*sum = ops_sum(*sum, value);
}

/* Adds time in the steps that means cover to a call, and subtracts it from what contains it: a call that begins outside of steps has none itself. */
static void add_step_time(struct module_costs *costs, const struct ops_steps *steps, uint32_t call, uint32_t outer_call, uint32_t outer_event, int64_t ns)
{
	if (call != OPS_NONE)
		costs->costs[call].step_ns = ops_sum(costs->costs[call].step_ns, ns);
	if (outer_call != OPS_NONE && ops_steps_averages(steps, costs->events->start_ns[outer_event]))
		costs->costs[outer_call].step_ns = ops_difference(costs->costs[outer_call].step_ns, ns);
}

/* The time of a call minus that of the calls directly inside it, and the time of a node minus that of all units
 * directly inside it. */
static void module_costs_add_times(struct module_costs *costs, const struct ops_steps *steps)
{
	const struct ops_events *events = costs->events;

	for (uint32_t i = 0; i < costs->units.count; i++) {
		const struct module_unit *unit = &costs->units.items[i];
		int64_t duration_ns = ops_difference(events->end_ns[unit->event], events->start_ns[unit->event]);
		uint32_t outer = unit->backward ? OPS_NONE : costs->calls.items[unit->call].outer;

		module_costs_add(costs, i, OPS_MODULE_HOST, OPS_MODULE_BACKWARD, duration_ns);
		if (outer != OPS_NONE)
			costs->costs[outer].self[OPS_MODULE_HOST] =
				ops_difference(costs->costs[outer].self[OPS_MODULE_HOST], duration_ns);
		if (unit->outer != OPS_NONE && costs->units.items[unit->outer].backward)
			module_costs_add(costs, unit->outer, OPS_MODULE_HOST, OPS_MODULE_BACKWARD, -duration_ns);
		if (!ops_steps_averages(steps, events->start_ns[unit->event]))
			continue;
		add_step_time(costs, steps, unit->call, outer, outer == OPS_NONE ? OPS_NONE : costs->calls.items[outer].event, duration_ns);
		if (unit->outer != OPS_NONE && costs->units.items[unit->outer].backward)
			add_step_time(costs, steps, OPS_NONE, costs->units.items[unit->outer].call, costs->units.items[unit->outer].event, duration_ns);
	}
	/* In a file with events that overlap in part, those inside may take longer. */
	for (size_t i = 0; i < costs->calls.count; i++) {
		for (int metric = OPS_MODULE_HOST; metric <= OPS_MODULE_BACKWARD; metric++)
			if (costs->costs[i].self[metric] < 0)
				costs->costs[i].self[metric] = 0;
		if (costs->costs[i].step_ns < 0)
			costs->costs[i].step_ns = 0;
	}
}

static bool add_flops(struct module_costs *costs)
{
	const uint16_t *operators = ops_operators_of(costs->trace);

	for (size_t event = 0; operators && event < costs->events->count; event++)
		if (costs->unit_of[event] != OPS_NONE && costs->events->kind[event] == OPS_EVENT_CPU_OP)
			module_costs_add(costs, costs->unit_of[event], OPS_MODULE_FLOPS, OPS_MODULE_BACKWARD_FLOPS,
			                 ops_flops_of(costs->trace, (uint32_t)event, operators));
	return operators != NULL;
}

static bool add_device_times(struct module_costs *costs)
{
	const struct ops_events *events = costs->events;
	const uint32_t *origins = ops_origins(costs->trace);

	for (size_t row = 0; origins && row < events->count; row++)
		if (ops_kind_is_work(events->kind[row]) && origins[row] != OPS_NONE)
			module_costs_add(costs, costs->unit_of[origins[row]], OPS_MODULE_DEVICE, OPS_MODULE_BACKWARD_DEVICE,
			                 ops_difference(events->end_ns[row], events->start_ns[row]));
	return origins != NULL;
}

bool module_costs_init(struct module_costs *costs, const struct ops_trace *trace)
{
	const uint32_t *modules = ops_backward_modules(trace);
	const struct ops_steps *steps = ops_steps_of(trace);
	bool ok;

	*costs = (struct module_costs){.trace = trace, .events = ops_trace_events(trace)};
	costs->unit_of = ops_realloc_array(NULL, costs->events->count + 1, sizeof(*costs->unit_of));
	ok = modules && steps && costs->unit_of && find_units(costs, modules);
	if (!ok)
		return false;
	costs->costs = ops_alloc_zeroed(costs->calls.count + 1, sizeof(*costs->costs));
	if (!costs->costs)
		return false;
	module_costs_add_times(costs, steps);
	return add_device_times(costs) && add_flops(costs) && module_costs_add_memory(costs);
}

void module_costs_release(struct module_costs *costs)
{
	OPS_ARRAY_RELEASE(&costs->units);
	OPS_ARRAY_RELEASE(&costs->calls);
	ops_free(costs->costs);
	ops_free(costs->unit_of);
	*costs = (struct module_costs){0};
}
