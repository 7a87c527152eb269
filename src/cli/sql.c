/* SPDX-License-Identifier: Apache-2.0
 *
 * `opstrobe sql`: questions in SQL about traces. The engine is a package of Python's, so Python asks it.
 */
#include "cli.h"

int cli_sql(char **arguments)
{
	return cli_hand_over("opstrobe.query.command", arguments);
}
