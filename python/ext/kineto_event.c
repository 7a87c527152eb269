/* SPDX-License-Identifier: Apache-2.0
 *
 * _KinetoEvent: an event as torch's C++ presents it, with accessor methods. Most methods read an attribute of a FunctionEvent,
 * which they create for the call.
 */
#include "raw_views.h"

#include <opstrobe/internal/trace.h>
#include <opstrobe/trace.h>

struct kineto_object {
	PyObject_HEAD
	struct trace_object *trace;
	PyObject *use_device;
	uint32_t ref;
	bool with_flops;
};

static bool is_memory(const struct kineto_object *self)
{
	return self->ref & OPS_MEMORY_REF;
}

static const struct ops_memory_record *kineto_event_record_of(const struct kineto_object *self)
{
	size_t count;

	return &ops_trace_memory(self->trace->trace, &count)[self->ref & ~OPS_MEMORY_REF];
}

static const struct ops_events *kineto_event_columns(const struct kineto_object *self)
{
	return ops_trace_events(self->trace->trace);
}

bool ops_ext_raw_row(const struct ops_trace *trace, uint32_t row)
{
	switch ((enum ops_event_kind)ops_trace_events(trace)->kind[row]) {
	case OPS_EVENT_TRACE:
	case OPS_EVENT_MARK:
	case OPS_EVENT_CPU_INSTANT:
	case OPS_EVENT_OTHER:
		return false;
	default:
		return true;
	}
}

uint64_t ops_ext_raw_correlation(struct trace_object *trace, uint32_t ref)
{
	const struct ops_events *events = ops_trace_events(trace->trace);

	if (ref & OPS_MEMORY_REF)
		return 0;
	switch ((enum ops_event_kind)events->kind[ref]) {
	case OPS_EVENT_PYTHON_FUNCTION:
		return 0;
	case OPS_EVENT_CPU_OP:
	case OPS_EVENT_USER_ANNOTATION:
		return events->id ? events->id[ref] : (uint64_t)ref + 1;
	default:
		return events->correlation && events->correlation[ref] > 0 ? (uint64_t)events->correlation[ref] : 0;
	}
}

PyObject *ops_ext_raw_name(struct trace_object *trace, uint32_t row)
{
	const struct ops_events *events = ops_trace_events(trace->trace);
	struct ops_string name = ops_trace_string(trace->trace, events->name[row]);
	struct ops_function_text function;
	size_t skip = 0;
	PyObject *place, *bare, *text;

	if (events->kind[row] == OPS_EVENT_PYTHON_FUNCTION && ops_function_parse(name, &function))
		skip = ops_ext_class_bytes(function.name);
	if (skip == 0)
		return ops_ext_trace_name(trace, events->name[row]);
	place = ops_ext_text(name.bytes, name.size - function.name.size);
	bare = ops_ext_text(function.name.bytes + skip, function.name.size - skip);
	text = place && bare ? PyUnicode_Concat(place, bare) : NULL;
	Py_XDECREF(place);
	Py_XDECREF(bare);
	return text;
}

size_t ops_ext_class_bytes(struct ops_string function)
{
	size_t bytes = function.size;

	while (bytes > 0 && function.bytes[bytes - 1] != '.')
		bytes--;
	return bytes;
}

/* --- methods ---------------------------------------------------------------------------------------------------------- */

/* Returns an attribute of a FunctionEvent for the same row. */
static PyObject *kineto_event_shown(PyObject *object, const char *attribute)
{
	struct kineto_object *self = (struct kineto_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	PyObject *event = state ? ops_ext_function_event_new(state, self->trace, self->ref, self->use_device, self->with_flops)
	                        : NULL;
	PyObject *value = event ? ops_ext_attribute(event, attribute) : NULL;

	Py_XDECREF(event);
	return value;
}

/* Accessor, and attribute of FunctionEvent. */
#define SHOWN(X)                                                                                   \
	X(activity_type, "activity_type")                                                          \
	X(concrete_inputs, "concrete_inputs")                                                      \
	X(device_resource_id, "device_resource_id")                                                \
	X(device_type, "device_type")                                                              \
	X(dtypes, "input_dtypes")                                                                  \
	X(flow_id, "flow_id")                                                                      \
	X(flow_start, "flow_start")                                                                \
	X(flow_type, "flow_type")                                                                  \
	X(fwd_thread_id, "fwd_thread")                                                             \
	X(is_async, "is_async")                                                                    \
	X(is_python_function, "is_python_function")                                                \
	X(is_user_annotation, "is_user_annotation")                                                \
	X(kwinputs, "kwinputs")                                                                    \
	X(linked_correlation_id, "linked_correlation_id")                                          \
	X(overload_name, "overload_name")                                                          \
	X(python_id, "python_id")                                                                  \
	X(python_module_id, "python_module_id")                                                    \
	X(python_parent_id, "python_parent_id")                                                    \
	X(scope, "scope")                                                                          \
	X(sequence_nr, "sequence_nr")                                                              \
	X(shapes, "input_shapes")                                                                  \
	X(stack, "stack")                                                                          \
	X(start_thread_id, "thread")                                                               \
	X(structured_input_shapes, "structured_input_shapes")                                      \
	X(structured_input_strides, "structured_input_strides")

#define DEFINE_SHOWN(method, attribute) \
	static PyObject *kineto_##method(PyObject *object, PyObject *unused) \
	{ \
		(void)unused; \
		return kineto_event_shown(object, attribute); \
	}
SHOWN(DEFINE_SHOWN)
#undef DEFINE_SHOWN

static PyObject *kineto_name(PyObject *object, PyObject *unused)
{
	struct kineto_object *self = (struct kineto_object *)object;

	(void)unused;
	return is_memory(self) ? kineto_event_shown(object, "name") : ops_ext_raw_name(self->trace, self->ref);
}

static int64_t start_ns(const struct kineto_object *self)
{
	return is_memory(self) ? kineto_event_record_of(self)->time_ns : kineto_event_columns(self)->start_ns[self->ref];
}

static int64_t end_ns(const struct kineto_object *self)
{
	return is_memory(self) ? kineto_event_record_of(self)->time_ns : kineto_event_columns(self)->end_ns[self->ref];
}

static PyObject *kineto_start_ns(PyObject *object, PyObject *unused)
{
	(void)unused;
	return PyLong_FromLongLong(start_ns((struct kineto_object *)object));
}

static PyObject *kineto_end_ns(PyObject *object, PyObject *unused)
{
	(void)unused;
	return PyLong_FromLongLong(end_ns((struct kineto_object *)object));
}

static PyObject *kineto_duration_ns(PyObject *object, PyObject *unused)
{
	const struct kineto_object *self = (struct kineto_object *)object;

	(void)unused;
	return PyLong_FromLongLong(end_ns(self) - start_ns(self));
}

static PyObject *kineto_correlation_id(PyObject *object, PyObject *unused)
{
	struct kineto_object *self = (struct kineto_object *)object;

	(void)unused;
	return PyLong_FromUnsignedLongLong(ops_ext_raw_correlation(self->trace, self->ref));
}

/* Returns 0 for Python calls and memory, to which torch assigns no id. */
static PyObject *kineto_external_id(PyObject *object, PyObject *unused)
{
	const struct kineto_object *self = (struct kineto_object *)object;

	(void)unused;
	if (is_memory(self) || kineto_event_columns(self)->kind[self->ref] == OPS_EVENT_PYTHON_FUNCTION)
		return PyLong_FromLong(0);
	return kineto_event_shown(object, "external_id");
}

/* Returns the process id for host events. */
static PyObject *kineto_device_index(PyObject *object, PyObject *unused)
{
	const struct kineto_object *self = (struct kineto_object *)object;
	const struct ops_track *tracks;
	size_t count;

	(void)unused;
	if (is_memory(self))
		return PyLong_FromLong(kineto_event_record_of(self)->device_index);
	tracks = ops_trace_tracks(self->trace->trace, &count);
	return PyLong_FromLongLong(tracks[kineto_event_columns(self)->track[self->ref]].pid);
}

static PyObject *kineto_end_thread_id(PyObject *object, PyObject *unused)
{
	const struct kineto_object *self = (struct kineto_object *)object;
	const struct ops_track *tracks;
	size_t count;

	(void)unused;
	if (is_memory(self) || !kineto_event_columns(self)->end_track)
		return kineto_event_shown(object, "thread");
	tracks = ops_trace_tracks(self->trace->trace, &count);
	return PyLong_FromUnsignedLong(tracks[kineto_event_columns(self)->end_track[self->ref]].number);
}

static PyObject *kineto_flops(PyObject *object, PyObject *unused)
{
	(void)unused;
	return is_memory((struct kineto_object *)object) ? PyLong_FromLong(0) : kineto_event_shown(object, "flops");
}

static PyObject *kineto_nbytes(PyObject *object, PyObject *unused)
{
	const struct kineto_object *self = (struct kineto_object *)object;

	(void)unused;
	return PyLong_FromLongLong(is_memory(self) ? kineto_event_record_of(self)->bytes : 0);
}

static PyObject *kineto_is_hidden_event(PyObject *object, PyObject *unused)
{
	(void)object;
	(void)unused;
	Py_RETURN_FALSE;
}

/* torch sets it only for device events, as text. */
static PyObject *kineto_extra_meta(PyObject *object, PyObject *unused)
{
	PyObject *metadata, *texts, *key, *value;
	Py_ssize_t at = 0;

	(void)unused;
	texts = PyDict_New();
	metadata = texts ? kineto_event_shown(object, "event_metadata") : NULL;
	if (!metadata)
		Py_CLEAR(texts);
	if (metadata && metadata != Py_None)
		Py_SETREF(metadata, kineto_event_shown(object, "metadata"));
	while (texts && metadata && PyDict_Check(metadata) && PyDict_Next(metadata, &at, &key, &value)) {
		PyObject *text = PyObject_Str(value);

		if (!text || PyDict_SetItem(texts, key, text) < 0)
			Py_CLEAR(texts);
		Py_XDECREF(text);
	}
	Py_XDECREF(metadata);
	return texts;
}

static PyObject *kineto_metadata_json(PyObject *object, PyObject *unused)
{
	PyObject *metadata = kineto_extra_meta(object, unused), *json, *text, *bare;

	if (!metadata || PyDict_GET_SIZE(metadata) == 0) {
		Py_XDECREF(metadata);
		return metadata ? PyUnicode_FromString("") : NULL;
	}
	json = PyImport_ImportModule("json");
	Py_SETREF(metadata, kineto_event_shown(object, "metadata"));
	text = json && metadata ? PyObject_CallMethod(json, "dumps", "O", metadata) : NULL;
	bare = text ? PyUnicode_Substring(text, 1, PyUnicode_GET_LENGTH(text) - 1) : NULL; /* without the braces */
	Py_XDECREF(text);
	Py_XDECREF(json);
	Py_XDECREF(metadata);
	return bare;
}

/* Time between the pair of device events around an operator, which torch measures in its fallback mode. */
static PyObject *kineto_elapsed_us(PyObject *object, PyObject *unused)
{
	(void)object;
	(void)unused;
	return PyLong_FromLong(-1);
}

static PyMethodDef kineto_methods[] = {
#define SHOWN_METHOD(method, attribute) {#method, kineto_##method, METH_NOARGS, NULL},
	SHOWN(SHOWN_METHOD)
#undef SHOWN_METHOD
	{"name", kineto_name, METH_NOARGS, NULL},
	{"start_ns", kineto_start_ns, METH_NOARGS, "Since the Unix epoch."},
	{"end_ns", kineto_end_ns, METH_NOARGS, NULL},
	{"duration_ns", kineto_duration_ns, METH_NOARGS, NULL},
	{"correlation_id", kineto_correlation_id, METH_NOARGS, NULL},
	{"external_id", kineto_external_id, METH_NOARGS, NULL},
	{"device_index", kineto_device_index, METH_NOARGS, "Ordinal of the device; the process id on the host."},
	{"end_thread_id", kineto_end_thread_id, METH_NOARGS, NULL},
	{"flops", kineto_flops, METH_NOARGS, "0 without with_flops."},
	{"nbytes", kineto_nbytes, METH_NOARGS, "Of a report of an allocator; negative when memory is freed."},
	{"is_hidden_event", kineto_is_hidden_event, METH_NOARGS, NULL},
	{"extra_meta", kineto_extra_meta, METH_NOARGS, NULL},
	{"metadata_json", kineto_metadata_json, METH_NOARGS, NULL},
	{"cuda_elapsed_us", kineto_elapsed_us, METH_NOARGS, NULL},
	{"privateuse1_elapsed_us", kineto_elapsed_us, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

/* --- type --------------------------------------------------------------------------------------------------------------- */

static PyObject *kineto_class(PyObject *object, void *closure)
{
	(void)closure;
	return ops_ext_torch_class("torch._C._autograd", "_KinetoEvent", Py_TYPE(object));
}

static PyObject *kineto_compare(PyObject *a, PyObject *b, int op)
{
	const struct kineto_object *x = (struct kineto_object *)a, *y = (struct kineto_object *)b;

	if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE))
		Py_RETURN_NOTIMPLEMENTED;
	return PyBool_FromLong((x->trace == y->trace && x->ref == y->ref) == (op == Py_EQ));
}

static Py_hash_t kineto_hash(PyObject *object)
{
	return (Py_hash_t)((struct kineto_object *)object)->ref;
}

static void kineto_dealloc(PyObject *object)
{
	struct kineto_object *self = (struct kineto_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	Py_DECREF(self->use_device);
	Py_DECREF(self->trace);
	PyObject_Free(object);
	Py_DECREF(type);
}

static PyGetSetDef kineto_getsets[] = {
	{"__class__", kineto_class, NULL, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot kineto_slots[] = {
	{Py_tp_doc, "An event by accessor methods, those of torch's class of this name."},
	{Py_tp_dealloc, kineto_dealloc},
	{Py_tp_richcompare, kineto_compare},
	{Py_tp_hash, kineto_hash},
	{Py_tp_methods, kineto_methods},
	{Py_tp_getset, kineto_getsets},
	{0, NULL},
};

static PyType_Spec kineto_spec = {
	.name = "opstrobe._core._KinetoEvent",
	.basicsize = sizeof(struct kineto_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = kineto_slots,
};

/* --- list --------------------------------------------------------------------------------------------------------------- */

static int kineto_event_append(PyObject *list, const struct kineto_object *like, struct ops_ext_state *state, uint32_t ref)
{
	struct kineto_object *event = PyObject_New(struct kineto_object, state->kineto_event);
	int failed;

	if (!event)
		return -1;
	event->trace = (struct trace_object *)Py_NewRef(like->trace);
	event->use_device = Py_NewRef(like->use_device);
	event->ref = ref;
	event->with_flops = like->with_flops;
	failed = PyList_Append(list, (PyObject *)event);
	Py_DECREF(event);
	return failed;
}

PyObject *ops_ext_trace_kineto_events(PyObject *object, PyObject *args)
{
	struct kineto_object like = {.trace = (struct trace_object *)object};
	struct ops_ext_state *state = ops_ext_state_of(object);
	const struct ops_events *events = ops_trace_events(like.trace->trace);
	size_t count, at = 0;
	const struct ops_memory_record *records = ops_trace_memory(like.trace->trace, &count);
	int with_flops;
	PyObject *list;

	if (!state || !PyArg_ParseTuple(args, "Op:kineto_events", &like.use_device, &with_flops))
		return NULL;
	like.with_flops = with_flops;
	list = PyList_New(0);
	for (size_t row = 0; list && row <= events->count; row++) {
		int64_t until_ns = row < events->count ? events->start_ns[row] : INT64_MAX;

		while (list && at < count && records[at].time_ns < until_ns)
			if (kineto_event_append(list, &like, state, (uint32_t)at++ | OPS_MEMORY_REF) < 0)
				Py_CLEAR(list);
		if (list && row < events->count && ops_ext_raw_row(like.trace->trace, (uint32_t)row) &&
		    kineto_event_append(list, &like, state, (uint32_t)row) < 0)
			Py_CLEAR(list);
	}
	return list;
}

int ops_ext_add_kineto_event(PyObject *module)
{
	return ops_ext_add_type(module, &kineto_spec, &ops_ext_state_of_module(module)->kineto_event);
}
