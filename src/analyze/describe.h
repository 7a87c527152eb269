/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of a list of numbers.
 */
#ifndef OPS_ANALYZE_DESCRIBE_H
#define OPS_ANALYZE_DESCRIBE_H

#include <stddef.h>

#include "analyze/result.h"
#include "base/array.h"

struct numbers {
	OPS_ARRAY(double) items;
};

/* NaN if the list is too short for the figure. */
struct description {
	uint64_t count;
	double mean, deviation, min, quarter, half, three_quarters, max;
	double sum;
};

bool numbers_push(struct numbers *numbers, double value); /* returns false if out of memory */
void numbers_release(struct numbers *numbers);
/* Sorts the numbers. */
struct description describe(struct numbers *numbers);
/* Rounds all figures except the count and the sum. */
void describe_round(struct description *description, int decimals);

/* Columns of a description, which is the member `described` of a row. */
#define DESCRIBED_COLUMN(row_type, name_, title_, unit_, about_, member) \
	{.name = (name_), .type = RESULT_NUMBER, .title = (title_), .unit = (unit_), .about = (about_), \
	 RESULT_FIELD(row_type, described.member)}
#define DESCRIPTION_COLUMNS(row_type, prefix, unit, of, counted) \
	{.name = prefix "count", .type = RESULT_COUNT, .title = "Count", .about = (counted), \
	 RESULT_FIELD(row_type, described.count)}, \
	DESCRIBED_COLUMN(row_type, prefix "mean", "Mean", unit, "Mean of the " of, mean), \
	DESCRIBED_COLUMN(row_type, prefix "std", "Std", unit, "Standard deviation of the " of ", of a sample", deviation), \
	DESCRIBED_COLUMN(row_type, prefix "min", "Min", unit, "Minimum of the " of, min), \
	DESCRIBED_COLUMN(row_type, prefix "25%", "25%", unit, "First quartile of the " of, quarter), \
	DESCRIBED_COLUMN(row_type, prefix "50%", "50%", unit, "Median of the " of, half), \
	DESCRIBED_COLUMN(row_type, prefix "75%", "75%", unit, "Third quartile of the " of, three_quarters), \
	DESCRIBED_COLUMN(row_type, prefix "max", "Max", unit, "Maximum of the " of, max)

#endif
