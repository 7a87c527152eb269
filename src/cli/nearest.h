/* SPDX-License-Identifier: Apache-2.0
 *
 * What somebody probably meant who mistyped a name.
 */
#ifndef OPS_CLI_NEAREST_H
#define OPS_CLI_NEAREST_H

/* Ends a message on standard error with the one of `names`, a list that ends with NULL, that is most like `name`, or, if none
 * resembles it, with the command that lists them. Returns CLI_EXIT_USAGE. */
int cli_suggest(const char *name, const char *const *names, const char *list_command);

#endif
