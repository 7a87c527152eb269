/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of commands.
 */
#ifndef OPS_CLI_OPTIONS_H
#define OPS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"

/* Either a value or a switch. A list ends with a NULL name. */
struct cli_option {
	const char *name; /* "--format" */
	const char **value;
	bool *flag;
};

/* Takes options and exactly `path_count` paths. CLI_EXIT_OK, or CLI_EXIT_USAGE after saying why. `*ret_help`: help was asked
 * for and is printed, and nothing is left to do. */
int cli_parse(char **arguments, const struct cli_option *options, const char *usage, const char **paths, size_t path_count,
              bool *ret_help);

#endif
