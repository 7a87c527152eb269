/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of other ages: what events and averages were called, or were said to be called, in torch before and after the
 * version that we follow. Each stands for an attribute of today; where torch has a deprecation note, so do we.
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

static int set_number(PyObject *dict, const char *key, long long number)
{
	PyObject *value = PyLong_FromLongLong(number);
	int failed = value ? PyDict_SetItemString(dict, key, value) : -1;

	Py_XDECREF(value);
	return failed;
}

/* What torch 2.15 calls metadata: the numbers that an event has in the trace file, by the names that they have there. */
PyObject *ops_ext_event_metadata(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	const struct ops_events *events = ops_trace_events(self->trace->trace);
	PyObject *dict;
	int failed = 0;

	(void)closure;
	if (self->ref & OPS_MEMORY_REF)
		Py_RETURN_NONE;
	dict = PyDict_New();
	if (!dict)
		return NULL;
	if (events->kind[self->ref] != OPS_EVENT_PYTHON_FUNCTION)
		failed |= set_number(dict, "External id", events->id ? (long long)events->id[self->ref] : self->ref + 1LL);
	if (events->sequence_nr[self->ref] >= 0) {
		failed |= set_number(dict, "Sequence number", events->sequence_nr[self->ref]);
		failed |= set_number(dict, "Fwd thread id", events->forward_thread[self->ref]);
	}
	if (events->python_id && events->python_id[self->ref] != OPS_NONE)
		failed |= set_number(dict, "Python id", events->python_id[self->ref]);
	failed |= set_number(dict, "Ev Idx", self->ref);
	failed = failed || ops_ext_event_add_device_args(self, dict) < 0;
	if (failed)
		Py_CLEAR(dict);
	return dict;
}

/* The same as the members of a JSON object, with torch's deprecation note. */
PyObject *ops_ext_event_metadata_json(PyObject *object, void *closure)
{
	PyObject *dict, *text;

	if (PyErr_WarnEx(PyExc_FutureWarning, "`metadata_json` is deprecated. Use `event_metadata` instead.", 1) < 0)
		return NULL;
	dict = ops_ext_event_metadata(object, closure);
	text = dict ? ops_ext_event_metadata_call("members_of", dict) : NULL;
	Py_XDECREF(dict);
	return text;
}
