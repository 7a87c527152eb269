/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as torch's tables and as our own show them, and the width of text in code points, as Python counts it.
 */
#ifndef OPS_ANALYZE_FORMAT_H
#define OPS_ANALYZE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/format.h>
#include <opstrobe/trace.h>

/* How times are shown: by size, or all in one unit. */
enum ops_time_unit { OPS_TIME_BY_SIZE, OPS_TIME_S, OPS_TIME_MS, OPS_TIME_US };
/* "s", "ms", "us"; any other text and NULL mean by size. */
enum ops_time_unit ops_time_unit_of(const char *text);

void ops_format_time(char *out, double us, enum ops_time_unit unit);
/* "12,345". */
void ops_format_integer(char *out, uint64_t number);
/* Share of a total in percent; "NaN" if the total is 0. */
void ops_format_share(char *out, double us, double total_us);
/* "1.50 MB" as torch's tables have it, of 1024 KB. */
void ops_format_memory(char *out, int64_t bytes);

/* Code points of a text. A byte that belongs to no UTF-8 sequence counts one; so does an encoded surrogate. */
size_t ops_text_length(struct ops_string text);
/* The first `length` code points of it. */
struct ops_string ops_text_prefix(struct ops_string text, size_t length);

#endif
