/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace: the Python type that owns a C trace and the objects that trace_derived.c derives from it.
 */
#include "raw_views.h"

#include <string.h>

#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/trace.h>
#include <opstrobe/merge.h>
#include <opstrobe/query.h>
#include <opstrobe/write.h>

PyObject *ops_ext_trace_new(PyObject *module, struct ops_trace *take)
{
	return ops_ext_trace_make(ops_ext_state_of_module(module), take);
}

PyObject *ops_ext_trace_make(struct ops_ext_state *state, struct ops_trace *take)
{
	struct trace_object *self = PyObject_GC_New(struct trace_object, state->trace);

	if (!self) {
		ops_trace_unref(take);
		return NULL;
	}
	memset((char *)self + sizeof(PyObject), 0, sizeof(*self) - sizeof(PyObject));
	self->trace = take;
	PyObject_GC_Track(self);
	return (PyObject *)self;
}

static int trace_traverse(PyObject *object, visitproc visit, void *arg)
{
	Py_VISIT(Py_TYPE(object));
	Py_VISIT(((struct trace_object *)object)->kept);
	return 0;
}

static int trace_clear(PyObject *object)
{
	Py_CLEAR(((struct trace_object *)object)->kept);
	return 0;
}

static void trace_dealloc(PyObject *object)
{
	struct trace_object *self = (struct trace_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	trace_clear(object);
	if (self->names) {
		for (size_t i = ops_trace_string_count(self->trace); i-- > 0;)
			Py_XDECREF(self->names[i]);
		PyMem_Free(self->names);
	}
	if (self->frames) {
		for (size_t i = ops_stack_name_count(self->stacks); i-- > 0;)
			Py_XDECREF(self->frames[i]);
		PyMem_Free(self->frames);
	}
	ops_stacks_free(self->stacks);
	Py_XDECREF(self->module_parameters);
	PyMem_RawFree(self->flows);
	PyMem_RawFree(self->flow_numbers);
	PyMem_RawFree(self->child_start);
	PyMem_RawFree(self->child_rows);
	PyMem_RawFree(self->work_start);
	PyMem_RawFree(self->work_rows);
	ops_event_costs_release(&self->costs);
	ops_free(self->refs);
	ops_trace_unref(self->trace);
	PyObject_GC_Del(object);
	Py_DECREF(type);
}

/* Sets the pair in `trace`; only checks it if `trace` is NULL. */
static PyObject *set_or_check_metadata(struct ops_trace *trace, PyObject *args)
{
	PyObject *key, *json, *key_bytes = NULL, *json_bytes = NULL, *result = NULL;
	struct ops_error error;
	enum ops_code code;

	if (!PyArg_ParseTuple(args, "UU", &key, &json))
		return NULL;
	key_bytes = ops_ext_text_bytes(key);
	json_bytes = key_bytes ? ops_ext_text_bytes(json) : NULL;
	if (json_bytes) {
		const char *key_text = PyBytes_AS_STRING(key_bytes), *json_text = PyBytes_AS_STRING(json_bytes);
		size_t key_size = (size_t)PyBytes_GET_SIZE(key_bytes), json_size = (size_t)PyBytes_GET_SIZE(json_bytes);

		code = trace ? ops_trace_set_metadata(trace, key_text, key_size, json_text, json_size, &error)
		             : ops_metadata_check(key_text, key_size, json_text, json_size, &error);
		result = code ? ops_ext_raise(&error) : Py_NewRef(Py_None);
	}
	Py_XDECREF(json_bytes);
	Py_XDECREF(key_bytes);
	return result;
}

static PyObject *trace_set_metadata(PyObject *object, PyObject *args)
{
	return set_or_check_metadata(((struct trace_object *)object)->trace, args);
}

static PyObject *trace_check_metadata(PyObject *unused, PyObject *args)
{
	(void)unused;
	return set_or_check_metadata(NULL, args);
}

static PyObject *trace_metadata(PyObject *object, PyObject *unused)
{
	struct trace_object *self = (struct trace_object *)object;
	PyObject *dict = PyDict_New();

	(void)unused;
	for (size_t i = 0; dict && i < ops_trace_metadata_count(self->trace); i++) {
		struct ops_string key, json;
		PyObject *name, *value;

		ops_trace_metadata(self->trace, i, &key, &json);
		name = ops_ext_text(key.bytes, key.size);
		value = ops_ext_text(json.bytes, json.size);
		if (!name || !value || PyDict_SetItem(dict, name, value) < 0)
			Py_CLEAR(dict);
		Py_XDECREF(value);
		Py_XDECREF(name);
	}
	return dict;
}

/* Returns the function events that are found within `timeout` seconds. */
static PyObject *events_within(struct ops_ext_state *state, struct trace_object *self,
                               const struct view_options *options, PyObject *timeout)
{
	double limit_s = PyFloat_AsDouble(timeout);
	uint32_t *found = NULL, *refs;
	struct ops_error error;
	enum ops_code code;
	bool complete;
	size_t count = 0;
	PyObject *list;

	if (limit_s == -1.0 && PyErr_Occurred())
		return NULL;
	limit_s = limit_s < 1e9 ? limit_s : 1e9; /* thirty years, also for infinity */
	OPS_EXT_WITHOUT_GIL(code = ops_function_events_until(
		self->trace, ops_clock_read_ns(CLOCK_MONOTONIC) + (int64_t)(limit_s * 1e9), &found, &count,
		&complete, &error));
	if (code)
		return ops_ext_raise(&error);
	refs = PyMem_New(uint32_t, count + 1);
	if (refs)
		memcpy(refs, found, count * sizeof(*refs));
	ops_free(found);
	if (!refs)
		return PyErr_NoMemory();
	list = ops_ext_event_list_of_refs(state, self, options, refs, count);
	if (list)
		((struct event_list_object *)list)->timed_out = !complete;
	return list;
}

static PyObject *trace_function_events(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"use_device", "profile_memory", "with_flops", "timeout_s", NULL};
	struct trace_object *self = (struct trace_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	PyObject *use_device = Py_None, *timeout = Py_None;
	int profile_memory = 0, with_flops = 0;
	struct view_options options;

	if (!state || !PyArg_ParseTupleAndKeywords(args, kwargs, "|$OppO:function_events", names, &use_device,
	                                           &profile_memory, &with_flops, &timeout))
		return NULL;
	if (use_device != Py_None && !PyUnicode_Check(use_device))
		return PyErr_Format(PyExc_TypeError, "use_device must be a str or None");
	options = (struct view_options){.use_device = use_device, .profile_memory = (char)profile_memory,
	                                .with_flops = (char)with_flops};
	if (timeout != Py_None)
		return events_within(state, self, &options, timeout);
	if (ops_ext_trace_need_refs(self) < 0)
		return NULL;
	return ops_ext_event_list_of_refs(state, self, &options, NULL, self->ref_count);
}

static PyObject *trace_export_chrome_trace(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"path", "compression_level", "call_stacks", "forward_backward", NULL};
	struct trace_object *self = (struct trace_object *)object;
	struct ops_chrome_json_options options = {.size = sizeof(options), .compression_level = 4};
	int call_stacks = 0, forward_backward = 1;
	struct ops_error error;
	enum ops_code code;
	PyObject *path;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$ipp:export_chrome_trace", names, PyUnicode_FSConverter,
	                                 &path, &options.compression_level, &call_stacks, &forward_backward))
		return NULL;
	options.call_stacks = call_stacks;
	options.no_forward_backward = !forward_backward;
	OPS_EXT_WITHOUT_GIL(code = ops_write_chrome_json(self->trace, PyBytes_AS_STRING(path), &options, &error));
	Py_DECREF(path);
	if (code)
		return ops_ext_raise(&error);
	Py_RETURN_NONE;
}

static PyObject *trace_export_pftrace(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"path", "compression_level", NULL};
	struct trace_object *self = (struct trace_object *)object;
	struct ops_pftrace_options options = {.size = sizeof(options)};
	struct ops_error error;
	enum ops_code code;
	PyObject *path;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|$i:export_pftrace", names, PyUnicode_FSConverter, &path,
	                                 &options.compression_level))
		return NULL;
	OPS_EXT_WITHOUT_GIL(code = ops_write_pftrace(self->trace, PyBytes_AS_STRING(path), &options, &error));
	Py_DECREF(path);
	if (code)
		return ops_ext_raise(&error);
	Py_RETURN_NONE;
}

/* Converts names of categories to a bit set of kinds. */
static int kinds_of(PyObject *categories, uint32_t *ret_kinds)
{
	*ret_kinds = 0;
	for (int kind = 0; kind < OPS_EVENT_KIND_COUNT; kind++) {
		PyObject *category = PyUnicode_FromString(ops_event_kind_category(kind));
		int found = category ? PySequence_Contains(categories, category) : -1;

		Py_XDECREF(category);
		if (found < 0)
			return -1;
		*ret_kinds |= found ? 1u << kind : 0;
	}
	return 0;
}

static PyObject *trace_without(PyObject *object, PyObject *args)
{
	struct trace_object *self = (struct trace_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	struct ops_trace *selected = NULL;
	PyObject *categories;
	struct ops_error error;
	enum ops_code code;
	uint32_t left_out;

	if (!state || !PyArg_ParseTuple(args, "O:without", &categories) || kinds_of(categories, &left_out) < 0)
		return NULL;
	if (left_out & 1u << OPS_EVENT_CPU_INSTANT)
		left_out |= OPS_SELECT_MEMORY;
	OPS_EXT_WITHOUT_GIL(code = ops_trace_select(self->trace, left_out, &selected, &error));
	return code ? ops_ext_raise(&error) : ops_ext_trace_make(state, selected);
}

static PyObject *trace_followed_by(PyObject *object, PyObject *other)
{
	struct ops_ext_state *state = ops_ext_state_of(object);
	struct ops_trace_part parts[2] = {{.trace = ((struct trace_object *)object)->trace, .whole = true}};
	struct ops_trace *merged = NULL;
	struct ops_error error;
	enum ops_code code;

	if (!state)
		return NULL;
	if (!PyObject_TypeCheck(other, state->trace))
		return PyErr_Format(PyExc_TypeError, "a Trace is needed, not %.200s", Py_TYPE(other)->tp_name);
	parts[1] = (struct ops_trace_part){.trace = ((struct trace_object *)other)->trace, .whole = true};
	OPS_EXT_WITHOUT_GIL(code = ops_trace_merge(parts, 2, NULL, &merged, &error));
	return code ? ops_ext_raise(&error) : ops_ext_trace_make(state, merged);
}

/* Fills a part from (name, trace), which the caller keeps alive. Returns false with an exception set. */
static bool process_part(struct ops_ext_state *state, PyObject *item, struct ops_trace_part *part)
{
	PyObject *trace;

	*part = (struct ops_trace_part){.whole = true};
	if (!PyTuple_Check(item) || !PyArg_ParseTuple(item, "sO!:with_processes", &part->process_name, state->trace, &trace)) {
		if (!PyErr_Occurred())
			PyErr_Format(PyExc_TypeError, "pairs of a name and a Trace are needed, not %.200s", Py_TYPE(item)->tp_name);
		return false;
	}
	part->trace = ((struct trace_object *)trace)->trace;
	return true;
}

static PyObject *trace_with_processes(PyObject *object, PyObject *given)
{
	struct ops_ext_state *state = ops_ext_state_of(object);
	PyObject *list = PySequence_Tuple(given);
	Py_ssize_t count = list ? PyTuple_GET_SIZE(list) : 0;
	struct ops_trace_part *parts = list ? PyMem_Calloc((size_t)count + 1, sizeof(*parts)) : NULL;
	struct ops_trace *merged = NULL;
	struct ops_error error;
	enum ops_code code;
	bool done = state && parts;

	if (list && !parts)
		PyErr_NoMemory();
	for (Py_ssize_t i = 0; done && i < count; i++)
		done = process_part(state, PyTuple_GET_ITEM(list, i), &parts[i + 1]);
	if (done) {
		parts[0] = (struct ops_trace_part){.trace = ((struct trace_object *)object)->trace, .whole = true};
		OPS_EXT_WITHOUT_GIL(code = ops_trace_merge(parts, (size_t)count + 1, NULL, &merged, &error));
		done = code == OPS_OK;
		if (code)
			ops_ext_raise(&error);
	}
	PyMem_Free(parts);
	Py_XDECREF(list);
	return done ? ops_ext_trace_make(state, merged) : NULL;
}

static PyObject *trace_check(PyObject *object, PyObject *unused)
{
	struct ops_error error;
	enum ops_code code;

	(void)unused;
	OPS_EXT_WITHOUT_GIL(code = ops_trace_check(((struct trace_object *)object)->trace, &error));
	if (code)
		return ops_ext_raise(&error);
	Py_RETURN_NONE;
}

static PyObject *trace_notes(PyObject *object, PyObject *unused)
{
	size_t count;
	const struct ops_note *notes = ops_trace_notes(((struct trace_object *)object)->trace, &count);
	PyObject *list = PyList_New((Py_ssize_t)count);

	(void)unused;
	for (size_t i = 0; list && i < count; i++) {
		PyObject *note = Py_BuildValue("(sKK)", ops_note_text(notes[i].kind), (unsigned long long)notes[i].count,
		                               (unsigned long long)notes[i].byte);
		if (note)
			PyList_SET_ITEM(list, (Py_ssize_t)i, note);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *trace_diagnostics(PyObject *object, PyObject *unused)
{
	struct ops_diagnostic items[OPS_DIAGNOSTICS_MAX];
	size_t count = ops_trace_diagnostics(((struct trace_object *)object)->trace, "", items);
	PyObject *list = PyList_New((Py_ssize_t)count);

	(void)unused;
	for (size_t i = 0; list && i < count; i++) {
		PyObject *item = Py_BuildValue("{sssssKsK}", "kind", items[i].kind, "message", items[i].message, "count",
		                               (unsigned long long)items[i].count, "byte", (unsigned long long)items[i].byte);
		if (item)
			PyList_SET_ITEM(list, (Py_ssize_t)i, item);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *trace_rank(PyObject *object, PyObject *path)
{
	PyObject *bytes;
	int64_t rank;

	if (!PyUnicode_FSConverter(path, &bytes))
		return NULL;
	rank = ops_trace_rank(((struct trace_object *)object)->trace, PyBytes_AS_STRING(bytes));
	Py_DECREF(bytes);
	if (rank < 0)
		Py_RETURN_NONE;
	return PyLong_FromLongLong(rank);
}

static PyObject *trace_is_complete(PyObject *object, PyObject *unused)
{
	(void)unused;
	return PyBool_FromLong(ops_trace_is_complete(((struct trace_object *)object)->trace));
}

static PyObject *make_row(struct trace_object *self, const struct ops_events *events, uint32_t row)
{
	struct ops_string category = ops_event_category(self->trace, row);
	uint32_t index = events->index ? events->index[row] : row;
	PyObject *name = ops_ext_trace_name(self, events->name[row]);
	PyObject *text = name ? ops_ext_text(category.bytes, category.size) : NULL;

	if (!text) {
		Py_XDECREF(name);
		return NULL;
	}
	return Py_BuildValue("(INNLL)", index, text, name, (long long)events->start_ns[row], (long long)events->end_ns[row]);
}

static PyObject *trace_rows(PyObject *object, PyObject *unused)
{
	struct trace_object *self = (struct trace_object *)object;
	const struct ops_events *events = ops_trace_events(self->trace);
	PyObject *list = PyList_New((Py_ssize_t)events->count);

	(void)unused;
	for (size_t i = 0; list && i < events->count; i++) {
		PyObject *row = make_row(self, events, (uint32_t)i);
		if (row)
			PyList_SET_ITEM(list, (Py_ssize_t)i, row);
		else
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *get_number(PyObject *object, void *closure)
{
	const struct ops_trace_info *info = ops_trace_info(((struct trace_object *)object)->trace);
	size_t count;

	switch ((intptr_t)closure) {
	case 's':
		return PyLong_FromLongLong(info->start_ns);
	case 'e':
		return PyLong_FromLongLong(info->stop_ns);
	case 'p':
		return PyLong_FromLongLong(info->pid);
	case 'l':
		return PyLong_FromUnsignedLongLong(info->lost);
	case 'm':
		ops_trace_memory(((struct trace_object *)object)->trace, &count);
		return PyBool_FromLong(count != 0);
	default:
		return PyLong_FromSize_t(ops_trace_events(((struct trace_object *)object)->trace)->count);
	}
}

static PyObject *get_device(PyObject *object, void *closure)
{
	char name[OPS_DEVICE_NAME_BYTES];
	const char *device = ops_trace_device(((struct trace_object *)object)->trace, name);

	(void)closure;
	if (!device)
		Py_RETURN_NONE;
	return PyUnicode_FromString(device);
}

static PyMethodDef trace_methods[] = {
	{"set_metadata", trace_set_metadata, METH_VARARGS,
	 "set_metadata(key, json_text)\n--\n\nSets a metadata key to one JSON value; ValueError names the byte that is wrong."},
	{"check_metadata", trace_check_metadata, METH_VARARGS | METH_STATIC,
	 "check_metadata(key, json_text)\n--\n\nThe ValueError that set_metadata would raise, without a trace."},
	{"metadata", trace_metadata, METH_NOARGS, "All metadata: key to JSON text."},
	{"function_events", (PyCFunction)(void (*)(void))trace_function_events, METH_VARARGS | METH_KEYWORDS,
	 "function_events(*, use_device=None, profile_memory=False, with_flops=False, timeout_s=None)\n--\n\nThe events as an "
	 "EventList; with a limit in seconds those that could be found in time."},
	{"without", trace_without, METH_VARARGS,
	 "without(categories)\n--\n\nA trace without the events of these categories, as if they had not been recorded; "
	 "\"cpu_instant_event\" includes memory records."},
	{"kineto_events", ops_ext_trace_kineto_events, METH_VARARGS,
	 "kineto_events(use_device, with_flops)\n--\n\nA list of all events and reports of allocators as _KinetoEvent, by time."},
	{"followed_by", trace_followed_by, METH_O,
	 "followed_by(other)\n--\n\nOne trace of this one and another recording of the process, each at its own time."},
	{"with_processes", trace_with_processes, METH_O,
	 "with_processes(named)\n--\n\nOne trace of this one and of processes that its process started: pairs of a name and a trace. "
	 "Memory of theirs is left out."},
	{"export_chrome_trace", (PyCFunction)(void (*)(void))trace_export_chrome_trace, METH_VARARGS | METH_KEYWORDS,
	 "export_chrome_trace(path, *, compression_level=4, call_stacks=False, forward_backward=True)\n--\n\nWrites the trace as Chrome JSON, compressed "
	 "when the path ends in .gz; with the Python functions around each event as text, if asked."},
	{"export_pftrace", (PyCFunction)(void (*)(void))trace_export_pftrace, METH_VARARGS | METH_KEYWORDS,
	 "export_pftrace(path, *, compression_level=4)\n--\n\nWrites the trace in Perfetto's own format, compressed when the "
	 "path ends in .gz."},
	{"check", trace_check, METH_NOARGS, "Checks every invariant of the trace; ValueError names the first one broken."},
	{"rows", trace_rows, METH_NOARGS,
	 "Every event as (place in its file, category, name, start_ns, end_ns), also those that tables leave out."},
	{"notes", trace_notes, METH_NOARGS,
	 "What was not as it should be in the file that this was read from: (what, how often, byte of the first)."},
	{"diagnostics", trace_diagnostics, METH_NOARGS,
	 "Why figures differ from what happened, as dicts with kind, message, count and byte (of the first)."},
	{"rank", trace_rank, METH_O, "rank(path) -> int | None\n\nThe rank that the trace states, or else the path of its file."},
	{"is_complete", trace_is_complete, METH_NOARGS, "Whether no record was lost, and the file does not end early."},
	{"__arrow_c_schema__", ops_ext_trace_arrow_schema, METH_NOARGS, "The columns of the events, for Arrow."},
	{"__arrow_c_array__", (PyCFunction)(void (*)(void))ops_ext_trace_arrow_array, METH_VARARGS | METH_KEYWORDS,
	 "The events as one batch, for Arrow."},
	{"__arrow_c_stream__", (PyCFunction)(void (*)(void))ops_ext_trace_arrow_stream, METH_VARARGS | METH_KEYWORDS,
	 "The events as a stream of one batch, for Arrow."},
	{"table", (PyCFunction)(void (*)(void))ops_ext_trace_table, METH_VARARGS | METH_KEYWORDS,
	 "table(table, columns=None)\n--\n\nA table that queries ask, as Arrow's capsules of schema and array, with all columns or those "
	 "with the given names."},
	{"columns", ops_ext_trace_columns, METH_NOARGS,
	 "The events by column: name to (numpy's type, values, valid bits or None, list of strings or None)."},
	{"views_json", ops_ext_trace_views_json, METH_VARARGS, "All views of the trace, by these rules, as the text of a JSON object."},
	{"advice_json", ops_ext_trace_advice_json, METH_VARARGS,
	 "What to change, as the text of a JSON object; in a job, with the traces of the other ranks."},
	{"advice_text", ops_ext_trace_advice_text, METH_VARARGS, "The same as text for people."},
	{"diff_json", ops_ext_trace_diff_json, METH_VARARGS, "What changed from this trace to another, likewise."},
	{"query", ops_ext_trace_query, METH_VARARGS, "The answer to a query by its id, with options as JSON: the text of a JSON object."},
	{"roofline", ops_ext_trace_roofline, METH_VARARGS,
	 "Operators against the roof, by operator (0), shape (1) or kernel (2): text, or that of a JSON object."},
	{"__reduce__", ops_ext_trace_reduce, METH_NOARGS, NULL},
	{"__setstate__", ops_ext_trace_setstate, METH_O, NULL},
	{"_unpack", ops_ext_trace_unpack, METH_VARARGS | METH_CLASS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyGetSetDef trace_getsets[] = {
	{"start_ns", get_number, NULL, "Start of the session, ns since the epoch.", (void *)'s'},
	{"stop_ns", get_number, NULL, "Its stop.", (void *)'e'},
	{"pid", get_number, NULL, "Process id.", (void *)'p'},
	{"lost", get_number, NULL, "Records that could not be kept.", (void *)'l'},
	{"has_memory", get_number, NULL, "Whether it has memory records.", (void *)'m'},
	{"device", get_device, NULL, "What torch calls the kind of device that something ran on, or None.", NULL},
	{"event_count", get_number, NULL, "Events, hidden ones included.", (void *)'n'},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot trace_slots[] = {
	{Py_tp_doc, "What a session recorded."},
	{Py_tp_traverse, trace_traverse},
	{Py_tp_clear, trace_clear},
	{Py_tp_dealloc, trace_dealloc},
	{Py_tp_methods, trace_methods},
	{Py_tp_getset, trace_getsets},
	{0, NULL},
};

static PyType_Spec trace_spec = {
	.name = "opstrobe._core.Trace",
	.basicsize = sizeof(struct trace_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = trace_slots,
};

int ops_ext_add_trace(PyObject *module)
{
	return ops_ext_add_type(module, &trace_spec, &ops_ext_state_of_module(module)->trace);
}
