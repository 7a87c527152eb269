/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands in for CUPTI's collector in a build without its headers.
 */
#include "base/fault.h"
#include "gpu/cupti.h"

#define REASON "opstrobe was built without CUPTI's headers"

static enum ops_code start(void *unused, uint32_t kinds, struct ops_activities *activities, struct ops_error *error)
{
	(void)unused;
	(void)kinds;
	(void)activities;
	return ops_fault(error, OPS_UNSUPPORTED, REASON);
}

const struct ops_device_collector *ops_cupti_collector(void)
{
	static const struct ops_device_collector collector = {.name = "CUPTI", .start = start};

	return &collector;
}

const char *ops_cupti_describe(void)
{
	return "none: " REASON;
}
