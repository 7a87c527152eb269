/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/format.h: names of formats, and figures for people, in a suitable unit. Tables, views and the terminal
 * interface share them.
 */
#ifndef OPSTROBE_FORMAT_H
#define OPSTROBE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- formats of files and texts ------------------------------------------------------------------------------------- */

/* The names of the formats that tables have, "json", "text", "csv" and "markdown", by enum ops_format. NULL terminates them. */
extern const char *const ops_format_names[];

/* --- figures -------------------------------------------------------------------------------------------------------- */

/* Buffer size for any text formatted here, including its NUL. */
#define OPS_FORMAT_ROOM 48

/* The unit in text for people; formats for programs have "us". */
#define OPS_MICROSECONDS "µs"

/* Durations, sizes, shares and counts with a prefix have three significant digits. The viewer formats them alike
 * (web/src/format/units.ts); tests/analyze/figures.json has examples for both.
 *
 * "1.23 ms", in a suitable unit from "ns" to "s", or "0". The text may have more bytes than columns: see ops_field_width. */
void ops_format_duration(char *out, double ns);
/* A point in time since the trace began, to the microsecond: "1.234567 s". */
void ops_format_moment(char *out, int64_t ns);
/* "11.7 M": a count with a suitable prefix, from K to P. */
void ops_format_count(char *out, double count);
/* "12,345". */
void ops_format_integer(char *out, uint64_t number);
/* "1.50 MiB". */
void ops_format_bytes(char *out, int64_t bytes);
/* "12.3 %", with at most two decimals; "<0.01 %" if it is less. */
void ops_format_percent(char *out, double percent);
/* "+12.3 %": a difference in percent, with its sign. */
void ops_format_change(char *out, double percent);
/* "12.3", or all digits of an integer: "12,345". Never "14.0". */
void ops_format_number(char *out, double number);

/* The same as values, for arguments of printf. */
struct ops_figure {
	char text[OPS_FORMAT_ROOM];
};
struct ops_figure ops_figure_of_duration(double ns);
struct ops_figure ops_figure_of_bytes(int64_t bytes);
struct ops_figure ops_figure_of_percent(double percent);
struct ops_figure ops_figure_of_change(double percent);
struct ops_figure ops_figure_of_number(double number);
/* Returns the width for printf's "%*s" that makes a text take that many columns. Negative `columns` align the text to the left. */
int ops_field_width(const char *text, int columns);
/* Replaces "µs" by "us" in place, for terminals limited to ASCII. Returns the new size. */
size_t ops_format_ascii(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
