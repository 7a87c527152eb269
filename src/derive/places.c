/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines and modules of rows; see places.h. One pass finds them, since parents and forward operators come before their rows.
 */
#include "derive/places.h"

#include "base/alloc.h"
#include "derive/backward.h"
#include "derive/modules.h"
#include "trace/derived.h"
#include "trace/names.h"

struct placing {
	const struct ops_trace *trace;
	const struct ops_events *events;
	const uint32_t *forward;  /* ops_forward_rows */
	const uint32_t *backward; /* ops_backward_modules */
	enum ops_module_source modules;
	struct ops_place *rows;
};

static uint32_t module_of_row(const struct placing *placing, uint32_t row, uint32_t outer)
{
	if (placing->modules == OPS_MODULES_NONE || ops_is_module_call(placing->trace, placing->modules, row))
		return placing->modules == OPS_MODULES_NONE ? OPS_NONE : row;
	return placing->backward[row] == OPS_ROW_PLAIN ? outer : placing->backward[row];
}

static bool is_program_operator(const struct placing *placing, uint32_t row)
{
	return placing->events->kind[row] == OPS_EVENT_CPU_OP &&
	       !ops_is_engine_name(ops_trace_string(placing->trace, placing->events->name[row]));
}

static struct ops_place place_of_row(const struct placing *placing, uint32_t row)
{
	uint32_t parent = placing->events->parent[row], line;
	struct ops_place place = parent == OPS_NONE ? (struct ops_place){OPS_NONE, OPS_NONE, OPS_NONE, OPS_NONE} : placing->rows[parent];

	if (placing->forward[row] < OPS_ROW_PLAIN)
		place.forward = placing->forward[row];
	place.module = module_of_row(placing, row, place.module);
	if (place.operator == OPS_NONE && is_program_operator(placing, row))
		place.operator = row;
	if (ops_event_line(placing->trace, row, &line).size)
		place.line = row;
	else
		place.line = place.forward == OPS_NONE ? OPS_NONE : placing->rows[place.forward].line;
	return place;
}

static void places_derive(const struct ops_trace *trace, struct ops_derived_object *ret_made)
{
	struct placing placing = {trace, ops_trace_events(trace), ops_forward_rows(trace), ops_backward_modules(trace),
	                          ops_module_source(trace), NULL};
	size_t count = placing.events->count + 1;

	if (placing.forward && placing.backward)
		placing.rows = ops_realloc_array(NULL, count, sizeof(*placing.rows));
	for (uint32_t row = 0; placing.rows && row < placing.events->count; row++)
		placing.rows[row] = place_of_row(&placing, row);
	if (placing.rows)
		*ret_made = (struct ops_derived_object){placing.rows, ops_free, count * sizeof(*placing.rows)};
}

bool ops_places_init(struct ops_places *places, const struct ops_trace *trace)
{
	*places = (struct ops_places){trace, ops_trace_derive(trace, OPS_DERIVED_PLACES, places_derive)};
	return places->rows;
}

struct ops_string ops_place_line(const struct ops_places *places, uint32_t row, uint32_t *ret_line)
{
	*ret_line = 0;
	if (row == OPS_NONE || places->rows[row].line == OPS_NONE)
		return (struct ops_string){"", 0};
	return ops_event_line(places->trace, places->rows[row].line, ret_line);
}

struct ops_string ops_place_module(const struct ops_places *places, uint32_t row)
{
	if (row == OPS_NONE || places->rows[row].module == OPS_NONE)
		return (struct ops_string){"", 0};
	return ops_module_of_call(places->trace, places->rows[row].module);
}
