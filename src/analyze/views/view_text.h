/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of text for a terminal of 80 columns, in the making: what view_text.c and view_text_lists.c share.
 */
#ifndef OPS_ANALYZE_VIEWS_VIEW_TEXT_H
#define OPS_ANALYZE_VIEWS_VIEW_TEXT_H

#include "analyze/views/views.h"
#include "base/buffer.h"

#define PAGE_COLUMNS 80

struct page {
	struct ops_buffer out;
	struct ops_views *views;
	bool colours;
};

enum page_style { PAGE_PLAIN, PAGE_TITLE, PAGE_FAINT, PAGE_WARNING, PAGE_BAR };

/* What is between the two has that style, if there are colours. */
void page_begin(struct page *page, enum page_style style);
void page_end(struct page *page, enum page_style style);
/* An empty line, and a heading; the caller ends the line. */
void page_title(struct page *page, const char *title);
/* A share of 1, as a bar of at most `width` columns. */
void page_bar(struct page *page, double share, int width);
/* A name in exactly `width` columns, cut or filled up; or, if `fill` is false, in at most so many. */
void page_name(struct page *page, struct ops_string name, size_t width, bool fill);
/* "1.5 ms", in 10 columns, and "1.50 MiB". */
void page_time(struct page *page, double ns);
void page_bytes(struct page *page, int64_t bytes);
/* Where in the user's code an event was called from, as " train.py:3" in at most `width` columns; nothing if unknown. */
void page_line(struct page *page, uint32_t row, size_t width);

/* Sections; false when memory is out. */
bool page_operators(struct page *page);
bool page_kernels(struct page *page);
bool page_memory(struct page *page);
bool page_communication(struct page *page);
bool page_modules(struct page *page);
bool page_recommendations(struct page *page);

#endif
