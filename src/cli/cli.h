/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the commands of `opstrobe` share. Results go to stdout, messages to stderr. Exit statuses are those of
 * CLI_EXIT_*, except for commands that run a program of the user, whose status they return.
 */
#ifndef OPS_CLI_H
#define OPS_CLI_H

#include <stdbool.h>

enum cli_exit {
	CLI_EXIT_OK = 0,
	CLI_EXIT_FAILED = 1,
	CLI_EXIT_USAGE = 2,
	CLI_EXIT_REGRESSION = 3, /* from `diff --fail-on` */
};

/* Each command receives its own arguments: arguments[0] is its name, and NULL terminates them. */
int cli_run(char **arguments);
int cli_doctor(char **arguments);
int cli_ab(char **arguments);
int cli_prove(char **arguments);
int cli_archive(char **arguments);
int cli_sql(char **arguments);
int cli_views(char **arguments);
int cli_whatif(char **arguments);
int cli_analyze(char **arguments);
int cli_advise(char **arguments);
int cli_diff(char **arguments);
int cli_kernels(char **arguments);
int cli_lines(char **arguments);
int cli_memory(char **arguments);
int cli_modules(char **arguments);
int cli_merge(char **arguments);
int cli_convert(char **arguments);
int cli_cut(char **arguments);
int cli_incidents(char **arguments);
int cli_info(char **arguments);
int cli_serve(char **arguments);
/* Like cli_serve, but the address leads to this page of the viewer, such as "#/incidents/". */
int cli_serve_page(char **arguments, const char *page);
int cli_dump(char **arguments);
int cli_recover(char **arguments);
int cli_report(char **arguments);
int cli_roof(char **arguments);
int cli_roofline(char **arguments);
int cli_table(char **arguments);
int cli_tui(char **arguments);
int cli_validate(char **arguments);

/* Prints to stderr. Line breaks are escaped, except at the end of `format`. */
__attribute__((format(printf, 1, 2))) void cli_log(const char *format, ...);
/* Prints to stdout the name of the trace to which the following text belongs. */
void cli_put_heading(const char *path, bool is_first);

/* Replaces this process by Python, which runs `main` of the module `module` with arguments[1…]. Returns CLI_EXIT_FAILED, after
 * printing an error, if Python is not available. */
int cli_hand_over(const char *module, char **arguments);

#endif
