/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies the running coroutine; see coroutines.h. A coroutine is identified by the context (contextvars) that is entered
 * while it runs: each task of asyncio, trio and anyio has one. Greenlets may run in the same context, or in none, so they are
 * queried if the program uses them. Finding that nothing has changed takes a few nanoseconds and works without the GIL, which
 * torch's operators have released. Only after a change is Python called, and only builtin functions, because calls of others
 * would be recorded.
 */
#include "ext.h"

#include <string.h>

#include <opstrobe/internal/collector.h>

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#define Py_BUILD_CORE 1
#include <internal/pycore_context.h>
#undef Py_BUILD_CORE
#pragma GCC diagnostic pop

#include "coroutines.h"

#define CONTEXTS_MAX 64 /* nested contexts; further outer ones count as left */
#define NAME_BYTES_MAX 120

struct coroutine {
	const PyContext *context; /* the innermost entered context; NULL: none */
	const PyObject *greenlet; /* NULL: that of the thread itself */
};

static PyObject *modules;                 /* sys.modules, borrowed from the interpreter */
static Py_ssize_t modules_searched;       /* size of sys.modules when greenlet was not in it */
static PyObject *current_greenlet;        /* greenlet.getcurrent, once greenlet is imported */
static __thread const PyObject *greenlet_of_thread; /* the initial greenlet of the thread */
static __thread bool is_noting;           /* querying a name may record, and so call this code again */

/* --- current coroutine --------------------------------------------------------------------------------------------- */

/* The context of a thread that has entered none does not belong to a coroutine. */
static const PyContext *entered_context(const PyThreadState *state)
{
	const PyContext *context = (const PyContext *)state->context;

	return context && (context->ctx_entered || context->ctx_prev) ? context : NULL;
}

/* Checks whether the program has imported greenlet. While it is being imported, the function does not exist yet; then it is
 * checked again. */
static void search_greenlets(void)
{
	PyObject *module = PyDict_GetItemString(modules, "greenlet");

	current_greenlet = module ? PyObject_GetAttrString(module, "getcurrent") : NULL;
	if (!module)
		modules_searched = PyDict_GET_SIZE(modules);
}

/* The initial greenlet of a thread has no parent. Borrowed: the thread holds it. */
static const PyObject *find_greenlet_of_thread(PyObject *greenlet)
{
	PyObject *parent;

	Py_INCREF(greenlet);
	while ((parent = PyObject_GetAttrString(greenlet, "parent")) && parent != Py_None) {
		Py_DECREF(greenlet);
		greenlet = parent;
	}
	Py_XDECREF(parent);
	Py_DECREF(greenlet);
	return greenlet;
}

/* Returns the current greenlet, borrowed; NULL for that of the thread itself, and without greenlets. Preserves an exception that
 * is set. */
static const PyObject *find_greenlet(void)
{
	PyObject *type, *value, *traceback, *greenlet = NULL;

	PyErr_Fetch(&type, &value, &traceback);
	if (!current_greenlet)
		search_greenlets();
	if (current_greenlet)
		greenlet = PyObject_CallNoArgs(current_greenlet);
	if (greenlet && !greenlet_of_thread)
		greenlet_of_thread = find_greenlet_of_thread(greenlet);
	Py_XDECREF(greenlet);
	PyErr_Restore(type, value, traceback);
	return greenlet == greenlet_of_thread ? NULL : greenlet;
}

/* --- name ---------------------------------------------------------------------------------------------------------- */

/* Returns the task that runs in an event loop of this thread; NULL if there is none, perhaps with an exception set. Until Python
 * 3.12 the function for this is not builtin, but its data can be read. */
static PyObject *current_task(PyObject *asyncio)
{
	PyObject *loop = PyObject_CallMethod(asyncio, "_get_running_loop", NULL), *tasks, *task = NULL;

	if (!loop || loop == Py_None) {
		Py_XDECREF(loop);
		return NULL;
	}
	tasks = PyObject_GetAttrString(asyncio, "_current_tasks");
	if (tasks)
		task = Py_XNewRef(PyDict_Check(tasks) ? PyDict_GetItemWithError(tasks, loop) : NULL);
	else if (PyErr_Clear(), PyObject_HasAttrString(asyncio, "current_task"))
		task = PyObject_CallMethod(asyncio, "current_task", "O", loop);
	Py_XDECREF(tasks);
	Py_DECREF(loop);
	return task;
}

/* Writes "asyncio Task-3" and returns the size. Preserves an exception that is set. */
static size_t name_task(char name[static NAME_BYTES_MAX])
{
	PyObject *type, *value, *traceback, *asyncio, *task = NULL, *text = NULL;
	Py_ssize_t size = 0;
	const char *bytes;

	PyErr_Fetch(&type, &value, &traceback);
	asyncio = PyDict_GetItemString(modules, "_asyncio");
	if (asyncio)
		task = current_task(asyncio);
	if (task && task != Py_None)
		text = PyObject_CallMethod(task, "get_name", NULL);
	bytes = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
	if (bytes && (size_t)size < NAME_BYTES_MAX - strlen("asyncio ")) {
		memcpy(name, "asyncio ", strlen("asyncio "));
		memcpy(name + strlen("asyncio "), bytes, (size_t)size);
		size += (Py_ssize_t)strlen("asyncio ");
	} else {
		size = 0;
	}
	Py_XDECREF(text);
	Py_XDECREF(task);
	PyErr_Restore(type, value, traceback);
	return (size_t)size;
}

static size_t name_coroutine(const struct coroutine *coroutine, char name[static NAME_BYTES_MAX])
{
	if (coroutine->greenlet) {
		memcpy(name, "greenlet", strlen("greenlet"));
		return strlen("greenlet");
	}
	return coroutine->context && PyGILState_Check() ? name_task(name) : 0;
}

/* --- noting a change ----------------------------------------------------------------------------------------------- */

static void write_coroutine(struct ops_thread *thread, uint64_t epoch, const struct coroutine *coroutine)
{
	const struct ops_collector *collector = ops_collector_get();
	char name[NAME_BYTES_MAX] = "";
	uint32_t name_bytes = (uint32_t)name_coroutine(coroutine, name);
	size_t padded = (name_bytes + 3) & ~(size_t)3, count = 1;
	uint64_t identities[1 + CONTEXTS_MAX] = {(uintptr_t)coroutine->greenlet};
	struct ops_slot *slot;
	char *payload;

	for (const PyContext *context = coroutine->context; context && count <= CONTEXTS_MAX; context = context->ctx_prev)
		if (context->ctx_entered || context->ctx_prev)
			identities[count++] = (uintptr_t)context;
	slot = ops_reserve(collector, thread, epoch, sizeof(uint32_t) + padded + count * sizeof(*identities));
	if (!slot)
		return;
	payload = ops_slot_payload(thread, slot);
	memcpy(payload, &name_bytes, sizeof(name_bytes));
	memcpy(payload + sizeof(uint32_t), name, padded);
	memcpy(payload + sizeof(uint32_t) + padded, identities, count * sizeof(*identities));
	slot->owner = NULL;
	slot->sequence_nr = -1;
	slot->name = 0;
	slot->forward_thread = 0;
	slot->end_thread = thread->number;
	slot->kind = OPS_SLOT_CONTEXT;
	slot->scope = 0;
	slot->flags = OPS_SLOT_NAME_INLINE;
	slot->start_ticks = slot->end_ticks = ops_ticks(collector->tsc);
	ops_publish(thread);
	thread->context = coroutine->context;
	thread->greenlet = coroutine->greenlet;
}

static void coroutines_note_context(struct ops_thread *thread, uint64_t epoch)
{
	const PyThreadState *state = PyGILState_GetThisThreadState();
	const bool joined = thread->epoch == epoch; /* else its data belong to another session */
	struct coroutine coroutine = {NULL, joined ? thread->greenlet : NULL};

	if (!state || is_noting)
		return;
	coroutine.context = entered_context(state);
	if (OPS_UNLIKELY(current_greenlet || PyDict_GET_SIZE(modules) != modules_searched) && PyGILState_Check())
		coroutine.greenlet = find_greenlet();
	if (OPS_LIKELY(coroutine.context == (joined ? thread->context : NULL) &&
		       coroutine.greenlet == (joined ? thread->greenlet : NULL)))
		return;
	is_noting = true;
	write_coroutine(thread, epoch, &coroutine);
	is_noting = false;
}

void ops_ext_watch_coroutines(void)
{
	modules = PyImport_GetModuleDict();
	ops_set_note_context(coroutines_note_context);
}
