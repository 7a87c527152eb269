/* SPDX-License-Identifier: Apache-2.0
 *
 * Records the Python calls of a session. A call is one slot of its thread, open as long as the call runs:
 *
 *     thread ─▶ calls ┌──────────────┬──────────────┬─────────────────────┐
 *                     │ main         │ train        │ <built-in … backward>│ innermost last
 *                     └─ slot, frame ┴─ slot, frame ┴─ slot, frame of train┘
 *
 * The interpreter reports begins and ends, but not all of them: another profiler may remove a hook for a while, and greenlets
 * switch stacks. So an end is that of the call with the same frame, and of all calls above it; and when a call begins, open calls
 * whose frames are not among its callers have ended already.
 *
 * All functions except current_line require the GIL. A thread's calls are used only by that thread, and at the stop.
 */
#include "ext.h"
#include "python_calls.h"

#include <pthread.h>
#include <string.h>

#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/collector.h>

#define C_CALL 1u  /* flag in call.frame: a C function, called by the frame */
#define HIDDEN 2u  /* nothing below it is recorded */
#define OPEN_TICKS UINT64_MAX /* later than any stop */
#define NO_SESSION UINT64_MAX

/* Identifies a C function: its definition, and the type of the object to which it is bound or whose method it is; NULL: none. */
struct method {
	const PyMethodDef *definition;
	PyTypeObject *type;
};

/* An open call. */
struct call {
	uintptr_t frame;       /* with C_CALL, HIDDEN */
	struct ops_slot *slot; /* NULL: lost or hidden */
	uint32_t line;         /* in the caller's source, as in the slot */
	bool is_library;       /* of a library, or a C function called by one */
	bool is_inner;         /* and the caller is also of a library */
};

/* A position in the program from which something was called: its line, and the last C function that was called there, which is
 * mostly the same. */
struct site {
	const PyCodeObject *code;
	int32_t offset;
	uint32_t line;
	struct method method;
	uint32_t function; /* number of the method's function */
};
#define SITE_COUNT 256u

/* Kept across sessions until the thread ends. */
struct calls_thread {
	struct calls_thread *previous, *next;
	struct ops_thread *recorder;
	uint64_t session; /* serial number of the session to which the following members belong */
	struct call *calls;
	uint32_t count, capacity;
	struct site sites[SITE_COUNT];
};

static struct {
	struct ops_python_functions functions;
	const struct ops_collector *collector;
	uint64_t session; /* serial number; 0: none records calls; relaxed atomic */
	uint64_t plain_session; /* the same if all calls are kept, with TSC times; only this is checked on the fast paths; else
	                         * NO_SESSION */
	uint64_t last_session;
	uint64_t start_ticks;
	uint64_t min_ticks;
	uint64_t inner_min_ticks; /* for calls between functions of libraries in which nothing was recorded */
	uint32_t max_depth;
	PyObject *gc_callback; /* in gc.callbacks; NULL unless garbage collections are recorded */
	struct ops_python_function *gc_function;
	pthread_mutex_t threads_lock; /* protects the list; never held while waiting for the GIL */
	struct calls_thread *threads;
} recorder = {.plain_session = NO_SESSION, .threads_lock = PTHREAD_MUTEX_INITIALIZER};

/* In the thread's static block, so that access takes one load. */
static __thread struct calls_thread *this_thread __attribute__((tls_model("initial-exec")));
static pthread_key_t exit_key;

/* --- lines ---------------------------------------------------------------------------------------------------------- */

/* Returns where the position at an offset of some code is stored, if known. */
static inline struct site *find_site(struct calls_thread *thread, const PyCodeObject *code, int offset)
{
	return &thread->sites[(((uintptr_t)code >> 5) ^ (uint32_t)offset / 2) % SITE_COUNT];
}

/* Returns the position of a frame. The frame holds the code; a position of an earlier session is discarded. */
static struct site *python_calls_site_of(struct calls_thread *thread, ops_frame *frame)
{
	PyCodeObject *code = ops_frame_code(frame);
	int offset = ops_frame_offset(frame);
	struct site *site = find_site(thread, code, offset);

	if (site->code != code || site->offset != offset) {
		int line = PyCode_Addr2Line(code, offset);
		*site = (struct site){.code = code, .offset = offset, .line = line > 0 ? (uint32_t)line : 0};
	}
	return site;
}

static uint32_t line_of(struct calls_thread *thread, ops_frame *frame)
{
	return python_calls_site_of(thread, frame)->line;
}

static ops_frame *python_calls_frame_of(const struct call *call)
{
	return (ops_frame *)(call->frame & ~(uintptr_t)(C_CALL | HIDDEN)); /* frames are aligned to words */
}

/* Returns the current line of a thread that is not in a C function. The frame of a call whose end was missed is no longer valid,
 * so this is checked first. */
static __attribute__((noinline)) uint32_t running_line(struct calls_thread *thread, const struct call *call)
{
	PyThreadState *state = PyGILState_GetThisThreadState();
	ops_frame *frame = state ? ops_frame_current(state) : NULL;

	while (frame && frame != python_calls_frame_of(call))
		frame = ops_frame_caller(frame);
	return frame ? line_of(thread, frame) : 0;
}

/* The function behind ops_call_line, mostly without the GIL: uses the thread's own calls, and frames that do not change because
 * the thread is here. */
static uint32_t current_line(void)
{
	struct calls_thread *thread = this_thread;
	const struct call *call;

	if (!thread || !__atomic_load_n(&thread->session, __ATOMIC_RELAXED) || !thread->count)
		return 0;
	call = &thread->calls[thread->count - 1];
	return OPS_LIKELY(call->frame & (C_CALL | HIDDEN)) ? call->line : running_line(thread, call);
}

/* --- threads -------------------------------------------------------------------------------------------------------- */

/* An open call gets no end within the session, so that its block can be released. The list must be locked. */
static void abandon_calls(struct calls_thread *thread)
{
	for (uint32_t i = 0; thread->session && i < thread->count; i++)
		if (thread->calls[i].slot)
			ops_slot_close(thread->calls[i].slot, OPEN_TICKS, 0);
	__atomic_store_n(&thread->session, 0, __ATOMIC_RELAXED);
}

static void python_calls_thread_exit(void *argument)
{
	struct calls_thread *thread = argument;

	pthread_mutex_lock(&recorder.threads_lock);
	if (thread->previous)
		thread->previous->next = thread->next;
	else
		recorder.threads = thread->next;
	if (thread->next)
		thread->next->previous = thread->previous;
	abandon_calls(thread);
	pthread_mutex_unlock(&recorder.threads_lock);
	this_thread = NULL;
	PyMem_RawFree(thread->calls);
	PyMem_RawFree(thread);
}

static struct calls_thread *new_thread(void)
{
	struct ops_thread *of_core = recorder.collector->thread();
	struct calls_thread *thread = of_core ? PyMem_RawCalloc(1, sizeof(*thread)) : NULL;

	if (!thread || pthread_setspecific(exit_key, thread) != 0) {
		PyMem_RawFree(thread);
		return NULL;
	}
	thread->recorder = of_core;
	pthread_mutex_lock(&recorder.threads_lock);
	thread->next = recorder.threads;
	if (thread->next)
		thread->next->previous = thread;
	recorder.threads = thread;
	pthread_mutex_unlock(&recorder.threads_lock);
	return this_thread = thread;
}

/* --- calls ---------------------------------------------------------------------------------------------------------- */

/* Reserves room for one more call. Returns false if out of memory; then a record is lost. */
static bool python_calls_grow(struct calls_thread *thread)
{
	uint32_t capacity = thread->capacity ? thread->capacity * 2 : 128;
	struct call *calls = PyMem_RawRealloc(thread->calls, capacity * sizeof(*calls));

	if (!calls) {
		__atomic_store_n(&thread->recorder->lost, thread->recorder->lost + 1, __ATOMIC_RELAXED);
		return false;
	}
	thread->calls = calls;
	thread->capacity = capacity;
	return true;
}

/* Fills the slot of a call that begins, and publishes it. */
OPS_ALWAYS_INLINE void python_calls_begin(struct ops_slot *slot, struct ops_thread *thread, uint32_t function, uint32_t line,
                                          uint64_t start_ticks)
{
	slot->owner = NULL;
	slot->end_ticks = 0;
	slot->sequence_nr = -1;
	slot->name = function;
	slot->call_line = line;
	slot->forward_thread = 0;
	slot->end_thread = 0;
	slot->kind = OPS_SLOT_PYTHON;
	slot->scope = 0;
	slot->flags = 0;
	slot->start_ticks = start_ticks;
	ops_publish(thread);
}

static inline struct call *python_calls_innermost(struct calls_thread *thread)
{
	return thread->count ? &thread->calls[thread->count - 1] : NULL;
}

/* Appends a call to the open ones; room must have been reserved. */
OPS_ALWAYS_INLINE void append_call(struct calls_thread *thread, uintptr_t frame, struct ops_slot *slot, uint32_t line,
                                   bool of_library)
{
	const struct call *caller = python_calls_innermost(thread);
	const bool by_library = caller && caller->is_library;
	const bool is_library = frame & C_CALL ? by_library : of_library;

	thread->calls[thread->count++] = (struct call){frame, slot, line, is_library, is_library && by_library};
}

/* Opens a call; the caller has handled the calls below it. */
OPS_ALWAYS_INLINE void python_calls_push(struct calls_thread *thread, const struct ops_python_function *function,
                                         uintptr_t frame, uint32_t line, uint64_t start_ticks)
{
	const struct ops_collector *collector = recorder.collector;
	uint64_t epoch = ops_collector_epoch(collector);
	struct ops_slot *slot = NULL;

	if (OPS_UNLIKELY(thread->count == thread->capacity) && !python_calls_grow(thread))
		return;
	if (OPS_UNLIKELY(function->rule == OPS_PYTHON_HIDE))
		frame |= HIDDEN;
	else if (OPS_LIKELY(epoch != 0)) {
		ops_note_context_again(collector, thread->recorder, epoch);
		slot = ops_reserve(collector, thread->recorder, epoch, 0);
	}
	append_call(thread, frame, slot, line, function->is_library);
	if (OPS_LIKELY(slot != NULL))
		python_calls_begin(slot, thread->recorder, function->number, line,
		                   start_ticks ? start_ticks : ops_ticks(collector->tsc));
}

static bool is_last_slot(const struct ops_thread *thread, const struct ops_slot *slot)
{
	return thread->reserved_slots && slot == &thread->block->slots[thread->reserved_slots - 1];
}

/* Drops a call that was too short: removes its slot if it is the thread's last record, else marks it. The stop cannot read the
 * slot meanwhile, because that requires the GIL; but once a slot of an earlier block is closed, a ring may reuse the block. */
static void end_short_call(struct ops_thread *thread, struct ops_slot *slot, uint64_t ticks)
{
	bool is_last = is_last_slot(thread, slot);

	if (!is_last)
		slot->flags |= OPS_SLOT_DROPPED;
	ops_slot_close(slot, ticks, thread->number);
	if (is_last) {
		thread->reserved_slots--;
		ops_publish(thread);
	}
}

/* Returns whether a call of this duration is dropped. */
static bool is_too_short(const struct calls_thread *thread, const struct call *call, uint64_t ticks)
{
	return ticks < recorder.min_ticks ||
	       (call->is_inner && ticks < recorder.inner_min_ticks && is_last_slot(thread->recorder, call->slot));
}

static void python_calls_pop(struct calls_thread *thread)
{
	const struct call *call = &thread->calls[--thread->count];
	struct ops_slot *slot = call->slot;
	uint64_t ticks;

	if (!slot)
		return;
	ticks = ops_ticks(recorder.collector->tsc);
	if (OPS_UNLIKELY(is_too_short(thread, call, ticks - slot->start_ticks)))
		end_short_call(thread->recorder, slot, ticks);
	else
		ops_slot_close(slot, ticks, thread->recorder->number);
}

static struct ops_python_function *python_calls_function_of(PyCodeObject *code, ops_frame *frame)
{
	struct ops_python_function *function = ops_python_find(&recorder.functions, code, NULL);

	return OPS_LIKELY(function != NULL) ? function : ops_python_add_code(&recorder.functions, code, frame);
}

/* Opens the call of an import, which is recorded and hides the calls inside. */
static void push_import(struct calls_thread *thread, ops_frame *frame, uint32_t line, uint64_t start_ticks)
{
	PyObject *module = ops_frame_first_argument(frame);
	struct ops_python_function *function = module && PyUnicode_Check(module) ? ops_python_import_of(&recorder.functions, module) : NULL;

	if (function)
		python_calls_push(thread, function, (uintptr_t)frame | HIDDEN, line, start_ticks);
}

/* Opens the calls of `frame` and its callers at the session's start, because they began before recording. */
static void open_frames(struct calls_thread *thread, ops_frame *innermost_frame)
{
	size_t count = 0;
	ops_frame **frames;

	for (ops_frame *frame = innermost_frame; frame; frame = ops_frame_caller(frame))
		count++;
	frames = PyMem_RawMalloc((count + 1) * sizeof(ops_frame *));
	if (!frames)
		return;
	for (ops_frame *frame = innermost_frame; frame; frame = ops_frame_caller(frame))
		frames[--count] = frame;
	do {
		struct ops_python_function *function;
		uint32_t line;

		if (!innermost_frame || (recorder.max_depth && thread->count >= recorder.max_depth))
			break;
		function = python_calls_function_of(ops_frame_code(frames[count]), frames[count]);
		line = thread->count ? line_of(thread, python_calls_frame_of(&thread->calls[thread->count - 1])) : 0;
		if (function && function->rule == OPS_PYTHON_IMPORT) {
			push_import(thread, frames[count], line, recorder.start_ticks);
			break;
		}
		if (function && function->rule == OPS_PYTHON_RECORD) /* a hiding call has hidden the calls below it already */
			python_calls_push(thread, function, (uintptr_t)frames[count], line, recorder.start_ticks);
	} while (frames[count++] != innermost_frame);
	PyMem_RawFree(frames);
}

/* Returns this thread's calls; NULL if nothing is to be recorded. On the first use, `open` and its callers are opened. */
static inline struct calls_thread *current_thread(ops_frame *open)
{
	struct calls_thread *thread = this_thread;

	if (OPS_LIKELY(thread && thread->session == recorder.session))
		return thread;
	if (!recorder.session || (!thread && !(thread = new_thread())))
		return NULL;
	thread->session = recorder.session;
	thread->count = 0;
	memset(thread->sites, 0, sizeof(thread->sites));
	open_frames(thread, open);
	return thread;
}

/* Returns whether a frame is, or called, the one at `from`. */
static bool leads_to(const ops_frame *frame, ops_frame *from)
{
	while (from && from != frame)
		from = ops_frame_caller(from);
	return from != NULL;
}

/* Finds the innermost call whose frame is `caller` or one of its callers, and returns its current line; ends the calls above it,
 * whose ends were missed. */
static uint32_t python_calls_finalize(struct calls_thread *thread, ops_frame *caller)
{
	struct call *call;

	while ((call = python_calls_innermost(thread)) && !leads_to(python_calls_frame_of(call), caller))
		python_calls_pop(thread);
	if (!call)
		return 0;
	return call->frame & C_CALL ? call->line : line_of(thread, python_calls_frame_of(call));
}

/* Returns the line from which `caller` makes the current call. */
static inline uint32_t calling_line(struct calls_thread *thread, ops_frame *caller)
{
	struct call *call = python_calls_innermost(thread);

	if (OPS_LIKELY(call && python_calls_frame_of(call) == caller))
		return call->frame & C_CALL ? call->line : line_of(thread, caller);
	return python_calls_finalize(thread, caller);
}

static inline bool is_too_deep(struct calls_thread *thread)
{
	struct call *call = python_calls_innermost(thread);

	return (call && (call->frame & HIDDEN)) ||
	       OPS_UNLIKELY(recorder.max_depth != 0 && thread->count >= recorder.max_depth);
}

void ops_python_enter(ops_frame *frame, PyCodeObject *code)
{
	ops_frame *caller = ops_frame_caller(frame);
	struct calls_thread *thread = current_thread(caller);
	struct ops_python_function *function;

	if (OPS_UNLIKELY(!thread || is_too_deep(thread)))
		return;
	function = python_calls_function_of(code, frame);
	if (OPS_UNLIKELY(!function || function->rule == OPS_PYTHON_SKIP))
		return;
	if (OPS_UNLIKELY(function->rule == OPS_PYTHON_IMPORT))
		push_import(thread, frame, calling_line(thread, caller), 0);
	else
		python_calls_push(thread, function, (uintptr_t)frame, calling_line(thread, caller), 0);
}

/* Ends the call of `frame` and all above it, if it is open. */
static void leave_any(struct calls_thread *thread, uintptr_t frame)
{
	uint32_t at = thread->count;

	while (at && (thread->calls[at - 1].frame & ~(uintptr_t)HIDDEN) != frame)
		at--;
	while (at && thread->count >= at)
		python_calls_pop(thread);
}

void ops_python_leave(ops_frame *frame)
{
	struct calls_thread *thread = current_thread(frame);
	struct call *call = thread ? python_calls_innermost(thread) : NULL;

	if (OPS_LIKELY(call && call->frame == (uintptr_t)frame))
		python_calls_pop(thread);
	else if (call)
		leave_any(thread, (uintptr_t)frame);
}

/* Returns the C function that is called; without a definition if it is not one. */
static inline struct method method_of(PyObject *callable)
{
	PyObject *self;

	if (Py_IS_TYPE(callable, &PyMethodDescr_Type))
		return (struct method){((PyMethodDescrObject *)callable)->d_method, PyDescr_TYPE(callable)};
	if (!PyCFunction_Check(callable))
		return (struct method){NULL, NULL};
	self = ((PyCFunctionObject *)callable)->m_self;
	return (struct method){((PyCFunctionObject *)callable)->m_ml, self ? Py_TYPE(self) : NULL};
}

static struct ops_python_function *function_of_method(struct method method)
{
	struct ops_python_function *function = ops_python_find(&recorder.functions, method.definition, method.type);

	return OPS_LIKELY(function != NULL)
		? function
		: ops_python_add_method(&recorder.functions, method.definition, method.type);
}

/* Returns whether the calls of a frame's code are not recorded. */
static bool is_skipped(ops_frame *frame)
{
	struct ops_python_function *function = python_calls_function_of(ops_frame_code(frame), frame);

	return !function || function->rule != OPS_PYTHON_RECORD;
}

static __attribute__((noinline)) void call_any(ops_frame *frame, PyObject *callable)
{
	struct calls_thread *thread = current_thread(frame);
	const struct method method = method_of(callable);
	struct ops_python_function *function;
	struct call *call;

	if (OPS_UNLIKELY(!thread || !method.definition || is_too_deep(thread)))
		return;
	function = function_of_method(method);
	if (!function || function->rule != OPS_PYTHON_RECORD)
		return;
	call = python_calls_innermost(thread);
	if (OPS_LIKELY(call && call->frame == (uintptr_t)frame)) {
		struct site *site = python_calls_site_of(thread, frame);

		site->method = method;
		site->function = function->number;
		python_calls_push(thread, function, (uintptr_t)frame | C_CALL, site->line, 0);
		return;
	}
	if (is_skipped(frame))
		return;
	leave_any(thread, (uintptr_t)frame | C_CALL); /* it never returned */
	python_calls_push(thread, function, (uintptr_t)frame | C_CALL, calling_line(thread, frame), 0);
}

/* Returns room for one more call if none has to be allocated. */
static inline struct ops_slot *reserve_in_place(const struct calls_thread *thread)
{
	struct ops_thread *of_core = thread->recorder;

	if (OPS_UNLIKELY(thread->count == thread->capacity || ops_next_slot_end(of_core) > of_core->payload_start ||
			 of_core->epoch != ops_collector_epoch(recorder.collector)))
		return NULL;
	return ops_reserve_in_block(of_core, 0);
}

/* Opens a call like call_any, if its function is the one that was called last at this position. A C function may take no longer
 * than a few of ours, so this path, which nearly all calls take, is short and calls nothing. */
static inline bool call_known(struct calls_thread *thread, ops_frame *frame, PyObject *callable)
{
	const PyCodeObject *code = ops_frame_code(frame);
	const int offset = ops_frame_offset(frame);
	const struct site *site = find_site(thread, code, offset);
	struct ops_slot *slot;

	if (Py_IS_TYPE(callable, &PyCFunction_Type) || Py_IS_TYPE(callable, &PyMethodDescr_Type)) {
		const struct method method = method_of(callable);

		if (OPS_LIKELY(site->method.definition == method.definition && site->method.type == method.type &&
			       site->code == code && site->offset == offset) &&
		    OPS_LIKELY((slot = reserve_in_place(thread)) != NULL)) {
			append_call(thread, (uintptr_t)frame | C_CALL, slot, site->line, false);
			python_calls_begin(slot, thread->recorder, site->function, site->line, ops_ticks(1));
			return true;
		}
	}
	return false;
}

void ops_python_call(ops_frame *frame, PyObject *callable)
{
	struct calls_thread *thread = this_thread;

	if (OPS_UNLIKELY(!thread || thread->session != recorder.plain_session || !thread->count ||
			 thread->calls[thread->count - 1].frame != (uintptr_t)frame || !call_known(thread, frame, callable)))
		call_any(frame, callable);
}

static __attribute__((noinline)) void return_any(ops_frame *frame)
{
	struct calls_thread *thread = current_thread(frame);
	const struct call *call = thread ? python_calls_innermost(thread) : NULL;

	if (call && call->frame == ((uintptr_t)frame | C_CALL))
		python_calls_pop(thread);
}

void ops_python_return(ops_frame *frame)
{
	struct calls_thread *thread = this_thread;

	if (OPS_LIKELY(thread && thread->session == recorder.plain_session && thread->count)) {
		const struct call *call = &thread->calls[thread->count - 1];

		if (OPS_LIKELY(call->frame == ((uintptr_t)frame | C_CALL) && call->slot && !call->is_inner)) {
			thread->count--;
			ops_slot_close(call->slot, ops_ticks(1), thread->recorder->number);
			return;
		}
	}
	return_any(frame);
}

/* --- garbage collection --------------------------------------------------------------------------------------------- */

/* gc.callbacks calls it with (phase, info). A collection is recorded as a C function called by the running frame. */
static PyObject *on_collection(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	ops_frame *frame = ops_frame_current(PyThreadState_Get());
	struct calls_thread *thread = current_thread(frame);

	(void)self;
	if (!thread || count < 1 || !PyUnicode_Check(args[0]))
		Py_RETURN_NONE;
	if (PyUnicode_CompareWithASCIIString(args[0], "stop") == 0)
		leave_any(thread, (uintptr_t)frame | C_CALL);
	else if (recorder.gc_function && !is_too_deep(thread))
		python_calls_push(thread, recorder.gc_function, (uintptr_t)frame | C_CALL, current_line(), 0);
	Py_RETURN_NONE;
}

static PyMethodDef collection_method = {"opstrobe_collection", (PyCFunction)(void (*)(void))on_collection, METH_FASTCALL,
					NULL};

static PyObject *gc_callbacks(void)
{
	PyObject *gc = PyImport_ImportModule("gc");
	PyObject *callbacks = gc ? PyObject_GetAttrString(gc, "callbacks") : NULL;

	Py_XDECREF(gc);
	return callbacks;
}

static int watch_collections(void)
{
	PyObject *callbacks = gc_callbacks();
	PyObject *callback = callbacks ? PyCFunction_New(&collection_method, NULL) : NULL;

	recorder.gc_function = ops_python_add_other(&recorder.functions, &collection_method, "Python GC");
	if (callback && PyList_Check(callbacks) && PyList_Append(callbacks, callback) == 0)
		recorder.gc_callback = Py_NewRef(callback);
	Py_XDECREF(callback);
	Py_XDECREF(callbacks);
	return recorder.gc_callback ? 0 : -1;
}

static void unwatch_collections(void)
{
	PyObject *callbacks = recorder.gc_callback ? gc_callbacks() : NULL;

	for (Py_ssize_t i = callbacks && PyList_Check(callbacks) ? PyList_GET_SIZE(callbacks) : 0; i-- > 0;)
		if (PyList_GET_ITEM(callbacks, i) == recorder.gc_callback)
			PySequence_DelItem(callbacks, i);
	Py_XDECREF(callbacks);
	Py_CLEAR(recorder.gc_callback);
	recorder.gc_function = NULL;
}

/* --- lifetime ------------------------------------------------------------------------------------------------------- */

/* Converts a duration to ticks, in which durations are compared. */
static uint64_t ticks_of(uint64_t duration_ns)
{
	int64_t begin_ns, passed_ns;
	uint64_t first, last;

	if (!duration_ns || !recorder.collector->tsc)
		return duration_ns;
	begin_ns = ops_clock_read_ns(CLOCK_MONOTONIC);
	first = ops_ticks(1);
	do {
		passed_ns = ops_clock_read_ns(CLOCK_MONOTONIC) - begin_ns;
		last = ops_ticks(1);
	} while (passed_ns < 1000000);
	return (uint64_t)((double)duration_ns * (double)(last - first) / (double)passed_ns);
}

/* A forked child has no session, and only the calling thread. */
static PyObject *after_fork(PyObject *self, PyObject *ignored)
{
	(void)self, (void)ignored;
	pthread_mutex_init(&recorder.threads_lock, NULL);
	ops_python_calls_stop(NULL);
	Py_RETURN_NONE;
}

static PyMethodDef fork_method = {"opstrobe_after_fork", after_fork, METH_NOARGS, NULL};

/* Called once in a process. */
static int python_calls_prepare(void)
{
	static bool prepared;
	PyObject *os, *callback, *keywords, *none, *done = NULL;

	if (prepared)
		return 0;
	if (pthread_key_create(&exit_key, python_calls_thread_exit) != 0) {
		PyErr_SetString(PyExc_RuntimeError, "cannot record Python calls: all thread keys of the process are in use");
		return -1;
	}
	os = PyImport_ImportModule("os");
	callback = PyCFunction_New(&fork_method, NULL);
	keywords = callback ? Py_BuildValue("{sO}", "after_in_child", callback) : NULL;
	none = PyTuple_New(0);
	if (os && keywords && none) {
		PyObject *method = PyObject_GetAttrString(os, "register_at_fork");

		done = method ? PyObject_Call(method, none, keywords) : NULL;
		Py_XDECREF(method);
	}
	Py_XDECREF(os);
	Py_XDECREF(callback);
	Py_XDECREF(keywords);
	Py_XDECREF(none);
	Py_XDECREF(done);
	prepared = done != NULL;
	return prepared ? 0 : -1;
}

int ops_python_calls_start(struct ops_python_options *options, uint64_t start_ticks)
{
	struct ops_python_filter filter = options->filter;

	options->filter = (struct ops_python_filter){0};
	recorder.functions.filter = filter;
	recorder.collector = ops_collector_get();
	if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
		PyErr_SetString(PyExc_RuntimeError, "Python calls can be recorded in the main interpreter alone");
		goto failed;
	}
	if (python_calls_prepare() < 0)
		goto failed;
	recorder.start_ticks = start_ticks;
	recorder.min_ticks = ticks_of(options->min_duration_ns);
	recorder.inner_min_ticks = ticks_of(options->library_min_duration_ns);
	recorder.functions.filter.find_libraries = recorder.inner_min_ticks != 0;
	recorder.max_depth = options->max_depth;
	__atomic_store_n(&recorder.session, ++recorder.last_session, __ATOMIC_RELAXED);
	if (recorder.collector->tsc && !recorder.min_ticks && !recorder.max_depth)
		recorder.plain_session = recorder.session;
	current_thread(ops_frame_current(PyThreadState_Get())); /* the callers of this function are open */
	if ((options->record_gc && watch_collections() < 0) || ops_python_hooks_install() < 0)
		goto failed;
	ops_set_call_line(current_line);
	return 0;
failed:
	ops_python_calls_stop(NULL);
	return -1;
}

void ops_python_calls_stop(struct ops_recording *recording)
{
	PyObject *type, *value, *traceback;

	PyErr_Fetch(&type, &value, &traceback);
	if (recorder.session) {
		ops_set_call_line(NULL);
		__atomic_store_n(&recorder.session, 0, __ATOMIC_RELAXED);
		recorder.plain_session = NO_SESSION;
		ops_python_hooks_remove();
		unwatch_collections();
		pthread_mutex_lock(&recorder.threads_lock);
		for (struct calls_thread *thread = recorder.threads; thread; thread = thread->next)
			abandon_calls(thread);
		pthread_mutex_unlock(&recorder.threads_lock);
		if (recording)
			ops_python_add_functions(&recorder.functions, recording);
	}
	ops_python_forget(&recorder.functions);
	PyErr_Restore(type, value, traceback);
}
