/* SPDX-License-Identifier: Apache-2.0
 *
 * How operators use their tensors, where shapes and allocations do not show it.
 */
#ifndef OPS_ANALYZE_OPERATOR_EFFECTS_H
#define OPS_ANALYZE_OPERATOR_EFFECTS_H

#include <stdint.h>

#include <opstrobe/inputs.h>
#include <opstrobe/trace.h>

enum operator_effect {
	EFFECT_READS,      /* reads all of its inputs; the effect of any unknown operator */
	EFFECT_VIEWS,      /* returns a view of its first input, of the same or an unknown part */
	EFFECT_MAY_VIEW,   /* the same, unless it allocates */
	EFFECT_NARROWS,    /* returns a view of the part that its arguments specify */
	EFFECT_SELECTS,    /* reads the elements of its first input that it returns */
	EFFECT_OVERWRITES, /* does not read the tensor that it writes to */
	EFFECT_ALLOCATES,  /* allocates memory without contents */
};

enum operator_effect operator_effect_of(struct ops_string name);
/* Returns the number of elements in the part of its first input that a narrowing operator returns; -1 if its arguments
 * do not determine it. */
int64_t operator_narrowed_elements(struct ops_string name, struct ops_string inputs);

#endif
