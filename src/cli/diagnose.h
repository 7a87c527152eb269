/* SPDX-License-Identifier: Apache-2.0
 *
 * Diagnostics of the traces that a command reads: one line each on standard error, and the member "diagnostics" of its JSON.
 */
#ifndef OPS_CLI_DIAGNOSE_H
#define OPS_CLI_DIAGNOSE_H

#include <stddef.h>

#include <opstrobe/internal/trace.h>

/* Prints the diagnostics of a trace, and keeps them for the command's JSON. Called on one thread, once for each file. */
void cli_diagnose(const struct ops_trace *trace, const char *path);

/* Prints one diagnostic, in the format of cli_diagnose. Any thread. */
void cli_print_diagnostic(const struct ops_diagnostic *item);

/* Prints the collected diagnostics above a result in Markdown, which may be read without standard error. */
void cli_print_markdown_diagnostics(void);

/* Adds the collected diagnostics to a JSON object; see ops_diagnostics_add. */
enum ops_code cli_add_diagnostics(char **text, size_t *size, struct ops_error *error);

#endif
