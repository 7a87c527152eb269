/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace files that a path on the command line stands for: itself, or those in a directory.
 */
#ifndef OPS_CLI_FILES_H
#define OPS_CLI_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_file {
	char *path;
	char *worker; /* "worker0" of "worker0.1623143089861.pt.trace.json" */
	char *stamp;  /* "1623143089861", or "" */
	int64_t span; /* which of the worker's files, from 1; 0: it has no stamp */
};

struct cli_files {
	struct cli_file *items; /* by worker and time */
	size_t count;
	bool is_folder;
};

/* Those of one path: a file, the traces in a directory, all that a pattern matches, or "-" for standard input. False,
 * after saying why, when there is none. Released in any case. */
bool cli_files_find(struct cli_files *files, const char *path);
/* Those of several paths, one after the other; then `is_folder` says that there may be several. */
bool cli_files_find_all(struct cli_files *files, char *const *paths, size_t count);
void cli_files_release(struct cli_files *files);

#endif
