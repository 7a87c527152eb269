/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe ab`: compares two programs that run alternately. Implemented in Python.
 */
#include "cli.h"

int cli_ab(char **arguments)
{
	return cli_hand_over("opstrobe.ci.ab", arguments);
}
