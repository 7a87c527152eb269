/* SPDX-License-Identifier: Apache-2.0
 *
 * The Python interface to watching this process for incidents (opstrobe/internal/watch.h), and reports on them.
 */
#include "ext.h"

#include <limits.h>
#include <string.h>

#include <opstrobe/common.h>
#include <opstrobe/internal/clock.h>
#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/incidents.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/internal/watch.h>

#include "bridge.h"
#include "module_calls.h"
#include "stack_reader.h"

/* "O&": a set of names as bits. */
static int to_triggers(PyObject *value, void *ret_triggers)
{
	PyObject *names = PySequence_Fast(value, "triggers must be a sequence of str");
	uint32_t triggers = 0;

	for (Py_ssize_t i = 0; names && i < PySequence_Fast_GET_SIZE(names); i++) {
		Py_ssize_t size;
		const char *name = PyUnicode_AsUTF8AndSize(PySequence_Fast_GET_ITEM(names, i), &size);
		enum ops_trigger trigger = name ? ops_trigger_find(name, (size_t)size) : OPS_TRIGGER_COUNT;

		if (name && trigger == OPS_TRIGGER_COUNT)
			PyErr_Format(PyExc_ValueError, "unknown trigger '%s'", name);
		if (trigger == OPS_TRIGGER_COUNT) {
			Py_DECREF(names);
			return 0;
		}
		triggers |= 1u << trigger;
	}
	if (!names)
		return 0;
	Py_DECREF(names);
	*(uint32_t *)ret_triggers = triggers;
	return 1;
}

static uint64_t nanoseconds(double seconds)
{
	return seconds > 0 ? (uint64_t)(seconds * 1e9) : 0;
}

/* Sets how much the session records, from the next operator and call on. */
static void watch_set_detail(enum ops_detail detail, bool frees, bool operators)
{
	const struct ops_torch_bridge *bridge = ops_ext_bridge();
	bool allocations = detail >= OPS_DETAIL_ALLOCATIONS;

	if (bridge)
		bridge->set_detail(operators || detail >= OPS_DETAIL_ALL, operators || detail >= OPS_DETAIL_RANGES,
		                   allocations ? OPS_ALLOCATIONS_ALL : frees ? OPS_ALLOCATIONS_FREES : OPS_ALLOCATIONS_NONE);
	ops_ext_modules_pause(detail < OPS_DETAIL_MODULES);
	ops_ext_tensor_watch_pause(!allocations);
}

static int forced_detail = -1; /* by watch_set_detail; -1: none. Protected by the GIL */

/* Removes what takes time even though it records nothing, or puts it back. */
static PyObject *watch_apply_detail(PyObject *module, PyObject *unused)
{
	enum ops_detail detail = forced_detail >= 0 ? (enum ops_detail)forced_detail : ops_watch_usual_detail();
	const struct ops_torch_bridge *bridge = ops_ext_bridge();

	(void)module;
	(void)unused;
	if (bridge)
		bridge->set_state(detail > OPS_DETAIL_STEPS);
	if (ops_ext_modules_suspend(detail < OPS_DETAIL_MODULES) < 0)
		return NULL;
	return PyBool_FromLong(detail >= OPS_DETAIL_ALLOCATIONS);
}

/* For tests. */
static PyObject *watch_force_detail(PyObject *module, PyObject *args)
{
	const char *name;
	unsigned group = 1;

	(void)module;
	if (!PyArg_ParseTuple(args, "s|I:watch_set_detail", &name, &group))
		return NULL;
	ops_watch_set_group(group ? group : 1);
	for (int i = 0; i < OPS_DETAIL_COUNT; i++)
		if (strcmp(ops_detail_name((enum ops_detail)i), name) == 0) {
			forced_detail = i;
			watch_set_detail((enum ops_detail)i, i >= OPS_DETAIL_ALLOCATIONS, false);
			Py_RETURN_NONE;
		}
	return PyErr_Format(PyExc_ValueError, "unknown detail '%s'", name);
}

static PyObject *watch_start(PyObject *module, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"incidents", "page", "recording", "process_name", "command", "rank", "world_size", "triggers",
				   "per_hour", "window_s", "hang_s", "min_excess_s", "rss_limit_bytes", "max_bytes", "budget", "read_native", NULL};
	struct ops_watch_options options = {.rank = -1, .read_stacks = ops_stacks_read, .read_own_stack = ops_stack_read_own};
	double window_s = 0, hang_s = 0, min_excess_s = 0, budget = -1;
	unsigned long long rss_limit = 0, max_bytes = 0;
	struct ops_error error;
	enum ops_code code;

	(void)module;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "s|$zzssiiO&ddddKKdz:watch_start", keywords, &options.incidents, &options.page,
					 &options.recording, &options.process_name, &options.command, &options.rank,
					 &options.world_size, to_triggers, &options.triggers, &options.per_hour, &window_s, &hang_s,
					 &min_excess_s, &rss_limit, &max_bytes, &budget, &options.read_native))
		return NULL;
	options.window_ns = nanoseconds(window_s);
	options.hang_ns = nanoseconds(hang_s);
	options.min_excess_ns = nanoseconds(min_excess_s);
	options.rss_limit_bytes = rss_limit;
	options.max_bytes = max_bytes;
	if (budget >= 0) {
		options.set_detail = watch_set_detail;
		options.read_threads_ns = ops_ext_stack_sampler_spent_ns;
		options.budget_ppm = (uint32_t)(budget * 1e6);
	}
	forced_detail = -1;
	ops_stacks_init();
	code = ops_watch_start(&options, &error);
	if (code)
		return ops_ext_raise(&error);
	Py_RETURN_NONE;
}

static PyObject *watch_stop(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	ops_watch_stop();
	Py_END_ALLOW_THREADS
	Py_RETURN_NONE;
}

static PyObject *watch_is_on(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyBool_FromLong(ops_watch_is_on());
}

static PyObject *watch_get_group(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyLong_FromUnsignedLong(ops_watch_group());
}

static PyObject *watch_limit(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyFloat_FromDouble(ops_watch_limit_ns() / 1e9);
}

static PyObject *watch_step_break(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	ops_watch_step_break();
	Py_RETURN_NONE;
}

/* For gc.callbacks: (phase, info). */
static PyObject *watch_collection(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
	(void)module;
	if (count > 0 && PyUnicode_Check(args[0]))
		ops_watch_collection(PyUnicode_CompareWithASCIIString(args[0], "start") == 0);
	Py_RETURN_NONE;
}

static PyObject *watch_set_recording(PyObject *module, PyObject *args)
{
	const char *path;

	(void)module;
	if (!PyArg_ParseTuple(args, "z:watch_set_recording", &path))
		return NULL;
	ops_watch_set_recording(path);
	Py_RETURN_NONE;
}

static PyObject *watch_exit(PyObject *module, PyObject *args)
{
	int status;

	(void)module;
	if (!PyArg_ParseTuple(args, "i:watch_exit", &status))
		return NULL;
	ops_watch_exit(status);
	Py_RETURN_NONE;
}

static PyObject *watch_trigger(PyObject *module, PyObject *args)
{
	const char *name, *members = "";
	Py_ssize_t name_size, size = 0;
	char directory[PATH_MAX];
	enum ops_trigger trigger;
	struct ops_error error;
	enum ops_code code;

	(void)module;
	if (!PyArg_ParseTuple(args, "s#|s#:watch_trigger", &name, &name_size, &members, &size))
		return NULL;
	trigger = ops_trigger_find(name, (size_t)name_size);
	if (trigger == OPS_TRIGGER_COUNT)
		return PyErr_Format(PyExc_ValueError, "unknown trigger '%s'", name);
	Py_BEGIN_ALLOW_THREADS
	code = ops_watch_trigger(trigger, members, (size_t)size, directory, &error);
	Py_END_ALLOW_THREADS
	if (code)
		return ops_ext_raise(&error);
	if (!directory[0])
		Py_RETURN_NONE;
	return PyUnicode_DecodeFSDefault(directory);
}

static PyObject *incidents_directory(PyObject *module, PyObject *unused)
{
	char path[PATH_MAX];

	(void)module;
	(void)unused;
	if (!ops_incidents_default_directory(path, sizeof(path)))
		Py_RETURN_NONE;
	return PyUnicode_DecodeFSDefault(path);
}

static PyObject *black_box_directory(PyObject *module, PyObject *unused)
{
	char path[PATH_MAX];

	(void)module;
	(void)unused;
	ops_black_box_directory(path, sizeof(path));
	return PyUnicode_DecodeFSDefault(path);
}

static PyObject *incidents_adopt(PyObject *module, PyObject *args)
{
	const char *box, *directory;
	size_t count;

	(void)module;
	if (!PyArg_ParseTuple(args, "ss:incidents_adopt", &box, &directory))
		return NULL;
	Py_BEGIN_ALLOW_THREADS
	count = ops_incidents_adopt(box, directory, 0);
	Py_END_ALLOW_THREADS
	return PyLong_FromSize_t(count);
}

static PyMethodDef watch_methods[] = {
	{"watch_start", (PyCFunction)(void (*)(void))watch_start, METH_VARARGS | METH_KEYWORDS,
	 "watch_start(incidents, *, page=None, recording=None, process_name='', command='', rank=-1, world_size=0, triggers=(), "
	 "per_hour=0, window_s=0, hang_s=0, min_excess_s=0, rss_limit_bytes=0, max_bytes=0, budget=-1, read_native=None)\n--\n\n"
	 "Watches this process for incidents, each of which becomes a directory in `incidents`. Zeros mean the default. With a `budget`, a "
	 "share of a step, what recording costs is measured by shadow steps, and detail is left out beyond it (0: never)."},
	{"watch_stop", watch_stop, METH_NOARGS, "watch_stop()\n--\n\nEnds that."},
	{"watch_is_on", watch_is_on, METH_NOARGS, "watch_is_on()\n--\n\nWhether this process is watched."},
	{"watch_group", watch_get_group, METH_NOARGS, "watch_group()\n--\n\nThe number of steps that are recorded as one at present."},
	{"watch_set_detail", watch_force_detail, METH_VARARGS,
	 "watch_set_detail(name, group=1, /)\n--\n\nRecords this detail until the next change: steps, ranges, modules, allocations, operators; "
	 "and `group` steps as one. For tests and benchmarks."},
	{"watch_apply_detail", watch_apply_detail, METH_NOARGS,
	 "watch_apply_detail()\n--\n\nRemoves what is called in each step for detail that is not recorded any more, or puts it back. Returns whether "
	 "allocations are recorded."},
	{"watch_limit", watch_limit, METH_NOARGS, "watch_limit()\n--\n\nThe seconds beyond which a step is slow at present; inf: unknown."},
	{"watch_step_break", watch_step_break, METH_NOARGS, "watch_step_break()\n--\n\nWhat follows belongs to no step."},
	{"watch_collection", (PyCFunction)(void (*)(void))watch_collection, METH_FASTCALL,
	 "watch_collection(phase, info, /)\n--\n\nFor gc.callbacks: a garbage collection begins or ends."},
	{"watch_set_recording", watch_set_recording, METH_VARARGS,
	 "watch_set_recording(path)\n--\n\nThe file that holds the recording from here on; None: there is none."},
	{"watch_exit", watch_exit, METH_VARARGS, "watch_exit(status)\n--\n\nThe process is about to end by os._exit."},
	{"watch_trigger", watch_trigger, METH_VARARGS,
	 "watch_trigger(name, members='')\n--\n\nMakes an incident, with members of the facts (JSON without the braces). Its directory, or "
	 "None if nothing is to be kept."},
	{"incidents_directory", incidents_directory, METH_NOARGS,
	 "incidents_directory()\n--\n\nThe default directory of incidents; None without a home."},
	{"black_box_directory", black_box_directory, METH_NOARGS,
	 "black_box_directory()\n--\n\nThe directory of the black boxes of running processes."},
	{"incidents_adopt", incidents_adopt, METH_VARARGS,
	 "incidents_adopt(box, directory)\n--\n\nMakes incidents of the watch files in `box` whose processes are gone; how many."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_watch(PyObject *module)
{
	return PyModule_AddFunctions(module, watch_methods);
}
