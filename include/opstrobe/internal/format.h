/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/format.h: figures as text for people, in the unit that fits. Tables, views and the terminal interface share them.
 */
#ifndef OPSTROBE_FORMAT_H
#define OPSTROBE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Any text made here fits, its NUL included. */
#define OPS_FORMAT_ROOM 48

/* Microseconds in text for people; in formats for programs they are "us". */
#define OPS_MICROSECONDS "µs"

/* "1.234 ms", in the unit from "ns" to "s" that fits; "0". It may take more bytes than columns: see ops_field_width. */
void ops_format_duration(char *out, double ns);
/* "11.69 M": a count with the prefix that fits, from K to P. */
void ops_format_count(char *out, double count);
/* "1.50 MiB". */
void ops_format_bytes(char *out, int64_t bytes);
/* The width of printf's "%*s" for which a text takes that many columns; negative columns align it to the left. */
int ops_field_width(const char *text, int columns);
/* Replaces "µs" by "us" in place, for a terminal that shows nothing but ASCII; the new size. */
size_t ops_format_ascii(char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
