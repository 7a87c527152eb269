/* SPDX-License-Identifier: Apache-2.0
 *
 * The modules and optimizers of calls in the raw tree. A module's parameters are described when the recording ends, if the module
 * still exists: its calls do not read them. An optimizer's tensors come from the roles that a recording of memory has for each
 * step.
 */
#include "raw_views.h"
#include "module_registry.h"

#include <string.h>

/* --- modules ---------------------------------------------------------------------------------------------------------------- */

/* Returns the address of a tensor's memory; 0 if it has none. */
static unsigned long long address_of(PyObject *tensor)
{
	PyObject *storage = PyObject_CallMethod(tensor, "untyped_storage", NULL);
	PyObject *pointer = storage ? PyObject_CallMethod(storage, "data_ptr", NULL) : NULL;
	unsigned long long address = pointer && PyLong_Check(pointer) ? PyLong_AsUnsignedLongLong(pointer) : 0;

	Py_XDECREF(pointer);
	Py_XDECREF(storage);
	if (PyErr_Occurred())
		PyErr_Clear(), address = 0;
	return address;
}

/* Returns the argument of ops_ext_tensor_of_fields. Returns NULL without an exception for an uninitialised parameter and for a
 * tensor without strides. */
static PyObject *tensor_fields(PyObject *tensor, bool with_memory)
{
	PyObject *fields = Py_BuildValue("(NNNNNK)", PyObject_CallMethod(tensor, "size", NULL),
	                                 PyObject_CallMethod(tensor, "stride", NULL), PyObject_GetAttrString(tensor, "dtype"),
	                                 PyObject_GetAttrString(tensor, "layout"), PyObject_GetAttrString(tensor, "device"),
	                                 with_memory ? address_of(tensor) : 0);

	PyErr_Clear();
	return fields;
}

/* Returns (name, fields, fields of the gradient or None). Returns NULL without an exception if there are none. */
static PyObject *describe_parameter(PyObject *name, PyObject *tensor, bool with_memory)
{
	PyObject *fields = tensor == Py_None ? NULL : tensor_fields(tensor, with_memory);
	PyObject *gradient = fields ? PyObject_GetAttrString(tensor, "grad") : NULL;
	PyObject *row;

	PyErr_Clear();
	if (gradient && gradient != Py_None)
		Py_SETREF(gradient, tensor_fields(gradient, with_memory));
	row = fields ? Py_BuildValue("(OON)", name, fields, gradient ? gradient : Py_NewRef(Py_None)) : NULL;
	Py_XDECREF(fields);
	PyErr_Clear();
	return row;
}

static PyObject *describe_module(PyObject *module, bool with_memory)
{
	PyObject *holder = PyObject_GetAttrString(module, "_parameters");
	PyObject *items = holder ? PyMapping_Items(holder) : NULL;
	PyObject *list = PyList_New(0);

	PyErr_Clear();
	for (Py_ssize_t i = 0; items && list && i < PyList_GET_SIZE(items); i++) {
		PyObject *name, *tensor, *row = NULL;

		if (PyArg_ParseTuple(PyList_GET_ITEM(items, i), "OO", &name, &tensor))
			row = describe_parameter(name, tensor, with_memory);
		if (row && PyList_Append(list, row) < 0)
			Py_CLEAR(list);
		Py_XDECREF(row);
		PyErr_Clear();
	}
	Py_XDECREF(items);
	Py_XDECREF(holder);
	return list ? Py_BuildValue("(NK)", list, (unsigned long long)(uintptr_t)Py_TYPE(module)) : NULL;
}

PyObject *ops_ext_describe_modules(PyObject *refs, bool with_memory)
{
	PyObject *all = refs ? PyTuple_New(PyTuple_GET_SIZE(refs)) : NULL;

	for (Py_ssize_t i = 0; all && i < PyTuple_GET_SIZE(all); i++) {
		PyObject *module = Py_NewRef(((PyWeakReference *)PyTuple_GET_ITEM(refs, i))->wr_object);
		PyObject *described = module == Py_None ? NULL : describe_module(module, with_memory);

		PyTuple_SET_ITEM(all, i, described ? described : Py_NewRef(Py_None));
		Py_DECREF(module);
	}
	PyErr_Clear();
	return all;
}

/* Returns (name, tensor, gradient) for each described parameter. */
static PyObject *show_parameters(const struct tensor_view *view, PyObject *described)
{
	PyObject *list = PyList_New(0);

	for (Py_ssize_t i = 0; list && i < PyList_GET_SIZE(described); i++) {
		PyObject *item = PyList_GET_ITEM(described, i), *gradient = PyTuple_GET_ITEM(item, 2), *row;

		row = Py_BuildValue("(ONN)", PyTuple_GET_ITEM(item, 0),
		                    ops_ext_tensor_of_fields(view, PyTuple_GET_ITEM(item, 1), OPS_MEMORY_PARAMETER),
		                    gradient == Py_None ? Py_NewRef(Py_None)
		                                        : ops_ext_tensor_of_fields(view, gradient, OPS_MEMORY_GRADIENT));
		if (!row || PyList_Append(list, row) < 0)
			Py_CLEAR(list);
		Py_XDECREF(row);
	}
	return list;
}

/* Returns "Linear" for "nn.Module: Linear_0". */
static PyObject *python_objects_class_name(const struct ops_trace *trace, uint32_t row)
{
	static const char prefix[] = "nn.Module: ";
	struct ops_string name = ops_trace_string(trace, ops_trace_events(trace)->name[row]);
	size_t skip = strlen(prefix), end = name.size;

	if (name.size < skip || memcmp(name.bytes, prefix, skip) != 0)
		return ops_ext_text(name.bytes, name.size);
	while (end > skip && name.bytes[end - 1] != '_')
		end--;
	return ops_ext_text(name.bytes + skip, end > skip ? end - 1 - skip : name.size - skip);
}

PyObject *ops_ext_module_info(const struct tensor_view *view, uint32_t row)
{
	const struct ops_trace *trace = view->trace->trace;
	const struct ops_events *events = ops_trace_events(trace);
	PyObject *all = view->trace->module_parameters, *described = Py_None;
	uint32_t index = events->module ? events->module[row] : OPS_NONE;
	unsigned long long type = 0;
	PyObject *parameters = NULL;
	size_t count;
	const struct ops_module *modules = ops_trace_modules(trace, &count);

	if (!events->python_module || events->python_module[row] == OPS_NONE)
		Py_RETURN_NONE;
	if (all && index < (size_t)PyTuple_GET_SIZE(all))
		described = PyTuple_GET_ITEM(all, index);
	if (described != Py_None && !PyArg_ParseTuple(described, "OK", &parameters, &type))
		return NULL;
	return ops_ext_raw_fields(view->state, "_NNModuleInfo",
	                          Py_BuildValue("{sKsKsNsN}", "self_ptr",
	                                        index < count ? (unsigned long long)modules[index].address : 0ULL, "cls_ptr",
	                                        type, "cls_name", python_objects_class_name(trace, row), "parameters",
	                                        parameters ? show_parameters(view, parameters) : PyList_New(0)));
}

/* --- optimizers ------------------------------------------------------------------------------------------------------------- */

static const char step_function[] = "_optimizer_step_code"; /* torch calls it at the end of each step */

/* The roles recorded at a step: each parameter, followed by its gradient, then the states. */
struct step_roles {
	const struct ops_role_record *records;
	size_t first;
	size_t end;
};

static bool python_objects_is_step(const struct ops_trace *trace, uint32_t row)
{
	struct ops_string name = ops_trace_string(trace, ops_trace_events(trace)->name[row]);
	size_t size = strlen(step_function);

	return name.size > size && memcmp(name.bytes + name.size - size, step_function, size) == 0 &&
	       (name.bytes[name.size - size - 1] == ' ' || name.bytes[name.size - size - 1] == '.');
}

/* Roles are recorded after the call of the function, before the step ends. */
static struct step_roles find_roles(const struct ops_trace *trace, uint32_t row)
{
	const struct ops_events *events = ops_trace_events(trace);
	uint32_t step = events->parent[row];
	int64_t until_ns = step == OPS_NONE ? events->end_ns[row] : events->end_ns[step];
	size_t count;
	struct step_roles roles = {.records = ops_trace_roles(trace, &count)};

	while (roles.first < count && roles.records[roles.first].time_ns < events->start_ns[row])
		roles.first++;
	for (roles.end = roles.first; roles.end < count && roles.records[roles.end].time_ns <= until_ns;)
		roles.end++;
	return roles;
}

/* Returns whether a state's name is that of a parameter, followed by a key, which `ret_key` receives. */
static bool belongs(struct ops_string state, struct ops_string parameter, struct ops_string *ret_key)
{
	const char *dot;

	if (parameter.size == 0) { /* states of unnamed parameters have the name of the optimizer's class */
		dot = memchr(state.bytes, '.', state.size);
		parameter.size = dot ? (size_t)(dot - state.bytes) : state.size;
	} else if (state.size <= parameter.size || memcmp(state.bytes, parameter.bytes, parameter.size) != 0 ||
	           state.bytes[parameter.size] != '.') {
		return false;
	}
	if (parameter.size >= state.size)
		return false;
	*ret_key = (struct ops_string){state.bytes + parameter.size + 1, state.size - parameter.size - 1};
	return true;
}

static bool python_objects_has_key(PyObject *states, PyObject *key)
{
	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(states); i++)
		if (PyUnicode_Compare(PyTuple_GET_ITEM(PyList_GET_ITEM(states, i), 0), key) == 0)
			return true;
	return false;
}

/* Adds a state to its parameter: the first of that name without a state of this kind. Returns 0, or -1 with an exception set. */
static int add_state(const struct tensor_view *view, PyObject *parameters, const struct step_roles *roles,
                     const uint32_t *names, size_t state)
{
	const struct ops_trace *trace = view->trace->trace;
	const struct ops_role_record *record = &roles->records[state];
	struct ops_string name = ops_trace_string(trace, record->name), key;

	for (Py_ssize_t i = 0; i < PyList_GET_SIZE(parameters); i++) {
		PyObject *states = PyTuple_GET_ITEM(PyList_GET_ITEM(parameters, i), 2), *text, *pair;
		int failed;

		if (!belongs(name, ops_trace_string(trace, names[i]), &key))
			continue;
		text = ops_ext_text(key.bytes, key.size);
		if (!text || python_objects_has_key(states, text)) {
			Py_XDECREF(text);
			if (!text)
				return -1;
			continue;
		}
		pair = Py_BuildValue("(NN)", text, ops_ext_tensor_of_storage(view, &record->storage, &record->storage, record->time_ns));
		failed = pair ? PyList_Append(states, pair) : -1;
		Py_XDECREF(pair);
		return failed;
	}
	return 0;
}

static PyObject *parameter_row(const struct tensor_view *view, const struct step_roles *roles, size_t at)
{
	const struct ops_role_record *record = &roles->records[at];
	bool has_gradient = at + 1 < roles->end && record[1].storage.role == OPS_ROLE_GRADIENT;
	PyObject *parameter = ops_ext_tensor_of_storage(view, &record->storage, &record->storage, record->time_ns);
	PyObject *gradient = Py_NewRef(Py_None);

	if (has_gradient) /* operators first see it in other shapes; it has that of its parameter */
		Py_SETREF(gradient, ops_ext_tensor_of_storage(view, &record[1].storage, &record->storage, record[1].time_ns));
	return Py_BuildValue("(NNN)", parameter, gradient, PyList_New(0));
}

static PyObject *step_parameters(const struct tensor_view *view, const struct step_roles *roles)
{
	PyObject *parameters = PyList_New(0);
	uint32_t *names = PyMem_New(uint32_t, roles->end - roles->first + 1);

	if (!names)
		Py_CLEAR(parameters);
	for (size_t i = roles->first; parameters && i < roles->end; i++) {
		PyObject *row;

		if (roles->records[i].storage.role != OPS_ROLE_PARAMETER)
			continue;
		names[PyList_GET_SIZE(parameters)] = roles->records[i].name;
		row = parameter_row(view, roles, i);
		if (!row || PyList_Append(parameters, row) < 0)
			Py_CLEAR(parameters);
		Py_XDECREF(row);
	}
	for (size_t i = roles->first; parameters && i < roles->end; i++)
		if (roles->records[i].storage.role == OPS_ROLE_OPTIMIZER_STATE &&
		    add_state(view, parameters, roles, names, i) < 0)
			Py_CLEAR(parameters);
	PyMem_Free(names);
	return parameters;
}

PyObject *ops_ext_optimizer_info(const struct tensor_view *view, uint32_t row)
{
	const struct ops_trace *trace = view->trace->trace;
	struct step_roles roles;

	if (!view->blocks->timeline || !python_objects_is_step(trace, row))
		Py_RETURN_NONE;
	roles = find_roles(trace, row);
	if (roles.first >= roles.end)
		Py_RETURN_NONE;
	return ops_ext_raw_fields(view->state, "_OptimizerInfo",
	                          Py_BuildValue("{sOsN}", "self_ptr", Py_None, "parameters", step_parameters(view, &roles)));
}
