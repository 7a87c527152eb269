/* SPDX-License-Identifier: Apache-2.0
 *
 * Names from other versions: attributes that events and averages had, or were documented to have, in earlier or later versions of
 * torch than the one we follow. Each is an alias of a current attribute; where torch has a deprecation warning, so do we.
 */
#include "views.h"

/* `part`, if any, is an attribute of the attribute. */
struct other_name {
	const char *target;
	const char *part;
	const char *warning; /* NULL: none */
};

static const struct other_name names[] = {
	[OTHER_CUDA_TIME] = {"device_time", NULL, "`cuda_time` is deprecated, please use `device_time` instead."},
	[OTHER_CUDA_TIME_TOTAL] = {"device_time_total", NULL,
	                           "`cuda_time_total` is deprecated. Use `device_time_total` instead."},
	[OTHER_SELF_CUDA_TIME_TOTAL] = {"self_device_time_total", NULL,
	                                "`self_cuda_time_total` is deprecated. Use `self_device_time_total` instead."},
	[OTHER_SELF_CUDA_TIME] = {"self_device_time_total", NULL,
	                          "`self_cuda_time` is deprecated. Use `self_device_time_total` instead."},
	[OTHER_CUDA_MEMORY_USAGE] = {"device_memory_usage", NULL,
	                             "`cuda_memory_usage` is deprecated. Use `device_memory_usage` instead."},
	[OTHER_SELF_CUDA_MEMORY_USAGE] = {"self_device_memory_usage", NULL,
	                                  "`self_cuda_memory_usage` is deprecated. Use `self_device_memory_usage` instead."},
	[OTHER_SELF_CPU_TIME] = {"self_cpu_time_total", NULL, NULL},
	[OTHER_PARENT] = {"cpu_parent", NULL, NULL},
	[OTHER_CHILDREN] = {"cpu_children", NULL, NULL},
	[OTHER_START] = {"time_range", "start", NULL},
	[OTHER_END] = {"time_range", "end", NULL},
};

PyObject *ops_ext_other_name(PyObject *object, void *closure)
{
	const struct other_name *other = &names[(intptr_t)closure];
	PyObject *value, *part;

	if (other->warning && PyErr_WarnEx(PyExc_FutureWarning, other->warning, 1) < 0)
		return NULL;
	value = ops_ext_attribute(object, other->target);
	if (!value || !other->part)
		return value;
	part = ops_ext_attribute(value, other->part);
	Py_DECREF(value);
	return part;
}
