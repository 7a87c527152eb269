/* SPDX-License-Identifier: Apache-2.0
 *
 * FLOPs and traffic of events, for analyses that visit many events.
 */
#ifndef OPS_DERIVE_FLOPS_H
#define OPS_DERIVE_FLOPS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

/* Returns the floating-point operations of an event's operator. Returns 0 if unknown, and inside an operator that has a value already,
 * so that sums count a call once. `operators`, of ops_operators_of(), avoids the lookup of names; it may be NULL. */
int64_t ops_flops_of(const struct ops_trace *trace, uint32_t event, const uint16_t *operators);
/* Like ops_event_flops(): only the kinds of operators for which torch.profiler estimates them. */
int64_t ops_torch_flops_of(const struct ops_trace *trace, uint32_t event, const uint16_t *operators);

/* The operations and bytes that an operator requires, regardless of its implementation. */
struct ops_demand {
	int64_t flops; /* 0: no arithmetic */
	int64_t bytes; /* bytes of the tensors that it reads and writes, each counted once: analyze/traffic.h */
	uint8_t dtype; /* c10::ScalarType of the computation; UINT8_MAX: unknown */
};

/* Finds the demand of one call, regardless of the events around it. Returns false if it is unknown. */
bool ops_demand_of(const struct ops_trace *trace, uint32_t event, const uint16_t *operators, struct ops_demand *ret_demand);
/* Returns the same by row or, for a composite operator without a formula, the sum of the operators below it; `bytes` is 0 if it is
 * unknown. Linear in the number of rows. The caller frees the list with ops_free. Returns NULL if out of memory. */
struct ops_demand *ops_demands_within(const struct ops_trace *trace, const uint16_t *operators);

#endif
