/* SPDX-License-Identifier: Apache-2.0
 *
 * The most important parts of all views, for a terminal: problems of the trace, the time of a step, device utilization
 * and gaps. Lists are in view_text_lists.c.
 */
#include "analyze/views/view_text.h"

#include <inttypes.h>
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/views.h>
#include <opstrobe/merge.h>

#include "analyze/format.h"
#include "analyze/views/view_tables.h"
#include "base/alloc.h"
#include "base/escape.h"
#include "base/map.h"
#include "base/order.h"
#include "base/sum.h"
#include "base/text.h"
#include "derive/extent.h"
#include "derive/modules.h"
#include "derive/steps.h"

#define GAPS_MAX 3

/* --- helper functions ----------------------------------------------------------------------------------------------- */

static const char *const styles[] = {
	[PAGE_PLAIN] = "", [PAGE_TITLE] = "\033[1m", [PAGE_FAINT] = "\033[2m", [PAGE_WARNING] = "\033[33m",
	[PAGE_BAR] = "\033[36m",
};

void page_begin(struct page *page, enum page_style style)
{
	if (page->colours)
		ops_buffer_append_text(&page->out, styles[style]);
}

void page_end(struct page *page, enum page_style style)
{
	if (page->colours && style != PAGE_PLAIN)
		ops_buffer_append_text(&page->out, "\033[0m");
}

void page_title(struct page *page, const char *title)
{
	ops_buffer_append_text(&page->out, page->markdown ? "\n### " : "\n");
	page_begin(page, PAGE_TITLE);
	ops_buffer_append_text(&page->out, title);
	page_end(page, PAGE_TITLE);
	if (page->markdown)
		ops_buffer_append_text(&page->out, "\n\n");
}

void page_name(struct page *page, struct ops_string name, size_t width, bool fill)
{
	struct ops_string shown = fit_name(&page->names, name, page->markdown ? PAGE_CODE_MAX : width);
	size_t length = ops_text_length(shown);

	if (page->markdown) {
		ops_code_append(&page->out, shown.bytes, shown.size);
		return;
	}
	ops_plain_append(&page->out, shown.bytes, shown.size);
	if (fill && length < width)
		ops_buffer_printf(&page->out, "%*s", (int)(width - length), "");
}

struct ops_string page_line(const struct page *page, uint32_t row, struct ops_buffer *scratch)
{
	scratch->size = 0;
	view_append_line(page->views, row, scratch);
	return (struct ops_string){ops_buffer_text(scratch), scratch->size};
}

struct ops_string page_at(int64_t from_ns, int64_t time_ns, char *room)
{
	ops_format_moment(room, ops_difference(time_ns, from_ns));
	return ops_string_of(room);
}

void page_table(struct page *page, const char *title, struct result_table *table, size_t all)
{
	fit_names_release(&page->names);
	if (page->markdown)
		page_title(page, title);
	else
		ops_buffer_append_text(&page->out, "\n");
	if (table->columns.count)
		table->columns.items[0].title = page->markdown ? "" : title;
	for (int pass = 0; page->markdown && !table->failed && pass < 2; pass++) /* first pass all names, then truncate them */
		for (size_t i = 0; i < table->cells.count; i += table->columns.count) {
			struct ops_string *name = &table->cells.items[i].text;

			if (pass)
				*name = fit_name(&page->names, *name, PAGE_CODE_MAX);
			else
				fit_names_expect(&page->names, *name, PAGE_CODE_MAX);
		}
	table->total_rows = all;
	table->on_page = true;
	table->colours = page->colours;
	table->ascii = page->ascii;
	page->out.failed |= !result_table_write(table, page->markdown ? OPS_FORMAT_MARKDOWN : OPS_FORMAT_TEXT, page->columns, &page->out);
	result_table_release(table);
}

/* Returns the prefix of a list item. */
static const char *item(const struct page *page)
{
	return page->markdown ? "- " : "";
}

/* --- trace ---------------------------------------------------------------------------------------------------------- */

void page_count(struct page *page, const char *before, size_t count, const char *what)
{
	char number[OPS_FORMAT_ROOM];

	ops_format_integer(number, count);
	ops_buffer_printf(&page->out, "%s%s %s%s", before, number, what, count == 1 ? "" : "s");
}

/* Writes the head, which is the complete page for an empty trace. */
static void view_text_put_head(struct page *page)
{
	const struct ops_trace_info *info = ops_trace_info(page->views->trace);
	struct ops_string host = {info->host_name, strlen(info->host_name)};
	size_t threads = ops_thread_count(page->views->trace), events = ops_trace_events(page->views->trace)->count, records;
	struct ops_interval extent = ops_extent_of(page->views->trace);
	char duration[OPS_FORMAT_ROOM];

	ops_trace_memory(page->views->trace, &records);
	page_begin(page, PAGE_TITLE);
	if (host.size) {
		page_name(page, host, 24, false);
		ops_buffer_append_text(&page->out, ": ");
	}
	page_count(page, "", events, "event");
	if (!events && records)
		page_count(page, ", ", records, "memory record");
	page_end(page, PAGE_TITLE);
	if (!events && !records) {
		ops_buffer_append_text(&page->out, ": nothing was recorded\n");
		return;
	}
	ops_format_duration(duration, (double)ops_difference(extent.end_ns, extent.start_ns));
	ops_buffer_printf(&page->out, " in %s", duration);
	page_count(page, ", ", threads, "thread");
	page_count(page, ", ", page->views->used.count, "device");
	ops_buffer_append_text(&page->out, "\n");
}

/* Lists what is missing from the recording or the file, or was repaired. Without links to events that torch's profiler leaves out,
 * which most traces of GPUs have. `opstrobe validate` lists them. */
static void put_faults(struct page *page)
{
	uint64_t lost = ops_trace_info(page->views->trace)->lost;
	size_t count;
	const struct ops_note *notes = ops_trace_notes(page->views->trace, &count);

	page_begin(page, PAGE_WARNING);
	if (page->markdown && (lost || count > 1 || (count && notes[0].kind != OPS_NOTE_UNMATCHED_ARROW)))
		ops_buffer_append_text(&page->out, "\n");
	if (lost)
		ops_buffer_printf(&page->out, "%slost: %" PRIu64 " record%s could not be kept; all sums are too small\n", item(page),
		                  lost, lost == 1 ? "" : "s");
	for (size_t i = 0; i < count; i++) {
		if (notes[i].kind == OPS_NOTE_UNMATCHED_ARROW)
			continue;
		ops_buffer_printf(&page->out, "%sfile: %s", item(page), ops_note_text(notes[i].kind));
		if (notes[i].count > 1)
			ops_buffer_printf(&page->out, " (%" PRIu64 " times, first at byte %" PRIu64 ")\n", notes[i].count, notes[i].byte);
		else
			ops_buffer_printf(&page->out, " (byte %" PRIu64 ")\n", notes[i].byte);
	}
	page_end(page, PAGE_WARNING);
}

/* --- devices and gaps ----------------------------------------------------------------------------------------------- */

static struct ops_interval view_text_whole(const struct ops_views *views)
{
	if (views->steps.count)
		return (struct ops_interval){views->steps.items[0].start_ns, views->steps.items[views->steps.count - 1].end_ns};
	return (struct ops_interval){views->first_ns, views->last_ns};
}

/* Returns the innermost host event that covers most of a gap, at least three quarters; OPS_NONE: none. */
static uint32_t event_around(const struct ops_views *views, struct ops_interval gap)
{
	int64_t quarter_ns = ops_difference(gap.end_ns, gap.start_ns) / 4;
	uint32_t found = OPS_NONE;

	for (uint32_t row = 0; row < views->events->count && view_start(views, row) <= gap.start_ns + quarter_ns; row++) {
		uint8_t part = views->parts[row];
		int64_t from_ns = view_start(views, row) > gap.start_ns ? view_start(views, row) : gap.start_ns;
		int64_t to_ns = view_end(views, row) < gap.end_ns ? view_end(views, row) : gap.end_ns;

		if (ops_difference(to_ns, from_ns) >= 3 * quarter_ns && part != VIEW_NOTHING && part != VIEW_WINDOW &&
		    part != VIEW_DEVICE_LABEL && part < VIEW_KERNEL)
			found = row;
	}
	return found;
}

/* Draws utilization over time, from left to right. `busy` is merged. */
static void put_over_time(struct page *page, const struct ops_intervals *busy)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[] = {" ", "_", ".", "-", "=", "+", "*", "%", "#"};
	const char *const *levels = page->ascii ? letters : blocks;
	struct ops_interval range = view_text_whole(page->views);
	double length_ns = (double)range.end_ns - (double)range.start_ns;
	int shown[PAGE_COLUMNS_MAX], width = 0, columns = (int)page->columns - 20;
	size_t cursor = 0;

	if (!(length_ns > columns))
		return;
	for (int i = 0; i < columns; i++) {
		int64_t from_ns = range.start_ns + (int64_t)(length_ns / columns * i);
		int64_t to_ns = range.start_ns + (int64_t)(length_ns / columns * (i + 1));
		double share = (double)ops_intervals_within(busy, from_ns, to_ns, &cursor) / ((double)to_ns - (double)from_ns);

		shown[i] = share > 0 ? 1 + (int)fmin(7, share * 8) : 0;
		width = shown[i] ? i + 1 : width;
	}
	ops_buffer_append_text(&page->out, page->markdown ? "\nover time `|" : "over time  ");
	page_begin(page, PAGE_BAR);
	for (int i = 0; i < width; i++)
		ops_buffer_append_text(&page->out, levels[shown[i]]);
	page_end(page, PAGE_BAR);
	ops_buffer_append_text(&page->out, page->markdown ? "|`\n\n" : "\n");
}

OPS_ORDER(compare_gaps, struct ops_interval,
          OPS_ORDER_BY(right->end_ns - right->start_ns, left->end_ns - left->start_ns) OPS_UP(start_ns))

static const struct result_column gap_columns[] = {
	{.name = "name", .type = RESULT_TEXT, PAGE_FIELD(name)},
	{.name = "length", .type = RESULT_TIME, PAGE_FIELD(first_ns)},
	{.name = "at", .type = RESULT_FIGURE, PAGE_FIELD(at)},
	{.name = "where", .type = RESULT_TEXT, .priority = RESULT_BELOW, PAGE_FIELD(where)},
};

static void put_longest(struct page *page, const struct ops_interval *gaps, size_t count)
{
	struct result_table table = {.copies = true};
	struct ops_buffer where = {0};

	RESULT_DECLARED(&table, gap_columns);
	for (size_t i = 0; i < count && i < GAPS_MAX; i++) {
		uint32_t row = event_around(page->views, gaps[i]);
		char at[OPS_FORMAT_ROOM];

		result_add(&table, &(struct page_row){
			.name = row == OPS_NONE ? (struct ops_string){0} : ops_shown_name(page->views->trace, page->views->events->name[row]),
			.first_ns = ops_difference(gaps[i].end_ns, gaps[i].start_ns),
			.at = page_at(page->views->first_ns, gaps[i].start_ns, at),
			.where = page_line(page, row, &where)});
	}
	page->out.failed |= where.failed;
	ops_buffer_release(&where);
	page_table(page, "longest gaps", &table, 0);
}

/* Writes the longest gaps in `busy`, which is not merged yet. */
static bool put_gaps(struct page *page, struct ops_intervals *busy, const char *what)
{
	struct ops_intervals all = {0}, gaps = {0};
	struct ops_interval range = view_text_whole(page->views);
	double length_ns = (double)range.end_ns - (double)range.start_ns;
	bool done;

	ops_intervals_sort(busy);
	put_over_time(page, busy);
	done = ops_intervals_push(&all, range.start_ns, range.end_ns) && ops_intervals_subtract(&all, busy, &gaps);
	if (done && gaps.count && length_ns > 0) {
		ops_buffer_printf(&page->out, "%s for %s of the time\n", what, ops_figure_of_percent(100 * (double)ops_intervals_length(&gaps) / length_ns).text);
		qsort(gaps.items, gaps.count, sizeof(*gaps.items), compare_gaps);
		put_longest(page, gaps.items, gaps.count);
	}
	ops_intervals_release(&all);
	ops_intervals_release(&gaps);
	return done;
}

static bool view_text_put_device(struct page *page, int64_t id)
{
	struct view_gpu_figures figures;
	struct ops_intervals busy = {0};
	char title[32];
	bool done = view_gpu_figures(page->views, id, &figures);

	if (!done)
		return false;
	snprintf(title, sizeof(title), "GPU %" PRId64, id);
	page_title(page, title);
	ops_buffer_printf(&page->out, "%sbusy %s", page->markdown ? "" : ": ", ops_figure_of_percent(100 * figures.utilization_ratio).text);
	if (!isnan(figures.own_sm_efficiency_ratio))
		ops_buffer_printf(&page->out, ", multiprocessors %s", ops_figure_of_percent(100 * figures.own_sm_efficiency_ratio).text);
	if (!isnan(figures.own_occupancy_pct))
		ops_buffer_printf(&page->out, ", occupancy %s", ops_figure_of_percent(figures.own_occupancy_pct).text);
	ops_buffer_append_text(&page->out, "\n");
	for (size_t i = 0; done && i < page->views->device_events.count; i++) {
		const struct view_device_event *event = &page->views->device_events.items[i];

		if (event->device == id)
			done = ops_intervals_push(&busy, view_start(page->views, event->row), view_end(page->views, event->row));
	}
	done = done && put_gaps(page, &busy, "idle");
	ops_intervals_release(&busy);
	return done;
}

/* For the CPU alone: the times at which no operator runs on any thread. */
static bool put_host(struct page *page)
{
	const struct ops_views *views = page->views;
	struct ops_intervals busy = {0};
	bool done = true;

	for (size_t i = 0; done && i < views->nodes.count; i++)
		if (views->nodes.items[i].part == VIEW_OPERATOR)
			done = ops_intervals_push(&busy, view_start(views, views->nodes.items[i].row),
			                       view_end(views, views->nodes.items[i].row));
	if (done && busy.count && view_text_whole(views).end_ns > view_text_whole(views).start_ns) {
		ops_buffer_append_text(&page->out, "\n");
		done = put_gaps(page, &busy, "no operator runs");
	}
	ops_intervals_release(&busy);
	return done;
}

/* More devices than this do not help a reader, and each costs a pass over all events. */
#define DEVICES_MAX 64

static bool put_devices(struct page *page)
{
	size_t count = page->views->gpus.count;
	bool done = true;

	for (size_t i = 0; done && i < count && i < DEVICES_MAX; i++)
		done = view_text_put_device(page, page->views->gpus.items[i]);
	if (count > DEVICES_MAX)
		ops_buffer_printf(&page->out, "\n%zu more GPUs, which --format json lists\n", count - DEVICES_MAX);
	return done && (page->views->gpus.count || put_host(page));
}

/* Writes how much device work was launched before the recording, or by graphs. */
static bool put_origins(struct page *page)
{
	struct view_origins origins;
	bool done = view_origins_find(page->views, &origins);
	char time[OPS_FORMAT_ROOM];

	if (done && (origins.queued || origins.replayed))
		ops_buffer_append_text(&page->out, "\n");
	if (done && origins.queued) {
		ops_buffer_printf(&page->out, "%slaunched before the recording, in no step: ", item(page));
		ops_format_duration(time, (double)origins.queued_ns);
		page_count(page, "", origins.queued, "piece");
		ops_buffer_printf(&page->out, " of device work, %s\n", time);
	}
	if (done && origins.replayed) {
		ops_buffer_printf(&page->out, "%slaunched by graphs: ", item(page));
		page_count(page, "", origins.replayed, "piece");
		ops_buffer_append_text(&page->out, " of device work");
		if (origins.captured) {
			page_count(page, ", ", origins.captured, "piece");
			ops_buffer_append_text(&page->out, " with operator and line of the capture\n");
		} else {
			ops_buffer_append_text(&page->out, ", counted where the graph is launched: no capture is known\n");
		}
	}
	return done;
}

/* --- page ----------------------------------------------------------------------------------------------------------- */

static size_t columns_of(unsigned look)
{
	size_t columns = look / OPS_VIEWS_COLUMNS(1);

	if (!columns)
		return PAGE_COLUMNS;
	return columns < PAGE_COLUMNS_MIN ? PAGE_COLUMNS_MIN : columns < PAGE_COLUMNS_MAX ? columns : PAGE_COLUMNS_MAX;
}

struct page page_of(unsigned look)
{
	return (struct page){.columns = columns_of(look), .colours = look & OPS_VIEWS_COLOURS, .ascii = look & OPS_VIEWS_ASCII,
	                     .markdown = look & OPS_VIEWS_MARKDOWN, .names = {.ascii = look & OPS_VIEWS_ASCII}};
}

void page_release(struct page *page)
{
	fit_names_release(&page->names);
	ops_buffer_release(&page->out);
}

/* Returns the number of processes without steps that steps do not wait for. */
static size_t helper_count(const struct ops_views *views)
{
	struct ops_map pids = {0};
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(views->trace, &count);

	for (size_t i = 0; i < count; i++)
		if (views->host_steps->helps[i])
			ops_map_slot(&pids, (uint64_t)tracks[i].pid, 1);
	count = pids.count;
	ops_map_release(&pids);
	return count;
}

/* Says that lists are of the complete trace where readers could take them for lists of the steps. */
static void put_coverage(struct page *page)
{
	struct ops_interval extent = ops_extent_of(page->views->trace);
	size_t helpers = helper_count(page->views);
	int64_t from_ns, to_ns;
	double outside;
	char all[OPS_FORMAT_ROOM], steps[OPS_FORMAT_ROOM];

	if (helpers)
		ops_buffer_printf(&page->out, "\nThe lists below include %zu other process%s, such as workers of a data loader.\n", helpers, helpers == 1 ? "" : "es");
	if (page->views->unmarked || !ops_steps_are_part(page->views->trace) ||
	    !ops_trace_steps(page->views->trace, 0, INT64_MAX, &from_ns, &to_ns))
		return;
	ops_format_duration(all, (double)ops_difference(extent.end_ns, extent.start_ns));
	ops_format_duration(steps, (double)ops_difference(to_ns, from_ns));
	ops_buffer_printf(&page->out, "\nThe lists below cover the whole trace, %s, of which the steps are %s", all, steps);
	outside = view_outside_ratio(page->views);
	if (outside > VIEW_OUTSIDE_MUCH)
		ops_buffer_printf(&page->out, " with %s of the time of operators", ops_figure_of_percent(100 * (1 - outside)).text);
	ops_buffer_append_text(&page->out, ".\n");
}

enum ops_code page_finish(struct page *page, char **ret_text, size_t *ret_size, struct ops_error *error)
{
	page->out.failed |= page->names.failed;
	fit_names_release(&page->names);
	if (page->ascii)
		page->out.size = ops_format_ascii(page->out.bytes, page->out.size);
	return ops_buffer_detach(&page->out, OPS_OK, ret_text, ret_size, error);
}

enum ops_code ops_views_text(const struct ops_trace *trace, enum ops_rules rules, unsigned look, char **ret_text,
                             size_t *ret_size, struct ops_error *error)
{
	struct ops_views own;
	struct page page = page_of(look);
	bool done;

	page.views = ops_views_open(&own, trace, rules, true);
	done = page.views != NULL;
	if (done) {
		view_text_put_head(&page);
		put_faults(&page);
		done = page_steps(&page);
		put_coverage(&page);
		done = done && page_operators(&page) && put_devices(&page) && put_origins(&page) && page_kernels(&page) && page_communication(&page) &&
		       page_modules(&page) && page_memory(&page);
	}
	ops_views_release(&own);
	page.out.failed |= !done;
	return page_finish(&page, ret_text, ret_size, error);
}
