/* SPDX-License-Identifier: Apache-2.0
 *
 * What commands that print one table have in common.
 */
#ifndef OPS_CLI_TABLE_H
#define OPS_CLI_TABLE_H

#include <stdbool.h>

#include "options.h"
#include "traces.h"

#define CLI_TABLE_OPTIONS                                                                          \
	"  --format text|json|csv|markdown  default text\n"                                   \
	"  --limit N                        maximum number of rows for each trace (0: all)\n"

struct cli_table {
	const char *command; /* and the id of the query */
	const char *usage;
	const char *limit; /* the default of --limit */
	const char *flag;  /* a switch of the command, "--by-operator", or NULL */
	const char *flag_option; /* the option of the query that it sets: "by_operator" */
	bool has_at;       /* `--at TIME` selects a moment */
	bool page_each;    /* text has a page for each trace */
};

int cli_show_table(char **arguments, const struct cli_table *table);

#endif
