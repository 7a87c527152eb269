/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe archive`: traces as Parquet. The libraries for that are packages of Python's.
 */
#include "cli.h"

int cli_archive(char **arguments)
{
	return cli_hand_over("opstrobe.archiving.command", arguments);
}
