/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs of each call of a module. The events of a trace are divided among units: calls of modules and backward nodes. A
 * unit has all events inside it that no inner unit has. A backward node works for the call in which its forward
 * operator ran.
 */
#ifndef OPS_ANALYZE_MODULE_COSTS_H
#define OPS_ANALYZE_MODULE_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/modules.h>

#include "base/array.h"

struct module_unit {
	uint32_t event; /* row of ops_trace_events */
	uint32_t outer; /* the unit around it, which has a lower index; OPS_NONE: none */
	uint32_t call;  /* the call that its costs count for: index into `calls`; OPS_NONE: unknown */
	bool backward;
};

/* An array as in base/array.h. */
struct module_calls {
	struct ops_module_call *items;
	size_t count;
	size_t capacity;
};

struct module_cost {
	int64_t self[OPS_MODULE_METRIC_COUNT];
	int64_t step_ns;       /* the part of forward and backward time that is in steps */
	int64_t peak_bytes[2]; /* on the CPU and on devices */
};

struct module_costs {
	const struct ops_trace *trace;
	const struct ops_events *events;
	OPS_ARRAY(struct module_unit) units;
	struct module_calls calls; /* `row` is not set in these */
	struct module_cost *costs; /* by call */
	uint32_t *unit_of;         /* by event: the innermost unit that it is or lies in; OPS_NONE: none */
};

/* Returns false if out of memory. The caller must release the costs in any case. */
bool module_costs_init(struct module_costs *costs, const struct ops_trace *trace);
void module_costs_release(struct module_costs *costs);

/* Adds the memory usage of each call. Returns false if out of memory. (module_memory.c) */
bool module_costs_add_memory(struct module_costs *costs);

#endif
