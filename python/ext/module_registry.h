/* SPDX-License-Identifier: Apache-2.0
 *
 * Tracks which modules a session has called, and which modules contain which (module_registry.c); and adds them to the recording
 * at its end (module_table.c). All functions require the GIL.
 */
#ifndef OPS_EXT_MODULE_REGISTRY_H
#define OPS_EXT_MODULE_REGISTRY_H

#include "ext.h"

#include <opstrobe/record.h>

#define MODULE_NONE UINT32_MAX

/* A parameter that a module contains directly. */
struct module_parameter {
	void *key; /* the same for equal parameters */
	uint64_t count;
	uint64_t bytes;
};

/* A module that was called, or that a called module contains, directly or not. It is identified by its address while the weak
 * reference is alive; then the address is unique. */
struct module_entry {
	void *address;
	PyObject *ref;      /* weak */
	PyTypeObject *type; /* strong */
	uint32_t number;    /* MODULE_NONE until called */
	uint32_t holder;    /* index of its first holding; MODULE_NONE: none */
	uint32_t last_holder;
	size_t parameter_count;
	struct module_parameter *parameters;
};

/* Records that a module is an attribute of another. */
struct module_holding {
	uint32_t parent;
	uint32_t child;
	uint32_t next;  /* next holding of the child; MODULE_NONE: none */
	PyObject *name; /* str */
};

struct module_registry {
	struct module_entry *entries;
	uint32_t count;
	uint32_t capacity;
	uint32_t *slots; /* open addressing by address, index + 1; their number is a power of two */
	uint32_t slot_count;
	struct module_holding *holdings;
	uint32_t holding_count;
	uint32_t holding_capacity;
	PyObject *type_counts; /* dict: address of a class → number of called modules of it */
	PyObject *module_type; /* torch.nn.Module */
	uint32_t noted_count;  /* number of entries in the last table in the session's recording file */
	uint32_t noted_tables;
};

/* A zero-initialised registry is empty, and receives its types here. Returns 0, or -1 with an exception set. */
int module_registry_init(struct module_registry *registry, PyObject *module_type);
void module_registry_release(struct module_registry *registry);

static inline uint32_t module_registry_hash(const void *address)
{
	return (uint32_t)(((uintptr_t)address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* Returns the number of a module that was called before, else MODULE_NONE. Fast, and runs no Python code. */
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

/* Called for the first call of a module: adds the module with all that it contains, and numbers it. Returns MODULE_NONE, without
 * an exception, on failure. May run Python code. */
uint32_t module_registry_call(struct module_registry *registry, PyObject *module);

/* Reads all existing modules again, because their contents may have changed. */
void module_registry_refresh(struct module_registry *registry);

/* --- python_objects.c ----------------------------------------------------------------------------------------------- */

/* Describes the parameters of modules given by weak references: a tuple with an item for each module. `with_memory` adds the
 * addresses, which take most of the time. Returns NULL without an exception if there are none. May run Python code. */
PyObject *ops_ext_describe_modules(PyObject *refs, bool with_memory);

/* --- module_table.c ------------------------------------------------------------------------------------------------- */

/* Writes a module, which is called for the first time, to the session's recording file, and from time to time all modules:
 * whenever their number has grown by a sixteenth, so that the total size of the tables is a small multiple of the last one.
 * Preserves an exception that is set. */
void module_table_note(struct module_registry *registry, uint32_t index);

/* Adds all modules of the registry to the recording. Returns 0, or -1 with an exception set. `*ret_refs` is a tuple of weak
 * references to them in the same order, NULL if out of memory. */
int module_table_add_to(const struct module_registry *registry, struct ops_recording *recording, PyObject **ret_refs);

#endif
