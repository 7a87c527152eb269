/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a Trace for dataframe libraries: Arrow's capsules, and plain buffers for users without Arrow.
 */
#include "views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <opstrobe/arrow.h>

/* --- capsules ------------------------------------------------------------------------------------------------------- */

/* A capsule releases its contents unless a consumer has moved them. */
#define CAPSULE_DESTRUCTOR(function, type, name)                                                   \
	static void function(PyObject *capsule)                                                    \
	{                                                                                          \
		struct type *held = PyCapsule_GetPointer(capsule, name);                           \
		if (held && held->release)                                                         \
			held->release(held);                                                       \
		free(held);                                                                        \
	}
CAPSULE_DESTRUCTOR(free_schema, ArrowSchema, "arrow_schema")
CAPSULE_DESTRUCTOR(free_array, ArrowArray, "arrow_array")
CAPSULE_DESTRUCTOR(free_stream, ArrowArrayStream, "arrow_array_stream")

static PyObject *make_schema(void)
{
	struct ArrowSchema *schema = calloc(1, sizeof(*schema));
	struct ops_error error;
	PyObject *capsule;

	if (!schema)
		return PyErr_NoMemory();
	if (ops_arrow_schema(schema, &error)) {
		free(schema);
		return ops_ext_raise(&error);
	}
	capsule = PyCapsule_New(schema, "arrow_schema", free_schema);
	if (!capsule) {
		schema->release(schema);
		free(schema);
	}
	return capsule;
}

static PyObject *make_array(struct ops_trace *trace)
{
	struct ArrowArray *array = calloc(1, sizeof(*array));
	struct ops_error error;
	enum ops_code code;
	PyObject *capsule;

	if (!array)
		return PyErr_NoMemory();
	OPS_EXT_WITHOUT_GIL(code = ops_arrow_array(trace, array, &error));
	if (code) {
		free(array);
		return ops_ext_raise(&error);
	}
	capsule = PyCapsule_New(array, "arrow_array", free_array);
	if (!capsule) {
		array->release(array);
		free(array);
	}
	return capsule;
}

PyObject *ops_ext_trace_arrow_schema(PyObject *object, PyObject *unused)
{
	(void)object;
	(void)unused;
	return make_schema();
}

/* `requested_schema` is a wish that a producer may ignore. */
PyObject *ops_ext_trace_arrow_array(PyObject *object, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"requested_schema", NULL};
	PyObject *wish, *schema, *array;

	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:__arrow_c_array__", names, &wish))
		return NULL;
	schema = make_schema();
	array = schema ? make_array(((struct trace_object *)object)->trace) : NULL;
	if (!array) {
		Py_XDECREF(schema);
		return NULL;
	}
	return Py_BuildValue("(NN)", schema, array);
}

/* --- a stream of one batch ------------------------------------------------------------------------------------------ */

struct stream {
	struct ops_trace *trace;
	struct ops_error error;
	bool over;
};

static int stream_schema(struct ArrowArrayStream *base, struct ArrowSchema *out)
{
	struct stream *stream = base->private_data;

	return ops_arrow_schema(out, &stream->error) ? ENOMEM : 0;
}

static int stream_next(struct ArrowArrayStream *base, struct ArrowArray *out)
{
	struct stream *stream = base->private_data;

	*out = (struct ArrowArray){0};
	if (stream->over)
		return 0;
	stream->over = true;
	return ops_arrow_array(stream->trace, out, &stream->error) ? ENOMEM : 0;
}

static const char *stream_error(struct ArrowArrayStream *base)
{
	return ((struct stream *)base->private_data)->error.text;
}

static void stream_release(struct ArrowArrayStream *base)
{
	struct stream *stream = base->private_data;

	ops_trace_unref(stream->trace);
	free(stream);
	base->release = NULL;
}

PyObject *ops_ext_trace_arrow_stream(PyObject *object, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"requested_schema", NULL};
	struct ArrowArrayStream *base;
	struct stream *stream;
	PyObject *wish, *capsule;

	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|O:__arrow_c_stream__", names, &wish))
		return NULL;
	base = calloc(1, sizeof(*base));
	stream = calloc(1, sizeof(*stream));
	if (!base || !stream) {
		free(base);
		free(stream);
		return PyErr_NoMemory();
	}
	stream->trace = ops_trace_ref(((struct trace_object *)object)->trace);
	*base = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, stream};
	capsule = PyCapsule_New(base, "arrow_array_stream", free_stream);
	if (!capsule) {
		stream_release(base);
		free(base);
	}
	return capsule;
}

/* --- tables --------------------------------------------------------------------------------------------------------- */

/* Collects the names in a sequence of str: borrowed from it, in an array that the caller frees. Returns NULL with an exception
 * set. */
static const char **names_of(PyObject *sequence, size_t *ret_count)
{
	Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
	const char **names = calloc((size_t)count + 1, sizeof(*names));

	if (!names) {
		PyErr_NoMemory();
		return NULL;
	}
	for (Py_ssize_t i = 0; i < count; i++) {
		names[i] = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(sequence, i));
		if (!names[i]) {
			free(names);
			return NULL;
		}
	}
	*ret_count = (size_t)count;
	return names;
}

static PyObject *table_capsules(const struct ops_trace *trace, const char *table, const char *const *columns, size_t count)
{
	struct ArrowSchema *schema = calloc(1, sizeof(*schema));
	struct ArrowArray *array = calloc(1, sizeof(*array));
	PyObject *schema_capsule = schema ? PyCapsule_New(schema, "arrow_schema", free_schema) : NULL;
	PyObject *array_capsule = array ? PyCapsule_New(array, "arrow_array", free_array) : NULL;
	struct ops_error error;
	enum ops_code code;

	if (!schema_capsule)
		free(schema);
	if (!array_capsule)
		free(array);
	if (!schema_capsule || !array_capsule) {
		Py_XDECREF(schema_capsule);
		Py_XDECREF(array_capsule);
		return PyErr_NoMemory();
	}
	OPS_EXT_WITHOUT_GIL(code = ops_arrow_table(trace, table, columns, count, schema, array, &error));
	if (!code)
		return Py_BuildValue("(NN)", schema_capsule, array_capsule);
	Py_DECREF(schema_capsule);
	Py_DECREF(array_capsule);
	return ops_ext_raise(&error);
}

PyObject *ops_ext_trace_table(PyObject *object, PyObject *arguments, PyObject *keywords)
{
	static char *names[] = {"table", "columns", NULL};
	const char *table, **columns = NULL;
	PyObject *wanted = Py_None, *sequence = NULL, *result;
	size_t count = 0;

	if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "s|O:table", names, &table, &wanted))
		return NULL;
	if (wanted != Py_None) {
		sequence = PySequence_Fast(wanted, "columns must be a sequence of names");
		columns = sequence ? names_of(sequence, &count) : NULL;
		if (!columns) {
			Py_XDECREF(sequence);
			return NULL;
		}
	}
	result = table_capsules(((struct trace_object *)object)->trace, table, columns, count);
	free(columns);
	Py_XDECREF(sequence);
	return result;
}

/* --- without Arrow -------------------------------------------------------------------------------------------------- */

static PyObject *dictionary_of(const struct ArrowArray *array)
{
	const int64_t *offsets = array->buffers[1];
	const char *bytes = array->buffers[2];
	PyObject *list = PyList_New((Py_ssize_t)array->length);

	for (int64_t i = 0; list && i < array->length; i++) {
		PyObject *text = PyUnicode_DecodeUTF8(bytes + offsets[i], (Py_ssize_t)(offsets[i + 1] - offsets[i]), NULL);

		if (text)
			PyList_SET_ITEM(list, (Py_ssize_t)i, text);
		else
			Py_CLEAR(list);
	}
	return list;
}

/* Returns (numpy's name of the type, values, valid bits or None, list of strings or None). */
static PyObject *arrow_column_of(const struct ArrowArray *array, char type)
{
	size_t width = type == 'I' ? 4 : type == 'S' ? 2 : 8;
	PyObject *valid, *texts, *values;

	values = PyBytes_FromStringAndSize(array->buffers[1], (Py_ssize_t)((size_t)array->length * width));
	valid = array->buffers[0] ? PyBytes_FromStringAndSize(array->buffers[0], (Py_ssize_t)(array->length / 8 + 1))
	                          : Py_NewRef(Py_None);
	texts = array->dictionary ? dictionary_of(array->dictionary) : Py_NewRef(Py_None);
	if (values && valid && texts)
		return Py_BuildValue("(sNNN)", type == 'I' ? "u4" : type == 'S' ? "u2" : type == 'L' ? "u8" : "i8", values, valid,
		                     texts);
	Py_XDECREF(values);
	Py_XDECREF(valid);
	Py_XDECREF(texts);
	return NULL;
}

PyObject *ops_ext_trace_columns(PyObject *object, PyObject *unused)
{
	struct ArrowSchema schema;
	struct ArrowArray array;
	struct ops_error error;
	enum ops_code code;
	PyObject *result;

	(void)unused;
	if (ops_arrow_schema(&schema, &error))
		return ops_ext_raise(&error);
	OPS_EXT_WITHOUT_GIL(code = ops_arrow_array(((struct trace_object *)object)->trace, &array, &error));
	if (code) {
		schema.release(&schema);
		return ops_ext_raise(&error);
	}
	result = PyDict_New();
	for (int64_t i = 0; result && i < array.n_children; i++) {
		PyObject *column = arrow_column_of(array.children[i], schema.children[i]->format[0]);

		if (!column || PyDict_SetItemString(result, schema.children[i]->name, column))
			Py_CLEAR(result);
		Py_XDECREF(column);
	}
	array.release(&array);
	schema.release(&schema);
	return result;
}
