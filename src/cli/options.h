/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of commands.
 */
#ifndef OPS_CLI_OPTIONS_H
#define OPS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli.h"

/* Either a value or a switch. A list ends with a NULL name. */
struct cli_option {
	const char *name; /* "--format" */
	const char **value;
	bool *flag;
};

/* Parses options and leaves the paths in arguments[1…], followed by NULL; their number must be `least` to `most`. Returns
 * CLI_EXIT_OK, or CLI_EXIT_USAGE after printing an error. `*ret_help`: --help was given and printed; the caller is done. */
int cli_parse_paths(char **arguments, const struct cli_option *options, const char *usage, size_t least, size_t most,
                    size_t *ret_count, bool *ret_help);
/* The same for exactly `path_count` paths. */
int cli_parse(char **arguments, const struct cli_option *options, const char *usage, const char **paths, size_t path_count,
              bool *ret_help);

/* The same for a trace and an output, which is either the second path or the value of --output: then `options` has stored it in
 * `*ret_output`, NULL before. */
int cli_parse_output(char **arguments, const struct cli_option *options, const char *usage, const char **ret_trace,
                     const char **ret_output, bool *ret_help);

/* Which of `names` (ended by NULL) that is; -1, after saying what there is, for none of them. */
int cli_choice(const char *command, const char *option, const char *value, const char *const *names);
/* The forms of output, ended by NULL, at the places that enum ops_format gives them. */
extern const char *const cli_formats[];
/* A whole number that is not negative; false after saying so. */
bool cli_number(const char *command, const char *option, const char *value, size_t *ret_number);
/* "20ms", as nanoseconds; false after saying what is wrong. */
bool cli_time(const char *command, const char *option, const char *value, int64_t *ret_ns);

#endif
