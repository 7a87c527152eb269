/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work by category: kernels, copies and fills, as relation_kernels.c classifies each.
 */
#include <math.h>

#include "analyze/views/view_tables.h"

#include "base/order.h"
#include "derive/categories.h"

struct sum {
	enum ops_category category;
	uint64_t calls;
	int64_t total_ns;
};

OPS_ORDER(compare_sums, struct sum, OPS_DOWN(total_ns) OPS_DOWN(calls) OPS_UP(category))

/* Sums by category, longest first. */
static void view_categories_sum(const struct ops_views *views, struct sum sums[OPS_CATEGORY_COUNT])
{
	for (int category = 0; category < OPS_CATEGORY_COUNT; category++)
		sums[category] = (struct sum){.category = (enum ops_category)category};
	for (size_t i = 0; i < views->device_events.count; i++) {
		uint32_t row = views->device_events.items[i].row;
		struct sum *sum = &sums[ops_category_of(views->events->kind[row], view_row_name(views, row))];

		sum->calls++;
		view_add(&sum->total_ns, view_duration(views, row));
	}
	qsort(sums, OPS_CATEGORY_COUNT, sizeof(*sums), compare_sums);
}

void view_each_category(const struct ops_views *views, size_t most,
                        void (*visit)(void *context, const struct view_category_row *row), void *context)
{
	struct sum sums[OPS_CATEGORY_COUNT];
	double all_ns = 0, steps = view_step_divisor(views);

	view_categories_sum(views, sums);
	for (int i = 0; i < OPS_CATEGORY_COUNT; i++)
		all_ns += (double)sums[i].total_ns;
	for (size_t i = 0; i < OPS_CATEGORY_COUNT && i < most && sums[i].calls; i++)
		visit(context, &(struct view_category_row){
				      .category = ops_category_name(sums[i].category),
				      .calls = sums[i].calls,
				      .total_ns = sums[i].total_ns,
				      .share = all_ns > 0 ? (double)sums[i].total_ns / all_ns : 0,
				      .step_ns = (double)sums[i].total_ns / steps,
				      .step_calls = (double)sums[i].calls / steps,
			      });
}

static void view_categories_write_row(void *context, const struct view_category_row *row)
{
	struct ops_json_writer *json = context;

	ops_json_open(json, '{');
	ops_json_member_text(json, "category", row->category);
	ops_json_member(json, "calls", (int64_t)row->calls);
	ops_json_member_us(json, "total", row->total_ns);
	ops_json_member_number(json, "share", row->share);
	ops_json_member_number(json, "step_total", row->step_ns / 1000);
	ops_json_member_number(json, "step_calls", row->step_calls);
	ops_json_close(json, '}');
}

bool view_write_categories(const struct ops_views *views, struct ops_json_writer *json)
{
	ops_json_key(json, "kernels_by_category");
	if (!views->device_events.count) {
		ops_json_null(json);
		return true;
	}
	ops_json_open(json, '[');
	view_each_category(views, OPS_CATEGORY_COUNT, view_categories_write_row, json);
	ops_json_close(json, ']');
	return true;
}
