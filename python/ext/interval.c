/* SPDX-License-Identifier: Apache-2.0
 *
 * The two small values of events: Interval (start, end in us) and Kernel (name, device, duration), a named tuple.
 */
#include "views.h"

struct interval_object {
	PyObject_HEAD
	double start_us;
	double end_us;
};

static PyObject *interval_make(PyTypeObject *type, double start_us, double end_us)
{
	struct interval_object *self = (struct interval_object *)type->tp_alloc(type, 0);

	if (self) {
		self->start_us = start_us;
		self->end_us = end_us;
	}
	return (PyObject *)self;
}

PyObject *ops_ext_interval_new(struct ops_ext_state *state, double start_us, double end_us)
{
	return interval_make(state->interval, start_us, end_us);
}

static PyObject *interval_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"start", "end", NULL};
	double start_us, end_us;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "dd:Interval", names, &start_us, &end_us))
		return NULL;
	return interval_make(type, start_us, end_us);
}

static void interval_dealloc(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	type->tp_free(self);
	Py_DECREF(type);
}

static PyObject *interval_elapsed_us(PyObject *self, PyObject *unused)
{
	struct interval_object *interval = (struct interval_object *)self;

	(void)unused;
	return PyFloat_FromDouble(interval->end_us - interval->start_us);
}

static PyObject *interval_as_tuple(PyObject *self)
{
	struct interval_object *interval = (struct interval_object *)self;

	return Py_BuildValue("(dd)", interval->start_us, interval->end_us);
}

static PyObject *interval_repr(PyObject *self)
{
	PyObject *pair = interval_as_tuple(self);
	PyObject *text = NULL;

	if (pair)
		text = PyUnicode_FromFormat("Interval(start=%R, end=%R)", PyTuple_GET_ITEM(pair, 0),
		                            PyTuple_GET_ITEM(pair, 1));
	Py_XDECREF(pair);
	return text;
}

static PyObject *interval_compare(PyObject *a, PyObject *b, int op)
{
	struct interval_object *x = (struct interval_object *)a, *y = (struct interval_object *)b;
	bool equal;

	if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE))
		Py_RETURN_NOTIMPLEMENTED;
	equal = x->start_us == y->start_us && x->end_us == y->end_us;
	return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_hash_t interval_hash(PyObject *self)
{
	PyObject *pair = interval_as_tuple(self);
	Py_hash_t hash = -1;

	if (pair)
		hash = PyObject_Hash(pair);
	Py_XDECREF(pair);
	return hash;
}

static PyObject *interval_reduce(PyObject *self, PyObject *unused)
{
	(void)unused;
	return Py_BuildValue("(ON)", Py_TYPE(self), interval_as_tuple(self));
}

static PyMethodDef interval_methods[] = {
	{"elapsed_us", interval_elapsed_us, METH_NOARGS, "end - start, in us."},
	{"__reduce__", interval_reduce, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyMemberDef interval_members[] = {
	{"start", T_DOUBLE, offsetof(struct interval_object, start_us), READONLY, "Start in us after the session's start."},
	{"end", T_DOUBLE, offsetof(struct interval_object, end_us), READONLY, "End in us after the session's start."},
	{NULL, 0, 0, 0, NULL},
};

static PyType_Slot interval_slots[] = {
	{Py_tp_doc, "Interval(start, end)\n--\n\nA span of time in microseconds."},
	{Py_tp_new, interval_new},
	{Py_tp_dealloc, interval_dealloc},
	{Py_tp_repr, interval_repr},
	{Py_tp_richcompare, interval_compare},
	{Py_tp_hash, interval_hash},
	{Py_tp_methods, interval_methods},
	{Py_tp_members, interval_members},
	{0, NULL},
};

static PyType_Spec interval_spec = {
	.name = "opstrobe._core.Interval",
	.basicsize = sizeof(struct interval_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = interval_slots,
};

static PyObject *make_kernel_type(void)
{
	PyObject *collections = PyImport_ImportModule("collections");
	PyObject *make = NULL, *args = NULL, *kwargs = NULL, *type = NULL;

	if (!collections)
		return NULL;
	make = PyObject_GetAttrString(collections, "namedtuple");
	args = Py_BuildValue("(s[sss])", "Kernel", "name", "device", "duration");
	kwargs = Py_BuildValue("{ss}", "module", "opstrobe._core");
	if (make && args && kwargs)
		type = PyObject_Call(make, args, kwargs);
	Py_XDECREF(kwargs);
	Py_XDECREF(args);
	Py_XDECREF(make);
	Py_DECREF(collections);
	return type;
}

int ops_ext_add_interval(PyObject *module)
{
	PyObject *kernel = make_kernel_type();
	int failed;

	if (!kernel)
		return -1;
	failed = PyModule_AddObjectRef(module, "Kernel", kernel);
	ops_ext_state_of_module(module)->kernel = kernel;
	if (failed < 0)
		return -1;
	return ops_ext_add_type(module, &interval_spec, &ops_ext_state_of_module(module)->interval);
}
