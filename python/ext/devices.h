/* SPDX-License-Identifier: Apache-2.0
 *
 * Device recording for the session; see devices.c.
 */
#ifndef OPS_EXT_DEVICES_H
#define OPS_EXT_DEVICES_H

#include "ext.h"

#include <opstrobe/device.h>

/* Converter for PyArg_ParseTuple: a container of Kineto's names to a set of enum ops_activity_kind (uint32_t). Names of
 * activities that no collector records are ignored. */
int ops_ext_to_device_kinds(PyObject *names, void *ret_kinds);

/* Converter: "cuda", "privateuse1" or None to an enum ops_device_events. */
int ops_ext_to_device_events(PyObject *name, void *ret_events);

#endif
