/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversion of errors and text between the C core and Python.
 */
#include "ext.h"

#include <string.h>

static PyObject *raise_os_error(const struct ops_error *error, PyObject *text)
{
	PyObject *arguments = Py_BuildValue("(iO)", error->os_errno, text);

	if (arguments) {
		PyErr_SetObject(PyExc_OSError, arguments);
		Py_DECREF(arguments);
	}
	return NULL;
}

PyObject *ops_ext_raise(const struct ops_error *error)
{
	PyObject *kind = PyExc_RuntimeError;
	PyObject *text;

	text = ops_ext_text(error->text, strlen(error->text));
	if (!text)
		return NULL;
	switch (error->code) {
	case OPS_IO:
		if (error->os_errno) {
			raise_os_error(error, text);
			Py_DECREF(text);
			return NULL;
		}
		kind = PyExc_OSError;
		break;
	case OPS_NO_MEMORY:
		kind = PyExc_MemoryError;
		break;
	case OPS_INVALID:
	case OPS_CORRUPT:
		kind = PyExc_ValueError;
		break;
	case OPS_UNSUPPORTED:
		kind = PyExc_NotImplementedError;
		break;
	default:
		break;
	}
	PyErr_SetObject(kind, text);
	Py_DECREF(text);
	return NULL;
}

PyObject *ops_ext_text(const char *bytes, size_t size)
{
	static const char *const ways[] = {NULL, "surrogatepass", "surrogateescape"};
	PyObject *text = NULL;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]) && !text; i++) {
		PyErr_Clear();
		text = PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)size, ways[i]);
		if (!text && !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
			return NULL;
	}
	return text;
}

PyObject *ops_ext_result_text(enum ops_code code, char *text, size_t size, const struct ops_error *error)
{
	PyObject *result;

	if (code)
		return ops_ext_raise(error);
	result = ops_ext_text(text, size);
	ops_free(text);
	return result;
}

PyObject *ops_ext_text_bytes(PyObject *text)
{
	return PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
}
