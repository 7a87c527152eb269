/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace.views_json, advice_json, advice_text, diff_json, query and roofline: views and advice as JSON text, which Python
 * converts to dicts, and advice as text for people.
 */
#include "views.h"

#include <opstrobe/internal/advice.h>
#include <opstrobe/internal/roofline.h>
#include <opstrobe/internal/views.h>
#include <opstrobe/query.h>

PyObject *ops_ext_trace_views_json(PyObject *object, PyObject *arguments)
{
	const struct ops_trace *trace = ((struct trace_object *)object)->trace;
	struct ops_error error;
	enum ops_code code;
	const char *name = NULL;
	enum ops_rules rules;
	char *text = NULL;
	size_t size = 0;

	if (!PyArg_ParseTuple(arguments, "|z:views_json", &name))
		return NULL;
	if (ops_rules_parse(name, &rules, &error))
		return ops_ext_raise(&error);
	OPS_EXT_WITHOUT_GIL(code = ops_views_json(trace, rules, &text, &size, &error));
	return ops_ext_result_text(code, text, size, &error);
}

/* `others`: the traces of the other ranks of the job. */
static PyObject *advice_in(PyObject *object, PyObject *others, enum ops_format format)
{
	PyObject *list = PySequence_List(others), *result = NULL;
	size_t count = list ? (size_t)PyList_GET_SIZE(list) + 1 : 0;
	struct ops_rank *ranks = list ? PyMem_Calloc(count, sizeof(*ranks)) : NULL;
	struct ops_error error;
	enum ops_code code;
	char *text = NULL;
	size_t size = 0;

	if (!ranks) {
		Py_XDECREF(list);
		return list ? PyErr_NoMemory() : NULL;
	}
	for (size_t i = 0; i < count; i++) {
		PyObject *trace = i ? PyList_GET_ITEM(list, (Py_ssize_t)i - 1) : object;

		if (!PyObject_TypeCheck(trace, Py_TYPE(object))) {
			PyErr_SetString(PyExc_TypeError, "a rank is not a Trace");
			goto out;
		}
		ranks[i] = (struct ops_rank){.trace = ((struct trace_object *)trace)->trace, .name = count == 1 ? "" : NULL};
	}
	ops_number_ranks(ranks, count);
	OPS_EXT_WITHOUT_GIL(code = ops_advise(ranks, count, format, &text, &size, &error));
	result = ops_ext_result_text(code, text, size, &error);
out:
	PyMem_Free(ranks);
	Py_DECREF(list);
	return result;
}

static PyObject *advice_with(PyObject *object, PyObject *arguments, const char *form, enum ops_format format)
{
	PyObject *none = PyTuple_New(0), *others = none, *result = NULL;

	if (none && PyArg_ParseTuple(arguments, form, &others))
		result = advice_in(object, others, format);
	Py_XDECREF(none);
	return result;
}

PyObject *ops_ext_trace_advice_json(PyObject *object, PyObject *arguments)
{
	return advice_with(object, arguments, "|O:advice_json", OPS_FORMAT_JSON);
}

PyObject *ops_ext_trace_advice_text(PyObject *object, PyObject *arguments)
{
	return advice_with(object, arguments, "|O:advice_text", OPS_FORMAT_TEXT);
}

PyObject *ops_ext_trace_diff_json(PyObject *object, PyObject *arguments)
{
	const struct ops_trace *base = ((struct trace_object *)object)->trace;
	struct ops_diff_options options = {.format = OPS_FORMAT_JSON};
	const char *name = NULL;
	PyObject *other;
	struct ops_error error;
	enum ops_code code;
	char *text = NULL;
	size_t size = 0;

	if (!PyArg_ParseTuple(arguments, "O!|z:diff_json", Py_TYPE(object), &other, &name))
		return NULL;
	if (ops_rules_parse(name, &options.rules, &error))
		return ops_ext_raise(&error);
	OPS_EXT_WITHOUT_GIL(code = ops_diff(base, ((struct trace_object *)other)->trace, &options, &text, &size, NULL, &error));
	return ops_ext_result_text(code, text, size, &error);
}

PyObject *ops_ext_trace_query(PyObject *object, PyObject *arguments)
{
	const struct ops_rank rank = {.trace = ((struct trace_object *)object)->trace, .name = ""};
	struct ops_query_options options = {.size = sizeof(options), .format = OPS_FORMAT_JSON};
	struct ops_error error;
	enum ops_code code;
	const char *id;
	char *text = NULL;
	size_t size = 0;

	if (!PyArg_ParseTuple(arguments, "ss:query", &id, &options.args))
		return NULL;
	OPS_EXT_WITHOUT_GIL(code = ops_query(&(struct ops_run){.ranks = &rank, .count = 1}, id, &options, &text, &size, &error));
	return ops_ext_result_text(code, text, size, &error);
}

PyObject *ops_ext_trace_roofline(PyObject *object, PyObject *arguments)
{
	const struct ops_trace *trace = ((struct trace_object *)object)->trace;
	struct ops_roofline_options options = {.format = OPS_FORMAT_TEXT};
	struct ops_error error;
	enum ops_code code;
	char *text = NULL;
	size_t size = 0;
	Py_ssize_t rows_max;
	int by, as_json;

	if (!PyArg_ParseTuple(arguments, "iznp:roofline", &by, &options.roof, &rows_max, &as_json))
		return NULL;
	if (by < OPS_ROOFLINE_OPERATOR || by > OPS_ROOFLINE_MODULE || rows_max < 0) {
		PyErr_SetString(PyExc_ValueError, "roofline() takes a number from 0 to 4, a roof, and a number of rows");
		return NULL;
	}
	options.by = (enum ops_roofline_by)by;
	options.rows_max = (size_t)rows_max;
	options.format = as_json ? OPS_FORMAT_JSON : OPS_FORMAT_TEXT;
	OPS_EXT_WITHOUT_GIL(code = ops_roofline(trace, &options, &text, &size, &error));
	return ops_ext_result_text(code, text, size, &error);
}
