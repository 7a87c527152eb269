/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of a run and their ranks.
 */
#ifndef OPS_CLI_RANKS_H
#define OPS_CLI_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/internal/analyses.h>

#include "stream.h"

struct cli_ranks {
	struct ops_rank *items; /* sorted by rank; a pair in the given order */
	size_t count;
	struct cli_stream streams[2]; /* for a pair, one for each side; else only the first */
	struct ops_error odd; /* the error of a first file that is not a trace, for analyses that also read other files */
	struct ops_trace_source source; /* source of the traces of `items`, for analyses of ranks; then the items have no traces */
};

/* Reads the traces of paths: files, directories, patterns or "-". For a pair, each side is the lowest rank of its path. Returns
 * false after printing an error; the caller must release `ranks` even then. */
bool cli_ranks_read(struct cli_ranks *ranks, char *const *paths, size_t count, enum ops_query_inputs inputs,
                    bool round_to_us);
void cli_ranks_release(struct cli_ranks *ranks);

#endif
