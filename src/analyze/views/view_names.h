/* SPDX-License-Identifier: Apache-2.0
 *
 * Unique names for the keys of one JSON object: repeated names get a number, as in "epoch", "epoch (2)", "epoch (3)".
 */
#ifndef OPS_ANALYZE_VIEW_NAMES_H
#define OPS_ANALYZE_VIEW_NAMES_H

#include <opstrobe/trace.h>

#include "base/intern.h"
#include "base/map.h"

/* Zero-initialised is empty. */
struct view_names {
	struct ops_intern texts; /* in the order of addition */
	struct ops_map repeats; /* how often each name was added */
};

/* Adds a unique name for `name`; its id is the number of names before it. Returns false if out of memory. */
bool view_names_add(struct view_names *names, struct ops_string name);
/* Returns a name, which is valid until the names are released. */
struct ops_string view_names_at(const struct view_names *names, size_t id);
void view_names_release(struct view_names *names);

#endif
