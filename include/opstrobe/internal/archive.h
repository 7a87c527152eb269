/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/archive.h: the tables of an archive of traces, which the Python package computes.
 */
#ifndef OPSTROBE_INTERNAL_ARCHIVE_H
#define OPSTROBE_INTERNAL_ARCHIVE_H

#include <stddef.h>

#include <opstrobe/common.h>
#include <opstrobe/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a table from its rows: a JSON array of objects with the columns as members. `id` is the id of the table: "archive_traces",
 * "archive_trend", … Missing members and values of another type become null. At most `limit` rows are written, unless it is 0. `columns`
 * is the width of a line of text; 0: any. The caller frees the text with ops_free. */
enum ops_code ops_archive_table(const char *id, struct ops_string rows, enum ops_format format, size_t limit, size_t columns, char **ret_text,
                                size_t *ret_size, struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
