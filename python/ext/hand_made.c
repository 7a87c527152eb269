/* SPDX-License-Identifier: Apache-2.0
 *
 * Events that programs create: FunctionEvent(…) returns torch's own event, which can be changed and inserted into a tree. Our
 * lists may contain such events; then torch's own list computes results (compat/synthetic_events.py).
 */
#include "views.h"

/* Calls a function of opstrobe.compat.synthetic_events; steals the arguments. */
static PyObject *hand_made_call(const char *name, PyObject *take_args, PyObject *kwargs)
{
	PyObject *module = take_args ? PyImport_ImportModule("opstrobe.compat.synthetic_events") : NULL;
	PyObject *function = module ? ops_ext_attribute(module, name) : NULL;
	PyObject *result = function ? PyObject_Call(function, take_args, kwargs) : NULL;

	Py_XDECREF(function);
	Py_XDECREF(module);
	Py_XDECREF(take_args);
	return result;
}

PyObject *ops_ext_hand_made_event(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	(void)type;
	return hand_made_call("make_event", Py_NewRef(args), kwargs);
}

int ops_ext_is_hand_made(struct ops_ext_state *state, PyObject *object)
{
	PyObject *answer;
	int result;

	if (Py_TYPE(object) == state->function_event || Py_TYPE(object) == state->function_event_avg)
		return 0;
	answer = hand_made_call("is_event", PyTuple_Pack(1, object), NULL);
	result = answer ? PyObject_IsTrue(answer) : -1;
	Py_XDECREF(answer);
	return result;
}

/* Returns an event of ours with the same name, times and shapes: a new reference, or NULL with an exception set. */
PyObject *ops_ext_hand_made_as_ours(PyObject *object)
{
	return hand_made_call("as_ours", PyTuple_Pack(1, object), NULL);
}

static int holds_hand_made(struct event_list_object *self)
{
	struct ops_ext_state *state = ops_ext_state_of((PyObject *)self);
	int found = state ? 0 : -1;

	for (Py_ssize_t i = 0; !found && self->kind == LIST_ITEMS && i < PyList_GET_SIZE(self->items); i++)
		found = ops_ext_is_hand_made(state, PyList_GET_ITEM(self->items, i));
	return found;
}

/* Returns the result of torch's list of the same events. */
static PyObject *call_torch(PyObject *self, const char *name, PyObject *args, PyObject *kwargs)
{
	PyObject *front = Py_BuildValue("(Os)", self, name);
	PyObject *all = front ? PySequence_Concat(front, args) : NULL;

	Py_XDECREF(front);
	return hand_made_call("ask", all, kwargs);
}

#define REPORT(name)                                                                               \
	PyObject *ops_ext_any_list_##name(PyObject *self, PyObject *args, PyObject *kwargs)        \
	{                                                                                          \
		int hand_made = holds_hand_made((struct event_list_object *)self);                 \
                                                                                                   \
		if (hand_made)                                                                     \
			return hand_made < 0 ? NULL : call_torch(self, #name, args, kwargs);        \
		return ops_ext_event_list_##name(self, args, kwargs);                              \
	}
OPS_EXT_LIST_REPORTS(REPORT)

/* Torch's list has no such method, so its text is shown. */
PyObject *ops_ext_any_list__repr_html_(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {NULL};
	int hand_made = holds_hand_made((struct event_list_object *)self);

	if (hand_made < 0 || !PyArg_ParseTupleAndKeywords(args, kwargs, ":_repr_html_", names))
		return NULL;
	return hand_made ? Py_NewRef(Py_None) : ops_ext_event_list__html(self, args, NULL);
}

/* Steps of building the tree. Our tree always exists. */
#define STEP(name)                                                                                 \
	PyObject *ops_ext_any_list_##name(PyObject *self, PyObject *args, PyObject *kwargs)        \
	{                                                                                          \
		int hand_made = holds_hand_made((struct event_list_object *)self);                 \
                                                                                                   \
		if (hand_made)                                                                     \
			return hand_made < 0 ? NULL : call_torch(self, #name, args, kwargs);        \
		Py_RETURN_NONE;                                                                    \
	}
OPS_EXT_LIST_TREE_STEPS(STEP)

PyObject *ops_ext_any_list_self_cpu_time_total(PyObject *self, void *closure)
{
	int hand_made = holds_hand_made((struct event_list_object *)self);
	PyObject *none = hand_made ? PyTuple_New(0) : NULL, *result;

	if (!hand_made)
		return ops_ext_event_list_self_cpu_time_total(self, closure);
	result = hand_made > 0 && none ? call_torch(self, "self_cpu_time_total", none, NULL) : NULL;
	Py_XDECREF(none);
	return result;
}

PyObject *ops_ext_any_list_str(PyObject *self)
{
	struct ops_table_options options = OPS_TABLE_OPTIONS_DEFAULT;
	int hand_made = holds_hand_made((struct event_list_object *)self);
	PyObject *none = hand_made ? PyTuple_New(0) : NULL, *result;

	if (!hand_made)
		return ops_ext_event_list_text((struct event_list_object *)self, &options);
	result = hand_made > 0 && none ? call_torch(self, "table", none, NULL) : NULL;
	Py_XDECREF(none);
	return result;
}
