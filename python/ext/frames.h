/* SPDX-License-Identifier: Apache-2.0
 *
 * The interpreter's frames, CPython 3.10 to 3.14: which one runs on a thread, who called it, and where it stands. From 3.11
 * on these are the interpreter's own records, of which its frame objects are made; to make one for each call would cost
 * more than all that we do. The one place that reads CPython's internal headers.
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
#pragma GCC diagnostic pop
#undef Py_BUILD_CORE
typedef struct _PyInterpreterFrame ops_frame;
#define OPS_FRAME_END localsplus /* what follows differs in length */
#else
typedef PyFrameObject ops_frame;
#define OPS_FRAME_END f_localsplus
#endif

/* Whether it only marks where C code called the interpreter. */
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

/* The next one outwards, of C code or not. */
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

/* Borrowed. */
static inline PyCodeObject *ops_frame_code(ops_frame *frame)
{
#if PY_VERSION_HEX >= 0x030d0000
	return _PyFrame_GetCode(frame);
#else
	return frame->f_code;
#endif
}

/* Its first argument, borrowed. */
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

/* Where it stands: the offset of its instruction in bytes, negative before the first. */
static inline int ops_frame_offset(ops_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
	return _PyInterpreterFrame_LASTI(frame) * (int)sizeof(_Py_CODEUNIT);
#else
	return frame->f_lasti * (int)sizeof(_Py_CODEUNIT);
#endif
}

/* The frame of a frame object that runs. For profile functions, which are not used later. */
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
