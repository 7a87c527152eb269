/* SPDX-License-Identifier: Apache-2.0
 *
 * Device time by event: which event the work on devices belongs to.
 */
#ifndef OPS_ANALYZE_DEVICE_TIMES_H
#define OPS_ANALYZE_DEVICE_TIMES_H

#include <opstrobe/internal/analyze.h>

/* Fills `launcher`, `device_time` and `self_device_time`, or leaves them NULL if nothing ran on a device. Returns false
 * if out of memory. The costs own the arrays in any case. */
bool ops_device_times(struct ops_event_costs *costs, const struct ops_trace *trace);

/* Fills `device_time`, `self_device_time` and `legacy` from measurements by events around operators and ranges, or
 * leaves them NULL if the trace has none. The same holds for errors and ownership. */
bool ops_pair_times(struct ops_event_costs *costs, const struct ops_trace *trace);

/* Returns the device that was measured in this way, like ops_trace_device(); NULL if there is none. */
const char *ops_pair_device(const struct ops_trace *trace, char *device);

#endif
