/* SPDX-License-Identifier: Apache-2.0
 *
 * The hooks before CPython 3.12: a C profile function on every thread. A thread has one such function: the previous one is called
 * after ours, and restored at the end. New threads are detected at the head of the interpreter's list of threads, which is
 * checked at every event. An audit hook is called just before other code replaces our function; ours is installed in front again
 * as soon as the main thread runs. Until then calls on a thread with another function are missed, so the session reports that
 * calls may be missing.
 */
#include "python_calls.h"

#if PY_VERSION_HEX < 0x030c0000

#include <sched.h>
#include <string.h>

#include <opstrobe/internal/collector.h>

#include "ext.h"

/* The profile function that a thread had when ours was installed. */
struct hooked {
	PyThreadState *state;
	uint64_t id; /* of the state, because addresses are reused */
	Py_tracefunc chained;
};

static struct {
	struct hooked *threads;
	size_t count, capacity;
	uint64_t newest; /* id of the state at the head of the interpreter's list at the last check */
	bool setting;    /* the change is made by us */
	bool displaced;  /* some thread was without the hook, for longer than a moment */
	bool chains;     /* some thread has a function to call after ours */
	bool on;
} profile;

static unsigned long main_thread;
static PyInterpreterState *interpreter; /* the main one */

static int hook(PyObject *object, PyFrameObject *frame, int what, PyObject *argument);

static struct hooked *python_profile_find(const PyThreadState *state)
{
	for (size_t i = 0; i < profile.count; i++)
		if (profile.threads[i].state == state && profile.threads[i].id == state->id)
			return &profile.threads[i];
	return NULL;
}

/* The object may be the current one, with no other reference. */
static int set_profile(PyThreadState *state, Py_tracefunc function, PyObject *object)
{
	int done;

	Py_XINCREF(object);
	profile.setting = true;
	done = _PyEval_SetProfile(state, function, object);
	profile.setting = false;
	Py_XDECREF(object);
	return done;
}

/* Installs the hook on a thread, in front of the existing function. The object of that function remains in place, so that
 * sys.getprofile() still returns it. */
static int hook_thread(PyThreadState *state)
{
	struct hooked *known = python_profile_find(state);

	if (state->c_profilefunc == hook)
		return 0;
	if (!known && profile.count == profile.capacity) {
		size_t capacity = profile.capacity ? profile.capacity * 2 : 16;
		struct hooked *threads = PyMem_RawRealloc(profile.threads, capacity * sizeof(*threads));

		if (!threads) {
			PyErr_NoMemory();
			return -1;
		}
		profile.threads = threads;
		profile.capacity = capacity;
	}
	if (!known)
		known = &profile.threads[profile.count++];
	*known = (struct hooked){state, state->id, state->c_profilefunc};
	profile.chains |= known->chained != NULL;
	return set_profile(state, hook, state->c_profileobj);
}

/* Returns the newest thread. A thread not created by Python makes its state without the GIL, and CPython 3.11 adds it to the list
 * before it is initialised: it has no next one, and no frame in which to set a profile function. This lasts only a moment. */
static PyThreadState *newest_thread(void)
{
	PyThreadState *state = PyInterpreterState_ThreadHead(interpreter);

#if PY_VERSION_HEX >= 0x030b0000
	while (!__atomic_load_n(&state->_initialized, __ATOMIC_ACQUIRE))
		sched_yield();
#endif
	return state;
}

static int hook_threads(void)
{
	PyThreadState *state = newest_thread();
	int done = 0;

	profile.newest = state->id;
	for (; state && done == 0; state = PyThreadState_Next(state))
		done = hook_thread(state);
	return done;
}

static int hook_again(void *ignored)
{
	(void)ignored;
	if (profile.on && hook_threads() < 0)
		PyErr_Clear();
	return 0;
}

/* Called for every change of a profile function, with the GIL and before it is made. */
static int audit(const char *event, PyObject *arguments, void *ignored)
{
	(void)arguments, (void)ignored;
	if (!profile.on || profile.setting || strcmp(event, "sys.setprofile") != 0)
		return 0;
	/* Pending calls run on the main thread. */
	if (Py_AddPendingCall(hook_again, NULL) < 0 || PyThread_get_thread_ident() != main_thread)
		profile.displaced = true;
	return 0;
}

static void find_new_threads(void)
{
	if (OPS_UNLIKELY(PyInterpreterState_ThreadHead(interpreter)->id != profile.newest) && hook_threads() < 0)
		PyErr_Clear();
}

/* Threads are created by C functions, so it is sufficient to check for them when one has returned, or when a Python function is
 * called. */
OPS_ALWAYS_INLINE void dispatch(PyFrameObject *frame, int what, PyObject *argument)
{
	ops_frame *of = ops_frame_of_object(frame);

	switch (what) {
	case PyTrace_CALL:
		ops_python_enter(of, ops_frame_code(of));
		find_new_threads();
		break;
	case PyTrace_RETURN:
		ops_python_leave(of);
		break;
	case PyTrace_C_CALL:
		ops_python_call(of, argument);
		break;
	case PyTrace_C_RETURN:
	case PyTrace_C_EXCEPTION:
		ops_python_return(of);
		find_new_threads();
		break;
	default: /* lines and opcodes are for trace functions */
		break;
	}
}

static __attribute__((noinline)) int dispatch_and_chain(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
	const struct hooked *hooked;

	dispatch(frame, what, argument);
	hooked = python_profile_find(PyThreadState_Get());
	return hooked && hooked->chained ? hooked->chained(object, frame, what, argument) : 0;
}

static int hook(PyObject *object, PyFrameObject *frame, int what, PyObject *argument)
{
	if (OPS_UNLIKELY(profile.chains))
		return dispatch_and_chain(object, frame, what, argument);
	dispatch(frame, what, argument);
	return 0;
}

/* Returns the identity of the thread that runs pending calls; -1 with an exception set. */
static int find_main_thread(void)
{
	PyObject *threading = PyImport_ImportModule("threading");
	PyObject *main = threading ? PyObject_CallMethod(threading, "main_thread", NULL) : NULL;
	PyObject *ident = main ? PyObject_GetAttrString(main, "ident") : NULL;

	if (ident)
		main_thread = PyLong_AsUnsignedLong(ident);
	Py_XDECREF(threading);
	Py_XDECREF(main);
	Py_XDECREF(ident);
	return PyErr_Occurred() ? -1 : 0;
}

int ops_python_hooks_install(void)
{
	static bool audited; /* permanent: audit hooks cannot be removed */

	if (find_main_thread() < 0 || (!audited && PySys_AddAuditHook(audit, NULL) < 0))
		return -1;
	audited = true;
	interpreter = PyInterpreterState_Main();
	profile.displaced = false;
	profile.on = true;
	return hook_threads();
}

bool ops_python_hooks_displaced(void)
{
	return profile.displaced;
}

void ops_python_hooks_remove(void)
{
	PyThreadState *state = profile.on ? newest_thread() : NULL;

	for (; state; state = PyThreadState_Next(state)) {
		const struct hooked *hooked = python_profile_find(state);

		if (state->c_profilefunc == hook &&
		    set_profile(state, hooked ? hooked->chained : NULL,
		                hooked && hooked->chained ? state->c_profileobj : NULL) < 0)
			PyErr_Clear();
	}
	PyMem_RawFree(profile.threads);
	profile.threads = NULL;
	profile.count = profile.capacity = 0;
	profile.chains = profile.on = false;
}

#endif
