/* SPDX-License-Identifier: Apache-2.0
 *
 * ModuleSummary: the modules of a trace, as text and as data; the result of prof.module_summary().
 */
#include "views.h"

#include <opstrobe/internal/modules.h>

struct summary_object {
	PyObject_HEAD
	struct trace_object *trace; /* the tree borrows its trace */
	struct ops_module_tree *tree;
};

static PyObject *summary_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"trace", NULL};
	struct ops_ext_state *state = PyType_GetModuleState(type);
	struct summary_object *self;
	PyObject *trace;
	struct ops_error error;
	enum ops_code code;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:ModuleSummary", keywords, state->trace, &trace))
		return NULL;
	self = (struct summary_object *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->trace = (struct trace_object *)Py_NewRef(trace);
	OPS_EXT_WITHOUT_GIL(code = ops_module_tree_new(self->trace->trace, &self->tree, &error));
	if (code) {
		Py_DECREF(self);
		return ops_ext_raise(&error);
	}
	return (PyObject *)self;
}

static void summary_dealloc(PyObject *object)
{
	struct summary_object *self = (struct summary_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	ops_module_tree_free(self->tree);
	Py_XDECREF(self->trace);
	type->tp_free(object);
	Py_DECREF(type);
}

/* --- text ----------------------------------------------------------------------------------------------------------- */

static PyObject *module_summary_text_of(struct summary_object *self, const struct ops_module_text_options *options)
{
	struct ops_error error;
	enum ops_code code;
	size_t size;
	char *text;

	OPS_EXT_WITHOUT_GIL(code = ops_module_text(self->tree, options, &text, &size, &error));
	return ops_ext_result_text(code, text, size, &error);
}

static PyObject *summary_str(PyObject *self)
{
	return module_summary_text_of((struct summary_object *)self, NULL);
}

static PyObject *summary_table(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"depth", "sort_by", "by_class", NULL};
	struct ops_module_text_options options = {0};
	PyObject *depth = Py_None;
	int by_class = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Ozp:table", keywords, &depth, &options.sort_by, &by_class))
		return NULL;
	options.by_class = by_class;
	if (depth != Py_None) {
		long levels = PyLong_AsLong(depth);

		if (levels == -1 && PyErr_Occurred())
			return NULL;
		if (levels < 1)
			return PyErr_SetString(PyExc_ValueError, "depth must be positive"), NULL;
		options.max_depth = levels > INT32_MAX ? 0 : (uint32_t)levels;
	}
	return module_summary_text_of((struct summary_object *)self, &options);
}

/* --- data ----------------------------------------------------------------------------------------------------------- */

/* Steals the value, which is NULL with an exception set on an earlier failure. Returns 0, or -1. */
static int module_summary_put(PyObject *dict, const char *key, PyObject *take_value)
{
	int failed = take_value ? PyDict_SetItemString(dict, key, take_value) : -1;

	Py_XDECREF(take_value);
	return failed;
}

static int module_summary_put_number(PyObject *dict, const char *key, int64_t value)
{
	return module_summary_put(dict, key, PyLong_FromLongLong(value));
}

static int put_metrics(PyObject *dict, const struct ops_module_row *row)
{
#define PUT_METRIC(name, text) \
	if (module_summary_put_number(dict, text, row->total[OPS_MODULE_##name]) < 0 || \
	    module_summary_put_number(dict, "self_" text, row->self[OPS_MODULE_##name]) < 0) \
		return -1;
	OPS_MODULE_METRICS(PUT_METRIC)
#undef PUT_METRIC
	return 0;
}

/* Returns the additional paths of a module. */
static PyObject *aliases_of(const struct ops_trace *trace, uint32_t module)
{
	PyObject *list = PyList_New(0);
	size_t count;
	const struct ops_module_alias *aliases = ops_trace_module_aliases(trace, &count);
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (aliases[middle].module < module)
			low = middle + 1;
		else
			high = middle;
	}
	for (; list && low < count && aliases[low].module == module; low++) {
		struct ops_string path = ops_trace_string(trace, aliases[low].path);
		PyObject *text = ops_ext_text(path.bytes, path.size);

		if (!text || PyList_Append(list, text) < 0)
			Py_CLEAR(list);
		Py_XDECREF(text);
	}
	return list;
}

/* Adds the members that only modules have, and not classes. Returns 0, or -1 with an exception set. */
static int put_module(PyObject *dict, const struct summary_object *self, const struct ops_module_row *row)
{
	const struct ops_trace *trace = self->trace->trace;
	size_t count;
	const struct ops_module *modules = ops_trace_modules(trace, &count);
	const struct ops_module *module = row->module == OPS_NONE ? NULL : &modules[row->module];

	if (module_summary_put(dict, "name", ops_ext_text(row->name.bytes, row->name.size)) < 0 ||
	    module_summary_put(dict, "path", ops_ext_text(row->path.bytes, row->path.size)) < 0 ||
	    module_summary_put(dict, "parent",
	                       row->parent == OPS_NONE ? Py_NewRef(Py_None) : PyLong_FromUnsignedLong(row->parent)) < 0 ||
	    module_summary_put_number(dict, "depth", row->depth) < 0 ||
	    module_summary_put_number(dict, "parameters", (int64_t)row->parameter_count) < 0 ||
	    module_summary_put_number(dict, "parameter_bytes", (int64_t)row->parameter_bytes) < 0 ||
	    module_summary_put_number(dict, "own_parameters", module ? (int64_t)module->own_parameter_count : 0) < 0 ||
	    module_summary_put_number(dict, "own_parameter_bytes", module ? (int64_t)module->own_parameter_bytes : 0) < 0)
		return -1;
	return module_summary_put(dict, "aliases", module ? aliases_of(trace, row->module) : PyList_New(0));
}

static PyObject *row_dict(const struct summary_object *self, const struct ops_module_row *row, bool is_class)
{
	PyObject *dict = PyDict_New();

	if (!dict)
		return NULL;
	if ((!is_class && put_module(dict, self, row) < 0) ||
	    module_summary_put(dict, "class", ops_ext_text(row->class_name.bytes, row->class_name.size)) < 0 ||
	    (is_class && module_summary_put_number(dict, "modules", row->modules) < 0) ||
	    module_summary_put_number(dict, "calls", (int64_t)row->calls) < 0 || put_metrics(dict, row) < 0 ||
	    module_summary_put_number(dict, "cpu_peak_bytes", row->cpu_peak_bytes) < 0 ||
	    module_summary_put_number(dict, "device_peak_bytes", row->device_peak_bytes) < 0)
		Py_CLEAR(dict);
	return dict;
}

static PyObject *summary_rows(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"by_class", NULL};
	struct summary_object *self = (struct summary_object *)object;
	const struct ops_module_row *rows;
	PyObject *list;
	int by_class = 0;
	size_t count;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|p:rows", keywords, &by_class))
		return NULL;
	rows = by_class ? ops_module_tree_classes(self->tree, &count) : ops_module_tree_rows(self->tree, &count);
	list = PyList_New((Py_ssize_t)count);
	for (size_t i = 0; list && i < count; i++) {
		PyObject *dict = row_dict(self, &rows[i], by_class);

		if (dict)
			PyList_SET_ITEM(list, (Py_ssize_t)i, dict);
		else
			Py_CLEAR(list);
	}
	return list;
}

/* Adds each row's dict to the "children" of its parent, and the roots to `roots`. Returns 0, or -1 with an exception set. */
static int module_summary_nest(PyObject *dicts, PyObject *roots, const struct ops_module_row *rows)
{
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(dicts); i++) {
		PyObject *dict = PyList_GET_ITEM(dicts, i);
		PyObject *siblings = roots;

		if (module_summary_put(dict, "children", PyList_New(0)) < 0)
			return -1;
		if (rows[i].parent != OPS_NONE)
			siblings = PyDict_GetItemString(PyList_GET_ITEM(dicts, rows[i].parent), "children");
		if (!siblings || PyList_Append(siblings, dict) < 0)
			return -1;
	}
	return 0;
}

static PyObject *summary_tree(PyObject *object, PyObject *ignored)
{
	struct summary_object *self = (struct summary_object *)object;
	size_t count;
	const struct ops_module_row *rows = ops_module_tree_rows(self->tree, &count);
	PyObject *none = PyTuple_New(0);
	PyObject *dicts = none ? summary_rows(object, none, NULL) : NULL;
	PyObject *roots = dicts ? PyList_New(0) : NULL;

	(void)ignored;
	if (roots && module_summary_nest(dicts, roots, rows) < 0)
		Py_CLEAR(roots);
	Py_XDECREF(none);
	Py_XDECREF(dicts);
	return roots;
}

static PyObject *summary_repr(PyObject *object)
{
	struct summary_object *self = (struct summary_object *)object;
	size_t rows, calls;

	ops_module_tree_rows(self->tree, &rows);
	ops_module_tree_calls(self->tree, &calls);
	return PyUnicode_FromFormat("<ModuleSummary of %zu modules, %zu calls>", rows, calls);
}

/* --- type ----------------------------------------------------------------------------------------------------------- */

static PyMethodDef summary_methods[] = {
	{"table", (PyCFunction)(void (*)(void))summary_table, METH_VARARGS | METH_KEYWORDS,
	 "table(depth=None, sort_by=None, by_class=False)\n--\n\n"
	 "The modules as text, those that a module holds indented below it. `depth` levels are shown; `sort_by` is a key of\n"
	 "rows() whose values are numbers; with `by_class` a line is a class."},
	{"rows", (PyCFunction)(void (*)(void))summary_rows, METH_VARARGS | METH_KEYWORDS,
	 "rows(by_class=False)\n--\n\n"
	 "A list of dicts, one a module, or a class. \"parent\" is the place in the list of what holds a module."},
	{"tree", summary_tree, METH_NOARGS,
	 "tree()\n--\n\nThe roots as a list of dicts as in rows(), each with those that it holds as \"children\"."},
	{0},
};

static PyType_Slot summary_slots[] = {
	{Py_tp_doc, "ModuleSummary(trace)\n--\n\n"
		    "Where the time, the FLOPs and the memory of a trace went, by module. str() of it is the table."},
	{Py_tp_new, summary_new},
	{Py_tp_dealloc, summary_dealloc},
	{Py_tp_str, summary_str},
	{Py_tp_repr, summary_repr},
	{Py_tp_methods, summary_methods},
	{0, NULL},
};

static PyType_Spec summary_spec = {
	.name = "opstrobe._core.ModuleSummary",
	.basicsize = sizeof(struct summary_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = summary_slots,
};

int ops_ext_add_module_summary(PyObject *module)
{
	return ops_ext_add_type(module, &summary_spec, &ops_ext_state_of_module(module)->module_summary);
}
