/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace that is being merged: its state, and how a part is added.
 */
#ifndef OPS_TRACE_MERGE_PART_H
#define OPS_TRACE_MERGE_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/merge.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/intern.h"
#include "trace/builder.h"
#include "trace/merge_tracks.h"

/* A member of the metadata. */
struct merge_member {
	struct ops_string key, json;
};

/* The state of a merge. */
struct merge {
	struct ops_builder *builder;
	struct merge_tracks tracks; /* tracks that were added to the builder */
	size_t event_count;         /* number of events added so far, which is the number of the next one */
	size_t memory_count;
	uint32_t python_id;         /* the highest one so far */
	struct ops_intern modules;  /* struct module_key of the modules added to the builder */
	bool keep_ids;
	bool links_given; /* some part was read from a file, so links are copied and not derived */

	/* Known of all parts before the first one is added. */
	struct ops_trace_info info; /* of the new trace */
	size_t events_expected, memory_expected;

	struct ops_arena texts; /* texts of the metadata */
	OPS_ARRAY(struct merge_member) metadata;
	struct ops_string place; /* position in the run: members on which all ranks agree; "" if none */
	struct ops_buffer samples; /* sampled stacks of processes that become part of the trace: JSON objects, each after a comma */
};

/* Returns the sum, saturated at the limits of int64_t. */
int64_t merge_shifted(int64_t ns, int64_t shift_ns);

/* Copies the part with that index. `places` receives the numbers of its refs in order of adding. Returns false if out of memory. */
bool merge_add_part(struct merge *merge, const struct ops_trace_part *part, size_t index, bool own_tracks, uint32_t *places);

#endif
