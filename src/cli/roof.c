/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe roof`: how fast this machine computes and moves memory. It is measured by the user's torch, so Python does it.
 */
#include "cli.h"

int cli_roof(char **arguments)
{
	return cli_hand_over("opstrobe.roof", arguments);
}
