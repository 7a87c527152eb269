/* SPDX-License-Identifier: Apache-2.0
 *
 * Where in the program a row belongs: to a line and to a module. A backward node that no function or module contains belongs to the
 * place of its forward operator.
 */
#ifndef OPS_DERIVE_PLACES_H
#define OPS_DERIVE_PLACES_H

#include <stdbool.h>

#include <opstrobe/trace.h>

/* By row. OPS_NONE: none. */
struct ops_place {
	uint32_t line;     /* the row with the line: the row itself, or a forward operator */
	uint32_t forward;  /* forward operator of the innermost backward node that is or contains the row */
	uint32_t module;   /* call of the innermost module that contains the row */
	uint32_t operator; /* outermost operator that is or contains the row, without those of the engine */
};

/* Borrowed from the trace. */
struct ops_places {
	const struct ops_trace *trace;
	const struct ops_place *rows;
};

/* Returns false if out of memory. */
bool ops_places_init(struct ops_places *places, const struct ops_trace *trace);
/* Returns the file of the line of the program that called a row, and the line; "" if unknown, or if the row is OPS_NONE. */
struct ops_string ops_place_line(const struct ops_places *places, uint32_t row, uint32_t *ret_line);
/* Returns the path of the innermost module that contains a row; "" if none does, or if the row is OPS_NONE. */
struct ops_string ops_place_module(const struct ops_places *places, uint32_t row);

#endif
