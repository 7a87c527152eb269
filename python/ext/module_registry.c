/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules of a session; see module_registry.h.
 *
 *     entries    Net ─┬─ encoder ─┬─ 0        holdings   (Net, encoder), (encoder, 0), (encoder, 1), (Net, head), …
 *                     │           └─ 1
 *                     └─ head
 *
 * A module is added when it is called, together with all its descendants, so that paths and parameters are known even for modules
 * that no longer exist at the end. Entries and holdings are referred to by index and not by pointer, because reading a module may
 * run Python code that calls other modules.
 */
#include "module_registry.h"
#include "frames.h"
#include "unseen.h"

#include <string.h>

#define FIRST_SLOTS 256u

/* --- table ---------------------------------------------------------------------------------------------------------- */

int module_registry_init(struct module_registry *registry, PyObject *module_type)
{
	*registry = (struct module_registry){.slot_count = FIRST_SLOTS};
	registry->slots = PyMem_Calloc(FIRST_SLOTS, sizeof(*registry->slots));
	if (!registry->slots) {
		PyErr_NoMemory();
		return -1;
	}
	registry->module_type = Py_NewRef(module_type);
	registry->type_counts = PyDict_New();
	return registry->type_counts ? 0 : -1;
}

void module_registry_release(struct module_registry *registry)
{
	struct module_registry old = *registry;

	*registry = (struct module_registry){0}; /* dropping references may run code that uses the registry */
	for (uint32_t i = 0; i < old.count; i++) {
		Py_DECREF(old.entries[i].ref);
		Py_DECREF(old.entries[i].type);
		PyMem_Free(old.entries[i].parameters);
	}
	for (uint32_t i = 0; i < old.holding_count; i++)
		Py_DECREF(old.holdings[i].name);
	PyMem_Free(old.entries);
	PyMem_Free(old.holdings);
	PyMem_Free(old.slots);
	Py_XDECREF(old.type_counts);
	Py_XDECREF(old.module_type);
}

/* Makes room for one more item after `count`. Returns false if out of memory. */
static bool module_registry_make_room(void *items_field, uint32_t count, uint32_t *capacity, size_t bytes_each)
{
	void **items = items_field;
	uint32_t wanted = *capacity ? *capacity * 2 : 64;
	void *moved;

	if (count < *capacity)
		return true;
	if (wanted > INT32_MAX)
		return false;
	moved = PyMem_Realloc(*items, wanted * bytes_each);
	if (!moved)
		return false;
	*items = moved;
	*capacity = wanted;
	return true;
}

static void module_registry_place(struct module_registry *registry, uint32_t index)
{
	uint32_t mask = registry->slot_count - 1;
	uint32_t at = module_registry_hash(registry->entries[index].address);

	while (registry->slots[at & mask])
		at++;
	registry->slots[at & mask] = index + 1;
}

static bool module_registry_grow_slots(struct module_registry *registry)
{
	uint32_t *slots, *old = registry->slots;

	if (registry->count < registry->slot_count / 2)
		return true;
	slots = PyMem_Calloc((size_t)registry->slot_count * 2, sizeof(*slots));
	if (!slots)
		return false;
	registry->slots = slots;
	registry->slot_count *= 2;
	for (uint32_t i = 0; i < registry->count; i++)
		module_registry_place(registry, i);
	PyMem_Free(old);
	return true;
}

/* Returns the entry of a module, added if new. Returns MODULE_NONE, with an exception set, on failure. */
static uint32_t register_module(struct module_registry *registry, PyObject *module)
{
	PyObject *ref = PyWeakref_NewRef(module, NULL);
	uint32_t index;

	if (!ref)
		return MODULE_NONE;
	index = module_registry_find(registry, module);
	if (index != MODULE_NONE) {
		Py_DECREF(ref);
		return index;
	}
	if (!module_registry_make_room(&registry->entries, registry->count, &registry->capacity, sizeof(*registry->entries)) ||
	    !module_registry_grow_slots(registry)) {
		Py_DECREF(ref);
		PyErr_NoMemory();
		return MODULE_NONE;
	}
	index = registry->count++;
	registry->entries[index] = (struct module_entry){
		.address = module,
		.ref = ref,
		.type = (PyTypeObject *)Py_NewRef(Py_TYPE(module)),
		.number = MODULE_NONE,
		.holder = MODULE_NONE,
		.last_holder = MODULE_NONE,
	};
	module_registry_place(registry, index);
	return index;
}

/* --- parameters ----------------------------------------------------------------------------------------------------- */

/* Returns the result of a method without arguments; 0 if it is not a number. */
static uint64_t module_registry_number(PyObject *tensor, const char *method)
{
	PyObject *answer = PyObject_CallMethod(tensor, method, NULL);
	long long number = answer && PyLong_Check(answer) ? PyLong_AsLongLong(answer) : 0;

	Py_XDECREF(answer);
	PyErr_Clear(); /* an uninitialised parameter, or a shape with symbols */
	return number > 0 ? (uint64_t)number : 0;
}

/* Returns the values of a dict, or (for TorchScript modules) of a similar object, as a list. Returns NULL without an exception if
 * there are none. */
static PyObject *list_of(PyObject *module, const char *attribute, bool items)
{
	PyObject *holder = PyObject_GetAttrString(module, attribute);
	PyObject *list = NULL;

	if (holder && PyDict_Check(holder))
		list = items ? PyDict_Items(holder) : PyDict_Values(holder);
	else if (holder)
		list = items ? PyMapping_Items(holder) : PyMapping_Values(holder);
	Py_XDECREF(holder);
	PyErr_Clear();
	return list;
}

static void read_parameters(struct module_registry *registry, uint32_t index, PyObject *module)
{
	PyObject *list = list_of(module, "_parameters", false);
	Py_ssize_t size = list ? PyList_GET_SIZE(list) : 0;
	struct module_parameter *parameters = size ? PyMem_Calloc((size_t)size, sizeof(*parameters)) : NULL;
	struct ops_ext_unseen unseen = {0};
	size_t count = 0;

	if (parameters)
		unseen = ops_ext_unseen_begin();
	for (Py_ssize_t i = 0; parameters && i < size; i++) {
		PyObject *tensor = PyList_GET_ITEM(list, i);
		uint64_t numbers = tensor != Py_None ? module_registry_number(tensor, "numel") : 0;

		if (numbers)
			parameters[count++] = (struct module_parameter){tensor, numbers,
			                                                numbers * module_registry_number(tensor, "element_size")};
	}
	ops_ext_unseen_end(unseen);
	Py_XDECREF(list);
	PyMem_Free(registry->entries[index].parameters);
	registry->entries[index].parameters = parameters;
	registry->entries[index].parameter_count = count;
}

/* --- holdings ------------------------------------------------------------------------------------------------------- */

/* Returns whether `above` is `index` or an ancestor of it, by first holdings. */
static bool is_above(const struct module_registry *registry, uint32_t above, uint32_t index)
{
	for (uint32_t holding; index != above; index = registry->holdings[holding].parent) {
		holding = registry->entries[index].holder;
		if (holding == MODULE_NONE)
			return false;
	}
	return true;
}

static bool is_held(const struct module_registry *registry, uint32_t parent, uint32_t child, PyObject *name)
{
	uint32_t at = registry->entries[child].holder;

	while (at != MODULE_NONE && (registry->holdings[at].parent != parent ||
	                             PyUnicode_Compare(registry->holdings[at].name, name) != 0))
		at = registry->holdings[at].next;
	return at != MODULE_NONE;
}

/* Records that `parent` contains `child`, unless that is known or would close a cycle. */
static void module_registry_hold(struct module_registry *registry, uint32_t parent, uint32_t child, PyObject *name)
{
	struct module_entry *entry = &registry->entries[child];
	uint32_t index = registry->holding_count;

	if (is_above(registry, child, parent) || is_held(registry, parent, child, name) ||
	    !module_registry_make_room(&registry->holdings, index, &registry->holding_capacity, sizeof(*registry->holdings)))
		return;
	registry->holding_count++;
	registry->holdings[index] = (struct module_holding){parent, child, MODULE_NONE, Py_NewRef(name)};
	if (entry->holder == MODULE_NONE)
		entry->holder = index;
	else
		registry->holdings[entry->last_holder].next = index;
	entry->last_holder = index;
}

/* Reads what the module contains, recursively. With `again`, also reads modules that are known already. */
static void explore(struct module_registry *registry, uint32_t index, PyObject *module, bool again)
{
	PyObject *items;

	if (Py_EnterRecursiveCall(" while looking at modules")) {
		PyErr_Clear();
		return;
	}
	read_parameters(registry, index, module);
	items = list_of(module, "_modules", true);
	for (Py_ssize_t i = 0; items && i < PyList_GET_SIZE(items); i++) {
		PyObject *item = PyList_GET_ITEM(items, i);
		PyObject *name = NULL, *child = NULL;
		uint32_t known = registry->count, at;

		if (!PyTuple_Check(item) || !PyArg_UnpackTuple(item, "item", 2, 2, &name, &child) ||
		    !PyUnicode_Check(name) || PyObject_IsInstance(child, registry->module_type) != 1)
			continue;
		at = register_module(registry, child);
		if (at == MODULE_NONE)
			continue;
		module_registry_hold(registry, index, at, name);
		/* Each module is read once, below its first parent. */
		if (at >= known || (again && registry->entries[at].holder != MODULE_NONE &&
		                    registry->holdings[registry->entries[at].holder].parent == index))
			explore(registry, at, child, again);
	}
	PyErr_Clear();
	Py_XDECREF(items);
	Py_LeaveRecursiveCall();
}

/* --- modules that are not called ------------------------------------------------------------------------------------- */

/* Returns whether `outer` contains the module, directly or not. */
static bool is_part(const struct module_registry *registry, PyObject *outer, PyObject *module)
{
	PyObject *list = list_of(outer, "_modules", false);
	bool found = false;

	if (list && !Py_EnterRecursiveCall(" while looking at modules")) {
		for (Py_ssize_t i = 0; !found && i < PyList_GET_SIZE(list); i++) {
			PyObject *item = PyList_GET_ITEM(list, i);

			found = item == module || (PyObject_TypeCheck(item, (PyTypeObject *)registry->module_type) &&
			                           is_part(registry, item, module));
		}
		Py_LeaveRecursiveCall();
	}
	PyErr_Clear();
	Py_XDECREF(list);
	return found;
}

/* Returns the module whose method the frame runs; NULL: none. Borrowed. */
static PyObject *module_of_frame(const struct module_registry *registry, ops_frame *frame)
{
	PyObject *self = ops_frame_code(frame)->co_argcount ? ops_frame_first_argument(frame) : NULL;

	if (self && PyCell_Check(self))
		self = PyCell_GET(self);
	return self && PyObject_TypeCheck(self, (PyTypeObject *)registry->module_type) ? self : NULL;
}

/* The parent of a called module may never be called itself: Lightning runs the method training_step without a call of its module.
 * Such a parent is `self` of one of the calling frames, and determines the path of the called module. */
static void register_holder(struct module_registry *registry, PyObject *module)
{
	ops_frame *frame = ops_frame_current(PyThreadState_Get());

	for (; frame; frame = ops_frame_caller(frame)) {
		PyObject *outer = module_of_frame(registry, frame);

		if (!outer || module_registry_find(registry, outer) != MODULE_NONE)
			continue;
		Py_INCREF(outer);
		if (is_part(registry, outer, module)) {
			uint32_t index = register_module(registry, outer);

			if (index != MODULE_NONE)
				explore(registry, index, outer, false);
		}
		Py_DECREF(outer);
	}
}

/* Returns the number of the next module of this class. Returns MODULE_NONE with an exception set. */
static uint32_t next_number(struct module_registry *registry, PyTypeObject *type)
{
	PyObject *key = PyLong_FromVoidPtr(type);
	PyObject *known = key ? PyDict_GetItemWithError(registry->type_counts, key) : NULL;
	uint32_t number = known ? (uint32_t)PyLong_AsUnsignedLong(known) : 0;
	PyObject *next = key && !PyErr_Occurred() ? PyLong_FromUnsignedLong(number + 1) : NULL;
	bool set = next && PyDict_SetItem(registry->type_counts, key, next) == 0;

	Py_XDECREF(key);
	Py_XDECREF(next);
	return set ? number : MODULE_NONE;
}

uint32_t module_registry_call(struct module_registry *registry, PyObject *module)
{
	uint32_t known = registry->count;
	uint32_t index = register_module(registry, module);

	if (index != MODULE_NONE && index >= known) {
		explore(registry, index, module, false);
		if (registry->entries[index].holder == MODULE_NONE)
			register_holder(registry, module);
	}
	if (index != MODULE_NONE && registry->entries[index].number == MODULE_NONE) {
		uint32_t number = next_number(registry, Py_TYPE(module));

		registry->entries[index].number = number;
		if (number == MODULE_NONE)
			index = MODULE_NONE;
	}
	PyErr_Clear();
	return index;
}

void module_registry_refresh(struct module_registry *registry)
{
	uint32_t count = registry->count;

	for (uint32_t i = 0; i < count; i++) {
		PyObject *module = ((PyWeakReference *)registry->entries[i].ref)->wr_object;

		if (registry->entries[i].holder != MODULE_NONE || module == Py_None)
			continue;
		Py_INCREF(module);
		explore(registry, i, module, true);
		Py_DECREF(module);
	}
}
