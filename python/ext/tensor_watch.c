/* SPDX-License-Identifier: Apache-2.0
 *
 * TensorWatch: reports the program's tensors to a recording of memory. Which tensors existed when it began, their roles, and
 * which of them exist when it ends; and, at each optimizer step, its parameters, gradients and state.
 *
 * The bridge reads a tensor through its c10::TensorImpl; it neither calls the tensor's methods nor creates Python objects. Weak
 * references to the storages show which exist at the end, without another search.
 */
#include "ext.h"

#include <string.h>

#include <opstrobe/internal/collector.h>
#include <opstrobe/internal/recording.h>
#include <opstrobe/record.h>
#include <opstrobe/storage.h>

#include "bridge.h"
#include "module_calls.h"
#include "unseen.h"

#define NAME_BYTES 256  /* longer names are truncated */
#define DEPTH_MAX 4     /* nested lists and dictionaries in an optimizer's state */

/* A storage that existed at the begin, and its role. */
struct held {
	void *storage;
	PyObject *name; /* bytes; NULL: none */
	enum ops_role role;
};

#define BRIEF_SHARE 500u /* a brief watch takes at most this fraction of the time for an optimizer */
#define BRIEF_OPTIMIZERS 8u

/* When an optimizer may be examined again. */
struct next_look {
	const void *optimizer;
	uint64_t ticks;
};

struct watch_object {
	PyObject_HEAD
	PyTypeObject *tensor_type; /* torch.Tensor */
	PyObject *impl;            /* the descriptor of a tensor's address */
	PyObject *names;           /* dict: address of a parameter → its name, str */
	PyObject *optimizers;      /* dict: address of an optimizer → weak reference */
	struct held *held;
	size_t count;
	size_t capacity;
	bool ready; /* __init__ succeeded: all members above except `held` are set */
	bool brief; /* optimizers are not examined after each of their steps if that takes too much of the time */
	struct next_look looks[BRIEF_OPTIMIZERS]; /* of optimizers by address; the last one is for all others, too */
};

static bool is_paused; /* allocations are not recorded, so roles are not needed; protected by the GIL */

void ops_ext_tensor_watch_pause(bool pause)
{
	is_paused = pause;
}

static struct next_look *find_look(struct watch_object *self, const void *optimizer)
{
	size_t i = 0;

	while (i < BRIEF_OPTIMIZERS - 1 && self->looks[i].optimizer && self->looks[i].optimizer != optimizer)
		i++;
	self->looks[i].optimizer = optimizer;
	return &self->looks[i];
}

/* The name of a tensor while it is built. */
struct name {
	char text[NAME_BYTES];
	size_t size;
};

static void tensor_watch_append(struct name *name, const char *text, size_t size)
{
	size_t room = sizeof(name->text) - name->size;

	size = size < room ? size : room;
	memcpy(name->text + name->size, text, size);
	name->size += size;
}

/* Appends "." and a key of a dictionary. A key that is neither text nor a number has no name. */
static void append_key(struct name *name, PyObject *key)
{
	char digits[24];
	Py_ssize_t size = 0;
	const char *text = NULL;

	if (PyUnicode_Check(key)) {
		text = PyUnicode_AsUTF8AndSize(key, &size);
	} else if (PyLong_Check(key)) {
		size = snprintf(digits, sizeof(digits), "%lld", PyLong_AsLongLong(key));
		text = digits;
	}
	PyErr_Clear();
	if (text) {
		tensor_watch_append(name, ".", 1);
		tensor_watch_append(name, text, (size_t)size);
	}
}

/* --- tensors -------------------------------------------------------------------------------------------------------- */

static bool tensor_watch_is_tensor(const struct watch_object *self, PyObject *object)
{
	return PyType_IsSubtype(Py_TYPE(object), self->tensor_type);
}

/* Returns the address of a tensor's TensorImpl; NULL without an exception if not available. */
static void *impl_of(const struct watch_object *self, PyObject *tensor)
{
	PyObject *number = Py_TYPE(self->impl)->tp_descr_get(self->impl, tensor, (PyObject *)Py_TYPE(tensor));
	void *impl = number && PyLong_Check(number) ? PyLong_AsVoidPtr(number) : NULL;

	Py_XDECREF(number);
	PyErr_Clear();
	return impl;
}

/* Holds a storage. If out of memory, the storage is ignored. */
static void tensor_watch_hold(struct watch_object *self, const struct name *name, const void *impl, bool gradient,
                              enum ops_role role)
{
	void *storage = ops_ext_bridge()->storage_hold(impl, gradient);

	if (!storage)
		return;
	if (self->count == self->capacity) {
		size_t wanted = self->capacity ? self->capacity * 2 : 256;
		struct held *moved = PyMem_Realloc(self->held, wanted * sizeof(*moved));

		if (!moved) {
			ops_ext_bridge()->storage_drop(storage);
			return;
		}
		self->held = moved;
		self->capacity = wanted;
	}
	self->held[self->count++] = (struct held){
		.storage = storage,
		.name = name->size ? PyBytes_FromStringAndSize(name->text, (Py_ssize_t)name->size) : NULL,
		.role = role,
	};
	PyErr_Clear();
}

static void tensor_watch_record(const char *name, size_t name_bytes, struct ops_storage *storage, enum ops_role role)
{
	storage->role = role;
	ops_storage_role(name, name_bytes, storage);
}

/* Processes a tensor: holds its storage or, at a step, reports its role at once. */
static void tensor_watch_process(struct watch_object *self, const struct name *name, const void *impl, bool gradient,
                              enum ops_role role, bool now)
{
	struct ops_storage storage;

	if (!now)
		tensor_watch_hold(self, name, impl, gradient, role);
	else if (ops_ext_bridge()->tensor_storage(impl, gradient, &storage))
		tensor_watch_record(name->text, name->size, &storage, role);
}

static void tensor_watch_process_tensor(struct watch_object *self, struct name *name, PyObject *tensor, enum ops_role role,
                                     bool now)
{
	const void *impl = impl_of(self, tensor);
	size_t size = name->size;

	if (!impl)
		return;
	tensor_watch_process(self, name, impl, false, role, now);
	if (role != OPS_ROLE_PARAMETER)
		return;
	if (size)
		tensor_watch_append(name, ".grad", strlen(".grad"));
	tensor_watch_process(self, name, impl, true, OPS_ROLE_GRADIENT, now);
	name->size = size;
}

/* --- optimizers ----------------------------------------------------------------------------------------------------- */

/* Finds the name that the model gave a parameter. Returns false if there is none. */
static bool tensor_watch_find_name(const struct watch_object *self, PyObject *tensor, struct name *ret_name)
{
	PyObject *key = PyLong_FromVoidPtr(tensor);
	PyObject *known = key ? PyDict_GetItemWithError(self->names, key) : NULL;
	Py_ssize_t size;
	const char *text = known ? PyUnicode_AsUTF8AndSize(known, &size) : NULL;

	ret_name->size = 0;
	if (text)
		tensor_watch_append(ret_name, text, (size_t)size);
	Py_XDECREF(key);
	PyErr_Clear();
	return text;
}

/* Processes the tensors in a value of an optimizer's state. */
static void tensor_watch_process_value(struct watch_object *self, struct name *name, PyObject *value, int depth, bool now)
{
	PyObject *key, *item;
	Py_ssize_t at = 0;
	size_t size = name->size;

	if (tensor_watch_is_tensor(self, value)) {
		tensor_watch_process_tensor(self, name, value, OPS_ROLE_OPTIMIZER_STATE, now);
	} else if (PyDict_Check(value) && depth < DEPTH_MAX) {
		for (; PyDict_Next(value, &at, &key, &item); name->size = size) {
			append_key(name, key);
			tensor_watch_process_value(self, name, item, depth + 1, now);
		}
	} else if ((PyList_Check(value) || PyTuple_Check(value)) && depth < DEPTH_MAX) {
		for (; at < PySequence_Fast_GET_SIZE(value); at++, name->size = size) {
			char digits[24];

			tensor_watch_append(name, digits, (size_t)snprintf(digits, sizeof(digits), ".%zd", at));
			tensor_watch_process_value(self, name, PySequence_Fast_GET_ITEM(value, at), depth + 1, now);
		}
	}
}

static void watch_group(struct watch_object *self, PyObject *group, bool now)
{
	PyObject *key, *value;
	Py_ssize_t at = 0;
	struct name name;

	while (PyDict_Check(group) && PyDict_Next(group, &at, &key, &value)) {
		name.size = 0;
		if (tensor_watch_is_tensor(self, value)) {
			append_key(&name, key);
			tensor_watch_process_tensor(self, &name, value, OPS_ROLE_OPTIMIZER_STATE, now);
		} else if (PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, "params") == 0 &&
		           PyList_Check(value)) {
			for (Py_ssize_t i = 0; i < PyList_GET_SIZE(value); i++) {
				PyObject *parameter = PyList_GET_ITEM(value, i);

				if (!tensor_watch_is_tensor(self, parameter))
					continue;
				tensor_watch_find_name(self, parameter, &name);
				tensor_watch_process_tensor(self, &name, parameter, OPS_ROLE_PARAMETER, now);
			}
		}
	}
}

/* Returns an attribute; NULL without an exception if there is none. */
static PyObject *tensor_watch_attribute(PyObject *object, const char *name)
{
	PyObject *value = PyObject_GetAttrString(object, name);

	PyErr_Clear();
	return value;
}

/* Only the two attributes run Python code, so that the containers do not change during the walk. An optimizer with other
 * attributes is ignored. */
static void watch_optimizer(struct watch_object *self, PyObject *optimizer, bool now)
{
	PyObject *groups = tensor_watch_attribute(optimizer, "param_groups");
	PyObject *state = tensor_watch_attribute(optimizer, "state");
	PyObject *owner, *values;
	Py_ssize_t at = 0;
	struct name name;

	for (Py_ssize_t i = 0; groups && PyList_Check(groups) && i < PyList_GET_SIZE(groups); i++)
		watch_group(self, PyList_GET_ITEM(groups, i), now);
	while (state && PyDict_Check(state) && PyDict_Next(state, &at, &owner, &values)) {
		if (!tensor_watch_find_name(self, owner, &name))
			tensor_watch_append(&name, Py_TYPE(optimizer)->tp_name, strlen(Py_TYPE(optimizer)->tp_name));
		tensor_watch_process_value(self, &name, values, 0, now);
	}
	Py_XDECREF(groups);
	Py_XDECREF(state);
}

static void remember_optimizer(struct watch_object *self, PyObject *optimizer)
{
	PyObject *key = PyLong_FromVoidPtr(optimizer);
	PyObject *known = key ? PyDict_GetItemWithError(self->optimizers, key) : NULL;
	PyObject *ref = NULL;

	if (key && (!known || ((PyWeakReference *)known)->wr_object != optimizer)) {
		ref = PyWeakref_NewRef(optimizer, NULL);
		if (ref)
			PyDict_SetItem(self->optimizers, key, ref);
	}
	Py_XDECREF(ref);
	Py_XDECREF(key);
	PyErr_Clear();
}

/* Returns false with an exception set if __init__ has not succeeded. */
static bool check_ready(PyObject *object)
{
	if (!((struct watch_object *)object)->ready)
		PyErr_SetString(PyExc_RuntimeError, "TensorWatch.__init__() was not called, or failed");
	return ((struct watch_object *)object)->ready;
}

/* Torch's hook. Errors here must not affect the program. */
static PyObject *watch_stepped(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
	struct watch_object *self = (struct watch_object *)object;
	const struct ops_collector *collector = ops_collector_get();
	struct ops_ext_unseen unseen;
	struct next_look *look;
	uint64_t begin_ticks;

	if (!check_ready(object))
		return NULL;
	if (count < 1 || (self->brief && is_paused))
		Py_RETURN_NONE;
	begin_ticks = ops_ticks(collector->tsc);
	look = find_look(self, args[0]);
	if (self->brief && begin_ticks < look->ticks)
		Py_RETURN_NONE;
	unseen = ops_ext_unseen_begin();
	watch_optimizer(self, args[0], true);
	ops_ext_unseen_end(unseen);
	remember_optimizer(self, args[0]);
	look->ticks = begin_ticks + BRIEF_SHARE * (ops_ticks(collector->tsc) - begin_ticks);
	PyErr_Clear();
	Py_RETURN_NONE;
}

/* --- type ----------------------------------------------------------------------------------------------------------- */

static PyObject *watch_hold(PyObject *object, PyObject *args)
{
	struct watch_object *self = (struct watch_object *)object;
	PyObject *text, *tensor, *key;
	struct name name = {.size = 0};
	const char *bytes;
	Py_ssize_t size;
	int role, failed;

	if (!check_ready(object) || !PyArg_ParseTuple(args, "UOi:hold", &text, &tensor, &role))
		return NULL;
	if (!tensor_watch_is_tensor(self, tensor))
		return PyErr_Format(PyExc_TypeError, "a tensor is wanted, not %.100s", Py_TYPE(tensor)->tp_name);
	bytes = PyUnicode_AsUTF8AndSize(text, &size);
	if (!bytes)
		PyErr_Clear(); /* lone surrogates: the tensor has no name */
	else
		tensor_watch_append(&name, bytes, (size_t)size);
	if (name.size && role == OPS_ROLE_PARAMETER) {
		key = PyLong_FromVoidPtr(tensor);
		failed = key ? PyDict_SetItem(self->names, key, text) : -1;
		Py_XDECREF(key);
		if (failed)
			return NULL;
	}
	tensor_watch_process_tensor(self, &name, tensor, (enum ops_role)role, false);
	Py_RETURN_NONE;
}

static PyObject *watch_hold_optimizer(PyObject *object, PyObject *optimizer)
{
	if (!check_ready(object))
		return NULL;
	remember_optimizer((struct watch_object *)object, optimizer);
	watch_optimizer((struct watch_object *)object, optimizer, false);
	Py_RETURN_NONE;
}

static PyObject *watch_optimizers(PyObject *object, PyObject *ignored)
{
	PyObject *list = check_ready(object) ? PyList_New(0) : NULL;
	PyObject *key, *ref;
	Py_ssize_t at = 0;

	(void)ignored;
	while (list && PyDict_Next(((struct watch_object *)object)->optimizers, &at, &key, &ref)) {
		PyObject *optimizer = ((PyWeakReference *)ref)->wr_object;

		if (optimizer != Py_None && PyList_Append(list, optimizer) < 0)
			Py_CLEAR(list);
	}
	return list;
}

static PyObject *watch_record_roles(PyObject *object, PyObject *ignored)
{
	struct watch_object *self = (struct watch_object *)object;
	struct ops_storage storage;

	(void)ignored;
	for (size_t i = 0; i < self->count; i++) {
		const struct held *held = &self->held[i];

		if (ops_ext_bridge()->storage_look(held->storage, &storage))
			tensor_watch_record(held->name ? PyBytes_AS_STRING(held->name) : "",
			                    held->name ? (size_t)PyBytes_GET_SIZE(held->name) : 0, &storage, held->role);
	}
	Py_RETURN_NONE;
}

static PyObject *watch_mark(PyObject *object, PyObject *all_named)
{
	struct ops_storage storage = {0};
	int named = PyObject_IsTrue(all_named);

	(void)object;
	if (named < 0)
		return NULL;
	tensor_watch_record("", 0, &storage, named ? OPS_ROLE_TENSOR : OPS_ROLE_NONE);
	Py_RETURN_NONE;
}

static int watch_init(PyObject *object, PyObject *args, PyObject *kwargs)
{
	struct watch_object *self = (struct watch_object *)object;
	PyObject *torch, *core, *base;
	int brief = 0;

	(void)kwargs;
	if (!PyArg_ParseTuple(args, "O|p:TensorWatch", &torch, &brief))
		return -1;
	self->brief = brief;
	if (self->ready)
		return PyErr_SetString(PyExc_RuntimeError, "this TensorWatch was made before"), -1;
	if (!ops_ext_bridge())
		return PyErr_SetString(PyExc_RuntimeError, "a TensorWatch needs the torch bridge"), -1;
	core = PyObject_GetAttrString(torch, "_C");
	base = core ? PyObject_GetAttrString(core, "TensorBase") : NULL;
	if (!base) {
		Py_XDECREF(core);
		return -1;
	}
	Py_XSETREF(self->tensor_type, (PyTypeObject *)PyObject_GetAttrString(torch, "Tensor"));
	Py_XSETREF(self->impl, PyObject_GetAttrString(base, "_cdata"));
	Py_XSETREF(self->names, PyDict_New());
	Py_XSETREF(self->optimizers, PyDict_New());
	Py_DECREF(base);
	Py_DECREF(core);
	if (!self->tensor_type || !self->impl || !self->names || !self->optimizers)
		return -1;
	if (!PyType_Check(self->tensor_type) || !Py_TYPE(self->impl)->tp_descr_get)
		return PyErr_SetString(PyExc_TypeError, "this torch's tensors are none"), -1;
	self->ready = true;
	return 0;
}

static void watch_dealloc(PyObject *object)
{
	struct watch_object *self = (struct watch_object *)object;
	PyTypeObject *type = Py_TYPE(object);

	for (size_t i = 0; i < self->count; i++) {
		ops_ext_bridge()->storage_drop(self->held[i].storage);
		Py_XDECREF(self->held[i].name);
	}
	PyMem_Free(self->held);
	Py_XDECREF(self->tensor_type);
	Py_XDECREF(self->impl);
	Py_XDECREF(self->names);
	Py_XDECREF(self->optimizers);
	type->tp_free(object);
	Py_DECREF(type);
}

static PyMethodDef watch_methods[] = {
	{"hold", watch_hold, METH_VARARGS,
	 "hold(name, tensor, role, /)\n--\n\nNotes what a tensor's storage, and a parameter's gradient, is for: role 1 a "
	 "parameter, 2 optimizer state, 3 a gradient, 4 a buffer, 5 a tensor."},
	{"hold_optimizer", watch_hold_optimizer, METH_O,
	 "hold_optimizer(optimizer, /)\n--\n\nNotes an optimizer's parameters, gradients and state."},
	{"optimizers", watch_optimizers, METH_NOARGS,
	 "optimizers()\n--\n\nThe optimizers that were noted or stepped, as far as they live."},
	{"record_roles", watch_record_roles, METH_NOARGS,
	 "record_roles()\n--\n\nRecords the roles of the storages found so far that are still alive."},
	{"mark", watch_mark, METH_O,
	 "mark(all_named, /)\n--\n\nTrue: a storage that turns up from now on without an allocation is new. False: one that is "
	 "not noted from now on is gone."},
	{"stepped", (PyCFunction)(void (*)(void))watch_stepped, METH_FASTCALL,
	 "stepped(optimizer, args, kwargs, /)\n--\n\nFor register_optimizer_step_post_hook: records what the optimizer's "
	 "tensors are for."},
	{0},
};

static PyType_Slot watch_slots[] = {
	{Py_tp_doc, "TensorWatch(torch, /)\n--\n\nRecords what the program's tensors are for. Requires the bridge."},
	{Py_tp_init, watch_init},
	{Py_tp_new, PyType_GenericNew},
	{Py_tp_dealloc, watch_dealloc},
	{Py_tp_methods, watch_methods},
	{0, NULL},
};

static PyType_Spec watch_spec = {
	.name = "opstrobe._core.TensorWatch",
	.basicsize = sizeof(struct watch_object),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = watch_slots,
};

int ops_ext_add_tensor_watch(PyObject *module)
{
	return ops_ext_add_type(module, &watch_spec, &ops_ext_state_of_module(module)->tensor_watch);
}
