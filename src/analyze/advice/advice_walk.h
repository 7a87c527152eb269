/* SPDX-License-Identifier: Apache-2.0
 *
 * Which rows run at a time. A walk goes forward only: each row is passed once.
 */
#ifndef OPS_ANALYZE_ADVICE_WALK_H
#define OPS_ANALYZE_ADVICE_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/intervals.h"

struct advice;

struct advice_walk {
	const struct advice *advice;
	uint32_t *current; /* by track: the innermost row that has begun */
	uint32_t next;     /* row */
	uint32_t of_steps; /* thread of the steps on which a row began last; OPS_NONE: none */
};

/* Returns false if out of memory. */
bool advice_walk_init(struct advice_walk *walk, const struct advice *advice);
void advice_walk_release(struct advice_walk *walk); /* also to be called after init failed */
void advice_walk_to(struct advice_walk *walk, int64_t time_ns);
/* Returns the innermost row of a thread at the current time. */
uint32_t advice_walk_row_at(struct advice_walk *walk, uint32_t track, int64_t time_ns);
/* Adds a time to the innermost rows of a thread, as far as these count, and else to those of the steps' thread, which may wait in a row of its
 * while nothing is recorded on the other one. `track`: OPS_NONE for the steps' thread alone. `ns`: by row. */
void advice_walk_divide(struct advice_walk *walk, uint32_t track, int64_t start_ns, int64_t end_ns, int64_t *ns);

#endif
