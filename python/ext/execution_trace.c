/* SPDX-License-Identifier: Apache-2.0
 *
 * ExecutionTrace: an execution trace that an observer of the torch bridge records. `close` writes its file; so does deallocation,
 * so that a program that ends with an error has a trace, too. A forked child has the object, but neither observer nor file.
 */
#include "ext.h"

#include <unistd.h>

#include <opstrobe/internal/execution_trace.h>

#include "bridge.h"

struct execution_trace_object {
	PyObject_HEAD
	PyObject *path;                   /* bytes; NULL once closed */
	struct ops_execution_trace *trace;
	uint64_t observer; /* 0: none */
	pid_t pid;
};

static void execution_trace_add_node(void *context, const struct ops_node *node)
{
	ops_execution_trace_add(context, node);
}

static int execution_trace_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"path", "integer_ranges", "integer_data_of", "integer_data_folder", NULL};
	struct ops_integer_options integers = {.data_of = "", .data_folder = ""};
	int ranges = 0;
	struct execution_trace_object *self = (struct execution_trace_object *)object;
	const struct ops_torch_bridge *bridge = ops_ext_bridge();
	struct ops_node_sink sink = {.add = execution_trace_add_node};
	const char *refusal;
	PyObject *path;

	if (self->path)
		return PyErr_SetString(PyExc_RuntimeError, "an ExecutionTrace is made once"), -1;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$pss:ExecutionTrace", keywords, PyUnicode_FSConverter, &path,
	                                 &ranges, &integers.data_of, &integers.data_folder))
		return -1;
	integers.ranges = ranges;
	self->pid = getpid();
	self->trace = bridge ? ops_execution_trace_new() : NULL;
	sink.context = self->trace;
	if (!bridge)
		PyErr_SetString(PyExc_RuntimeError, "no torch bridge is loaded");
	else if (!self->trace)
		PyErr_NoMemory();
	else if ((refusal = bridge->observer_open(&sink, &integers, &self->observer)))
		PyErr_Format(PyExc_RuntimeError, "cannot register an execution trace observer: %s", refusal);
	if (!self->observer)
		return Py_DECREF(path), -1;
	self->path = path;
	return 0;
}

static bool is_open(const struct execution_trace_object *self)
{
	return self->path && self->pid == getpid();
}

/* Ends recording into the trace. */
static void close_observer(struct execution_trace_object *self)
{
	uint64_t observer = self->observer;

	self->observer = 0;
	if (!observer || self->pid != getpid())
		return;
	Py_BEGIN_ALLOW_THREADS /* an operator that delivers its node may need the GIL first */
	ops_ext_bridge()->observer_close(observer);
	Py_END_ALLOW_THREADS
}

static PyObject *execution_trace_start(PyObject *object, PyObject *ignored)
{
	struct execution_trace_object *self = (struct execution_trace_object *)object;
	const char *refusal = is_open(self) ? ops_ext_bridge()->observer_start(self->observer) : NULL;

	(void)ignored;
	if (refusal)
		return PyErr_Format(PyExc_RuntimeError, "cannot start the execution trace observer: %s", refusal);
	Py_RETURN_NONE;
}

static PyObject *execution_trace_stop(PyObject *object, PyObject *ignored)
{
	struct execution_trace_object *self = (struct execution_trace_object *)object;

	(void)ignored;
	if (is_open(self))
		ops_ext_bridge()->observer_stop(self->observer);
	Py_RETURN_NONE;
}

/* Writes the file if that has not been done. Returns the number of lost nodes, or -1 with an exception set. */
static long long execution_trace_finish(struct execution_trace_object *self)
{
	PyObject *path = self->path;
	struct ops_error error;
	enum ops_code code = OPS_OK;
	uint64_t nodes = 0, lost = 0;

	if (!is_open(self))
		return 0;
	self->path = NULL;
	close_observer(self);
	Py_BEGIN_ALLOW_THREADS
	ops_execution_trace_counts(self->trace, &nodes, &lost);
	code = ops_execution_trace_write(self->trace, PyBytes_AS_STRING(path), &error);
	Py_END_ALLOW_THREADS
	Py_DECREF(path);
	if (code)
		return ops_ext_raise(&error), -1;
	return (long long)lost;
}

static PyObject *execution_trace_close(PyObject *object, PyObject *ignored)
{
	long long lost = execution_trace_finish((struct execution_trace_object *)object);

	(void)ignored;
	return lost < 0 ? NULL : PyLong_FromLongLong(lost);
}

static void execution_trace_dealloc(PyObject *object)
{
	struct execution_trace_object *self = (struct execution_trace_object *)object;
	PyTypeObject *type = Py_TYPE(object);
	PyObject *kind, *value, *traceback;

	PyErr_Fetch(&kind, &value, &traceback);
	if (execution_trace_finish(self) < 0)
		PyErr_WriteUnraisable((PyObject *)type);
	PyErr_Restore(kind, value, traceback);
	close_observer(self);
	Py_XDECREF(self->path);
	ops_execution_trace_free(self->trace);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMethodDef execution_trace_methods[] = {
	{"start", execution_trace_start, METH_NOARGS, "start()\n--\n\nBegins to observe, on all threads."},
	{"stop", execution_trace_stop, METH_NOARGS, "stop()\n--\n\nObserves nothing until the next start."},
	{"close", execution_trace_close, METH_NOARGS,
	 "close()\n--\n\nWrites the file and returns how many nodes memory was lacking for; nothing the second time."},
	{0},
};

static PyType_Slot execution_trace_slots[] = {
	{Py_tp_doc, "ExecutionTrace(path, *, integer_ranges=False, integer_data_of='', integer_data_folder='')\n--\n\nAn execution trace of this process, written by close."},
	{Py_tp_init, execution_trace_init},
	{Py_tp_dealloc, execution_trace_dealloc},
	{Py_tp_methods, execution_trace_methods},
	{0, NULL},
};

static PyType_Spec execution_trace_spec = {
	.name = "opstrobe._core.ExecutionTrace",
	.basicsize = sizeof(struct execution_trace_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = execution_trace_slots,
};

int ops_ext_add_execution_trace(PyObject *module)
{
	PyTypeObject *type;

	if (ops_ext_add_type(module, &execution_trace_spec, &type))
		return -1;
	Py_DECREF(type);
	return 0;
}
