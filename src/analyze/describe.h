/* SPDX-License-Identifier: Apache-2.0
 *
 * What a list of numbers is like (0.10).
 */
#ifndef OPS_ANALYZE_DESCRIBE_H
#define OPS_ANALYZE_DESCRIBE_H

#include <stddef.h>

#include "analyze/result.h"
#include "base/array.h"

struct numbers {
	OPS_ARRAY(double) items;
};

/* NaN where a list is too short for the figure. */
struct description {
	size_t count;
	double mean, deviation, min, quarter, half, three_quarters, max;
	double sum;
};

bool numbers_push(struct numbers *numbers, double value); /* false when memory is out */
void numbers_release(struct numbers *numbers);
/* Sorts the numbers. */
struct description describe(struct numbers *numbers);
/* Eight cells: count, mean, deviation, least, quartiles, most; rounded unless `decimals` is below 0. */
void describe_cells(struct result_table *table, const struct description *description, int decimals);

#endif
