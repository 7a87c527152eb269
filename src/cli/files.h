/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace files that a path on the command line selects: the file itself, or those in a directory.
 */
#ifndef OPS_CLI_FILES_H
#define OPS_CLI_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/files.h>

struct cli_files {
	struct ops_trace_files list;
	bool is_folder;
};

/* Finds the files of paths. A path is a file, a directory with traces (with `any_json`, all its JSON files if no name is that of
 * a trace), a pattern, or "-" for standard input. `is_folder` is whether there may be several files. Returns false, after
 * printing an error, if there are none. The caller must release `files` even then. */
bool cli_files_find_all(struct cli_files *files, char *const *paths, size_t count, bool any_json);
void cli_files_release(struct cli_files *files);

/* Returns whether `file` is one of those that the paths select, by whatever name. */
bool cli_files_select(const char *const *paths, size_t count, const char *file);

bool cli_is_directory(const char *path);
/* Returns whether a file name ends with the suffix. */
bool cli_has_suffix(const char *path, const char *suffix);

#define CLI_TRACE_SUFFIX ".pt.trace.json.gz" /* for names of traces that the commands choose */

#endif
