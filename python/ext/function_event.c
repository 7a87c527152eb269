/* SPDX-License-Identifier: Apache-2.0
 *
 * FunctionEvent: one event of a trace as torch.profiler shows it. It is a view: a trace and a row. Its attributes are read from
 * the columns on access (event_fields.c) and cannot be changed (see hand_made.c for events that can). Users may add attributes;
 * the trace then keeps the event, so that they are still there when a list returns the event again.
 */
#include "views.h"

/* --- lifetime --------------------------------------------------------------------------------------------------- */

/* All views of a trace are linked. Until the trace keeps its first event, it does not refer to any view, and views, of which
 * there may be millions, are not tracked by the garbage collector; from then on all of them are. */
static void link_view(struct function_event_object *self)
{
	self->previous = NULL;
	self->next = self->trace->views;
	if (self->next)
		self->next->previous = self;
	self->trace->views = self;
}

static void unlink_view(struct function_event_object *self)
{
	if (self->previous)
		self->previous->next = self->next;
	else
		self->trace->views = self->next;
	if (self->next)
		self->next->previous = self->previous;
}

PyObject *ops_ext_function_event_new(struct ops_ext_state *state, struct trace_object *trace, uint32_t ref,
                                     PyObject *use_device, bool with_flops)
{
	struct function_event_object *self;

	if (trace->kept) {
		PyObject *key = PyLong_FromUnsignedLong(ref);
		PyObject *kept = key ? PyDict_GetItemWithError(trace->kept, key) : NULL;
		Py_XDECREF(key);
		if (kept || PyErr_Occurred())
			return Py_XNewRef(kept);
	}
	self = PyObject_GC_New(struct function_event_object, state->function_event);
	if (!self)
		return NULL;
	self->trace = (struct trace_object *)Py_NewRef(trace);
	self->use_device = Py_NewRef(use_device);
	self->dict = NULL;
	self->ref = ref;
	self->with_flops = with_flops;
	link_view(self);
	if (trace->kept)
		PyObject_GC_Track(self);
	return (PyObject *)self;
}

static int event_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct function_event_object *self = (struct function_event_object *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->trace);
	Py_VISIT(self->dict);
	return 0;
}

static int event_clear(PyObject *object)
{
	/* The trace is kept: attributes are read through it as long as the event lives, and the trace breaks the cycle over its
	 * `kept`. */
	Py_CLEAR(((struct function_event_object *)object)->dict);
	return 0;
}

static void function_event_dealloc(PyObject *object)
{
	struct function_event_object *self = (struct function_event_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	unlink_view(self);
	Py_CLEAR(self->dict);
	Py_CLEAR(self->use_device);
	Py_CLEAR(self->trace);
	PyObject_GC_Del(object);
	Py_DECREF(type);
}

/* --- attributes added by users ------------------------------------------------------------------------------------ */

int ops_ext_function_event_keep(struct function_event_object *self)
{
	PyObject *key;
	int failed;

	if (!self->trace->kept) {
		self->trace->kept = PyDict_New();
		if (!self->trace->kept)
			return -1;
		for (struct function_event_object *view = self->trace->views; view; view = view->next)
			if (!PyObject_GC_IsTracked((PyObject *)view))
				PyObject_GC_Track(view);
	}
	key = PyLong_FromUnsignedLong(self->ref);
	if (!key)
		return -1;
	failed = PyDict_SetItem(self->trace->kept, key, (PyObject *)self);
	Py_DECREF(key);
	return failed;
}

static int event_setattr(PyObject *object, PyObject *name, PyObject *value)
{
	struct function_event_object *self = (struct function_event_object *)object;
	bool kept = self->dict != NULL;

	if (PyObject_GenericSetAttr(object, name, value) < 0)
		return -1;
	return kept || !self->dict ? 0 : ops_ext_function_event_keep(self);
}

/* --- other methods ----------------------------------------------------------------------------------------------- */

static PyObject *child_ids(PyObject *self)
{
	PyObject *children = ops_ext_attribute(self, "cpu_children");

	for (Py_ssize_t i = 0; children && i < PyList_GET_SIZE(children); i++) {
		PyObject *id = ops_ext_attribute(PyList_GET_ITEM(children, i), "id");
		if (!id)
			Py_CLEAR(children);
		else
			PyList_SetItem(children, i, id);
	}
	return children;
}

static PyObject *event_repr(PyObject *object)
{
	static const char format[] =
		"<FunctionEvent id={0.id} name={0.name} overload_name={0.overload_name} device_type={0.device_type} "
		"node_id={0.node_id} cpu_time={0.cpu_time_str} start_us={0.time_range.start} end_us={0.time_range.end} "
		"cpu_children={1} {0.use_device}_time={0.device_time_str} name={0.name} thread={0.thread} "
		"input_shapes={0.input_shapes} cpu_memory_usage={0.cpu_memory_usage} "
		"{0.use_device}_memory_usage={0.device_memory_usage} is_async={0.is_async} is_remote={0.is_remote} "
		"seq_nr={0.sequence_nr} is_legacy={0.is_legacy}>";
	PyObject *ids = child_ids(object);
	PyObject *text = ids ? ops_ext_format(format, object, ids) : NULL;

	Py_XDECREF(ids);
	return text;
}

/* Two views of the same event are equal. */
static PyObject *function_event_compare(PyObject *a, PyObject *b, int op)
{
	struct function_event_object *x = (struct function_event_object *)a, *y = (struct function_event_object *)b;
	bool equal;

	if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE))
		Py_RETURN_NOTIMPLEMENTED;
	equal = x->trace == y->trace && x->ref == y->ref;
	return PyBool_FromLong(equal == (op == Py_EQ));
}

static Py_hash_t function_event_hash(PyObject *object)
{
	struct function_event_object *self = (struct function_event_object *)object;
	uint64_t mixed = ((uint64_t)(uintptr_t)self->trace >> 4) * 0x9e3779b97f4a7c15u + self->ref * 0xff51afd7ed558ccdu;
	Py_hash_t hash = (Py_hash_t)(mixed ^ (mixed >> 32));

	return hash == -1 ? -2 : hash;
}

static PyObject *event_copy(PyObject *object, PyObject *unused)
{
	(void)unused;
	return Py_NewRef(object);
}

static PyMethodDef event_methods[] = {
	{"__reduce__", ops_ext_function_event_reduce, METH_NOARGS, NULL},
	{"_rebuild", ops_ext_function_event_rebuild, METH_VARARGS | METH_CLASS, NULL},
	{"__setstate__", ops_ext_set_attributes, METH_O, NULL},
	{"__copy__", event_copy, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyMemberDef event_members[] = {
	{"__dictoffset__", T_PYSSIZET, offsetof(struct function_event_object, dict), READONLY, NULL},
	{NULL, 0, 0, 0, NULL},
};

static PyType_Slot event_slots[] = {
	{Py_tp_doc, "One event of a trace; read-only. Times in microseconds."},
	{Py_tp_new, ops_ext_hand_made_event},
	{Py_tp_traverse, event_traverse},
	{Py_tp_clear, event_clear},
	{Py_tp_dealloc, function_event_dealloc},
	{Py_tp_repr, event_repr},
	{Py_tp_richcompare, function_event_compare},
	{Py_tp_hash, function_event_hash},
	{Py_tp_setattro, event_setattr},
	{Py_tp_getset, ops_ext_function_event_getsets},
	{Py_tp_methods, event_methods},
	{Py_tp_members, event_members},
	{0, NULL},
};

static PyType_Spec event_spec = {
	.name = "opstrobe._core.FunctionEvent",
	.basicsize = sizeof(struct function_event_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = event_slots,
};

int ops_ext_add_function_event(PyObject *module)
{
	return ops_ext_add_type(module, &event_spec, &ops_ext_state_of_module(module)->function_event);
}
