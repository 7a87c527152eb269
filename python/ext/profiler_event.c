/* SPDX-License-Identifier: Apache-2.0
 *
 * _ProfilerEvent: an event of the raw tree, with the fields of its kind in `extra_fields`.
 */
#include "raw_views.h"

#include <string.h>

#include <opstrobe/internal/trace.h>

struct profiler_event_object {
	PyObject_HEAD
	struct event_tree_object *tree;
	uint32_t node;
};

/* torch's _EventType. */
enum raw_tag { TAG_OPERATOR = 0, TAG_ALLOCATION = 3, TAG_OUT_OF_MEMORY = 4, TAG_PYTHON = 5, TAG_C = 6, TAG_KINETO = 7 };

PyObject *ops_ext_profiler_event_new(struct ops_ext_state *state, struct event_tree_object *tree, uint32_t node)
{
	struct profiler_event_object *self = PyObject_New(struct profiler_event_object, state->profiler_event);

	if (self) {
		self->tree = (struct event_tree_object *)Py_NewRef(tree);
		self->node = node;
	}
	return (PyObject *)self;
}

static uint32_t ref_of(const struct profiler_event_object *self)
{
	return self->tree->refs[self->node];
}

static const struct ops_trace *trace_of(const struct profiler_event_object *self)
{
	return self->tree->trace->trace;
}

static const struct ops_events *profiler_event_columns(const struct profiler_event_object *self)
{
	return ops_trace_events(trace_of(self));
}

/* Returns the report of an allocator; NULL for other events. */
static const struct ops_memory_record *profiler_event_record_of(const struct profiler_event_object *self)
{
	uint32_t ref = ref_of(self);
	size_t count;

	return ref & OPS_MEMORY_REF ? &ops_trace_memory(trace_of(self), &count)[ref & ~OPS_MEMORY_REF] : NULL;
}

static bool profiler_event_is_python(const struct ops_trace *trace, uint32_t row)
{
	return ops_trace_events(trace)->kind[row] == OPS_EVENT_PYTHON_FUNCTION;
}

/* A C function has a name without a file and a line. */
static bool is_c_call(const struct ops_trace *trace, uint32_t row)
{
	const struct ops_events *events = ops_trace_events(trace);
	struct ops_string name = ops_trace_string(trace, events->name[row]);

	return profiler_event_is_python(trace, row) && name.size > 0 && name.bytes[0] == '<' &&
	       memcmp(name.bytes, "<built-in", 9) == 0;
}

static enum raw_tag tag_of(const struct profiler_event_object *self)
{
	const struct ops_memory_record *record = profiler_event_record_of(self);
	uint32_t row = ref_of(self);

	if (record)
		return record->out_of_memory ? TAG_OUT_OF_MEMORY : TAG_ALLOCATION;
	switch ((enum ops_event_kind)profiler_event_columns(self)->kind[row]) {
	case OPS_EVENT_CPU_OP:
	case OPS_EVENT_USER_ANNOTATION:
		return TAG_OPERATOR;
	case OPS_EVENT_PYTHON_FUNCTION:
		return is_c_call(trace_of(self), row) ? TAG_C : TAG_PYTHON;
	default:
		return TAG_KINETO;
	}
}

/* --- fields of each kind ----------------------------------------------------------------------------------------------- */

static struct tensor_view view_of(const struct profiler_event_object *self, struct ops_ext_state *state)
{
	return (struct tensor_view){state, self->tree->trace, &self->tree->blocks, self->tree->use_device == Py_None};
}

static PyObject *operator_fields(const struct profiler_event_object *self, struct ops_ext_state *state)
{
	struct tensor_view view = view_of(self, state);
	const struct ops_events *events = profiler_event_columns(self);
	uint32_t row = ref_of(self);

	return ops_ext_raw_fields(
		state, "_ExtraFields_TorchOp",
		Py_BuildValue("{sNsNsNsLsO}", "name", ops_ext_trace_name(self->tree->trace, events->name[row]), "inputs",
	                      ops_ext_tensor_inputs(&view, row), "scope", ops_ext_raw_member("RecordScope", events->scope[row]),
	                      "sequence_number", (long long)events->sequence_nr[row], "allow_tf32_cublas", Py_False));
}

static PyObject *allocation_fields(const struct profiler_event_object *self, struct ops_ext_state *state)
{
	const struct ops_memory_record *record = profiler_event_record_of(self);
	const struct tensor_blocks *blocks = &self->tree->blocks;
	uint32_t block = ops_ext_tensor_block(blocks, record->device_type, record->address, record->time_ns, record->bytes < 0);
	PyObject *id = block == OPS_NONE ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(block);

	return ops_ext_raw_fields(
		state, "_ExtraFields_Allocation",
		Py_BuildValue("{sKsLsKsKsOsNsN}", "ptr", (unsigned long long)record->address, "alloc_size",
	                      (long long)record->bytes, "total_allocated", (unsigned long long)record->total_allocated,
	                      "total_reserved", (unsigned long long)record->total_reserved, "id", id, "allocation_id", id, "device",
	                      ops_ext_tensor_device(record->device_type, record->device_index)));
}

/* Returns where a Python function is defined, as its rows name it; `line` 0: its first line. */
static PyObject *frame_state(struct ops_ext_state *state, const struct ops_trace *trace, uint32_t row, uint32_t line)
{
	struct ops_string name = ops_trace_string(trace, ops_trace_events(trace)->name[row]);
	struct ops_function_text function;
	size_t skip;

	if (!ops_function_parse(name, &function)) /* a call of a module is a call of this function */
		function = (struct ops_function_text){{"_wrapped_call_impl", 18}, {"torch/nn/modules/module.py", 26}, 0};
	skip = ops_ext_class_bytes(function.name);
	return ops_ext_raw_fields(state, "_PyFrameState",
	                          Py_BuildValue("{sNsksN}", "file_name",
	                                        ops_ext_text(function.file.bytes, function.file.size), "line_number",
	                                        (unsigned long)(line ? line : function.line), "function_name",
	                                        ops_ext_text(function.name.bytes + skip, function.name.size - skip)));
}

/* Returns the function that called an event, and the line; that of the event itself if neither is known. */
static PyObject *caller_state(const struct profiler_event_object *self, struct ops_ext_state *state)
{
	const struct ops_trace *trace = trace_of(self);
	const struct ops_events *events = profiler_event_columns(self);
	uint32_t row = ref_of(self);
	uint32_t caller = events->parent[row], line = events->call_line ? events->call_line[row] : 0;

	while (caller != OPS_NONE && (!profiler_event_is_python(trace, caller) || is_c_call(trace, caller)))
		caller = events->parent[caller];
	return caller == OPS_NONE ? frame_state(state, trace, row, 0) : frame_state(state, trace, caller, line);
}

static PyObject *python_fields(const struct profiler_event_object *self, struct ops_ext_state *state)
{
	struct tensor_view view = view_of(self, state);
	uint32_t row = ref_of(self);

	return ops_ext_raw_fields(state, "_ExtraFields_PyCall",
	                          Py_BuildValue("{sNsNsNsN}", "callsite", frame_state(state, trace_of(self), row, 0), "caller",
	                                        caller_state(self, state), "module", ops_ext_module_info(&view, row), "optimizer",
	                                        ops_ext_optimizer_info(&view, row)));
}

static PyObject *get_extra_fields(PyObject *object, void *closure)
{
	struct profiler_event_object *self = (struct profiler_event_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);

	(void)closure;
	if (!state)
		return NULL;
	switch (tag_of(self)) {
	case TAG_OPERATOR:
		return operator_fields(self, state);
	case TAG_ALLOCATION:
		return allocation_fields(self, state);
	case TAG_PYTHON:
		return python_fields(self, state);
	case TAG_C:
		return ops_ext_raw_fields(state, "_ExtraFields_PyCCall",
		                          Py_BuildValue("{sN}", "caller", caller_state(self, state)));
	case TAG_OUT_OF_MEMORY:
		return ops_ext_raw_fields(state, "_ExtraFields_OutOfMemory", PyDict_New());
	default:
		return ops_ext_raw_fields(state, "_ExtraFields_Kineto", PyDict_New());
	}
}

/* --- common fields ---------------------------------------------------------------------------------------------------------- */

static PyObject *profiler_event_get_name(PyObject *object, void *closure)
{
	const struct profiler_event_object *self = (struct profiler_event_object *)object;
	const struct ops_memory_record *record = profiler_event_record_of(self);

	(void)closure;
	if (record)
		return PyUnicode_FromString(record->out_of_memory ? "[OutOfMemory]" : "[memory]");
	return ops_ext_raw_name(self->tree->trace, ref_of(self));
}

static PyObject *profiler_event_get_overload_name(PyObject *object, void *closure)
{
	const struct profiler_event_object *self = (struct profiler_event_object *)object;
	const uint32_t *overload = profiler_event_columns(self)->overload;

	(void)closure;
	if (profiler_event_record_of(self) || !overload || overload[ref_of(self)] == OPS_NONE)
		return PyUnicode_FromString("");
	return ops_ext_trace_name(self->tree->trace, overload[ref_of(self)]);
}

static PyObject *get_id(PyObject *object, void *closure)
{
	(void)closure;
	return PyLong_FromUnsignedLong((unsigned long)((struct profiler_event_object *)object)->node + 1);
}

static PyObject *get_correlation_id(PyObject *object, void *closure)
{
	const struct profiler_event_object *self = (struct profiler_event_object *)object;

	(void)closure;
	return PyLong_FromUnsignedLongLong(ops_ext_raw_correlation(self->tree->trace, ref_of(self)));
}

/* Returns start, end or duration, depending on the closure. */
static PyObject *get_time(PyObject *object, void *closure)
{
	const struct profiler_event_object *self = (struct profiler_event_object *)object;
	const struct ops_memory_record *record = profiler_event_record_of(self);
	int64_t start_ns = record ? record->time_ns : profiler_event_columns(self)->start_ns[ref_of(self)];
	int64_t end_ns = record ? record->time_ns : profiler_event_columns(self)->end_ns[ref_of(self)];

	switch ((intptr_t)closure) {
	case 's':
		return PyLong_FromLongLong(start_ns);
	case 'e':
		return PyLong_FromLongLong(end_ns);
	default:
		return PyLong_FromLongLong(end_ns - start_ns);
	}
}

static PyObject *get_start_tid(PyObject *object, void *closure)
{
	const struct profiler_event_object *self = (struct profiler_event_object *)object;

	(void)closure;
	return PyLong_FromUnsignedLong(self->tree->thread[self->node]);
}

static PyObject *profiler_event_get_parent(PyObject *object, void *closure)
{
	const struct profiler_event_object *self = (struct profiler_event_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	uint32_t parent = self->tree->parent[self->node];

	(void)closure;
	if (parent == OPS_NONE || !state)
		return state ? Py_NewRef(Py_None) : NULL;
	return ops_ext_profiler_event_new(state, self->tree, parent);
}

static PyObject *get_children(PyObject *object, void *closure)
{
	const struct profiler_event_object *self = (struct profiler_event_object *)object;

	(void)closure;
	return ops_ext_tree_children(self->tree, self->node);
}

static PyObject *get_tag(PyObject *object, void *closure)
{
	enum raw_tag tag = tag_of((struct profiler_event_object *)object);

	(void)closure;
	return ops_ext_raw_member("_EventType", tag);
}

static PyObject *get_typed(PyObject *object, void *closure)
{
	return Py_BuildValue("(NN)", get_tag(object, closure), get_extra_fields(object, closure));
}

static PyObject *get_class(PyObject *object, void *closure)
{
	(void)closure;
	return ops_ext_torch_class("torch._C._profiler", "_ProfilerEvent", Py_TYPE(object));
}

static PyGetSetDef event_getsets[] = {
	{"name", profiler_event_get_name, NULL, "Name as recorded.", NULL},
	{"overload_name", profiler_event_get_overload_name, NULL, NULL, NULL},
	{"id", get_id, NULL, "Unique in the tree.", NULL},
	{"correlation_id", get_correlation_id, NULL, "As _KinetoEvent.correlation_id().", NULL},
	{"start_time_ns", get_time, NULL, "Since the Unix epoch.", (void *)'s'},
	{"end_time_ns", get_time, NULL, NULL, (void *)'e'},
	{"duration_time_ns", get_time, NULL, NULL, (void *)'d'},
	{"start_tid", get_start_tid, NULL, "torch's number of the thread; of a device's work that of the launch.", NULL},
	{"parent", profiler_event_get_parent, NULL, NULL, NULL},
	{"children", get_children, NULL, NULL, NULL},
	{"tag", get_tag, NULL, "_EventType.", NULL},
	{"extra_fields", get_extra_fields, NULL, "The fields of its kind.", NULL},
	{"typed", get_typed, NULL, "(tag, extra_fields)", NULL},
	{"__class__", get_class, NULL, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

/* --- type --------------------------------------------------------------------------------------------------------------- */

static PyObject *profiler_event_compare(PyObject *a, PyObject *b, int op)
{
	const struct profiler_event_object *x = (struct profiler_event_object *)a, *y = (struct profiler_event_object *)b;

	if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE))
		Py_RETURN_NOTIMPLEMENTED;
	return PyBool_FromLong((x->tree == y->tree && x->node == y->node) == (op == Py_EQ));
}

static Py_hash_t profiler_event_hash(PyObject *object)
{
	return (Py_hash_t)((struct profiler_event_object *)object)->node;
}

static void profiler_event_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	Py_DECREF(((struct profiler_event_object *)object)->tree);
	PyObject_Free(object);
	Py_DECREF(type);
}

static PyType_Slot event_slots[] = {
	{Py_tp_doc, "An event of the raw tree, with the attributes of torch's class of this name."},
	{Py_tp_dealloc, profiler_event_dealloc},
	{Py_tp_richcompare, profiler_event_compare},
	{Py_tp_hash, profiler_event_hash},
	{Py_tp_getset, event_getsets},
	{0, NULL},
};

static PyType_Spec event_spec = {
	.name = "opstrobe._core._ProfilerEvent",
	.basicsize = sizeof(struct profiler_event_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = event_slots,
};

int ops_ext_add_profiler_event(PyObject *module)
{
	return ops_ext_add_type(module, &event_spec, &ops_ext_state_of_module(module)->profiler_event);
}
