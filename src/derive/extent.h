/* SPDX-License-Identifier: Apache-2.0
 *
 * The extent of a trace: from its origin to the end of the last event, memory record or value of a counter. The end of the profiler's
 * window, "Record Window End", does not count: nothing happens between the last event and it.
 */
#ifndef OPS_DERIVE_EXTENT_H
#define OPS_DERIVE_EXTENT_H

#include <opstrobe/trace.h>

#include "base/intervals.h"

struct ops_interval ops_extent_of(const struct ops_trace *trace);

#endif
