/* SPDX-License-Identifier: Apache-2.0
 *
 * When a program computes, and when it communicates, in all its steps.
 */
#ifndef OPS_ANALYZE_ADVICE_ACTIVITY_H
#define OPS_ANALYZE_ADVICE_ACTIVITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/array.h"
#include "base/intervals.h"

struct advice;

/* A collective in a steady step: a kernel, or without these a row of the host, which performs it, as with Gloo. */
struct advice_collective {
	uint32_t row;
	uint32_t number; /* index into the collectives of the views, which have the row of the host; OPS_NONE: unknown */
};

struct advice_collectives {
	OPS_ARRAY(struct advice_collective) items; /* in the order of the views */
};

struct advice_activity {
	struct ops_intervals compute; /* kernels; without a device the operators that do not wait for collectives */
	struct ops_intervals backward; /* those of backward passes */
	struct ops_intervals collectives;
	struct ops_intervals exposed; /* collectives during which nothing is computed */
	struct ops_intervals alone;   /* times of the backward pass without collectives */
};

/* Fills an empty list. Returns false if out of memory; it must be released in any case. */
bool advice_collectives_find(const struct advice *advice, struct advice_collectives *collectives);
void advice_collectives_release(struct advice_collectives *collectives);

/* Fills empty lists. Returns false if out of memory. */
bool advice_activity_find(const struct advice *advice, struct advice_activity *activity);
void advice_activity_release(struct advice_activity *activity); /* also to be called after the search failed */

#endif
