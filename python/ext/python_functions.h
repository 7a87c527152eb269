/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that Python calls name: each code object, and each C function with the type it is of, is met once, named,
 * and held until the session is over, so that no other comes to lie at its address and every name is ours. All with the
 * GIL.
 */
#ifndef OPS_EXT_PYTHON_FUNCTIONS_H
#define OPS_EXT_PYTHON_FUNCTIONS_H

#include "frames.h"

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/record.h>

enum ops_python_rule {
	OPS_PYTHON_RECORD,
	OPS_PYTHON_SKIP, /* as if it were not there: what it calls is recorded as its caller's */
	OPS_PYTHON_HIDE, /* nor is anything that it calls */
	OPS_PYTHON_IMPORT, /* imports a module: its call is "import NAME", and nothing that it calls is recorded */
};

struct ops_python_function {
	const void *key;      /* code object, PyMethodDef or name of a module */
	const void *key_type; /* of a method of C */
	PyObject *owner;      /* held: code object, type or name of a module, NULL for none */
	PyObject *name;       /* str: the qualified name; of what is no code object the whole name of its rows */
	uint32_t number;      /* in the recording, from 1 */
	enum ops_python_rule rule;
	bool is_library;      /* not of the program, if the filter wants to know */
};

/* What is recorded and how paths are shown. Sequences are tuples of str, owned; NULL for none. */
struct ops_python_filter {
	PyObject *path_prefixes; /* cut off paths, the longest first */
	PyObject *include;       /* path patterns as in fnmatch, or without a wildcard the beginnings of paths */
	PyObject *exclude;
	PyObject *hide;          /* what is called from these is left out as well */
	bool fold_imports;       /* an import is one call */
	bool find_libraries;
};

struct ops_python_functions {
	struct ops_python_filter filter;
	struct ops_python_function **slots; /* open addressing by key; a power of two of them */
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

/* The function if it was met before, else NULL. */
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

/* Adds a function that was not met before. `frame` runs the code object, or is NULL. NULL when memory is out; leaves no
 * exception. */
struct ops_python_function *ops_python_add_code(struct ops_python_functions *functions, PyCodeObject *code,
                                                ops_frame *frame);
/* `type` is that of what the function is bound to, or a method's class; NULL for none. */
struct ops_python_function *ops_python_add_method(struct ops_python_functions *functions, const PyMethodDef *method,
                                                  PyTypeObject *type);
/* One that is none of these, by any address as its key. */
struct ops_python_function *ops_python_add_other(struct ops_python_functions *functions, const void *key,
                                                 const char *name);

/* "import NAME" of a module, whether it was met before or not. NULL when memory is out; leaves no exception. */
struct ops_python_function *ops_python_import_of(struct ops_python_functions *functions, PyObject *module);

/* Tells the recording all functions. False when memory is out; leaves no exception. */
bool ops_python_add_functions(const struct ops_python_functions *functions, struct ops_recording *recording);
/* Forgets all, the filter too. */
void ops_python_forget(struct ops_python_functions *functions);

#endif
