/* SPDX-License-Identifier: Apache-2.0
 *
 * StepMarks: marks where the steps of a program end, for opstrobe/launcher/steps.py, which finds these places. This is called in each
 * step of a training loop, so that in tiny steps its time counts: a step of a group that does not end the group takes a comparison,
 * and reads no clock.
 */
#include "ext.h"

#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/watch.h>

#define OPTIMIZER 2 /* among the sources of steps.py */

struct step_marks {
	PyObject_HEAD
	PyObject *ended;     /* called with the ticks of a step's begin and end; NULL: the watch of this process records it */
	PyObject *due;       /* called about once a second if the watch records steps; NULL: nothing */
	PyObject *optimizer; /* weak reference to the optimizer that steps first; NULL: none yet */
	int source;          /* of the steps so far; worse sources are ignored */
	bool inside;         /* within a step() of the optimizer */
	bool has_begin;
	uint64_t begin_ticks; /* of the current step or group of steps */
	uint32_t pending;     /* steps of the current group that have ended */
};

/* --- marks ------------------------------------------------------------------------------------------------------------ */

static PyObject *marks_record(struct step_marks *self, uint64_t begin_ticks, uint64_t end_ticks)
{
	uint32_t count = self->pending;

	self->pending = 0;
	if (self->ended)
		return PyObject_CallFunction(self->ended, "KK", (unsigned long long)begin_ticks, (unsigned long long)end_ticks);
	if (ops_watch_mark_step(begin_ticks, end_ticks, count) && self->due)
		return PyObject_CallNoArgs(self->due);
	Py_RETURN_NONE;
}

static PyObject *marks_end_step(struct step_marks *self, int source)
{
	uint64_t begin_ticks = self->begin_ticks;

	if (source < self->source)
		Py_RETURN_NONE;
	self->source = source;
	if (self->has_begin && ++self->pending < ops_watch_group() && !self->ended)
		Py_RETURN_NONE;
	self->begin_ticks = ops_ticks(ops_collector_get()->tsc);
	if (self->has_begin)
		return marks_record(self, begin_ticks, self->begin_ticks);
	self->has_begin = true;
	Py_RETURN_NONE;
}

static PyObject *marks_end(PyObject *object, PyObject *source)
{
	long number = PyLong_AsLong(source);

	return PyErr_Occurred() ? NULL : marks_end_step((struct step_marks *)object, (int)number);
}

/* --- steps of optimizers ------------------------------------------------------------------------------------------------ */

/* Returns whether the steps of this optimizer are those of the program: it is the first one that steps, or that one is gone. */
static bool marks_is_chosen(struct step_marks *self, PyObject *optimizer)
{
	PyObject *chosen = self->optimizer ? PyObject_CallNoArgs(self->optimizer) : NULL; /* without a deprecated function */
	bool is_chosen = chosen == optimizer, is_gone = !chosen || chosen == Py_None;

	Py_XDECREF(chosen);
	if (!is_gone)
		return is_chosen;
	Py_XSETREF(self->optimizer, PyWeakref_NewRef(optimizer, NULL));
	PyErr_Clear();
	return self->optimizer != NULL;
}

static bool marks_enter_step(struct step_marks *self, PyObject *optimizer)
{
	if (self->inside || self->source > OPTIMIZER || !marks_is_chosen(self, optimizer))
		return false;
	self->inside = true;
	return true;
}

static PyObject *marks_enter(PyObject *object, PyObject *optimizer)
{
	return PyBool_FromLong(marks_enter_step((struct step_marks *)object, optimizer));
}

static PyObject *marks_leave(PyObject *object, PyObject *unused)
{
	struct step_marks *self = (struct step_marks *)object;

	(void)unused;
	self->inside = false;
	return marks_end_step(self, OPTIMIZER);
}

static PyObject *marks_abandon(PyObject *object, PyObject *unused)
{
	(void)unused;
	((struct step_marks *)object)->inside = false;
	Py_RETURN_NONE;
}

/* --- life --------------------------------------------------------------------------------------------------------------- */

static PyObject *marks_begin(PyObject *object, PyObject *unused)
{
	struct step_marks *self = (struct step_marks *)object;

	(void)unused;
	self->has_begin = true;
	self->pending = 0;
	self->begin_ticks = ops_ticks(ops_collector_get()->tsc);
	Py_RETURN_NONE;
}

static PyObject *marks_break(PyObject *object, PyObject *unused)
{
	(void)unused;
	((struct step_marks *)object)->has_begin = false;
	((struct step_marks *)object)->pending = 0;
	Py_RETURN_NONE;
}

static void marks_set(PyObject **field, PyObject *value)
{
	Py_XSETREF(*field, value == Py_None ? NULL : Py_NewRef(value));
}

static PyObject *marks_restart(PyObject *object, PyObject *args)
{
	struct step_marks *self = (struct step_marks *)object;
	PyObject *ended, *due = Py_None;

	if (!PyArg_ParseTuple(args, "O|O:restart", &ended, &due))
		return NULL;
	marks_set(&self->ended, ended);
	marks_set(&self->due, due);
	self->source = 0;
	return marks_break(object, NULL);
}

static int marks_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct step_marks *self = (struct step_marks *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->ended);
	Py_VISIT(self->due);
	Py_VISIT(self->optimizer);
	return 0;
}

static int marks_clear(PyObject *object)
{
	struct step_marks *self = (struct step_marks *)object;

	Py_CLEAR(self->ended);
	Py_CLEAR(self->due);
	Py_CLEAR(self->optimizer);
	return 0;
}

static void marks_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	marks_clear(object);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMethodDef marks_methods[] = {
	{"restart", marks_restart, METH_VARARGS,
	 "restart(ended, due=None, /)\n--\n\nReports steps from now on to ended(begin_ticks, end_ticks). None: the watch of this process "
	 "records them, several as one if they are tiny, and due() is called about once a second."},
	{"begin", marks_begin, METH_NOARGS, "begin()\n--\n\nThe current step begins now."},
	{"break_", marks_break, METH_NOARGS, "break_()\n--\n\nWhat follows belongs to no step, until one ends."},
	{"end", marks_end, METH_O, "end(source, /)\n--\n\nA step ends now, unless a better source than this one marks steps."},
	{"enter", marks_enter, METH_O,
	 "enter(optimizer, /)\n--\n\nBefore the step() of an optimizer. Returns whether its end is the end of a step: then leave() or "
	 "abandon() must follow."},
	{"leave", marks_leave, METH_NOARGS, "leave()\n--\n\nAfter that step()."},
	{"abandon", marks_abandon, METH_NOARGS, "abandon()\n--\n\nAfter a step() that raised an exception."},
	{NULL, NULL, 0, NULL},
};

static PyMemberDef marks_members[] = {
	{"source", T_INT, offsetof(struct step_marks, source), 0, "The source of steps so far."},
	{"has_begin", T_BOOL, offsetof(struct step_marks, has_begin), READONLY, "Whether the begin of the current step is known."},
	{NULL, 0, 0, 0, NULL},
};

static PyType_Slot marks_slots[] = {
	{Py_tp_doc, "StepMarks()\n--\n\nMarks where the steps of a program end."},
	{Py_tp_new, PyType_GenericNew},
	{Py_tp_dealloc, marks_dealloc},
	{Py_tp_traverse, marks_traverse},
	{Py_tp_clear, marks_clear},
	{Py_tp_methods, marks_methods},
	{Py_tp_members, marks_members},
	{0, NULL},
};

static PyType_Spec marks_spec = {
	.name = "opstrobe._core.StepMarks",
	.basicsize = sizeof(struct step_marks),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
	.slots = marks_slots,
};

/* --- a step() that is marked without Python ------------------------------------------------------------------------------- */

/* In a class, does what the function `python` does, which marks the steps of `inner`: a function of Python around each step takes a
 * microsecond between operators that evict it from the caches. Only direct calls, optimizer.step(), use it; whoever looks at the method
 * gets `python`. */
struct quick_step {
	PyObject_HEAD
	vectorcallfunc call;
	PyObject *marks, *inner, *python;
};

static PyObject *quick_step_call(PyObject *object, PyObject *const *args, size_t count, PyObject *names)
{
	struct quick_step *self = (struct quick_step *)object;
	struct step_marks *marks = (struct step_marks *)self->marks;
	PyObject *result, *left;

	if (!PyVectorcall_NARGS(count) || !marks_enter_step(marks, args[0]))
		return PyObject_Vectorcall(self->inner, args, count, names);
	result = PyObject_Vectorcall(self->inner, args, count, names);
	marks->inside = false;
	left = result ? marks_end_step(marks, OPTIMIZER) : NULL;
	if (!left)
		Py_CLEAR(result);
	Py_XDECREF(left);
	return result;
}

static PyObject *quick_step_get(PyObject *object, PyObject *optimizer, PyObject *type)
{
	PyObject *python = ((struct quick_step *)object)->python;

	return Py_TYPE(python)->tp_descr_get ? Py_TYPE(python)->tp_descr_get(python, optimizer, type) : Py_NewRef(python);
}

static PyObject *quick_step_new(PyTypeObject *type, PyObject *args, PyObject *unused)
{
	const struct ops_ext_state *state = PyType_GetModuleState(type);
	struct quick_step *self;
	PyObject *marks, *inner, *python;

	(void)unused;
	if (!state || !PyArg_ParseTuple(args, "O!OO:QuickStep", state->step_marks, &marks, &inner, &python))
		return NULL;
	self = (struct quick_step *)type->tp_alloc(type, 0);
	if (!self)
		return NULL;
	self->call = quick_step_call;
	self->marks = Py_NewRef(marks);
	self->inner = Py_NewRef(inner);
	self->python = Py_NewRef(python);
	return (PyObject *)self;
}

static int quick_step_traverse(PyObject *object, visitproc visit, void *arg)
{
	struct quick_step *self = (struct quick_step *)object;

	Py_VISIT(Py_TYPE(object));
	Py_VISIT(self->marks);
	Py_VISIT(self->inner);
	Py_VISIT(self->python);
	return 0;
}

static void quick_step_dealloc(PyObject *object)
{
	struct quick_step *self = (struct quick_step *)object;
	PyTypeObject *type = Py_TYPE(object);

	PyObject_GC_UnTrack(object);
	Py_XDECREF(self->marks);
	Py_XDECREF(self->inner);
	Py_XDECREF(self->python);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMemberDef quick_step_members[] = {
	{"__vectorcalloffset__", T_PYSSIZET, offsetof(struct quick_step, call), READONLY, NULL},
	{"python", T_OBJECT_EX, offsetof(struct quick_step, python), READONLY, "The function of which this is the quick form."},
	{NULL, 0, 0, 0, NULL},
};

static PyType_Slot quick_step_slots[] = {
	{Py_tp_doc, "QuickStep(marks, inner, python, /)\n--\n\nMarks the steps of the method `inner`, as the function `python` does."},
	{Py_tp_new, quick_step_new},
	{Py_tp_dealloc, quick_step_dealloc},
	{Py_tp_traverse, quick_step_traverse},
	{Py_tp_call, PyVectorcall_Call},
	{Py_tp_descr_get, quick_step_get},
	{Py_tp_members, quick_step_members},
	{0, NULL},
};

static PyType_Spec quick_step_spec = {
	.name = "opstrobe._core.QuickStep",
	.basicsize = sizeof(struct quick_step),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
	.slots = quick_step_slots,
};

int ops_ext_add_step_marks(PyObject *module)
{
	struct ops_ext_state *state = ops_ext_state_of_module(module);

	if (ops_ext_add_type(module, &marks_spec, &state->step_marks))
		return -1;
	return ops_ext_add_type(module, &quick_step_spec, &state->quick_step);
}
