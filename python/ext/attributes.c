/* SPDX-License-Identifier: Apache-2.0
 *
 * Attributes by name: one, all of them as a dict, and back from a dict.
 */
#include "views.h"

PyObject *ops_ext_attribute(PyObject *self, const char *name)
{
	PyObject *text = PyUnicode_InternFromString(name);
	PyObject *value = text ? PyObject_GetAttr(self, text) : NULL;

	Py_XDECREF(text);
	return value;
}

PyObject *ops_ext_format(const char *format, PyObject *first, PyObject *second)
{
	PyObject *text = PyUnicode_FromString(format);
	PyObject *method = text ? ops_ext_attribute(text, "format") : NULL;
	PyObject *filled = method ? PyObject_CallFunctionObjArgs(method, first, second, NULL) : NULL;

	Py_XDECREF(method);
	Py_XDECREF(text);
	return filled;
}

PyObject *ops_ext_attributes(PyObject *self, const char *const *names, PyObject *extra)
{
	PyObject *dict = PyDict_New();

	for (; dict && *names; names++) {
		PyObject *value = ops_ext_attribute(self, *names);
		if (!value || PyDict_SetItemString(dict, *names, value) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(value);
	}
	if (dict && extra && PyDict_Update(dict, extra) < 0)
		Py_CLEAR(dict);
	return dict;
}

PyObject *ops_ext_set_attributes(PyObject *object, PyObject *state)
{
	PyObject *name, *value;
	Py_ssize_t i = 0;

	if (!PyDict_Check(state))
		return PyErr_Format(PyExc_TypeError, "the state of an event must be a dict");
	while (PyDict_Next(state, &i, &name, &value)) {
		if (PyObject_SetAttr(object, name, value) < 0)
			return NULL;
	}
	Py_RETURN_NONE;
}
