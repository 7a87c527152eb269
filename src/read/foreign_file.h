/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of other tools that people pass by mistake.
 */
#ifndef OPS_READ_FOREIGN_FILE_H
#define OPS_READ_FOREIGN_FILE_H

#include <stddef.h>

/* When a file that looks like this one is refused. */
enum ops_foreign_when {
	OPS_FOREIGN_ALWAYS,
	OPS_FOREIGN_WITHOUT_EVENTS,     /* if it has no traceEvents */
	OPS_FOREIGN_WITHOUT_CATEGORIES, /* if no event has a category of PyTorch's profiler; it is Chrome JSON all the same */
};

struct ops_foreign_file {
	const char *what; /* what the file looks like, and which program reads it */
	enum ops_foreign_when when;
};

/* What the file with these first bytes (after decompression) looks like; NULL if it resembles none of them. Static storage. */
const struct ops_foreign_file *ops_find_foreign_file(const char *head, size_t size);

#endif
