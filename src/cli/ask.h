/* SPDX-License-Identifier: Apache-2.0
 *
 * Commands that put one question of opstrobe/analyses.h to one trace.
 */
#ifndef OPS_CLI_ASK_H
#define OPS_CLI_ASK_H

#include <opstrobe/analyses.h>

#include "traces.h"

/* Takes --format, --help and one trace, reads it and prints what the analysis `id` answers; with `text_args`, options as a
 * JSON object or NULL, when that is for people. An exit status; the trace is there to be looked at if it was read, and
 * released by the caller in any case. */
int cli_ask(char **arguments, const char *usage, const char *id, const char *text_args, struct cli_traces *traces);

#endif
