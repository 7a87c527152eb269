/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of a page: in columns for a terminal, as tables in Markdown.
 *
 * In Markdown whatever a trace says stands in code spans.
 */
#include "analyze/views/view_text.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/format.h"
#include "base/escape.h"

#define BAR_WIDTH 7
#define MARKDOWN_BAR_WIDTH 20

/* --- lists ---------------------------------------------------------------------------------------------------------- */

static int name_width(const struct page *page, const struct page_list *list)
{
	return (int)(page->columns - list->beside);
}

void page_list(struct page *page, const struct page_list *list)
{
	const char *second = list->second ? list->second : "";

	fit_names_release(&page->names);
	page_title(page, list->title);
	if (page->markdown) {
		ops_buffer_printf(&page->out, "| | calls | %s |%s%s%s share | |%s\n", list->first, list->second ? " " : "", second,
		                  list->second ? " |" : "", list->has_lines ? " where |" : "");
		ops_buffer_printf(&page->out, "|---|--:|--:|%s--:|---|%s\n", list->second ? "--:|" : "", list->has_lines ? "---|" : "");
	} else {
		ops_buffer_printf(&page->out, "%*s %7s %11s%s%s\n", name_width(page, list) - (int)strlen(list->title), "", "calls", list->first,
		                  list->second ? " " : "", second);
	}
}

void page_list_expect(struct page *page, const struct page_list *list, struct ops_string name)
{
	fit_names_expect(&page->names, name, page->markdown ? PAGE_CODE_MAX : (size_t)name_width(page, list));
}

static void put_markdown_row(struct page *page, const struct page_list *list, const struct page_row *row)
{
	uint32_t line = 0;
	struct ops_string file = {"", 0};

	ops_buffer_append_text(&page->out, "| ");
	page_name(page, row->name, 0, false);
	ops_buffer_printf(&page->out, " | %" PRIu64 " | ", row->calls);
	page_time(page, row->first_ns);
	if (list->second) {
		ops_buffer_append_text(&page->out, " | ");
		page_time(page, row->second_ns);
	}
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

void page_list_row(struct page *page, const struct page_list *list, const struct page_row *row)
{
	uint32_t line;

	if (page->markdown) {
		put_markdown_row(page, list, row);
		return;
	}
	page_name(page, row->name, (size_t)name_width(page, list), true);
	ops_buffer_printf(&page->out, " %7" PRIu64 "  ", row->calls);
	page_time(page, row->first_ns);
	if (list->second) {
		ops_buffer_append_text(&page->out, "  ");
		page_time(page, row->second_ns);
	}
	ops_buffer_append_text(&page->out, " ");
	page_bar(page, row->share, BAR_WIDTH);
	ops_buffer_append_text(&page->out, "\n");
	if (list->has_lines && ops_event_line(page->views->trace, row->row, &line).size) {
		ops_buffer_append_text(&page->out, "   ");
		page_line(page, row->row, page->columns - 3);
		ops_buffer_append_text(&page->out, "\n");
	}
}

void page_list_rest(struct page *page, size_t count)
{
	if (count > PAGE_ROWS)
		ops_buffer_printf(&page->out, "%sand %zu more\n", page->markdown ? "\n" : "", count - PAGE_ROWS);
}
