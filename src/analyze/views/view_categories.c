/* SPDX-License-Identifier: Apache-2.0
 *
 * Device work by category: kernels, copies and fills, as relation_kernels.c classifies each.
 */
#include <math.h>

#include "analyze/views/view_tables.h"

#include "base/order.h"
#include "derive/categories.h"

OPS_ORDER(compare_category_rows, struct view_category_row, OPS_DOWN(total_ns) OPS_DOWN(calls) OPS_UP(number))

size_t view_categories_find(const struct ops_views *views, struct view_category_row rows[OPS_CATEGORY_COUNT])
{
	double all_ns = 0, steps = view_step_divisor(views);
	size_t count = 0;

	for (int i = 0; i < OPS_CATEGORY_COUNT; i++)
		rows[i] = (struct view_category_row){.number = (enum ops_category)i, .category = ops_category_name((enum ops_category)i)};
	for (size_t i = 0; i < views->device_events.count; i++) {
		const struct view_device_event *event = &views->device_events.items[i];
		uint32_t row = event->row;
		struct view_category_row *sum = &rows[ops_category_of(views->events->kind[row], view_row_name(views, row))];

		sum->calls++;
		view_add(&sum->total_ns, view_duration(views, row));
		if (view_averages_event(views, event)) {
			sum->step_calls++;
			sum->step_ns += (double)view_duration(views, row);
		}
	}
	qsort(rows, OPS_CATEGORY_COUNT, sizeof(*rows), compare_category_rows);
	for (int i = 0; i < OPS_CATEGORY_COUNT; i++)
		all_ns += (double)rows[i].total_ns;
	for (; count < OPS_CATEGORY_COUNT && rows[count].calls; count++) {
		rows[count].share = all_ns > 0 ? (double)rows[count].total_ns / all_ns : 0;
		rows[count].step_ns /= steps;
		rows[count].step_calls /= steps;
	}
	return count;
}

static void view_categories_write_row(struct ops_json_writer *json, const struct view_category_row *row)
{
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
	struct view_category_row rows[OPS_CATEGORY_COUNT];
	size_t count = view_categories_find(views, rows);

	if (count) {
		OPS_JSON_LIST(json, "kernels_by_category", i, count, view_categories_write_row(json, &rows[i]));
	} else {
		ops_json_key(json, "kernels_by_category");
		ops_json_null(json);
	}
	return true;
}
