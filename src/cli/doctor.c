/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe doctor`: whether recording works here, and what to do where it does not. Most of what can be wrong is
 * wrong in the Python installation, so Python looks.
 */
#include "cli.h"

int cli_doctor(char **arguments)
{
	return cli_hand_over("opstrobe.doctor", arguments);
}
