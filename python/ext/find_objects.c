/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the tensors, modules and optimizers of the process: searches all objects of the garbage collector. There are hundreds of
 * thousands, nearly all of a few types.
 */
#include "ext.h"

#include "module_calls.h"
#include "module_registry.h"

#define MEMORY_BITS 8

/* Cached result for a type. */
struct known {
	PyTypeObject *type;
	bool wanted;
};

struct search {
	PyObject *types; /* tuple */
	PyObject *found; /* list; NULL if out of memory */
	struct known known[1 << MEMORY_BITS];
};

/* Returns whether an object's own type is a requested one or a subclass. Does not use isinstance(), because __class__ of an
 * object may be a property with side effects. */
static bool find_objects_is_wanted(struct search *search, PyTypeObject *type)
{
	struct known *known = &search->known[module_registry_hash(type) & ((1u << MEMORY_BITS) - 1)];

	if (known->type != type) {
		*known = (struct known){type, false};
		for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(search->types); i++)
			known->wanted |= PyType_IsSubtype(type, (PyTypeObject *)PyTuple_GET_ITEM(search->types, i));
	}
	return known->wanted;
}

/* Returns 1 to continue, 0 if out of memory. */
static int find_objects_visit(PyObject *object, void *context)
{
	struct search *search = context;

	if (find_objects_is_wanted(search, Py_TYPE(object)) && PyList_Append(search->found, object) < 0)
		Py_CLEAR(search->found);
	return search->found != NULL;
}

/* Returns false with an exception set. */
static bool find_objects_visit_all(struct search *search)
{
#if PY_VERSION_HEX >= 0x030c0000
	PyUnstable_GC_VisitObjects(find_objects_visit, search);
#else
	PyObject *gc = PyImport_ImportModule("gc");
	PyObject *all = gc ? PyObject_CallMethod(gc, "get_objects", NULL) : NULL;

	if (!all)
		Py_CLEAR(search->found);
	for (Py_ssize_t i = 0; search->found && i < PyList_GET_SIZE(all); i++)
		find_objects_visit(PyList_GET_ITEM(all, i), search);
	Py_XDECREF(all);
	Py_XDECREF(gc);
#endif
	return search->found;
}

static PyObject *find_objects(PyObject *module, PyObject *types)
{
	struct search search = {.types = types};

	(void)module;
	for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(types); i++)
		if (!PyType_Check(PyTuple_GET_ITEM(types, i)))
			return PyErr_SetString(PyExc_TypeError, "find_objects() takes types"), NULL;
	search.found = PyList_New(0);
	return search.found && find_objects_visit_all(&search) ? search.found : NULL;
}

static PyObject *called_modules(PyObject *module, PyObject *ignored)
{
	(void)module, (void)ignored;
	return ops_ext_modules_called();
}

static PyMethodDef finding_functions[] = {
	{"find_objects", find_objects, METH_VARARGS,
	 "find_objects(*types)\n--\n\nThe objects known to the garbage collector that are instances of one of the types."},
	{"called_modules", called_modules, METH_NOARGS,
	 "called_modules()\n--\n\nThe modules that were called since a session began that records modules or memory, and those "
	 "that they held then."},
	{0},
};

int ops_ext_add_finding(PyObject *module)
{
	return PyModule_AddFunctions(module, finding_functions);
}
