/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of functions, and which of their calls are recorded; see python_functions.h.
 */
#include "ext.h"
#include "module_calls.h"
#include "path_prefixes.h"
#include "python_functions.h"

#include <fnmatch.h>
#include <string.h>

#include <opstrobe/internal/program.h>
#include <opstrobe/internal/recording.h>

/* --- table ---------------------------------------------------------------------------------------------------------- */

static void python_functions_put(struct ops_python_functions *functions, struct ops_python_function *function)
{
	size_t at = ops_python_hash(function->key, function->key_type);

	while (functions->slots[at & (functions->slot_count - 1)])
		at++;
	functions->slots[at & (functions->slot_count - 1)] = function;
}

/* Makes room for one more; at most a quarter of the slots are in use. */
static bool reserve(struct ops_python_functions *functions)
{
	size_t capacity = functions->capacity ? functions->capacity * 2 : 512;
	struct ops_python_function **list, **slots;

	if (functions->count < functions->capacity)
		return true;
	list = PyMem_RawRealloc(functions->list, capacity * sizeof(*list));
	if (!list)
		return false;
	functions->list = list;
	slots = PyMem_RawCalloc(capacity * 4, sizeof(*slots));
	if (!slots)
		return false;
	PyMem_RawFree(functions->slots);
	functions->slots = slots;
	functions->slot_count = capacity * 4;
	functions->capacity = capacity;
	for (size_t i = 0; i < functions->count; i++)
		python_functions_put(functions, functions->list[i]);
	return true;
}

static void note_function(const struct ops_python_functions *functions, const struct ops_python_function *function);

/* Steals the reference to `take_name`; NULL: out of memory. */
static struct ops_python_function *python_functions_add(struct ops_python_functions *functions,
                                                        struct ops_python_function values, PyObject *take_name)
{
	struct ops_python_function *function = take_name && reserve(functions) ? PyMem_RawMalloc(sizeof(*function)) : NULL;

	if (!function) {
		Py_XDECREF(take_name);
		return NULL;
	}
	*function = values;
	function->name = take_name;
	Py_XINCREF(function->owner);
	functions->list[functions->count++] = function;
	function->number = (uint32_t)functions->count;
	python_functions_put(functions, function);
	if (ops_session_wants_notes())
		note_function(functions, function);
	return function;
}

void ops_python_forget(struct ops_python_functions *functions)
{
	struct ops_python_functions old = *functions;

	memset(functions, 0, sizeof(*functions)); /* dropping references may run Python code */
	for (size_t i = 0; i < old.count; i++) {
		Py_XDECREF(old.list[i]->owner);
		Py_XDECREF(old.list[i]->name);
		PyMem_RawFree(old.list[i]);
	}
	PyMem_RawFree(old.list);
	PyMem_RawFree(old.slots);
	Py_XDECREF(old.nested);
	Py_XDECREF(old.filter.path_prefixes);
	Py_XDECREF(old.filter.include);
	Py_XDECREF(old.filter.exclude);
	Py_XDECREF(old.filter.hide);
}

/* --- rules ---------------------------------------------------------------------------------------------------------- */

/* Returns the bytes of a text; "" if it is not a text. */
static const char *python_functions_text_of(PyObject *text)
{
	const char *bytes = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : NULL;

	if (!bytes)
		PyErr_Clear();
	return bytes ? bytes : "";
}

static bool python_functions_matches(PyObject *patterns, const char *path)
{
	for (Py_ssize_t i = 0; patterns && i < PyTuple_GET_SIZE(patterns); i++) {
		const char *pattern = python_functions_text_of(PyTuple_GET_ITEM(patterns, i));

		if (strpbrk(pattern, "*?[") ? fnmatch(pattern, path, 0) == 0 : strncmp(pattern, path, strlen(pattern)) == 0)
			return true;
	}
	return false;
}

static bool python_functions_ends_with(const char *text, const char *end)
{
	size_t size = strlen(text), end_size = strlen(end);

	return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* Torch's record_function begins its range within __enter__ and ends it within __exit__: these calls would overlap the range in
 * part. */
static bool is_range_method(const char *path, const char *name)
{
	return python_functions_ends_with(path, "torch/autograd/profiler.py") &&
	       (!strcmp(name, "__enter__") || !strcmp(name, "__exit__"));
}

/* Returns whether it is the function of importlib that the interpreter calls for a module that is not loaded. */
static bool is_import(const char *path, const char *name)
{
	return strcmp(path, "<frozen importlib._bootstrap>") == 0 && strcmp(name, "_find_and_load") == 0;
}

static enum ops_python_rule rule_of_code(const struct ops_python_filter *filter, PyCodeObject *code)
{
	const char *path = python_functions_text_of(code->co_filename);

	if (is_range_method(path, python_functions_text_of(code->co_name)) || python_functions_matches(filter->hide, path))
		return OPS_PYTHON_HIDE;
	if (filter->fold_imports && is_import(path, python_functions_text_of(code->co_name)))
		return OPS_PYTHON_IMPORT;
	if ((PyObject *)code == ops_ext_module_code())
		return OPS_PYTHON_SKIP; /* it is represented by another row */
	if (python_functions_matches(filter->exclude, path) ||
	    (filter->include && PyTuple_GET_SIZE(filter->include) && !python_functions_matches(filter->include, path)))
		return OPS_PYTHON_SKIP;
	return OPS_PYTHON_RECORD;
}

static bool is_library(PyCodeObject *code)
{
	const char *path = python_functions_text_of(code->co_filename);

	return ops_file_is_library((struct ops_string){path, strlen(path)});
}

/* Ranges, ours and torch's fast ones, and the profiler itself. */
static enum ops_python_rule rule_of_type(const PyTypeObject *type)
{
	if (type && (strncmp(type->tp_name, "opstrobe.", 9) == 0 || strstr(type->tp_name, "RecordFunctionFast")))
		return OPS_PYTHON_SKIP;
	return OPS_PYTHON_RECORD;
}

/* --- names ---------------------------------------------------------------------------------------------------------- */

#if PY_VERSION_HEX >= 0x030b0000
static PyObject *qualified_name(struct ops_python_functions *functions, PyCodeObject *code, ops_frame *frame)
{
	(void)functions, (void)frame;
	return Py_NewRef(code->co_qualname);
}
#else
/* Returns whether an attribute of a class was made of this code: it is a function, a property or the like. */
static bool is_made_of(PyObject *attribute, PyCodeObject *code)
{
	if (PyFunction_Check(attribute))
		return PyFunction_GET_CODE(attribute) == (PyObject *)code;
	if (Py_IS_TYPE(attribute, &PyProperty_Type)) {
		PyObject *getter = PyObject_GetAttrString(attribute, "fget");
		bool same = getter && PyFunction_Check(getter) && PyFunction_GET_CODE(getter) == (PyObject *)code;

		Py_XDECREF(getter);
		return same;
	}
	if (Py_IS_TYPE(attribute, &PyStaticMethod_Type) || Py_IS_TYPE(attribute, &PyClassMethod_Type)) {
		PyObject *function = PyObject_GetAttrString(attribute, "__func__");
		bool same = function && PyFunction_Check(function) && PyFunction_GET_CODE(function) == (PyObject *)code;

		Py_XDECREF(function);
		return same;
	}
	return false;
}

/* Before 3.11, code has no qualified name, but the name follows the code among the constants of the code that creates the
 * function. That code is held, and so is the code in it. */
static void note_nested(struct ops_python_functions *functions, PyCodeObject *code)
{
	if (!functions->nested && !(functions->nested = PyDict_New()))
		return;
	for (Py_ssize_t i = 0; i + 1 < PyTuple_GET_SIZE(code->co_consts); i++) {
		PyObject *made = PyTuple_GET_ITEM(code->co_consts, i), *name = PyTuple_GET_ITEM(code->co_consts, i + 1);
		PyObject *key = PyCode_Check(made) && PyUnicode_Check(name) ? PyLong_FromVoidPtr(made) : NULL;

		if (key && PyUnicode_Tailmatch(name, ((PyCodeObject *)made)->co_name, 0, PY_SSIZE_T_MAX, 1) == 1)
			PyDict_SetItem(functions->nested, key, name);
		Py_XDECREF(key);
	}
}

/* Returns a new reference if the code that contains this one is known, else NULL. */
static PyObject *nested_name(const struct ops_python_functions *functions, PyCodeObject *code)
{
	PyObject *key = functions->nested ? PyLong_FromVoidPtr(code) : NULL;
	PyObject *name = key ? PyDict_GetItemWithError(functions->nested, key) : NULL;

	Py_XDECREF(key);
	Py_XINCREF(name);
	return name;
}

/* Finds a method's class through its first argument. */
static PyObject *method_name(PyCodeObject *code, ops_frame *frame)
{
	PyObject *first = frame && code->co_argcount > 0 ? frame->f_localsplus[0] : NULL;
	PyTypeObject *type = NULL;

	if (first && PyCell_Check(first))
		first = PyCell_GET(first);
	if (first)
		type = PyType_Check(first) ? (PyTypeObject *)first : Py_TYPE(first);
	for (Py_ssize_t i = 0; type && type->tp_mro && i < PyTuple_GET_SIZE(type->tp_mro); i++) {
		PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(type->tp_mro, i);
		PyObject *attribute = base->tp_dict ? PyDict_GetItemWithError(base->tp_dict, code->co_name) : NULL;

		if (attribute && PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) && is_made_of(attribute, code))
			return PyUnicode_FromFormat("%U.%U", ((PyHeapTypeObject *)base)->ht_qualname, code->co_name);
	}
	return NULL;
}

static PyObject *qualified_name(struct ops_python_functions *functions, PyCodeObject *code, ops_frame *frame)
{
	PyObject *name = nested_name(functions, code);

	if (!name)
		name = method_name(code, frame);
	note_nested(functions, code);
	PyErr_Clear();
	return name ? name : Py_NewRef(code->co_name);
}
#endif

struct ops_python_function *ops_python_add_code(struct ops_python_functions *functions, PyCodeObject *code,
                                                ops_frame *frame)
{
	struct ops_python_function values = {
		.key = code,
		.owner = (PyObject *)code,
		.rule = rule_of_code(&functions->filter, code),
		.is_library = functions->filter.find_libraries && is_library(code),
	};
	struct ops_python_function *function = python_functions_add(functions, values, qualified_name(functions, code, frame));

	PyErr_Clear();
	return function;
}

/* Returns whether `self` is not an object of the program, as for functions of modules and those made by pybind11. */
static bool is_binding(PyTypeObject *type)
{
	return PyType_IsSubtype(type, &PyModule_Type) || strcmp(type->tp_name, "PyCapsule") == 0 || strncmp(type->tp_name, "pybind11_", 9) == 0;
}

struct ops_python_function *ops_python_add_method(struct ops_python_functions *functions, const PyMethodDef *method,
                                                  PyTypeObject *type)
{
	struct ops_python_function values = {
		.key = method,
		.key_type = type,
		.owner = (PyObject *)type,
		.rule = rule_of_type(type),
	};
	PyObject *name = type && !is_binding(type)
		? PyUnicode_FromFormat("<built-in method %s of %s>", method->ml_name, type->tp_name)
		: PyUnicode_FromFormat("<built-in function %s>", method->ml_name);
	struct ops_python_function *function = python_functions_add(functions, values, name);

	PyErr_Clear();
	return function;
}

struct ops_python_function *ops_python_add_other(struct ops_python_functions *functions, const void *key,
                                                 const char *name)
{
	struct ops_python_function values = {.key = key};
	struct ops_python_function *function = python_functions_add(functions, values, PyUnicode_FromString(name));

	PyErr_Clear();
	return function;
}

struct ops_python_function *ops_python_import_of(struct ops_python_functions *functions, PyObject *module)
{
	PyObject *key = PyUnicode_FromObject(module);
	struct ops_python_function *function = NULL;

	if (key) {
		PyUnicode_InternInPlace(&key); /* one object for each name */
		function = ops_python_find(functions, key, NULL);
		if (!function)
			function = python_functions_add(functions, (struct ops_python_function){.key = key, .owner = key},
			                                PyUnicode_FromFormat("import %U", key));
		Py_DECREF(key);
	}
	PyErr_Clear();
	return function;
}

/* --- output --------------------------------------------------------------------------------------------------------- */

/* Returns the path without its longest prefix; a new reference. */
static PyObject *shortened(const struct ops_python_filter *filter, PyObject *path)
{
	for (Py_ssize_t i = 0; filter->path_prefixes && i < PyTuple_GET_SIZE(filter->path_prefixes); i++) {
		PyObject *prefix = PyTuple_GET_ITEM(filter->path_prefixes, i);

		if (PyUnicode_Tailmatch(path, prefix, 0, PY_SSIZE_T_MAX, -1) == 1)
			return PyUnicode_Substring(path, PyUnicode_GET_LENGTH(prefix), PY_SSIZE_T_MAX);
	}
	return Py_NewRef(path);
}

/* Returns the path without parts such as ".."; a new reference. */
static PyObject *normalized(PyObject *path)
{
	const char *text = python_functions_text_of(path);
	PyObject *bytes, *result;

	if (text[0] != '/' || !strstr(text, "/."))
		return Py_NewRef(path);
	bytes = PyBytes_FromString(text);
	result = bytes ? PyUnicode_FromStringAndSize(PyBytes_AS_STRING(bytes), (Py_ssize_t)ops_path_normalize(PyBytes_AS_STRING(bytes))) : NULL;
	Py_XDECREF(bytes);
	return result;
}

/* Adds the function to a recording or, if that is NULL, to the file of the session. */
static bool add_recorded_function(struct ops_recording *recording, uint32_t number, const struct ops_recorded_function *described)
{
	if (recording)
		return ops_recording_add_function(recording, described);
	ops_session_note_function(number, described);
	return true;
}

static bool add_code_function(const struct ops_python_functions *functions, const struct ops_python_function *function,
                      struct ops_recording *recording)
{
	PyCodeObject *code = (PyCodeObject *)function->owner;
	PyObject *file = normalized(code->co_filename);
	PyObject *path = file ? shortened(&functions->filter, file) : NULL;
	PyObject *row = path ? PyUnicode_FromFormat("%U(%d): %U", path, code->co_firstlineno, function->name) : NULL;
	PyObject *row_bytes = row ? ops_ext_text_bytes(row) : NULL;
	PyObject *name_bytes = row_bytes ? ops_ext_text_bytes(function->name) : NULL;
	PyObject *file_bytes = name_bytes ? ops_ext_text_bytes(file) : NULL;
	bool given = file_bytes && add_recorded_function(recording, function->number, &(struct ops_recorded_function){
		.row_name = PyBytes_AS_STRING(row_bytes),
		.row_name_bytes = (size_t)PyBytes_GET_SIZE(row_bytes),
		.name = PyBytes_AS_STRING(name_bytes),
		.name_bytes = (size_t)PyBytes_GET_SIZE(name_bytes),
		.file = PyBytes_AS_STRING(file_bytes),
		.file_bytes = (size_t)PyBytes_GET_SIZE(file_bytes),
		.line = code->co_firstlineno > 0 ? (uint32_t)code->co_firstlineno : 0,
	});

	Py_XDECREF(file);
	Py_XDECREF(path);
	Py_XDECREF(row);
	Py_XDECREF(row_bytes);
	Py_XDECREF(name_bytes);
	Py_XDECREF(file_bytes);
	return given;
}

/* A function that is neither Python nor C ("Python GC") is a row without a function. */
static bool add_other_function(const struct ops_python_function *function, struct ops_recording *recording)
{
	PyObject *bytes = ops_ext_text_bytes(function->name);
	struct ops_recorded_function given = {0};
	bool ok;

	if (!bytes)
		return false;
	given.row_name = PyBytes_AS_STRING(bytes);
	given.row_name_bytes = (size_t)PyBytes_GET_SIZE(bytes);
	if (given.row_name[0] == '<') {
		given.name = given.row_name;
		given.name_bytes = given.row_name_bytes;
	}
	ok = add_recorded_function(recording, function->number, &given);
	Py_DECREF(bytes);
	return ok;
}

static bool add_python_function(const struct ops_python_functions *functions, const struct ops_python_function *function,
                          struct ops_recording *recording)
{
	bool is_code = function->owner && PyCode_Check(function->owner);

	return is_code ? add_code_function(functions, function, recording) : add_other_function(function, recording);
}

/* The numbers of later functions depend on it, even if there is no memory for its name. */
static void note_function(const struct ops_python_functions *functions, const struct ops_python_function *function)
{
	PyObject *type, *error, *traceback;

	PyErr_Fetch(&type, &error, &traceback);
	if (!add_python_function(functions, function, NULL))
		ops_session_note_function(function->number, &(struct ops_recorded_function){.row_name = ""});
	PyErr_Clear();
	PyErr_Restore(type, error, traceback);
}

bool ops_python_add_functions(const struct ops_python_functions *functions, struct ops_recording *recording)
{
	for (size_t i = 0; i < functions->count; i++) {
		if (!add_python_function(functions, functions->list[i], recording)) {
			PyErr_Clear();
			return false;
		}
	}
	return true;
}
