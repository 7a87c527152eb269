/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps by name; see steps.h.
 */
#include "derive/steps.h"

#include <opstrobe/merge.h>

#include <string.h>

#include "base/text.h"

#define DIGITS_MAX 18 /* a number of so many digits fits */

bool ops_step_number(struct ops_string name, int64_t *ret_number)
{
	const char *at = name.bytes + strlen("ProfilerStep"), *end = name.bytes + name.size;
	int64_t number = 0;
	int digits = 0;

	if (!ops_string_starts(name, "ProfilerStep"))
		return false;
	while (at < end && *at == ' ')
		at++;
	if (at == end || *at++ != '#')
		return false;
	while (at < end && *at == ' ')
		at++;
	for (; at < end && *at >= '0' && *at <= '9' && digits < DIGITS_MAX; at++, digits++)
		number = number * 10 + (*at - '0');
	if (!digits || at != end)
		return false;
	*ret_number = number;
	return true;
}

bool ops_row_step(const struct ops_trace *trace, size_t row, int64_t *ret_number)
{
	const struct ops_events *events = ops_trace_events(trace);

	return (events->kind[row] == OPS_EVENT_USER_ANNOTATION || events->kind[row] == OPS_EVENT_CPU_OP) &&
	       ops_step_number(ops_trace_string(trace, events->name[row]), ret_number);
}

bool ops_trace_steps(const struct ops_trace *trace, uint64_t first, uint64_t last, int64_t *ret_from_ns, int64_t *ret_to_ns)
{
	const struct ops_events *events = ops_trace_events(trace);
	bool found = false;

	for (size_t row = 0; row < events->count; row++) {
		int64_t number;

		if (!ops_row_step(trace, row, &number) || (uint64_t)number < first || (uint64_t)number > last)
			continue;
		if (!found || events->start_ns[row] < *ret_from_ns)
			*ret_from_ns = events->start_ns[row];
		if (!found || events->end_ns[row] > *ret_to_ns)
			*ret_to_ns = events->end_ns[row];
		found = true;
	}
	return found;
}
