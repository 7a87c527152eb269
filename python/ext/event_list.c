/* SPDX-License-Identifier: Apache-2.0
 *
 * EventList: a sequence of FunctionEvents or FunctionEventAvgs over C arrays. It behaves like the list that torch.profiler
 * returns, also for append, sort and so on, but is not a subclass of list: C code reads the items of a list directly, and here
 * they are created on demand. It is registered as a MutableSequence.
 */
#include "views.h"

#include <string.h>

/* --- lifetime --------------------------------------------------------------------------------------------------- */

static struct event_list_object *list_alloc(struct ops_ext_state *state, const struct view_options *options)
{
	struct event_list_object *self = PyObject_GC_New(struct event_list_object, state->event_list);

	if (!self)
		return NULL;
	memset((char *)self + sizeof(PyObject), 0, sizeof(*self) - sizeof(PyObject));
	self->kind = LIST_EVENTS;
	self->options = *options;
	Py_INCREF(self->options.use_device);
	PyObject_GC_Track(self);
	return self;
}

PyObject *ops_ext_event_list_of_refs(struct ops_ext_state *state, struct trace_object *trace,
                                     const struct view_options *options, uint32_t *take_refs, size_t count)
{
	struct event_list_object *self = list_alloc(state, options);

	if (!self) {
		PyMem_Free(take_refs);
		return NULL;
	}
	self->trace = (struct trace_object *)Py_XNewRef(trace);
	self->own_refs = take_refs;
	self->refs = take_refs || !trace ? take_refs : trace->refs;
	self->count = count;
	return (PyObject *)self;
}

PyObject *ops_ext_event_list_of_rows(struct ops_ext_state *state, struct trace_object *trace,
                                     const struct view_options *options, struct ops_average *take_rows, size_t count,
                                     bool by_input_shape, bool by_overload_name)
{
	struct event_list_object *self = list_alloc(state, options);

	if (!self) {
		ops_free(take_rows);
		return NULL;
	}
	self->kind = LIST_AVERAGES;
	self->is_unordered = true;
	self->trace = (struct trace_object *)Py_NewRef(trace);
	self->rows = take_rows;
	self->count = count;
	self->by_input_shape = by_input_shape;
	self->by_overload_name = by_overload_name;
	return (PyObject *)self;
}

PyObject *ops_ext_event_list_of_items(struct ops_ext_state *state, const struct view_options *options,
                                      PyObject *take_items)
{
	struct event_list_object *self = list_alloc(state, options);

	if (!self) {
		Py_DECREF(take_items);
		return NULL;
	}
	self->kind = LIST_ITEMS;
	self->items = take_items;
	return (PyObject *)self;
}

PyObject *ops_ext_event_list_of(struct ops_ext_state *state, PyObject *iterable, const struct view_options *options)
{
	PyObject *items = iterable ? PySequence_List(iterable) : PyList_New(0);

	for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items); i++) {
		int is_event = ops_ext_is_event(state, PyList_GET_ITEM(items, i));

		if (is_event == 0)
			PyErr_Format(PyExc_TypeError, "an EventList holds FunctionEvents or FunctionEventAvgs, not %.200s",
			             Py_TYPE(PyList_GET_ITEM(items, i))->tp_name);
		if (is_event <= 0)
			Py_CLEAR(items);
	}
	return items ? ops_ext_event_list_of_items(state, options, items) : NULL;
}

static PyObject *list_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"", "use_device", "profile_memory", "with_flops", NULL};
	struct ops_ext_state *state = PyType_GetModuleState(type);
	struct view_options options = {.use_device = Py_None};
	int profile_memory = 0, with_flops = 0;
	PyObject *iterable = NULL;

	if (!state || !PyArg_ParseTupleAndKeywords(args, kwargs, "|O$Opp:EventList", names, &iterable,
	                                           &options.use_device, &profile_memory, &with_flops))
		return NULL;
	if (options.use_device != Py_None && !PyUnicode_Check(options.use_device))
		return PyErr_Format(PyExc_TypeError, "use_device must be a str or None");
	options.profile_memory = (char)profile_memory;
	options.with_flops = (char)with_flops;
	return ops_ext_event_list_of(state, iterable, &options);
}

static int list_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct event_list_object *self = (struct event_list_object *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->trace);
	Py_VISIT(self->items);
	return 0;
}

static int list_clear(PyObject *object)
{
	struct event_list_object *self = (struct event_list_object *)object;

	/* The list is empty from now on. The trace is kept: only attributes of events refer back from it to the list, and the
	 * trace clears those itself. */
	self->kind = LIST_EVENTS;
	self->count = 0;
	Py_CLEAR(self->items);
	return 0;
}

static void list_dealloc(PyObject *object)
{
	struct event_list_object *self = (struct event_list_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	Py_CLEAR(self->items);
	Py_CLEAR(self->options.use_device);
	PyMem_Free(self->own_refs);
	ops_free(self->rows);
	Py_CLEAR(self->trace);
	PyObject_GC_Del(object);
	Py_DECREF(type);
}

/* --- sequence ---------------------------------------------------------------------------------------------------- */

static Py_ssize_t list_length(PyObject *object)
{
	struct event_list_object *self = (struct event_list_object *)object;

	return self->kind == LIST_ITEMS ? PyList_GET_SIZE(self->items) : (Py_ssize_t)self->count;
}

PyObject *ops_ext_event_list_item(struct event_list_object *self, size_t i)
{
	struct ops_ext_state *state;

	if (self->kind == LIST_AVERAGES && ops_ext_event_list_materialise(self) < 0)
		return NULL;
	if (self->kind == LIST_ITEMS)
		return Py_NewRef(PyList_GET_ITEM(self->items, (Py_ssize_t)i));
	state = ops_ext_state_of((PyObject *)self);
	if (!state)
		return NULL;
	return ops_ext_function_event_new(state, self->trace, self->refs[i], self->options.use_device,
	                                  self->options.with_flops);
}

static PyObject *list_item(PyObject *object, Py_ssize_t i)
{
	if (i < 0 || i >= list_length(object)) {
		PyErr_SetString(PyExc_IndexError, "list index out of range");
		return NULL;
	}
	return ops_ext_event_list_item((struct event_list_object *)object, (size_t)i);
}

static PyObject *list_slice(struct event_list_object *self, PyObject *slice)
{
	struct ops_ext_state *state = ops_ext_state_of((PyObject *)self);
	Py_ssize_t start, stop, step, count;
	PyObject *items;
	uint32_t *refs;

	if (!state || PySlice_Unpack(slice, &start, &stop, &step) < 0)
		return NULL;
	count = PySlice_AdjustIndices(list_length((PyObject *)self), &start, &stop, step);
	if (self->kind == LIST_AVERAGES && ops_ext_event_list_materialise(self) < 0)
		return NULL;
	if (self->kind == LIST_ITEMS) {
		items = PyObject_GetItem(self->items, slice);
		return items ? ops_ext_event_list_of_items(state, &self->options, items) : NULL;
	}
	refs = PyMem_New(uint32_t, count ? count : 1);
	if (!refs)
		return PyErr_NoMemory();
	for (Py_ssize_t i = 0; i < count; i++)
		refs[i] = self->refs[start + i * step];
	return ops_ext_event_list_of_refs(state, self->trace, &self->options, refs, (size_t)count);
}

static PyObject *list_subscript(PyObject *object, PyObject *key)
{
	Py_ssize_t i;

	if (PySlice_Check(key))
		return list_slice((struct event_list_object *)object, key);
	if (!PyIndex_Check(key))
		return PyErr_Format(PyExc_TypeError, "list indices must be integers or slices, not %.200s",
		                    Py_TYPE(key)->tp_name);
	i = PyNumber_AsSsize_t(key, PyExc_IndexError);
	if (i == -1 && PyErr_Occurred())
		return NULL;
	return list_item(object, i < 0 ? i + list_length(object) : i);
}

/* Returns the first index in [from, to) of `value`; -1 if there is none, -2 with an exception set. */
static Py_ssize_t list_find(struct event_list_object *self, PyObject *value, Py_ssize_t from, Py_ssize_t to)
{
	for (Py_ssize_t i = from; i < to && i < list_length((PyObject *)self); i++) {
		PyObject *item = ops_ext_event_list_item(self, (size_t)i);
		int equal = item ? PyObject_RichCompareBool(item, value, Py_EQ) : -1;

		Py_XDECREF(item);
		if (equal)
			return equal < 0 ? -2 : i;
	}
	return -1;
}

static int list_contains(PyObject *object, PyObject *value)
{
	Py_ssize_t i = list_find((struct event_list_object *)object, value, 0, PY_SSIZE_T_MAX);

	return i < -1 ? -1 : i >= 0;
}

static PyObject *list_index(PyObject *object, PyObject *args)
{
	Py_ssize_t from = 0, to = PY_SSIZE_T_MAX, length = list_length(object), i;
	PyObject *value;

	if (!PyArg_ParseTuple(args, "O|nn:index", &value, &from, &to))
		return NULL;
	from = from < 0 ? (from + length < 0 ? 0 : from + length) : from;
	to = to < 0 ? to + length : to;
	i = list_find((struct event_list_object *)object, value, from, to);
	if (i >= 0)
		return PyLong_FromSsize_t(i);
	if (i == -1)
		PyErr_Format(PyExc_ValueError, "%R is not in list", value);
	return NULL;
}

static PyObject *list_count(PyObject *object, PyObject *value)
{
	Py_ssize_t count = 0, i = -1;

	while ((i = list_find((struct event_list_object *)object, value, i + 1, PY_SSIZE_T_MAX)) >= 0)
		count++;
	return i == -1 ? PyLong_FromSsize_t(count) : NULL;
}

/* Lists are equal to lists, torch's among them, with equal items. */
static PyObject *list_compare(PyObject *a, PyObject *b, int op)
{
	struct event_list_object *self = (struct event_list_object *)a;
	Py_ssize_t length = list_length(a);
	int equal = 1;

	if ((!PyList_Check(b) && Py_TYPE(b) != Py_TYPE(a)) || (op != Py_EQ && op != Py_NE))
		Py_RETURN_NOTIMPLEMENTED;
	if (PySequence_Size(b) != length)
		equal = 0;
	for (Py_ssize_t i = 0; equal == 1 && i < length; i++) {
		PyObject *x = ops_ext_event_list_item(self, (size_t)i);
		PyObject *y = x ? PySequence_GetItem(b, i) : NULL;

		equal = y ? PyObject_RichCompareBool(x, y, Py_EQ) : -1;
		Py_XDECREF(x);
		Py_XDECREF(y);
	}
	return equal < 0 ? NULL : PyBool_FromLong(equal == (op == Py_EQ));
}

/* Returns a + b, where either may be another kind of list: an EventList if both are, else a list. */
static PyObject *list_add(PyObject *a, PyObject *b)
{
	PyObject *both, *result;

	if (Py_TYPE(a) == Py_TYPE(b))
		return ops_ext_event_list_concat((struct event_list_object *)a, (struct event_list_object *)b);
	if (!PyList_Check(a) && !PyList_Check(b))
		Py_RETURN_NOTIMPLEMENTED;
	both = PySequence_List(a);
	result = both ? PySequence_InPlaceConcat(both, b) : NULL;
	Py_XDECREF(both);
	return result;
}

static PyObject *list_repr(PyObject *object)
{
	PyObject *items = PySequence_List(object);
	PyObject *text = items ? PyObject_Repr(items) : NULL;

	Py_XDECREF(items);
	return text;
}

static PyObject *list_copy(PyObject *object, PyObject *unused)
{
	PyObject *all = PySlice_New(NULL, NULL, NULL);
	PyObject *copy = all ? list_slice((struct event_list_object *)object, all) : NULL;

	(void)unused;
	Py_XDECREF(all);
	return copy;
}

/* Returns the events that are not calls of Python functions. The calls remain in the trace, as stacks of the other events. */
static PyObject *list_without_python_functions(PyObject *object, PyObject *unused)
{
	struct event_list_object *self = (struct event_list_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	const uint8_t *kinds;
	uint32_t *refs;
	size_t count = 0;

	(void)unused;
	if (!state || ops_ext_event_list_compact(self) < 0)
		return NULL;
	if (self->kind != LIST_EVENTS || !self->trace)
		return list_copy(object, NULL);
	refs = PyMem_New(uint32_t, self->count ? self->count : 1);
	if (!refs)
		return PyErr_NoMemory();
	kinds = ops_trace_events(self->trace->trace)->kind;
	for (size_t i = 0; i < self->count; i++)
		if ((self->refs[i] & OPS_MEMORY_REF) || kinds[self->refs[i]] != OPS_EVENT_PYTHON_FUNCTION)
			refs[count++] = self->refs[i];
	return ops_ext_event_list_of_refs(state, self->trace, &self->options, refs, count);
}

/* --- type -------------------------------------------------------------------------------------------------------- */

#define METHOD(name, function, doc)                                                                \
	{                                                                                          \
		#name, (PyCFunction)(void (*)(void))function, METH_VARARGS | METH_KEYWORDS, doc    \
	}
#define LIST_METHOD(name, doc) METHOD(name, ops_ext_event_list_##name, doc)
#define ANY_LIST_METHOD(name, doc) METHOD(name, ops_ext_any_list_##name, doc)
#define TREE_STEP(name) ANY_LIST_METHOD(name, "A step of making the tree of events that were made by hand."),

static PyMethodDef list_methods[] = {
	ANY_LIST_METHOD(key_averages,
	            "key_averages(group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False)\n--\n\n"
	            "Averages over the events of one name (and shapes, innermost frames, overload)."),
	ANY_LIST_METHOD(total_average, "total_average()\n--\n\nThe sum of all events."),
	ANY_LIST_METHOD(table, "table(sort_by=None, row_limit=100, max_src_column_width=75, max_name_column_width=55, "
	                   "max_shapes_column_width=80, header=None, top_level_events_only=False, time_unit=None)\n--\n\n"
	                   "The events as a table."),
	ANY_LIST_METHOD(export_chrome_trace, "export_chrome_trace(path)\n--\n\nWrites the complete trace that the events belong to."),
	ANY_LIST_METHOD(export_stacks, "export_stacks(path, metric)\n--\n\nWrites stacks and their own time for a flame graph: "
	                           "collapsed, or for speedscope, as a picture or for pprof when the path ends in .speedscope.json, .svg or .pb.gz."),
	ANY_LIST_METHOD(supported_export_stacks_metrics, "supported_export_stacks_metrics()\n--\n\nMetrics of export_stacks."),
	OPS_EXT_LIST_TREE_STEPS(TREE_STEP)
	LIST_METHOD(_html, "_html(row_limit=20)\n--\n\nThe table as a fragment of HTML: averages by their own time, unless "
	                   "somebody put them in order."),
	ANY_LIST_METHOD(_repr_html_, "_repr_html_()\n--\n\nWhat notebooks show."),
	LIST_METHOD(append, NULL),
	LIST_METHOD(clear, NULL),
	LIST_METHOD(extend, NULL),
	LIST_METHOD(insert, NULL),
	LIST_METHOD(pop, NULL),
	LIST_METHOD(remove, NULL),
	LIST_METHOD(reverse, NULL),
	LIST_METHOD(sort, NULL),
	{"__reduce__", ops_ext_event_list_reduce, METH_NOARGS, NULL},
	{"_rebuild", ops_ext_event_list_rebuild, METH_VARARGS | METH_CLASS, NULL},
	{"index", list_index, METH_VARARGS, "index(value, start=0, stop=…)\n--\n\nFirst place of value, or ValueError."},
	{"count", list_count, METH_O, "How often value occurs."},
	{"_without_python_functions", list_without_python_functions, METH_NOARGS, NULL},
	{"copy", list_copy, METH_NOARGS, "A list of the same events."},
	{"__copy__", list_copy, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyMemberDef list_members[] = {
	{"use_device", T_OBJECT, offsetof(struct event_list_object, options.use_device), READONLY, "Device word, or None."},
	{"profile_memory", T_BOOL, offsetof(struct event_list_object, options.profile_memory), READONLY,
	 "Tables show memory."},
	{"with_flops", T_BOOL, offsetof(struct event_list_object, options.with_flops), READONLY, "Tables show FLOPs."},
	{"timed_out", T_BOOL, offsetof(struct event_list_object, timed_out), READONLY,
	 "Whether post_processing_timeout_s cut it short: then later events are missing."},
	{NULL, 0, 0, 0, NULL},
};

static PyGetSetDef list_getsets[] = {
	{"self_cpu_time_total", ops_ext_any_list_self_cpu_time_total, NULL, "Sum of the events' own CPU time, in us.", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot list_slots[] = {
	{Py_tp_doc, "EventList(iterable=(), *, use_device=None, profile_memory=False, with_flops=False)\n--\n\nEvents of a "
	            "profile, or averages of them. Each is created on first access."},
	{Py_tp_new, list_new},
	{Py_tp_traverse, list_traverse},
	{Py_tp_clear, list_clear},
	{Py_tp_dealloc, list_dealloc},
	{Py_tp_repr, list_repr},
	{Py_tp_str, ops_ext_any_list_str},
	{Py_tp_richcompare, list_compare},
	{Py_tp_hash, PyObject_HashNotImplemented},
	{Py_tp_iter, PySeqIter_New},
	{Py_sq_length, list_length},
	{Py_sq_item, list_item},
	{Py_sq_contains, list_contains},
	{Py_mp_length, list_length},
	{Py_mp_subscript, list_subscript},
	{Py_mp_ass_subscript, ops_ext_event_list_assign},
	{Py_nb_add, list_add},
	{Py_nb_inplace_add, ops_ext_event_list_inplace_concat},
	{Py_tp_methods, list_methods},
	{Py_tp_getset, list_getsets},
	{Py_tp_members, list_members},
	{0, NULL},
};

static PyType_Spec list_spec = {
	.name = "opstrobe._core.EventList",
	.basicsize = sizeof(struct event_list_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_SEQUENCE,
	.slots = list_slots,
};

static int register_sequence(PyObject *type)
{
	PyObject *abc = PyImport_ImportModule("collections.abc");
	PyObject *sequence = abc ? PyObject_GetAttrString(abc, "MutableSequence") : NULL;
	PyObject *result = sequence ? PyObject_CallMethod(sequence, "register", "O", type) : NULL;

	Py_XDECREF(sequence);
	Py_XDECREF(abc);
	Py_XDECREF(result);
	return result ? 0 : -1;
}

int ops_ext_add_event_list(PyObject *module)
{
	struct ops_ext_state *state = ops_ext_state_of_module(module);

	if (ops_ext_add_type(module, &list_spec, &state->event_list) < 0)
		return -1;
	return register_sequence((PyObject *)state->event_list);
}
