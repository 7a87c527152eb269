/* SPDX-License-Identifier: Apache-2.0
 *
 * The attributes of a FunctionEvent: one getter for each, which reads the columns of the trace.
 *
 * Differences from torch's: `id` is also unique for memory events; `device_index` is -1 for CPU events (torch shows the process
 * id there); a `[memory]` event has empty lists and 0 where torch has None.
 */
#include "views.h"

#include <string.h>

static const struct ops_events *event_fields_columns(const struct function_event_object *self)
{
	return ops_trace_events(self->trace->trace);
}

/* Returns the memory record of a synthetic event, or NULL. */
static const struct ops_memory_record *memory_of(const struct function_event_object *self)
{
	size_t count;

	if (!(self->ref & OPS_MEMORY_REF))
		return NULL;
	return &ops_trace_memory(self->trace->trace, &count)[self->ref & ~OPS_MEMORY_REF];
}

int ops_ext_function_event_row(struct function_event_object *self, struct ops_average *ret_row)
{
	struct ops_event_costs costs;

	if (ops_ext_trace_need_costs(self->trace) < 0)
		return -1;
	costs = ops_ext_trace_costs(self->trace, self->with_flops);
	ops_average_of_event(self->trace->trace, &costs, self->ref, ret_row);
	return 0;
}

static PyObject *event_fields_get_average(PyObject *object, void *closure)
{
	struct ops_average row;

	if (ops_ext_function_event_row((struct function_event_object *)object, &row) < 0)
		return NULL;
	return ops_ext_average_field(&row, (int)(intptr_t)closure);
}

static PyObject *get_false(PyObject *object, void *closure)
{
	(void)object;
	(void)closure;
	Py_RETURN_FALSE;
}

static PyObject *get_minus_1(PyObject *object, void *closure)
{
	(void)object;
	(void)closure;
	return PyLong_FromLong(-1);
}

/* Returns a number of a Python call; the closure is the offset of its column in struct ops_events. */
static PyObject *get_python_id(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	const uint32_t *column = NULL;

	if (!(self->ref & OPS_MEMORY_REF))
		memcpy(&column, (const char *)event_fields_columns(self) + (size_t)(uintptr_t)closure, sizeof(column));
	if (!column || column[self->ref] == OPS_NONE)
		return PyLong_FromLong(-1);
	return PyLong_FromUnsignedLong(column[self->ref]);
}

/* Returns -1 until set; then it is one of the user's own attributes. */
static PyObject *get_percent(PyObject *object, void *closure)
{
	PyObject *dict = ((struct function_event_object *)object)->dict;
	PyObject *value = dict ? PyDict_GetItemString(dict, closure) : NULL;

	return value ? Py_NewRef(value) : PyLong_FromLong(-1);
}

static int set_percent(PyObject *object, PyObject *value, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;

	if (!value) {
		PyErr_SetString(PyExc_AttributeError, closure);
		return -1;
	}
	if (!self->dict && !(self->dict = PyDict_New()))
		return -1;
	return PyDict_SetItemString(self->dict, closure, value);
}

static PyObject *event_fields_get_name(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	bool traced = closure != NULL; /* trace_name: without the wildcard of "ProfilerStep*" */
	struct ops_average row;
	struct ops_string text;

	if (self->ref & OPS_MEMORY_REF) {
		if (traced)
			Py_RETURN_NONE;
		return PyUnicode_FromString(memory_of(self)->out_of_memory ? "[OutOfMemory]" : "[memory]");
	}
	row.key = OPS_KEY_NAME;
	row.name = event_fields_columns(self)->name[self->ref];
	text = ops_average_name(self->trace->trace, &row);
	if (traced || text.bytes == ops_trace_string(self->trace->trace, row.name).bytes)
		return ops_ext_trace_name(self->trace, row.name);
	return ops_ext_text(text.bytes, text.size);
}

static PyObject *event_fields_get_overload_name(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	const struct ops_events *events = event_fields_columns(self);

	(void)closure;
	if ((self->ref & OPS_MEMORY_REF) || !events->overload || events->overload[self->ref] == OPS_NONE)
		return PyUnicode_FromString("");
	return ops_ext_trace_name(self->trace, events->overload[self->ref]);
}

static PyObject *get_external_id(PyObject *object, void *closure)
{
	const struct function_event_object *self = (struct function_event_object *)object;
	const struct ops_events *events = event_fields_columns(self);

	(void)closure;
	if (self->ref & OPS_MEMORY_REF)
		return PyLong_FromLong(0);
	return PyLong_FromUnsignedLongLong(events->id ? events->id[self->ref] : (uint64_t)self->ref + 1);
}

static void span_us(const struct function_event_object *self, double *ret_start_us, double *ret_end_us)
{
	const struct ops_memory_record *memory = memory_of(self);
	int64_t origin = ops_trace_info(self->trace->trace)->start_ns;
	int64_t start = memory ? memory->time_ns : event_fields_columns(self)->start_ns[self->ref];
	int64_t end = memory ? memory->time_ns : event_fields_columns(self)->end_ns[self->ref];

	*ret_start_us = (double)(start - origin) / 1000.0;
	*ret_end_us = (double)(end - origin) / 1000.0;
}

static PyObject *get_time_range(PyObject *object, void *closure)
{
	struct ops_ext_state *state = ops_ext_state_of(object);
	double start_us, end_us;

	(void)closure;
	if (!state)
		return NULL;
	span_us((struct function_event_object *)object, &start_us, &end_us);
	return ops_ext_interval_new(state, start_us, end_us);
}

static const struct ops_track *track_of(const struct function_event_object *self)
{
	const struct ops_memory_record *memory = memory_of(self);
	size_t count;
	const struct ops_track *tracks = ops_trace_tracks(self->trace->trace, &count);

	return &tracks[memory ? memory->track : event_fields_columns(self)->track[self->ref]];
}

static PyObject *get_thread(PyObject *object, void *closure)
{
	(void)closure;
	return PyLong_FromUnsignedLong(track_of((struct function_event_object *)object)->number);
}

static PyObject *get_device_resource_id(PyObject *object, void *closure)
{
	(void)closure;
	return PyLong_FromLongLong(track_of((struct function_event_object *)object)->tid);
}

static PyObject *get_fwd_thread(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;

	(void)closure;
	if ((self->ref & OPS_MEMORY_REF) || event_fields_columns(self)->sequence_nr[self->ref] < 0)
		return PyLong_FromLong(0);
	return PyLong_FromUnsignedLong(event_fields_columns(self)->forward_thread[self->ref]);
}

static PyObject *get_sequence_nr(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;

	(void)closure;
	return PyLong_FromLongLong(self->ref & OPS_MEMORY_REF ? -1 : event_fields_columns(self)->sequence_nr[self->ref]);
}

PyObject *ops_ext_device_type(struct ops_ext_state *state, uint8_t value)
{
	PyObject *module, *member;

	if (value >= OPS_EXT_DEVICE_TYPES)
		return PyLong_FromLong(value);
	if (!state->device_types[value]) {
		module = PyImport_ImportModule("opstrobe._enums");
		if (!module)
			return NULL;
		member = PyObject_CallMethod(module, "DeviceType", "i", value);
		Py_DECREF(module);
		if (!member)
			return NULL;
		state->device_types[value] = member;
	}
	return Py_NewRef(state->device_types[value]);
}

static PyObject *event_fields_get_device_type(PyObject *object, void *closure)
{
	struct ops_ext_state *state = ops_ext_state_of(object);
	struct function_event_object *self = (struct function_event_object *)object;
	const struct ops_memory_record *memory = memory_of(self);
	struct ops_average row;

	(void)closure;
	if (!state || ops_ext_function_event_row(self, &row) < 0)
		return NULL;
	return ops_ext_device_type(state, memory ? memory->device_type : row.device_type);
}

static PyObject *get_device_index(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	const struct ops_memory_record *memory = memory_of(self);

	(void)closure;
	if (ops_ext_event_on_device(self))
		return PyLong_FromLongLong(track_of(self)->pid);
	return PyLong_FromLong(memory ? memory->device_index : -1);
}

static PyObject *event_fields_get_scope(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;

	(void)closure;
	return PyLong_FromLong(self->ref & OPS_MEMORY_REF ? 0 : event_fields_columns(self)->scope[self->ref]);
}

static PyObject *get_activity_type(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	struct ops_string category;

	(void)closure;
	if (self->ref & OPS_MEMORY_REF)
		return PyUnicode_FromString(ops_event_kind_category(OPS_EVENT_CPU_INSTANT));
	category = ops_event_category(self->trace->trace, self->ref);
	return ops_ext_text(category.bytes, category.size);
}

static PyObject *get_is_kind(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;

	return PyBool_FromLong(!(self->ref & OPS_MEMORY_REF) &&
	                       event_fields_columns(self)->kind[self->ref] == (intptr_t)closure);
}

static PyObject *get_inputs(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	uint32_t inputs = self->ref & OPS_MEMORY_REF ? OPS_NONE : event_fields_columns(self)->inputs[self->ref];

	return ops_ext_inputs(self->trace, inputs, (enum inputs_view)(intptr_t)closure);
}

static PyObject *event_fields_get_stack(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;

	(void)closure;
	return ops_ext_trace_stack(self->trace, self->ref, OPS_ALL_FRAMES);
}

static PyObject *get_named_values(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;

	if (self->ref & OPS_MEMORY_REF)
		return PyDict_New();
	return ops_ext_named_values(self->trace, self->ref, closure != NULL);
}

static PyObject *event_fields_get_use_device(PyObject *object, void *closure)
{
	(void)closure;
	return Py_NewRef(((struct function_event_object *)object)->use_device);
}

static PyObject *get_cpu_parent(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	uint32_t parent = self->ref & OPS_MEMORY_REF ? OPS_NONE : event_fields_columns(self)->parent[self->ref];

	(void)closure;
	if (!state)
		return NULL;
	if (parent == OPS_NONE || ops_ext_event_on_device(self))
		Py_RETURN_NONE;
	return ops_ext_function_event_new(state, self->trace, parent, self->use_device, self->with_flops);
}

static PyObject *get_cpu_children(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	uint32_t first, count;
	PyObject *list;

	(void)closure;
	if (!state)
		return NULL;
	if ((self->ref & OPS_MEMORY_REF) || ops_ext_event_on_device(self))
		return PyList_New(0);
	if (ops_ext_trace_need_children(self->trace) < 0)
		return NULL;
	first = self->trace->child_start[self->ref];
	count = self->trace->child_start[self->ref + 1] - first;
	list = PyList_New(count);
	for (uint32_t i = 0; list && i < count; i++) {
		PyObject *child = ops_ext_function_event_new(state, self->trace, self->trace->child_rows[first + i],
		                                             self->use_device, self->with_flops);
		if (child)
			PyList_SET_ITEM(list, i, child);
		else
			Py_CLEAR(list);
	}
	return list;
}

/* Returns the number of the flow at an event, such as that from a forward operator to its backward node, which is equal at both
 * ends. */
static PyObject *get_flow(PyObject *object, void *closure)
{
	struct function_event_object *self = (struct function_event_object *)object;
	const struct ops_link *links;
	uint32_t flow = 0;
	size_t count;

	if (!(self->ref & OPS_MEMORY_REF)) {
		if (ops_ext_trace_need_flows(self->trace) < 0)
			return NULL;
		flow = self->trace->flows[self->ref];
	}
	switch ((intptr_t)closure) {
	case 'i':
		return PyLong_FromUnsignedLong(flow ? self->trace->flow_numbers[flow - 1] : 0);
	case 't':
		links = ops_trace_links(self->trace->trace, &count);
		return PyLong_FromLong(flow ? (long)links[flow - 1].kind + 1 : 0);
	default:
		links = ops_trace_links(self->trace->trace, &count);
		return PyBool_FromLong(flow && links[flow - 1].from == self->ref);
	}
}

/* The attributes that torch's events have in their __dict__, and that vars() shows. */
static const char *const plain_names[] = {
	"id", "node_id", "name", "overload_name", "trace_name", "time_range", "thread", "fwd_thread", "kernels", "count",
	"cpu_children", "cpu_parent", "input_shapes", "concrete_inputs", "kwinputs", "stack", "scope", "use_device",
	"cpu_memory_usage", "device_memory_usage", "is_async", "is_remote", "sequence_nr", "device_type", "device_index",
	"device_resource_id", "is_legacy", "flops", "is_user_annotation", "is_python_function", "activity_type",
	"self_cpu_percent", "total_cpu_percent", "total_device_percent", "flow_id", "flow_type", "flow_start",
	"external_id", "linked_correlation_id", "event_metadata", "structured_input_shapes", "structured_input_strides",
	"input_dtypes", "python_id", "python_parent_id", "python_module_id", NULL,
};

static PyObject *event_fields_get_dict(PyObject *object, void *closure)
{
	(void)closure;
	return ops_ext_attributes(object, plain_names, ((struct function_event_object *)object)->dict);
}

PyGetSetDef ops_ext_function_event_getsets[] = {
	{"id", ops_ext_event_id, NULL, "Number of the event, unique in the trace.", NULL},
	{"node_id", get_minus_1, NULL, "-1", NULL},
	{"name", event_fields_get_name, NULL, "Name; steps of a schedule are all called \"ProfilerStep*\".", NULL},
	{"key", event_fields_get_name, NULL, "The same as name.", NULL},
	{"trace_name", event_fields_get_name, NULL, "Name as recorded; None for memory events.", (void *)1},
	{"overload_name", event_fields_get_overload_name, NULL, "Overload of the operator, \"\" unless captured.", NULL},
	{"time_range", get_time_range, NULL, "Interval in us after the session's start.", NULL},
	{"thread", get_thread, NULL, "Logical number of the thread it began on.", NULL},
	{"fwd_thread", get_fwd_thread, NULL, "For a backward event, the thread of its forward operator; else 0.", NULL},
	{"sequence_nr", get_sequence_nr, NULL, "Autograd sequence number, -1 for none.", NULL},
	{"scope", event_fields_get_scope, NULL, "RecordScope.", NULL},
	{"device_type", event_fields_get_device_type, NULL, "DeviceType.", NULL},
	{"device_index", get_device_index, NULL, "Ordinal of the device, -1 for the CPU.", NULL},
	{"device_resource_id", get_device_resource_id, NULL, "Thread id of the system, or stream.", NULL},
	{"activity_type", get_activity_type, NULL, "Category in the trace file.", NULL},
	{"is_user_annotation", event_fields_get_average, NULL, "A range of the user's, or what it covers on a stream.",
	 (void *)FIELD_IS_USER_ANNOTATION},
	{"is_python_function", get_is_kind, NULL, "A call of a Python function.", (void *)OPS_EVENT_PYTHON_FUNCTION},
	{"is_remote", get_false, NULL, "False", NULL},
	{"use_device", event_fields_get_use_device, NULL, "Device word of the profile, or None.", NULL},
	{"cpu_parent", get_cpu_parent, NULL, "The enclosing event, or None.", NULL},
	{"cpu_children", get_cpu_children, NULL, "The events directly inside, in order.", NULL},
	{"input_shapes", get_inputs, NULL, "Sizes of each argument, [] for arguments that are not tensors.",
	 (void *)INPUT_SHAPES},
	{"structured_input_shapes", get_inputs, NULL, "The same, with a list of sizes for a list of tensors.",
	 (void *)INPUT_STRUCTURED_SHAPES},
	{"structured_input_strides", get_inputs, NULL, "Strides alike.", (void *)INPUT_STRUCTURED_STRIDES},
	{"input_dtypes", get_inputs, NULL, "Type of each argument.", (void *)INPUT_DTYPES},
	{"concrete_inputs", get_inputs, NULL, "Value of each scalar argument, else None.", (void *)INPUT_CONCRETE},
	{"external_id", get_external_id, NULL, "The id; 0 for memory events.", NULL},
	{"linked_correlation_id", ops_ext_event_linked_id, NULL,
	 "Of what ran on a device, or handed it over: the id of the operator. Else 0.", NULL},
	{"kernels", ops_ext_event_kernels, NULL, "What it launched itself on devices.", NULL},
	{"kwinputs", get_named_values, NULL, "Keyword arguments.", NULL},
	{"performance_counters", get_named_values, NULL, "What was counted in it, by the names of performance_events.",
	 (void *)1},
	{"stack", event_fields_get_stack, NULL,
	 "Python functions around it, the innermost first; of a backward event, those around its forward operator.", NULL},
	{"event_metadata", ops_ext_event_details, NULL, "Details of a device event; None for others.", NULL},
	{"flow_id", get_flow, NULL, "Number of the arrow that begins or ends here, 0 none.", (void *)'i'},
	{"flow_type", get_flow, NULL, "1 from forward to backward, 2 from launch to kernel, 3 any other, 0 none.", (void *)'t'},
	{"flow_start", get_flow, NULL, "Whether it starts here.", (void *)'s'},
	{"python_id", get_python_id, NULL, "Number of the Python call, -1 for other events.",
	 (void *)offsetof(struct ops_events, python_id)},
	{"python_parent_id", get_python_id, NULL, "python_id of the call around it, -1 for none.",
	 (void *)offsetof(struct ops_events, python_parent)},
	{"python_module_id", get_python_id, NULL, "Number, within its class, of the module whose call this is, else -1.",
	 (void *)offsetof(struct ops_events, python_module)},
	{"self_cpu_percent", get_percent, set_percent, "-1 until set: torch's own tables note their text here.",
	 (void *)"self_cpu_percent"},
	{"total_cpu_percent", get_percent, set_percent, "Likewise.", (void *)"total_cpu_percent"},
	{"total_device_percent", get_percent, set_percent, "Likewise.", (void *)"total_device_percent"},
	OPS_EXT_AVERAGE_GETSETS(event_fields_get_average),
	OPS_EXT_OTHER_NAMES,
	{"start", ops_ext_other_name, NULL, "Another name of time_range.start.", (void *)OTHER_START},
	{"end", ops_ext_other_name, NULL, "Another name of time_range.end.", (void *)OTHER_END},
	{"metadata", ops_ext_event_metadata, NULL, "Its numbers in the trace file, by their names there; None for memory.",
	 NULL},
	{"metadata_json", ops_ext_event_metadata_json, NULL, "Deprecated.", NULL},
	{"__dict__", event_fields_get_dict, NULL, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};
