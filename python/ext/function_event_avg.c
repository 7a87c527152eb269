/* SPDX-License-Identifier: Apache-2.0
 *
 * FunctionEventAvg: the sum of a group of events. Unlike an event it owns its values, and other events can be added.
 */
#include "views.h"

#include <string.h>

/* --- lifetime --------------------------------------------------------------------------------------------------- */

static struct function_event_avg_object *avg_alloc(PyTypeObject *type)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)type->tp_alloc(type, 0);

	if (!self)
		return NULL;
	self->use_device = Py_NewRef(Py_None);
	self->row = (struct ops_average){.name = OPS_NONE, .first = OPS_NONE, .overload = OPS_NONE, .inputs = OPS_NONE};
	self->empty = true;
	return self;
}

PyObject *ops_ext_function_event_avg_new(struct ops_ext_state *state, struct trace_object *trace,
                                         const struct ops_average *row, PyObject *use_device, bool by_input_shape,
                                         bool by_overload_name, bool with_flops)
{
	struct function_event_avg_object *self = avg_alloc(state->function_event_avg);

	if (!self)
		return NULL;
	Py_SETREF(self->use_device, Py_NewRef(use_device));
	self->trace = (struct trace_object *)Py_XNewRef(trace);
	self->row = *row;
	self->empty = false;
	self->by_input_shape = by_input_shape;
	self->by_overload_name = by_overload_name;
	self->with_flops = with_flops;
	return (PyObject *)self;
}

static PyObject *avg_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {NULL};

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, ":FunctionEventAvg", names))
		return NULL;
	return (PyObject *)avg_alloc(type);
}

static int avg_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->trace);
	Py_VISIT(self->dict);
	return 0;
}

static int avg_clear(PyObject *object)
{
	Py_CLEAR(((struct function_event_avg_object *)object)->dict);
	return 0;
}

static void avg_dealloc(PyObject *object)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	Py_CLEAR(self->dict);
	Py_CLEAR(self->use_device);
	Py_CLEAR(self->trace);
	type->tp_free(object);
	Py_DECREF(type);
}

/* --- attributes -------------------------------------------------------------------------------------------------- */

static PyObject *function_event_avg_get_average(PyObject *object, void *closure)
{
	return ops_ext_average_field(&((struct function_event_avg_object *)object)->row, (int)(intptr_t)closure);
}

static PyObject *get_key(PyObject *object, void *closure)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;
	struct ops_string text;

	(void)closure;
	if (self->empty)
		Py_RETURN_NONE;
	if (self->row.key == OPS_KEY_TOTAL)
		return PyUnicode_FromString("Total");
	text = ops_average_name(self->trace->trace, &self->row);
	return ops_ext_text(text.bytes, text.size);
}

/* Returns the group's first event; a new reference to None if there is none, or if it was not copied. */
static PyObject *first_event(struct function_event_avg_object *self)
{
	struct ops_ext_state *state = ops_ext_state_of((PyObject *)self);

	if (!state)
		return NULL;
	if (!self->trace || self->row.first == OPS_NONE)
		Py_RETURN_NONE;
	return ops_ext_function_event_new(state, self->trace, self->row.first, self->use_device, self->with_flops);
}

static PyObject *get_of_first(PyObject *object, void *closure)
{
	PyObject *event = first_event((struct function_event_avg_object *)object);
	PyObject *value;

	if (!event || event == Py_None)
		return event;
	value = ops_ext_attribute(event, closure);
	Py_DECREF(event);
	return value;
}

/* Returns the shapes that the group shares; "" if it is not grouped by shape. */
static PyObject *get_input_shapes(PyObject *object, void *closure)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;

	(void)closure;
	if (self->empty)
		Py_RETURN_NONE;
	if (!self->by_input_shape)
		return PyUnicode_FromString("");
	return ops_ext_inputs(self->trace, self->row.inputs, INPUT_STRUCTURED_SHAPES);
}

static PyObject *function_event_avg_get_overload_name(PyObject *object, void *closure)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;

	(void)closure;
	if (self->empty)
		Py_RETURN_NONE;
	if (!self->by_overload_name || self->row.overload == OPS_NONE)
		return PyUnicode_FromString("");
	return ops_ext_trace_name(self->trace, self->row.overload);
}

static PyObject *function_event_avg_get_stack(PyObject *object, void *closure)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;

	(void)closure;
	if (self->empty)
		Py_RETURN_NONE;
	if (!self->trace || self->row.stack_frames == 0)
		return PyList_New(0);
	return ops_ext_trace_stack(self->trace, self->row.first, self->row.stack_frames);
}

static PyObject *function_event_avg_get_scope(PyObject *object, void *closure)
{
	(void)closure;
	if (((struct function_event_avg_object *)object)->empty)
		Py_RETURN_NONE;
	return function_event_avg_get_average(object, (void *)FIELD_SCOPE);
}

static PyObject *get_node_id(PyObject *object, void *closure)
{
	(void)closure;
	return PyLong_FromLong(((struct function_event_avg_object *)object)->empty ? 0 : -1);
}

static PyObject *get_is_remote(PyObject *object, void *closure)
{
	(void)object;
	(void)closure;
	Py_RETURN_FALSE;
}

static PyObject *function_event_avg_get_device_type(PyObject *object, void *closure)
{
	struct ops_ext_state *state = ops_ext_state_of(object);

	(void)closure;
	return state ? ops_ext_device_type(state, ((struct function_event_avg_object *)object)->row.device_type) : NULL;
}

static PyObject *function_event_avg_get_use_device(PyObject *object, void *closure)
{
	(void)closure;
	return Py_NewRef(((struct function_event_avg_object *)object)->use_device);
}

static const char *const plain_names[] = {
	"key", "count", "node_id", "is_async", "is_remote", "use_device", "cpu_time_total", "device_time_total",
	"self_cpu_time_total", "self_device_time_total", "input_shapes", "overload_name", "stack", "scope",
	"cpu_memory_usage", "device_memory_usage", "self_cpu_memory_usage", "self_device_memory_usage", "cpu_children",
	"cpu_parent", "device_type", "is_legacy", "flops", "is_user_annotation", NULL,
};

static PyObject *function_event_avg_get_dict(PyObject *object, void *closure)
{
	(void)closure;
	return ops_ext_attributes(object, plain_names, ((struct function_event_avg_object *)object)->dict);
}

static PyGetSetDef avg_getsets[] = {
	{"key", get_key, NULL, "Name that the events have in common; None while there are none.", NULL},
	{"node_id", get_node_id, NULL, "-1", NULL},
	{"is_remote", get_is_remote, NULL, "False", NULL},
	{"use_device", function_event_avg_get_use_device, NULL, "The profile's `use_device`, such as 'cuda', or None.", NULL},
	{"input_shapes", get_input_shapes, NULL, "Sizes of the arguments when grouped by them, else \"\".", NULL},
	{"overload_name", function_event_avg_get_overload_name, NULL, "Overload of the operator when grouped by it, else \"\".",
	 NULL},
	{"stack", function_event_avg_get_stack, NULL, "As many innermost frames as it is grouped by.", NULL},
	{"scope", function_event_avg_get_scope, NULL, "RecordScope of the first event.", NULL},
	{"device_type", function_event_avg_get_device_type, NULL, "DeviceType.", NULL},
	{"is_user_annotation", function_event_avg_get_average, NULL, "A range of the user's.",
	 (void *)FIELD_IS_USER_ANNOTATION},
	{"cpu_children", get_of_first, NULL, "Children of the first event.", (void *)"cpu_children"},
	{"cpu_parent", get_of_first, NULL, "Parent of the first event.", (void *)"cpu_parent"},
	OPS_EXT_AVERAGE_GETSETS(function_event_avg_get_average),
	OPS_EXT_OTHER_NAMES,
	{"__dict__", function_event_avg_get_dict, NULL, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

/* --- adding ------------------------------------------------------------------------------------------------------- */

void ops_ext_average_add(struct ops_average *total, const struct ops_average *row)
{
	total->cpu_time_total_ns += row->cpu_time_total_ns;
	total->self_cpu_time_total_ns += row->self_cpu_time_total_ns;
	total->device_time_total_ns += row->device_time_total_ns;
	total->self_device_time_total_ns += row->self_device_time_total_ns;
	total->cpu_memory_usage += row->cpu_memory_usage;
	total->self_cpu_memory_usage += row->self_cpu_memory_usage;
	total->device_memory_usage += row->device_memory_usage;
	total->self_device_memory_usage += row->self_device_memory_usage;
	total->flops += row->flops;
	total->count += row->count;
}

/* The first event added to an empty average sets its key and description. */
static void function_event_avg_set_key(struct function_event_avg_object *self, struct trace_object *trace,
                                         const struct ops_average *row, PyObject *use_device, bool by_input_shape,
                                         bool by_overload_name, bool with_flops)
{
	self->trace = (struct trace_object *)Py_XNewRef(trace);
	Py_SETREF(self->use_device, Py_NewRef(use_device));
	self->row = *row;
	self->empty = false;
	self->by_input_shape = by_input_shape;
	self->by_overload_name = by_overload_name;
	self->with_flops = with_flops;
}

/* Returns 0 if both have the same key, else -1 with an exception set. */
static int check_keys(PyObject *a, PyObject *b)
{
	PyObject *x = ops_ext_attribute(a, "key"), *y = ops_ext_attribute(b, "key");
	int equal = x && y ? PyObject_RichCompareBool(x, y, Py_EQ) : -1;

	if (equal == 0)
		PyErr_Format(PyExc_AssertionError, "Expected keys to match, but got %S vs %S", y, x);
	Py_XDECREF(x);
	Py_XDECREF(y);
	return equal == 1 ? 0 : -1;
}

static int function_event_avg_add_event(struct function_event_avg_object *self, struct function_event_object *event)
{
	struct ops_average row;

	if (ops_ext_function_event_row(event, &row) < 0)
		return -1;
	if (self->empty) {
		function_event_avg_set_key(self, event->trace, &row, event->use_device, true, true, event->with_flops);
		return 0;
	}
	if (check_keys((PyObject *)self, (PyObject *)event) < 0)
		return -1;
	ops_ext_average_add(&self->row, &row);
	return 0;
}

/* Converts an attribute in us to ns. Returns 0 with an exception set if it is not a number. */
static int64_t time_of(PyObject *object, const char *name)
{
	PyObject *value = ops_ext_attribute(object, name);
	double us = value ? PyFloat_AsDouble(value) : 0;

	Py_XDECREF(value);
	return us > -9e15 && us < 9e15 ? (int64_t)(us * 1000 + (us < 0 ? -0.5 : 0.5)) : 0;
}

/* Returns an integer attribute; None counts as 0. */
static int64_t function_event_avg_number_of(PyObject *object, const char *name)
{
	PyObject *value = ops_ext_attribute(object, name);
	long long number = value && value != Py_None ? PyLong_AsLongLong(value) : 0;

	Py_XDECREF(value);
	return number;
}

/* Adds an event that is not ours. The first one sets the description, taken from an event of ours that resembles it. */
static int add_hand_made(struct function_event_avg_object *self, PyObject *other)
{
	struct function_event_object *like = (struct function_event_object *)ops_ext_hand_made_as_ours(other);
	struct ops_average row = {0};
	int failed = like ? 0 : -1;

	if (!failed && self->empty) {
		failed = ops_ext_function_event_row(like, &row);
		memset(&row, 0, offsetof(struct ops_average, name)); /* everything that is summed */
		if (!failed)
			function_event_avg_set_key(self, like->trace, &row, like->use_device, true, true, like->with_flops);
	} else if (!failed) {
		failed = check_keys((PyObject *)self, other);
	}
	Py_XDECREF(like);
	if (failed)
		return -1;
	row.cpu_time_total_ns = time_of(other, "cpu_time_total");
	row.self_cpu_time_total_ns = time_of(other, "self_cpu_time_total");
	row.device_time_total_ns = time_of(other, "device_time_total");
	row.self_device_time_total_ns = time_of(other, "self_device_time_total");
	row.cpu_memory_usage = function_event_avg_number_of(other, "cpu_memory_usage");
	row.self_cpu_memory_usage = function_event_avg_number_of(other, "self_cpu_memory_usage");
	row.device_memory_usage = function_event_avg_number_of(other, "device_memory_usage");
	row.self_device_memory_usage = function_event_avg_number_of(other, "self_device_memory_usage");
	row.flops = function_event_avg_number_of(other, "flops");
	row.count = (uint64_t)function_event_avg_number_of(other, "count");
	if (PyErr_Occurred())
		return -1;
	ops_ext_average_add(&self->row, &row);
	return 0;
}

static int add_average(struct function_event_avg_object *self, struct function_event_avg_object *other)
{
	if (other->empty && self->empty)
		return 0;
	if (self->empty) {
		function_event_avg_set_key(self, other->trace, &other->row, other->use_device, other->by_input_shape,
		                             other->by_overload_name, other->with_flops);
		return 0;
	}
	if (check_keys((PyObject *)self, (PyObject *)other) < 0)
		return -1;
	ops_ext_average_add(&self->row, &other->row);
	return 0;
}

static PyObject *avg_add(PyObject *object, PyObject *other)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	int failed;

	if (!state)
		return NULL;
	if (Py_TYPE(other) == state->function_event)
		failed = function_event_avg_add_event(self, (struct function_event_object *)other);
	else if (Py_TYPE(other) == state->function_event_avg)
		failed = add_average(self, (struct function_event_avg_object *)other);
	else if ((failed = ops_ext_is_hand_made(state, other)) != 0)
		failed = failed < 0 ? -1 : add_hand_made(self, other);
	else
		return PyErr_Format(PyExc_AssertionError, "Expected other to be a FunctionEvent or FunctionEventAvg");
	return failed ? NULL : Py_NewRef(object);
}

/* --- other methods ----------------------------------------------------------------------------------------------- */

static PyObject *avg_repr(PyObject *object)
{
	static const char format[] =
		"<FunctionEventAvg key={0.key} self_cpu_time={0.self_cpu_time_total_str} cpu_time={0.cpu_time_str}  "
		"self_{1}_time={0.self_device_time_total_str} {1}_time={0.device_time_str} input_shapes={0.input_shapes} "
		"cpu_memory_usage={0.cpu_memory_usage} {1}_memory_usage={0.device_memory_usage}>";
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;
	PyObject *device = PyUnicode_Check(self->use_device) ? Py_NewRef(self->use_device) : PyUnicode_FromString("cuda");
	PyObject *text = device ? ops_ext_format(format, object, device) : NULL;

	Py_XDECREF(device);
	return text;
}

static PyObject *avg_copy(PyObject *object, PyObject *unused)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;
	struct function_event_avg_object *copy = avg_alloc(Py_TYPE(object));

	(void)unused;
	if (!copy)
		return NULL;
	function_event_avg_set_key(copy, self->trace, &self->row, self->use_device, self->by_input_shape,
	                             self->by_overload_name, self->with_flops);
	copy->empty = self->empty;
	if (self->dict && !(copy->dict = PyDict_Copy(self->dict)))
		Py_CLEAR(copy);
	return (PyObject *)copy;
}

static PyMethodDef avg_methods[] = {
	{"add", avg_add, METH_O, "add(other)\n--\n\nAdds an event or average of the same key; AssertionError for another key."},
	{"__copy__", avg_copy, METH_NOARGS, NULL},
	{"__reduce__", ops_ext_function_event_avg_reduce, METH_NOARGS, NULL},
	{"_rebuild", ops_ext_function_event_avg_rebuild, METH_VARARGS | METH_CLASS, NULL},
	{"__setstate__", ops_ext_set_attributes, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};

static PyMemberDef avg_members[] = {
	{"__dictoffset__", T_PYSSIZET, offsetof(struct function_event_avg_object, dict), READONLY, NULL},
	{NULL, 0, 0, 0, NULL},
};

static PyType_Slot avg_slots[] = {
	{Py_tp_doc, "FunctionEventAvg()\n--\n\nThe sum of a group of events; times in microseconds."},
	{Py_tp_new, avg_new},
	{Py_tp_traverse, avg_traverse},
	{Py_tp_clear, avg_clear},
	{Py_tp_dealloc, avg_dealloc},
	{Py_tp_repr, avg_repr},
	{Py_nb_inplace_add, avg_add},
	{Py_tp_getset, avg_getsets},
	{Py_tp_methods, avg_methods},
	{Py_tp_members, avg_members},
	{0, NULL},
};

static PyType_Spec avg_spec = {
	.name = "opstrobe._core.FunctionEventAvg",
	.basicsize = sizeof(struct function_event_avg_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = avg_slots,
};

int ops_ext_add_function_event_avg(PyObject *module)
{
	return ops_ext_add_type(module, &avg_spec, &ops_ext_state_of_module(module)->function_event_avg);
}
