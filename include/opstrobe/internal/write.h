/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/internal/write.h: writes objects that only the command, the server and the Python extension make.
 */
#ifndef OPSTROBE_INTERNAL_WRITE_H
#define OPSTROBE_INTERNAL_WRITE_H

#include <opstrobe/internal/analyze.h>
#include <opstrobe/internal/memory.h>
#include <opstrobe/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a flame graph; formats and `ret_cut` as in ops_write_flame. OPS_IO with errno on file system errors. */
enum ops_code ops_flame_write(const struct ops_flame *flame, const char *path, struct ops_flame_cut *ret_cut,
                              struct ops_error *error);

/* Writes a text, such as a report. */
enum ops_code ops_write_text(const char *text, size_t size, const char *path, struct ops_error *error);

enum ops_memory_format {
	OPS_MEMORY_HTML, /* a page with a plot that needs no network */
	OPS_MEMORY_JSON, /* [times in µs, bytes of category 0, of category 1, …], as torch writes it */
	OPS_MEMORY_RAW,  /* a list of [time in ns, action, signed bytes, category], as torch writes it */
};

/* Writes one device's timeline; compressed if the path ends in ".gz". OPS_IO with errno on file system errors. */
enum ops_code ops_write_memory_timeline(const struct ops_memory_timeline *timeline, const char *path,
                                        enum ops_memory_format format, struct ops_memory_device device,
                                        struct ops_error *error);

#ifdef __cplusplus
}
#endif
#endif
