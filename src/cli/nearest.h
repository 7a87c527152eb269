/* SPDX-License-Identifier: Apache-2.0
 *
 * Suggestions for mistyped names.
 */
#ifndef OPS_CLI_NEAREST_H
#define OPS_CLI_NEAREST_H

/* Completes a message on standard error with the one of `names`, a list terminated by NULL, that is most similar to `name` or, if
 * none is similar, with the command that lists them. Returns CLI_EXIT_USAGE. */
int cli_suggest(const char *name, const char *const *names, const char *list_command);

#endif
