/* SPDX-License-Identifier: Apache-2.0
 *
 * What a FunctionEvent says of devices: the one it ran on, the kernels it launched, what the file has of a kernel besides.
 */
#include "views.h"

static const struct ops_events *columns(const struct function_event_object *self)
{
	return ops_trace_events(self->trace->trace);
}

bool ops_ext_event_on_device(const struct function_event_object *self)
{
	return !(self->ref & OPS_MEMORY_REF) && ops_event_on_device(self->trace->trace, self->ref);
}

/* Whether its id in the trace is that of the operator that it ran for. */
static bool has_id_of_operator(const struct function_event_object *self)
{
	uint8_t kind = columns(self)->kind[self->ref];

	return kind == OPS_EVENT_RUNTIME || kind == OPS_EVENT_DRIVER || ops_ext_event_on_device(self);
}

PyObject *ops_ext_event_id(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	const struct ops_events *events = columns(self);
	uint64_t above = ops_ext_trace_id_max(self->trace) + 1;
	size_t memory_count;

	(void)closure;
	if (self->ref & OPS_MEMORY_REF)
		return PyLong_FromUnsignedLongLong(above + (self->ref & ~OPS_MEMORY_REF));
	if (!events->id)
		return PyLong_FromUnsignedLongLong((uint64_t)self->ref + 1);
	if (events->id[self->ref] && !has_id_of_operator(self))
		return PyLong_FromUnsignedLongLong(events->id[self->ref]);
	ops_trace_memory(self->trace->trace, &memory_count);
	return PyLong_FromUnsignedLongLong(above + memory_count + self->ref);
}

PyObject *ops_ext_event_linked_id(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;

	(void)closure;
	if ((self->ref & OPS_MEMORY_REF) || !columns(self)->id || !has_id_of_operator(self))
		return PyLong_FromLong(0);
	return PyLong_FromUnsignedLongLong(columns(self)->id[self->ref]);
}

/* Kernel(name, device, duration in us) of each piece of work that the operator launched itself. */
static PyObject *make_kernel(PyObject *type, const struct function_event_object *self, uint32_t row)
{
	const struct ops_events *events = columns(self);
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
	if (!start || (self->ref & OPS_MEMORY_REF))
		return list;
	for (uint32_t i = start[self->ref]; list && i < start[self->ref + 1]; i++) {
		PyObject *kernel = make_kernel(state->kernel, self, self->trace->work_rows[i]);

		if (!kernel || PyList_Append(list, kernel) < 0)
			Py_CLEAR(list);
		Py_XDECREF(kernel);
	}
	return list;
}

/* --- details ------------------------------------------------------------------------------------------------------ */

PyObject *ops_ext_event_metadata_call(const char *name, PyObject *argument)
{
	PyObject *module = PyImport_ImportModule("opstrobe._event_metadata");
	PyObject *result = module ? PyObject_CallMethod(module, name, "O", argument) : NULL;

	Py_XDECREF(module);
	return result;
}

static int put(PyObject *dict, const char *key, PyObject *take_value)
{
	int failed = take_value ? PyDict_SetItemString(dict, key, take_value) : -1;

	Py_XDECREF(take_value);
	return failed;
}

int ops_ext_event_add_device_args(struct function_event_object *self, PyObject *dict)
{
	const struct ops_events *events = columns(self);
	struct ops_string extra;
	size_t count;
	const struct ops_track *track = &ops_trace_tracks(self->trace->trace, &count)[events->track[self->ref]];
	PyObject *text, *more;
	int failed = 0;

	if (!has_id_of_operator(self))
		return 0;
	if (ops_ext_event_on_device(self))
		failed |= put(dict, "device", PyLong_FromLongLong(track->pid)) |
		          put(dict, "stream", PyLong_FromLongLong(track->tid));
	if (events->correlation && events->correlation[self->ref] >= 0)
		failed |= put(dict, "correlation", PyLong_FromLongLong(events->correlation[self->ref]));
	if (failed || !events->extra || events->extra[self->ref] == OPS_NONE)
		return failed ? -1 : 0;
	extra = ops_trace_string(self->trace->trace, events->extra[self->ref]);
	text = ops_ext_text(extra.bytes, extra.size);
	more = text ? ops_ext_event_metadata_call("parse_args", text) : NULL;
	failed = more ? PyDict_Update(dict, more) : -1;
	Py_XDECREF(more);
	Py_XDECREF(text);
	return failed;
}

PyObject *ops_ext_event_details(PyObject *object, void *closure)
{
	PyObject *dict, *details;

	if (!ops_ext_event_on_device((struct function_event_object *)object))
		Py_RETURN_NONE;
	dict = ops_ext_event_metadata(object, closure);
	details = dict ? ops_ext_event_metadata_call("of_args", dict) : NULL;
	Py_XDECREF(dict);
	return details;
}
