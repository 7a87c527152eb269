/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe run`: runs a Python program under the profiler. Implemented in Python, because the program needs its own Python.
 */
#include "cli.h"

int cli_run(char **arguments)
{
	return cli_hand_over("opstrobe.run", arguments);
}
