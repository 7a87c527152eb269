/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorting of nearly sorted rows: a natural merge sort, which takes one pass over sorted rows and one more each time the number of
 * ascending runs doubles.
 */
#ifndef OPS_BASE_ORDER_H
#define OPS_BASE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns whether row `a` must precede row `b`. Rows of which neither precedes the other keep their order. */
typedef bool ops_before(const void *context, uint32_t a, uint32_t b);

/* Sorts the rows in place. Returns false if out of memory; then nothing has moved. Small numbers of rows need no memory. */
bool ops_sort_rows(uint32_t *rows, size_t count, ops_before *before, const void *context);

/* Computes the order in which the rows 0 … count - 1 are sorted, or NULL if they are sorted already. The caller frees it with
 * ops_free. Returns false if out of memory; then `*ret_order` is NULL. */
bool ops_find_order(size_t count, ops_before *before, const void *context, uint32_t **ret_order);

/* Rearranges the items of an array by `order`, into an allocation of exactly their size. `items_field` is the address of the
 * pointer to them. Returns false if out of memory; then nothing has moved. */
bool ops_reorder(void *items_field, size_t count, size_t bytes_each, const uint32_t *order);
/* Does both: sorts the items of an array, stably. Returns false if out of memory. */
bool ops_sort_stable(void *items_field, size_t count, size_t bytes_each, ops_before *before);
#define OPS_ARRAY_SORT_STABLE(array, before)                                                       \
	(ops_sort_stable(&(array)->items, (array)->count, sizeof(*(array)->items), (before)) &&    \
	 ((array)->capacity = (array)->count, true))
/* Like ops_reorder, but in place, with `scratch`, which has space for `count` items. Cannot fail. */
void ops_reorder_by(void *items, void *scratch, size_t count, size_t bytes_each, const uint32_t *order);

/* Defines a function for qsort and bsearch that compares items by members of theirs, the first that differs: smaller first, or larger
 * first; by what a function of an item returns; or by expressions in `left` and `right`, smaller first.
 *
 *     OPS_ORDER(compare_costs, struct cost, OPS_DOWN(ns) OPS_BY_TEXT(name) OPS_UP(row))
 */
#define OPS_ORDER(function, type, ...)                                                             \
	static int function(const void *any_left, const void *any_right)                           \
	{                                                                                          \
		const type *left = any_left, *right = any_right;                                   \
                                                                                                   \
		__VA_ARGS__                                                                        \
		return 0;                                                                          \
	}
#define OPS_ORDER_BY(left, right)                                                                  \
	if ((left) != (right))                                                                     \
		return (left) < (right) ? -1 : 1;
#define OPS_UP(member) OPS_ORDER_BY(left->member, right->member)
#define OPS_DOWN(member) OPS_ORDER_BY(right->member, left->member)
#define OPS_UP_OF(function) OPS_ORDER_BY(function(left), function(right))
#define OPS_DOWN_OF(function) OPS_ORDER_BY(function(right), function(left))
/* Of struct ops_string, by base/text.h; and of texts that end with a NUL. */
#define OPS_BY_TEXT(member) OPS_ORDER_IN(ops_string_compare(left->member, right->member))
#define OPS_BY_WORD(member) OPS_ORDER_IN(strcmp(left->member, right->member))
#define OPS_ORDER_IN(comparison)                                                                   \
	{                                                                                          \
		int order = comparison;                                                            \
                                                                                                   \
		if (order)                                                                         \
			return order;                                                              \
	}

/* Items 0 … count - 1, grouped by a key below `keys`: those of key k are order[first[k]] … order[first[k + 1] - 1], ascending. */
struct ops_groups {
	uint32_t *first;
	uint32_t *order;
};
/* Returns the key of an item; UINT32_MAX leaves it out. */
typedef uint32_t ops_key_of(const void *context, uint32_t item);
/* Returns false if out of memory. The caller must release the groups in any case. */
bool ops_groups_init(struct ops_groups *groups, size_t count, size_t keys, ops_key_of *key_of, const void *context);
void ops_groups_release(struct ops_groups *groups);

/* For qsort and bsearch. */
int ops_compare_int64(const void *a, const void *b);
int ops_compare_double(const void *a, const void *b);

/* Sorts numbers and removes duplicates. Returns how many are left. */
size_t ops_sort_unique_int64(int64_t *numbers, size_t count);
/* Sorts numbers. Returns the middle one, of two the larger; 0 if there are none. */
int64_t ops_sort_to_middle(int64_t *numbers, size_t count);

/* Returns a quantile of one or more sorted numbers, interpolated linearly between the neighbours of `share` (0 … 1). */
double ops_quantile(const double *sorted, size_t count, double share);
/* Sorts numbers, in a third of the time of qsort for some hundred. `spare` has space for as many. */
void ops_sort_doubles(double *numbers, double *spare, size_t count);
/* Returns the median; 0 if there are no numbers. Sorts the numbers. */
double ops_median(double *numbers, size_t count);
/* The standard deviation of a normal distribution whose median absolute deviation is 1. */
#define OPS_DEVIATION_OF_MAD 1.4826

#endif
