/* SPDX-License-Identifier: Apache-2.0 */
#include <opstrobe/version.h>

const char *ops_version(void)
{
	return OPS_VERSION;
}
