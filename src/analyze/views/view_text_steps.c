/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps on a page of text: how long they take, where the time of an average step goes, and its phases.
 */
#include "analyze/views/view_text.h"

#include <math.h>
#include <stdio.h>

#include "analyze/format.h"
#include "analyze/views/view_phases.h"

#define BAR_WIDTH_MAX 30

static void put_breakdown(struct page *page)
{
	static const char *const names[] = {"kernels", "copies", "fills", "communication", "launch calls",
	                                    "data loading", "operators", "other"};
	const struct ops_views *views = page->views;
	double total_ns = view_step_average_ns(views, VIEW_TIME_COUNT);
	double least_ns = INFINITY, most_ns = 0;
	size_t bar = page->columns - 40 < BAR_WIDTH_MAX ? page->columns - 40 : BAR_WIDTH_MAX; /* beside names and numbers */
	char title[96], time[OPS_FORMAT_ROOM], least[OPS_FORMAT_ROOM], most[OPS_FORMAT_ROOM];

	for (size_t i = 0; i < views->steps.count; i++) {
		double ns = (double)(views->steps.items[i].end_ns - views->steps.items[i].start_ns);

		least_ns = fmin(least_ns, ns);
		most_ns = fmax(most_ns, ns);
	}
	ops_format_duration(time, total_ns);
	if (views->unmarked)
		snprintf(title, sizeof(title), "no steps, %s in all", time);
	else
		snprintf(title, sizeof(title), "%zu step%s, %s each", views->steps.count, views->steps.count == 1 ? "" : "s", time);
	page_title(page, title);
	ops_format_duration(least, least_ns);
	ops_format_duration(most, most_ns);
	if (views->steps.count > 1)
		ops_buffer_printf(&page->out, page->markdown ? "From %s to %s." : " (%s to %s)", least, most);
	if (views->left_out)
		ops_buffer_printf(&page->out, page->markdown ? " %zu more at the end left out: work of a device is missing." :
		                                               "\n%zu more at the end left out: work of a device is missing",
		                  views->left_out);
	ops_buffer_append_text(&page->out, page->markdown ? "\n\n| | time | share | |\n|---|--:|--:|---|\n" : "\n");
	for (int category = 0; category < VIEW_TIME_COUNT; category++) {
		double time_ns = view_step_shown_average_ns(views, (enum view_category)category);

		if (!(time_ns > 0))
			continue;
		ops_format_duration(time, time_ns);
		ops_buffer_printf(&page->out, page->markdown ? "| %s | %s | %.1f %% | " : "  %-14s %14s %5.1f %% ", names[category],
		                  time, 100 * time_ns / total_ns);
		page_bar(page, time_ns / total_ns, (int)bar);
		ops_buffer_append_text(&page->out, page->markdown ? " |\n" : "\n");
	}
}

/* --- phases --------------------------------------------------------------------------------------------------------- */

static void put_phase(struct page *page, const struct view_step_phases *phases, int phase, bool devices)
{
	static const char *const names[] = {"data loading", "forward", "backward", "optimizer", "other"};
	char time[OPS_FORMAT_ROOM], device[OPS_FORMAT_ROOM];
	double share = phases->host_ns[phase] / phases->total_ns;

	ops_format_duration(time, phases->host_ns[phase]);
	ops_format_duration(device, phases->device_ns[phase]);
	ops_buffer_printf(&page->out, page->markdown ? "| %s | %s | %.1f %% | " : "  %-14s %14s %5.1f %% ", names[phase], time,
	                  100 * share);
	if (devices)
		ops_buffer_printf(&page->out, page->markdown ? "%s | " : "%14s ", device);
	page_bar(page, share, (int)(page->columns - 56 < BAR_WIDTH_MAX / 2 ? page->columns - 56 : BAR_WIDTH_MAX / 2));
	ops_buffer_append_text(&page->out, page->markdown ? " |\n" : "\n");
}

static bool put_phases(struct page *page)
{
	struct view_step_phases phases;
	bool done = view_phases_find(page->views, &phases), devices = page->views->device_events.count > 0;

	if (done && phases.known && phases.total_ns > 0) {
		page_title(page, page->views->unmarked ? "phases, on the host" : "phases of a step, on the host");
		if (page->markdown)
			ops_buffer_append_text(&page->out, devices ? "| | time | share | launched device work | |\n|---|--:|--:|--:|---|\n"
			                                           : "| | time | share | |\n|---|--:|--:|---|\n");
		else
			ops_buffer_append_text(&page->out, devices ? "                     launches\n" : "\n");
		for (int phase = 0; phase < OPS_PHASE_COUNT; phase++)
			if (phases.host_ns[phase] > 0)
				put_phase(page, &phases, phase, devices);
	}
	view_phases_release(&phases);
	return done;
}

bool page_steps(struct page *page)
{
	if (!page->views->steps.count)
		return true;
	put_breakdown(page);
	return put_phases(page);
}
