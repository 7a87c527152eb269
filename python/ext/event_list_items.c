/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of EventList that needs Python objects: items that were returned and must stay the same, changes in place, lists of
 * mixed origin, pickling.
 */
#include "views.h"

#include <string.h>

int ops_ext_is_event(struct ops_ext_state *state, PyObject *object)
{
	if (Py_TYPE(object) == state->function_event || Py_TYPE(object) == state->function_event_avg)
		return 1;
	return ops_ext_is_hand_made(state, object);
}

static void drop_arrays(struct event_list_object *self)
{
	PyMem_Free(self->own_refs);
	ops_free(self->rows);
	self->own_refs = NULL;
	self->refs = NULL;
	self->rows = NULL;
	self->count = 0;
	Py_CLEAR(self->trace);
}

static PyObject *make_item(struct ops_ext_state *state, struct event_list_object *self, size_t i)
{
	if (self->kind == LIST_EVENTS)
		return ops_ext_event_list_item(self, i);
	return ops_ext_function_event_avg_new(state, self->trace, &self->rows[i], self->options.use_device,
	                                      self->by_input_shape, self->by_overload_name, self->options.with_flops);
}

int ops_ext_event_list_materialise(struct event_list_object *self)
{
	struct ops_ext_state *state = ops_ext_state_of((PyObject *)self);
	PyObject *items;

	if (self->kind == LIST_ITEMS)
		return 0;
	items = state ? PyList_New((Py_ssize_t)self->count) : NULL;
	for (size_t i = 0; items && i < self->count; i++) {
		PyObject *item = make_item(state, self, i);
		if (item)
			PyList_SET_ITEM(items, (Py_ssize_t)i, item);
		else
			Py_CLEAR(items);
	}
	if (!items)
		return -1;
	drop_arrays(self);
	self->items = items;
	self->kind = LIST_ITEMS;
	return 0;
}

int ops_ext_event_list_compact(struct event_list_object *self)
{
	struct ops_ext_state *state = ops_ext_state_of((PyObject *)self);
	struct trace_object *trace;
	struct located *views;
	PyObject *items;
	uint32_t *refs;
	size_t count;
	int failed;

	if (!state)
		return -1;
	if (self->kind != LIST_ITEMS)
		return 0;
	count = (size_t)PyList_GET_SIZE(self->items);
	for (size_t i = 0; i < count; i++)
		if (Py_TYPE(PyList_GET_ITEM(self->items, (Py_ssize_t)i)) != state->function_event)
			return 0;
	views = PyMem_New(struct located, count);
	if (!views) {
		PyErr_NoMemory();
		return -1;
	}
	for (size_t i = 0; i < count; i++) {
		struct function_event_object *event =
			(struct function_event_object *)PyList_GET_ITEM(self->items, (Py_ssize_t)i);
		views[i] = (struct located){.trace = event->trace, .ref = event->ref};
	}
	items = Py_NewRef(self->items);
	failed = ops_ext_merge_events(state, views, count, &trace, &refs);
	PyMem_Free(views);
	if (!failed) {
		Py_CLEAR(self->items);
		self->trace = trace;
		self->own_refs = refs;
		self->refs = refs;
		self->count = count;
		self->kind = LIST_EVENTS;
	}
	Py_DECREF(items);
	return failed;
}

/* --- changes ------------------------------------------------------------------------------------------------------ */

/* Checks that inserted items are events; if not, removes them again. */
static int check_items(struct ops_ext_state *state, PyObject *items)
{
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items); i++) {
		PyObject *item = PyList_GET_ITEM(items, i);
		int is_event = ops_ext_is_event(state, item);

		if (is_event < 0)
			return -1;
		if (!is_event) {
			PyErr_Format(PyExc_TypeError, "an EventList holds FunctionEvents or FunctionEventAvgs, not %.200s",
			             Py_TYPE(item)->tp_name);
			return -1;
		}
	}
	return 0;
}

/* Changes a copy by calling list's own method, and uses the copy if it is still a list of events. */
static PyObject *change(PyObject *object, const char *name, PyObject *args, PyObject *kwargs)
{
	struct event_list_object *self = (struct event_list_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	PyObject *items = NULL, *method = NULL, *result = NULL;

	if (!state || ops_ext_event_list_materialise(self) < 0)
		return NULL;
	items = PyList_GetSlice(self->items, 0, PyList_GET_SIZE(self->items));
	method = items ? ops_ext_attribute(items, name) : NULL;
	result = method ? PyObject_Call(method, args, kwargs) : NULL;
	if (result && (ops_ext_event_list_materialise(self) < 0 || check_items(state, items) < 0))
		Py_CLEAR(result);
	if (result) {
		self->is_unordered = false;
		Py_SETREF(self->items, Py_NewRef(items));
	}
	Py_XDECREF(method);
	Py_XDECREF(items);
	return result;
}

#define CHANGE(name)                                                                               \
	PyObject *ops_ext_event_list_##name(PyObject *self, PyObject *args, PyObject *kwargs)      \
	{                                                                                          \
		return change(self, #name, args, kwargs);                                          \
	}
OPS_EXT_LIST_CHANGES(CHANGE)

int ops_ext_event_list_assign(PyObject *object, PyObject *key, PyObject *value)
{
	PyObject *args = value ? PyTuple_Pack(2, key, value) : PyTuple_Pack(1, key);
	PyObject *result = args ? change(object, value ? "__setitem__" : "__delitem__", args, NULL) : NULL;

	Py_XDECREF(args);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

PyObject *ops_ext_event_list_inplace_concat(PyObject *object, PyObject *other)
{
	PyObject *args = PyTuple_Pack(1, other);
	PyObject *result = args ? change(object, "extend", args, NULL) : NULL;

	Py_XDECREF(args);
	Py_XDECREF(result);
	return result ? Py_NewRef(object) : NULL;
}

/* Concatenates two lists of events without creating an object for each event. */
PyObject *ops_ext_event_list_concat(struct event_list_object *a, struct event_list_object *b)
{
	struct ops_ext_state *state = ops_ext_state_of((PyObject *)a);
	struct located *views = NULL;
	struct trace_object *trace;
	PyObject *list;
	uint32_t *refs;

	if (!state || ops_ext_event_list_compact(a) < 0 || ops_ext_event_list_compact(b) < 0)
		return NULL;
	if (a->kind != LIST_EVENTS || b->kind != LIST_EVENTS) {
		PyObject *items = PySequence_List((PyObject *)a);
		PyObject *both = items ? PySequence_InPlaceConcat(items, (PyObject *)b) : NULL;
		Py_XDECREF(items);
		return both ? ops_ext_event_list_of_items(state, &a->options, both) : NULL;
	}
	views = PyMem_New(struct located, a->count + b->count);
	if (!views)
		return PyErr_NoMemory();
	for (size_t i = 0; i < a->count; i++)
		views[i] = (struct located){.trace = a->trace, .ref = a->refs[i]};
	for (size_t i = 0; i < b->count; i++)
		views[a->count + i] = (struct located){.trace = b->trace, .ref = b->refs[i]};
	if (ops_ext_merge_events(state, views, a->count + b->count, &trace, &refs) < 0) {
		PyMem_Free(views);
		return NULL;
	}
	list = ops_ext_event_list_of_refs(state, trace, &a->options, refs, a->count + b->count);
	Py_XDECREF(trace);
	PyMem_Free(views);
	return list;
}
