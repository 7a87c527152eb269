/* SPDX-License-Identifier: Apache-2.0
 *
 * FLOPs and traffic of events, for analyses that go over many.
 */
#ifndef OPS_ANALYZE_FLOPS_H
#define OPS_ANALYZE_FLOPS_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

/* Which formula each string of the trace names: a number a string, to be freed with ops_free. NULL when memory is out. */
uint16_t *ops_flops_formulas(const struct ops_trace *trace);

/* As ops_event_flops. `formulas` spares looking names up; NULL is allowed. */
int64_t ops_flops_of(const struct ops_trace *trace, uint32_t event, const uint16_t *formulas);

/* What an operator has to do, whoever does it and however. */
struct ops_demand {
	int64_t flops; /* 0: it computes nothing */
	int64_t bytes; /* tensors that it reads and writes, each once: analyze/traffic.h */
	uint8_t dtype; /* c10::ScalarType that it computes with; UINT8_MAX: not known */
};

/* What one call has to do, whatever is around it. False when that is not known. */
bool ops_demand_of(const struct ops_trace *trace, uint32_t event, const uint16_t *formulas, struct ops_demand *ret_demand);

#endif
