/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe doctor`: checks whether recording works on this machine, and suggests what to do if not. Implemented in Python,
 * because most problems are in the Python installation.
 */
#include "cli.h"

int cli_doctor(char **arguments)
{
	return cli_hand_over("opstrobe.doctor", arguments);
}
