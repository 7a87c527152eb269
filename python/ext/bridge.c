/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads the torch bridge. It belongs to the process and not to this module: torch keeps its callbacks forever, so it is loaded
 * once and stays. The package decides which file to load and how to build it (opstrobe/recording/bridge.py).
 */
#include "ext.h"

#include <dlfcn.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/record.h>

#include "bridge.h"

/* Protected by the GIL. */
static const struct ops_torch_bridge *bridge;
static PyObject *bridge_path; /* a str, never freed */

const struct ops_torch_bridge *ops_ext_bridge(void)
{
	return bridge;
}

/* Returns the library's bridge, or NULL with an ImportError. */
static const struct ops_torch_bridge *open_bridge(const char *path)
{
	const struct ops_torch_bridge *(*get)(void);
	const struct ops_torch_bridge *found;
	void *library;

	Py_BEGIN_ALLOW_THREADS
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	Py_END_ALLOW_THREADS
	if (!library)
		return PyErr_Format(PyExc_ImportError, "cannot load the torch bridge: %s", dlerror()), NULL;
	*(void **)&get = dlsym(library, OPS_TORCH_BRIDGE_SYMBOL);
	if (!get)
		return PyErr_Format(PyExc_ImportError, "'%s' is not a torch bridge", path), NULL;
	found = get();
	if (found->abi != OPS_TORCH_BRIDGE_ABI || found->collector_abi != OPS_COLLECTOR_ABI)
		return PyErr_Format(PyExc_ImportError,
				    "the torch bridge '%s' was built for another version of opstrobe "
				    "(interfaces %u and %u, needed %u and %u): delete it",
				    path, found->abi, found->collector_abi, OPS_TORCH_BRIDGE_ABI, OPS_COLLECTOR_ABI),
		       NULL;
	return found;
}

static PyObject *load_bridge(PyObject *module, PyObject *path)
{
	const struct ops_torch_bridge *found;
	PyObject *encoded;

	(void)module;
	if (!PyUnicode_FSConverter(path, &encoded))
		return NULL;
	if (!bridge) {
		found = open_bridge(PyBytes_AS_STRING(encoded));
		if (!found) {
			Py_DECREF(encoded);
			return NULL;
		}
		if (!bridge) {
			bridge = found;
			bridge_path = Py_NewRef(path);
		}
	}
	Py_DECREF(encoded);
	Py_RETURN_NONE;
}

static PyObject *bridge_info(PyObject *module, PyObject *ignored)
{
	(void)module, (void)ignored;
	if (!bridge)
		Py_RETURN_NONE;
	return Py_BuildValue("{s:O,s:s,s:I,s:I}", "path", bridge_path, "torch_version", bridge->torch_version, "abi",
			     bridge->abi, "collector_abi", bridge->collector_abi);
}

static PyObject *forward_backward_enabled(PyObject *module, PyObject *ignored)
{
	(void)module, (void)ignored;
	return PyBool_FromLong(!bridge || bridge->forward_backward_enabled());
}

static PyObject *thread_name(PyObject *module, PyObject *args)
{
	long long tid;
	PyObject *name, *bytes;

	(void)module;
	if (!PyArg_ParseTuple(args, "LU:thread_name", &tid, &name))
		return NULL;
	bytes = ops_ext_text_bytes(name);
	if (!bytes)
		return NULL;
	ops_thread_name(tid, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
	Py_DECREF(bytes);
	Py_RETURN_NONE;
}

static PyObject *ticks(PyObject *module, PyObject *ignored)
{
	(void)module, (void)ignored;
	return PyLong_FromUnsignedLongLong(ops_ticks(ops_collector_get()->tsc));
}

static PyObject *bridge_add_range(PyObject *module, PyObject *args)
{
	unsigned long long start_ticks, end_ticks;
	const char *name;
	Py_ssize_t size;

	(void)module;
	if (!PyArg_ParseTuple(args, "s#KK:add_range", &name, &size, &start_ticks, &end_ticks))
		return NULL;
	ops_range_add(name, (size_t)size, start_ticks, end_ticks);
	Py_RETURN_NONE;
}

static PyMethodDef bridge_functions[] = {
	{"load_bridge", load_bridge, METH_O,
	 "load_bridge(path)\n--\n\nLoads the torch bridge; does nothing when one is loaded."},
	{"bridge_info", bridge_info, METH_NOARGS,
	 "bridge_info()\n--\n\nThe loaded bridge: path, torch_version, abi, collector_abi; None before there is one."},
	{"forward_backward_enabled", forward_backward_enabled, METH_NOARGS,
	 "forward_backward_enabled()\n--\n\nWhether torch is configured to link forward operators and backward nodes."},
	{"thread_name", thread_name, METH_VARARGS,
	 "thread_name(tid, name)\n--\n\nNames a thread by its system id in the session that is recording."},
	{"ticks", ticks, METH_NOARGS, "ticks()\n--\n\nNow, in the clock of records."},
	{"add_range", bridge_add_range, METH_VARARGS,
	 "add_range(name, start_ticks, end_ticks)\n--\n\nRecords a range that is over in the session that is recording."},
	{0},
};

int ops_ext_add_bridge(PyObject *module)
{
	return PyModule_AddFunctions(module, bridge_functions);
}
