/* SPDX-License-Identifier: Apache-2.0
 *
 * A diff as text and as CSV: the verdict, the parts of a step, and the operators and kernels whose time per step
 * changed most.
 */
#include <opstrobe/internal/views.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/format.h"
#include "analyze/tables.h"
#include "analyze/views/view_diff_write.h"
#include "analyze/views/view_step_stats.h"
#include "base/alloc.h"
#include "base/array.h"

#define ROWS_MAX 15
#define COLUMNS 80 /* default width of a page */

/* A page while it is written. */
struct page {
	struct ops_buffer *out;
	bool markdown;
	size_t columns;
};

/* A row of a table: figures of one step on both sides, and of all steps together. */
struct change {
	struct ops_string name;
	double values[2];
	int64_t total_ns[2];
	const char *view; /* first column of CSV */
};

struct changes {
	struct change *items;
	size_t count;
	size_t capacity;
};

static double view_diff_text_size_of(const struct change *change)
{
	return fabs(change->values[1] - change->values[0]);
}

static int view_diff_text_compare(const void *a, const void *b)
{
	double left = view_diff_text_size_of(a), right = view_diff_text_size_of(b);

	if (left != right)
		return left < right ? 1 : -1;
	return a < b ? -1 : a > b;
}

RESULT_GETTER(get_base, struct change, integer, llround(row->values[0]))
RESULT_GETTER(get_new, struct change, integer, llround(row->values[1]))

static double change_percent(const struct change *change)
{
	if (change->values[0] > 0)
		return result_round(100 * (change->values[1] / change->values[0] - 1), 2);
	return change->values[1] > 0 ? (double)NAN : 0;
}
RESULT_GETTER(get_change, struct change, number, change_percent(row))

#define IN_CSV 1u
#define CSV_ONLY .option = IN_CSV, .when = "in CSV"
static const struct result_column change_columns[] = {
	{.name = "view", .type = RESULT_TEXT, .title = "View", .about = "What the row is of", CSV_ONLY, RESULT_FIELD(struct change, view)},
	{.name = "name", .type = RESULT_TEXT, .title = "Name", .about = "Name of the part of a step, the operator or the kernel",
	 RESULT_FIELD(struct change, name)},
	{.name = "base_us", .type = RESULT_TIME, .title = "base", .about = "Time per step in the first trace", .get = get_base},
	{.name = "new_us", .type = RESULT_TIME, .title = "new", .about = "Time per step in the second trace", .get = get_new},
	{.name = "change_percent", .type = RESULT_CHANGE, .title = "change", .about = "Change of the time per step; null without a base",
	 .get = get_change},
	{.name = "base_total_us", .type = RESULT_TIME, .title = "Base total", .about = "Time of all steps", CSV_ONLY,
	 RESULT_FIELD(struct change, total_ns[0])},
	{.name = "new_total_us", .type = RESULT_TIME, .title = "New total", .about = "Time of all steps", CSV_ONLY,
	 RESULT_FIELD(struct change, total_ns[1])},
};
const struct result_declaration table_diff =
	RESULT_DECLARATION("diff", "A part of the steps, an operator or a kernel of two traces", change_columns);

/* Writes a table and releases it. */
static void view_diff_text_write_table(struct page *page, struct result_table *table)
{
	ops_buffer_append_text(page->out, "\n");
	page->out->failed |= !result_table_write(table, page->markdown ? OPS_FORMAT_MARKDOWN : OPS_FORMAT_TEXT, page->columns,
	                                         page->out);
	result_table_release(table);
}

static void append_table(struct page *page, const char *title, const struct changes *list, size_t count)
{
	struct result_table table = {0};

	result_declare(&table, &table_diff, 0);
	if (table.columns.count)
		table.columns.items[0].title = title;
	for (size_t i = 0; i < count; i++)
		result_add(&table, &list->items[i]);
	result_table_cut(&table, ROWS_MAX);
	view_diff_text_write_table(page, &table);
}

/* Returns whether neither trace has steps, so that each counts as one. */
static bool is_of_recordings(const struct view_diff *diff)
{
	return !diff->counted[0] && !diff->counted[1];
}

static const char *typical_title(const struct view_diff *diff)
{
	return is_of_recordings(diff) ? "whole recording" : "median step";
}

static const char *average_title(const struct view_diff *diff)
{
	return is_of_recordings(diff) ? "whole recording" : "average step";
}

static const char *parts_title(const struct view_diff *diff)
{
	return is_of_recordings(diff) ? "in the recording" : "in the steps";
}

/* Writes how many steps a verdict is from: "(noise 2.1 %, 5 and 5 steps)". */
static void append_step_counts(const struct page *page, const struct view_diff *diff, const char *before)
{
	if (!is_of_recordings(diff))
		ops_buffer_printf(page->out, " (%s%zu and %zu steps)", before, diff->steps[0].steps, diff->steps[1].steps);
	ops_buffer_append_text(page->out, "\n");
}

static void append_verdict(const struct page *page, const struct view_diff *diff)
{
	const char *bold = page->markdown ? "**" : "";
	char left[OPS_FORMAT_ROOM], right[OPS_FORMAT_ROOM], noise[OPS_FORMAT_ROOM + 16];
	struct ops_buffer *out = page->out;

	if (!diff->steps[0].steps || !diff->steps[1].steps) {
		ops_buffer_printf(out, "%sno steps to compare%s\n", bold, bold);
		return;
	}
	ops_format_duration(left, diff->steps[0].median_ns);
	ops_format_duration(right, diff->steps[1].median_ns);
	ops_buffer_printf(out, "%s%s: %s -> %s, %s%s", bold, typical_title(diff), left, right,
	                  ops_figure_of_change(100 * diff->verdict.change_ratio).text, bold);
	if (diff->verdict.undecided) {
		append_step_counts(page, diff, "");
		ops_buffer_printf(out, "no verdict: %s\n", diff->verdict.undecided);
		return;
	}
	snprintf(noise, sizeof(noise), "noise %s, ", ops_figure_of_percent(100 * diff->verdict.noise_ratio).text);
	append_step_counts(page, diff, noise);
	ops_buffer_printf(out, "%s\n", diff->verdict.regression ? "regression" : diff->verdict.change_ratio > 0 && diff->verdict.noise_ratio >= diff->verdict.change_ratio ?
	                  "no regression: steps differ as much without a change" : "no regression");
}

static int64_t steps_ns(const struct ops_views *views)
{
	int64_t ns = 0;

	for (size_t i = view_averaged_from(views); i < views->steps.count; i++)
		view_add(&ns, ops_difference(views->steps.items[i].end_ns, views->steps.items[i].start_ns));
	return ns;
}

/* Writes what the times in the tables refer to. */
static void view_diff_text_append_base(const struct page *page, const struct view_diff *diff)
{
	char left[OPS_FORMAT_ROOM], right[OPS_FORMAT_ROOM];

	if (page->markdown)
		ops_buffer_append_text(page->out, "\n");
	if (is_of_recordings(diff)) {
		ops_buffer_append_text(page->out, "Times are totals of the traces.\n");
		return;
	}
	ops_format_duration(left, (double)steps_ns(diff->views[0]));
	ops_format_duration(right, (double)steps_ns(diff->views[1]));
	ops_buffer_printf(page->out, "all steps: %s -> %s\n%sTimes below are per step.", left, right, page->markdown ? "\n" : "");
	for (int side = 0; side < 2; side++)
		if (!diff->counted[side])
			ops_buffer_printf(page->out, " The %s trace has no steps and counts as one.", side ? "new" : "base");
	ops_buffer_append_text(page->out, "\n");
	for (int side = 0; side < 2; side++) {
		const struct ops_views *views = diff->views[side];

		if (!view_averaged_from(views))
			continue;
		ops_format_duration(left, (double)view_step_shown_ns(&views->steps.items[0], VIEW_TIME_COUNT));
		ops_buffer_printf(page->out, "The first step of %s takes %s and is left out.\n", side ? "new" : "base", left);
	}
}

/* Warns if a side was recorded on a busy machine, which makes times longer. */
static void view_diff_text_append_waits(const struct page *page, const struct view_diff *diff)
{
	double left = diff->steps[0].waited.ratio, right = diff->steps[1].waited.ratio;

	if (!view_waited_distorts(diff->steps[0].waited) && !view_waited_distorts(diff->steps[1].waited))
		return;
	ops_buffer_append_text(page->out, page->markdown ? "\n" : "");
	ops_buffer_append_text(page->out, is_of_recordings(diff) ? "warning: recordings waited for a CPU:" : "warning: steps waited for a CPU:");
	if (!isnan(left))
		ops_buffer_printf(page->out, " %s of their time in base%s", ops_figure_of_percent(100 * left).text, isnan(right) ? "" : ",");
	if (!isnan(right))
		ops_buffer_printf(page->out, " %s of their time in new", ops_figure_of_percent(100 * right).text);
	ops_buffer_append_text(page->out, "; times are too long\n");
}

/* Collects the parts of the average step that take time on either side. */
static bool gather_categories(const struct view_diff *diff, struct changes *changes)
{
	bool done = true;

	for (int i = 0; done && diff->steps[0].steps && diff->steps[1].steps && i < VIEW_TIME_COUNT; i++) {
		const char *name = view_category_title((enum view_category)i);
		struct change change = {.name = {name, strlen(name)}};

		for (int side = 0; side < 2; side++)
			change.values[side] = view_step_shown_average_ns(diff->views[side], (enum view_category)i);
		if (change.values[0] < 1 && change.values[1] < 1)
			continue;
		done = OPS_ARRAY_APPEND(changes, change);
	}
	return done;
}

static bool gather_rows(const struct view_diff *diff, const struct view_diff_rows *rows, enum view_diff_time time,
                        struct changes *changes)
{
	bool done = true;

	for (size_t i = 0; done && i < rows->count; i++) {
		int64_t base_ns = rows->items[i].sides[0].ns[time], new_ns = rows->items[i].sides[1].ns[time];

		done = OPS_ARRAY_APPEND(changes, (struct change){rows->items[i].name,
		                                                 {view_diff_per_step(diff, 0, (double)base_ns),
		                                                  view_diff_per_step(diff, 1, (double)new_ns)},
		                                                 {base_ns, new_ns}, NULL});
	}
	return done;
}

struct tables {
	struct changes categories, parts, modules, host, device, kernels;
	struct changes host_parts, host_modules; /* if rows have device time; the times of `parts` and `modules` are of either */
};

static bool diff_has_device_time(const struct view_diff_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		if (rows->items[i].sides[0].ns[VIEW_DIFF_DEVICE] || rows->items[i].sides[1].ns[VIEW_DIFF_DEVICE])
			return true;
	return false;
}

static bool view_diff_text_gather(const struct view_diff *diff, struct tables *tables)
{
	return gather_categories(diff, &tables->categories) &&
	       gather_rows(diff, &diff->parts, VIEW_DIFF_TOTAL, &tables->parts) &&
	       gather_rows(diff, &diff->modules, VIEW_DIFF_TOTAL, &tables->modules) &&
	       (!diff_has_device_time(&diff->parts) || gather_rows(diff, &diff->parts, VIEW_DIFF_HOST, &tables->host_parts)) &&
	       (!diff_has_device_time(&diff->modules) || gather_rows(diff, &diff->modules, VIEW_DIFF_HOST, &tables->host_modules)) &&
	       gather_rows(diff, &diff->operators, VIEW_DIFF_HOST_SELF, &tables->host) &&
	       gather_rows(diff, &diff->operators, VIEW_DIFF_DEVICE_SELF, &tables->device) &&
	       gather_rows(diff, &diff->kernels, VIEW_DIFF_TOTAL, &tables->kernels);
}

static void view_diff_text_release(struct tables *tables)
{
	OPS_ARRAY_RELEASE(&tables->categories);
	OPS_ARRAY_RELEASE(&tables->parts);
	OPS_ARRAY_RELEASE(&tables->modules);
	OPS_ARRAY_RELEASE(&tables->host_parts);
	OPS_ARRAY_RELEASE(&tables->host_modules);
	OPS_ARRAY_RELEASE(&tables->host);
	OPS_ARRAY_RELEASE(&tables->device);
	OPS_ARRAY_RELEASE(&tables->kernels);
}

/* Writes the largest changes; nothing if there are none. */
static void append_changes(struct page *page, const char *title, struct changes *changes)
{
	size_t shown = 0;

	OPS_ARRAY_SORT(changes, view_diff_text_compare);
	while (shown < changes->count && view_diff_text_size_of(&changes->items[shown]) > 0)
		shown++;
	if (shown)
		append_table(page, title, changes, shown);
}

/* Writes the rows, or only what changes, and again by host time if `host` has it: the first are then times on the device. */
static void append_times(struct page *page, const char *title, bool is_only_changes, struct changes *rows, struct changes *host)
{
	struct changes *const lists[] = {rows, host};
	char titles[2][64];

	snprintf(titles[0], sizeof(titles[0]), host->count ? "%s, device time if any" : "%s", title);
	snprintf(titles[1], sizeof(titles[1]), "%s, CPU time", title);
	for (size_t i = 0; i < 2; i++) {
		if (is_only_changes)
			append_changes(page, titles[i], lists[i]);
		else if (lists[i]->count)
			append_table(page, titles[i], lists[i], lists[i]->count);
	}
}

/* --- memory --------------------------------------------------------------------------------------------------------- */

static const struct result_column memory_columns[] = {
	{.name = "name", .type = RESULT_TEXT, .title = "memory", RESULT_FIELD(struct change, name)},
	{.name = "base_bytes", .type = RESULT_BYTES, .title = "base", .get = get_base},
	{.name = "new_bytes", .type = RESULT_BYTES, .title = "new", .get = get_new},
	{.name = "change_percent", .type = RESULT_CHANGE, .title = "change", .get = get_change},
};

/* Writes the peak of each device, and the bytes that a step allocates. */
static void append_memory(struct page *page, const struct view_diff *diff)
{
	struct result_table table = {.copies = true};

	if (!diff->memory.count)
		return;
	RESULT_DECLARED(&table, memory_columns);
	for (size_t i = 0; i < diff->memory.count; i++) {
		const struct view_diff_memory *memory = &diff->memory.items[i];
		char device[OPS_MEMORY_DEVICE_ROOM], peak[OPS_MEMORY_DEVICE_ROOM + 32], allocated[OPS_MEMORY_DEVICE_ROOM + 32];

		ops_memory_device_title(memory->device, device);
		snprintf(peak, sizeof(peak), "peak of %s", device);
		snprintf(allocated, sizeof(allocated), "allocated on %s", device);
		result_add(&table, &(struct change){.name = {peak, strlen(peak)},
		                                     .values = {(double)memory->peak_bytes[0], (double)memory->peak_bytes[1]}});
		result_add(&table, &(struct change){.name = {allocated, strlen(allocated)},
		                                     .values = {view_diff_per_step(diff, 0, (double)memory->allocated_bytes[0]),
		                                                view_diff_per_step(diff, 1, (double)memory->allocated_bytes[1])}});
	}
	view_diff_text_write_table(page, &table);
}

/* --- text ----------------------------------------------------------------------------------------------------------- */

void view_diff_write_text(const struct view_diff *diff, bool markdown, size_t columns, struct ops_buffer *out)
{
	struct page page = {out, markdown, columns ? columns : COLUMNS};
	struct tables tables = {0};

	out->failed |= !view_diff_text_gather(diff, &tables);
	append_verdict(&page, diff);
	view_diff_text_append_base(&page, diff);
	view_diff_text_append_waits(&page, diff);
	if (tables.categories.count)
		append_table(&page, average_title(diff), &tables.categories, tables.categories.count);
	append_times(&page, parts_title(diff), false, &tables.parts, &tables.host_parts);
	append_times(&page, "modules", true, &tables.modules, &tables.host_modules);
	append_changes(&page, "operators, self CPU time", &tables.host);
	append_changes(&page, "operators, self device time", &tables.device);
	append_changes(&page, "kernels", &tables.kernels);
	append_memory(&page, diff);
	view_diff_text_release(&tables);
}

/* --- CSV ------------------------------------------------------------------------------------------------------------ */

static void put_change(struct result_table *table, const char *view, const struct change *change)
{
	struct change row = *change;

	row.view = view;
	result_add(table, &row);
}

static void put_changes(struct result_table *table, const char *view, const struct changes *changes)
{
	for (size_t i = 0; i < changes->count; i++)
		if (changes->items[i].total_ns[0] || changes->items[i].total_ns[1])
			put_change(table, view, &changes->items[i]);
}

void view_diff_write_csv(const struct view_diff *diff, struct ops_buffer *out)
{
	struct result result;
	struct result_table *table = &result.table;
	struct tables tables = {0};

	result_init(&result);
	result_declare(table, &table_diff, IN_CSV);
	out->failed |= !view_diff_text_gather(diff, &tables);
	if (diff->steps[0].steps && diff->steps[1].steps)
		put_change(table, typical_title(diff),
		           &(struct change){{"total", 5}, {diff->steps[0].median_ns, diff->steps[1].median_ns},
		                            {steps_ns(diff->views[0]), steps_ns(diff->views[1])}, NULL});
	put_changes(table, parts_title(diff), &tables.parts);
	put_changes(table, "module", &tables.modules);
	put_changes(table, "operator host self", &tables.host);
	put_changes(table, "operator device self", &tables.device);
	put_changes(table, "kernel", &tables.kernels);
	out->failed |= !result_write(&result, OPS_FORMAT_CSV, out);
	result_release(&result);
	view_diff_text_release(&tables);
}

enum ops_code ops_diff(const struct ops_trace *base, const struct ops_trace *experiment,
                       const struct ops_diff_options *options, char **ret_text, size_t *ret_size,
                       struct ops_diff_verdict *ret_verdict, struct ops_error *error)
{
	struct ops_buffer out = {0};
	struct view_diff diff;
	bool done = view_diff_init(&diff, base, experiment, options);
	enum ops_format format = options ? options->format : OPS_FORMAT_JSON;
	enum ops_code code;

	if (done && format == OPS_FORMAT_JSON)
		view_diff_write_json(&diff, &out);
	else if (done && format == OPS_FORMAT_CSV)
		view_diff_write_csv(&diff, &out);
	else if (done)
		view_diff_write_text(&diff, format == OPS_FORMAT_MARKDOWN, options ? options->columns : 0, &out);
	out.failed |= !done;
	code = ops_buffer_detach(&out, OPS_OK, ret_text, ret_size, error);
	if (!code && ret_verdict)
		*ret_verdict = diff.verdict;
	view_diff_release(&diff);
	return code;
}
