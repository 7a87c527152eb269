/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers among the arguments of an event.
 */
#ifndef OPS_DERIVE_ARGUMENTS_H
#define OPS_DERIVE_ARGUMENTS_H

#include <opstrobe/trace.h>

#include "base/json_walk.h"

/* Return `absent` if the event has no such argument, or if it is not a number of the type. */
static inline int64_t ops_argument_integer(const struct ops_trace *trace, uint32_t row, const char *key, int64_t absent)
{
	struct ops_string json;
	int64_t value;

	return ops_event_arg(trace, row, key, &json) && ops_json_parse_integer(json, &value) ? value : absent;
}

static inline double ops_argument_number(const struct ops_trace *trace, uint32_t row, const char *key, double absent)
{
	struct ops_string json;
	double value;

	return ops_event_arg(trace, row, key, &json) && ops_json_parse_number(json, &value) ? value : absent;
}

#endif
