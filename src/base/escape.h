/* SPDX-License-Identifier: Apache-2.0
 *
 * Text of traces in what users read: a trace may come from anybody, and its names hold any bytes. Whatever shows one appends it
 * by the function of its format: here plain text, CSV and Markdown; base/markup.h has HTML and SVG, base/json.h JSON.
 *
 * Characters that do not show but act are written as '.', one for one, so that widths stay as they are: control characters
 * (a terminal's escape sequences begin with ESC or U+009B), line and paragraph separators, marks that turn the direction of
 * writing, and bytes that are not UTF-8.
 */
#ifndef OPS_BASE_ESCAPE_H
#define OPS_BASE_ESCAPE_H

#include "base/buffer.h"

/* The bytes of the character at `at`, at least 1, as ops_text_length counts them; whether it only shows. */
size_t ops_escape_next(const char *at, const char *end, bool *ret_shows);

void ops_plain_append(struct ops_buffer *out, const char *bytes, size_t size);

/* A cell, in quotes where it needs them. A text that spreadsheets would take for a formula has an apostrophe in front. Line
 * breaks and tabs stay. */
void ops_csv_append(struct ops_buffer *out, const char *bytes, size_t size);

/* Appends a code span, which shows the text without markup, HTML, links or mentions. It may be a table cell, which an unescaped
 * bar would end. */
void ops_code_append(struct ops_buffer *out, const char *bytes, size_t size);
/* As it is where it is only words and numbers, else as a code span; nothing for an empty text. */
void ops_markdown_append(struct ops_buffer *out, const char *bytes, size_t size);

#endif
