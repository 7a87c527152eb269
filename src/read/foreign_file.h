/* SPDX-License-Identifier: Apache-2.0
 *
 * Recognises files of other tools that are given by mistake.
 */
#ifndef OPS_READ_FOREIGN_FILE_H
#define OPS_READ_FOREIGN_FILE_H

#include <stddef.h>

/* The condition under which a file with this beginning is rejected. */
enum ops_foreign_when {
	OPS_FOREIGN_ALWAYS,
	OPS_FOREIGN_WITHOUT_EVENTS,     /* if it has no traceEvents */
	OPS_FOREIGN_WITHOUT_CATEGORIES, /* if no event has a category of PyTorch's profiler; it may still be Chrome JSON */
};

struct ops_foreign_file {
	const char *what; /* what the file looks like, and the program that reads it */
	enum ops_foreign_when when;
};

/* Returns what a file with these first bytes (after decompression) looks like; NULL if nothing known. Static. */
const struct ops_foreign_file *ops_find_foreign_file(const char *head, size_t size);

#endif
