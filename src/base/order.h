/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting of what comes nearly sorted: a natural merge sort, which takes one pass over rows that are in order and one
 * more each time the number of ascending runs doubles.
 */
#ifndef OPS_BASE_ORDER_H
#define OPS_BASE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether row `a` has to precede row `b`; rows that compare equal either way keep their order. */
typedef bool ops_before(const void *context, uint32_t a, uint32_t b);

/* Sorts the rows in place. False when memory is out, and then nothing has moved. Few rows need no memory. */
bool ops_sort_rows(uint32_t *rows, size_t count, ops_before *before, const void *context);

/* Gives the order in which the rows 0 … count - 1 have to stand, NULL when they do so already. The caller frees it with
 * ops_free. False when memory is out, and then `*ret_order` is NULL. */
bool ops_find_order(size_t count, ops_before *before, const void *context, uint32_t **ret_order);

/* Moves the items of an array to where `order` wants them, into an allocation of just their size. `items_field` is the
 * address of the pointer to them. False when memory is out, and then nothing has moved. */
bool ops_reorder(void *items_field, size_t count, size_t bytes_each, const uint32_t *order);
/* The same in place, by way of `scratch`, which has space for `count` items. Cannot fail. */
void ops_reorder_by(void *items, void *scratch, size_t count, size_t bytes_each, const uint32_t *order);

/* For qsort and bsearch. */
int ops_compare_int64(const void *a, const void *b);
int ops_compare_double(const void *a, const void *b);

/* The quantile of one or more sorted numbers: linear between the two that `share` (0 … 1) falls between. */
double ops_quantile(const double *sorted, size_t count, double share);
/* The median, 0 of none. Sorts the numbers. */
double ops_median(double *numbers, size_t count);
/* The standard deviation of a normal distribution whose absolute deviations from the median have the median 1. */
#define OPS_DEVIATION_OF_MAD 1.4826

#endif
