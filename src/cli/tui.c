/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe tui`: the views of a trace on a terminal. Implemented in Python (python/opstrobe/tui).
 */
#include "cli.h"

int cli_tui(char **arguments)
{
	return cli_hand_over("opstrobe.tui.command", arguments);
}
