/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe ab`: two programs that run alternately. Python runs them and compares.
 */
#include "cli.h"

int cli_ab(char **arguments)
{
	return cli_hand_over("opstrobe.ci.ab", arguments);
}
