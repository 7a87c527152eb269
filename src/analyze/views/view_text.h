/* SPDX-License-Identifier: Apache-2.0
 *
 * A page of text while it is written, for a terminal or in Markdown. view_text.c has its sections, view_text_lists.c
 * the lists, view_text_steps.c the steps.
 */
#ifndef OPS_ANALYZE_VIEWS_VIEW_TEXT_H
#define OPS_ANALYZE_VIEWS_VIEW_TEXT_H

#include "analyze/fit.h"
#include "analyze/result.h"
#include "analyze/views/views.h"
#include "base/buffer.h"

#define PAGE_COLUMNS 80 /* default width, and the minimum and maximum of the supported widths */
#define PAGE_COLUMNS_MIN 60
#define PAGE_COLUMNS_MAX 160
#define PAGE_CODE_MAX 120 /* limit on the characters of a name in Markdown, where it is a code span */
#define PAGE_ROWS 10 /* rows of a list */

struct page {
	struct ops_buffer out;
	const struct ops_views *views;
	size_t columns;
	bool colours;
	bool ascii;    /* for a terminal that shows only ASCII */
	bool markdown;
	struct fit_names names; /* names of the current table or place */
};

enum page_style { PAGE_PLAIN, PAGE_TITLE, PAGE_FAINT, PAGE_WARNING, PAGE_BAR };

/* A row of a table on the page. */
struct page_row {
	struct ops_string name;
	uint64_t calls;
	int64_t first_ns, second_ns, step_ns, bytes;
	int64_t flops_per_s; /* RESULT_NULL: unknown */
	double percent, bar;
	struct ops_string mean, where, event, at;
	struct ops_string more, value, usual; /* of a slow step */
};
#define PAGE_FIELD(member) RESULT_FIELD(struct page_row, member)

/* Returns an empty page with the look of `enum ops_views_look`. */
struct page page_of(unsigned look);
/* Ends a page and returns its text. Frees the page, as page_release() does without a text. */
enum ops_code page_finish(struct page *page, char **ret_text, size_t *ret_size, struct ops_error *error);
void page_release(struct page *page);

/* Text between this call and page_end() has the style, if colours are enabled. */
void page_begin(struct page *page, enum page_style style);
void page_end(struct page *page, enum page_style style);
/* Writes an empty line and a heading, whose line the caller ends. In Markdown an empty line follows. */
void page_title(struct page *page, const char *title);
/* Writes a name in exactly `width` columns, truncated or padded; or, if `fill` is false, in at most `width`. */
void page_name(struct page *page, struct ops_string name, size_t width, bool fill);
/* Returns the line of the user's code that called an event, "train.py:3", in `scratch`; "" if unknown. */
struct ops_string page_line(const struct page *page, uint32_t row, struct ops_buffer *scratch);

/* Writes a count with its noun: ", 2 threads". */
void page_count(struct page *page, const char *before, size_t count, const char *what);
/* Returns a time relative to another, "8.331 s", which shows where to look in a timeline. The text is in `room`, which has
 * OPS_FORMAT_ROOM bytes. */
struct ops_string page_at(int64_t from_ns, int64_t time_ns, char *room);

/* Appends a table and releases it. The title is also that of the first column, which contains names. `all` is the number of rows
 * before truncation. */
void page_table(struct page *page, const char *title, struct result_table *table, size_t all);

/* Sections of the page. They return false if out of memory. */

bool page_steps(struct page *page);
bool page_operators(struct page *page);
bool page_kernels(struct page *page);
bool page_memory(struct page *page);
bool page_communication(struct page *page);
bool page_modules(struct page *page);

#endif
