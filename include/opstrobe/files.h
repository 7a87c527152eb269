/* SPDX-License-Identifier: Apache-2.0
 *
 * opstrobe/files.h: the trace files of a run, by the names that torch gives them:
 *
 *     <worker>[.<stamp>].pt.trace.json[.gz|.zst]
 *
 * The stamp is the end of a profiling cycle of the worker. `span` numbers the cycles of a worker, from 1; it is 0 for files
 * without a stamp.
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

/* A zeroed list is empty. */
struct ops_trace_files {
	struct ops_trace_file *items;
	size_t count;
	size_t capacity;
};

/* Adds a file with any name; the file need not exist. OPS_NO_MEMORY. */
enum ops_code ops_trace_files_add(struct ops_trace_files *files, const char *path, struct ops_error *error);
/* Adds the files of a directory that have such names, by worker and time. If there are none, adds the JSON files that begin like
 * a trace (*.json[.gz|.zst]). Adding no file is not a failure. OPS_IO. */
enum ops_code ops_trace_files_add_folder(struct ops_trace_files *files, const char *folder, struct ops_error *error);
/* Like ops_trace_files_add_folder, but adds all JSON files if no file has such a name. */
enum ops_code ops_trace_files_add_json(struct ops_trace_files *files, const char *folder, struct ops_error *error);
/* Frees all items. Also required after a failure. */
void ops_trace_files_release(struct ops_trace_files *files);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
