/* SPDX-License-Identifier: Apache-2.0
 *
 * What commands that print one table have in common.
 */
#ifndef OPS_CLI_TABLE_H
#define OPS_CLI_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "traces.h"

#define CLI_TABLE_OPTIONS                                                                          \
	"  --format text|json|csv|markdown  default text\n"                                   \
	"  --limit N                        maximum number of rows for each trace (0: all)\n"

struct cli_table {
	const char *command;
	const char *usage;
	const char *top;  /* the default of --limit */
	const char *flag; /* a switch of the command's own, "--by-operator", or NULL */
	bool has_at;      /* `--at TIME` chooses a moment */
	/* The text for people of one trace, where it is no mere table; or NULL. False after saying why. */
	bool (*print_text)(const struct ops_rank *worker, size_t top, bool flag, const int64_t *at_ns);
	enum ops_view_table table, flagged_table; /* the second with the switch */
};

int cli_show_table(char **arguments, const struct cli_table *table);

#endif
