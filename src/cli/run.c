/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe run`: a Python program under the profiler. The program needs its own Python, so all is done there.
 */
#include "cli.h"

int cli_run(char **arguments)
{
	return cli_hand_over("opstrobe.run", arguments);
}
