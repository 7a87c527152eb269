/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of a session's modules for the recording: in order, with paths, names and sums of parameters; see module_registry.h.
 */
#include "module_registry.h"

#include <stdlib.h>
#include <string.h>

#include <opstrobe/internal/recording.h>

struct table {
	const struct module_registry *registry;
	uint32_t count;
	uint32_t *first_child; /* by entry: the first child; MODULE_NONE: none */
	uint32_t *next;        /* by entry: the next child of its first parent */
	uint32_t *order;       /* entries in order of the table */
	uint32_t *places;      /* by entry: its position in the table */
	uint32_t *stamps;      /* by entry: the last counted parameter */
	struct ops_recorded_module *modules;
	struct ops_text *aliases;
	PyObject **prefixes; /* by entry: a str, the prefix of the paths of its children */
	PyObject *texts;     /* list of bytes: owns the texts of the modules */
};

/* --- order ---------------------------------------------------------------------------------------------------------- */

/* Chains the children of each parent in order of their holdings; iterates backwards, because each is prepended. */
static void chain_children(struct table *table)
{
	const struct module_registry *registry = table->registry;

	memset(table->first_child, 0xff, table->count * sizeof(*table->first_child));
	for (uint32_t i = registry->holding_count; i-- > 0;) {
		const struct module_holding *holding = &registry->holdings[i];

		if (registry->entries[holding->child].holder != i)
			continue;
		table->next[holding->child] = table->first_child[holding->parent];
		table->first_child[holding->parent] = holding->child;
	}
}

static uint32_t holder_of(const struct table *table, uint32_t entry)
{
	uint32_t holding = table->registry->entries[entry].holder;

	return holding == MODULE_NONE ? MODULE_NONE : table->registry->holdings[holding].parent;
}

/* Sorts parents before their children. */
static void find_order(struct table *table)
{
	uint32_t placed = 0;

	for (uint32_t root = 0; root < table->count; root++) {
		uint32_t at = root;

		if (table->registry->entries[root].holder != MODULE_NONE)
			continue;
		while (at != MODULE_NONE) {
			table->places[at] = placed;
			table->order[placed++] = at;
			if (table->first_child[at] != MODULE_NONE) {
				at = table->first_child[at];
				continue;
			}
			while (at != root && table->next[at] == MODULE_NONE)
				at = holder_of(table, at);
			at = at == root ? MODULE_NONE : table->next[at];
		}
	}
}

/* --- parameters ----------------------------------------------------------------------------------------------------- */

struct occurrence {
	const struct module_parameter *parameter;
	uint32_t entry;
};

static int compare_occurrences(const void *a, const void *b)
{
	const struct occurrence *left = a, *right = b;
	uintptr_t left_key = (uintptr_t)left->parameter->key, right_key = (uintptr_t)right->parameter->key;

	if (left_key != right_key)
		return left_key < right_key ? -1 : 1;
	return left->entry < right->entry ? -1 : left->entry > right->entry;
}

/* Counts the parameter once for the module and once for each of its ancestors. */
static void count_parameter(struct table *table, uint32_t entry, const struct module_parameter *parameter, uint32_t stamp)
{
	struct ops_recorded_module *module = &table->modules[table->places[entry]];

	if (table->stamps[entry] == stamp)
		return;
	table->stamps[entry] = stamp;
	module->parameter_count += parameter->count;
	module->parameter_bytes += parameter->bytes;
	for (uint32_t at = table->registry->entries[entry].holder; at != MODULE_NONE; at = table->registry->holdings[at].next)
		count_parameter(table, table->registry->holdings[at].parent, parameter, stamp);
}

/* Returns false if out of memory. */
static bool count_parameters(struct table *table)
{
	struct occurrence *occurrences;
	size_t count = 0, filled = 0;
	uint32_t stamp = 0;

	for (uint32_t i = 0; i < table->count; i++)
		count += table->registry->entries[i].parameter_count;
	occurrences = PyMem_Calloc(count + 1, sizeof(*occurrences));
	if (!occurrences)
		return false;
	for (uint32_t i = 0; i < table->count; i++) {
		const struct module_entry *entry = &table->registry->entries[i];
		struct ops_recorded_module *module = &table->modules[table->places[i]];

		for (size_t k = 0; k < entry->parameter_count; k++) {
			occurrences[filled++] = (struct occurrence){&entry->parameters[k], i};
			module->own_parameter_count += entry->parameters[k].count;
			module->own_parameter_bytes += entry->parameters[k].bytes;
		}
	}
	qsort(occurrences, count, sizeof(*occurrences), compare_occurrences);
	for (size_t i = 0; i < count; i++) {
		stamp += i == 0 || occurrences[i].parameter->key != occurrences[i - 1].parameter->key;
		count_parameter(table, occurrences[i].entry, occurrences[i].parameter, stamp);
	}
	PyMem_Free(occurrences);
	return true;
}

/* --- texts ---------------------------------------------------------------------------------------------------------- */

/* Steals a str and sets `ret_text` to its bytes. Returns 0, or -1 with an exception set. */
static int module_table_keep_text(struct table *table, PyObject *take_text, struct ops_text *ret_text)
{
	PyObject *bytes = take_text ? ops_ext_text_bytes(take_text) : NULL;
	int failed = bytes ? PyList_Append(table->texts, bytes) : -1;

	if (!failed)
		*ret_text = (struct ops_text){PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes)};
	Py_XDECREF(bytes); /* owned by the list */
	Py_XDECREF(take_text);
	return failed;
}

/* Returns a class's name as str; `qualified` with its module. */
static PyObject *module_table_class_name(PyTypeObject *type, bool qualified)
{
	PyObject *name = PyObject_GetAttrString((PyObject *)type, qualified ? "__qualname__" : "__name__");
	PyObject *module = qualified && name ? PyObject_GetAttrString((PyObject *)type, "__module__") : NULL;
	PyObject *both = module && PyUnicode_Check(module) ? PyUnicode_FromFormat("%U.%S", module, name) : Py_XNewRef(name);

	Py_XDECREF(name);
	Py_XDECREF(module);
	return both;
}

/* Returns whether an attribute of that name is the module that a wrapper wraps: users know it by the path of the wrapper. */
static bool is_wrapped(const struct module_entry *holder, PyObject *name)
{
	static const char *const names[] = {"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"};
	static const char *const types[] = {"DistributedDataParallel", "FullyShardedDataParallel", "DataParallel"};
	const char *dot = strrchr(holder->type->tp_name, '.');

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(dot ? dot + 1 : holder->type->tp_name, types[i]) == 0)
			return PyUnicode_CompareWithASCIIString(name, "module") == 0;
	return false;
}

/* Returns the path of a module through one of its holdings, as str. A module without a parent has the name of its class, which is
 * not part of the paths of its children. */
static PyObject *path_of(const struct table *table, uint32_t entry, uint32_t holding_index)
{
	const struct module_registry *registry = table->registry;
	const struct module_holding *holding;
	PyObject *prefix, *path;

	if (holding_index == MODULE_NONE)
		return module_table_class_name(registry->entries[entry].type, false);
	holding = &registry->holdings[holding_index];
	prefix = table->prefixes[holding->parent];
	if (!is_wrapped(&registry->entries[holding->parent], holding->name))
		return PyUnicode_Concat(prefix, holding->name);
	if (PyUnicode_GET_LENGTH(prefix) == 0)
		return module_table_class_name(registry->entries[entry].type, false);
	path = PyUnicode_Substring(prefix, 0, PyUnicode_GET_LENGTH(prefix) - 1);
	return path;
}

/* Returns the prefix of the paths of children: "", or a path and a dot. */
static PyObject *prefix_of(const struct table *table, uint32_t entry, PyObject *path)
{
	uint32_t holding = table->registry->entries[entry].holder;
	uint32_t holder = holder_of(table, entry);

	if (holding == MODULE_NONE)
		return PyUnicode_FromString("");
	if (is_wrapped(&table->registry->entries[holder], table->registry->holdings[holding].name))
		return Py_NewRef(table->prefixes[holder]);
	return PyUnicode_FromFormat("%U.", path);
}

static PyObject *row_name(const struct module_entry *entry)
{
	PyObject *name = module_table_class_name(entry->type, false);
	PyObject *text = NULL;

	if (name && entry->number == MODULE_NONE)
		text = PyUnicode_FromString("");
	else if (name)
		text = PyUnicode_FromFormat("nn.Module: %S_%lu", name, (unsigned long)entry->number);
	Py_XDECREF(name);
	return text;
}

/* Sets names and paths of an entry whose parent has its own. Returns 0, or -1 with an exception set. */
static int module_table_describe(struct table *table, uint32_t index)
{
	const struct module_entry *entry = &table->registry->entries[index];
	struct ops_recorded_module *module = &table->modules[table->places[index]];
	uint32_t holder = holder_of(table, index);
	PyObject *path = path_of(table, index, entry->holder);

	if (!path)
		return -1;
	table->prefixes[index] = prefix_of(table, index, path);
	module->id = entry->number == MODULE_NONE ? -1 : (int64_t)index;
	module->number = entry->number;
	module->address = (uintptr_t)entry->address;
	module->parent = holder == MODULE_NONE ? MODULE_NONE : table->places[holder];
	if (!table->prefixes[index] || module_table_keep_text(table, path, &module->path) < 0 ||
	    module_table_keep_text(table, row_name(entry), &module->name) < 0 ||
	    module_table_keep_text(table, module_table_class_name(entry->type, true), &module->class_name) < 0)
		return -1;
	return 0;
}

/* Adds the additional paths of all modules. Returns 0, or -1 with an exception set. */
static int add_aliases(struct table *table)
{
	const struct module_registry *registry = table->registry;
	struct ops_text *next = table->aliases;

	for (uint32_t i = 0; i < table->count; i++) {
		struct ops_recorded_module *module = &table->modules[table->places[i]];
		uint32_t at = registry->entries[i].holder;

		module->aliases = next;
		for (at = at == MODULE_NONE ? at : registry->holdings[at].next; at != MODULE_NONE;
		     at = registry->holdings[at].next) {
			if (module_table_keep_text(table, path_of(table, i, at), next++) < 0)
				return -1;
			module->alias_count++;
		}
	}
	return 0;
}

/* --- table ---------------------------------------------------------------------------------------------------------- */

static bool module_table_init(struct table *table, const struct module_registry *registry)
{
	size_t room = (size_t)registry->count + 1;

	*table = (struct table){
		.registry = registry,
		.count = registry->count,
		.first_child = PyMem_Calloc(room, sizeof(*table->first_child)),
		.next = PyMem_Calloc(room, sizeof(*table->next)),
		.order = PyMem_Calloc(room, sizeof(*table->order)),
		.places = PyMem_Calloc(room, sizeof(*table->places)),
		.stamps = PyMem_Calloc(room, sizeof(*table->stamps)),
		.modules = PyMem_Calloc(room, sizeof(*table->modules)),
		.aliases = PyMem_Calloc((size_t)registry->holding_count + 1, sizeof(*table->aliases)),
		.prefixes = PyMem_Calloc(room, sizeof(PyObject *)),
		.texts = PyList_New(0),
	};
	return table->first_child && table->next && table->order && table->places && table->stamps && table->modules &&
	       table->aliases && table->prefixes && table->texts;
}

static void module_table_release(struct table *table)
{
	for (uint32_t i = 0; table->prefixes && i < table->count; i++)
		Py_XDECREF(table->prefixes[i]);
	PyMem_Free(table->first_child);
	PyMem_Free(table->next);
	PyMem_Free(table->order);
	PyMem_Free(table->places);
	PyMem_Free(table->stamps);
	PyMem_Free(table->modules);
	PyMem_Free(table->aliases);
	PyMem_Free(table->prefixes);
	Py_XDECREF(table->texts);
}

/* Returns the weak references to the modules, in order of the table. NULL and no exception if out of memory. */
static PyObject *list_refs(const struct table *table)
{
	PyObject *refs = PyTuple_New(table->count);

	for (uint32_t i = 0; refs && i < table->count; i++)
		PyTuple_SET_ITEM(refs, i, Py_NewRef(table->registry->entries[table->order[i]].ref));
	PyErr_Clear();
	return refs;
}

/* Returns 0, or -1 with an exception set unless out of memory. The table must be released even on failure. */
static int module_table_fill(struct table *table, const struct module_registry *registry)
{
	int failed = -1;

	if (module_table_init(table, registry)) {
		chain_children(table);
		find_order(table);
		failed = count_parameters(table) ? 0 : -1;
	}
	for (uint32_t i = 0; !failed && i < table->count; i++)
		failed = module_table_describe(table, table->order[i]);
	return failed ? failed : add_aliases(table);
}

#define TABLES_ALWAYS 16u

static void note_table(struct module_registry *registry)
{
	uint32_t more = registry->count - registry->noted_count;
	struct table table;

	if (!more || (registry->noted_tables >= TABLES_ALWAYS && more < registry->noted_count / 16))
		return;
	registry->noted_count = registry->count;
	registry->noted_tables++;
	if (!module_table_fill(&table, registry))
		ops_session_note_modules(table.modules, table.order, table.count);
	module_table_release(&table);
}

void module_table_note(struct module_registry *registry, uint32_t index)
{
	const struct module_entry entry = registry->entries[index]; /* a name may run Python code, which may add entries */
	PyObject *type, *error, *traceback, *name_bytes, *class_bytes;
	PyObject *name, *class_name;

	PyErr_Fetch(&type, &error, &traceback);
	Py_INCREF(entry.type);
	name = row_name(&entry);
	name_bytes = name ? ops_ext_text_bytes(name) : NULL;
	class_name = name_bytes ? module_table_class_name(entry.type, true) : NULL;
	class_bytes = class_name ? ops_ext_text_bytes(class_name) : NULL;
	if (class_bytes)
		ops_session_note_module(index, entry.number,
		                        (struct ops_text){PyBytes_AS_STRING(name_bytes), (size_t)PyBytes_GET_SIZE(name_bytes)},
		                        (struct ops_text){PyBytes_AS_STRING(class_bytes), (size_t)PyBytes_GET_SIZE(class_bytes)});
	note_table(registry);
	Py_DECREF(entry.type);
	Py_XDECREF(name);
	Py_XDECREF(name_bytes);
	Py_XDECREF(class_name);
	Py_XDECREF(class_bytes);
	PyErr_Clear();
	PyErr_Restore(type, error, traceback);
}

int module_table_add_to(const struct module_registry *registry, struct ops_recording *recording, PyObject **ret_refs)
{
	struct table table;
	int failed = module_table_fill(&table, registry);

	if (!failed && ops_recording_set_modules(recording, table.modules, table.count, NULL))
		failed = -1;
	if (!failed)
		*ret_refs = list_refs(&table);
	if (failed && !PyErr_Occurred())
		PyErr_NoMemory();
	module_table_release(&table);
	return failed;
}
