/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter's frames, CPython 3.10 to 3.14: the current frame of a thread, its callers, and their positions. Since 3.11
 * these are the interpreter's internal records, from which it creates frame objects; creating one for each call would cost more
 * than everything else here. This is the only file that uses CPython's internal headers.
 */
#ifndef OPS_EXT_FRAMES_H
#define OPS_EXT_FRAMES_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

#include <stdbool.h>

#if PY_VERSION_HEX >= 0x030b0000
#define Py_BUILD_CORE 1
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#pragma GCC diagnostic ignored "-Wold-style-definition"
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_interpframe.h>
#else
#include <internal/pycore_frame.h>
#endif
#if PY_VERSION_HEX >= 0x030c0000
#undef _PyGC_FINALIZED /* which the public headers of 3.12 define, too */
#include <internal/pycore_interp.h>
#endif
#pragma GCC diagnostic pop
#undef Py_BUILD_CORE
typedef struct _PyInterpreterFrame ops_frame;
#define OPS_FRAME_END localsplus /* the rest has a variable length */
#else
typedef PyFrameObject ops_frame;
#define OPS_FRAME_END f_localsplus
#endif

/* Returns the thread that holds the GIL of the interpreter; NULL: none, or this Python has no GIL. Any thread may call it: each
 * word is read at once, and its value may be outdated by then. */
static inline const PyThreadState *ops_gil_holder(const PyInterpreterState *interpreter)
{
#if defined(Py_GIL_DISABLED)
	(void)interpreter;
	return NULL;
#elif PY_VERSION_HEX >= 0x030d0000
	const struct _gil_runtime_state *gil = interpreter->ceval.gil;

	if (!gil || __atomic_load_n(&gil->locked, __ATOMIC_ACQUIRE) <= 0)
		return NULL;
	return __atomic_load_n(&gil->last_holder, __ATOMIC_RELAXED);
#elif PY_VERSION_HEX >= 0x030c0000
	const struct _gil_runtime_state *gil = interpreter->ceval.gil;

	if (!gil || atomic_load_explicit(&gil->locked._value, memory_order_acquire) <= 0)
		return NULL;
	return (const PyThreadState *)atomic_load_explicit(&gil->last_holder._value, memory_order_relaxed);
#else
	(void)interpreter;
	return _PyThreadState_UncheckedGet();
#endif
}

/* Returns whether the frame only marks where C code called the interpreter. */
static inline bool ops_frame_is_of_c(const ops_frame *frame)
{
#if PY_VERSION_HEX >= 0x030e0000
	return frame->owner >= FRAME_OWNED_BY_INTERPRETER;
#elif PY_VERSION_HEX >= 0x030c0000
	return frame->owner == FRAME_OWNED_BY_CSTACK;
#else
	(void)frame;
	return false;
#endif
}

/* Returns the calling frame, of C code or not. */
static inline ops_frame *ops_frame_previous(const ops_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
	return frame->previous;
#else
	return frame->f_back;
#endif
}

static inline ops_frame *ops_frame_of_python(ops_frame *frame)
{
	while (frame && ops_frame_is_of_c(frame))
		frame = ops_frame_previous(frame);
	return frame;
}

static inline ops_frame *ops_frame_current(PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030d0000
	return ops_frame_of_python(thread->current_frame);
#elif PY_VERSION_HEX >= 0x030b0000
	return ops_frame_of_python(thread->cframe->current_frame);
#else
	return thread->frame;
#endif
}

static inline ops_frame *ops_frame_caller(ops_frame *frame)
{
	return ops_frame_of_python(ops_frame_previous(frame));
}

/* Returns its code object, borrowed. */
static inline PyCodeObject *ops_frame_code(ops_frame *frame)
{
#if PY_VERSION_HEX >= 0x030d0000
	return _PyFrame_GetCode(frame);
#else
	return frame->f_code;
#endif
}

/* Returns its first argument, borrowed. */
static inline PyObject *ops_frame_first_argument(ops_frame *frame)
{
#if PY_VERSION_HEX >= 0x030e0000
	return PyStackRef_AsPyObjectBorrow(frame->localsplus[0]);
#elif PY_VERSION_HEX >= 0x030b0000
	return frame->localsplus[0];
#else
	return frame->f_localsplus[0];
#endif
}

/* Returns its position: the offset of its instruction in bytes; negative before the first. */
static inline int ops_frame_offset(ops_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
	return _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
#else
	return frame->f_lasti * (int)sizeof(_Py_CODEUNIT);
#endif
}

/* Returns the frame of a running frame object. For profile functions, which do not use it later. */
#if PY_VERSION_HEX < 0x030c0000
static inline ops_frame *ops_frame_of_object(PyFrameObject *object)
{
#if PY_VERSION_HEX >= 0x030b0000
	return object->f_frame;
#else
	return object;
#endif
}
#endif

#endif
