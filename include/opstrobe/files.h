/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/files.h: the trace files of a run, by the names that torch gives them:
 *
 *     <worker>[.<stamp>].pt.trace.json[.gz|.zst]
 *
 * The stamp is when a profiling cycle of the worker ended; its cycles are numbered as spans from 1 on. A file without one
 * has the span 0.
 */
#ifndef OPSTROBE_FILES_H
#define OPSTROBE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include <opstrobe/error.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct ops_trace_file {
	char *path;
	char *worker; /* "worker0" of "worker0.1623143089861.pt.trace.json" */
	char *stamp;  /* "1623143089861", or "" */
	int64_t span;
};

/* Zeroed is empty. */
struct ops_trace_files {
	struct ops_trace_file *items;
	size_t count;
	size_t capacity;
};

/* Adds one file, whatever its name; it need not be there. Its span is 1 with a stamp, or one more than that of the file
 * before it if that is of the same worker. OPS_NO_MEMORY. */
enum ops_code ops_trace_files_add(struct ops_trace_files *files, const char *path, struct ops_error *error);
/* Adds those of a folder that have such a name, or, where there are none, the JSON (*.json[.gz|.zst]) that begins like a
 * trace, by worker and time; there may be none. OPS_IO. */
enum ops_code ops_trace_files_add_folder(struct ops_trace_files *files, const char *folder, struct ops_error *error);
/* The same, but all JSON where none has such a name. */
enum ops_code ops_trace_files_add_json(struct ops_trace_files *files, const char *folder, struct ops_error *error);
/* Also after a failure. */
void ops_trace_files_release(struct ops_trace_files *files);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
