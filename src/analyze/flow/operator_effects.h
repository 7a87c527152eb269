/* SPDX-License-Identifier: Apache-2.0
 *
 * What operators do with the tensors that they are given, where that does not follow from shapes and allocations.
 */
#ifndef OPS_ANALYZE_OPERATOR_EFFECTS_H
#define OPS_ANALYZE_OPERATOR_EFFECTS_H

#include <stdint.h>

#include <opstrobe/inputs.h>
#include <opstrobe/trace.h>

enum operator_effect {
	EFFECT_READS,      /* all of its inputs: that of any operator that is not known */
	EFFECT_VIEWS,      /* its result is a view of its first input, of the same or an unknown part */
	EFFECT_MAY_VIEW,   /* likewise, unless it allocates */
	EFFECT_NARROWS,    /* likewise, of the part that its arguments say */
	EFFECT_SELECTS,    /* reads the elements of its first input that it returns */
	EFFECT_OVERWRITES, /* does not read what it writes into */
	EFFECT_ALLOCATES,  /* makes memory without contents */
};

enum operator_effect operator_effect_of(struct ops_string name);
/* Elements of the part of its first input that a narrowing operator returns; -1 if its arguments do not say. */
int64_t operator_narrowed_elements(struct ops_string name, struct ops_string inputs);

#endif
