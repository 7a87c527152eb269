/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of commands.
 */
#ifndef OPS_CLI_OPTIONS_H
#define OPS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/internal/format.h>

#include "cli.h"

/* An option with a value, or a switch. A list ends with a NULL name. */
struct cli_option {
	const char *name; /* "--format" */
	const char **value;
	bool *flag;
};

/* Parses options and leaves the paths in arguments[1…], followed by NULL; their number must be `least` to `most`. Returns
 * CLI_EXIT_OK, or CLI_EXIT_USAGE after printing an error. `*ret_help`: --help was given and printed; the caller is done. */
int cli_parse_paths(char **arguments, const struct cli_option *options, const char *usage, size_t least, size_t most,
                    size_t *ret_count, bool *ret_help);
/* Like cli_parse_paths, for exactly `path_count` paths. */
int cli_parse(char **arguments, const struct cli_option *options, const char *usage, const char **paths, size_t path_count,
              bool *ret_help);

/* Like cli_parse, for a trace and an output. The output is the second path or the value of --output, which `options` must store
 * in `*ret_output`; it is NULL before. */
int cli_parse_output(char **arguments, const struct cli_option *options, const char *usage, const char **ret_trace,
                     const char **ret_output, bool *ret_help);

/* Returns the index of a value in `names` (terminated by NULL). Returns -1, after printing the choices, if it is not one of them. */
int cli_choice(const char *command, const char *option, const char *value, const char *const *names);
/* Parses a nonnegative integer. Returns false after printing an error. */
bool cli_number(const char *command, const char *option, const char *value, size_t *ret_number);
/* Parses a time such as "20ms", in nanoseconds. Returns false after printing an error. */
bool cli_time(const char *command, const char *option, const char *value, int64_t *ret_ns);

#endif
