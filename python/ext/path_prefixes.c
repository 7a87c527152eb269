/* SPDX-License-Identifier: Apache-2.0
 *
 * Prefixes of paths; see path_prefixes.h.
 */
#include "path_prefixes.h"

#include <stdlib.h>
#include <string.h>

/* Immutable, and kept until the process ends, since threads may read it after the recording. */
struct path_prefixes {
	struct path_prefixes *previous; /* of earlier recordings */
	size_t count;
	struct ops_string items[];
};

static struct path_prefixes *current; /* atomic */

/* Makes a copy of the texts, which follow the list. Returns NULL with an exception set. */
static struct path_prefixes *path_prefixes_copy(PyObject *tuple)
{
	Py_ssize_t count = tuple ? PyTuple_GET_SIZE(tuple) : 0, size = 0, bytes = 0;
	struct path_prefixes *copy;
	char *to;

	for (Py_ssize_t i = 0; i < count; i++, bytes += size)
		if (!PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(tuple, i), &size))
			return NULL;
	copy = calloc(1, sizeof(*copy) + (size_t)count * sizeof(copy->items[0]) + (size_t)bytes);
	if (!copy)
		return (void)PyErr_NoMemory(), NULL;
	to = (char *)&copy->items[count];
	for (Py_ssize_t i = 0; i < count; i++, to += size) {
		const char *text = PyUnicode_AsUTF8AndSize(PyTuple_GET_ITEM(tuple, i), &size);

		memcpy(to, text, (size_t)size);
		copy->items[copy->count++] = (struct ops_string){to, (size_t)size};
	}
	return copy;
}

static bool path_prefixes_are_same(const struct path_prefixes *a, const struct path_prefixes *b)
{
	bool same = a && a->count == b->count;

	for (size_t i = 0; same && i < a->count; i++)
		same = a->items[i].size == b->items[i].size && memcmp(a->items[i].bytes, b->items[i].bytes, a->items[i].size) == 0;
	return same;
}

int ops_path_prefixes_set(PyObject *prefixes)
{
	struct path_prefixes *copy = path_prefixes_copy(prefixes);

	if (!copy)
		return -1;
	if (path_prefixes_are_same(current, copy)) {
		free(copy);
		return 0;
	}
	copy->previous = current;
	__atomic_store_n(&current, copy, __ATOMIC_RELEASE);
	return 0;
}

struct ops_string ops_path_without_prefix(struct ops_string path)
{
	const struct path_prefixes *known = __atomic_load_n(&current, __ATOMIC_ACQUIRE);

	for (size_t i = 0; known && i < known->count; i++) {
		struct ops_string prefix = known->items[i];

		if (path.size > prefix.size && memcmp(path.bytes, prefix.bytes, prefix.size) == 0)
			return (struct ops_string){path.bytes + prefix.size, path.size - prefix.size};
	}
	return path;
}

size_t ops_path_normalize(char *path)
{
	char *to = path;

	if (*path != '/' || !strstr(path, "/."))
		return strlen(path);
	for (const char *from = path, *next; *from; from = next) {
		size_t size = strcspn(from + 1, "/") + 1;

		next = from + size;
		if (size == 2 && from[1] == '.')
			continue;
		if (size == 3 && from[1] == '.' && from[2] == '.') {
			while (to > path && *--to != '/')
				;
			continue;
		}
		memmove(to, from, size);
		to += size;
	}
	*to = '\0';
	return (size_t)(to - path);
}
