/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe prove`: measures what fixes of findings save in a program. Python runs the program and switches the fixes on and off.
 */
#include "cli.h"

int cli_prove(char **arguments)
{
	return cli_hand_over("opstrobe.proving.command", arguments);
}
