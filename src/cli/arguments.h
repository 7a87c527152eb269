/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of an analysis on the command line, collected as one JSON object.
 */
#ifndef OPS_CLI_ARGUMENTS_H
#define OPS_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

struct cli_arguments {
	char *text; /* the object; NULL: no options are set. If a name occurs twice, the last value is used */
};

/* Adds the members of a JSON object. Returns false if the text does not look like one. */
bool cli_arguments_merge(struct cli_arguments *arguments, const char *object);
/* Adds a member: "num-kernels" and "5" become {"num_kernels": 5}, "0,1" becomes a list, and a value that is not JSON a text. */
bool cli_arguments_set(struct cli_arguments *arguments, const char *name, size_t size, const char *value);
/* Returns the text as JSON, freed by the caller; NULL if out of memory. */
char *cli_arguments_quote(const char *value);
void cli_arguments_release(struct cli_arguments *arguments);

#endif
