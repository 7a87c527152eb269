/* SPDX-License-Identifier: Apache-2.0
 *
 * Lists of a page: in columns for a terminal, as tables in Markdown.
 *
 * In Markdown whatever a trace says stands in code spans. Within them there is no markup, no HTML, no link, and no mention of
 * anybody; only backticks need care, and bars, which end a cell even there.
 */
#include "analyze/views/view_text.h"

#include <inttypes.h>
#include <string.h>

#include "analyze/format.h"
#include "base/utf8.h"

#define BAR_WIDTH 7
#define MARKDOWN_BAR_WIDTH 20
#define CODE_MAX 120

/* --- Markdown's code ------------------------------------------------------------------------------------------------ */

static size_t longest_run(struct ops_string text, char of)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < text.size; i++) {
		run = text.bytes[i] == of ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

static void put_fence(struct page *page, size_t length)
{
	for (size_t i = 0; i < length; i++)
		ops_buffer_append(&page->out, "`", 1);
}

void page_code(struct page *page, struct ops_string text)
{
	size_t length = ops_text_length(text);
	struct ops_string shown = length > CODE_MAX ? ops_text_prefix(text, CODE_MAX - 1) : text;
	size_t fence = longest_run(shown, '`') + 1;

	put_fence(page, fence);
	if (fence > 1 || !shown.size)
		ops_buffer_append(&page->out, " ", 1); /* which is not shown, nor the one behind */
	for (size_t i = 0, size; i < shown.size; i += size ? size : 1) {
		unsigned char byte = (unsigned char)shown.bytes[i];

		size = ops_utf8_length(shown.bytes + i, shown.bytes + shown.size);
		if (byte == '|')
			ops_buffer_append(&page->out, "\\", 1);
		if (byte < ' ' || byte == 0x7f)
			ops_buffer_append(&page->out, " ", 1);
		else
			ops_buffer_append(&page->out, size ? &shown.bytes[i] : "?", size ? size : 1);
	}
	if (length > CODE_MAX)
		ops_buffer_append_text(&page->out, "…");
	if (fence > 1)
		ops_buffer_append(&page->out, " ", 1);
	put_fence(page, fence);
}

/* --- lists ---------------------------------------------------------------------------------------------------------- */

static int name_width(const struct page *page, const struct page_list *list)
{
	return (int)(page->columns - list->beside);
}

void page_list(struct page *page, const struct page_list *list)
{
	const char *second = list->second ? list->second : "";

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

static void put_markdown_row(struct page *page, const struct page_list *list, const struct page_row *row)
{
	uint32_t line = 0;
	struct ops_string file = {"", 0};

	ops_buffer_append_text(&page->out, "| ");
	page_code(page, row->name);
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
		page_code(page, file);
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
