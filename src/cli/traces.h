/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the traces of the paths on the command line: several at once, with progress on a terminal.
 */
#ifndef OPS_CLI_TRACES_H
#define OPS_CLI_TRACES_H

#include <stdbool.h>
#include <stddef.h>

#include <opstrobe/internal/advice.h>
#include <opstrobe/query.h>
#include <opstrobe/internal/views.h>

#include "files.h"

struct cli_traces {
	struct cli_files files;
	struct ops_rank *workers; /* one for each file, in the same order */
	size_t count;
};

/* Reads the traces of paths: files, directories, patterns that the shell has not expanded, or "-" for standard input. Returns
 * false, after printing an error, if there are none or one cannot be read. The caller must release `traces` even then. */
bool cli_traces_read(struct cli_traces *traces, char *const *paths, size_t count);
/* Passes the traces to `take` in order, with as many in memory at once as there are processors. Returns false if `take` returns
 * false, after it has printed an error, or on an error as above. */
bool cli_traces_each(char *const *paths, size_t count, bool (*take)(void *context, const struct ops_rank *worker),
                     void *context);
/* Like ops_adviser_add(). If the trace is large, a terminal shows that it is being analyzed. */
enum ops_code cli_adviser_add(struct ops_adviser *adviser, const struct ops_rank *worker, struct ops_error *error);
/* For commands that take a single trace. */
bool cli_one_trace_read(struct cli_traces *traces, const char *path);
void cli_traces_release(struct cli_traces *traces);

enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER };

/* Sets whether to print colours. The default is to print them on a terminal that supports them, unless NO_COLOR is set. */
void cli_set_color(enum cli_color when);
bool cli_colours(void);
/* Returns whether the terminal is limited to ASCII. Files and pipes get UTF-8. */
bool cli_ascii(void);

/* Returns the exit status of a command for the code of its query or its file. Words for what the trace does not have are wrong
 * usage; a file that the query cannot use is not. */
int cli_status(enum ops_code code);

/* Prints a result and frees it, or prints the error. Returns the exit status. */
int cli_print(enum ops_code code, char *text, size_t size, const struct ops_error *error);

/* Like cli_print, for a result in this format. JSON includes the diagnostics of the traces that were read. */
int cli_print_data(enum ops_format format, enum ops_code code, char *text, size_t size, struct ops_error *error);

/* Returns the width of text for people: that of the terminal, from 60 to 160 columns, or 80 for a file or a pipe. */
unsigned cli_columns(void);

/* Returns the maximum width of tables: that of the terminal, or 0 (unlimited) for a file or a pipe. */
unsigned cli_table_columns(void);

/* Like cli_print, for text with long lines, which are continued on the next line with indentation. */
int cli_print_folded(enum ops_code code, char *text, size_t size, const struct ops_error *error);

/* While a file is written, Ctrl-C only makes cli_interrupted() return true, for use as the writer's progress callback, so that no
 * partial file remains. Then cli_interrupt_end() ends the process in the same way as Ctrl-C, if it was pressed. */
void cli_interrupt_begin(void);
int cli_interrupted(void *context, uint64_t bytes);
void cli_interrupt_end(void);

#endif
