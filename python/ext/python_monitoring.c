/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks of CPython 3.12 and later: sys.monitoring (PEP 669), with C functions as callbacks. It covers all threads of the
 * interpreter, including future ones, and does not affect other tools: profilers, coverage and debuggers have their own tool ids.
 */
#include "python_calls.h"

#if PY_VERSION_HEX >= 0x030c0000

static PyObject *began(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	(void)self, (void)count;
	ops_python_enter(ops_frame_current(PyThreadState_Get()), (PyCodeObject *)args[0]);
	Py_RETURN_NONE;
}

static PyObject *ended(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	(void)self, (void)args, (void)count;
	ops_python_leave(ops_frame_current(PyThreadState_Get()));
	Py_RETURN_NONE;
}

/* Called with (code, offset, callable, first argument). Python functions are reported by other events. */
static PyObject *calls(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	(void)self, (void)count;
	if (PyCFunction_Check(args[2]) || Py_IS_TYPE(args[2], &PyMethodDescr_Type))
		ops_python_call(ops_frame_current(PyThreadState_Get()), args[2]);
	Py_RETURN_NONE;
}

static PyObject *returned(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	(void)self, (void)args, (void)count;
	ops_python_return(ops_frame_current(PyThreadState_Get()));
	Py_RETURN_NONE;
}

/* The numbers of the events are attributes of sys.monitoring.events with these names. */
#define HOOKS(X)                                                                                   \
	X("PY_START", began)                                                                       \
	X("PY_RESUME", began)                                                                      \
	X("PY_THROW", began)                                                                       \
	X("PY_RETURN", ended)                                                                      \
	X("PY_YIELD", ended)                                                                       \
	X("PY_UNWIND", ended)                                                                      \
	X("CALL", calls)                                                                           \
	X("C_RETURN", returned)                                                                    \
	X("C_RAISE", returned)

static struct {
	const char *event;
	PyMethodDef method;
} hooks[] = {
#define HOOK(event, function) {event, {"opstrobe_" #function, (PyCFunction)(void (*)(void))function, METH_FASTCALL, NULL}},
	HOOKS(HOOK)
#undef HOOK
};
#define HOOK_COUNT (sizeof(hooks) / sizeof(hooks[0]))

static int tool = -1; /* our tool id while the hooks are installed */

static PyObject *monitoring(void)
{
	return PySys_GetObject("monitoring"); /* borrowed */
}

/* 3 and 4 have no conventional meaning; the others have, but may be free. */
static int claim_tool(void)
{
	static const int candidates[] = {4, 3, 2, 1, 0};

	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++) {
		PyObject *done = PyObject_CallMethod(monitoring(), "use_tool_id", "is", candidates[i], "opstrobe");

		if (done) {
			Py_DECREF(done);
			tool = candidates[i];
			return 0;
		}
		if (!PyErr_ExceptionMatches(PyExc_ValueError))
			return -1;
		PyErr_Clear();
	}
	PyErr_SetString(PyExc_RuntimeError,
			"cannot record Python calls: other tools have taken every tool id of sys.monitoring");
	return -1;
}

/* Registers a callback for each event, and returns the events' bits; with `on` false, removes the callbacks. Returns -1 with an
 * exception set. */
static long register_hooks(bool on)
{
	PyObject *events = PyObject_GetAttrString(monitoring(), "events");
	long all = events ? 0 : -1;

	for (size_t i = 0; all >= 0 && i < HOOK_COUNT; i++) {
		PyObject *event = PyObject_GetAttrString(events, hooks[i].event);
		PyObject *callback = on ? PyCFunction_New(&hooks[i].method, NULL) : Py_NewRef(Py_None);
		PyObject *old = event && callback ? PyObject_CallMethod(monitoring(), "register_callback", "iOO", tool, event,
		                                                        callback)
		                                  : NULL;

		all = old ? all | PyLong_AsLong(event) : -1;
		Py_XDECREF(old);
		Py_XDECREF(callback);
		Py_XDECREF(event);
	}
	Py_XDECREF(events);
	return all;
}

static int set_events(long events)
{
	PyObject *done = PyObject_CallMethod(monitoring(), "set_events", "il", tool, events);

	Py_XDECREF(done);
	return done ? 0 : -1;
}

int ops_python_hooks_install(void)
{
	long events;

	if (claim_tool() < 0)
		return -1;
	events = register_hooks(true);
	return events < 0 ? -1 : set_events(events);
}

void ops_python_hooks_remove(void)
{
	PyObject *done;

	if (tool < 0)
		return;
	if (set_events(0) < 0)
		PyErr_Clear();
	if (register_hooks(false) < 0)
		PyErr_Clear();
	done = PyObject_CallMethod(monitoring(), "free_tool_id", "i", tool);
	Py_XDECREF(done);
	PyErr_Clear();
	tool = -1;
}

bool ops_python_hooks_displaced(void)
{
	return false;
}

#endif
