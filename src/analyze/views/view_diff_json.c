/* SPDX-License-Identifier: Apache-2.0
 *
 * A diff as JSON.
 */
#include <stdio.h>
#include <string.h>

#include "analyze/views/view_diff.h"
#include "analyze/views/view_diff_write.h"
#include "analyze/views/view_step_stats.h"
#include "base/text.h"

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

/* The times that rows of a kind have. */
struct member {
	const char *key;
	enum view_diff_time time;
};

/* Writes the sum over all steps, and that per step. */
static void view_diff_json_write_sum(struct ops_json_writer *json, const struct view_diff *diff, int side,
                                     const struct view_diff_sum *sum, const struct member *members)
{
	ops_json_open(json, '{');
	ops_json_member(json, "calls", (int64_t)sum->calls);
	for (const struct member *member = members; member->key; member++)
		ops_json_member_us(json, member->key, sum->ns[member->time]);
	ops_json_member_open(json, "per_step", '{');
	ops_json_member_number(json, "calls", view_diff_per_step(diff, side, (double)sum->calls));
	for (const struct member *member = members; member->key; member++)
		ops_json_member_number(json, member->key, view_diff_per_step(diff, side, (double)sum->ns[member->time]) / 1000);
	ops_json_close(json, '}');
	ops_json_close(json, '}');
}

/* A name that is missing on a side is null there. */
static void view_diff_json_write_rows(struct ops_json_writer *json, const char *key, const struct view_diff *diff,
                                      const struct view_diff_rows *rows, const struct member *members)
{
	ops_json_member_open(json, key, '[');
	for (size_t i = 0; i < rows->count; i++) {
		ops_json_open(json, '{');
		ops_json_member_string(json, "name", rows->items[i].name);
		for (int side = 0; side < 2; side++) {
			ops_json_key(json, side ? "right" : "left");
			if (rows->items[i].sides[side].calls)
				view_diff_json_write_sum(json, diff, side, &rows->items[i].sides[side], members);
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
		char device[OPS_MEMORY_DEVICE_ROOM];

		ops_memory_device_name(memory->device, device);
		ops_json_open(json, '{');
		ops_json_member_text(json, "device", device);
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

/* Writes the categories of the average step. Loaders of different classes do not match, but their times are compared
 * here. */
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
		ops_json_member_number(json, "waited_ratio", diff->steps[side].waited.ratio);
		ops_json_member_bool(json, "waited_much", view_waited_distorts(diff->steps[side].waited));
		ops_json_member(json, "per_step_divisor", diff->counted[side] ? (int64_t)diff->counted[side] : 1);
		ops_json_close(json, '}');
	}
	view_diff_json_write_categories(json, diff);
	ops_json_member_number(json, "change_ratio", diff->verdict.change_ratio);
	ops_json_member_number(json, "noise_ratio", diff->verdict.noise_ratio);
	ops_json_member_bool(json, "regression", diff->verdict.regression);
	ops_json_member_bool(json, "undecided", diff->verdict.undecided != NULL);
	ops_json_member_string_or_null(json, "no_verdict", ops_string_of(diff->verdict.undecided ? diff->verdict.undecided : ""));
	ops_json_close(json, '}');
}

static const struct member sum_members[] = {
	{"host_duration", VIEW_DIFF_HOST}, {"device_duration", VIEW_DIFF_DEVICE}, {"total_duration", VIEW_DIFF_TOTAL}, {NULL, 0}};
static const struct member operator_members[] = {{"host_total", VIEW_DIFF_HOST}, {"host_self", VIEW_DIFF_HOST_SELF},
                                                 {"device_total", VIEW_DIFF_DEVICE}, {"device_self", VIEW_DIFF_DEVICE_SELF},
                                                 {NULL, 0}};
static const struct member kernel_members[] = {{"total", VIEW_DIFF_TOTAL}, {NULL, 0}};

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
	view_diff_json_write_rows(&json, "parts", diff, &diff->parts, sum_members);
	view_diff_json_write_rows(&json, "modules", diff, &diff->modules, sum_members);
	view_diff_json_write_memory(&json, diff);
	view_diff_json_write_rows(&json, "root_operators", diff, &diff->root_operators, operator_members);
	view_diff_json_write_rows(&json, "operators", diff, &diff->operators, operator_members);
	view_diff_json_write_rows(&json, "kernels", diff, &diff->kernels, kernel_members);
	ops_json_close(&json, '}');
}
