/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that Python calls refer to. Each code object, and each C function with the type to which it belongs, is added
 * once, named, and held until the session is over, so that its address is not reused. All functions require the GIL.
 */
#ifndef OPS_EXT_PYTHON_FUNCTIONS_H
#define OPS_EXT_PYTHON_FUNCTIONS_H

#include "frames.h"

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/record.h>

enum ops_python_rule {
	OPS_PYTHON_RECORD,
	OPS_PYTHON_SKIP, /* not recorded: its callees are recorded as its caller's */
	OPS_PYTHON_HIDE, /* not recorded, and neither are its callees */
	OPS_PYTHON_IMPORT, /* imports a module: its call is "import NAME", and its callees are not recorded */
};

struct ops_python_function {
	const void *key;      /* code object, PyMethodDef or name of a module */
	const void *key_type; /* for a C method */
	PyObject *owner;      /* held: code object, type or name of a module; NULL: none */
	PyObject *name;       /* str: the qualified name; for anything but a code object, the complete name of its rows */
	uint32_t number;      /* in the recording, from 1 */
	enum ops_python_rule rule;
	bool is_library;      /* not part of the program; only if the filter requires it */
};

/* Which calls are recorded, and how paths are shown. Sequences are tuples of str, owned; NULL: none. */
struct ops_python_filter {
	PyObject *path_prefixes; /* removed from paths, the longest first */
	PyObject *include;       /* path patterns as in fnmatch or, without a wildcard, prefixes of paths */
	PyObject *exclude;
	PyObject *hide;          /* their callees are left out as well */
	bool fold_imports;       /* an import is one call */
	bool find_libraries;
};

struct ops_python_functions {
	struct ops_python_filter filter;
	struct ops_python_function **slots; /* open addressing by key; their number is a power of two */
	struct ops_python_function **list;  /* by number - 1 */
	PyObject *nested;       /* dict: address of a code object → its qualified name. Only before CPython 3.11 */
	size_t slot_count;
	size_t count;
	size_t capacity;
};

static inline size_t ops_python_hash(const void *key, const void *key_type)
{
	return (size_t)((((uintptr_t)key >> 4) ^ (uintptr_t)key_type) * 0x9e3779b97f4a7c15u >> 32);
}

/* Returns the function if it is known, else NULL. */
static inline struct ops_python_function *ops_python_find(const struct ops_python_functions *functions, const void *key,
                                                          const void *key_type)
{
	size_t at = ops_python_hash(key, key_type);

	if (!functions->slot_count)
		return NULL;
	for (;; at++) {
		struct ops_python_function *function = functions->slots[at & (functions->slot_count - 1)];

		if (!function || (function->key == key && function->key_type == key_type))
			return function;
	}
}

/* Adds a new function. `frame` runs the code object, or is NULL. Returns NULL if out of memory; leaves no exception. */
struct ops_python_function *ops_python_add_code(struct ops_python_functions *functions, PyCodeObject *code,
                                                ops_frame *frame);
/* `type` is that of the object to which the function is bound, or a method's class; NULL: none. */
struct ops_python_function *ops_python_add_method(struct ops_python_functions *functions, const PyMethodDef *method,
                                                  PyTypeObject *type);
/* Adds any other function, with any address as its key. */
struct ops_python_function *ops_python_add_other(struct ops_python_functions *functions, const void *key,
                                                 const char *name);

/* Returns the function "import NAME" of a module, added if new. Returns NULL if out of memory; leaves no exception. */
struct ops_python_function *ops_python_import_of(struct ops_python_functions *functions, PyObject *module);

/* Adds all functions to the recording. Returns false if out of memory; leaves no exception. */
bool ops_python_add_functions(const struct ops_python_functions *functions, struct ops_recording *recording);
/* Removes all functions and the filter. */
void ops_python_forget(struct ops_python_functions *functions);

#endif
