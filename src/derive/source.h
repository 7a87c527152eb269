/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the source of the program has loops and searches (`x in items`), from the metadata "source" of a recording:
 *
 *     {"/work/train.py": {"loops": [[30, 42], [33, 40]], "searches": [[28, 35]]}}
 *
 * A loop has its first and last line, a search the first line of its function and its line.
 */
#ifndef OPS_DERIVE_SOURCE_H
#define OPS_DERIVE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include <opstrobe/trace.h>

#include "base/array.h"

struct ops_source_lines {
	struct ops_string file; /* borrowed from the trace */
	uint32_t first, last;   /* of a loop; of the function, and of the search */
	bool is_search;
};

/* Zero-initialised is empty. */
struct ops_source {
	OPS_ARRAY(struct ops_source_lines) list;
};

/* Returns false if out of memory. The caller must release it in any case. */
bool ops_source_read(struct ops_source *source, const struct ops_trace *trace);
void ops_source_release(struct ops_source *source);
/* Finds the path of a file of the program that a recording names without the directory in which modules are found. Returns false if it
 * is unknown. Of several, the shortest is found, since the longest such directory was removed from each. */
bool ops_source_find_path(const struct ops_trace *trace, struct ops_string file, struct ops_string *ret_path);
/* Returns the first line of the innermost loop around a line, other than one that begins there; 0: unknown. */
uint32_t ops_source_loop(const struct ops_source *source, struct ops_string file, uint32_t line);
/* Returns the line of the only search in the function that begins at a line; 0: none, several, or unknown. */
uint32_t ops_source_search(const struct ops_source *source, struct ops_string file, uint32_t function_line);

#endif
