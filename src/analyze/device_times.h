/* SPDX-License-Identifier: Apache-2.0
 *
 * Time on devices by event: whose work it was that ran there.
 */
#ifndef OPS_ANALYZE_DEVICE_TIMES_H
#define OPS_ANALYZE_DEVICE_TIMES_H

#include <opstrobe/internal/analyze.h>

/* Fills `launcher`, `device_time` and `self_device_time`, or leaves them NULL when nothing ran on a device. False when
 * memory is out; what was made is released with the costs. */
bool ops_device_times(struct ops_event_costs *costs, const struct ops_trace *trace);

/* Fills `device_time`, `self_device_time` and `legacy` from what events around operators and ranges measured, or leaves them NULL
 * when the trace says nothing of such; alike. */
bool ops_pair_times(struct ops_event_costs *costs, const struct ops_trace *trace);

/* The device that was timed so, as ops_trace_device; NULL when none was. */
const char *ops_pair_device(const struct ops_trace *trace, char *device);

#endif
