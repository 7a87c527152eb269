/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of kernels without the arguments that distinguish instances of a template.
 */
#ifndef OPS_ANALYZE_SHORT_NAME_H
#define OPS_ANALYZE_SHORT_NAME_H

#include <stdbool.h>

#include <opstrobe/trace.h>

#include "base/arena.h"
#include "base/buffer.h"

struct result_table;

/* Replaces the buffer's text with the short name: "void at::native::reduce<float, 4>(int)" becomes
 * "at::native::reduce". Names of copies, and names without '<' and '(', are unchanged. Takes linear time. */
void short_name(struct ops_string name, struct ops_buffer *out);

/* Like short_name(), without the empty scopes that "(anonymous namespace)" leaves: "at::native::::fill" becomes
 * "at::native::fill". */
void readable_name(struct ops_string name, struct ops_buffer *out);
/* Replaces names by their readable forms, which the arena owns. Different names with the same form keep theirs, without "void ".
 * Returns false if out of memory. */
bool readable_names(struct ops_string *names, size_t count, struct ops_arena *arena);
/* Replaces the names of kernels, in the column "name" of a table, by readable ones. Returns false if out of memory. */
bool readable_name_column(struct result_table *table);

#endif
