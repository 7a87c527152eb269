/* SPDX-License-Identifier: Apache-2.0
 *
 * Where in the program a row belongs: to a line and to a module. A backward node that no function or module contains belongs to the
 * place of its forward operator.
 */
#ifndef OPS_DERIVE_PLACES_H
#define OPS_DERIVE_PLACES_H

#include "derive/backward.h"
#include "derive/modules.h"

/* Borrowed from the trace. */
struct ops_places {
	const struct ops_trace *trace;
	const uint32_t *forward;  /* ops_forward_rows */
	const uint32_t *backward; /* ops_backward_modules */
	enum ops_module_source modules;
};

/* Returns false if out of memory. */
bool ops_places_init(struct ops_places *places, const struct ops_trace *trace);
/* Returns the file of the line of the program that called a row, and the line; "" if unknown, or if the row is OPS_NONE. */
struct ops_string ops_place_line(const struct ops_places *places, uint32_t row, uint32_t *ret_line);
/* Returns the path of the innermost module that contains a row; "" if none does. */
struct ops_string ops_place_module(const struct ops_places *places, uint32_t row);

#endif
