/* SPDX-License-Identifier: Apache-2.0
 *
 * What the views of one worker's communication and of all workers share.
 */
#ifndef OPS_ANALYZE_VIEW_COMMUNICATION_H
#define OPS_ANALYZE_VIEW_COMMUNICATION_H

#include "analyze/result.h"
#include "analyze/views/views.h"
#include "derive/operations.h"

/* The time of a step, which is the sum of the four members. */
struct view_overlap {
	int64_t computation_only_ns;
	int64_t overlap_ns;
	int64_t communication_only_ns;
	int64_t other_ns;
};

/* A cursor over the steps in order. */
struct view_overlaps {
	const struct ops_intervals *computing;
	const struct ops_intervals *talking;
	struct ops_intervals both;
	size_t cursors[3];
};
bool view_overlaps_init(struct view_overlaps *overlaps, const struct ops_views *views);
void view_overlaps_release(struct view_overlaps *overlaps); /* must also be called after init failed */
struct view_overlap view_overlaps_next(struct view_overlaps *overlaps, const struct view_step *step);
void view_write_overlap(struct ops_json_writer *json, const struct view_overlap *overlap);

/* Lists the collectives by step, those outside of steps last. `order` has space for all. */
void view_collectives_by_step(const struct ops_views *views, uint32_t *order);
/* Returns the end of the collectives in that list that are in the same step as `first`. */
size_t view_collectives_step_end(const struct ops_views *views, const uint32_t *order, size_t first);
/* Computes the time that the ranges of listed collectives cover. `ranges` has the positions of those in the views. Returns
 * false if out of memory. */
bool view_collectives_cover(const struct ops_views *views, const struct ops_intervals *ranges, const uint32_t *order,
                            size_t count, int64_t *ret_ns);

/* Returns the sum of the sizes of listed collectives; RESULT_NULL if none is known. */
int64_t view_collectives_bytes(const struct ops_views *views, const uint32_t *order, size_t count);

/* All collective operations of one name. */
struct view_operation {
	struct ops_string name;
	uint64_t calls;
	int64_t bytes; /* RESULT_NULL: unknown, in a recording without shapes */
	struct ops_intervals ranges; /* merged */
};
typedef OPS_ARRAY(struct view_operation) view_operation_list;
/* Finds the operations by name. Returns false if out of memory. The caller must release the list in any case. */
bool view_operations_find(const struct ops_views *views, view_operation_list *list);
void view_operations_release(view_operation_list *list);

/* Gets by collective the text in `texts` that identifies its operation among those of all ranks (derive/operations.h). This and the
 * next function return false if out of memory. */
bool view_collectives_find_kinds(const struct ops_views *views, struct ops_intern *texts, uint32_t *ret_kinds);
/* Finds the operation of each of a rank's collectives. */
bool view_collectives_number(struct ops_operations *operations, const struct ops_intern *texts, const uint32_t *kinds, size_t count,
                             uint32_t *ret_operations);

#endif
