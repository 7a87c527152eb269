/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands, for shells that complete words, and for man.
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
	bool paged; /* long results go to the pager */
};

/* `opstrobe --complete WORD...`: prints what the last of the words may become, a line each. Hidden; called by the scripts
 * in tools/completion. */
int cli_complete(const struct cli_command *commands, size_t count, char **words);
/* `opstrobe --man`: prints the manual page. Hidden; the build calls it. */
int cli_man(const struct cli_command *commands, size_t count);

#endif
