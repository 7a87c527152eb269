/* SPDX-License-Identifier: Apache-2.0
 *
 * An operator's inputs (opstrobe/inputs.h) as the Python lists that torch shows, one entry for each argument; and the named
 * values that were recorded with it.
 */
#include "views.h"

#include <string.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/counters.h>

struct cursor {
	const char *next;
	const char *end;
};

static bool event_inputs_read(struct cursor *cursor, void *out, size_t size)
{
	if ((size_t)(cursor->end - cursor->next) < size) {
		PyErr_SetString(PyExc_ValueError, "inputs of an event are cut short");
		return false;
	}
	memcpy(out, cursor->next, size);
	cursor->next += size;
	return true;
}

/* Reads n integers. Returns them as a list, or None if they are only skipped. */
static PyObject *read_ints(struct cursor *cursor, unsigned n, bool wanted)
{
	PyObject *list = wanted ? PyList_New(n) : Py_NewRef(Py_None);

	for (unsigned i = 0; list && i < n; i++) {
		int64_t value;
		PyObject *item;

		if (!event_inputs_read(cursor, &value, sizeof(value)))
			Py_CLEAR(list);
		else if (wanted) {
			item = PyLong_FromLongLong(value);
			if (item)
				PyList_SET_ITEM(list, i, item);
			else
				Py_CLEAR(list);
		}
	}
	return list;
}

static PyObject *read_item(struct cursor *cursor, enum inputs_view view);

static PyObject *event_inputs_read_tensor(struct cursor *cursor, struct ops_input_head head, enum inputs_view view)
{
	bool want_sizes = view == INPUT_SHAPES || view == INPUT_STRUCTURED_SHAPES;
	PyObject *sizes = read_ints(cursor, head.n, want_sizes);
	PyObject *strides = NULL, *shown = NULL;

	if (sizes && head.tag == OPS_INPUT_TENSOR)
		strides = read_ints(cursor, head.n, view == INPUT_STRUCTURED_STRIDES);
	else if (sizes)
		strides = PyList_New(0);
	if (strides && want_sizes)
		shown = Py_NewRef(sizes);
	else if (strides && view == INPUT_STRUCTURED_STRIDES)
		shown = Py_NewRef(strides);
	else if (strides && view == INPUT_DTYPES)
		shown = PyUnicode_FromString(ops_dtype_name(head.dtype));
	else if (strides)
		shown = Py_NewRef(Py_None);
	Py_XDECREF(strides);
	Py_XDECREF(sizes);
	return shown;
}

/* Reads n items, those of a list. */
static PyObject *read_items(struct cursor *cursor, unsigned n, enum inputs_view view)
{
	PyObject *list = PyList_New(n);

	for (unsigned i = 0; list && i < n; i++) {
		PyObject *item = read_item(cursor, view);
		if (item)
			PyList_SET_ITEM(list, i, item);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *read_scalar(struct cursor *cursor, struct ops_input_head head)
{
	double parts[2];
	int64_t value;

	switch (head.tag) {
	case OPS_INPUT_INT:
		return event_inputs_read(cursor, &value, sizeof(value)) ? PyLong_FromLongLong(value) : NULL;
	case OPS_INPUT_BOOL:
		return PyBool_FromLong(head.n);
	case OPS_INPUT_DOUBLE:
		return event_inputs_read(cursor, parts, sizeof(parts[0])) ? PyFloat_FromDouble(parts[0]) : NULL;
	case OPS_INPUT_COMPLEX:
		return event_inputs_read(cursor, parts, sizeof(parts)) ? PyComplex_FromDoubles(parts[0], parts[1]) : NULL;
	default:
		PyErr_SetString(PyExc_ValueError, "inputs of an event hold an unknown tag");
		return NULL;
	}
}

/* Returns what represents a value in a view: the value itself (a stolen reference) only in the view of values. */
static PyObject *event_inputs_show(PyObject *take_value, enum inputs_view view, const char *dtype)
{
	if (!take_value || view == INPUT_CONCRETE)
		return take_value;
	Py_DECREF(take_value);
	return view == INPUT_DTYPES ? PyUnicode_FromString(dtype) : PyList_New(0);
}

static PyObject *read_item(struct cursor *cursor, enum inputs_view view)
{
	struct ops_input_head head;
	PyObject *value;

	if (!event_inputs_read(cursor, &head, sizeof(head)))
		return NULL;
	switch (head.tag) {
	case OPS_INPUT_NONE:
		return event_inputs_show(Py_NewRef(Py_None), view, "");
	case OPS_INPUT_TENSOR:
	case OPS_INPUT_TENSOR_PLAIN:
		return event_inputs_read_tensor(cursor, head, view);
	case OPS_INPUT_TENSOR_LIST:
		value = read_items(cursor, head.n, view);
		if (view == INPUT_STRUCTURED_SHAPES || view == INPUT_STRUCTURED_STRIDES || !value)
			return value;
		Py_DECREF(value);
		return event_inputs_show(Py_NewRef(Py_None), view, "TensorList");
	case OPS_INPUT_SCALAR_LIST:
		return event_inputs_show(read_items(cursor, head.n, INPUT_CONCRETE), view, "ScalarList");
	case OPS_INPUT_INT_LIST:
		return event_inputs_show(read_ints(cursor, head.n, true), view, "ScalarList");
	default:
		return event_inputs_show(read_scalar(cursor, head), view, "Scalar");
	}
}

PyObject *ops_ext_inputs(struct trace_object *trace, uint32_t inputs, enum inputs_view view)
{
	struct ops_string bytes;
	struct cursor cursor;
	PyObject *list;
	uint32_t count;

	if (inputs == OPS_NONE)
		return PyList_New(0);
	bytes = ops_trace_inputs(trace->trace, inputs);
	cursor = (struct cursor){.next = bytes.bytes, .end = bytes.bytes + bytes.size};
	if (!event_inputs_read(&cursor, &count, sizeof(count)))
		return NULL;
	list = PyList_New(0);
	for (uint32_t i = 0; list && i < count; i++) {
		PyObject *item = read_item(&cursor, view);
		if (!item || PyList_Append(list, item) < 0)
			Py_CLEAR(list);
		Py_XDECREF(item);
	}
	return list;
}

/* --- named values ------------------------------------------------------------------------------------------------- */

/* Returns whether a name belongs to other text of files or recordings, not to a keyword value. */
static bool is_other(const char *name)
{
	static const char *const others[] = {
		"Record function id", OPS_DEVICE_TIME_NAME, "Call stack", "Module Hierarchy", "CallFrom", "Python thread", "Profiler Event Index",
		"Collective name", "dtype", "In msg nelems", "Out msg nelems", "In split size", "Out split size",
		"Global rank start", "Global rank stride", "Group size", "Process Group Name", "Process Group Description",
		"Process Group Ranks", "Rank", "Src Rank", "Dst Rank", "Seq", "Comms Id", "Input Tensors start",
		"Output Tensors start", "Is asynchronized op", "Input Dims", "Input type", "Input Strides", "Concrete Inputs",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(others[i], name) == 0)
			return true;
	return false;
}

/* Returns the members of a JSON object without braces as a dict. */
static PyObject *members(struct ops_string text)
{
	PyObject *json = PyImport_ImportModule("json"), *braces = ops_ext_text(text.bytes, text.size), *dict = NULL;
	PyObject *object = braces ? PyUnicode_FromFormat("{%U}", braces) : NULL;

	if (json && object)
		dict = PyObject_CallMethod(json, "loads", "O", object);
	Py_XDECREF(json);
	Py_XDECREF(braces);
	Py_XDECREF(object);
	return dict;
}

PyObject *ops_ext_named_values(struct trace_object *trace, uint32_t row, bool counters)
{
	const struct ops_events *events = ops_trace_events(trace->trace);
	PyObject *all, *wanted = PyDict_New(), *name, *value;
	Py_ssize_t at = 0;

	if (!wanted || !events->extra || events->extra[row] == OPS_NONE || events->kind[row] > OPS_EVENT_USER_ANNOTATION)
		return wanted;
	all = members(ops_trace_string(trace->trace, events->extra[row]));
	while (all && PyDict_Next(all, &at, &name, &value)) {
		Py_ssize_t size;
		const char *bytes = PyUnicode_AsUTF8AndSize(name, &size);

		if (!bytes || (ops_counters_known(bytes, (size_t)size) == counters && !is_other(bytes) &&
			       PyDict_SetItem(wanted, name, value) < 0))
			Py_CLEAR(all);
	}
	if (!all)
		Py_CLEAR(wanted);
	Py_XDECREF(all);
	return wanted;
}
