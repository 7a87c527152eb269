/* SPDX-License-Identifier: Apache-2.0
 *
 * MemoryTimeline: the memory timeline of a trace, computed once, for writing and inspection.
 */
#include "views.h"

#include <string.h>

#include <opstrobe/internal/write.h>

struct memory_object {
	PyObject_HEAD
	struct ops_memory_timeline *timeline;
};

static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"trace", NULL};
	struct ops_memory_timeline *timeline = NULL;
	struct ops_ext_state *state = PyType_GetModuleState(type);
	struct memory_object *self;
	struct ops_error error;
	enum ops_code code;
	PyObject *trace;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:MemoryTimeline", names, state->trace, &trace))
		return NULL;
	OPS_EXT_WITHOUT_GIL(code = ops_memory_timeline_new(((struct trace_object *)trace)->trace, &timeline, &error));
	if (code)
		return ops_ext_raise(&error);
	self = (struct memory_object *)type->tp_alloc(type, 0);
	if (!self) {
		ops_memory_timeline_free(timeline);
		return NULL;
	}
	self->timeline = timeline;
	return (PyObject *)self;
}

static void memory_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	ops_memory_timeline_free(((struct memory_object *)object)->timeline);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyObject *memory_export(PyObject *object, PyObject *args)
{
	const struct ops_memory_timeline *timeline = ((struct memory_object *)object)->timeline;
	const char *format;
	PyObject *path;
	int type, index;
	enum ops_memory_format as;
	struct ops_error error;
	enum ops_code code;

	if (!PyArg_ParseTuple(args, "O&sii:export", PyUnicode_FSConverter, &path, &format, &type, &index))
		return NULL;
	as = strcmp(format, "html") == 0 ? OPS_MEMORY_HTML : strcmp(format, "raw") == 0 ? OPS_MEMORY_RAW : OPS_MEMORY_JSON;
	const struct ops_memory_device device = {(uint8_t)type, (int16_t)index};
	OPS_EXT_WITHOUT_GIL(code = ops_write_memory_timeline(timeline, PyBytes_AS_STRING(path), as, device, &error));
	Py_DECREF(path);
	if (code)
		return ops_ext_raise(&error);
	Py_RETURN_NONE;
}

static PyObject *memory_peak(PyObject *object, PyObject *args)
{
	const struct ops_memory_timeline *timeline = ((struct memory_object *)object)->timeline;
	int type, index, json;
	Py_ssize_t top;
	struct ops_memory_peak peak;
	struct ops_error error;
	enum ops_code code;
	char *text;
	size_t size;

	if (!PyArg_ParseTuple(args, "iinp:peak", &type, &index, &top, &json))
		return NULL;
	const struct ops_memory_device device = {(uint8_t)type, (int16_t)index};
	OPS_EXT_WITHOUT_GIL(code = ops_memory_peak_of(timeline, device, &peak, &error));
	if (code)
		return ops_ext_raise(&error);
	const size_t rows = top > 0 ? (size_t)top : 0;
	OPS_EXT_WITHOUT_GIL(code = json ? ops_memory_peak_json(timeline, &peak, rows, &text, &size, &error)
	                                : ops_memory_peak_text(timeline, &peak, rows, 0, &text, &size, &error));
	ops_memory_peak_release(&peak);
	return ops_ext_result_text(code, text, size, &error);
}

/* Makes one key for each block. Returns NULL with an exception set. */
static PyObject *make_keys(const struct ops_memory_timeline *timeline, PyObject *make_key)
{
	PyObject *keys = PyList_New((Py_ssize_t)timeline->block_count);

	for (size_t i = 0; keys && i < timeline->block_count; i++) {
		const struct ops_memory_block *block = &timeline->blocks[i];
		PyObject *key = PyObject_CallFunction(make_key, "nKii", (Py_ssize_t)i, (unsigned long long)block->address,
		                                      (int)block->device_type, (int)block->device_index);
		if (key)
			PyList_SET_ITEM(keys, (Py_ssize_t)i, key);
		else
			Py_CLEAR(keys);
	}
	return keys;
}

static PyObject *memory_steps(PyObject *object, PyObject *args)
{
	const struct ops_memory_timeline *timeline = ((struct memory_object *)object)->timeline;
	PyObject *actions, *make_key, *keys, *steps;

	if (!PyArg_ParseTuple(args, "O!O:steps", &PyTuple_Type, &actions, &make_key))
		return NULL;
	if (PyTuple_GET_SIZE(actions) <= OPS_MEMORY_DESTROY)
		return PyErr_SetString(PyExc_ValueError, "steps() takes a tuple of five actions"), NULL;
	keys = make_keys(timeline, make_key);
	steps = keys ? PyTuple_New((Py_ssize_t)timeline->step_count) : NULL;
	for (size_t i = 0; steps && i < timeline->step_count; i++) {
		const struct ops_memory_step *step = &timeline->steps[i];
		PyObject *item = Py_BuildValue("(LO(Ok)L)", (long long)step->time_ns,
		                               PyTuple_GET_ITEM(actions, step->action),
		                               PyList_GET_ITEM(keys, (Py_ssize_t)step->block), (unsigned long)step->version,
		                               (long long)timeline->blocks[step->block].bytes);
		if (item)
			PyTuple_SET_ITEM(steps, (Py_ssize_t)i, item);
		else
			Py_CLEAR(steps);
	}
	Py_XDECREF(keys);
	return steps;
}

static PyObject *memory_categories(PyObject *object, PyObject *members)
{
	const struct ops_memory_timeline *timeline = ((struct memory_object *)object)->timeline;
	PyObject *categories = PyDict_New();

	for (size_t i = 0; categories && i < timeline->step_count; i++) {
		const struct ops_memory_step *step = &timeline->steps[i];
		uint32_t version = step->version + (step->action == OPS_MEMORY_INCREMENT_VERSION);
		PyObject *key, *member;

		if (step->action == OPS_MEMORY_DESTROY || step->next_category == OPS_MEMORY_UNKNOWN)
			continue;
		key = Py_BuildValue("(kk)", (unsigned long)step->block, (unsigned long)version);
		member = PyObject_GetAttrString(members, ops_memory_category_name(step->next_category));
		if (!key || !member || PyDict_SetItem(categories, key, member) < 0)
			Py_CLEAR(categories);
		Py_XDECREF(member);
		Py_XDECREF(key);
	}
	return categories;
}

static PyObject *memory_get_missing(PyObject *object, void *ignored)
{
	const struct ops_memory_timeline *timeline = ((struct memory_object *)object)->timeline;
	PyObject *texts = PyList_New(0);

	(void)ignored;
	for (unsigned gap = 1; texts && gap <= OPS_MEMORY_NO_ROLES; gap <<= 1) {
		PyObject *text = timeline->gaps & gap ? PyUnicode_FromString(ops_memory_gap_text(gap)) : Py_NewRef(Py_None);

		if (!text || (text != Py_None && PyList_Append(texts, text) < 0))
			Py_CLEAR(texts);
		Py_XDECREF(text);
	}
	return texts;
}

static PyMethodDef memory_methods[] = {
	{"export", memory_export, METH_VARARGS,
	 "export(path, format, device_type, device_index)\n--\n\nWrites one device's timeline: format \"html\", \"json\" or "
	 "\"raw\"; compressed when the path ends in .gz."},
	{"categories", memory_categories, METH_O,
	 "categories(members)\n--\n\nCategory by (number, version), each the attribute of `members` of its name."},
	{"peak", memory_peak, METH_VARARGS,
	 "peak(device_type, device_index, top, as_json)\n--\n\nWhat holds one device's memory when most is held."},
	{"steps", memory_steps, METH_VARARGS,
	 "steps(actions, make_key)\n--\n\nEvery change as (time, action, (key, version), bytes); `actions` by their number, keys "
	 "made by make_key(number, address, device_type, device_index)."},
	{0},
};

static PyGetSetDef memory_properties[] = {
	{"missing", memory_get_missing, NULL, "What cannot be determined, and which records are missing for it.", NULL},
	{0},
};

static PyType_Slot memory_slots[] = {
	{Py_tp_doc, "MemoryTimeline(trace)\n--\n\nWhat holds memory, over time."},
	{Py_tp_new, memory_new},
	{Py_tp_dealloc, memory_dealloc},
	{Py_tp_methods, memory_methods},
	{Py_tp_getset, memory_properties},
	{0, NULL},
};

static PyType_Spec memory_spec = {
	.name = "opstrobe._core.MemoryTimeline",
	.basicsize = sizeof(struct memory_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
	.slots = memory_slots,
};

int ops_ext_add_memory_view(PyObject *module)
{
	return ops_ext_add_type(module, &memory_spec, &ops_ext_state_of_module(module)->memory_timeline);
}
