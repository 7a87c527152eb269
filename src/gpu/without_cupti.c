/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces CUPTI's collector in builds without its headers.
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

enum ops_code ops_cuda_check(uint32_t *ret_devices, struct ops_error *error)
{
	if (ret_devices)
		*ret_devices = 0;
	return ops_fault(error, OPS_UNSUPPORTED, REASON);
}

const char *ops_cuda_describe(void)
{
	return "none: " REASON;
}

uint32_t ops_cuda_cupti_version(void)
{
	return 0;
}
