/* SPDX-License-Identifier: Apache-2.0
 *
 * Which modules a session has seen called, and which hold which (module_registry.c); and what a recording is told of them at
 * its end (module_table.c). Under the GIL.
 */
#ifndef OPS_EXT_MODULE_REGISTRY_H
#define OPS_EXT_MODULE_REGISTRY_H

#include "ext.h"

#include <opstrobe/record.h>

#define MODULE_NONE UINT32_MAX

/* A parameter that a module holds itself. */
struct module_parameter {
	void *key; /* equal for the same parameter */
	uint64_t count;
	uint64_t bytes;
};

/* A module that was called, or that one that was called holds, directly or not. It is known by its address as long as the
 * weak reference says that it lives; at most once then. */
struct module_entry {
	void *address;
	PyObject *ref;      /* weak */
	PyTypeObject *type; /* strong */
	uint32_t number;    /* MODULE_NONE until it is called */
	uint32_t holder;    /* its first holding, index; MODULE_NONE none */
	uint32_t last_holder;
	size_t parameter_count;
	struct module_parameter *parameters;
};

/* That a module is an attribute of another. */
struct module_holding {
	uint32_t parent;
	uint32_t child;
	uint32_t next;  /* the next one of the child; MODULE_NONE none */
	PyObject *name; /* str */
};

struct module_registry {
	struct module_entry *entries;
	uint32_t count;
	uint32_t capacity;
	uint32_t *slots; /* open addressing by address, index + 1; a power of two of them */
	uint32_t slot_count;
	struct module_holding *holdings;
	uint32_t holding_count;
	uint32_t holding_capacity;
	PyObject *type_counts; /* dict: address of a class → how many of it were called */
	PyObject *module_type; /* torch.nn.Module */
	uint32_t noted_count;  /* entries in the last table that the session's recording file was given */
	uint32_t noted_tables;
};

/* Zero-initialised is empty and to be given its types. 0, or -1 with an exception set. */
int module_registry_init(struct module_registry *registry, PyObject *module_type);
void module_registry_release(struct module_registry *registry);

static inline uint32_t module_registry_hash(const void *address)
{
	return (uint32_t)(((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* The number of a module that was called before; MODULE_NONE when it was not. Fast, and runs no Python. */
static inline uint32_t module_registry_find(const struct module_registry *registry, const void *address)
{
	uint32_t mask = registry->slot_count - 1;
	uint32_t at = module_registry_hash(address);

	for (uint32_t slot; (slot = registry->slots[at & mask]); at++) {
		const struct module_entry *entry = &registry->entries[slot - 1];

		if (entry->address == address && ((PyWeakReference *)entry->ref)->wr_object == address)
			return slot - 1;
	}
	return MODULE_NONE;
}

/* Takes the module in, and all that it holds, and numbers it: its first call. MODULE_NONE when that cannot be; no exception
 * is set. May run Python. */
uint32_t module_registry_call(struct module_registry *registry, PyObject *module);

/* Looks again at all modules that live: what they hold may have changed. */
void module_registry_refresh(struct module_registry *registry);

/* --- python_objects.c ----------------------------------------------------------------------------------------------- */

/* Describes the parameters of the modules of weak references: a tuple with an item a module. `with_memory` adds the addresses,
 * which take most of the time. NULL and no exception for none. May run Python. */
PyObject *ops_ext_describe_modules(PyObject *refs, bool with_memory);

/* --- module_table.c ------------------------------------------------------------------------------------------------- */

/* Writes the module, which is called for the first time, to the session's recording file, and now and then all modules: each time
 * that there are a sixteenth more, so that the tables add up to some times the last one. Keeps the exception that is set. */
void module_table_note(struct module_registry *registry, uint32_t index);

/* Gives the recording all modules of the registry. 0, or -1 with an exception set. `*ret_refs` is a tuple of weak references to
 * them in the same order, NULL when memory is out. */
int module_table_give(const struct module_registry *registry, struct ops_recording *recording, PyObject **ret_refs);

#endif
