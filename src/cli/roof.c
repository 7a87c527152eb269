/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe roof`: measures how fast this machine computes and moves memory. Implemented in Python, because it uses the user's
 * torch.
 */
#include "cli.h"

int cli_roof(char **arguments)
{
	return cli_hand_over("opstrobe.roof", arguments);
}
