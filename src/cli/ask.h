/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that answer one query of opstrobe/query.h about one trace.
 */
#ifndef OPS_CLI_ASK_H
#define OPS_CLI_ASK_H

#include <opstrobe/query.h>

#include "traces.h"

/* Parses --format, --help and one trace, reads it and prints the answer of the query `id`; as text with the options
 * `text_args`, a JSON object or NULL. An exit status; the trace is there to be looked at if it was read, and
 * released by the caller in any case. */
int cli_print_query(char **arguments, const char *usage, const char *id, const char *text_args, struct cli_traces *traces);

#endif
