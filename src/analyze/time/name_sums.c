/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums by name, for the names that take most time. The rest are combined as "others", whose figures are computed from
 * their events like those of any name.
 */
#include "analyze/time/device_time.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/limit.h"
#include "base/order.h"
#include "base/sum.h"

/* The rows of one name: a range of the rows sorted by name. */
struct group {
	struct ops_string name;
	const uint32_t *rows;
	size_t count;
	int64_t sum_ns;
	bool kept;
};

static bool name_sums_by_name(const void *context, uint32_t a, uint32_t b)
{
	const struct event_row *rows = context;

	return rows[a].name < rows[b].name;
}

OPS_ORDER(name_sums_compare_groups, struct group, OPS_DOWN(sum_ns) OPS_BY_TEXT(name))

static size_t find_groups(const struct event_table *table, const uint32_t *rows, size_t count, struct group *groups)
{
	size_t found = 0;

	for (size_t i = 0, end; i < count; i = end) {
		struct group *group = &groups[found++];

		*group = (struct group){.name = event_name(table, &table->rows[rows[i]]), .rows = rows + i};
		for (end = i; end < count && table->rows[rows[end]].name == table->rows[rows[i]].name; end++)
			group->sum_ns = ops_sum(group->sum_ns, table->rows[rows[end]].dur_ns);
		group->count = end - i;
	}
	return found;
}

static bool is_allowed(struct ops_string name, const struct name_limits *limits)
{
	for (size_t i = 0; i < limits->allowed_count && !ops_limit_reached(); i++)
		if (ops_string_has_part(name, limits->allowed[i]))
			return true;
	return false;
}

/* Keeps names until they make up the requested share of the time; keeps all if there are few. */
static void name_sums_choose(struct group *groups, size_t count, const struct name_limits *limits)
{
	int64_t total_ns = 0, before_ns = 0;

	for (size_t i = 0; i < count; i++)
		total_ns = ops_sum(total_ns, groups[i].sum_ns);
	for (size_t i = 0; i < count; i++) {
		groups[i].kept = (int64_t)count <= limits->names ||
		                 ((int64_t)i < limits->names && (double)before_ns < limits->ratio * (double)total_ns) ||
		                 is_allowed(groups[i].name, limits);
		before_ns = ops_sum(before_ns, groups[i].sum_ns);
	}
}

/* Adds the rows of a group to a sum. A second pass sums the squared deviations from the mean. */
static void name_sums_read(struct name_sum *sum, const struct event_table *table, const struct group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		int64_t ns = table->rows[group->rows[i]].dur_ns;

		sum->max_ns = !sum->count || ns > sum->max_ns ? ns : sum->max_ns;
		sum->min_ns = !sum->count || ns < sum->min_ns ? ns : sum->min_ns;
		sum->sum_ns = ops_sum(sum->sum_ns, ns);
		sum->count++;
	}
}

static double squares(const struct event_table *table, const struct group *group, double mean)
{
	double total = 0;

	for (size_t i = 0; i < group->count; i++) {
		double distance = (double)table->rows[group->rows[i]].dur_ns - mean;

		total += distance * distance;
	}
	return total;
}

static bool keep_name(struct name_sums *sums, struct ops_string name, struct ops_string *ret_name)
{
	uint32_t id = ops_intern_add(&sums->names, name.bytes, name.size);

	if (id == OPS_INTERN_NONE)
		return false;
	*ret_name = ops_intern_text(&sums->names, id);
	return true;
}

/* Adds a separate sum for each kept group, or one sum of all other groups. */
static bool name_sums_add_sums(struct name_sums *sums, const struct event_table *table, const struct group *groups,
                               size_t count, const char *type)
{
	struct name_sum others = {.name = {"others", 6}, .type = type, .rank = table->rank};
	double total = 0;

	for (size_t i = 0; i < count; i++) {
		struct name_sum one = {.type = type, .rank = table->rank};

		name_sums_read(groups[i].kept ? &one : &others, table, &groups[i]);
		if (!groups[i].kept)
			continue;
		if (!keep_name(sums, groups[i].name, &one.name))
			return false;
		if (one.count > 1)
			one.deviation_ns =
				sqrt(squares(table, &groups[i], (double)one.sum_ns / (double)one.count) / (double)(one.count - 1));
		if (!OPS_ARRAY_APPEND(&sums->items, one))
			return false;
	}
	if (!others.count)
		return true;
	for (size_t i = 0; i < count; i++)
		if (!groups[i].kept)
			total += squares(table, &groups[i], (double)others.sum_ns / (double)others.count);
	others.deviation_ns = others.count > 1 ? sqrt(total / (double)(others.count - 1)) : 0;
	if (!OPS_ARRAY_RESERVE(&sums->items, 1))
		return false;
	sums->items.items[sums->items.count++] = others;
	return true;
}

void name_sums_release(struct name_sums *sums)
{
	OPS_ARRAY_RELEASE(&sums->items);
	ops_intern_release(&sums->names);
}

bool name_sums_add(struct name_sums *sums, const struct event_table *table, const uint32_t *rows, size_t count,
                   const char *type, const struct name_limits *limits)
{
	uint32_t *order = ops_alloc_zeroed(count + 1, sizeof(*order));
	struct group *groups = NULL;
	size_t found;
	bool done = order;

	if (done && count)
		memcpy(order, rows, count * sizeof(*order));
	done = done && ops_sort_rows(order, count, name_sums_by_name, table->rows);
	groups = done ? ops_alloc_zeroed(count + 1, sizeof(*groups)) : NULL;
	if (groups) {
		found = find_groups(table, order, count, groups);
		qsort(groups, found, sizeof(*groups), name_sums_compare_groups);
		name_sums_choose(groups, found, limits);
		done = name_sums_add_sums(sums, table, groups, found, type);
	}
	done = done && groups;
	ops_free(groups);
	ops_free(order);
	return done;
}
