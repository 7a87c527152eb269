/* SPDX-License-Identifier: Apache-2.0
 *
 * Natural merge sort of row numbers; see order.h.
 */
#include "base/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Up to this many rows are sorted by insertion. */
#define FEW_ROWS 16
#define SHORT_RUN 8u /* likewise, of numbers */

static void insertion_sort(uint32_t *rows, size_t count, ops_before *before, const void *context)
{
	for (size_t i = 1; i < count; i++) {
		uint32_t row = rows[i];
		size_t at = i;

		for (; at > 0 && before(context, row, rows[at - 1]); at--)
			rows[at] = rows[at - 1];
		rows[at] = row;
	}
}

/* Returns the end of the ascending run that begins at `start`. */
static size_t run_end(const uint32_t *rows, size_t start, size_t count, ops_before *before, const void *context)
{
	size_t end = start + 1;

	while (end < count && !before(context, rows[end], rows[end - 1]))
		end++;
	return end;
}

/* Merges two adjacent runs of `rows` into the same position of `out`. */
static void order_merge(const uint32_t *rows, uint32_t *out, size_t start, size_t middle, size_t end, ops_before *before,
                        const void *context)
{
	size_t left = start;
	size_t right = middle;
	size_t at = start;

	while (left < middle && right < end)
		out[at++] = before(context, rows[right], rows[left]) ? rows[right++] : rows[left++];
	memcpy(out + at, rows + left, (middle - left) * sizeof(*rows));
	at += middle - left;
	memcpy(out + at, rows + right, (end - right) * sizeof(*rows));
}

/* Merges pairs of adjacent runs in one pass. Returns the number of merged pairs. */
static size_t merge_pairs(const uint32_t *rows, uint32_t *out, size_t count, ops_before *before, const void *context)
{
	size_t pairs = 0;
	size_t end;

	for (size_t start = 0; start < count; start = end) {
		size_t middle = run_end(rows, start, count, before, context);

		end = middle < count ? run_end(rows, middle, count, before, context) : middle;
		pairs += end > middle;
		order_merge(rows, out, start, middle, end, before, context);
	}
	return pairs;
}

bool ops_sort_rows(uint32_t *rows, size_t count, ops_before *before, const void *context)
{
	uint32_t *from = rows;
	uint32_t *to;
	uint32_t *other;

	if (count <= FEW_ROWS) {
		insertion_sort(rows, count, before, context);
		return true;
	}
	if (run_end(rows, 0, count, before, context) == count)
		return true;
	other = to = ops_realloc_array(NULL, count, sizeof(*rows));
	if (!other)
		return false;
	while (merge_pairs(from, to, count, before, context)) {
		uint32_t *sorted = to;
		to = from;
		from = sorted;
	}
	/* The last pass found one run and copied it, so both arrays contain the order. */
	ops_free(other);
	return true;
}

bool ops_find_order(size_t count, ops_before *before, const void *context, uint32_t **ret_order)
{
	uint32_t *order;
	size_t row = 1;

	*ret_order = NULL;
	while (row < count && !before(context, (uint32_t)row, (uint32_t)row - 1))
		row++;
	if (row >= count)
		return true;
	order = ops_realloc_array(NULL, count, sizeof(*order));
	if (!order)
		return false;
	for (row = 0; row < count; row++)
		order[row] = (uint32_t)row;
	if (!ops_sort_rows(order, count, before, context)) {
		ops_free(order);
		return false;
	}
	*ret_order = order;
	return true;
}

static inline __attribute__((always_inline)) void move_items(char *to, const char *from, size_t count, size_t bytes_each,
                                                            const uint32_t *order)
{
	for (size_t i = 0; i < count; i++)
		memcpy(to + i * bytes_each, from + order[i] * bytes_each, bytes_each);
}

static void move_all(char *to, const char *from, size_t count, size_t bytes_each, const uint32_t *order)
{
	/* Constant sizes, those of columns, let the compiler replace the calls by moves. */
	switch (bytes_each) {
	case 1:
		move_items(to, from, count, 1, order);
		break;
	case 2:
		move_items(to, from, count, 2, order);
		break;
	case 4:
		move_items(to, from, count, 4, order);
		break;
	case 8:
		move_items(to, from, count, 8, order);
		break;
	default:
		move_items(to, from, count, bytes_each, order);
	}
}

bool ops_reorder(void *items_field, size_t count, size_t bytes_each, const uint32_t *order)
{
	char **items = items_field;
	char *sorted = ops_realloc_array(NULL, count, bytes_each);

	if (!sorted)
		return false;
	move_all(sorted, *items, count, bytes_each, order);
	ops_free(*items);
	*items = sorted;
	return true;
}

bool ops_sort_stable(void *items_field, size_t count, size_t bytes_each, ops_before *before)
{
	uint32_t *order = NULL;
	bool ok = ops_find_order(count, before, *(void **)items_field, &order) &&
	          (!order || ops_reorder(items_field, count, bytes_each, order));

	ops_free(order);
	return ok;
}

void ops_reorder_by(void *items, void *scratch, size_t count, size_t bytes_each, const uint32_t *order)
{
	move_all(scratch, items, count, bytes_each, order);
	memcpy(items, scratch, count * bytes_each);
}

int ops_compare_int64(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

int ops_compare_double(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

size_t ops_sort_unique_int64(int64_t *numbers, size_t count)
{
	size_t kept = 0;

	if (count)
		qsort(numbers, count, sizeof(*numbers), ops_compare_int64);
	for (size_t i = 0; i < count; i++)
		if (!kept || numbers[i] != numbers[kept - 1])
			numbers[kept++] = numbers[i];
	return kept;
}

int64_t ops_sort_to_middle(int64_t *numbers, size_t count)
{
	if (!count)
		return 0;
	qsort(numbers, count, sizeof(*numbers), ops_compare_int64);
	return numbers[count / 2];
}

double ops_quantile(const double *sorted, size_t count, double share)
{
	double at = share * (double)(count - 1);
	size_t low = (size_t)at, high = low + 1 < count ? low + 1 : low;

	return sorted[low] + (at - (double)low) * (sorted[high] - sorted[low]);
}

/* Merges two sorted runs, without branches that depend on the numbers. */
static void order_merge_doubles(const double *left, const double *middle, const double *end, double *to)
{
	const double *right = middle;

	while (left < middle && right < end) {
		bool is_right = *right < *left;

		*to++ = is_right ? *right : *left;
		right += is_right;
		left += !is_right;
	}
	memcpy(to, left, (size_t)(middle - left) * sizeof(*to));
	memcpy(to + (middle - left), right, (size_t)(end - right) * sizeof(*to));
}

static void order_insert_doubles(double *numbers, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		double number = numbers[i];
		size_t at = i;

		for (; at > 0 && numbers[at - 1] > number; at--)
			numbers[at] = numbers[at - 1];
		numbers[at] = number;
	}
}

void ops_sort_doubles(double *numbers, double *spare, size_t count)
{
	double *from = numbers, *to = spare;

	for (size_t i = 0; i < count; i += SHORT_RUN)
		order_insert_doubles(numbers + i, count - i < SHORT_RUN ? count - i : SHORT_RUN);
	for (size_t run = SHORT_RUN; run < count; run *= 2) {
		double *sorted = to;

		for (size_t i = 0; i < count; i += 2 * run) {
			size_t middle = i + run < count ? i + run : count, end = i + 2 * run < count ? i + 2 * run : count;

			order_merge_doubles(from + i, from + middle, from + end, to + i);
		}
		to = from;
		from = sorted;
	}
	if (from != numbers)
		memcpy(numbers, from, count * sizeof(*numbers));
}

double ops_median(double *numbers, size_t count)
{
	if (!count)
		return 0;
	qsort(numbers, count, sizeof(*numbers), ops_compare_double);
	return ops_quantile(numbers, count, 0.5);
}

/* --- groups --------------------------------------------------------------------------------------------------------- */

bool ops_groups_init(struct ops_groups *groups, size_t count, size_t keys, ops_key_of *key_of, const void *context)
{
	uint32_t *first = ops_alloc_zeroed(keys + 2, sizeof(*first));

	*groups = (struct ops_groups){first, ops_realloc_array(NULL, count + 1, sizeof(*groups->order))};
	if (!first || !groups->order)
		return false;
	/* Counts are stored two positions further, so that filling moves each start to its correct value. */
	for (uint32_t item = 0; item < count; item++) {
		uint32_t key = key_of(context, item);

		if (key != UINT32_MAX)
			first[key + 2]++;
	}
	for (size_t key = 2; key < keys + 2; key++)
		first[key] += first[key - 1];
	for (uint32_t item = 0; item < count; item++) {
		uint32_t key = key_of(context, item);

		if (key != UINT32_MAX)
			groups->order[first[key + 1]++] = item;
	}
	return true;
}

void ops_groups_release(struct ops_groups *groups)
{
	ops_free(groups->first);
	ops_free(groups->order);
	*groups = (struct ops_groups){0};
}
