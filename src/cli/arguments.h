/* SPDX-License-Identifier: Apache-2.0
 *
 * Options of an analysis on the command line, put together as one JSON object.
 */
#ifndef OPS_CLI_ARGUMENTS_H
#define OPS_CLI_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>

struct cli_arguments {
	char *text; /* the object; NULL: none are set. Of a name that is there twice the last counts */
};

/* Adds the members of a JSON object; false when it looks like none. */
bool cli_arguments_merge(struct cli_arguments *arguments, const char *object);
/* "num-kernels" and "5" are {"num_kernels": 5}; "0,1" is a list; a value that is not JSON is a text. */
bool cli_arguments_set(struct cli_arguments *arguments, const char *name, size_t size, const char *value);
/* The text as JSON, freed by the caller; NULL when memory is out. */
char *cli_arguments_quote(const char *value);
void cli_arguments_release(struct cli_arguments *arguments);

#endif
