/* SPDX-License-Identifier: Apache-2.0
 *
 * What each call of a module cost. The events of a trace are divided among units: calls of modules and backward nodes, each
 * with all inside it that no other unit inside has. A backward node works for the call in which its forward operator ran.
 */
#ifndef OPS_ANALYZE_MODULE_COSTS_H
#define OPS_ANALYZE_MODULE_COSTS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/internal/modules.h>

#include "base/array.h"

struct module_unit {
	uint32_t event; /* row of ops_trace_events */
	uint32_t outer; /* the unit it lies in, lower; OPS_NONE */
	uint32_t call;  /* whose costs it is part of: index into `calls`, OPS_NONE unknown */
	bool backward;
};

/* An array as base/array.h has them. */
struct module_calls {
	struct ops_module_call *items;
	size_t count;
	size_t capacity;
};

struct module_cost {
	int64_t self[OPS_MODULE_METRIC_COUNT];
	int64_t peak_bytes[2]; /* of the CPU and of devices */
};

struct module_costs {
	const struct ops_trace *trace;
	const struct ops_events *events;
	OPS_ARRAY(struct module_unit) units;
	struct module_calls calls; /* their `row` is not set */
	struct module_cost *costs; /* by call */
	uint32_t *unit_of;         /* by event: the innermost unit that it is or lies in, OPS_NONE */
};

/* False when memory is out; to be released in any case. */
bool module_costs_init(struct module_costs *costs, const struct ops_trace *trace);
void module_costs_release(struct module_costs *costs);

/* Adds what memory was taken in each call. False when memory is out. (module_memory.c) */
bool module_costs_add_memory(struct module_costs *costs);

#endif
