/* SPDX-License-Identifier: Apache-2.0
 *
 * The traces of a run, and which rank each is of.
 */
#ifndef OPS_CLI_RANKS_H
#define OPS_CLI_RANKS_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/internal/analyses.h>

#include "stream.h"

struct cli_ranks {
	struct ops_rank *items; /* by rank; a pair in the order given */
	size_t count;
	struct cli_stream streams[2]; /* of a pair, each side's; else the first alone */
	struct ops_error odd; /* the error of a first file that is not a trace; for analyses that also read other files */
	struct ops_trace_source source; /* of `items`, for analyses of ranks, which then have no traces */
};

/* Paths are files, directories, patterns or "-"; of a pair each side is the lowest rank of its path. False, after saying why;
 * released in any case. */
bool cli_ranks_read(struct cli_ranks *ranks, char *const *paths, size_t count, enum ops_query_inputs inputs,
                    bool round_to_us);
void cli_ranks_release(struct cli_ranks *ranks);

#endif
