/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe sql`: SQL queries on traces. Implemented in Python, because the engine is a Python package.
 */
#include "cli.h"

int cli_sql(char **arguments)
{
	return cli_hand_over("opstrobe.query.command", arguments);
}
