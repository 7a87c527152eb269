/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe archive`: an archive of traces as Parquet files. Implemented in Python, which has packages for that.
 */
#include "cli.h"

int cli_archive(char **arguments)
{
	return cli_hand_over("opstrobe.archiving.command", arguments);
}
