/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures as the command prints them, for the terminal interface.
 */
#include "ext.h"

#include <math.h>

#include <opstrobe/internal/format.h>

static PyObject *format_duration(PyObject *module, PyObject *number)
{
	double ns = PyFloat_AsDouble(number);
	char text[OPS_FORMAT_ROOM];

	(void)module;
	if (ns == -1 && PyErr_Occurred())
		return NULL;
	if (!isfinite(ns))
		return PyErr_Format(PyExc_ValueError, "a duration is a finite number");
	ops_format_duration(text, ns);
	return PyUnicode_FromString(text);
}

static PyObject *format_count(PyObject *module, PyObject *number)
{
	double count = PyFloat_AsDouble(number);
	char text[OPS_FORMAT_ROOM];

	(void)module;
	if (count == -1 && PyErr_Occurred())
		return NULL;
	if (!isfinite(count))
		return PyErr_Format(PyExc_ValueError, "a count is a finite number");
	ops_format_count(text, count);
	return PyUnicode_FromString(text);
}

static PyObject *format_bytes(PyObject *module, PyObject *number)
{
	long long bytes = PyLong_AsLongLong(number);
	char text[OPS_FORMAT_ROOM];

	(void)module;
	if (bytes == -1 && PyErr_Occurred())
		return NULL;
	ops_format_bytes(text, bytes);
	return PyUnicode_FromString(text);
}

static PyMethodDef figure_methods[] = {
	{"format_duration", format_duration, METH_O, "format_duration(ns: float) -> str\n\n\"1.234 ms\", in the unit that fits."},
	{"format_count", format_count, METH_O, "format_count(count: float) -> str\n\n\"11.69 M\", with the prefix that fits."},
	{"format_bytes", format_bytes, METH_O, "format_bytes(bytes: int) -> str\n\n\"1.50 MiB\", in the unit that fits."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_figures(PyObject *module)
{
	return PyModule_AddFunctions(module, figure_methods);
}
