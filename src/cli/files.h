/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace files that a path on the command line stands for: itself, or those in a directory.
 */
#ifndef OPS_CLI_FILES_H
#define OPS_CLI_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/files.h>

struct cli_files {
	struct ops_trace_files list;
	bool is_folder;
	bool has_others; /* a directory has none by torch's names, so all JSON in it is here */
};

/* Those of one path: a file, the traces in a directory (or all JSON in it where no name says that it is a trace), all that a pattern matches, or "-" for standard input. Of several
 * paths one after the other; then `is_folder` says that there may be several. False, after saying why, when there is
 * none. Released in any case. */
bool cli_files_find_all(struct cli_files *files, char *const *paths, size_t count);
/* Whether a file may turn out to be no trace. */
bool cli_files_may_be_none(const struct cli_files *files, size_t i);
void cli_files_release(struct cli_files *files);

#endif
