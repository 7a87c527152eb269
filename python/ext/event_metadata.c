/* SPDX-License-Identifier: Apache-2.0
 *
 * What torch 2.15 calls metadata: the arguments of an event in the trace file, under their names there; and the details of device
 * work, which are derived from them.
 */
#include "views.h"

/* Calls a function of the package with the argument. */
static PyObject *event_metadata_call(const char *name, PyObject *argument)
{
	PyObject *module = PyImport_ImportModule("opstrobe.results.event_metadata");
	PyObject *result = module ? PyObject_CallMethod(module, name, "O", argument) : NULL;

	Py_XDECREF(module);
	return result;
}

static int event_metadata_put(PyObject *dict, const char *key, long long number)
{
	PyObject *value = PyLong_FromLongLong(number);
	int failed = value ? PyDict_SetItemString(dict, key, value) : -1;

	Py_XDECREF(value);
	return failed;
}

/* Adds the further arguments in the file. Returns 0, or -1 with an exception set. */
static int add_args(PyObject *dict, struct ops_string extra)
{
	PyObject *text = ops_ext_text(extra.bytes, extra.size);
	PyObject *more = text ? event_metadata_call("parse_args", text) : NULL;
	int failed = more ? PyDict_Update(dict, more) : -1;

	Py_XDECREF(more);
	Py_XDECREF(text);
	return failed;
}

/* Adds the metadata of a device event, or of the call that launched it. */
static int add_device_args(const struct function_event_object *self, PyObject *dict)
{
	const struct ops_events *events = ops_trace_events(self->trace->trace);
	size_t count;
	const struct ops_track *track = &ops_trace_tracks(self->trace->trace, &count)[events->track[self->ref]];
	int failed = 0;

	if (!ops_ext_event_has_id_of_operator(self))
		return 0;
	if (ops_ext_event_on_device(self))
		failed |= event_metadata_put(dict, "device", track->pid) | event_metadata_put(dict, "stream", track->tid);
	if (events->correlation && events->correlation[self->ref] >= 0)
		failed |= event_metadata_put(dict, "correlation", events->correlation[self->ref]);
	if (failed || !events->extra || events->extra[self->ref] == OPS_NONE)
		return failed;
	return add_args(dict, ops_trace_string(self->trace->trace, events->extra[self->ref]));
}

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
		failed |= event_metadata_put(dict, "External id",
		                             events->id ? (long long)events->id[self->ref] : self->ref + 1LL);
	if (events->sequence_nr[self->ref] >= 0) {
		failed |= event_metadata_put(dict, "Sequence number", events->sequence_nr[self->ref]);
		failed |= event_metadata_put(dict, "Fwd thread id", events->forward_thread[self->ref]);
	}
	if (events->python_id && events->python_id[self->ref] != OPS_NONE)
		failed |= event_metadata_put(dict, "Python id", events->python_id[self->ref]);
	failed |= event_metadata_put(dict, "Ev Idx", self->ref);
	if (failed || add_device_args(self, dict))
		Py_CLEAR(dict);
	return dict;
}

PyObject *ops_ext_event_metadata_json(PyObject *object, void *closure)
{
	PyObject *dict, *text;

	if (PyErr_WarnEx(PyExc_FutureWarning, "`metadata_json` is deprecated. Use `event_metadata` instead.", 1) < 0)
		return NULL;
	dict = ops_ext_event_metadata(object, closure);
	text = dict ? event_metadata_call("members_of", dict) : NULL;
	Py_XDECREF(dict);
	return text;
}

PyObject *ops_ext_event_details(PyObject *object, void *closure)
{
	PyObject *dict, *details;

	if (!ops_ext_event_on_device((struct function_event_object *)object))
		Py_RETURN_NONE;
	dict = ops_ext_event_metadata(object, closure);
	details = dict ? event_metadata_call("of_args", dict) : NULL;
	Py_XDECREF(dict);
	return details;
}
