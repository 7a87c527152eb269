/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows results that are longer than the terminal in a pager, as git does.
 */
#ifndef OPS_CLI_PAGER_H
#define OPS_CLI_PAGER_H

#include <stdbool.h>

/* Captures the output from now on, if standard output is a terminal and there is a pager. */
void cli_pager_begin(void);
/* Prints the captured output, with $PAGER or less if it does not fit on the terminal. */
void cli_pager_end(void);

#endif
