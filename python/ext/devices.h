/* SPDX-License-Identifier: Apache-2.0
 *
 * Device recording for the session; see devices.c.
 */
#ifndef OPS_EXT_DEVICES_H
#define OPS_EXT_DEVICES_H

#include "ext.h"

#include <opstrobe/device.h>

/* A converter for PyArg_ParseTuple: a container of Kineto's names as a set of enum ops_activity_kind (uint32_t). Names of what
 * is not recorded by a collector are passed over. */
int ops_ext_to_device_kinds(PyObject *names, void *ret_kinds);

/* Another: "cuda", "privateuse1" or None as an enum ops_device_events. */
int ops_ext_to_device_events(PyObject *name, void *ret_events);

#endif
