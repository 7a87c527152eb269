/* SPDX-License-Identifier: Apache-2.0
 *
 * RawFields: attributes by name that pass for one of torch's C++ classes, for programs that check `isinstance(fields,
 * _ExtraFields_TorchOp)`, which also uses __class__.
 */
#include "raw_views.h"

struct raw_fields_object {
	PyObject_HEAD
	PyObject *values;
	const char *kind;
};

PyObject *ops_ext_imported(const char *module, const char *name)
{
	PyObject *text = PyUnicode_FromString(module);
	PyObject *imported = text ? PyImport_GetModule(text) : NULL;
	PyObject *value = imported ? PyObject_GetAttrString(imported, name) : NULL;

	Py_XDECREF(text);
	Py_XDECREF(imported);
	if (!value)
		PyErr_Clear();
	return value ? value : Py_NewRef(Py_None);
}

PyObject *ops_ext_torch_class(const char *module, const char *name, PyTypeObject *default_type)
{
	PyObject *type = ops_ext_imported(module, name);

	if (PyType_Check(type))
		return type;
	Py_DECREF(type);
	return Py_NewRef(default_type);
}

PyObject *ops_ext_raw_member(const char *enumeration, int value)
{
	PyObject *type = ops_ext_imported("torch._C._profiler", enumeration);
	PyObject *member;

	if (type == Py_None)
		Py_SETREF(type, ops_ext_imported("opstrobe._enums", enumeration));
	member = PyObject_CallFunction(type, "i", value);
	Py_DECREF(type);
	return member;
}

PyObject *ops_ext_raw_fields(struct ops_ext_state *state, const char *kind, PyObject *stolen_values)
{
	struct raw_fields_object *self = stolen_values ? PyObject_New(struct raw_fields_object, state->raw_fields) : NULL;

	if (!self) {
		Py_XDECREF(stolen_values);
		return NULL;
	}
	self->values = stolen_values;
	self->kind = kind;
	return (PyObject *)self;
}

static void fields_dealloc(PyObject *object)
{
	PyTypeObject *type = Py_TYPE(object);

	Py_XDECREF(((struct raw_fields_object *)object)->values);
	PyObject_Free(object);
	Py_DECREF(type);
}

static PyObject *fields_getattro(PyObject *object, PyObject *name)
{
	PyObject *value = PyDict_GetItemWithError(((struct raw_fields_object *)object)->values, name);

	if (value)
		return Py_NewRef(value);
	return PyErr_Occurred() ? NULL : PyObject_GenericGetAttr(object, name);
}

static PyObject *fields_repr(PyObject *object)
{
	const struct raw_fields_object *self = (struct raw_fields_object *)object;

	return PyUnicode_FromFormat("<%s %R>", self->kind, self->values);
}

static PyObject *fields_class(PyObject *object, void *closure)
{
	(void)closure;
	return ops_ext_torch_class("torch._C._profiler", ((struct raw_fields_object *)object)->kind, Py_TYPE(object));
}

static PyObject *fields_dict(PyObject *object, void *closure)
{
	(void)closure;
	return PyDict_Copy(((struct raw_fields_object *)object)->values);
}

static PyGetSetDef fields_getsets[] = {
	{"__class__", fields_class, NULL, NULL, NULL},
	{"__dict__", fields_dict, NULL, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot fields_slots[] = {
	{Py_tp_doc, "What is known of an event of the raw tree, or of a part of it; read-only."},
	{Py_tp_dealloc, fields_dealloc},
	{Py_tp_getattro, fields_getattro},
	{Py_tp_repr, fields_repr},
	{Py_tp_getset, fields_getsets},
	{0, NULL},
};

static PyType_Spec fields_spec = {
	.name = "opstrobe._core.RawFields",
	.basicsize = sizeof(struct raw_fields_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
	.slots = fields_slots,
};

int ops_ext_add_raw_fields(PyObject *module)
{
	return ops_ext_add_type(module, &fields_spec, &ops_ext_state_of_module(module)->raw_fields);
}
