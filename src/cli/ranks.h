/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of a run, read, and which rank each is of.
 */
#ifndef OPS_CLI_RANKS_H
#define OPS_CLI_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/analyses.h>

#define CLI_PATHS_MAX 4096

struct cli_ranks {
	struct ops_rank *items; /* by rank; a pair in the order given */
	size_t count;
	char **paths; /* owned */
	size_t path_count;
};

/* Paths are files, or directories of them. False, after saying why; released in any case. What in a directory is no trace
 * is passed over, with a word about it. */
bool cli_ranks_read(struct cli_ranks *ranks, const char *const *paths, size_t count, enum ops_analysis_inputs inputs);
void cli_ranks_release(struct cli_ranks *ranks);

#endif
