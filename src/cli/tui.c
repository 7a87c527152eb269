/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe tui`: the views of a trace on a terminal. Python draws them (python/opstrobe/tui).
 */
#include "cli.h"

int cli_tui(char **arguments)
{
	return cli_hand_over("opstrobe.tui.command", arguments);
}
