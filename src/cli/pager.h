/* SPDX-License-Identifier: Apache-2.0
 *
 * Results that are longer than the terminal, shown by a pager, as git does.
 */
#ifndef OPS_CLI_PAGER_H
#define OPS_CLI_PAGER_H

#include <stdbool.h>

/* Keeps what is printed from now on, if standard output is a terminal and there is a pager. */
void cli_pager_begin(void);
/* Prints what was kept: by the pager $PAGER, else less, if the terminal does not hold it. */
void cli_pager_end(void);

#endif
