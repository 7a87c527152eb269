/* SPDX-License-Identifier: Apache-2.0
 *
 * The module `opstrobe._core`: its state and the calls that initialise it. Users import the package `opstrobe`.
 */
#include "ext.h"

#include <string.h>

#include <opstrobe/arrow.h>
#include <opstrobe/internal/host.h>
#include <opstrobe/internal/trace_job.h>
#include <opstrobe/record.h>
#include <opstrobe/version.h>

static PyObject *module_tables_json(PyObject *module, PyObject *unused)
{
	struct ops_error error;
	enum ops_code code;
	size_t size;
	char *text;

	(void)module;
	(void)unused;
	code = ops_arrow_tables_json(&text, &size, &error);
	return ops_ext_result_text(code, text, size, &error);
}

static PyObject *module_clock(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyUnicode_FromString(ops_recording_clock());
}

static PyObject *module_memory_limit(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyLong_FromUnsignedLongLong(ops_memory_limit());
}

static PyObject *module_free_memory(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyLong_FromUnsignedLongLong(ops_free_memory());
}

static PyObject *module_is_one_job(PyObject *module, PyObject *args)
{
	struct ops_trace_job a = {.rank = -1}, b = a;
	long long rank[2], world[2], start[2], end[2];
	int same_folder;

	(void)module;
	if (!PyArg_ParseTuple(args, "(LLLL)(LLLL)p:is_one_job", &rank[0], &world[0], &start[0], &end[0], &rank[1], &world[1], &start[1],
	                      &end[1], &same_folder))
		return NULL;
	a = (struct ops_trace_job){.rank = rank[0], .world_size = world[0], .start_ns = start[0], .end_ns = end[0]};
	b = (struct ops_trace_job){.rank = rank[1], .world_size = world[1], .start_ns = start[1], .end_ns = end[1]};
	return PyBool_FromLong(ops_trace_job_is_shared(&a, &b, same_folder));
}

static PyMethodDef module_methods[] = {
	{"tables_json", module_tables_json, METH_NOARGS,
	 "tables_json() -> str\n\nThe tables that queries ask, with the meanings of their columns, as a JSON object."},
	{"is_one_job", module_is_one_job, METH_VARARGS,
	 "is_one_job(a, b, same_folder) -> bool\n\nReturns whether two traces are from two ranks of one job. Each is (rank, world size, start_ns,\n"
	 "end_ns), with -1 for what is unknown."},
	{"clock", module_clock, METH_NOARGS, "clock() -> str\n\n\"tsc\", or \"monotonic: \" and why not the TSC."},
	{"free_memory", module_free_memory, METH_NOARGS,
	 "free_memory() -> int\n\nBytes that are free on the machine and in the control group, including those that cache files."},
	{"memory_limit", module_memory_limit, METH_NOARGS, "memory_limit() -> int\n\nBytes that the machine and the control group allow."},
	{NULL, NULL, 0, NULL},
};

static int module_module_exec(PyObject *module)
{
	static int (*const parts[])(PyObject *module) = {
		ops_ext_add_interval,        ops_ext_add_function_event,  ops_ext_add_function_event_avg,
		ops_ext_add_event_list,      ops_ext_add_trace,           ops_ext_add_read_trace,
		ops_ext_add_session,         ops_ext_add_bridge,          ops_ext_add_record_function,
		ops_ext_add_finding,         ops_ext_add_tensor_watch,    ops_ext_add_memory_view,     ops_ext_add_watch,
		ops_ext_add_execution_trace, ops_ext_add_fast_range,      ops_ext_add_module_summary,
		ops_ext_add_devices,         ops_ext_add_figures,         ops_ext_add_live,            ops_ext_add_raw_fields,
		ops_ext_add_fatal_signals,   ops_ext_add_thread_states,   ops_ext_add_stack_sampler,   ops_ext_add_step_marks,
		ops_ext_add_kineto_event,    ops_ext_add_event_tree,      ops_ext_add_profiler_event,  ops_ext_add_archive_table,
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (parts[i](module) < 0)
			return -1;
	}
	return PyModule_AddStringConstant(module, "__version__", ops_version());
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
	struct ops_ext_state *state = PyModule_GetState(module);

	Py_VISIT(state->trace);
	Py_VISIT(state->event_list);
	Py_VISIT(state->function_event);
	Py_VISIT(state->function_event_avg);
	Py_VISIT(state->interval);
	Py_VISIT(state->kernel);
	Py_VISIT(state->module_summary);
	Py_VISIT(state->session);
	Py_VISIT(state->memory_timeline);
	Py_VISIT(state->record_function);
	Py_VISIT(state->tensor_watch);
	Py_VISIT(state->step_marks);
	Py_VISIT(state->quick_step);
	Py_VISIT(state->raw_fields);
	Py_VISIT(state->kineto_event);
	Py_VISIT(state->event_tree);
	Py_VISIT(state->profiler_event);
	for (size_t i = 0; i < OPS_EXT_DEVICE_TYPES; i++)
		Py_VISIT(state->device_types[i]);
	return 0;
}

static int module_clear(PyObject *module)
{
	struct ops_ext_state *state = PyModule_GetState(module);

	Py_CLEAR(state->trace);
	Py_CLEAR(state->event_list);
	Py_CLEAR(state->function_event);
	Py_CLEAR(state->function_event_avg);
	Py_CLEAR(state->interval);
	Py_CLEAR(state->kernel);
	Py_CLEAR(state->module_summary);
	Py_CLEAR(state->session);
	Py_CLEAR(state->memory_timeline);
	Py_CLEAR(state->record_function);
	Py_CLEAR(state->tensor_watch);
	Py_CLEAR(state->step_marks);
	Py_CLEAR(state->quick_step);
	Py_CLEAR(state->raw_fields);
	Py_CLEAR(state->kineto_event);
	Py_CLEAR(state->event_tree);
	Py_CLEAR(state->profiler_event);
	for (size_t i = 0; i < OPS_EXT_DEVICE_TYPES; i++)
		Py_CLEAR(state->device_types[i]);
	return 0;
}

static void module_free(void *module)
{
	module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {
	{Py_mod_exec, module_module_exec},
	{0, NULL},
};

static struct PyModuleDef module_def = {
	PyModuleDef_HEAD_INIT,
	.m_name = "opstrobe._core",
	.m_doc = "The C core of opstrobe. Import the package instead.",
	.m_size = sizeof(struct ops_ext_state),
	.m_methods = module_methods,
	.m_slots = module_slots,
	.m_traverse = module_traverse,
	.m_clear = module_clear,
	.m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
	return PyModuleDef_Init(&module_def);
}

struct ops_ext_state *ops_ext_state_of_module(PyObject *module)
{
	return PyModule_GetState(module);
}

struct ops_ext_state *ops_ext_state_of(PyObject *self)
{
#if PY_VERSION_HEX >= 0x030b0000
	PyObject *module = PyType_GetModuleByDef(Py_TYPE(self), &module_def);
	return module ? PyModule_GetState(module) : NULL;
#else
	/* Like PyType_GetModuleByDef of 3.11: a subclass defined in Python has no separate module state. */
	for (PyTypeObject *type = Py_TYPE(self); type; type = type->tp_base) {
		PyObject *module;
		if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE))
			break;
		module = ((PyHeapTypeObject *)type)->ht_module;
		if (module && PyModule_GetDef(module) == &module_def)
			return PyModule_GetState(module);
	}
	PyErr_SetString(PyExc_TypeError, "not an object of opstrobe._core");
	return NULL;
#endif
}

int ops_ext_add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **ret_type)
{
	PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);

	if (!type)
		return -1;
	*ret_type = type;
	return PyModule_AddType(module, type);
}
