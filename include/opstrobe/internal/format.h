/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/format.h: formats figures for people, in a suitable unit. Tables, views and the terminal interface share
 * them.
 */
#ifndef OPSTROBE_FORMAT_H
#define OPSTROBE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Buffer size for any text formatted here, including its NUL. */
#define OPS_FORMAT_ROOM 48

/* The unit in text for people; formats for programs have "us". */
#define OPS_MICROSECONDS "µs"

/* "1.234 ms", in a suitable unit from "ns" to "s", or "0". The text may have more bytes than columns: see ops_field_width. */
void ops_format_duration(char *out, double ns);
/* Like ops_format_duration, with three significant digits: "1.23 ms". For predictions. */
void ops_format_estimate(char *out, double ns);
/* "11.69 M": a count with a suitable prefix, from K to P. */
void ops_format_count(char *out, double count);
/* "12,345". */
void ops_format_integer(char *out, uint64_t number);
/* "1.50 MiB". */
void ops_format_bytes(char *out, int64_t bytes);
/* Returns the width for printf's "%*s" that makes a text take that many columns. Negative `columns` align the text to the left. */
int ops_field_width(const char *text, int columns);
/* Replaces "µs" by "us" in place, for terminals limited to ASCII. Returns the new size. */
size_t ops_format_ascii(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
