/* SPDX-License-Identifier: Apache-2.0
 *
 * Queries of device recording for Python: whether it is available, and which kinds of activities names select.
 */
#include "devices.h"

#include "bridge.h"

int ops_ext_to_device_kinds(PyObject *names, void *ret_kinds)
{
	static const char *const kinds[] = {
#define KIND_TEXT(name, text) text,
		OPS_ACTIVITY_KINDS(KIND_TEXT)
#undef KIND_TEXT
	};
	uint32_t *set = ret_kinds;

	*set = 0;
	for (uint32_t i = 0; i < OPS_ACTIVITY_KIND_COUNT; i++) {
		PyObject *kind = PyUnicode_FromString(kinds[i]);
		int found = kind ? PySequence_Contains(names, kind) : -1;

		Py_XDECREF(kind);
		if (found < 0)
			return 0;
		*set |= found ? OPS_ACTIVITY_BIT(i) : 0;
	}
	return 1;
}

int ops_ext_to_device_events(PyObject *name, void *ret_events)
{
	enum ops_device_events *events = ret_events;
	bool known;

	*events = OPS_DEVICE_EVENTS_NONE;
	if (name == Py_None)
		return 1;
	known = PyUnicode_Check(name);
	if (known && PyUnicode_CompareWithASCIIString(name, "cuda") == 0)
		*events = OPS_DEVICE_EVENTS_CUDA;
	else if (known && PyUnicode_CompareWithASCIIString(name, "privateuse1") == 0)
		*events = OPS_DEVICE_EVENTS_PRIVATEUSE1;
	else
		PyErr_Format(PyExc_ValueError, "unknown kind of device events: %R", name);
	return *events != OPS_DEVICE_EVENTS_NONE;
}

static PyObject *module_device_events(PyObject *module, PyObject *name)
{
	const struct ops_torch_bridge *bridge = ops_ext_bridge();
	enum ops_device_events events;

	(void)module;
	if (!ops_ext_to_device_events(name, &events))
		return NULL;
	return PyBool_FromLong(bridge && bridge->device_events_available(events));
}

/* Returns (devices, why they cannot be recorded or None). */
static PyObject *module_cuda(PyObject *module, PyObject *unused)
{
	struct ops_error error;
	enum ops_code code;
	uint32_t devices;

	(void)module;
	(void)unused;
	Py_BEGIN_ALLOW_THREADS
	code = ops_cuda_check(&devices, &error);
	Py_END_ALLOW_THREADS
	return Py_BuildValue("Iz", devices, code ? error.text : NULL);
}

static PyObject *module_cupti(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyUnicode_DecodeLocale(ops_cuda_describe(), "surrogateescape");
}

static PyObject *module_cupti_version(PyObject *module, PyObject *unused)
{
	(void)module;
	(void)unused;
	return PyLong_FromUnsignedLong(ops_cuda_cupti_version());
}

static PyMethodDef module_methods[] = {
	{"cuda", module_cuda, METH_NOARGS,
	 "cuda() -> (devices, problem)\n\nHow many CUDA devices there are, and why they cannot be recorded, or None."},
	{"cupti", module_cupti, METH_NOARGS, "cupti() -> str\n\nWhich libcupti is used, or why none is."},
	{"cupti_version", module_cupti_version, METH_NOARGS,
	 "cupti_version() -> int\n\nIts version: 130500 is 13.5; 0 when there is none."},
	{"device_events", module_device_events, METH_O,
	 "device_events(name) -> bool\n\nWhether torch can time operators by events of \"cuda\" or \"privateuse1\"; False as long as no "
	 "bridge is loaded."},
	{NULL, NULL, 0, NULL},
};

int ops_ext_add_devices(PyObject *module)
{
	return PyModule_AddFunctions(module, module_methods);
}
