/* SPDX-License-Identifier: Apache-2.0
 *
 * The values of c10::DeviceType that the analyses distinguish: memory of the CPU and of devices.
 */
#ifndef OPS_ANALYZE_DEVICE_H
#define OPS_ANALYZE_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

enum ops_device_type {
	OPS_DEVICE_CPU = 0,
	OPS_DEVICE_CUDA = 1,
	OPS_DEVICE_MKLDNN = 2,
	OPS_DEVICE_IDEEP = 5,
	OPS_DEVICE_HIP = 6,
	OPS_DEVICE_XPU = 12,
	OPS_DEVICE_MTIA = 19,
	OPS_DEVICE_PRIVATE_USE_1 = 20,
};

static inline bool ops_device_is_host(uint8_t type)
{
	return type == OPS_DEVICE_CPU || type == OPS_DEVICE_MKLDNN || type == OPS_DEVICE_IDEEP;
}

static inline bool ops_device_is_accelerator(uint8_t type)
{
	return type == OPS_DEVICE_CUDA || type == OPS_DEVICE_HIP || type == OPS_DEVICE_XPU ||
	       type == OPS_DEVICE_PRIVATE_USE_1;
}

#endif
