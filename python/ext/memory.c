/* SPDX-License-Identifier: Apache-2.0
 *
 * What the package tells a recording about tensors: which objects of the process are tensors, modules and optimizers, and
 * what their storages are for.
 */
#include "ext.h"

#include <opstrobe/record.h>

/* The objects in `all`, a list, whose own type is one of `types` or made from one. Not by isinstance(): an object's
 * __class__ may be a property that does things. NULL with an exception set. */
static PyObject *filter_by_type(PyObject *all, PyObject *types)
{
	PyObject *found = PyList_New(0);

	for (Py_ssize_t i = 0; found && i < PyList_GET_SIZE(all); i++) {
		PyObject *object = PyList_GET_ITEM(all, i);

		for (Py_ssize_t t = 0; t < PyTuple_GET_SIZE(types); t++) {
			PyObject *type = PyTuple_GET_ITEM(types, t);

			if (!PyType_Check(type)) {
				PyErr_SetString(PyExc_TypeError, "find_objects() takes types");
				Py_CLEAR(found);
				break;
			}
			if (PyType_IsSubtype(Py_TYPE(object), (PyTypeObject *)type)) {
				if (PyList_Append(found, object) < 0)
					Py_CLEAR(found);
				break;
			}
		}
		if (!found)
			break;
	}
	return found;
}

static PyObject *find_objects(PyObject *module, PyObject *types)
{
	PyObject *gc = PyImport_ImportModule("gc");
	PyObject *all = gc ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;
	PyObject *found = all ? filter_by_type(all, types) : NULL;

	(void)module;
	Py_XDECREF(all);
	Py_XDECREF(gc);
	return found;
}

/* Records one role. False with an exception set. */
static bool record_role(PyObject *item)
{
	unsigned long long address, bytes;
	int device_type, device_index, role;
	const char *name;
	Py_ssize_t size;

	if (!PyTuple_Check(item)) {
		PyErr_SetString(PyExc_TypeError, "a role is a tuple");
		return false;
	}
	if (!PyArg_ParseTuple(item, "s#KKiii;a role is (name, address, bytes, device type, device index, role)", &name, &size,
	                      &address, &bytes, &device_type, &device_index, &role))
		return false;
	const struct ops_storage storage = {
		.address = address,
		.bytes = bytes & OPS_STORAGE_BYTES_MAX,
		.device_type = (unsigned)device_type & 63u,
		.device_index = (unsigned)(device_index + 1) & 255u,
		.role = (unsigned)role & 15u,
	};
	ops_storage_role(name, (size_t)size, &storage);
	return true;
}

static PyObject *storage_roles(PyObject *module, PyObject *roles)
{
	PyObject *items = PySequence_Fast(roles, "storage_roles() takes a list of roles");

	(void)module;
	if (!items)
		return NULL;
	for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items); i++)
		if (!record_role(PySequence_Fast_GET_ITEM(items, i))) {
			Py_DECREF(items);
			return NULL;
		}
	Py_DECREF(items);
	Py_RETURN_NONE;
}

static PyMethodDef memory_functions[] = {
	{"find_objects", find_objects, METH_VARARGS,
	 "find_objects(*types)\n--\n\nThe objects known to the garbage collector that are instances of one of the types."},
	{"storage_roles", storage_roles, METH_O,
	 "storage_roles(roles, /)\n--\n\nSays in the recording under way, if any, what storages are for: tuples (name, address, "
	 "bytes, device type, device index, role), role 1 a parameter, 2 optimizer state, 3 a gradient, 4 a buffer, 5 a tensor."},
	{0},
};

int ops_ext_add_memory(PyObject *module)
{
	return PyModule_AddFunctions(module, memory_functions);
}
