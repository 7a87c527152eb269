/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines and modules of rows; see places.h.
 */
#include "derive/places.h"

bool ops_places_init(struct ops_places *places, const struct ops_trace *trace)
{
	*places = (struct ops_places){trace, ops_forward_rows(trace), ops_backward_modules(trace), ops_module_source(trace)};
	return places->forward && places->backward;
}

/* Forward operators come before their backward nodes, so a chain of them ends. */
static uint32_t place_forward(const struct ops_places *places, uint32_t row)
{
	const uint32_t *parent = ops_trace_events(places->trace)->parent;

	while (row != OPS_NONE && places->forward[row] >= OPS_ROW_PLAIN)
		row = parent[row];
	return row == OPS_NONE ? OPS_NONE : places->forward[row];
}

struct ops_string ops_place_line(const struct ops_places *places, uint32_t row, uint32_t *ret_line)
{
	struct ops_string file = {"", 0};

	*ret_line = 0;
	for (; row != OPS_NONE && !file.size; row = place_forward(places, row))
		file = ops_event_line(places->trace, row, ret_line);
	return file;
}

struct ops_string ops_place_module(const struct ops_places *places, uint32_t row)
{
	const uint32_t *parent = ops_trace_events(places->trace)->parent;

	for (; row != OPS_NONE && places->modules; row = parent[row]) {
		uint32_t call = ops_is_module_call(places->trace, places->modules, row) ? row : places->backward[row];

		if (call != OPS_ROW_PLAIN)
			return call == OPS_NONE ? (struct ops_string){"", 0} : ops_module_of_call(places->trace, call);
	}
	return (struct ops_string){"", 0};
}
