/* SPDX-License-Identifier: Apache-2.0
 *
 * read_trace(): reads a file as a Trace.
 */
#include "views.h"

#include <opstrobe/read.h>

/* Calls the progress function, with the GIL. Returns nonzero if it raised an exception, which ends reading. */
static int call_progress(void *context, const struct ops_read_progress *progress)
{
	PyGILState_STATE state = PyGILState_Ensure();
	PyObject *result = context ? PyObject_CallFunction(context, "KK", (unsigned long long)progress->bytes,
	                                                   (unsigned long long)progress->bytes_total)
	                           : Py_NewRef(Py_None);
	int failed = !result || PyErr_CheckSignals() < 0;

	Py_XDECREF(result);
	PyGILState_Release(state);
	return failed;
}

static PyObject *module_read_trace(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"path", "progress", NULL};
	struct ops_read_options options = {.size = sizeof(options), .progress = call_progress};
	PyObject *path, *progress = Py_None;
	struct ops_trace *trace = NULL;
	struct ops_error error;
	enum ops_code code;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$O:read_trace", names, PyUnicode_FSConverter, &path, &progress))
		return NULL;
	options.progress_context = progress == Py_None ? NULL : progress;
	OPS_EXT_WITHOUT_GIL(code = ops_trace_read(PyBytes_AS_STRING(path), &options, &trace, &error));
	Py_DECREF(path);
	if (code)
		return PyErr_Occurred() ? NULL : ops_ext_raise(&error);
	return ops_ext_trace_new(module, trace);
}

static PyObject *module_parse_trace(PyObject *module, PyObject *bytes)
{
	struct ops_trace *trace = NULL;
	struct ops_error error;
	enum ops_code code;

	if (!PyBytes_Check(bytes))
		return PyErr_Format(PyExc_TypeError, "a trace's text must be bytes, not %.200s", Py_TYPE(bytes)->tp_name);
	OPS_EXT_WITHOUT_GIL(code = ops_trace_read_memory(PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes), NULL,
	                                                 &trace, &error));
	return code ? ops_ext_raise(&error) : ops_ext_trace_new(module, trace);
}

static PyMethodDef module_methods[] = {
	{"read_trace", (PyCFunction)(void (*)(void))module_read_trace, METH_VARARGS | METH_KEYWORDS,
	 "read_trace(path, *, progress=None)\n--\n\nReads a trace file; progress(bytes_done, bytes_total) is called while it "
	 "does."},
	{"parse_trace", module_parse_trace, METH_O, "parse_trace(text)\n--\n\nReads a trace from bytes."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_read_trace(PyObject *module)
{
	return PyModule_AddFunctions(module, module_methods);
}
