/* SPDX-License-Identifier: Apache-2.0
 *
 * _RecordFunctionFast: a range of a function with its arguments, for code that runs so often that record_function would be too
 * slow. It is shown as an operator; if shapes are recorded, the keyword value "scope": "user_scope" makes it a user's range.
 * Values are read only while a session records: inputs become an input list (inputs.h), keyword values become named values of the
 * slot (collector.h).
 */
#include "ext.h"

#include <string.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/inputs.h>

struct fast_object {
	PyObject_HEAD
	PyObject *name;     /* str */
	PyObject *inputs;   /* list or tuple, or None */
	PyObject *keywords; /* dict or None */
	struct ops_slot *slot; /* NULL unless open and recorded */
};

/* --- payload ---------------------------------------------------------------------------------------------------- */

#define USER_SCOPE 7 /* at::RecordScope */
#define PAYLOAD_MAX 16384u /* larger payloads are recorded without their values */

struct payload {
	char bytes[PAYLOAD_MAX];
	size_t size;
	bool full;
};

static void fast_range_put(struct payload *payload, const void *bytes, size_t size)
{
	size_t padded = (size + 3) & ~(size_t)3;

	if (payload->full || PAYLOAD_MAX - payload->size < padded) {
		payload->full = true;
		return;
	}
	memset(payload->bytes + payload->size, 0, padded);
	memcpy(payload->bytes + payload->size, bytes, size);
	payload->size += padded;
}

static void put_u32(struct payload *payload, uint32_t value)
{
	fast_range_put(payload, &value, sizeof(value));
}

/* Returns -1 with an exception set on failure. */
static int fast_range_put_text(struct payload *payload, PyObject *text)
{
	PyObject *bytes = ops_ext_text_bytes(text);

	if (!bytes)
		return -1;
	put_u32(payload, (uint32_t)PyBytes_GET_SIZE(bytes));
	fast_range_put(payload, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
	Py_DECREF(bytes);
	return 0;
}

/* --- keyword values --------------------------------------------------------------------------------------------- */

static bool is_text_list(PyObject *value)
{
	if (!PyList_Check(value))
		return false;
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++)
		if (!PyUnicode_Check(PyList_GET_ITEM(value, i)))
			return false;
	return true;
}

static int fast_range_put_int(struct payload *payload, PyObject *value)
{
	int overflow;
	int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);

	if (overflow)
		number = overflow > 0 ? INT64_MAX : INT64_MIN;
	put_u32(payload, OPS_VALUE_INT);
	fast_range_put(payload, &number, sizeof(number));
	return 0;
}

static int fast_range_put_texts(struct payload *payload, PyObject *list)
{
	put_u32(payload, OPS_VALUE_TEXT_LIST);
	put_u32(payload, (uint32_t)PyList_GET_SIZE(list));
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
		if (fast_range_put_text(payload, PyList_GET_ITEM(list, i)) < 0)
			return -1;
	return 0;
}

static int put_keyword_value(struct payload *payload, PyObject *value)
{
	double number;

	if (PyBool_Check(value)) {
		put_u32(payload, OPS_VALUE_BOOL);
		put_u32(payload, value == Py_True);
		return 0;
	}
	if (PyLong_Check(value))
		return fast_range_put_int(payload, value);
	if (PyFloat_Check(value)) {
		number = PyFloat_AS_DOUBLE(value);
		put_u32(payload, OPS_VALUE_DOUBLE);
		fast_range_put(payload, &number, sizeof(number));
		return 0;
	}
	if (is_text_list(value))
		return fast_range_put_texts(payload, value);
	put_u32(payload, OPS_VALUE_TEXT);
	if (PyUnicode_Check(value))
		return fast_range_put_text(payload, value);
	put_u32(payload, 4);
	fast_range_put(payload, "NULL", 4);
	return 0;
}

static bool is_kept(PyObject *value)
{
	return PyLong_Check(value) || PyFloat_Check(value) || PyUnicode_Check(value) || is_text_list(value);
}

static int put_keywords(struct payload *payload, PyObject *keywords)
{
	PyObject *name, *value;
	Py_ssize_t at = 0;

	put_u32(payload, (uint32_t)PyDict_GET_SIZE(keywords));
	while (PyDict_Next(keywords, &at, &name, &value))
		if (fast_range_put_text(payload, name) < 0 || put_keyword_value(payload, value) < 0)
			return -1;
	return 0;
}

/* --- inputs ----------------------------------------------------------------------------------------------------- */

static void fast_range_put_head(struct payload *payload, uint8_t tag, uint8_t dtype, size_t n)
{
	struct ops_input_head head = {tag, dtype, (uint16_t)n};

	fast_range_put(payload, &head, sizeof(head));
}

/* Returns the number of a torch.dtype, by its name; -1 if it is not one. */
static int fast_range_dtype_of(PyObject *dtype)
{
	static const char *const names[] = {
		"torch.uint8", "torch.int8", "torch.int16", "torch.int32", "torch.int64", "torch.float16", "torch.float32",
		"torch.float64", "torch.complex32", "torch.complex64", "torch.complex128", "torch.bool", "torch.qint8",
		"torch.quint8", "torch.qint32", "torch.bfloat16",
	};
	PyObject *text = PyObject_Str(dtype);
	int found = -1;

	for (size_t i = 0; text && i < sizeof(names) / sizeof(names[0]); i++)
		if (PyUnicode_CompareWithASCIIString(text, names[i]) == 0)
			found = (int)i;
	Py_XDECREF(text);
	PyErr_Clear();
	return found;
}

/* Writes the integers of a sequence. Returns false if it is anything else. */
static bool put_numbers(struct payload *payload, PyObject *numbers)
{
	PyObject *fast = numbers ? PySequence_Fast(numbers, "") : NULL;
	bool ok = fast != NULL;

	for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(fast); i++) {
		int64_t number = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));

		ok = !PyErr_Occurred();
		fast_range_put(payload, &number, sizeof(number));
	}
	Py_XDECREF(fast);
	return ok;
}

/* Returns false, with nothing written, if the value is not a tensor with plain sizes. */
static bool fast_range_put_tensor(struct payload *payload, PyObject *value)
{
	size_t before = payload->size;
	PyObject *dtype = PyObject_GetAttrString(value, "dtype");
	PyObject *sizes = dtype ? PyObject_GetAttrString(value, "shape") : NULL;
	PyObject *strides = sizes ? PyObject_CallMethod(value, "stride", NULL) : NULL;
	int number = dtype ? fast_range_dtype_of(dtype) : -1;
	Py_ssize_t n = sizes ? PySequence_Size(sizes) : -1;
	bool ok = number >= 0 && n >= 0;

	PyErr_Clear();
	if (ok) {
		fast_range_put_head(payload, strides ? OPS_INPUT_TENSOR : OPS_INPUT_TENSOR_PLAIN, (uint8_t)number, (size_t)n);
		ok = put_numbers(payload, sizes) && (!strides || put_numbers(payload, strides));
	}
	PyErr_Clear();
	if (!ok)
		payload->size = before;
	Py_XDECREF(dtype);
	Py_XDECREF(sizes);
	Py_XDECREF(strides);
	return ok;
}

/* Returns false, with nothing written, if the value is not a list of integers that torch would show. */
static bool put_int_list(struct payload *payload, PyObject *value)
{
	size_t before = payload->size;

	if (!PyList_Check(value) || PyList_GET_SIZE(value) > OPS_INPUT_LIST_MAX)
		return false;
	fast_range_put_head(payload, OPS_INPUT_INT_LIST, 0, (size_t)PyList_GET_SIZE(value));
	if (put_numbers(payload, value))
		return true;
	PyErr_Clear();
	payload->size = before;
	return false;
}

static void put_input(struct payload *payload, PyObject *value)
{
	double number;

	if (PyBool_Check(value)) {
		fast_range_put_head(payload, OPS_INPUT_BOOL, 0, value == Py_True);
	} else if (PyLong_Check(value)) {
		int overflow;
		int64_t integer = PyLong_AsLongLongAndOverflow(value, &overflow);

		fast_range_put_head(payload, overflow ? OPS_INPUT_NONE : OPS_INPUT_INT, 0, 0);
		if (!overflow)
			fast_range_put(payload, &integer, sizeof(integer));
	} else if (PyFloat_Check(value)) {
		number = PyFloat_AS_DOUBLE(value);
		fast_range_put_head(payload, OPS_INPUT_DOUBLE, 0, 0);
		fast_range_put(payload, &number, sizeof(number));
	} else if (!put_int_list(payload, value) && !fast_range_put_tensor(payload, value)) {
		fast_range_put_head(payload, OPS_INPUT_NONE, 0, 0);
	}
}

static void put_inputs(struct payload *payload, PyObject *inputs)
{
	PyObject *fast = PySequence_Fast(inputs, "");

	if (!fast) {
		PyErr_Clear();
		put_u32(payload, 0);
		return;
	}
	put_u32(payload, (uint32_t)PySequence_Fast_GET_SIZE(fast));
	for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); i++)
		put_input(payload, PySequence_Fast_GET_ITEM(fast, i));
	Py_DECREF(fast);
}

/* --- range ------------------------------------------------------------------------------------------------------ */

/* Returns whether torch shows the range as a user's range instead of an operator. */
static bool is_user_scope(PyObject *keywords)
{
	PyObject *scope = keywords == Py_None ? NULL : PyDict_GetItemString(keywords, "scope");

	return scope && PyUnicode_Check(scope) && PyUnicode_CompareWithASCIIString(scope, "user_scope") == 0;
}

/* Opens the slot. Returns -1 with an exception set; lack of room in the session is not an error. */
static int fast_begin(struct fast_object *self, uint64_t epoch)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_thread *thread = collector->thread();
	struct payload payload;
	uint16_t flags = OPS_SLOT_NAME_INLINE;
	bool is_range = ops_ext_records_shapes() && is_user_scope(self->keywords);
	struct ops_slot *slot;
	size_t name_only;

	payload.size = 0;
	payload.full = false;
	if (fast_range_put_text(&payload, self->name) < 0)
		return -1;
	name_only = payload.size;
	if (self->keywords != Py_None && put_keywords(&payload, self->keywords) < 0)
		return -1;
	if (self->inputs != Py_None && ops_ext_records_shapes())
		put_inputs(&payload, self->inputs);
	flags |= self->keywords != Py_None ? OPS_SLOT_HAS_VALUES : 0;
	flags |= self->inputs != Py_None && ops_ext_records_shapes() ? OPS_SLOT_HAS_INPUTS : 0;
	if (payload.full) {
		payload.size = name_only;
		flags = OPS_SLOT_NAME_INLINE;
	}
	if (thread)
		ops_note_context(collector, thread, epoch);
	slot = thread ? ops_reserve(collector, thread, epoch, payload.size) : NULL;
	if (!slot)
		return 0;
	memcpy(ops_slot_payload(thread, slot), payload.bytes, payload.size);
	slot->owner = NULL;
	slot->end_ticks = 0;
	slot->sequence_nr = -1;
	slot->name = 0;
	slot->forward_thread = 0;
	slot->end_thread = 0;
	slot->kind = is_range ? OPS_SLOT_RANGE : OPS_SLOT_OP;
	slot->scope = is_range ? USER_SCOPE : 0;
	slot->flags = flags | OPS_SLOT_HELD;
	slot->start_ticks = ops_ticks(collector->tsc);
	ops_publish(thread);
	self->slot = slot;
	return 0;
}

static void fast_end(struct fast_object *self)
{
	const struct ops_collector *collector = ops_collector_get();
	struct ops_slot *slot = self->slot;
	struct ops_thread *thread;
	uint64_t epoch, ticks;

	self->slot = NULL;
	if (!slot)
		return;
	ticks = ops_ticks(collector->tsc);
	thread = collector->thread();
	epoch = ops_collector_epoch(collector);
	if (thread && epoch)
		ops_note_context_again(collector, thread, epoch);
	ops_slot_close(slot, ticks, thread ? thread->number : 0);
}

static PyObject *fast_enter(PyObject *object, PyObject *unused)
{
	struct fast_object *self = (struct fast_object *)object;
	uint64_t epoch = ops_collector_epoch(ops_collector_get());

	(void)unused;
	if (epoch && !self->slot && fast_begin(self, epoch) < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *fast_exit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
	(void)args, (void)count;
	fast_end((struct fast_object *)object);
	Py_RETURN_NONE;
}

/* --- type ------------------------------------------------------------------------------------------------------- */

static int check_keywords(PyObject *keywords)
{
	PyObject *name, *value;
	Py_ssize_t at = 0;

	while (keywords != Py_None && PyDict_Next(keywords, &at, &name, &value)) {
		if (!PyUnicode_Check(name))
			return PyErr_SetString(PyExc_TypeError, "keyword_values must have str for keys"), -1;
		if (!is_kept(value) &&
		    PyErr_WarnFormat(PyExc_UserWarning, 1, "Unable to infer type of value for keyword: %U", name) < 0)
			return -1;
	}
	return 0;
}

static int fast_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"name", "input_values", "keyword_values", NULL};
	struct fast_object *self = (struct fast_object *)object;
	PyObject *name, *inputs = Py_None, *values = Py_None;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "U|OO:_RecordFunctionFast", keywords, &name, &inputs, &values))
		return -1;
	if (inputs != Py_None && !PyList_Check(inputs) && !PyTuple_Check(inputs))
		return PyErr_SetString(PyExc_TypeError, "input_values must be a list or tuple"), -1;
	if (values != Py_None && !PyDict_Check(values))
		return PyErr_SetString(PyExc_TypeError, "keyword_values must be dict"), -1;
	if (check_keywords(values) < 0)
		return -1;
	Py_XSETREF(self->name, Py_NewRef(name));
	Py_XSETREF(self->inputs, Py_NewRef(inputs));
	Py_XSETREF(self->keywords, Py_NewRef(values));
	return 0;
}

static PyObject *fast_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct fast_object *self = (struct fast_object *)type->tp_alloc(type, 0);

	(void)args, (void)kwargs;
	if (!self)
		return NULL;
	self->name = PyUnicode_FromStringAndSize(NULL, 0);
	self->inputs = Py_NewRef(Py_None);
	self->keywords = Py_NewRef(Py_None);
	if (!self->name)
		Py_CLEAR(self);
	return (PyObject *)self;
}

static int fast_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct fast_object *self = (struct fast_object *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->inputs);
	Py_VISIT(self->keywords);
	return 0;
}

static int fast_clear(PyObject *object)
{
	struct fast_object *self = (struct fast_object *)object;

	Py_XSETREF(self->inputs, Py_NewRef(Py_None));
	Py_XSETREF(self->keywords, Py_NewRef(Py_None));
	return 0;
}

static void fast_dealloc(PyObject *object)
{
	struct fast_object *self = (struct fast_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	fast_end(self);
	Py_XDECREF(self->name);
	Py_XDECREF(self->inputs);
	Py_XDECREF(self->keywords);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMethodDef fast_methods[] = {
	{"__enter__", fast_enter, METH_NOARGS, "Opens the range."},
	{"__exit__", (PyCFunction)(void (*)(void))fast_exit, METH_FASTCALL, "Closes the range."},
	{NULL, NULL, 0, NULL},
};

static const char fast_doc[] =
	"_RecordFunctionFast(name, input_values=None, keyword_values=None)\n--\n\n"
	"A range that is shown as an operator, with its arguments. Keyword values of type int, float, bool, str or\n"
	"list of str become arguments of the event; others are replaced by \"NULL\", with a warning.";

static PyType_Slot fast_slots[] = {
	{Py_tp_doc, (void *)fast_doc},
	{Py_tp_new, fast_new},
	{Py_tp_init, fast_init},
	{Py_tp_traverse, fast_traverse},
	{Py_tp_clear, fast_clear},
	{Py_tp_dealloc, fast_dealloc},
	{Py_tp_methods, fast_methods},
	{0, NULL},
};

static PyType_Spec fast_spec = {
	.name = "opstrobe._core._RecordFunctionFast",
	.basicsize = sizeof(struct fast_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.slots = fast_slots,
};

int ops_ext_add_fast_range(PyObject *module)
{
	PyTypeObject *type;

	if (ops_ext_add_type(module, &fast_spec, &type))
		return -1;
	Py_DECREF(type);
	return 0;
}
