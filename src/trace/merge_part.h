/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace that is being made of others: what it has so far, and how a part is added.
 */
#ifndef OPS_TRACE_MERGE_PART_H
#define OPS_TRACE_MERGE_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <opstrobe/merge.h>

#include "base/arena.h"
#include "base/array.h"
#include "base/intern.h"
#include "trace/builder.h"
#include "trace/merge_tracks.h"

/* A member of the metadata. */
struct merge_member {
	struct ops_string key, json;
};

/* What is being made. */
struct merge {
	struct ops_builder *builder;
	struct merge_tracks tracks; /* those added to the builder */
	size_t event_count;         /* added so far, and so the next */
	size_t memory_count;
	uint32_t python_id;         /* the highest so far */
	struct ops_intern modules;  /* struct module_key, of those added to the builder */
	bool keep_ids;
	bool links_given; /* some part was read from a file, so links are copied and not derived again */

	/* Known of all parts before the first is added. */
	struct ops_trace_info info; /* of the new trace */
	size_t events_expected, memory_expected;

	struct ops_arena texts; /* of the metadata */
	OPS_ARRAY(struct merge_member) metadata;
	struct ops_string place; /* among the processes of a run: what all ranks say of theirs, "" where nothing */
};

/* The sum, or the time nearest to it that there is. */
int64_t merge_shifted(int64_t ns, int64_t shift_ns);

/* Copies the part with that index; `places` has room for its refs and gets where they are in order of adding. False when
 * memory is out. */
bool merge_add_part(struct merge *merge, const struct ops_trace_part *part, size_t index, bool own_tracks, uint32_t *places);

#endif
