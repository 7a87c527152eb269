/* SPDX-License-Identifier: Apache-2.0
 *
 * A module for test_other_pythons.py: who holds the GIL, by the interpreter's own structures.
 */
#include "frames.h"

/* Returns whether the calling thread is said to hold it while it does, and nobody after it has released it. */
static PyObject *gil_holder_is_right(PyObject *module, PyObject *unused)
{
	PyThreadState *self = PyThreadState_Get();
	PyInterpreterState *interpreter = PyInterpreterState_Get();
	int held = ops_gil_holder(interpreter) == self, released;

	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	released = ops_gil_holder(interpreter) == NULL;
	Py_END_ALLOW_THREADS
	return Py_BuildValue("ii", held, released);
}

static PyMethodDef gil_holder_functions[] = {
	{"is_right", gil_holder_is_right, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef gil_holder_module = {PyModuleDef_HEAD_INIT, "gil_holder", NULL, -1, gil_holder_functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_gil_holder(void)
{
	return PyModule_Create(&gil_holder_module);
}
