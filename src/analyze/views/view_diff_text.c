/* SPDX-License-Identifier: Apache-2.0
 *
 * A diff for people and for spreadsheets: the verdict, the stretches of the steps, and the operators whose time changed most.
 */
#include <opstrobe/views.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/format.h"
#include "analyze/result.h"
#include "analyze/views/view_diff_write.h"
#include "base/alloc.h"
#include "base/text.h"

#define ROWS_MAX 15
#define COLUMNS 80 /* where nobody says how many there are */
#define COLUMNS_MIN 60
#define BESIDE_NAMES 40 /* columns for numbers and between them */

/* A page in the making. */
struct page {
	struct ops_buffer *out;
	bool markdown;
	size_t name_width;
};

static int64_t operator_ns(const struct view_diff_operator *operator, int side)
{
	return operator->sides[side].device_self_ns + operator->sides[side].host_self_ns;
}

static int64_t change_ns(const struct view_diff_operator *operator)
{
	int64_t change = operator_ns(operator, 1) - operator_ns(operator, 0);

	return change < 0 ? -change : change;
}

static int compare(const void *a, const void *b)
{
	int64_t left = change_ns(*(const struct view_diff_operator *const *)a);
	int64_t right = change_ns(*(const struct view_diff_operator *const *)b);

	if (left != right)
		return left < right ? 1 : -1;
	return a < b ? -1 : a > b;
}

/* A pipe would end a cell of markdown, and a line break the row. */
static void append_name(const struct page *page, struct ops_string name)
{
	size_t length = ops_text_length(name);
	struct ops_string shown = length > page->name_width && !page->markdown ? ops_text_prefix(name, page->name_width - 1) : name;

	for (size_t i = 0; i < shown.size; i++) {
		char c = (unsigned char)shown.bytes[i] < ' ' ? ' ' : shown.bytes[i];

		if (page->markdown && c == '|')
			ops_buffer_append(page->out, "\\", 1);
		ops_buffer_append(page->out, &c, 1);
	}
	if (shown.size < name.size)
		ops_buffer_append(page->out, "~", 1);
	if (!page->markdown && length < page->name_width)
		ops_buffer_printf(page->out, "%*s", (int)(page->name_width - length), "");
}

static void append_row(const struct page *page, struct ops_string name, int64_t left_ns, int64_t right_ns)
{
	char change[32] = "new", left[OPS_FORMAT_ROOM], right[OPS_FORMAT_ROOM];

	if (left_ns)
		snprintf(change, sizeof(change), "%+.1f %%", 100 * ((double)right_ns / (double)left_ns - 1));
	else if (!right_ns)
		snprintf(change, sizeof(change), "0.0 %%");
	ops_buffer_append_text(page->out, page->markdown ? "| " : "");
	append_name(page, name);
	ops_format_ms(left, (double)left_ns);
	ops_format_ms(right, (double)right_ns);
	ops_buffer_printf(page->out, page->markdown ? " | %s | %s | %s |\n" : " %13s %13s  %10s\n", left, right, change);
}

static void append_head(const struct page *page, const char *what)
{
	ops_buffer_append_text(page->out, page->markdown ? "\n| " : "\n");
	append_name(page, (struct ops_string){what, strlen(what)});
	if (page->markdown)
		ops_buffer_append_text(page->out, " | base | new | change |\n|---|---:|---:|---:|\n");
	else
		ops_buffer_printf(page->out, " %13s %13s  %10s\n", "base", "new", "change");
}

static void append_verdict(const struct page *page, const struct view_diff *diff)
{
	const char *bold = page->markdown ? "**" : "";
	char left[OPS_FORMAT_ROOM], right[OPS_FORMAT_ROOM];
	struct ops_buffer *out = page->out;

	if (!diff->steps[0].steps || !diff->steps[1].steps) {
		ops_buffer_printf(out, "%sno steps to compare%s\n", bold, bold);
		return;
	}
	ops_format_ms(left, diff->steps[0].mean_ns);
	ops_format_ms(right, diff->steps[1].mean_ns);
	ops_buffer_printf(out, "%sa step: %s -> %s, %+.1f %%%s", bold, left, right, 100 * diff->verdict.change_ratio, bold);
	if (diff->steps[0].steps > 1 || diff->steps[1].steps > 1)
		ops_buffer_printf(out, " (noise %.1f %%, %zu and %zu steps)", 100 * diff->verdict.noise_ratio,
		                  diff->steps[0].steps, diff->steps[1].steps);
	ops_buffer_printf(out, "\n%s\n", diff->verdict.regression ? "regression" : "no regression");
}

/* What has a place in either side's average step. */
static void append_categories(const struct page *page, const struct view_diff *diff)
{
	if (!diff->steps[0].steps || !diff->steps[1].steps)
		return;
	append_head(page, "a step's time");
	for (int i = 0; i < VIEW_TIME_COUNT; i++) {
		const char *name = view_category_name((enum view_category)i);
		int64_t left_ns = (int64_t)view_step_average_ns(&diff->views[0], (enum view_category)i);
		int64_t right_ns = (int64_t)view_step_average_ns(&diff->views[1], (enum view_category)i);

		if (left_ns || right_ns)
			append_row(page, (struct ops_string){name, strlen(name)}, left_ns, right_ns);
	}
}

/* What says nothing beside others of its kind is left out (13): "Linear_0" of "nn.Module: Linear_0", "Optimizer.step" of
 * "Optimizer.step#SGD.step". */
static struct ops_string short_name(struct ops_string name)
{
	static const char *const prefixes[] = {"enumerate(DataLoader)#", "enumerate(DataPipe)#", "nn.Module: "};
	const char *class_name = NULL;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (ops_begins_with(name.bytes, name.size, prefixes[i]))
			return (struct ops_string){name.bytes + strlen(prefixes[i]), name.size - strlen(prefixes[i])};
	if (ops_begins_with(name.bytes, name.size, "Optimizer."))
		class_name = memchr(name.bytes, '#', name.size);
	return class_name ? (struct ops_string){name.bytes, (size_t)(class_name - name.bytes)} : name;
}

/* That of the side that has one. */
static struct ops_string name_of(const struct view_diff_pair *pair)
{
	return pair->sides[strncmp(pair->sides[0].name.bytes, "Blank", 5) == 0].name;
}

void view_diff_write_text(const struct view_diff *diff, bool markdown, size_t columns, struct ops_buffer *out)
{
	const struct page page = {out, markdown, (!columns ? COLUMNS : columns < COLUMNS_MIN ? COLUMNS_MIN : columns) - BESIDE_NAMES};
	const struct view_diff_operator **order = ops_realloc_array(NULL, diff->operators.count + 1, sizeof(*order));

	out->failed |= !order;
	append_verdict(&page, diff);
	append_categories(&page, diff);
	if (diff->pairs.count)
		append_head(&page, "in the steps");
	for (size_t i = 0; i < diff->pairs.count && i < ROWS_MAX; i++) {
		const struct view_diff_pair *pair = &diff->pairs.items[i];

		append_row(&page, short_name(name_of(pair)), pair->sides[0].total_ns, pair->sides[1].total_ns);
	}
	append_head(&page, "operators that changed most (self)");
	for (size_t i = 0; order && i < diff->operators.count; i++)
		order[i] = &diff->operators.items[i];
	if (order && diff->operators.count)
		qsort(order, diff->operators.count, sizeof(*order), compare);
	for (size_t i = 0; order && i < diff->operators.count && i < ROWS_MAX && change_ns(order[i]); i++)
		append_row(&page, order[i]->name, operator_ns(order[i], 0), operator_ns(order[i], 1));
	ops_free(order);
}

/* --- CSV ------------------------------------------------------------------------------------------------------------ */

static void put_change(struct result_table *table, const char *view, struct ops_string name, int64_t base_ns, int64_t new_ns)
{
	result_text(table, (struct ops_string){view, strlen(view)});
	result_text(table, name);
	result_time(table, base_ns);
	result_time(table, new_ns);
	result_number(table, base_ns ? result_round(100 * ((double)new_ns / (double)base_ns - 1), 2) : (double)NAN);
}

void view_diff_write_csv(const struct view_diff *diff, struct ops_buffer *out)
{
	struct result result;
	struct result_table *table = &result.table;

	result_init(&result);
	RESULT_COLUMNS(table, {"view", RESULT_TEXT}, {"name", RESULT_TEXT}, {"base_us", RESULT_TIME},
	               {"new_us", RESULT_TIME}, {"change_percent", RESULT_NUMBER});
	if (diff->steps[0].steps && diff->steps[1].steps)
		put_change(table, "average step", (struct ops_string){"total", 5}, (int64_t)diff->steps[0].mean_ns,
		           (int64_t)diff->steps[1].mean_ns);
	for (size_t i = 0; i < diff->pairs.count; i++)
		put_change(table, "in the steps", name_of(&diff->pairs.items[i]), diff->pairs.items[i].sides[0].total_ns,
		           diff->pairs.items[i].sides[1].total_ns);
	for (size_t i = 0; i < diff->operators.count; i++) {
		const struct view_diff_operator *operator = &diff->operators.items[i];

		put_change(table, "operator", operator->name, operator_ns(operator, 0), operator_ns(operator, 1));
	}
	out->failed |= !result_write(&result, OPS_ANALYSIS_CSV, out);
	result_release(&result);
}

enum ops_code ops_diff(const struct ops_trace *base, const struct ops_trace *experiment,
                       const struct ops_diff_options *options, char **ret_text, size_t *ret_size,
                       struct ops_diff_verdict *ret_verdict, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct view_diff diff;
	bool done = view_diff_init(&diff, base, experiment, options);
	enum ops_diff_format format = options ? options->format : OPS_DIFF_JSON;
	enum ops_code code;

	if (done && format == OPS_DIFF_JSON)
		view_diff_write_json(&diff, &out);
	else if (done && format == OPS_DIFF_CSV)
		view_diff_write_csv(&diff, &out);
	else if (done)
		view_diff_write_text(&diff, format == OPS_DIFF_MARKDOWN, options ? options->columns : 0, &out);
	out.failed |= !done;
	code = ops_buffer_give(&out, OPS_OK, ret_text, ret_size, error);
	if (!code && ret_verdict)
		*ret_verdict = diff.verdict;
	view_diff_release(&diff);
	return code;
}
