/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps on a page of text: how long they take, where the time of an average step goes, its phases, and which
 * steps are slow.
 */
#include "analyze/views/view_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/format.h"
#include "analyze/views/view_step_stats.h"
#include "base/escape.h"

#define BAR_WIDTH_MAX 30
#define BESIDE_CAUSES 53 /* columns that are not for what a slow step has more of */
#define CAUSE_WIDTH_MAX 47 /* of its name; figures far from it are hard to read */

/* "13 steps: median 1.841 ms, mean 1.921 ms, p95 5.400 ms", and the range. */
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
	ops_format_duration(mean, view_step_average_ns(views, VIEW_TIME_COUNT));
	ops_format_duration(median, stats->median_ns);
	ops_format_duration(p95, stats->p95_ns);
	if (views->unmarked)
		snprintf(title, sizeof(title), "whole recording: %s", mean);
	else if (count == 1)
		snprintf(title, sizeof(title), "1 step: %s", mean);
	else
		snprintf(title, sizeof(title), "%zu steps: median %s, mean %s, p95 %s", count, median, mean, p95);
	page_title(page, title);
	ops_format_duration(least, least_ns);
	ops_format_duration(most, most_ns);
	if (count > 1)
		ops_buffer_printf(&page->out, page->markdown ? "From %s to %s." : "\nfrom %s to %s", least, most);
	if (views->left_out)
		ops_buffer_printf(&page->out, page->markdown ? " %zu more at the end left out: work of a device is missing." :
		                                               "\n%zu more at the end left out: work of a device is missing",
		                  views->left_out);
}

/* A busy machine makes times longer; that is said before any of them. */
static void put_waits(struct page *page, const struct view_step_stats *stats)
{
	bool much = stats->waited_ratio > VIEW_WAITED_MUCH;

	if (!stats->has_waits)
		return;
	ops_buffer_append_text(&page->out, page->markdown ? " " : "\n");
	page_begin(page, much ? PAGE_WARNING : PAGE_PLAIN);
	ops_buffer_printf(&page->out, "%swaited for a CPU: %.1f %% of the steps' time%s%s", much ? "warning: " : "", 100 * stats->waited_ratio,
	                  much ? ", because other threads had it; times are too long" : "", page->markdown ? "." : "");
	page_end(page, much ? PAGE_WARNING : PAGE_PLAIN);
}

static void view_text_steps_put_part(struct page *page, const char *title, const char *time, double share)
{
	if (page->markdown)
		ops_buffer_printf(&page->out, "| %s | %s | %.1f %% | ", title, time, 100 * share);
	else
		ops_buffer_printf(&page->out, "  %-14s %*s %5.1f %% ", title, ops_field_width(time, 14), time, 100 * share);
}

static void put_breakdown(struct page *page)
{
	const struct ops_views *views = page->views;
	double total_ns = view_step_average_ns(views, VIEW_TIME_COUNT);
	size_t bar = page->columns - 40 < BAR_WIDTH_MAX ? page->columns - 40 : BAR_WIDTH_MAX; /* next to names and numbers */
	char time[OPS_FORMAT_ROOM];

	ops_buffer_append_text(&page->out, page->markdown ? "\n\n| | time | share | |\n|---|--:|--:|---|\n" : "\n");
	for (int category = 0; category < VIEW_TIME_COUNT; category++) {
		double time_ns = view_step_shown_average_ns(views, (enum view_category)category);

		if (!(time_ns > 0))
			continue;
		ops_format_duration(time, time_ns);
		view_text_steps_put_part(page, view_category_title((enum view_category)category), time, time_ns / total_ns);
		page_bar(page, time_ns / total_ns, (int)bar);
		ops_buffer_append_text(&page->out, page->markdown ? " |\n" : "\n");
	}
}

/* --- phases --------------------------------------------------------------------------------------------------------- */

static void put_phase(struct page *page, const struct view_step_phases *phases, int phase, bool devices)
{
	char time[OPS_FORMAT_ROOM], device[OPS_FORMAT_ROOM];
	double share = phases->host_ns[phase] / phases->total_ns;

	ops_format_duration(time, phases->host_ns[phase]);
	ops_format_duration(device, phases->device_ns[phase]);
	view_text_steps_put_part(page, ops_phase_title((enum ops_phase)phase), time, share);
	if (devices && page->markdown)
		ops_buffer_printf(&page->out, "%s | ", device);
	else if (devices)
		ops_buffer_printf(&page->out, "%*s ", ops_field_width(device, 14), device);
	page_bar(page, share, (int)(page->columns - 56 < BAR_WIDTH_MAX / 2 ? page->columns - 56 : BAR_WIDTH_MAX / 2));
	ops_buffer_append_text(&page->out, page->markdown ? " |\n" : "\n");
}

static void view_text_steps_put_phases(struct page *page, const struct view_step_phases *phases)
{
	bool devices = page->views->device_events.count > 0;

	if (!phases->known || !(phases->total_ns > 0))
		return;
	page_title(page, page->views->unmarked ? "phases, on the host" : "phases of a step, on the host");
	if (page->markdown)
		ops_buffer_append_text(&page->out, devices ? "| | time | share | launched device work | |\n|---|--:|--:|--:|---|\n"
		                                           : "| | time | share | |\n|---|--:|--:|---|\n");
	else
		ops_buffer_append_text(&page->out, devices ? "                     launches\n" : "\n");
	for (int phase = 0; phase < OPS_PHASE_COUNT; phase++)
		if (phases->host_ns[phase] > 0)
			put_phase(page, phases, phase, devices);
}

/* --- slow steps ----------------------------------------------------------------------------------------------------- */

/* What is the program's own name is code in Markdown. */
static void put_more(struct page *page, struct ops_string what, bool is_code, const char *more, const char *usual)
{
	size_t width = page->columns - BESIDE_CAUSES;

	ops_buffer_append_text(&page->out, page->markdown ? "  - " : "      ");
	if (page->markdown && !is_code)
		ops_buffer_append(&page->out, what.bytes, what.size);
	else
		page_name(page, what, width < CAUSE_WIDTH_MAX ? width : CAUSE_WIDTH_MAX, true);
	if (page->markdown)
		ops_buffer_printf(&page->out, ": +%s (%s)\n", more, usual);
	else
		ops_buffer_printf(&page->out, " +%*s (%s)\n", ops_field_width(more, -12), more, usual);
}

static void put_cause(struct page *page, const struct view_cause *cause)
{
	char more[OPS_FORMAT_ROOM], value[OPS_FORMAT_ROOM], usual[OPS_FORMAT_ROOM], text[3 * OPS_FORMAT_ROOM];

	if (cause->is_count) {
		snprintf(more, sizeof(more), "%.0f", cause->value - cause->typical);
		snprintf(text, sizeof(text), "%.0f, usually %.0f", cause->value, cause->typical);
	} else {
		ops_format_duration(more, cause->value - cause->typical);
		ops_format_duration(value, cause->value);
		ops_format_duration(usual, cause->typical);
		snprintf(text, sizeof(text), "%s, usually %s", value, usual);
	}
	put_more(page, (struct ops_string){cause->title, strlen(cause->title)}, false, more, text);
}

static void put_excess(struct page *page, const struct view_excess *excess)
{
	char more[OPS_FORMAT_ROOM], text[OPS_FORMAT_ROOM];

	ops_format_duration(more, excess->self_ns - excess->typical_self_ns);
	snprintf(text, sizeof(text), "%.0f call%s, usually %.3g", excess->calls, excess->calls == 1 ? "" : "s", excess->typical_calls);
	put_more(page, ops_trace_string(page->views->trace, excess->name), true, more, text);
}

static void put_outliers(struct page *page, const struct view_step_stats *stats)
{
	if (!stats->outlier_count)
		return;
	page_title(page, "slow steps, and what they have more of");
	ops_buffer_append_text(&page->out, page->markdown ? "" : "\n");
	for (size_t i = 0; i < stats->outlier_count; i++) {
		const struct view_outlier *outlier = &stats->outliers[i];
		const struct view_step *step = &page->views->steps.items[outlier->step];
		char time[OPS_FORMAT_ROOM], over[OPS_FORMAT_ROOM];

		ops_format_duration(time, (double)view_step_shown_ns(step, VIEW_TIME_COUNT));
		ops_format_duration(over, outlier->over_ns);
		ops_buffer_printf(&page->out, "%sstep ", page->markdown ? "- " : "  ");
		ops_plain_append(&page->out, step->name.bytes, step->name.size);
		ops_buffer_printf(&page->out, ": %s, %s more than the median\n", time, over);
		for (size_t j = 0; j < outlier->cause_count; j++)
			put_cause(page, &outlier->causes[j]);
		for (size_t j = 0; j < outlier->excess_count; j++)
			put_excess(page, &outlier->excesses[j]);
	}
	if (stats->outliers_in_all > stats->outlier_count)
		ops_buffer_printf(&page->out, "%s%zu more slow steps\n", page->markdown ? "\nand " : "and ",
		                  stats->outliers_in_all - stats->outlier_count);
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
