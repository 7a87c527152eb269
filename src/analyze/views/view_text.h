/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of text in the making, for a terminal or in Markdown: view_text.c is its order, view_text_lists.c has the lists,
 * view_text_table.c how they look,
 * view_text_steps.c steps.
 */
#ifndef OPS_ANALYZE_VIEWS_VIEW_TEXT_H
#define OPS_ANALYZE_VIEWS_VIEW_TEXT_H

#include "analyze/fit.h"
#include "analyze/views/views.h"
#include "base/buffer.h"

#define PAGE_COLUMNS 80 /* where nobody says how many there are; and the least and the most that a page is made for */
#define PAGE_COLUMNS_MIN 60
#define PAGE_COLUMNS_MAX 160
#define PAGE_CODE_MAX 120 /* characters of a name in Markdown, which is code there */
#define PAGE_ROWS 10 /* of a list */

struct page {
	struct ops_buffer out;
	const struct ops_views *views;
	size_t columns;
	bool colours;
	bool ascii;    /* for a terminal that shows nothing else */
	bool markdown;
	struct fit_names names; /* of the list in the making */
};

enum page_style { PAGE_PLAIN, PAGE_TITLE, PAGE_FAINT, PAGE_WARNING, PAGE_BAR };

/* What is between the two has that style, if there are colours. */
void page_begin(struct page *page, enum page_style style);
void page_end(struct page *page, enum page_style style);
/* An empty line, and a heading; the caller ends the line. In Markdown with an empty line behind. */
void page_title(struct page *page, const char *title);
/* A share of 1, as a bar of at most `width` columns. */
void page_bar(struct page *page, double share, int width);
/* Writes a name in exactly `width` columns, truncated or padded; or, if `fill` is false, in at most `width`. */
void page_name(struct page *page, struct ops_string name, size_t width, bool fill);
/* "1.5 ms", in 10 columns, and "1.50 MiB". */
void page_time(struct page *page, double ns);
void page_bytes(struct page *page, int64_t bytes);
/* Where in the user's code an event was called from, as " train.py:3" in at most `width` columns; nothing if unknown. */
void page_line(struct page *page, uint32_t row, size_t width);
/* Writes the event that contains a row, and the line that called it, in the rest of the line or on a new one. */
void page_place(struct page *page, uint32_t row);

/* --- lists ---------------------------------------------------------------------------------------------------------- */

struct page_list {
	const char *title;
	const char *first;  /* column of times */
	const char *second; /* NULL: there is only one */
	bool has_lines;     /* shows where rows were called from */
	/* Worked out by page_list() from the page's width. */
	size_t longest;     /* of the names that were measured */
	size_t name_width;
	size_t bar_width;
	size_t place_width; /* 0: places have separate lines */
	bool has_mean;      /* of the total time of a call */
	double most;        /* the first row's share, whose bar is full */
};

struct page_row {
	struct ops_string name;
	uint64_t calls;
	double first_ns;
	double second_ns;
	double total_ns; /* of all calls with what they call: the mean is that of a call */
	double share; /* of the sum of all rows */
	uint32_t row; /* of the trace, whose line is shown */
};

/* Called in this order: measure all names that the list will show; begin the list; pass all names again; and add its rows, the
 * largest first. */
void page_list_measure(struct page_list *list, struct ops_string name);
void page_list(struct page *page, struct page_list *list);
void page_list_expect(struct page *page, const struct page_list *list, struct ops_string name);
void page_list_row(struct page *page, struct page_list *list, const struct page_row *row);
/* How many there are beyond PAGE_ROWS, if any. */
void page_list_rest(struct page *page, size_t count);

/* Sections; false when memory is out. */

bool page_steps(struct page *page);
bool page_operators(struct page *page);
bool page_kernels(struct page *page);
bool page_memory(struct page *page);
bool page_communication(struct page *page);
bool page_modules(struct page *page);

#endif
