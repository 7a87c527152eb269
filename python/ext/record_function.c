/* SPDX-License-Identifier: Apache-2.0
 *
 * record_function: a user's range. A context manager that is reusable and reentrant, and a decorator. It calls ops_range_begin
 * directly, on any thread. Most of the time nothing records; then the only costs are creating the object and two method calls:
 * construction uses vectorcall, and the type does not take part in garbage collection (it only holds two strings).
 */
#include "ext.h"

#include <opstrobe/record.h>

#include "bridge.h"

/* Also a range of torch while it has observers (torch_bridge.h), or while torch traces a function. */
struct open_range {
	struct ops_range range;
	void *observed;
	PyObject *traced; /* owned; the result of torch's operator that opens ranges */
};

struct range_object {
	PyObject_HEAD
	PyObject *name;
	PyObject *args;         /* None if there are none */
	Py_ssize_t depth;       /* times entered and not yet exited */
	struct open_range range;  /* the innermost of those; all zero if nothing recorded */
	struct open_range *outer; /* the others, outermost first; NULL unless nested */
	bool run_callbacks_on_exit; /* cleared if a future is to end the range; torch's name */
};

/* --- construction ----------------------------------------------------------------------------------------------- */

static int range_set(struct range_object *self, PyObject *name, PyObject *args)
{
	if (!PyUnicode_Check(name)) {
		PyErr_Format(PyExc_TypeError, "record_function name must be str, not %.100s", Py_TYPE(name)->tp_name);
		return -1;
	}
	if (args != Py_None && !PyUnicode_Check(args)) {
		PyErr_Format(PyExc_TypeError, "record_function args must be str or None, not %.100s",
			     Py_TYPE(args)->tp_name);
		return -1;
	}
	Py_INCREF(name);
	Py_XSETREF(self->name, name);
	Py_INCREF(args);
	Py_XSETREF(self->args, args);
	return 0;
}

static int record_function_range_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"name", "args", NULL};
	PyObject *name, *text = Py_None;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:record_function", keywords, &name, &text))
		return -1;
	return range_set((struct range_object *)self, name, text);
}

/* For subclasses: the object is complete, with an empty name, even if a subclass does not call __init__. */
static PyObject *range_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	struct range_object *self = (struct range_object *)type->tp_alloc(type, 0);

	(void)args, (void)kwargs;
	if (!self)
		return NULL;
	self->run_callbacks_on_exit = true;
	self->name = PyUnicode_FromStringAndSize(NULL, 0);
	self->args = Py_NewRef(Py_None);
	if (!self->name)
		Py_CLEAR(self);
	return (PyObject *)self;
}

static PyObject *range_make(PyTypeObject *type, PyObject *name, PyObject *args)
{
	struct range_object *self = PyObject_New(struct range_object, type);

	if (!self)
		return NULL;
	memset((char *)self + sizeof(PyObject), 0, sizeof(*self) - sizeof(PyObject));
	self->run_callbacks_on_exit = true;
	if (range_set(self, name, args))
		Py_CLEAR(self);
	return (PyObject *)self;
}

static PyObject *range_vectorcall_keywords(PyTypeObject *type, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
	PyObject *positional = PyTuple_New(count), *keywords = PyDict_New(), *self = NULL;

	if (!positional || !keywords)
		goto out;
	for (Py_ssize_t i = 0; i < count; i++)
		PyTuple_SET_ITEM(positional, i, Py_NewRef(args[i]));
	for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
		if (PyDict_SetItem(keywords, PyTuple_GET_ITEM(names, i), args[count + i]))
			goto out;
	self = range_new(type, positional, keywords);
	if (self && record_function_range_init(self, positional, keywords))
		Py_CLEAR(self);
out:
	Py_XDECREF(positional);
	Py_XDECREF(keywords);
	return self;
}

/* For the type itself; subclasses use tp_new and tp_init. */
static PyObject *range_vectorcall(PyObject *type, PyObject *const *args, size_t nargsf, PyObject *names)
{
	Py_ssize_t count = PyVectorcall_NARGS(nargsf);

	if (names || count < 1 || count > 2)
		return range_vectorcall_keywords((PyTypeObject *)type, args, count, names);
	return range_make((PyTypeObject *)type, args[0], count == 2 ? args[1] : Py_None);
}

/* --- functions traced by torch ------------------------------------------------------------------------------------ */

/* The graph gets the operators that open and close a range, and records it whenever it runs. */
static PyObject *traced_begin(PyObject *name, PyObject *args)
{
	PyObject *module = PyImport_ImportModule("opstrobe.recording.traced_range");
	PyObject *traced = module ? PyObject_CallMethod(module, "begin", "OO", name, args) : NULL;

	Py_XDECREF(module);
	return traced;
}

/* Steals the reference. Preserves an exception that is set. */
static void traced_end(PyObject *traced)
{
	PyObject *type, *value, *traceback, *module, *nothing;

	PyErr_Fetch(&type, &value, &traceback);
	module = PyImport_ImportModule("opstrobe.recording.traced_range");
	nothing = module ? PyObject_CallMethod(module, "end", "O", traced) : NULL;
	if (!nothing)
		PyErr_WriteUnraisable(traced);
	Py_XDECREF(nothing);
	Py_XDECREF(module);
	Py_DECREF(traced);
	PyErr_Restore(type, value, traceback);
}

/* Returns whether torch traces a function on this thread, before there is a bridge to query. Costs a lookup in sys.modules and,
 * with torch, a call. */
static bool is_tracing(void)
{
	static PyObject *name, *ask; /* for the life of the process */
	PyObject *torch, *answer;
	bool traced;

	if (!ask) {
		if (!name)
			name = PyUnicode_InternFromString("torch._C");
		torch = name ? PyDict_GetItem(PyImport_GetModuleDict(), name) : NULL;
		if (!torch)
			return false;
		ask = PyObject_GetAttrString(torch, "_is_tracing");
		if (!ask) { /* it is being imported */
			PyErr_Clear();
			return false;
		}
	}
	answer = PyObject_CallNoArgs(ask);
	traced = answer == Py_True;
	if (!answer)
		PyErr_Clear();
	Py_XDECREF(answer);
	return traced;
}

static bool is_traced(void)
{
	const struct ops_torch_bridge *bridge = ops_ext_bridge();

	return bridge ? bridge->is_tracing() : is_tracing();
}

static void end_range(struct open_range range)
{
	if (range.traced)
		traced_end(range.traced);
	if (range.range.slot)
		ops_range_end(range.range);
	if (range.observed)
		ops_ext_bridge()->range_end(range.observed);
}

/* Ends the innermost range; its outer range becomes the innermost. */
static void range_close(struct range_object *self)
{
	end_range(self->range);
	if (--self->depth > 0)
		self->range = self->outer[self->depth - 1];
}

static void range_dealloc(PyObject *object)
{
	struct range_object *self = (struct range_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	while (self->depth > 0)
		range_close(self);
	PyMem_Free(self->outer);
	Py_XDECREF(self->name);
	Py_XDECREF(self->args);
	type->tp_free(object);
	Py_DECREF(type);
}

/* --- enter and exit --------------------------------------------------------------------------------------------- */

/* Returns the bytes of a str that may contain lone surrogates. `*ret_keep` owns them if the str itself does not. */
static const char *text_bytes(PyObject *text, Py_ssize_t *ret_size, PyObject **ret_keep)
{
	const char *bytes = PyUnicode_AsUTF8AndSize(text, ret_size);

	if (bytes || !PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
		return bytes;
	PyErr_Clear();
	*ret_keep = ops_ext_text_bytes(text);
	if (!*ret_keep)
		return NULL;
	*ret_size = PyBytes_GET_SIZE(*ret_keep);
	return PyBytes_AS_STRING(*ret_keep);
}

/* Returns whether there are observers of torch's ranges. */
static bool is_observed(void)
{
	const struct ops_torch_bridge *bridge = ops_ext_bridge();

	return bridge && __atomic_load_n(bridge->observed, __ATOMIC_RELAXED) != 0;
}

static struct open_range begin_range(const char *name, size_t name_size, const char *args, size_t args_size)
{
	struct open_range range = {0};
	bool recorded = false;

	if (is_observed())
		range.observed = ops_ext_bridge()->range_begin(name, args, args_size, &recorded);
	if (recorded)
		return range;
	range.range = args ? ops_range_begin_args(name, name_size, args, args_size) : ops_range_begin(name, name_size);
	return range;
}

static int range_begin(struct range_object *self)
{
	PyObject *keep_name = NULL, *keep_args = NULL;
	Py_ssize_t name_size, args_size = 0;
	const char *name = text_bytes(self->name, &name_size, &keep_name), *args = NULL;

	if (name && self->args != Py_None)
		args = text_bytes(self->args, &args_size, &keep_args);
	if (name && (args || self->args == Py_None))
		self->range = begin_range(name, (size_t)name_size, args, (size_t)args_size);
	Py_XDECREF(keep_name);
	Py_XDECREF(keep_args);
	return name && (args || self->args == Py_None) ? 0 : -1;
}

static PyObject *range_enter(PyObject *object, PyObject *unused)
{
	struct range_object *self = (struct range_object *)object;
	bool failed;

	(void)unused;
	if (self->depth > 0) {
		struct open_range *outer = PyMem_Realloc(self->outer, (size_t)self->depth * sizeof(*outer));

		if (!outer)
			return PyErr_NoMemory();
		self->outer = outer;
		outer[self->depth - 1] = self->range;
	}
	self->range = (struct open_range){0};
	if (is_traced()) {
		self->range.traced = traced_begin(self->name, self->args);
		failed = !self->range.traced;
	} else {
		failed = (ops_recording_active() || is_observed()) && range_begin(self);
	}
	if (failed) {
		if (self->depth > 0)
			self->range = self->outer[self->depth - 1];
		return NULL;
	}
	self->depth++;
	self->run_callbacks_on_exit = true;
	return Py_NewRef(object);
}

static PyObject *range_exit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
	struct range_object *self = (struct range_object *)object;

	(void)args, (void)count;
	if (self->depth == 0) {
		PyErr_SetString(PyExc_AssertionError, "record_function was left without having been entered");
		return NULL;
	}
	range_close(self);
	Py_RETURN_NONE;
}

/* --- decorator -------------------------------------------------------------------------------------------------- */

/* Returns a range of the same name for one call of a decorated function, so that recursion and threads do not share one. An
 * object of a subclass is used for all calls, as in contextlib.ContextDecorator, because only the subclass knows how to create
 * one. */
static PyObject *range_recreate(PyObject *object, PyObject *unused)
{
	struct range_object *self = (struct range_object *)object;

	(void)unused;
	if (Py_TYPE(object)->tp_vectorcall != range_vectorcall) /* subclasses do not inherit it */
		return Py_NewRef(object);
	return range_make(Py_TYPE(object), self->name, self->args);
}

static PyObject *range_call(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"func", NULL};
	PyObject *function, *module, *wrapped;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:record_function", keywords, &function))
		return NULL;
	module = PyImport_ImportModule("opstrobe.recording.decorate");
	if (!module)
		return NULL;
	wrapped = PyObject_CallMethod(module, "decorate", "OO", object, function);
	Py_DECREF(module);
	return wrapped;
}

/* --- futures ---------------------------------------------------------------------------------------------------- */

#define RANGE_CAPSULE "opstrobe._core.open_range"

/* Ends the capsule's range, once. */
static void end_in_capsule(PyObject *capsule)
{
	struct open_range *range = PyCapsule_GetPointer(capsule, RANGE_CAPSULE);
	struct open_range last = *range;

	*range = (struct open_range){0};
	end_range(last);
}

/* A future that never completes ends the range when it is freed. */
static void free_capsule(PyObject *capsule)
{
	end_in_capsule(capsule);
	PyMem_Free(PyCapsule_GetPointer(capsule, RANGE_CAPSULE));
}

static PyObject *end_and_pass_on(PyObject *capsule, PyObject *future)
{
	end_in_capsule(capsule);
	return PyObject_CallMethod(future, "value", NULL);
}

static PyMethodDef end_method = {"end_range", end_and_pass_on, METH_O, "Ends a range; gives the future's value."};

/* Returns a callback that ends `range`, which it owns from now on. */
static PyObject *make_callback(struct open_range range)
{
	struct open_range *kept = PyMem_Malloc(sizeof(*kept));
	PyObject *capsule = kept ? PyCapsule_New(kept, RANGE_CAPSULE, free_capsule) : NULL;
	PyObject *callback;

	if (!capsule) {
		PyMem_Free(kept);
		end_range(range);
		return kept ? NULL : PyErr_NoMemory();
	}
	*kept = range;
	callback = PyCFunction_New(&end_method, capsule);
	Py_DECREF(capsule);
	return callback;
}

static PyObject *range_end_on_future(PyObject *object, PyObject *future)
{
	struct range_object *self = (struct range_object *)object;
	PyObject *callback, *after;

	if (!self->run_callbacks_on_exit) {
		PyErr_SetString(PyExc_RuntimeError, "_call_end_callbacks_on_future can only be called once.");
		return NULL;
	}
	self->run_callbacks_on_exit = false;
	callback = make_callback(self->range);
	self->range = (struct open_range){0};
	if (!callback)
		return NULL;
	after = PyObject_CallMethod(future, "then", "O", callback);
	Py_DECREF(callback);
	return after;
}

/* Returns the open range, for code that checks whether there is one. */
static PyObject *range_get_record(PyObject *object, void *ignored)
{
	struct range_object *self = (struct range_object *)object;

	(void)ignored;
	return Py_NewRef(self->depth > 0 ? object : Py_None);
}

/* --- type ------------------------------------------------------------------------------------------------------- */

static PyMethodDef range_methods[] = {
	{"__enter__", range_enter, METH_NOARGS, "Opens the range."},
	{"__exit__", (PyCFunction)(void (*)(void))range_exit, METH_FASTCALL, "Closes the range."},
	{"_recreate_cm", range_recreate, METH_NOARGS, "A range of the same name for one call of a decorated function."},
	{"_call_end_callbacks_on_future", range_end_on_future, METH_O, "Closes the range when a future completes."},
	{NULL, NULL, 0, NULL},
};

static PyMemberDef range_members[] = {
	{"name", T_OBJECT, offsetof(struct range_object, name), READONLY, "The range's name."},
	{"args", T_OBJECT, offsetof(struct range_object, args), READONLY, "A text shown with the range, or None."},
	{"run_callbacks_on_exit", T_BOOL, offsetof(struct range_object, run_callbacks_on_exit), READONLY,
	 "Whether the range ends with its block, and not with a future."},
	{NULL, 0, 0, 0, NULL},
};

static PyGetSetDef range_properties[] = {
	{"record", range_get_record, NULL, "The range while it is open, else None.", NULL},
	{0},
};

static const char range_doc[] =
	"record_function(name, args=None)\n--\n\n"
	"A named range of the program: a context manager and a decorator of functions, of generator functions and of\n"
	"coroutine functions, whose ranges last from the first step to the last. Recorded on every thread while a profile\n"
	"records, and next to free while none does.";

static PyType_Slot range_slots[] = {
	{Py_tp_doc, (void *)range_doc}, {Py_tp_new, range_new},           {Py_tp_init, record_function_range_init},
	{Py_tp_dealloc, range_dealloc}, {Py_tp_call, range_call},         {Py_tp_methods, range_methods},
	{Py_tp_members, range_members}, {Py_tp_getset, range_properties}, {0, NULL},
};

static PyType_Spec range_spec = {
	.name = "opstrobe._core.record_function",
	.basicsize = sizeof(struct range_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = range_slots,
};

int ops_ext_add_record_function(PyObject *module)
{
	PyTypeObject **type = &ops_ext_state_of_module(module)->record_function;

	if (ops_ext_add_type(module, &range_spec, type))
		return -1;
	(*type)->tp_vectorcall = range_vectorcall; /* there is no slot for it before Python 3.14 */
	return 0;
}
