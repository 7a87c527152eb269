/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting of what comes nearly sorted: a natural merge sort, which takes one pass over rows that are in order and one
 * more each time the number of ascending runs doubles.
 */
#ifndef OPS_TRACE_ORDER_H
#define OPS_TRACE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether row `a` has to stand before row `b`; rows that compare equal either way keep their order. */
typedef bool ops_before(const void *context, uint32_t a, uint32_t b);

/* Sorts the rows in place. False when memory is out, and then nothing has moved. Few rows need no memory. */
bool ops_sort_rows(uint32_t *rows, size_t count, ops_before *before, const void *context);

#endif
