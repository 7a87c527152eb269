/* SPDX-License-Identifier: Apache-2.0
 *
 * The `opstrobe` command.
 */
#include <stdio.h>

int main(void)
{
	puts("opstrobe " OPS_VERSION);
	return 0;
}
