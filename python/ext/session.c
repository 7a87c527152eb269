/* SPDX-License-Identifier: Apache-2.0
 *
 * Session: one recording of this process, including torch if a bridge is loaded.
 */
#include "views.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/counters.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/internal/snapshot.h>
#include <opstrobe/read.h>
#include <opstrobe/record.h>

#include "bridge.h"
#include "call_stacks.h"
#include "coroutines.h"
#include "devices.h"
#include "python_calls.h"
#include "module_calls.h"

struct session_object {
	PyObject_HEAD
	struct ops_session *session; /* NULL unless running */
	struct ops_recording *recording; /* of an ended session whose trace could not be made for lack of memory; owned */
	pid_t pid;                   /* its process: a forked child has this object but no session */
	bool attached;               /* the bridge records into the session */
	bool modules;                /* calls of modules are requested */
	PyObject *events;            /* tuple of names of counters; NULL: none */
	PyObject *refused;           /* list of counters that the system refuses, with the reason; NULL: none */
	uint32_t device_kinds;       /* requested device activities: set of enum ops_activity_kind */
	struct ops_device_session *devices; /* NULL unless a collector is running */
	enum ops_device_events events_of; /* device whose events are recorded around operators if there is no collector */
	bool times_operators;        /* they are recorded */
	PyObject *device_problem;    /* str: why devices are not recorded, or not completely; NULL: none */
	PyObject *metrics;           /* tuple of names of device counters to sample; NULL: none */
	uint64_t metrics_interval_ns;
	uint32_t metrics_device;
	PyObject *metrics_problem;   /* str: why they are not sampled; NULL: none */
	PyObject *module_parameters;       /* of the recorded modules, from the end until the trace takes them */
	PyObject *spill; /* bytes: the path of the recording file; NULL: none */
	struct ops_record_options record;
	struct ops_torch_options torch;
	bool with_stack;       /* Python calls are recorded */
	bool with_call_stacks; /* call stacks of operators instead */
	struct ops_python_options python; /* the session owns the filter until the start takes it */
};

static int to_bytes(PyObject *value, void *ret_bytes)
{
	unsigned long long bytes = PyLong_AsUnsignedLongLong(value);

	if (bytes == (unsigned long long)-1 && PyErr_Occurred())
		return 0;
	*(uint64_t *)ret_bytes = bytes;
	return 1;
}

/* "O&": a tuple of str, which the filter takes. */
static int to_texts(PyObject *value, void *ret_texts)
{
	if (!PyTuple_Check(value)) {
		PyErr_Format(PyExc_TypeError, "paths must be a tuple of str, not %.100s", Py_TYPE(value)->tp_name);
		return 0;
	}
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
		if (!PyUnicode_Check(PyTuple_GET_ITEM(value, i))) {
			PyErr_SetString(PyExc_TypeError, "paths must be str");
			return 0;
		}
	}
	Py_XSETREF(*(PyObject **)ret_texts, Py_NewRef(value));
	return 1;
}

static void filter_clear(struct ops_python_filter *filter)
{
	Py_CLEAR(filter->path_prefixes);
	Py_CLEAR(filter->include);
	Py_CLEAR(filter->exclude);
	Py_CLEAR(filter->hide);
}

static int session_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"record_shapes", "profile_memory", "all_threads",     "capture_overload_names",
				   "modules",       "record_ids",     "max_bytes",       "prefault_bytes",
				   "stack",         "gc",             "path_prefixes",   "include",
				   "exclude",       "hide",           "max_depth",       "min_duration_ns",
				   "performance_events", "script_modules", "devices",       "metrics",
				   "metrics_interval_ns", "metrics_device", "device_events", "fold_imports",
				   "library_min_duration_ns", "spill", "ring", "ring_ns", "call_stacks", NULL};
	struct session_object *self = (struct session_object *)object;
	int shapes = 0, memory = 0, all = 0, overloads = 0, modules = 0, ids = 0, stack = 0, gc = 0, hierarchy = 0, fold = 0, ring = 0, call_stacks = 0;
	struct ops_record_options record = {.size = sizeof(record)};
	struct ops_python_options python = {0};
	PyObject *events = NULL, *metrics = NULL, *spill = NULL;
	enum ops_device_events device_events = OPS_DEVICE_EVENTS_NONE;
	uint64_t metrics_interval_ns = 0;
	uint32_t devices = 0, metrics_device = 0;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$ppppppO&O&ppO&O&O&O&IO&O!pO&O!O&IO&pO&O&pO&p:Session", keywords, &shapes, &memory,
					 &all, &overloads, &modules, &ids, to_bytes, &record.max_bytes, to_bytes,
					 &record.prefault_bytes, &stack, &gc, to_texts, &python.filter.path_prefixes,
					 to_texts, &python.filter.include, to_texts, &python.filter.exclude,
					 to_texts, &python.filter.hide, &python.max_depth, to_bytes, &python.min_duration_ns,
					 &PyTuple_Type, &events, &hierarchy, ops_ext_to_device_kinds, &devices,
					 &PyTuple_Type, &metrics, to_bytes, &metrics_interval_ns, &metrics_device,
					 ops_ext_to_device_events, &device_events, &fold, to_bytes, &python.library_min_duration_ns,
					 PyUnicode_FSConverter, &spill,
					 &ring, to_bytes, &record.ring_ns, &call_stacks)) {
		filter_clear(&python.filter);
		return -1;
	}
	filter_clear(&self->python.filter);
	python.record_gc = gc;
	python.filter.fold_imports = fold;
	self->with_stack = stack;
	self->with_call_stacks = call_stacks;
	self->python = python;
	Py_XINCREF(events);
	Py_XSETREF(self->events, events);
	Py_XINCREF(metrics);
	Py_XSETREF(self->metrics, metrics);
	self->metrics_interval_ns = metrics_interval_ns;
	self->metrics_device = metrics_device;
	Py_XSETREF(self->spill, spill);
	record.ring = ring;
	self->record = record;
	self->record.spill_path = spill ? PyBytes_AS_STRING(spill) : NULL;
	self->record.keep_spill = true; /* until its trace is written, which this object does not know */
	self->modules = modules;
	self->device_kinds = devices;
	self->events_of = device_events;
	self->torch = (struct ops_torch_options){
		.record_shapes = shapes,
		.profile_memory = memory,
		.all_threads = all,
		.own_memory = ring,
		.script_stacks = stack,
		.script_modules = hierarchy,
		.capture_overload_names = overloads,
		.record_ids = ids,
	};
	return 0;
}

static bool session_is_running(const struct session_object *self)
{
	return self->session && self->pid == getpid();
}

/* Returns whether the session has ended and its trace could not be made for lack of memory. */
static bool is_pending(const struct session_object *self)
{
	return self->recording && self->pid == getpid();
}

static PyObject *session_text_of(const char *text)
{
	return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

/* Adds the records of the device collector to the recording; saves its error. */
static void stop_devices(struct session_object *self, struct ops_recording *recording)
{
	struct ops_device_session *devices = self->devices;
	struct ops_error error;
	enum ops_code code;

	self->devices = NULL;
	if (!devices)
		return;
	Py_BEGIN_ALLOW_THREADS
	code = ops_device_stop(devices, recording, &error);
	Py_END_ALLOW_THREADS if (code) Py_XSETREF(self->device_problem, session_text_of(error.text));
}

/* Borrows the texts of the tuple. */
static int list_metrics(const struct session_object *self, struct ops_cuda_sampling *ret_sampling)
{
	Py_ssize_t count = self->metrics ? PyTuple_GET_SIZE(self->metrics) : 0;
	const char **names = PyMem_Calloc((size_t)count + 1, sizeof(*names));

	*ret_sampling = (struct ops_cuda_sampling){.metrics = names,
	                                           .metric_count = (size_t)count,
	                                           .interval_ns = self->metrics_interval_ns,
	                                           .device = self->metrics_device};
	if (!names)
		return PyErr_NoMemory(), -1;
	for (Py_ssize_t i = 0; i < count; i++) {
		names[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(self->metrics, i));
		if (!names[i]) {
			PyMem_Free(names);
			return -1;
		}
	}
	return 0;
}

/* Starts a collector for devices along with the session. Without one only the host is recorded, and the reason is saved. Returns
 * -1 with an exception set if the metrics to sample are invalid. */
static int start_devices(struct session_object *self)
{
	struct ops_cuda_sampling sampling;
	struct ops_error error;
	enum ops_code code;

	Py_CLEAR(self->device_problem);
	Py_CLEAR(self->metrics_problem);
	if (!self->device_kinds)
		return 0;
	if (list_metrics(self, &sampling) < 0)
		return -1;
	Py_BEGIN_ALLOW_THREADS
	code = ops_cuda_start(self->device_kinds, sampling.metric_count ? &sampling : NULL, &self->devices, &error);
	Py_END_ALLOW_THREADS
	PyMem_Free((void *)sampling.metrics);
	if (code == OPS_INVALID)
		return ops_ext_raise(&error), -1;
	if (code)
		self->device_problem = session_text_of(error.text);
	else if (sampling.problem.code)
		self->metrics_problem = session_text_of(sampling.problem.text);
	return 0;
}

/* Adds the times measured by events around operators to the recording; saves the error. */
static void read_device_times(struct session_object *self, struct ops_recording *recording)
{
	struct ops_bridge_times times;
	char text[sizeof(times.problem) + 100];

	if (!self->times_operators)
		return;
	Py_CLEAR(self->device_problem); /* the reason for the missing collector, known since the start */
	Py_BEGIN_ALLOW_THREADS
	ops_ext_bridge()->pop_device_times(&times);
	if (!times.ns || (recording && ops_recording_set_pair_times(recording, times.ns, times.count, NULL)))
		snprintf(times.problem, sizeof(times.problem), "out of memory");
	free(times.ns);
	Py_END_ALLOW_THREADS
	if (times.failures == 0 && !times.problem[0])
		return;
	snprintf(text, sizeof(text), "%llu calls of the device's events failed, the first with: %s",
		 (unsigned long long)times.failures, times.problem);
	Py_XSETREF(self->device_problem, session_text_of(text));
}

static void stop_collecting(struct session_object *self)
{
	if (self->attached)
		ops_ext_bridge()->detach();
	self->attached = false;
	if (self->torch.counters)
		ops_counters_close();
	self->torch.counters = NULL;
}

/* Ends the running session. On OPS_NO_MEMORY it is still running, though nothing is recorded any more; OPS_STATE if another
 * thread ended it. Python calls whose functions could not be stored for lack of memory count as lost. */
static enum ops_code end_session(struct session_object *self, struct ops_recording **ret_recording, struct ops_error *error)
{
	struct ops_recording *recording = NULL;
	enum ops_code code;

	stop_collecting(self);
	code = ops_session_stop(self->session, &recording, error);
	if (code == OPS_NO_MEMORY)
		return code;
	self->session = NULL;
	stop_devices(self, recording);
	read_device_times(self, recording);
	ops_call_stacks_stop();
	ops_python_calls_stop(recording);
	Py_XSETREF(self->module_parameters, ops_ext_modules_end(recording));
	*ret_recording = recording;
	return code;
}

/* Ends the running session and discards what it recorded. */
static void session_drop_session(struct session_object *self)
{
	stop_collecting(self);
	ops_session_discard(self->session);
	self->session = NULL;
	stop_devices(self, NULL);
	read_device_times(self, NULL);
	ops_call_stacks_stop();
	ops_python_calls_stop(NULL);
	Py_XDECREF(ops_ext_modules_end(NULL));
}

/* Saves the refused names, and the reason for the first. */
static int note_refused(struct session_object *self, uint32_t refused, int os_errno)
{
	PyObject *list = PyList_New(0);
	PyObject *why = list ? PyUnicode_FromString(strerror(os_errno)) : NULL;

	for (Py_ssize_t i = 0; why && i < PyTuple_GET_SIZE(self->events); i++)
		if (refused >> i & 1 && PyList_Append(list, PyTuple_GET_ITEM(self->events, i)) < 0)
			Py_CLEAR(why);
	Py_XSETREF(self->refused, why ? Py_BuildValue("(NN)", list, why) : NULL);
	if (!why)
		Py_XDECREF(list);
	return self->refused ? 0 : -1;
}

/* Opens the requested counters. */
static int open_counters(struct session_object *self)
{
	const char *names[OPS_COUNTERS_MAX + 1] = {0};
	Py_ssize_t count = self->events ? PyTuple_GET_SIZE(self->events) : 0;
	const struct ops_counters *counters;
	struct ops_error error;
	uint32_t refused;
	int os_errno = 0;

	Py_CLEAR(self->refused);
	for (Py_ssize_t i = 0; i < count && i <= OPS_COUNTERS_MAX; i++) {
		names[i] = PyUnicode_AsUTF8(PyTuple_GET_ITEM(self->events, i));
		if (!names[i])
			return -1;
	}
	if (count == 0)
		return 0;
	if (ops_counters_open(names, (size_t)count, &counters, &refused, &os_errno, &error))
		return ops_ext_raise(&error), -1;
	if (counters->count)
		self->torch.counters = counters;
	return refused ? note_refused(self, refused, os_errno) : 0;
}

static bool records_shapes; /* of the last started session */

bool ops_ext_records_shapes(void)
{
	return records_shapes;
}

static PyObject *session_start(PyObject *object, PyObject *ignored)
{
	struct session_object *self = (struct session_object *)object;
	const struct ops_torch_bridge *bridge = ops_ext_bridge();
	struct ops_session *session = NULL;
	const char *refusal;
	struct ops_error error;
	enum ops_code code;
	uint64_t start_ticks;

	(void)ignored;
	Py_BEGIN_ALLOW_THREADS
	self->record.args_are_inputs = self->torch.record_shapes;
	code = ops_session_start(&self->record, &session, &error);
	Py_END_ALLOW_THREADS
	if (code)
		return ops_ext_raise(&error);
	ops_recording_free(self->recording);
	self->recording = NULL;
	start_ticks = ops_ticks(ops_collector_get()->tsc);
	self->session = session;
	self->pid = getpid();
	records_shapes = self->torch.record_shapes;
	ops_ext_watch_coroutines();
	if (open_counters(self) < 0 || ops_ext_modules_begin(self->modules, self->torch.profile_memory) < 0 ||
	    start_devices(self) < 0) {
		session_drop_session(self);
		return NULL;
	}
	self->times_operators = bridge && !self->devices && bridge->device_events_available(self->events_of);
	self->torch.device_events = self->times_operators ? self->events_of : OPS_DEVICE_EVENTS_NONE;
	refusal = bridge ? bridge->attach(ops_collector_get(), &self->torch) : NULL;
	if (refusal) {
		session_drop_session(self);
		return PyErr_Format(PyExc_RuntimeError, "cannot start a session: %s", refusal);
	}
	self->attached = bridge != NULL;
	if ((self->with_stack && ops_python_calls_start(&self->python, start_ticks) < 0) ||
	    (self->with_call_stacks && ops_call_stacks_start(self->python.filter.path_prefixes) < 0)) {
		session_drop_session(self);
		return NULL;
	}
	Py_RETURN_NONE;
}

static PyObject *session_pause(PyObject *object, PyObject *ignored)
{
	struct session_object *self = (struct session_object *)object;

	(void)ignored;
	if (session_is_running(self))
		ops_session_pause(self->session);
	Py_RETURN_NONE;
}

static PyObject *session_resume(PyObject *object, PyObject *ignored)
{
	struct session_object *self = (struct session_object *)object;

	(void)ignored;
	if (session_is_running(self))
		ops_session_resume(self->session);
	Py_RETURN_NONE;
}

/* toggle_devices(on): RuntimeError if they cannot be paused. */
static PyObject *session_toggle_devices(PyObject *object, PyObject *on)
{
	struct session_object *self = (struct session_object *)object;
	struct ops_error error;
	enum ops_code code;
	int truth = PyObject_IsTrue(on);

	if (truth < 0)
		return NULL;
	if (!session_is_running(self) || !self->devices)
		Py_RETURN_NONE;
	Py_BEGIN_ALLOW_THREADS
	code = ops_device_toggle(self->devices, truth, &error);
	Py_END_ALLOW_THREADS
	if (code)
		return ops_ext_raise(&error);
	Py_RETURN_NONE;
}

static PyObject *session_end_window(PyObject *object, PyObject *ignored)
{
	struct session_object *self = (struct session_object *)object;

	(void)ignored;
	if (session_is_running(self))
		ops_session_end_window(self->session);
	Py_RETURN_NONE;
}

/* Raises an error that keeps the recording for another stop(). */
static PyObject *raise_kept(const struct ops_error *error)
{
	if (error->code == OPS_NO_MEMORY)
		return PyErr_Format(PyExc_MemoryError, "%s; the recording is kept: free memory and stop again", error->text);
	return ops_ext_raise(error);
}

/* Returns the trace of the recording, or NULL with an exception set. If out of memory, the recording is kept for the next attempt. */
static PyObject *session_make_trace(struct session_object *self)
{
	struct ops_recording *recording = self->recording;
	struct ops_trace *trace = NULL;
	struct ops_error error = {0};
	PyObject *result;

	self->recording = NULL;
	Py_BEGIN_ALLOW_THREADS
	if (ops_trace_from_recording(recording, &trace, &error))
		self->recording = recording;
	Py_END_ALLOW_THREADS
	if (!trace)
		return raise_kept(&error);
	result = ops_ext_trace_new(PyType_GetModule(Py_TYPE(self)), trace);
	if (result) {
		((struct trace_object *)result)->module_parameters = self->module_parameters;
		self->module_parameters = NULL;
	}
	return result;
}

static PyObject *session_stop(PyObject *object, PyObject *ignored)
{
	struct session_object *self = (struct session_object *)object;
	struct ops_error error = {0};

	(void)ignored;
	if (!session_is_running(self) && !is_pending(self))
		return PyErr_SetString(PyExc_RuntimeError, "the session is not running"), NULL;
	if (session_is_running(self) && end_session(self, &self->recording, &error))
		return raise_kept(&error);
	return session_make_trace(self);
}

/* snapshot(last_ns=0): returns a Trace. */
static PyObject *session_snapshot(PyObject *object, PyObject *args, PyObject *kwargs)
{
	static char *keywords[] = {"last_ns", NULL};
	struct session_object *self = (struct session_object *)object;
	struct ops_trace *trace = NULL;
	struct ops_error error = {0};
	uint64_t last_ns = 0;
	enum ops_code code;

	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$O&:snapshot", keywords, to_bytes, &last_ns))
		return NULL;
	if (!session_is_running(self))
		return PyErr_SetString(PyExc_RuntimeError, "the session is not running"), NULL;
	Py_BEGIN_ALLOW_THREADS
	code = ops_session_snapshot(self->session, last_ns, &trace, &error);
	Py_END_ALLOW_THREADS
	if (code)
		return ops_ext_raise(&error);
	return ops_ext_trace_new(PyType_GetModule(Py_TYPE(self)), trace);
}

static PyObject *session_get_pending(PyObject *object, void *ignored)
{
	(void)ignored;
	return PyBool_FromLong(is_pending((struct session_object *)object));
}

static PyObject *session_get_running(PyObject *object, void *ignored)
{
	(void)ignored;
	return PyBool_FromLong(session_is_running((struct session_object *)object));
}

static PyObject *session_get_refused(PyObject *object, void *ignored)
{
	PyObject *refused = ((struct session_object *)object)->refused;

	(void)ignored;
	return Py_NewRef(refused ? refused : Py_None);
}

static PyObject *session_get_device_problem(PyObject *object, void *ignored)
{
	PyObject *problem = ((struct session_object *)object)->device_problem;

	(void)ignored;
	return Py_NewRef(problem ? problem : Py_None);
}

static PyObject *session_get_metrics_problem(PyObject *object, void *ignored)
{
	PyObject *problem = ((struct session_object *)object)->metrics_problem;

	(void)ignored;
	return Py_NewRef(problem ? problem : Py_None);
}

static PyObject *session_get_times_operators(PyObject *object, void *ignored)
{
	(void)ignored;
	return PyBool_FromLong(((struct session_object *)object)->times_operators);
}

static PyObject *session_get_spill_problem(PyObject *object, void *ignored)
{
	struct session_object *self = (struct session_object *)object;
	struct ops_error error;

	(void)ignored;
	if (!session_is_running(self) || !ops_session_spill_problem(self->session, &error))
		Py_RETURN_NONE;
	return session_text_of(error.text);
}

static PyObject *session_note_metadata(PyObject *object, PyObject *args)
{
	const char *key, *json;
	Py_ssize_t key_bytes, json_bytes;

	if (!PyArg_ParseTuple(args, "s#s#:note_metadata", &key, &key_bytes, &json, &json_bytes))
		return NULL;
	if (session_is_running((struct session_object *)object))
		ops_session_note_metadata(key, (size_t)key_bytes, json, (size_t)json_bytes);
	Py_RETURN_NONE;
}

static PyObject *session_get_displaced(PyObject *object, void *ignored)
{
	(void)ignored;
	return PyBool_FromLong(((struct session_object *)object)->with_stack && ops_python_hooks_displaced());
}

static void session_dealloc(PyObject *object)
{
	struct session_object *self = (struct session_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	if (session_is_running(self))
		session_drop_session(self);
	if (is_pending(self))
		ops_recording_free(self->recording);
	filter_clear(&self->python.filter);
	Py_XDECREF(self->events);
	Py_XDECREF(self->refused);
	Py_XDECREF(self->spill);
	Py_XDECREF(self->device_problem);
	Py_XDECREF(self->metrics);
	Py_XDECREF(self->metrics_problem);
	Py_XDECREF(self->module_parameters);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMethodDef session_methods[] = {
	{"start", session_start, METH_NOARGS,
	 "start()\n--\n\nBegins to record. RuntimeError while another session or torch's own profiler does."},
	{"pause", session_pause, METH_NOARGS, "pause()\n--\n\nRecords nothing until resume."},
	{"resume", session_resume, METH_NOARGS, "resume()\n--\n\nRecords again."},
	{"toggle_devices", session_toggle_devices, METH_O,
	 "toggle_devices(on)\n--\n\nRecords no devices (False) until it does again (True)."},
	{"end_window", session_end_window, METH_NOARGS,
	 "end_window()\n--\n\nEnds the window: what is noted between this call and stop() belongs to its last moment."},
	{"note_metadata", session_note_metadata, METH_VARARGS,
	 "note_metadata(key, json)\n--\n\nKeeps metadata of the trace to come in the recording file, if there is one."},
	{"snapshot", (PyCFunction)(void (*)(void))session_snapshot, METH_VARARGS | METH_KEYWORDS,
	 "snapshot(*, last_ns=0)\n--\n\nA Trace of what was recorded so far, or in the last nanoseconds, while the session goes on. "
	 "RuntimeError if it does not run or has no recording file."},
	{"stop", session_stop, METH_NOARGS,
	 "stop()\n--\n\nEnds the session, from any thread, and returns its Trace. RuntimeError if it is not running; MemoryError "
	 "if out of memory: recording ends, and the next stop() returns the trace."},
	{0},
};

static PyGetSetDef session_properties[] = {
	{"refused_events", session_get_refused, NULL,
	 "Names of the performance events that cannot be counted here, and why; None when there are none.", NULL},
	{"device_problem", session_get_device_problem, NULL,
	 "Why devices could not be recorded, or not to the end; None when nothing was wrong.", NULL},
	{"metrics_problem", session_get_metrics_problem, NULL,
	 "Why counters of a device are not sampled; None when nothing was wrong.", NULL},
	{"times_operators", session_get_times_operators, NULL,
	 "Whether devices are timed by events around operators because there is no collector.", NULL},
	{"spill_problem", session_get_spill_problem, NULL,
	 "Why the recording file does not have all that was recorded; None when it does, or there is none.", NULL},
	{"displaced", session_get_displaced, NULL,
	 "Whether another profiler took the place of the hooks, so that Python calls may be missing.", NULL},
	{"pending", session_get_pending, NULL,
	 "Whether memory was out when its trace was to be made: stop() tries again.", NULL},
	{"running", session_get_running, NULL, "Whether it was started and not stopped, in this process.", NULL},
	{0},
};

static PyObject *session_remove_file(PyObject *module, PyObject *path)
{
	PyObject *bytes = NULL;
	bool removed;

	(void)module;
	if (!PyUnicode_FSConverter(path, &bytes))
		return NULL;
	removed = ops_recording_file_remove(PyBytes_AS_STRING(bytes));
	Py_DECREF(bytes);
	return PyBool_FromLong(removed);
}

static PyMethodDef session_functions[] = {
	{"remove_recording_file", session_remove_file, METH_O,
	 "remove_recording_file(path)\n--\n\nRemoves the recording file of a session that has stopped. Whether there is none any more."},
	{0},
};

static PyType_Slot session_slots[] = {
	{Py_tp_doc, "Session(*, record_shapes=False, profile_memory=False, all_threads=False, capture_overload_names=False, "
		    "modules=False, max_bytes=0, prefault_bytes=0, devices=(), metrics=())\n--\n\n"
		    "A recording of this process. One records at a time. Dropped while it runs, it ends and is lost."},
	{Py_tp_init, session_init},
	{Py_tp_new, PyType_GenericNew},
	{Py_tp_dealloc, session_dealloc},
	{Py_tp_methods, session_methods},
	{Py_tp_getset, session_properties},
	{0, NULL},
};

static PyType_Spec session_spec = {
	.name = "opstrobe._core.Session",
	.basicsize = sizeof(struct session_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = session_slots,
};

int ops_ext_add_session(PyObject *module)
{
	if (PyModule_AddFunctions(module, session_functions) < 0)
		return -1;
	return ops_ext_add_type(module, &session_spec, &ops_ext_state_of_module(module)->session);
}
