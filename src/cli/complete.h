/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands, for completion in shells and for the manual page.
 */
#ifndef OPS_CLI_COMPLETE_H
#define OPS_CLI_COMPLETE_H

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"

struct cli_command {
	const char *name;
	int (*function)(char **arguments);
	const char *summary;
	bool paged; /* long results are shown in the pager */
	bool needs_times; /* a trace without times is refused */
};

/* `opstrobe --complete WORD...`: prints the possible completions of the last word, one on each line. Hidden; called by the
 * scripts in tools/completion. */
int cli_complete(const struct cli_command *commands, size_t count, char **words);
/* `opstrobe --man`: prints the manual page. Hidden; the build calls it. */
int cli_man(const struct cli_command *commands, size_t count);

#endif
