/* SPDX-License-Identifier: Apache-2.0
 *
 * Pickling. A trace is pickled as its packed bytes, once in a dump, however many views of it there are; events and lists of
 * events are pickled as references to it. Averages only take along the events of their trace that give them their names. Numbers
 * are checked on loading: damaged bytes raise an exception and do not crash.
 */
#include "views.h"

#include <string.h>

#include <opstrobe/internal/pack.h>
#include <opstrobe/merge.h>

/* --- traces ------------------------------------------------------------------------------------------------------- */

PyObject *ops_ext_trace_reduce(PyObject *object, PyObject *unused)
{
	struct trace_object *self = (struct trace_object *)object;
	struct ops_error error;
	enum ops_code code;
	char *bytes;
	size_t size;
	PyObject *rebuild, *packed, *kept;

	(void)unused;
	OPS_EXT_WITHOUT_GIL(code = ops_trace_pack(self->trace, &bytes, &size, &error));
	if (code)
		return ops_ext_raise(&error);
	packed = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)size);
	ops_free(bytes);
	/* One after another, because an attribute lookup may clear an earlier exception. */
	rebuild = packed ? ops_ext_attribute((PyObject *)Py_TYPE(object), "_unpack") : NULL;
	/* Events with users' attributes are pickled as the state; loading restores them. */
	kept = !rebuild ? NULL : self->kept ? PyDict_Values(self->kept) : Py_NewRef(Py_None);
	if (kept)
		return Py_BuildValue("(N(N)N)", rebuild, packed, kept);
	Py_XDECREF(packed);
	Py_XDECREF(rebuild);
	return NULL;
}

PyObject *ops_ext_trace_setstate(PyObject *object, PyObject *kept)
{
	(void)object;
	(void)kept;
	Py_RETURN_NONE;
}

PyObject *ops_ext_trace_unpack(PyObject *type, PyObject *args)
{
	struct ops_ext_state *state = PyType_GetModuleState((PyTypeObject *)type);
	struct ops_trace *trace;
	struct ops_error error;
	enum ops_code code;
	const char *bytes;
	Py_ssize_t size;

	if (!state || !PyArg_ParseTuple(args, "y#:_unpack", &bytes, &size))
		return NULL;
	OPS_EXT_WITHOUT_GIL(code = ops_trace_unpack(bytes, (size_t)size, &trace, &error));
	return code ? ops_ext_raise(&error) : ops_ext_trace_make(state, trace);
}

/* --- checks ------------------------------------------------------------------------------------------------------- */

static bool ref_valid(const struct trace_object *trace, uint32_t ref)
{
	size_t memory_count;

	if (!(ref & OPS_MEMORY_REF))
		return ref < ops_trace_events(trace->trace)->count;
	ops_trace_memory(trace->trace, &memory_count);
	return (ref & ~OPS_MEMORY_REF) < memory_count;
}

static bool row_valid(const struct trace_object *trace, const struct ops_average *row)
{
	size_t strings = trace ? ops_trace_string_count(trace->trace) : 0;

	return row->key <= OPS_KEY_TOTAL && (trace || row->key == OPS_KEY_TOTAL) &&
	       (row->key == OPS_KEY_NAME ? row->name < strings : row->name == OPS_NONE || row->name < strings) &&
	       (row->overload == OPS_NONE || row->overload < strings) &&
	       (row->inputs == OPS_NONE || (trace && row->inputs < ops_trace_inputs_count(trace->trace))) &&
	       (row->first == OPS_NONE || (trace && ref_valid(trace, row->first)));
}

static int pickle_views_get_trace(struct ops_ext_state *state, PyObject *object, struct trace_object **ret_trace)
{
	if (object != Py_None && Py_TYPE(object) != state->trace) {
		PyErr_SetString(PyExc_TypeError, "not a trace");
		return -1;
	}
	*ret_trace = object == Py_None ? NULL : (struct trace_object *)object;
	return 0;
}

static PyObject *trace_or_none(struct trace_object *trace)
{
	return trace ? (PyObject *)trace : Py_None;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

PyObject *ops_ext_function_event_reduce(PyObject *object, PyObject *unused)
{
	struct function_event_object *self = (struct function_event_object *)object;
	PyObject *rebuild = ops_ext_attribute((PyObject *)Py_TYPE(object), "_rebuild");

	(void)unused;
	if (!rebuild)
		return NULL;
	return Py_BuildValue("(N(OIOO)O)", rebuild, self->trace, self->ref, self->use_device,
	                     self->with_flops ? Py_True : Py_False, self->dict ? self->dict : Py_None);
}

PyObject *ops_ext_function_event_rebuild(PyObject *type, PyObject *args)
{
	struct ops_ext_state *state = PyType_GetModuleState((PyTypeObject *)type);
	PyObject *object, *use_device;
	struct trace_object *trace;
	unsigned int ref;
	int with_flops;

	if (!state || !PyArg_ParseTuple(args, "OIOp:_rebuild", &object, &ref, &use_device, &with_flops) ||
	    pickle_views_get_trace(state, object, &trace) < 0)
		return NULL;
	if (!trace || !ref_valid(trace, ref))
		return PyErr_Format(PyExc_ValueError, "no event %u in this trace", ref);
	return ops_ext_function_event_new(state, trace, ref, use_device, with_flops);
}

/* --- averages ----------------------------------------------------------------------------------------------------- */

PyObject *ops_ext_function_event_avg_reduce(PyObject *object, PyObject *unused)
{
	struct function_event_avg_object *self = (struct function_event_avg_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	struct ops_average row = self->row;
	struct trace_object *trace = NULL;
	PyObject *rebuild, *dict = self->dict ? self->dict : Py_None, *reduced;

	(void)unused;
	if (!state)
		return NULL;
	if (self->empty)
		return Py_BuildValue("(O()O)", Py_TYPE(object), dict);
	if (self->trace && ops_ext_merge_rows(state, &self->trace, &row, 1, true, &trace) < 0)
		return NULL;
	rebuild = ops_ext_attribute((PyObject *)Py_TYPE(object), "_rebuild");
	reduced = rebuild ? Py_BuildValue("(N(Oy#OOOO)O)", rebuild, trace_or_none(trace), (const char *)&row,
	                                  (Py_ssize_t)sizeof(row), self->use_device,
	                                  self->by_input_shape ? Py_True : Py_False,
	                                  self->by_overload_name ? Py_True : Py_False,
	                                  self->with_flops ? Py_True : Py_False, dict)
	                  : NULL;
	Py_XDECREF(trace);
	return reduced;
}

PyObject *ops_ext_function_event_avg_rebuild(PyObject *type, PyObject *args)
{
	struct ops_ext_state *state = PyType_GetModuleState((PyTypeObject *)type);
	int by_input_shape, by_overload_name, with_flops;
	PyObject *object, *use_device;
	struct trace_object *trace;
	struct ops_average row;
	const char *bytes;
	Py_ssize_t size;

	if (!state ||
	    !PyArg_ParseTuple(args, "Oy#Oppp:_rebuild", &object, &bytes, &size, &use_device, &by_input_shape, &by_overload_name,
	                      &with_flops) ||
	    pickle_views_get_trace(state, object, &trace) < 0)
		return NULL;
	if (size == sizeof(row))
		memcpy(&row, bytes, sizeof(row));
	if (size != sizeof(row) || !row_valid(trace, &row))
		return PyErr_Format(PyExc_ValueError, "a damaged average");
	return ops_ext_function_event_avg_new(state, trace, &row, use_device, by_input_shape, by_overload_name,
	                                      with_flops);
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* How to read the remaining arguments of EventList._rebuild. */
enum pickled_list { PICKLED_EVENTS = LIST_EVENTS, PICKLED_AVERAGES = LIST_AVERAGES, PICKLED_ITEMS = LIST_ITEMS };

static PyObject *reduced_list(struct event_list_object *self, enum pickled_list kind, PyObject *what,
                              const void *numbers, size_t size)
{
	PyObject *rebuild = ops_ext_attribute((PyObject *)Py_TYPE(self), "_rebuild");

	if (!rebuild)
		return NULL;
	return Py_BuildValue("(N(iOy#OiiOO))", rebuild, (int)kind, what, size ? (const char *)numbers : "",
	                     (Py_ssize_t)size, self->options.use_device, self->options.profile_memory,
	                     self->options.with_flops, self->by_input_shape ? Py_True : Py_False,
	                     self->by_overload_name ? Py_True : Py_False);
}

PyObject *ops_ext_event_list_reduce(PyObject *object, PyObject *unused)
{
	struct event_list_object *self = (struct event_list_object *)object;
	struct ops_ext_state *state = ops_ext_state_of(object);
	struct trace_object **traces, *trace = NULL;
	struct ops_average *rows;
	PyObject *reduced = NULL;

	(void)unused;
	if (!state || ops_ext_event_list_compact(self) < 0)
		return NULL;
	if (self->kind == LIST_ITEMS)
		return reduced_list(self, PICKLED_ITEMS, self->items, NULL, 0);
	if (self->kind == LIST_EVENTS)
		return reduced_list(self, PICKLED_EVENTS, trace_or_none(self->trace), self->refs,
		                    self->count * sizeof(*self->refs));
	rows = PyMem_New(struct ops_average, self->count);
	traces = PyMem_New(struct trace_object *, self->count);
	if (rows && traces) {
		for (size_t i = 0; i < self->count; i++) {
			rows[i] = self->rows[i];
			traces[i] = self->trace;
		}
		if (ops_ext_merge_rows(state, traces, rows, self->count, true, &trace) == 0)
			reduced = reduced_list(self, PICKLED_AVERAGES, trace_or_none(trace), rows,
			                       self->count * sizeof(*rows));
	} else {
		PyErr_NoMemory();
	}
	Py_XDECREF(trace);
	PyMem_Free(traces);
	PyMem_Free(rows);
	return reduced;
}

static PyObject *rebuild_events(struct ops_ext_state *state, struct trace_object *trace,
                                const struct view_options *options, const char *bytes, size_t size)
{
	size_t count = size / sizeof(uint32_t);
	uint32_t *refs = PyMem_New(uint32_t, count);

	if (!refs)
		return PyErr_NoMemory();
	memcpy(refs, bytes, count * sizeof(*refs));
	for (size_t i = 0; i < count; i++) {
		if (!trace || !ref_valid(trace, refs[i])) {
			PyMem_Free(refs);
			return PyErr_Format(PyExc_ValueError, "a damaged list of events");
		}
	}
	return ops_ext_event_list_of_refs(state, trace, options, refs, count);
}

static PyObject *rebuild_averages(struct ops_ext_state *state, struct trace_object *trace,
                                  const struct view_options *options, const char *bytes, size_t size, bool by_input_shape,
                                  bool by_overload_name)
{
	struct ops_average row;
	PyObject *items = PyList_New(0);

	for (size_t at = 0; items && at + sizeof(row) <= size; at += sizeof(row)) {
		PyObject *item = NULL;

		memcpy(&row, bytes + at, sizeof(row));
		if (row_valid(trace, &row))
			item = ops_ext_function_event_avg_new(state, trace, &row, options->use_device, by_input_shape,
			                                      by_overload_name, options->with_flops);
		else
			PyErr_SetString(PyExc_ValueError, "a damaged list of averages");
		if (!item || PyList_Append(items, item) < 0)
			Py_CLEAR(items);
		Py_XDECREF(item);
	}
	return items ? ops_ext_event_list_of_items(state, options, items) : NULL;
}

PyObject *ops_ext_event_list_rebuild(PyObject *type, PyObject *args)
{
	struct ops_ext_state *state = PyType_GetModuleState((PyTypeObject *)type);
	int kind, profile_memory, with_flops, by_input_shape, by_overload_name;
	struct view_options options;
	struct trace_object *trace;
	PyObject *what;
	const char *bytes;
	Py_ssize_t size;

	if (!state || !PyArg_ParseTuple(args, "iOy#Oiipp:_rebuild", &kind, &what, &bytes, &size, &options.use_device,
	                                &profile_memory, &with_flops, &by_input_shape, &by_overload_name))
		return NULL;
	options.profile_memory = (char)profile_memory;
	options.with_flops = (char)with_flops;
	if (kind == PICKLED_ITEMS)
		return ops_ext_event_list_of(state, what, &options);
	if (pickle_views_get_trace(state, what, &trace) < 0)
		return NULL;
	if (kind == PICKLED_EVENTS)
		return rebuild_events(state, trace, &options, bytes, (size_t)size);
	return rebuild_averages(state, trace, &options, bytes, (size_t)size, by_input_shape, by_overload_name);
}
