/* SPDX-License-Identifier: Apache-2.0
 *
 * Recording calls of torch.nn.Module; see module_calls.h.
 *
 * torch.nn.Module.__call__ is the function Module._wrapped_call_impl. While a session records modules, the vectorcall of that
 * function object (which C code calls) is replaced by the function below: it opens a slot, calls the original, and closes the
 * slot, whether or not there was an exception. Nothing that Python code can observe changes: attributes, code, hooks and classes
 * remain the same, so that torch.compile, pickling, subclasses and patches of other libraries are not affected. An instance is
 * called through its type's slot, which is C code, so that no call is missed.
 *
 * If Python code calls the function object itself (super().__call__(x)), Python 3.11, and no other version, ignores its
 * vectorcall. So there _call_impl, which it then calls through C, is also watched.
 */
#include "module_calls.h"
#include "module_registry.h"

#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/internal/watch.h>

#define WATCH_CALL_IMPL (PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030c0000)

/* A function whose vectorcall is replaced. */
struct watched {
	PyFunctionObject *function; /* strong; NULL: none */
	vectorcallfunc original;
};

static struct {
	bool watching;
	bool recording; /* also record rows of the calls */
	bool with_memory; /* the session records memory */
	bool paused;      /* no calls are recorded at present; relaxed */
	bool suspended;   /* torch's function is in its place */
	const struct ops_collector *collector;
	struct module_registry registry;
	struct watched call;      /* Module._wrapped_call_impl */
	struct watched call_impl; /* Module._call_impl, if WATCH_CALL_IMPL */
} calls;

/* Number of calls in progress on this thread. */
static __thread uint32_t depth;

/* The module whose _wrapped_call_impl is about to call its _call_impl, a call that is recorded already. */
static __thread PyObject *entered;

/* --- calls ---------------------------------------------------------------------------------------------------------- */

/* Returns NULL if the call is not to be recorded. */
static struct ops_slot *open_call(PyObject *module)
{
	uint64_t epoch = ops_collector_epoch(calls.collector);
	struct ops_thread *thread;
	struct ops_slot *slot;
	uint32_t index;

	if (!epoch || !calls.watching || __atomic_load_n(&calls.paused, __ATOMIC_RELAXED))
		return NULL;
	index = module_registry_find(&calls.registry, module);
	if (OPS_UNLIKELY(index == MODULE_NONE || calls.registry.entries[index].number == MODULE_NONE)) {
		index = module_registry_call(&calls.registry, module);
		if (index == MODULE_NONE)
			return NULL;
		if (calls.recording && ops_session_wants_notes())
			module_table_note(&calls.registry, index);
	}
	if (!calls.recording)
		return NULL;
	thread = calls.collector->thread();
	if (thread)
		ops_note_context_again(calls.collector, thread, epoch);
	slot = thread ? ops_reserve(calls.collector, thread, epoch, 0) : NULL;
	if (OPS_UNLIKELY(!slot))
		return NULL;
	slot->owner = NULL;
	slot->sequence_nr = index;
	slot->name = 0;
	slot->call_line = ops_call_line(calls.collector);
	slot->forward_thread = 0;
	slot->end_thread = thread->number;
	slot->kind = OPS_SLOT_MODULE;
	slot->scope = 0;
	slot->flags = 0;
	slot->end_ticks = 0;
	slot->start_ticks = ops_ticks(calls.collector->tsc);
	ops_publish(thread);
	return slot;
}

static void close_call(struct ops_slot *slot)
{
	if (slot)
		ops_slot_close(slot, ops_ticks(calls.collector->tsc), slot->end_thread);
}

struct call_begin {
	uint64_t ticks;
	int64_t ns; /* 0: the call is not compared */
};

static struct call_begin begin_outermost(void)
{
	if (depth++ || !ops_watch_wants_calls())
		return (struct call_begin){0};
	return (struct call_begin){ops_ticks(calls.collector->tsc), ops_clock_read_ns(CLOCK_MONOTONIC)};
}

static void end_outermost(struct call_begin begin)
{
	depth--;
	if (begin.ns)
		ops_watch_call(begin.ticks, begin.ns);
}

static PyObject *watched_call(PyObject *function, PyObject *const *args, size_t flagged_count, PyObject *names)
{
	struct call_begin begin = begin_outermost();
	struct ops_slot *slot = PyVectorcall_NARGS(flagged_count) ? open_call(args[0]) : NULL;
	PyObject *result;

	entered = slot ? args[0] : NULL;
	result = calls.call.original(function, args, flagged_count, names);
	entered = NULL;
	close_call(slot);
	end_outermost(begin);
	return result;
}

#if WATCH_CALL_IMPL
static PyObject *watched_call_impl(PyObject *function, PyObject *const *args, size_t flagged_count, PyObject *names)
{
	PyObject *module = PyVectorcall_NARGS(flagged_count) ? args[0] : NULL;
	struct call_begin begin = begin_outermost();
	struct ops_slot *slot = module && module != entered ? open_call(module) : NULL;
	PyObject *result;

	entered = NULL;
	result = calls.call_impl.original(function, args, flagged_count, names);
	close_call(slot);
	end_outermost(begin);
	return result;
}
#endif

/* --- watching ------------------------------------------------------------------------------------------------------- */

static void set_vectorcall(PyFunctionObject *function, vectorcallfunc vectorcall)
{
#if PY_VERSION_HEX >= 0x030c0000
	PyFunction_SetVectorcall(function, vectorcall); /* discards code that the interpreter specialised for the function */
#else
	function->vectorcall = vectorcall;
#endif
}

/* Replaces the vectorcall of the class's function of that name. Returns 0, or -1 with an exception set. */
static int module_calls_watch(struct watched *watched, PyObject *type, const char *name, vectorcallfunc vectorcall)
{
	PyObject *function = PyObject_GetAttrString(type, name);

	if (!function)
		return -1;
	if (!PyFunction_Check(function)) {
		Py_DECREF(function);
		PyErr_Format(PyExc_RuntimeError, "cannot record modules: torch.nn.Module.%s is not a function", name);
		return -1;
	}
	watched->function = (PyFunctionObject *)function;
	watched->original = watched->function->vectorcall;
	set_vectorcall(watched->function, vectorcall);
	return 0;
}

/* Calls in progress use `original` only while they run. It is restored only if it is still ours, because another library may have
 * replaced it. */
static void unwatch(struct watched *watched, vectorcallfunc vectorcall)
{
	if (watched->function && watched->function->vectorcall == vectorcall)
		set_vectorcall(watched->function, watched->original);
	Py_CLEAR(watched->function);
}

static int watch_all(PyObject *module_type)
{
	if (module_calls_watch(&calls.call, module_type, "_wrapped_call_impl", watched_call) < 0)
		return -1;
#if WATCH_CALL_IMPL
	if (module_calls_watch(&calls.call_impl, module_type, "_call_impl", watched_call_impl) < 0) {
		unwatch(&calls.call, watched_call);
		return -1;
	}
#endif
	return 0;
}

static void unwatch_all(void)
{
	unwatch(&calls.call, watched_call);
#if WATCH_CALL_IMPL
	unwatch(&calls.call_impl, watched_call_impl);
#endif
}

/* --- session -------------------------------------------------------------------------------------------------------- */

/* Returns torch.nn.Module if torch is imported; NULL if not, or with an exception set. */
static PyObject *find_module_type(void)
{
	PyObject *name = PyUnicode_FromString("torch.nn.modules.module");
	PyObject *module = name ? PyImport_GetModule(name) : NULL;
	PyObject *type = module ? PyObject_GetAttrString(module, "Module") : NULL;

	Py_XDECREF(name);
	Py_XDECREF(module);
	return type;
}

int ops_ext_modules_begin(bool rows, bool watch)
{
	PyObject *type;

	Py_XDECREF(ops_ext_modules_end(NULL)); /* remains of a session of the parent process */
	type = rows || watch ? find_module_type() : NULL;
	if (!type)
		return PyErr_Occurred() ? -1 : 0;
	calls.collector = ops_collector_get();
	if (module_registry_init(&calls.registry, type) < 0 || watch_all(type) < 0) {
		module_registry_release(&calls.registry);
		Py_DECREF(type);
		return -1;
	}
	Py_DECREF(type);
	calls.recording = rows;
	calls.with_memory = watch;
	ops_ext_modules_pause(false);
	calls.suspended = false;
	calls.watching = true;
	return 0;
}

void ops_ext_modules_pause(bool pause)
{
	__atomic_store_n(&calls.paused, pause, __ATOMIC_RELAXED);
}

int ops_ext_modules_suspend(bool suspend)
{
	PyObject *type;
	int result;

	if (!calls.watching || suspend == calls.suspended)
		return 0;
	calls.suspended = suspend;
	if (suspend) {
		unwatch_all();
		return 0;
	}
	type = find_module_type();
	result = type ? watch_all(type) : PyErr_Occurred() ? -1 : 0;
	Py_XDECREF(type);
	return result;
}

PyObject *ops_ext_modules_end(struct ops_recording *recording)
{
	PyObject *type, *error, *traceback, *refs = NULL;

	if (!calls.watching)
		return NULL;
	calls.watching = false;
	unwatch_all();
	PyErr_Fetch(&type, &error, &traceback);
	if (recording && calls.recording) {
		module_registry_refresh(&calls.registry);
		if (module_table_add_to(&calls.registry, recording, &refs) < 0)
			PyErr_Clear();
	}
	if (refs)
		Py_SETREF(refs, ops_ext_describe_modules(refs, calls.with_memory));
	calls.recording = false;
	module_registry_release(&calls.registry);
	PyErr_Restore(type, error, traceback);
	return refs;
}

PyObject *ops_ext_module_code(void)
{
	return calls.recording && calls.call.function ? calls.call.function->func_code : NULL;
}

PyObject *ops_ext_modules_called(void)
{
	PyObject *list = PyList_New(0);

	for (uint32_t i = 0; list && calls.watching && i < calls.registry.count; i++) {
		PyObject *module = ((PyWeakReference *)calls.registry.entries[i].ref)->wr_object;

		if (module != Py_None && PyList_Append(list, module) < 0)
			Py_CLEAR(list);
	}
	return list;
}
