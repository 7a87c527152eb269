/* SPDX-License-Identifier: Apache-2.0
 *
 * Common code of commands that print one table.
 */
#ifndef OPS_CLI_TABLE_H
#define OPS_CLI_TABLE_H

#include <stdbool.h>

#include "options.h"
#include "traces.h"

#define CLI_TABLE_OPTIONS                                                                          \
	"  --format text|json|csv|markdown  default text\n"                                   \
	"  --limit N                        maximum number of rows for each trace (0: all)\n"

#define CLI_TABLE_FLAGS 2

struct cli_table {
	const char *command; /* also the id of the query */
	const char *usage;
	const char *limit; /* default of --limit */
	struct cli_table_flag {
		const char *name;   /* a switch of the command, such as "--by-operator", or NULL */
		const char *option; /* the option of the query that it sets, such as "by_operator" */
	} flags[CLI_TABLE_FLAGS];
	bool has_at;       /* `--at TIME` selects a moment, and steps are an option of the query: their memory is older than they are */
	bool page_each;    /* text has a page for each trace */
};

int cli_show_table(char **arguments, const struct cli_table *table);

#endif
