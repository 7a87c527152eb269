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
	struct ops_rank *workers; /* one a file, in that order */
	size_t count;
};

/* Each path is a file, a directory, a pattern that the shell has not replaced, or "-" for standard input. False, after
 * saying why, when there is none, or one cannot be read. Released in any case. */
bool cli_traces_read(struct cli_traces *traces, char *const *paths, size_t count);
/* Passes the traces to `take` in order, as many in memory at once as there are processors. Returns false if `take` does, which
 * then has printed the error, or on an error as above. */
bool cli_traces_each(char *const *paths, size_t count, bool (*take)(void *context, const struct ops_rank *worker),
                     void *context);
/* Like ops_adviser_add(). If the trace is large, a terminal shows that it is being analyzed. */
enum ops_code cli_adviser_add(struct ops_adviser *adviser, const struct ops_rank *worker, struct ops_error *error);
/* For commands that take one trace only. */
bool cli_one_trace_read(struct cli_traces *traces, const char *path);
void cli_traces_release(struct cli_traces *traces);

enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER };

/* Whether to print colours: as set, or on a terminal that knows them unless NO_COLOR is set. */
void cli_set_color(enum cli_color when);
bool cli_colours(void);
/* Whether the terminal shows nothing but ASCII; what reads a file or a pipe reads UTF-8. */
bool cli_ascii(void);

/* Prints a result and frees it, or says what went wrong. */
bool cli_print(enum ops_code code, char *text, size_t size, const struct ops_error *error);

/* Likewise, of a result in this format: JSON has the diagnostics of the traces that were read. */
bool cli_print_data(enum ops_format format, enum ops_code code, char *text, size_t size, struct ops_error *error);

/* The exit status of a command with options for a query: invalid options are an error of the command line. */
int cli_status(enum ops_code code);

/* How wide text for people is to be: as the terminal, from 60 to 160 columns; 80 for a file or a pipe. */
unsigned cli_columns(void);

/* How wide tables may be: as the terminal; 0, any, for a file or a pipe. */
unsigned cli_table_columns(void);

/* Likewise as cli_print, of text whose lines may be longer than that: they go on below, indented. */
bool cli_print_folded(enum ops_code code, char *text, size_t size, const struct ops_error *error);

/* While a file is written, Ctrl-C only makes cli_interrupted() true, for use as the writer's progress callback, so that no
 * partial file remains. Afterwards cli_interrupt_end() ends the process as Ctrl-C does, if it was pressed. */
void cli_interrupt_begin(void);
int cli_interrupted(void *context, uint64_t bytes);
void cli_interrupt_end(void);

#endif
