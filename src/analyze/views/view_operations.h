/* SPDX-License-Identifier: Apache-2.0
 *
 * Which collectives of several workers are one operation: the nth one of a name in a process group, or the one with the
 * same sequence number assigned by torch in that group.
 */
#ifndef OPS_ANALYZE_VIEW_OPERATIONS_H
#define OPS_ANALYZE_VIEW_OPERATIONS_H

#include "analyze/views/views.h"
#include "base/intern.h"
#include "base/map.h"

/* Operations of all workers, numbered in order of first occurrence. */
struct view_operations {
	struct ops_intern keys;
	struct ops_map numbers; /* by key and by the number of earlier ones with that key on the worker */
};

static inline uint64_t view_operations_pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

/* Returns, by collective, the text in `texts` that identifies the operation. Returns false if out of memory. */
bool view_operations_make_keys(const struct ops_views *views, struct ops_intern *texts, uint32_t *ret_keys);
/* Finds the operation of each of a worker's collectives. Returns false if out of memory. */
bool view_operations_number(struct view_operations *operations, const struct ops_intern *texts, const uint32_t *keys,
                            size_t count, uint32_t *ret_operations);
void view_operations_release(struct view_operations *operations);

#endif
