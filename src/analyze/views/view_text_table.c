/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of a page: in columns for a terminal, as tables in Markdown.
 *
 * In Markdown all text of the trace is in code spans.
 */
#include "analyze/views/view_text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/format.h"
#include "base/escape.h"

#define MARKDOWN_BAR_WIDTH 20
#define CALLS_WIDTH 10
#define TIME_WIDTH 12
#define SHARE_WIDTH 8
#define BAR_LEAST 8
#define NAME_LEAST 27
#define PLACE_LEAST 18

/* --- lists ---------------------------------------------------------------------------------------------------------- */

void page_list_measure(struct page_list *list, struct ops_string name)
{
	size_t length = ops_text_length(name);

	list->longest = length > list->longest ? length : list->longest;
}

/* What of the page's width each column gets. Names have what they need, and at least NAME_LEAST columns; the mean is left out
 * where that is not there. What is then left goes to places, or to the bars. */
static void view_text_table_lay_out(const struct page *page, struct page_list *list)
{
	size_t title = strlen(list->title), wanted = list->longest > title ? list->longest : title;
	size_t left = page->columns - CALLS_WIDTH - TIME_WIDTH - SHARE_WIDTH - BAR_LEAST - 1 - (list->second ? TIME_WIDTH : 0);

	list->has_mean = left >= TIME_WIDTH + NAME_LEAST;
	left -= list->has_mean ? TIME_WIDTH : 0;
	list->name_width = wanted < left ? wanted : left;
	left -= list->name_width;
	list->place_width = list->has_lines && left >= PLACE_LEAST ? left : 0;
	list->bar_width = BAR_LEAST + (list->place_width ? 0 : left < BAR_LEAST ? left : BAR_LEAST);
}

static void put_markdown_head(struct page *page, const struct page_list *list)
{
	const char *second = list->second ? list->second : "";

	ops_buffer_printf(&page->out, "| | calls | %s |%s%s%s mean | share | |%s\n", list->first, list->second ? " " : "", second,
	                  list->second ? " |" : "", list->has_lines ? " where |" : "");
	ops_buffer_printf(&page->out, "|---|--:|--:|%s--:|--:|---|%s\n", list->second ? "--:|" : "", list->has_lines ? "---|" : "");
}

void page_list(struct page *page, struct page_list *list)
{
	fit_names_release(&page->names);
	view_text_table_lay_out(page, list);
	page_title(page, list->title);
	if (page->markdown) {
		put_markdown_head(page, list);
		return;
	}
	ops_buffer_printf(&page->out, "%*s%*s%*s", (int)(list->name_width - strlen(list->title)), "", CALLS_WIDTH, "calls", TIME_WIDTH,
	                  list->first);
	if (list->second)
		ops_buffer_printf(&page->out, "%*s", TIME_WIDTH, list->second);
	ops_buffer_printf(&page->out, "%*s%*s\n", list->has_mean ? TIME_WIDTH : 0, list->has_mean ? "mean" : "", SHARE_WIDTH, "share");
}

void page_list_expect(struct page *page, const struct page_list *list, struct ops_string name)
{
	fit_names_expect(&page->names, name, page->markdown ? PAGE_CODE_MAX : list->name_width);
}

static double view_text_table_mean_ns(const struct page_row *row)
{
	return row->calls ? row->total_ns / (double)row->calls : 0;
}

static void put_markdown_row(struct page *page, const struct page_list *list, const struct page_row *row)
{
	uint32_t line = 0;
	struct ops_string file = {"", 0};
	char calls[OPS_FORMAT_ROOM];

	ops_format_integer(calls, row->calls);
	ops_buffer_append_text(&page->out, "| ");
	page_name(page, row->name, 0, false);
	ops_buffer_printf(&page->out, " | %s | ", calls);
	page_time(page, row->first_ns);
	if (list->second) {
		ops_buffer_append_text(&page->out, " | ");
		page_time(page, row->second_ns);
	}
	ops_buffer_append_text(&page->out, " | ");
	page_time(page, view_text_table_mean_ns(row));
	ops_buffer_printf(&page->out, " | %.1f %% | ", 100 * row->share);
	page_bar(page, row->share, MARKDOWN_BAR_WIDTH);
	if (list->has_lines && row->row != OPS_NONE)
		file = ops_event_line(page->views->trace, row->row, &line);
	if (list->has_lines)
		ops_buffer_append_text(&page->out, " | ");
	if (file.size) {
		page_name(page, file, 0, false);
		ops_buffer_printf(&page->out, ":%" PRIu32, line);
	}
	ops_buffer_append_text(&page->out, " |\n");
}

static void view_text_table_put_time(struct page *page, double ns)
{
	ops_buffer_append_text(&page->out, "  ");
	page_time(page, ns);
}

/* Where a row was called from, at the end of its line if there is room, else on the next line. */
static void view_text_table_put_place(struct page *page, const struct page_list *list, const struct page_row *row, double bar)
{
	int used = (int)(page->ascii ? lrint(bar * 8 * (double)list->bar_width + 4) / 8 : (lrint(bar * 8 * (double)list->bar_width) + 7) / 8);

	if (list->place_width) {
		ops_buffer_printf(&page->out, "%*s", (int)list->bar_width - used, "");
		page_line(page, row->row, list->place_width);
		return;
	}
	ops_buffer_append_text(&page->out, "\n   ");
	page_line(page, row->row, page->columns - 3);
}

void page_list_row(struct page *page, struct page_list *list, const struct page_row *row)
{
	char calls[OPS_FORMAT_ROOM];
	uint32_t line;
	double bar;

	if (page->markdown) {
		put_markdown_row(page, list, row);
		return;
	}
	list->most = row->share > list->most ? row->share : list->most;
	bar = list->most > 0 ? row->share / list->most : 0;
	ops_format_integer(calls, row->calls);
	page_name(page, row->name, list->name_width, true);
	ops_buffer_printf(&page->out, "%*s", CALLS_WIDTH, calls);
	view_text_table_put_time(page, row->first_ns);
	if (list->second)
		view_text_table_put_time(page, row->second_ns);
	if (list->has_mean)
		view_text_table_put_time(page, view_text_table_mean_ns(row));
	ops_buffer_printf(&page->out, " %5.1f %% ", 100 * row->share);
	page_bar(page, bar, (int)list->bar_width);
	if (list->has_lines && ops_event_line(page->views->trace, row->row, &line).size)
		view_text_table_put_place(page, list, row, bar);
	ops_buffer_append_text(&page->out, "\n");
}

void page_list_rest(struct page *page, size_t count)
{
	if (count > PAGE_ROWS)
		ops_buffer_printf(&page->out, "%sand %zu more\n", page->markdown ? "\n" : "", count - PAGE_ROWS);
}
