/* SPDX-License-Identifier: Apache-2.0
 *
 * Formats numbers as torch's tables and Opstrobe's tables show them, and measures the width of text in code points, as
 * Python does.
 */
#ifndef OPS_ANALYZE_FORMAT_H
#define OPS_ANALYZE_FORMAT_H

#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/format.h>
#include <opstrobe/trace.h>

/* Unit of displayed times: chosen for each by its size, or the same for all. */
enum ops_time_unit { OPS_TIME_BY_SIZE, OPS_TIME_S, OPS_TIME_MS, OPS_TIME_US };
/* Parses "s", "ms" or "us"; any other text, and NULL, mean by size. */
enum ops_time_unit ops_time_unit_of(const char *text);

void ops_format_time(char *out, double us, enum ops_time_unit unit);
/* Share of a total in percent; "NaN" if the total is 0. */
void ops_format_share(char *out, double us, double total_us);
/* "1.50 MB" as in torch's tables, where 1 MB is 1024 KB. */
void ops_format_memory(char *out, int64_t bytes);

/* Counts the code points of a text. A byte that belongs to no UTF-8 sequence counts as one; so does an encoded
 * surrogate. */
size_t ops_text_length(struct ops_string text);
/* Returns the first `length` code points of a text. */
struct ops_string ops_text_prefix(struct ops_string text, size_t length);

#endif
