/* SPDX-License-Identifier: Apache-2.0 */
#include "unseen.h"

#include "bridge.h"
#include "ext.h"
#include "raw_views.h"

enum core_function { TURN_OFF_FUNCTIONS, GET_GRAPH, SET_GRAPH };

/* Calls a function of torch._C; NULL: without an argument. Returns NULL on failure. */
static PyObject *call_core(enum core_function which, PyObject *argument)
{
	static const char *const names[] = {"DisableTorchFunction", "_get_tracing_state", "_set_tracing_state"};
	static PyObject *functions[3]; /* for the life of the process */
	PyObject *answer;

	if (!functions[which] || functions[which] == Py_None) /* torch is being imported */
		Py_XSETREF(functions[which], ops_ext_imported("torch._C", names[which]));
	answer = argument ? PyObject_CallOneArg(functions[which], argument) : PyObject_CallNoArgs(functions[which]);
	PyErr_Clear();
	return answer;
}

static PyObject *stop_tracing(void)
{
	PyObject *graph = call_core(GET_GRAPH, NULL), *answer;

	if (!graph || graph == Py_None)
		return Py_XDECREF(graph), NULL;
	answer = call_core(SET_GRAPH, Py_None);
	if (!answer)
		Py_CLEAR(graph);
	Py_XDECREF(answer);
	return graph;
}

struct ops_ext_unseen ops_ext_unseen_begin(void)
{
	const struct ops_torch_bridge *bridge = ops_ext_bridge();
	struct ops_ext_unseen unseen = {0};
	PyObject *type, *value, *traceback, *entered;

	PyErr_Fetch(&type, &value, &traceback);
	unseen.functions = call_core(TURN_OFF_FUNCTIONS, NULL);
	entered = unseen.functions ? PyObject_CallMethod(unseen.functions, "__enter__", NULL) : NULL;
	if (!entered)
		Py_CLEAR(unseen.functions);
	Py_XDECREF(entered);
	if (!bridge || bridge->is_tracing())
		unseen.graph = stop_tracing();
	PyErr_Restore(type, value, traceback);
	return unseen;
}

void ops_ext_unseen_end(struct ops_ext_unseen unseen)
{
	PyObject *type, *value, *traceback;

	PyErr_Fetch(&type, &value, &traceback);
	if (unseen.graph)
		Py_XDECREF(call_core(SET_GRAPH, unseen.graph));
	if (unseen.functions)
		Py_XDECREF(PyObject_CallMethod(unseen.functions, "__exit__", "OOO", Py_None, Py_None, Py_None));
	Py_XDECREF(unseen.graph);
	Py_XDECREF(unseen.functions);
	PyErr_Restore(type, value, traceback);
}
