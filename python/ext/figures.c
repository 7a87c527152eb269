/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures as the command prints them, for the terminal interface.
 */
#include "ext.h"

#include <math.h>

#include <opstrobe/internal/format.h>

/* Formats a finite number. */
static PyObject *format_finite(PyObject *number, void (*format)(char *out, double number))
{
	double value = PyFloat_AsDouble(number);
	char text[OPS_FORMAT_ROOM];

	if (value == -1 && PyErr_Occurred())
		return NULL;
	if (!isfinite(value))
		return PyErr_Format(PyExc_ValueError, "a figure is a finite number");
	format(text, value);
	return PyUnicode_FromString(text);
}

static PyObject *format_duration(PyObject *module, PyObject *number)
{
	(void)module;
	return format_finite(number, ops_format_duration);
}

static PyObject *format_count(PyObject *module, PyObject *number)
{
	(void)module;
	return format_finite(number, ops_format_count);
}

static PyObject *format_percent(PyObject *module, PyObject *number)
{
	(void)module;
	return format_finite(number, ops_format_percent);
}

static PyObject *format_change(PyObject *module, PyObject *number)
{
	(void)module;
	return format_finite(number, ops_format_change);
}

static PyObject *format_number(PyObject *module, PyObject *number)
{
	(void)module;
	return format_finite(number, ops_format_number);
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
	{"format_duration", format_duration, METH_O, "format_duration(ns: float) -> str\n\n\"1.23 ms\", in the unit that fits."},
	{"format_count", format_count, METH_O, "format_count(count: float) -> str\n\n\"11.7 M\", with the prefix that fits."},
	{"format_bytes", format_bytes, METH_O, "format_bytes(bytes: int) -> str\n\n\"1.50 MiB\", in the unit that fits."},
	{"format_percent", format_percent, METH_O, "format_percent(percent: float) -> str\n\n\"12.3 %\"."},
	{"format_change", format_change, METH_O, "format_change(percent: float) -> str\n\n\"+12.3 %\", with its sign."},
	{"format_number", format_number, METH_O, "format_number(number: float) -> str\n\n\"12.3\", and integers in full: \"12,345\"."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_figures(PyObject *module)
{
	return PyModule_AddFunctions(module, figure_methods);
}
