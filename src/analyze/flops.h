/* SPDX-License-Identifier: Apache-2.0
 *
 * FLOPs of events, for analyses that go over many.
 */
#ifndef OPS_ANALYZE_FLOPS_H
#define OPS_ANALYZE_FLOPS_H

#include <stdint.h>

#include <opstrobe/trace.h>

/* Which formula each string of the trace names: one byte a string, to be freed with ops_free. NULL when memory is out. */
uint8_t *ops_flops_formulas(const struct ops_trace *trace);

/* As ops_event_flops. `formulas` spares looking names up; NULL is allowed. */
int64_t ops_flops_of(const struct ops_trace *trace, uint32_t event, const uint8_t *formulas);

#endif
