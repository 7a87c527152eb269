/* SPDX-License-Identifier: Apache-2.0
 *
 * A diff as JSON.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/views/view_diff.h"
#include "analyze/views/view_diff_write.h"

static void write_side(struct ops_json_writer *json, const char *key, const struct view_diff_side *side)
{
	ops_json_member_open(json, key, '{');
	ops_json_member_string(json, "name", side->name);
	ops_json_member_us(json, "host_duration", side->host_ns);
	ops_json_member_us(json, "device_duration", side->device_ns);
	ops_json_member_us(json, "total_duration", side->total_ns);
	ops_json_member(json, "distinct_ops", (int64_t)side->operators);
	ops_json_close(json, '}');
}

/* A number of the steps together, and of one. */
struct figure {
	const char *key;
	int64_t value;
	bool is_time;
};

static void view_diff_json_write_figures(struct ops_json_writer *json, const struct view_diff *diff, int side,
                                         const struct figure *figures, size_t count)
{
	ops_json_open(json, '{');
	for (size_t i = 0; i < count; i++) {
		ops_json_key(json, figures[i].key);
		if (figures[i].is_time)
			ops_json_us(json, figures[i].value);
		else
			ops_json_integer(json, figures[i].value);
	}
	ops_json_member_open(json, "per_step", '{');
	for (size_t i = 0; i < count; i++) {
		double value = view_diff_per_step(diff, side, (double)figures[i].value);

		ops_json_member_number(json, figures[i].key, figures[i].is_time ? value / 1000 : value);
	}
	ops_json_close(json, '}');
	ops_json_close(json, '}');
}

static void write_operator(struct ops_json_writer *json, const struct view_diff *diff,
                           const struct view_diff_operator *operator)
{
	ops_json_open(json, '{');
	ops_json_member_string(json, "name", operator->name);
	for (int side = 0; side < 2; side++) {
		const struct figure figures[] = {{"calls", (int64_t)operator->sides[side].calls, false},
		                                 {"host_total", operator->sides[side].host_total_ns, true},
		                                 {"host_self", operator->sides[side].host_self_ns, true},
		                                 {"device_total", operator->sides[side].device_total_ns, true},
		                                 {"device_self", operator->sides[side].device_self_ns, true}};

		ops_json_key(json, side ? "right" : "left");
		if (operator->sides[side].calls)
			view_diff_json_write_figures(json, diff, side, figures, sizeof(figures) / sizeof(*figures));
		else
			ops_json_null(json);
	}
	ops_json_close(json, '}');
}

static void write_operators(struct ops_json_writer *json, const char *key, const struct view_diff *diff,
                            const struct view_diff_operators *operators)
{
	ops_json_member_open(json, key, '[');
	for (size_t i = 0; i < operators->count; i++)
		write_operator(json, diff, &operators->items[i]);
	ops_json_close(json, ']');
}

static void view_diff_json_write_kernels(struct ops_json_writer *json, const struct view_diff *diff)
{
	ops_json_member_open(json, "kernels", '[');
	for (size_t i = 0; i < diff->kernels.count; i++) {
		const struct view_diff_kernel *kernel = &diff->kernels.items[i];

		ops_json_open(json, '{');
		ops_json_member_string(json, "name", kernel->name);
		for (int side = 0; side < 2; side++) {
			const struct figure figures[] = {{"calls", (int64_t)kernel->sides[side].calls, false},
			                                 {"total", kernel->sides[side].total_ns, true}};

			ops_json_key(json, side ? "right" : "left");
			if (kernel->sides[side].calls)
				view_diff_json_write_figures(json, diff, side, figures, sizeof(figures) / sizeof(*figures));
			else
				ops_json_null(json);
		}
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

/* A name that a side does not have is null there. */
static void view_diff_json_write_sums(struct ops_json_writer *json, const char *key, const struct view_diff *diff,
                                      const struct view_diff_sums *sums)
{
	ops_json_member_open(json, key, '[');
	for (size_t i = 0; i < sums->count; i++) {
		const struct view_diff_sum *sum = &sums->items[i];

		ops_json_open(json, '{');
		ops_json_member_string(json, "name", sum->name);
		for (int side = 0; side < 2; side++) {
			const struct figure figures[] = {{"calls", (int64_t)sum->sides[side].calls, false},
			                                 {"host_duration", sum->sides[side].host_ns, true},
			                                 {"device_duration", sum->sides[side].device_ns, true},
			                                 {"total_duration", sum->sides[side].total_ns, true}};

			ops_json_key(json, side ? "right" : "left");
			if (sum->sides[side].calls)
				view_diff_json_write_figures(json, diff, side, figures, sizeof(figures) / sizeof(*figures));
			else
				ops_json_null(json);
		}
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

static void view_diff_json_write_memory(struct ops_json_writer *json, const struct view_diff *diff)
{
	ops_json_member_open(json, "memory", '[');
	for (size_t i = 0; i < diff->memory.count; i++) {
		const struct view_diff_memory *memory = &diff->memory.items[i];

		ops_json_open(json, '{');
		ops_json_member_text(json, "device", memory->device);
		for (int side = 0; side < 2; side++) {
			ops_json_member_open(json, side ? "right" : "left", '{');
			ops_json_member(json, "peak", memory->peak_bytes[side]);
			ops_json_member(json, "allocated", memory->allocated_bytes[side]);
			ops_json_member_number(json, "allocated_per_step",
			                       view_diff_per_step(diff, side, (double)memory->allocated_bytes[side]));
			ops_json_close(json, '}');
		}
		ops_json_close(json, '}');
	}
	ops_json_close(json, ']');
}

/* What the average step is spent on: two classes of loaders are no pair, but the time of loading is (F17). */
static void view_diff_json_write_categories(struct ops_json_writer *json, const struct view_diff *diff)
{
	ops_json_member_open(json, "categories", '{');
	for (int i = 0; i < VIEW_TIME_COUNT; i++) {
		ops_json_member_open(json, view_category_name((enum view_category)i), '{');
		for (int side = 0; side < 2; side++) {
			ops_json_member_number(json, side ? "right" : "left",
			                       view_step_shown_average_ns(diff->views[side], (enum view_category)i) / 1000);
		}
		ops_json_close(json, '}');
	}
	ops_json_close(json, '}');
}

static void view_diff_json_write_steps(struct ops_json_writer *json, const struct view_diff *diff)
{
	ops_json_member_open(json, "steps", '{');
	for (int side = 0; side < 2; side++) {
		ops_json_member_open(json, side ? "right" : "left", '{');
		ops_json_member(json, "steps", (int64_t)diff->steps[side].steps);
		ops_json_member_number(json, "mean", diff->steps[side].mean_ns / 1000);
		ops_json_member_number(json, "median", diff->steps[side].median_ns / 1000);
		ops_json_member_number(json, "deviation", diff->steps[side].deviation_ns / 1000);
		ops_json_member(json, "per_step_divisor", diff->counted[side] ? (int64_t)diff->counted[side] : 1);
		ops_json_close(json, '}');
	}
	view_diff_json_write_categories(json, diff);
	ops_json_member_number(json, "change_ratio", diff->verdict.change_ratio);
	ops_json_member_number(json, "noise_ratio", diff->verdict.noise_ratio);
	ops_json_member_bool(json, "regression", diff->verdict.regression);
	ops_json_member_bool(json, "undecided", diff->verdict.undecided);
	ops_json_close(json, '}');
}

void view_diff_write_json(const struct view_diff *diff, struct ops_buffer *out)
{
	struct ops_json_writer json = {.out = out};

	ops_json_open(&json, '{');
	view_diff_json_write_steps(&json, diff);
	ops_json_member(&json, "nodes", (int64_t)diff->nodes);
	ops_json_member_open(&json, "root", '{');
	write_side(&json, "left", &diff->root.sides[0]);
	write_side(&json, "right", &diff->root.sides[1]);
	ops_json_close(&json, '}');
	ops_json_member_open(&json, "children", '[');
	for (size_t i = 0; i < diff->pairs.count; i++) {
		char path[32];

		snprintf(path, sizeof(path), "0-%zu", i);
		ops_json_open(&json, '{');
		ops_json_member_text(&json, "path", path);
		write_side(&json, "left", &diff->pairs.items[i].sides[0]);
		write_side(&json, "right", &diff->pairs.items[i].sides[1]);
		ops_json_member(&json, "children", (int64_t)diff->pairs.items[i].children);
		ops_json_close(&json, '}');
	}
	ops_json_close(&json, ']');
	view_diff_json_write_sums(&json, "parts", diff, &diff->parts);
	view_diff_json_write_sums(&json, "modules", diff, &diff->modules);
	view_diff_json_write_memory(&json, diff);
	write_operators(&json, "root_operators", diff, &diff->root_operators);
	write_operators(&json, "operators", diff, &diff->operators);
	view_diff_json_write_kernels(&json, diff);
	ops_json_close(&json, '}');
}
