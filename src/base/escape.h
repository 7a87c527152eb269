/* SPDX-License-Identifier: Apache-2.0
 *
 * Escapes text of traces in output for users. A trace may come from anywhere, and its names may contain any bytes. Every renderer
 * appends them with the function for its format: plain text, CSV and Markdown are here, HTML and SVG in base/markup.h, JSON in
 * base/json.h.
 *
 * Characters that act instead of being shown are each replaced by '.', so that widths do not change: control characters (terminal
 * escape sequences begin with ESC or U+009B), line and paragraph separators, marks that change the direction of writing, and
 * bytes that are not UTF-8.
 */
#ifndef OPS_BASE_ESCAPE_H
#define OPS_BASE_ESCAPE_H

#include "base/buffer.h"

/* Returns the size in bytes of the character at `at`, at least 1, as counted by ops_text_length. `*ret_shows` is whether it is
 * only shown. */
size_t ops_escape_next(const char *at, const char *end, bool *ret_shows);

void ops_plain_append(struct ops_buffer *out, const char *bytes, size_t size);

/* Appends a cell, quoted if necessary. A text that spreadsheets would interpret as a formula gets an apostrophe in front. Line
 * breaks and tabs are kept. */
void ops_csv_append(struct ops_buffer *out, const char *bytes, size_t size);

/* Appends a code span, which shows the text without markup, HTML, links or mentions. It may be used in a table cell, which an
 * unescaped bar would end. */
void ops_code_append(struct ops_buffer *out, const char *bytes, size_t size);
/* Appends the text unchanged if it consists of words and numbers, else as a code span. Appends nothing for an empty text. */
void ops_markdown_append(struct ops_buffer *out, const char *bytes, size_t size);

#endif
