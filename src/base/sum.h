/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums of numbers that come from a file. They saturate at the limits of their type instead of overflowing.
 */
#ifndef OPS_BASE_SUM_H
#define OPS_BASE_SUM_H

#include <stddef.h>
#include <stdint.h>

/* Returns the nearest signed number. */
static inline int64_t ops_clamped(uint64_t number)
{
	return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

static inline int64_t ops_sum(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? (b < 0 ? INT64_MIN : INT64_MAX) : sum;
}

static inline int64_t ops_difference(int64_t a, int64_t b)
{
	int64_t difference;

	return __builtin_sub_overflow(a, b, &difference) ? (b < 0 ? INT64_MAX : INT64_MIN) : difference;
}

static inline int64_t ops_sum_all(const int64_t *numbers, size_t count)
{
	int64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum = ops_sum(sum, numbers[i]);
	return sum;
}

/* For two numbers that are not negative. */
static inline int64_t ops_product(int64_t a, int64_t b)
{
	int64_t product;

	return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

#endif
