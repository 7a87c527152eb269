/* SPDX-License-Identifier: Apache-2.0
 *
 * Mean, sample deviation and quartiles.
 */
#include "analyze/describe.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/order.h"

bool numbers_push(struct numbers *numbers, double value)
{
	double *pushed = OPS_ARRAY_PUSH(&numbers->items);

	if (pushed)
		*pushed = value;
	return pushed;
}

void numbers_release(struct numbers *numbers)
{
	OPS_ARRAY_RELEASE(&numbers->items);
}

struct description describe(struct numbers *numbers)
{
	double *items = numbers->items.items, squares = 0;
	size_t count = numbers->items.count;
	struct description d = {count, NAN, NAN, NAN, NAN, NAN, NAN, NAN, 0};

	if (!count)
		return d;
	qsort(items, count, sizeof(*items), ops_compare_double);
	for (size_t i = 0; i < count; i++)
		d.sum += items[i];
	d.mean = d.sum / (double)count;
	for (size_t i = 0; i < count; i++)
		squares += (items[i] - d.mean) * (items[i] - d.mean);
	if (count > 1)
		d.deviation = sqrt(squares / (double)(count - 1));
	d.min = items[0];
	d.max = items[count - 1];
	d.quarter = ops_quantile(items, count, 0.25);
	d.half = ops_quantile(items, count, 0.5);
	d.three_quarters = ops_quantile(items, count, 0.75);
	return d;
}

void describe_round(struct description *d, int decimals)
{
	double *figures[] = {&d->mean, &d->deviation, &d->min, &d->quarter, &d->half, &d->three_quarters, &d->max};

	for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
		*figures[i] = isnan(*figures[i]) ? *figures[i] : result_round(*figures[i], decimals);
}
