/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that print one query of opstrobe/query.h for one trace.
 */
#ifndef OPS_CLI_ASK_H
#define OPS_CLI_ASK_H

#include <opstrobe/query.h>

#include "traces.h"

/* Parses --format, --help and one trace, reads it and prints the result of the query `id`. Returns an exit status. If the trace was
 * read, the caller may use it, and must release it in any case. */
int cli_print_query(char **arguments, const char *usage, const char *id, struct cli_traces *traces);

#endif
