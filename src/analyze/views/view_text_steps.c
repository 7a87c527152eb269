/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps on a page of text: their durations, the parts of an average step, its phases, and slow steps.
 */
#include "analyze/views/view_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/format.h"
#include "analyze/views/view_step_stats.h"
#include "base/escape.h"
#include "base/text.h"
#include "derive/modules.h"

static const char *step_word(const struct ops_views *views)
{
	return views->host_steps->source == OPS_STEPS_ITERATIONS ? "iteration" : "step";
}

/* Writes "decode 12: median 1.841 ms, p95 2.400 ms". */
static void put_kinds(struct page *page, const struct view_step_stats *stats)
{
	char median[OPS_FORMAT_ROOM], p95[OPS_FORMAT_ROOM];

	for (int kind = OPS_ITERATION_NONE + 1; kind < OPS_ITERATION_KIND_COUNT; kind++) {
		const struct view_step_kind *of = &stats->kinds[kind];

		if (!of->count)
			continue;
		ops_format_duration(median, of->median_ns);
		ops_format_duration(p95, of->p95_ns);
		ops_buffer_printf(&page->out, page->markdown ? " %s: %zu, median %s, p95 %s." : "\n  %-8s %5zu: median %s, p95 %s",
		                  ops_iteration_kind_name((enum ops_iteration_kind)kind), of->count, median, p95);
	}
}

/* Names the first step if the figures of all steps leave it out. */
static void put_apart(struct page *page)
{
	const struct view_step *first = page->views->steps.items;
	char time[OPS_FORMAT_ROOM];

	if (!view_averaged_from(page->views))
		return;
	ops_format_duration(time, (double)view_step_shown_ns(first, VIEW_TIME_COUNT));
	ops_buffer_printf(&page->out, page->markdown ? " The first step, " : "\nthe first step, ");
	page_name(page, first->name, 20, false);
	ops_buffer_printf(&page->out, ", takes %s; median, mean and p95 leave it out%s", time, page->markdown ? "." : "");
}

/* Writes "13 steps: median 1.841 ms, mean 1.921 ms, p95 5.400 ms", the range, and the kinds of iterations. */
static void put_title(struct page *page, const struct view_step_stats *stats)
{
	const struct ops_views *views = page->views;
	size_t count = views->steps.count;
	double least_ns = INFINITY, most_ns = 0;
	char title[192], mean[OPS_FORMAT_ROOM], median[OPS_FORMAT_ROOM], p95[OPS_FORMAT_ROOM], least[OPS_FORMAT_ROOM],
		most[OPS_FORMAT_ROOM];

	for (size_t i = 0; i < count; i++) {
		double ns = (double)view_step_shown_ns(&views->steps.items[i], VIEW_TIME_COUNT);

		least_ns = fmin(least_ns, ns);
		most_ns = fmax(most_ns, ns);
	}
	ops_format_duration(mean, view_step_shown_average_ns(views, VIEW_TIME_COUNT));
	ops_format_duration(median, stats->median_ns);
	ops_format_duration(p95, stats->p95_ns);
	if (views->unmarked)
		snprintf(title, sizeof(title), "whole recording: %s", mean);
	else if (count == 1)
		snprintf(title, sizeof(title), "1 %s: %s", step_word(views), mean);
	else
		snprintf(title, sizeof(title), "%zu %ss: median %s, mean %s, p95 %s", count, step_word(views), median, mean, p95);
	page_title(page, title);
	ops_format_duration(least, least_ns);
	ops_format_duration(most, most_ns);
	if (count > 1)
		ops_buffer_printf(&page->out, page->markdown ? "From %s to %s." : "\nfrom %s to %s", least, most);
	put_apart(page);
	if (views->left_out)
		ops_buffer_printf(&page->out, page->markdown ? " %zu more at the end left out: work of a device is missing." :
		                                               "\n%zu more at the end left out: work of a device is missing",
		                  views->left_out);
	put_kinds(page, stats);
}

/* A busy machine makes times longer, so this precedes them. */
static void put_waits(struct page *page, const struct view_step_stats *stats)
{
	bool much = view_waited_distorts(stats->waited);

	if (!stats->has_waits)
		return;
	ops_buffer_append_text(&page->out, page->markdown ? " " : "\n");
	page_begin(page, much ? PAGE_WARNING : PAGE_PLAIN);
	ops_buffer_printf(&page->out, "%swaited for a CPU: %s of the %s time", much ? "warning: " : "", ops_figure_of_percent(100 * stats->waited.ratio).text,
	                  page->views->unmarked ? "recording's" : "steps'");
	if (stats->waited.ratio > VIEW_WAITED_MUCH)
		ops_buffer_printf(&page->out, ", because %s had it", view_waited_for(stats->waited));
	ops_buffer_append_text(&page->out, much ? "; times are too long" : "");
	ops_buffer_append_text(&page->out, page->markdown ? "." : "");
	page_end(page, much ? PAGE_WARNING : PAGE_PLAIN);
}

/* --- categories and phases ------------------------------------------------------------------------------------------ */

#define WITH_DEVICES 1u
static const struct result_column part_columns[] = {
	{.name = "name", .type = RESULT_TEXT, PAGE_FIELD(name)},
	{.name = "time", .type = RESULT_TIME, PAGE_FIELD(first_ns)},
	{.name = "share", .type = RESULT_PERCENT, PAGE_FIELD(percent)},
	{.name = "launches", .type = RESULT_TIME, .title = "launched work", .option = WITH_DEVICES, PAGE_FIELD(second_ns)},
	{.name = "bar", .type = RESULT_BAR, .title = "", PAGE_FIELD(bar)},
};
static const struct result_declaration part_table = RESULT_DECLARATION("parts", "A part of a step", part_columns);

static void view_text_steps_add_part(struct result_table *table, const char *title, double ns, double of_ns, double device_ns)
{
	if (ns > 0)
		result_add(table, &(struct page_row){.name = ops_string_of(title), .first_ns = llround(ns), .second_ns = llround(device_ns),
		                                     .percent = 100 * ns / of_ns, .bar = ns / of_ns});
}

static void put_breakdown(struct page *page)
{
	const struct ops_views *views = page->views;
	double total_ns = view_step_shown_average_ns(views, VIEW_TIME_COUNT);
	struct result_table table = {0};

	ops_buffer_append_text(&page->out, "\n"); /* ends the line of times */
	result_declare(&table, &part_table, 0);
	for (int category = 0; category < VIEW_TIME_COUNT; category++)
		view_text_steps_add_part(&table, view_category_title((enum view_category)category),
		         view_step_shown_average_ns(views, (enum view_category)category), total_ns, 0);
	page_table(page, views->unmarked ? "parts" : "average step", &table, 0);
}

static void view_text_steps_put_phases(struct page *page, const struct view_step_phases *phases)
{
	struct result_table table = {0};

	if (!phases->known || !(phases->total_ns > 0))
		return;
	result_declare(&table, &part_table, page->views->device_events.count ? WITH_DEVICES : 0);
	for (int phase = 0; phase < OPS_PHASE_COUNT; phase++)
		view_text_steps_add_part(&table, ops_phase_title((enum ops_phase)phase), phases->host_ns[phase], phases->total_ns,
		                         phases->device_ns[phase]);
	page_table(page, page->views->unmarked ? "phases, on the host" : "phases of a step, on the host", &table, 0);
}

/* --- slow steps ----------------------------------------------------------------------------------------------------- */

static const struct result_column cause_columns[] = {
	{.name = "name", .type = RESULT_TEXT, PAGE_FIELD(name)},
	{.name = "more", .type = RESULT_FIGURE, PAGE_FIELD(more)},
	{.name = "here", .type = RESULT_FIGURE, PAGE_FIELD(value)},
	{.name = "usually", .type = RESULT_FIGURE, PAGE_FIELD(usual)},
};

static void add_more(struct result_table *table, struct ops_string name, const char *more, const char *value, const char *usual)
{
	result_add(table, &(struct page_row){.name = name, .more = ops_string_of(more), .value = ops_string_of(value),
	                                     .usual = ops_string_of(usual)});
}

static void add_more_time(struct result_table *table, const char *name, double value_ns, double usual_ns)
{
	char more[OPS_FORMAT_ROOM], value[OPS_FORMAT_ROOM], usual[OPS_FORMAT_ROOM];

	ops_format_duration(more, value_ns - usual_ns);
	ops_format_duration(value, value_ns);
	ops_format_duration(usual, usual_ns);
	add_more(table, ops_string_of(name), more, value, usual);
}

static void add_cause(struct result_table *table, const struct view_cause *cause)
{
	char more[OPS_FORMAT_ROOM], value[OPS_FORMAT_ROOM], usual[OPS_FORMAT_ROOM];

	if (!cause->is_count) {
		add_more_time(table, cause->title, cause->value, cause->typical);
		return;
	}
	ops_format_number(more, cause->value - cause->typical);
	ops_format_number(value, cause->value);
	ops_format_number(usual, cause->typical);
	add_more(table, ops_string_of(cause->title), more, value, usual);
}

static void add_excess(const struct page *page, struct result_table *table, const struct view_excess *excess)
{
	char more[OPS_FORMAT_ROOM], value[OPS_FORMAT_ROOM + 8], usual[OPS_FORMAT_ROOM];

	ops_format_duration(more, excess->self_ns - excess->typical_self_ns);
	snprintf(value, sizeof(value), "%s call%s", ops_figure_of_number(excess->calls).text, excess->calls == 1 ? "" : "s");
	ops_format_number(usual, excess->typical_calls);
	add_more(table, ops_shown_name(page->views->trace, excess->name), more, value, usual);
}

/* Writes for each slow step a table of what it has more of. */
static void put_outliers(struct page *page, const struct view_step_stats *stats)
{
	for (size_t i = 0; i < stats->outlier_count; i++) {
		const struct view_outlier *outlier = &stats->outliers[i];
		const struct view_step *step = &page->views->steps.items[outlier->step];
		double ns = (double)view_step_shown_ns(step, VIEW_TIME_COUNT);
		struct result_table table = {.copies = true};
		struct ops_buffer title = {0};

		ops_buffer_printf(&title, "slow %s ", step_word(page->views));
		ops_plain_append(&title, step->name.bytes, step->name.size);
		ops_buffer_printf(&title, "%s%s", step->kind == OPS_ITERATION_NONE ? "" : ", ", ops_iteration_kind_name(step->kind));
		RESULT_DECLARED(&table, cause_columns);
		add_more_time(&table, "time", ns, ns - outlier->over_ns);
		for (size_t j = 0; j < outlier->cause_count; j++)
			add_cause(&table, &outlier->causes[j]);
		for (size_t j = 0; j < outlier->excess_count; j++)
			add_excess(page, &table, &outlier->excesses[j]);
		page->out.failed |= title.failed;
		page_table(page, ops_buffer_text(&title), &table, 0);
		ops_buffer_release(&title);
	}
	if (stats->outliers_in_all > stats->outlier_count) {
		size_t more = stats->outliers_in_all - stats->outlier_count;

		ops_buffer_printf(&page->out, "\nand %s more slow %s%s\n", ops_figure_of_number((double)more).text,
		                  step_word(page->views), more == 1 ? "" : "s");
	}
}

bool page_steps(struct page *page)
{
	struct view_step_stats stats = {0};
	struct view_step_phases phases;
	bool done;

	if (!page->views->steps.count)
		return true;
	done = view_phases_find(page->views, &phases) && view_step_stats_find(page->views, &phases, &stats);
	if (done) {
		put_title(page, &stats);
		put_waits(page, &stats);
		put_breakdown(page);
		view_text_steps_put_phases(page, &phases);
		put_outliers(page, &stats);
	}
	view_step_stats_release(&stats);
	view_phases_release(&phases);
	return done;
}
