/* SPDX-License-Identifier: Apache-2.0
 *
 * What a FunctionEvent shows about devices: whether it ran on one, the operator that it ran for, the kernels that it launched.
 */
#include "views.h"

static const struct ops_events *device_fields_columns(const struct function_event_object *self)
{
	return ops_trace_events(self->trace->trace);
}

bool ops_ext_event_on_device(const struct function_event_object *self)
{
	return !(self->ref & OPS_MEMORY_REF) && ops_event_on_device(self->trace->trace, self->ref);
}

bool ops_ext_event_has_id_of_operator(const struct function_event_object *self)
{
	uint8_t kind = device_fields_columns(self)->kind[self->ref];

	return kind == OPS_EVENT_RUNTIME || kind == OPS_EVENT_DRIVER || ops_ext_event_on_device(self);
}

PyObject *ops_ext_event_id(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	const struct ops_events *events = device_fields_columns(self);
	uint64_t above = ops_ext_trace_id_max(self->trace) + 1;
	size_t memory_count;

	(void)closure;
	if (self->ref & OPS_MEMORY_REF)
		return PyLong_FromUnsignedLongLong(above + (self->ref & ~OPS_MEMORY_REF));
	if (!events->id)
		return PyLong_FromUnsignedLongLong((uint64_t)self->ref + 1);
	if (events->id[self->ref] && !ops_ext_event_has_id_of_operator(self))
		return PyLong_FromUnsignedLongLong(events->id[self->ref]);
	ops_trace_memory(self->trace->trace, &memory_count);
	return PyLong_FromUnsignedLongLong(above + memory_count + self->ref);
}

PyObject *ops_ext_event_linked_id(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;

	(void)closure;
	if ((self->ref & OPS_MEMORY_REF) || !device_fields_columns(self)->id || !ops_ext_event_has_id_of_operator(self))
		return PyLong_FromLong(0);
	return PyLong_FromUnsignedLongLong(device_fields_columns(self)->id[self->ref]);
}

/* Makes Kernel(name, device, duration in us) for each work item that the operator itself launched. */
static PyObject *make_kernel(PyObject *type, const struct function_event_object *self, uint32_t row)
{
	const struct ops_events *events = device_fields_columns(self);
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(self->trace->trace, &count);
	PyObject *name = ops_ext_trace_name(self->trace, events->name[row]);
	PyObject *kernel = NULL;

	if (name)
		kernel = PyObject_CallFunction(type, "OLd", name, (long long)tracks[events->track[row]].pid,
		                               (double)(events->end_ns[row] - events->start_ns[row]) / 1000.0);
	Py_XDECREF(name);
	return kernel;
}

static bool is_timed(const struct function_event_object *self)
{
	const struct ops_event_costs *costs = &self->trace->costs;

	return costs->legacy && costs->legacy[self->ref] && costs->device_time[self->ref] > 0;
}

/* Makes the single kernel that torch shows for the time measured by events around an operator. */
static PyObject *make_legacy_kernel(PyObject *type, const struct function_event_object *self)
{
	double us = (double)self->trace->costs.device_time[self->ref] / 1000.0;
	PyObject *name = ops_ext_attribute((PyObject *)self, "name");
	PyObject *index = name ? ops_ext_attribute((PyObject *)self, "device_index") : NULL;
	PyObject *kernel = index ? PyObject_CallFunction(type, "OOd", name, index, us) : NULL;

	Py_XDECREF(index);
	Py_XDECREF(name);
	return kernel;
}

PyObject *ops_ext_event_kernels(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	const uint32_t *start;
	PyObject *list;

	(void)closure;
	if (!state || ops_ext_trace_need_work(self->trace) < 0)
		return NULL;
	start = self->trace->work_start;
	list = PyList_New(0);
	if (self->ref & OPS_MEMORY_REF)
		return list;
	if (list && is_timed(self)) {
		PyObject *kernel = make_legacy_kernel(state->kernel, self);

		if (!kernel || PyList_Append(list, kernel) < 0)
			Py_CLEAR(list);
		Py_XDECREF(kernel);
	}
	if (!start)
		return list;
	for (uint32_t i = start[self->ref]; list && i < start[self->ref + 1]; i++) {
		PyObject *kernel = make_kernel(state->kernel, self, self->trace->work_rows[i]);

		if (!kernel || PyList_Append(list, kernel) < 0)
			Py_CLEAR(list);
		Py_XDECREF(kernel);
	}
	return list;
}
