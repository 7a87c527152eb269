/* SPDX-License-Identifier: Apache-2.0
 *
 * Names that are to be keys of one JSON object: those that come again get a number, "epoch", "epoch (2)", "epoch (3)".
 */
#ifndef OPS_ANALYZE_VIEW_NAMES_H
#define OPS_ANALYZE_VIEW_NAMES_H

#include <opstrobe/trace.h>

#include "base/intern.h"
#include "base/map.h"

/* Zero-initialised is empty. */
struct view_names {
	struct ops_intern texts; /* in the order in which they were added */
	struct ops_map repeats; /* how often each was requested */
};

/* A name that no other has; its id is how many there were before. False when memory is out. */
bool view_names_add(struct view_names *names, struct ops_string name);
/* Good until it is released. */
struct ops_string view_names_at(const struct view_names *names, size_t id);
void view_names_release(struct view_names *names);

#endif
