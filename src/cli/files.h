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

/* Those of one path: a file, the traces in a directory (`any_json`: all JSON where no name says that it is a trace), all
 * that a pattern matches, or "-" for standard input. Of several paths one after the other; then `is_folder` says that
 * there may be several. False, after saying why, when there is none. Released in any case. */
bool cli_files_find_all(struct cli_files *files, char *const *paths, size_t count, bool any_json);
void cli_files_release(struct cli_files *files);

bool cli_is_directory(const char *path);
/* Whether the name of a file ends so. */
bool cli_has_suffix(const char *path, const char *suffix);

#define CLI_TRACE_SUFFIX ".pt.trace.json.gz" /* of traces whose names we choose */

#endif
